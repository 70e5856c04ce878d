"""CoNLL-U: the ten columns of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

COLUMNS = ("id", "tokens", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")

# 3-4 is a token written as two words; 5.1 is a word that was left out of the sentence.
_NOT_A_WORD = re.compile(r"[0-9]+[-.][0-9]+", re.ASCII)


class CoNLLU(Reader):
    """One sentence a row: a list for each column but the ID. "_" stays as it is; ranges and empty nodes are left out.

    FORM is called tokens; the others have their own names in small letters.
    """

    extensions = ("conllu",)

    def read(self, path: PathLike) -> Iterator[Row]:
        words: list[list[str]] = []
        first = 0  # the line on which the sentence began; 0 between sentences
        for number, line in lines(path):
            if not line.strip(" \t"):
                if first:
                    yield _sentence(path, first, words)
                words, first = [], 0
                continue
            first = first or number
            if line.startswith("#"):
                continue
            cells = cells_of(path, number, line)
            if _NOT_A_WORD.fullmatch(cells[0]):
                continue
            if cells[0] != str(len(words) + 1):
                raise DataError(
                    f"{path}:{number}: the ID is {cells[0]!r}, but the next word of this sentence is number "
                    f"{len(words) + 1}. Number the words 1, 2, 3 …, and write a blank line after each sentence."
                )
            words.append(cells[1:])
        if first:
            yield _sentence(path, first, words)


def cells_of(path: PathLike, number: int, line: str) -> list[str]:
    """The ten cells of a line, or a DataError that says what is wrong with them."""
    cells = line.split("\t")
    if len(cells) == 1:
        raise DataError(
            f"{path}:{number}: CoNLL-U has 10 columns separated by tabs, but this line has no tab: {line[:60]!r}. "
            f'If the file uses spaces, write tabs; if it has a word and a tag only, set data.format = "conll".'
        )
    if len(cells) != len(COLUMNS):
        raise DataError(
            f"{path}:{number}: found {len(cells)} columns, but CoNLL-U has 10. Write _ in a column without a value, "
            f'or set data.format = "conll" for a file of other columns.'
        )
    if "" in cells:
        empty = cells.index("")
        name = "FORM" if empty == 1 else COLUMNS[empty].upper()
        raise DataError(f"{path}:{number}: column {empty + 1}, {name}, is empty. Write _ where there is no value.")
    return cells


def _sentence(path: PathLike, first: int, words: list[list[str]]) -> Row:
    if not words:
        raise DataError(f"{path}:{first}: this sentence has no words. Remove its comments, or add the words.")
    columns = zip(*words, strict=True)
    return Row({name: list(column) for name, column in zip(COLUMNS[1:], columns, strict=True)}, first)
