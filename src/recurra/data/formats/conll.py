"""CoNLL: a word and its tags a line, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import ConfigError, DataError

_BLANKS = re.compile(r"[ \t]+")


class CoNLL(Reader):
    """One sentence a row: a list for each column, by default tokens, column2 …, tags.

    separator = None is the tab where the first word's line has one, else any run of blanks. columns names them in
    order, and "_" leaves one out. Lines that begin with -DOCSTART- are skipped, and so is a comment "# …" before a
    sentence; but "#" is also a word of a tweet, so a line with the right number of columns is always a word.
    """

    extensions = ("conll", "bio", "iob")
    cut_at = "blank line"
    looked_at = 100

    def __init__(self, *, separator: str | None = None, columns: Sequence[str] | None = None) -> None:
        if separator is not None and (not separator or "\n" in separator):
            raise ConfigError(
                f"separator must be a tab, a space or other characters without a line break, but is {separator!r}."
            )
        named = [name for name in columns or () if name not in ("", "_")]
        if columns is not None and (len(columns) < 2 or not named or len(set(named)) < len(named)):
            raise ConfigError(f"columns must be two or more different names, but is {list(columns)!r}.")
        self.separator = separator
        self.columns = columns

    def read(self, path: PathLike) -> Iterator[Row]:
        stream = lines(path)
        ahead = _up_to_a_word(stream)
        model_number, model = next(((n, line) for n, line in reversed(ahead) if _is_content(line)), (0, ""))
        separator = self.separator or ("\t" if "\t" in model else None)
        width = len(_cells(model, separator))
        words: list[list[str]] = []
        first = 0
        for number, line in chain(ahead, stream):
            if not _is_content(line):
                if words:
                    yield Row(self._columns(words), first)
                words = []
                continue
            cells = _cells(line, separator)
            if not words and len(cells) != width and line.startswith("# ") and (len(cells) == 1 or separator is None):
                continue
            self._check(path, number, cells, model_number, width)
            first = first if words else number
            words.append(cells)
        if words:
            yield Row(self._columns(words), first)

    def _columns(self, words: list[list[str]]) -> dict[str, list[str]]:
        width = len(words[0])
        names = self.columns or ["tokens", *(f"column{k}" for k in range(2, width)), "tags"]
        columns = zip(names, zip(*words, strict=True), strict=True)
        return {name: list(column) for name, column in columns if name not in ("", "_")}

    def _check(self, path: PathLike, number: int, cells: list[str], model_number: int, width: int) -> None:
        if len(cells) != width:
            raise DataError(
                f"{path}:{number}: found {_counted(len(cells))}, but line {model_number} has {width}. Write each "
                "word with its tags on one line, and a blank line after each "
                f"sentence{_cause(cells, self.separator)}."
            )
        if width < 2:
            raise DataError(
                f"{path}:{number}: found one column, {cells[0][:60]!r}, but CoNLL needs a word and its tag, "
                f'separated by a tab or blanks. For plain text set data.format = "text".'
            )
        if self.columns is not None and len(self.columns) != width:
            raise DataError(
                f"{path}:{number}: found {width} columns, but columns names {len(self.columns)} "
                f'({", ".join(self.columns)}). Name all of them; "_" leaves one out.'
            )
        if "" in cells:
            raise DataError(
                f"{path}:{number}: column {cells.index('') + 1} is empty. Every word needs a value in each of its "
                f"{width} columns: write _ or O where there is none."
            )


def _up_to_a_word(stream: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines up to the first that cannot be a comment: it shows how the others are made."""
    ahead = []
    for number, line in stream:
        ahead.append((number, line))
        if _is_content(line) and not line.startswith("# "):
            break
    return ahead


def _is_content(line: str) -> bool:
    return bool(line.strip(" \t")) and not line.startswith("-DOCSTART-")


def _cells(line: str, separator: str | None) -> list[str]:
    return _BLANKS.split(line.strip(" \t")) if separator is None else line.split(separator)


def _counted(columns: int) -> str:
    return "one column" if columns == 1 else f"{columns} columns"


def _cause(cells: list[str], separator: str | None) -> str:
    if len(cells) == 1 and _BLANKS.search(cells[0]):
        return "; here spaces are used instead of the separator"
    if separator == " " and "" in cells:
        return "; here two spaces follow each other, so leave data.format's separator out"
    return ""
