"""What a column holds: its type, lengths and how often each value occurs, counted in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from recurra.data.checking.pictures import PATHS, STROKES, is_drawing, is_path
from recurra.data.formats.reader import Value
from recurra.data.roles import kind_of, number_in

MOST_DISTINCT = 100_000
MOST_LABELS = 200
RARE = 5
SHOWN = 3
# Lengths are exact up to here and have three digits beyond, so that their table stays small.
EXACT_LENGTH = 65_536

BLANK_SEPARATED = ("tokens", "tags")
"""Columns of text whose parts are separated by blanks."""


class Lengths(NamedTuple):
    """Of the values of a column that are not missing."""

    unit: str
    shortest: int
    median: int
    most: int  # 95 % are no longer
    longest: int
    longest_line: int


class Rare(NamedTuple):
    """A label that occurs too seldom to be learnt."""

    value: str
    times: int
    lines: list[int]  # the first few


class Column(NamedTuple):
    """A column of one file."""

    name: str
    kind: str  # text, number, list of texts, list of numbers, arrays, paths of pictures, pen strokes
    numeric: bool  # numbers, or texts that all are
    examples: list[str]
    missing: int
    empty: int
    empty_lines: list[int]  # the first few
    lengths: Lengths | None
    distinct: int
    distinct_is_exact: bool
    counts: dict[str, int]  # of each label, the most frequent first; {} where the values are no labels
    rare: list[Rare]
    dates: bool = False  # each value that is there is a date
    row_numbers: bool = False  # an unnamed first column whose values count up by one
    mostly_empty: bool = False  # more than half of its cells


class ColumnSurvey:
    """Sees the values of one column, one by one.

    >>> survey = ColumnSurvey("label")
    >>> for line, label in enumerate(["good", "bad", "good", "good", "bad"], 1):
    ...     survey.see(label, line)
    >>> survey.found().counts
    {'good': 3, 'bad': 2}
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kinds: Counter[str] = Counter()
        self.numeric = True
        self.dates = self.counts_up = True
        self.last: int | None = None
        self.examples: list[str] = []
        self.missing = self.empty = self.total = 0
        self.pictures: Counter[str] = Counter()
        self.empty_lines: list[int] = []
        self.lengths: Counter[int] = Counter()
        self.longest, self.longest_line = -1, 0
        self.hashes: set[int] = set()
        self.labels: dict[str, tuple[int, list[int]]] | None = {}

    def see(self, value: Value, line: int) -> None:
        if value is None:
            self.missing += 1
            return
        kind, parts, length = _parts(self.name, value)
        self.kinds[kind] += 1
        self.pictures["text"] += is_path(value)
        self.pictures["arrays"] += is_drawing(value)
        is_value = kind != "list of texts" and (kind != "text" or is_number(str(value), empty=True))
        self.numeric = self.numeric and is_value
        self.dates = self.dates and isinstance(value, str) and (kind_of(value) in ("date", "missing"))
        self.counts_up = self.counts_up and self._follows(value)
        if length is not None:
            self.lengths[length if length <= EXACT_LENGTH else int(float(f"{length:.3g}"))] += 1
            if length > self.longest:
                self.longest, self.longest_line = length, line
            if length == 0:
                self.empty += 1
                self.empty_lines += [line] * (len(self.empty_lines) < SHOWN)
        if len(self.examples) < SHOWN and length != 0 and (example := shown(value)) not in self.examples:
            self.examples.append(example)
        for part in parts:
            self._count(part, line)

    def _follows(self, value: Value) -> bool:
        """Whether a value is the number after the last one."""
        text = str(value).strip()
        before, self.last = self.last, int(text) if len(text) < 12 and text.isdecimal() else None
        return self.last is not None and (before is None or self.last == before + 1)

    def _count(self, part: str, line: int) -> None:
        self.total += 1
        if len(self.hashes) < MOST_DISTINCT:
            self.hashes.add(hash(part))
        if self.labels is None:
            return
        count, lines = self.labels.get(part, (0, []))
        if len(lines) < SHOWN:
            lines.append(line)
        self.labels[part] = (count + 1, lines)
        if len(self.labels) > MOST_LABELS:
            self.labels = None

    def found(self) -> Column:
        # Values that hardly ever recur are texts of a small file, not labels.
        labels = self.labels if self.labels is not None and self.total >= 2 * len(self.labels) else {}
        kinds = sorted(kind for kind in self.kinds if kind != "empty list") or list(self.kinds)
        ordered = sorted(labels.items(), key=lambda item: (-item[1][0], item[0]))
        is_named = self.name != "column1" and any(map(str.isalpha, self.name))
        return Column(
            name=self.name,
            kind=self._kind(kinds),
            numeric=self.numeric and self.empty < self.kinds.total(),
            examples=self.examples,
            missing=self.missing,
            empty=self.empty,
            empty_lines=self.empty_lines,
            lengths=self._lengths(),
            distinct=len(self.hashes),
            distinct_is_exact=len(self.hashes) < MOST_DISTINCT,
            counts={value: count for value, (count, _) in ordered},
            rare=[Rare(value, count, lines) for value, (count, lines) in ordered if count < RARE],
            dates=self.dates and bool(self.kinds),
            row_numbers=self.counts_up and len(self.hashes) >= RARE and not is_named,
            mostly_empty=2 * self.empty > self.kinds.total() > 0,
        )

    def _kind(self, kinds: list[str]) -> str:
        """In words; texts that all are paths of pictures, and arrays that all are strokes, are called so."""
        for kind, called in (("text", PATHS), ("arrays", STROKES)):
            if kinds == [kind] and self.pictures[kind] == self.kinds[kind]:
                return called
        return " or ".join(kinds) or "nothing"

    def _lengths(self) -> Lengths | None:
        if not self.lengths:
            return None
        unit = "tokens" if "list of texts" in self.kinds or self.name in BLANK_SEPARATED else "elements"
        if set(self.kinds) == {"text"} and self.name not in BLANK_SEPARATED:
            unit = "characters"
        shortest, half, most = (
            min(length, self.longest)  # a rounded length may have passed it
            for length in (min(self.lengths), quantile(self.lengths, 0.5), quantile(self.lengths, 0.95))
        )
        return Lengths(unit, shortest, half, most, self.longest, self.longest_line)


def quantile(counts: Counter[int], share: float) -> int:
    """The smallest number that at least this share of all does not exceed.

    >>> quantile(Counter([1, 2, 3, 4]), 0.5), quantile(Counter([1, 2, 3, 4]), 0.95)
    (2, 4)
    """
    needed = share * counts.total()
    seen = 0
    for number in sorted(counts):
        seen += counts[number]
        if seen >= needed:
            return number
    raise AssertionError("there are no numbers")


def shown(value: Value, most: int = 60) -> str:
    """A value in short."""
    text = " ".join(value) if isinstance(value, list) and all(isinstance(part, str) for part in value) else str(value)  # type: ignore[arg-type]
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _parts(
    name: str, value: str | float | list[str] | list[float] | list[list[float]] | list[list[list[float]]]
) -> tuple[str, list[str], int | None]:
    """The kind of a value, what to count in it, and its length where it has one."""
    if isinstance(value, str):
        if name in BLANK_SEPARATED:
            words = value.split()
            return "text", words, len(words)
        return "text", [value], len(value)
    if not isinstance(value, list):
        return "number", [str(value)], None
    if not value:
        return "empty list", [], 0
    if isinstance(value[0], str):
        return "list of texts", [str(part) for part in value], len(value)
    return "arrays" if isinstance(value[0], list) else "list of numbers", [], len(value)


def is_number(text: str, *, empty: bool = False) -> bool:
    """Whether a text is a number; an empty one on request, since cells of a table may be left empty."""
    return not math.isnan(number_in(text)) or text.strip().lower() == "nan" or (empty and not text.strip())
