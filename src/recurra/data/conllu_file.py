"""A CoNLL-U file as it stands: sentences with all of their lines, so that nothing is lost when some cells change."""

from __future__ import annotations

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
        found = list(self.lines)
        for number, (place, cells) in enumerate(self.words()):
            found[place] = "\t".join(with_cells(cells, {name: tags[number] for name, tags in columns.items()}))
        first = next((place for place, line in enumerate(found) if not line.startswith("#")), len(found))
        found[first:first] = [f"# {name} = {value}" for name, value in (comments or {}).items()]
        return "".join(f"{line}\n" for line in (*found, ""))


def with_cells(cells: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The ten cells of a word with other values of some columns, as `ConlluSentence.with_columns` takes them.

    >>> with_cells(["1", "Dogs", *"_" * 8], {"feats:Number": "Plur", "upos": "NOUN", "ner": "O"})
    ['1', 'Dogs', '_', 'NOUN', '_', 'Number=Plur', '_', '_', '_', 'ner=O']
    """
    found = list(cells)
    pairs: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        column, key = (name, None) if name in COLUMNS else column_and_key(name)
        if key is None and column in COLUMNS:
            found[COLUMNS.index(column)] = value or "_"
        else:
            at, key = (column, key) if key is not None and column in COLUMNS else ("misc", name.replace("|", "/"))
            pairs.setdefault(at, {})[key] = value.replace("|", "/") if at == "misc" else value
    for column, given in pairs.items():
        place = COLUMNS.index(column)
        found[place] = with_pairs(found[place], given, is_sorted=column in SORTED)
    return found


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
