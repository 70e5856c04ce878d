"""Raw text to CoNLL-U in one go: what `predict --format conllu` writes, without an object for each word.

A form, a lemma and the cells of a word recur, so each is made once: the row of a form in the table that the network
reads, the lemma of a form and a rule, the cells of all tags and the blanks after the word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.conllu_file import with_cells
from recurra.text.edit_rules import applied
from recurra.text.written import blanks_in_misc, escaped

if TYPE_CHECKING:
    from recurra.models.word_table import WordTable
    from recurra.reading.raw_text import Cut

AHEAD = 16384
"""Words that are found before they are tagged."""

MOST_FORMS = 1 << 15
"""Distinct forms that are kept: of an LSTM of 128 units each takes four kilobytes."""

_BLANKS = re.compile(r"\s+")


class Columns(NamedTuple):
    """What a tagger predicts."""

    names: Sequence[str]
    tags: Sequence[Sequence[str]]  # of each column: the tags, or the rules of edits
    lemma: int | None  # which column has the rules of lemmas

    @classmethod
    def of(cls, names: Sequence[str], tags: Sequence[Sequence[str]], edits: Sequence[bool]) -> Columns | None:
        """None where a column other than the lemma is made by edits."""
        edited = [number for number, is_edit in enumerate(edits) if is_edit]
        if [names[number] for number in edited] not in ([], ["lemma"]):
            return None
        return cls(names, tags, edited[0] if edited else None)


class Spelt(NamedTuple):
    """Forms as a tagger knows them."""

    words: NDArray[np.int32]
    characters: NDArray[np.int32]
    widths: NDArray[np.int32]


Encode = Callable[[Sequence[str]], Spelt]


class TaggedText:
    """The sentences of one text, tagged and written."""

    def __init__(self, columns: Columns, table: Callable[[], WordTable], encode: Encode) -> None:
        self.columns = columns
        self._new_table = table
        self._encode = encode
        self._table = table()
        self._rows: dict[str, int] = {}
        self._lemmas: dict[tuple[str, int], str] = {}
        self._tails: dict[tuple[int, str], str] = {}
        self._ids: list[str] = []
        self._written = 0
        self._opens = True

    def written(self, cuts: Iterable[Cut], told: Callable[[int, Sequence[str]], None]) -> Iterator[str]:
        """Each sentence in CoNLL-U, with a blank line after it; `told` hears of each sentence's number and words."""
        waiting: list[Cut] = []
        words: list[list[str]] = []
        count = 0
        for cut in cuts:
            waiting.append(cut)
            words.append(cut.words())
            count += len(words[-1])
            if count >= AHEAD:
                yield from self._some(waiting, words, told)
                waiting, words, count = [], [], 0
        if waiting:
            yield from self._some(waiting, words, told)

    def _some(
        self, cuts: Sequence[Cut], words: Sequence[list[str]], told: Callable[[int, Sequence[str]], None]
    ) -> Iterator[str]:
        tags = self._tagged(words)
        rules = None if self.columns.lemma is None else tags[self.columns.lemma].tolist()
        codes = self._codes(tags).tolist()
        end = 0
        for cut, own in zip(cuts, words, strict=True):
            start, end = end, end + len(own)
            self._written += 1
            told(self._written, own)
            yield self._sentence(cut, own, codes[start:end], None if rules is None else rules[start:end])

    def _tagged(self, words: Sequence[list[str]]) -> list[NDArray[np.int64]]:
        """The tags of all words, by column."""
        if len(self._rows) > MOST_FORMS:
            self._rows, self._lemmas, self._tails = {}, {}, {}
            self._table = self._new_table()
        rows, known = self._rows, len(self._rows)
        index = [rows.setdefault(word, len(rows)) for own in words for word in own]
        if len(rows) > known:
            self._table.add(*self._encode(list(rows)[known:]))
        lengths = np.array(list(map(len, words)), np.int64)
        return self._table.tags(np.array(index, np.int64), lengths)

    def _codes(self, tags: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """One number for the tags of all columns but the lemma."""
        found = np.zeros(len(tags[0]), np.int64)
        for number, column in enumerate(tags):
            if number != self.columns.lemma:
                found = found * len(self.columns.tags[number]) + column
        return found

    def _tail(self, code: int, misc: str) -> str:
        """The cells after the lemma."""
        values = dict[str, str]()
        for number in reversed(range(len(self.columns.names))):
            if number != self.columns.lemma:
                code, tag = divmod(code, len(self.columns.tags[number]))
                values[self.columns.names[number]] = self.columns.tags[number][tag]
        in_order = {name: values[name] for name in self.columns.names if name in values}
        return "\t".join(["", *with_cells(["1", "_", *"_" * 7, misc], in_order)[3:]]) + "\n"

    def _lemma(self, form: str, rule: int) -> str:
        assert self.columns.lemma is not None
        return applied(self.columns.tags[self.columns.lemma][rule], form) or "_"

    def _sentence(self, cut: Cut, words: list[str], codes: list[int], rules: list[int] | None) -> str:
        blanks = [blanks_in_misc(blank) or "_" for blank in cut.blanks()]
        if cut.before:
            blanks[0] = f"SpacesBefore={escaped(cut.before)}" + ("" if blanks[0] == "_" else f"|{blanks[0]}")
        text = _BLANKS.sub(" ", cut.text[cut.begins[0] : cut.stops[-1]])
        head = f"# sent_id = {self._written}\n# text = {text}\n"
        if self._opens:
            head = f"# newdoc\n# newpar\n{head}" if self._written == 1 else f"# newpar\n{head}"
        self._opens = cut.ends_paragraph
        if cut.several:
            blanks, ranges = _of_words(cut, blanks)
        else:
            ranges = {}
        while len(self._ids) < len(words):
            self._ids.append(f"{len(self._ids) + 1}\t")
        lemmas = ["_"] * len(words) if rules is None else self._all_lemmas(words, rules)
        tails = self._all_tails(codes, blanks)
        lines = [
            f"{number}{word}\t{lemma}{tail}"
            for number, word, lemma, tail in zip(self._ids, words, lemmas, tails, strict=False)
        ]
        for place, line in ranges.items():
            lines[place] = line + lines[place]
        return f"{head}{''.join(lines)}\n"

    def _all_lemmas(self, words: list[str], rules: list[int]) -> list[str]:
        known = self._lemmas
        found = []
        for pair in zip(words, rules, strict=True):
            lemma = known.get(pair)
            if lemma is None:
                lemma = known[pair] = self._lemma(*pair)
            found.append(lemma)
        return found

    def _all_tails(self, codes: list[int], blanks: list[str]) -> list[str]:
        known = self._tails
        found = []
        for pair in zip(codes, blanks, strict=True):
            tail = known.get(pair)
            if tail is None:
                tail = known[pair] = self._tail(*pair)
            found.append(tail)
        return found


def _of_words(cut: Cut, blanks: list[str]) -> tuple[list[str], dict[int, str]]:
    """What MISC says of each word, and the lines of ranges, by the word that they stand before."""
    found, ranges = list[str](), dict[int, str]()
    for number, (form, misc) in enumerate(zip(cut.forms(), blanks, strict=True)):
        expanded = cut.several.get(number)
        if expanded is None:
            found.append(misc)
            continue
        first = len(found)
        ranges[first] = "\t".join([f"{first + 1}-{first + len(expanded)}", form, *"_" * 7, misc]) + "\n"
        found += ["_"] * len(expanded)
    return found, ranges
