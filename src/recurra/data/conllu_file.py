"""A CoNLL-U file as it stands: sentences with all of their lines, so that nothing is lost when some cells change."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recurra.data.files import PathLike, lines
from recurra.data.formats.conllu import COLUMNS, cells_of
from recurra.metrics.universal_dependencies import UDToken, UDWord
from recurra.text.key_values import column_and_key, with_pairs

SORTED = ("feats",)
"""Columns whose pairs are sorted."""


class ConlluSentence(NamedTuple):
    """A sentence: its lines, and its place in the file."""

    lines: tuple[str, ...]
    line: int

    def words(self, path: PathLike = "") -> Iterator[tuple[int, list[str]]]:
        """The lines of words, by their place among the lines, and their cells; ranges and empty nodes left out."""
        for place, line in enumerate(self.lines):
            if not line.startswith("#") and line.partition("\t")[0].isdecimal():
                yield place, cells_of(path, self.line + place, line)

    def tokens(self, path: PathLike = "") -> list[UDToken]:
        """The tokens as they are written, with their words."""
        found: list[UDToken] = []
        form, last = "", 0  # of the range that is being read
        inside: list[UDWord] = []
        for place, line in enumerate(self.lines):
            if line.startswith("#"):
                continue
            cells = cells_of(path, self.line + place, line)
            first, dash, end = cells[0].partition("-")
            if dash and first.isdecimal() and end.isdecimal():
                form, last, inside = cells[1], int(end), []
            elif first.isdecimal():
                word = UDWord(cells[1], cells[2], cells[3], cells[4], cells[5])
                inside.append(word)
                if not form:
                    found.append(UDToken(word.form, (word,)))
                elif int(first) < last:
                    continue
                else:
                    found.append(UDToken(form, tuple(inside)))
                form, inside = "", []
        return found

    def with_columns(self, columns: Mapping[str, Sequence[str]], comments: Mapping[str, str] | None = None) -> str:
        """The sentence with other values in some columns, one per word, and a blank line after it.

        A name such as feats:Case is one pair of a column; a column that CoNLL-U does not have is one of MISC. All else
        stays as it is: other columns, comments, ranges and empty nodes.
        """
        found, changes = list(self.lines), _changes(columns)
        for number, (place, cells) in enumerate(self.words()):
            found[place] = "\t".join(_changed(cells, changes, number))
        first = next((place for place, line in enumerate(found) if not line.startswith("#")), len(found))
        found[first:first] = [f"# {name} = {value}" for name, value in (comments or {}).items()]
        return "".join(f"{line}\n" for line in (*found, ""))


def with_cells(cells: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The ten cells of a word with other values of some columns, as `ConlluSentence.with_columns` takes them.

    >>> with_cells(["1", "Dogs", *"_" * 8], {"feats:Number": "Plur", "upos": "NOUN", "ner": "O"})
    ['1', 'Dogs', '_', 'NOUN', '_', 'Number=Plur', '_', '_', '_', 'ner=O']
    """
    return _changed(list(cells), _changes({name: [value] for name, value in values.items()}), 0)


class _Changes(NamedTuple):
    """What changes in each word, looked up once for all words."""

    whole: list[tuple[int, Sequence[str]]]  # the place of a cell, and its values, one per word
    pairs: list[tuple[int, tuple[str, ...], list[Sequence[str]]]]  # the place of a cell, its keys, and their values


def _changes(columns: Mapping[str, Sequence[str]]) -> _Changes:
    found = _Changes([], [])
    pairs: dict[str, dict[str, Sequence[str]]] = {}
    for name, values in columns.items():
        column, key = (name, None) if name in COLUMNS else column_and_key(name)
        if column not in COLUMNS:
            pairs.setdefault("misc", {})[name.replace("|", "/")] = [value.replace("|", "/") for value in values]
        elif key is None:
            found.whole.append((COLUMNS.index(column), values))
        else:
            pairs.setdefault(column, {})[key] = values
    found.pairs.extend((COLUMNS.index(column), tuple(of), list(of.values())) for column, of in pairs.items())
    return found


def _changed(cells: list[str], changes: _Changes, number: int) -> list[str]:
    for place, values in changes.whole:
        cells[place] = values[number] or "_"
    for place, keys, columns in changes.pairs:
        cells[place] = _joined(cells[place], keys, tuple(column[number] for column in columns), place)
    return cells


@functools.lru_cache(maxsize=1 << 14)
def _joined(cell: str, keys: tuple[str, ...], values: tuple[str, ...], place: int) -> str:
    """A cell with other values of some keys; the same ones recur in most words."""
    return with_pairs(cell, dict(zip(keys, values, strict=True)), is_sorted=COLUMNS[place] in SORTED)


def conllu_sentences(path: PathLike) -> Iterator[ConlluSentence]:
    """The sentences of a CoNLL-U file."""
    return grouped(lines(path))


def grouped(numbered: Iterable[tuple[int, str]]) -> Iterator[ConlluSentence]:
    """The sentences of some lines with their numbers, which blank lines separate."""
    found: list[str] = []
    first = 0
    for number, line in numbered:
        if line.strip(" \t"):
            first = first if found else number
            found.append(line)
        elif found:
            yield ConlluSentence(tuple(found), first)
            found = []
    if found:
        yield ConlluSentence(tuple(found), first)
