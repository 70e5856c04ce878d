"""What is odd about pairs of texts: empty sides, copies, sides that cannot belong together, several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from recurra.data.checking.columns import SHOWN, Lengths, quantile
from recurra.data.checking.duplicates import RowSurvey
from recurra.data.checking.oddities import Oddity
from recurra.data.formats.reader import Value

FAR_APART = 9
"""A side so many times longer than the other is hardly its translation."""

SIDES = ("source", "target")
UNREAD = ("id", "time")

MIXED = np.uint64(0x9E3779B97F4A7C15)
"""An odd number, so that two hashes become one without loss."""

EMPTY = 'the {} is empty, which training refuses: remove such rows, or set data.empty = "keep"'
COPIED = "the target is the source itself"
TOO_LONG = f"the {{}} is more than {FAR_APART} times longer than the {{}}"


class Ambiguous(NamedTuple):
    """Sources that have more than one target: several references, or a contradiction."""

    sources: int
    most: int  # different targets of one source
    lines: list[int]  # where the second target of a source stands, the first few


class PairReport(NamedTuple):
    """The pairs of one file."""

    source: str  # the columns
    target: str
    source_words: Lengths
    target_words: Lengths
    several: Ambiguous


class PairSurvey:
    """Sees the rows of a file that could be pairs: the source is called so, or it is the first text.

    >>> survey = PairSurvey()
    >>> for line, target in enumerate(["K AE T", "K AA T", ""], 1):
    ...     survey.see({"source": "cat", "target": target}, line)
    >>> survey.found().several
    Ambiguous(sources=1, most=2, lines=[2])
    >>> [(oddity.column, oddity.lines) for oddity in survey.oddities()]
    [('target', [3])]
    """

    def __init__(self) -> None:
        self.columns: tuple[str, str] | None = None
        self.words: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self.longest = [(-1, 0), (-1, 0)]  # words, line
        self.notes: dict[tuple[str, str], tuple[int, list[int]]] = {}
        self.questions, self.answers = RowSurvey(), RowSurvey()
        self.seen = 0

    def see(self, values: Mapping[str, Value], line: int) -> None:
        self.seen += 1
        if self.seen == 1:
            self.columns = _columns(values)
        if self.columns is None:
            return
        texts = [_text(values.get(name)) for name in self.columns]
        words = [len(text.split()) for text in texts]
        for side, count in enumerate(words):
            self.words[side][count] += 1
            if count > self.longest[side][0]:
                self.longest[side] = (count, line)
            if not count:
                self._note(self.columns[side], EMPTY.format(SIDES[side]), line)
        if not all(words):
            return
        if texts[0] == texts[1]:
            self._note(self.columns[1], COPIED, line)
        letters = [len(text) - text.count(" ") for text in texts]
        long = 0 if letters[0] > letters[1] else 1
        short = 1 - long
        is_one_word = words == [1, 1]
        if letters[long] > FAR_APART * letters[short] and (is_one_word or words[long] > FAR_APART * words[short]):
            self._note(self.columns[long], TOO_LONG.format(SIDES[long], SIDES[short]), line)
        known = {name: value for name, value in values.items() if name not in (self.columns[1], *UNREAD)}
        self.questions.see(known, line)
        self.answers.see({"answer": texts[1]}, line)

    def found(self) -> PairReport:
        """What was counted; there are pairs."""
        assert self.columns is not None, "somebody has seen that there are two columns"
        words = [
            Lengths("words", min(counts), quantile(counts, 0.5), quantile(counts, 0.95), *longest)
            for counts, longest in zip(self.words, self.longest, strict=True)
        ]
        return PairReport(*self.columns, words[0], words[1], self._several())

    def oddities(self) -> list[Oddity]:
        return [Oddity(column, what, count, lines) for (column, what), (count, lines) in self.notes.items()]

    def _several(self) -> Ambiguous:
        asked, given = self.questions.array(), self.answers.array()
        _, first = np.unique(asked * MIXED + given, return_index=True)
        first.sort()  # the rows that are not there before, in the order of the file
        _, opened, which, targets = np.unique(asked[first], return_index=True, return_inverse=True, return_counts=True)
        again = first[opened[which] != np.arange(len(first))]
        lines = [self.questions.lines[row] for row in again[:SHOWN].tolist()]
        return Ambiguous(int((targets > 1).sum()), int(targets.max(initial=1)), lines)

    def _note(self, column: str, what: str, line: int) -> None:
        count, lines = self.notes.get((column, what), (0, []))
        self.notes[column, what] = (count + 1, [*lines, line] if len(lines) < SHOWN else lines)


def _columns(values: Mapping[str, Value]) -> tuple[str, str] | None:
    if "source" in values and "target" in values:
        return "source", "target"
    texts = [name for name, value in values.items() if isinstance(value, str) and name not in (*UNREAD, "language")]
    return (texts[0], texts[1]) if len(texts) > 1 else None


def _text(value: Value) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(str(part) for part in value).strip()
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)
