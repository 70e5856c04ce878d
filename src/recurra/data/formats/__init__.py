"""Formats: from a file to rows of named values. The file name is the config name, as in data.format = "conll"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from recurra.data.excerpt import Excerpt, whole
from recurra.data.files import PathLike, extension, lines, opened, parallel_files
from recurra.data.formats.reader import Reader, Row, Value
from recurra.errors import ConfigError, DataError
from recurra.named import catalogue, check_options, find, made, options_of
from recurra.settings import about

if TYPE_CHECKING:
    from recurra.data.formats.babi import Babi
    from recurra.data.formats.brat import Brat
    from recurra.data.formats.conll import CoNLL
    from recurra.data.formats.conllu import CoNLLU
    from recurra.data.formats.csv import CSV
    from recurra.data.formats.fasttext import FastText
    from recurra.data.formats.jsonl import JSONL
    from recurra.data.formats.npz import NPZ
    from recurra.data.formats.parallel import Parallel
    from recurra.data.formats.parquet import Parquet
    from recurra.data.formats.segments import Segments
    from recurra.data.formats.spans import Spans
    from recurra.data.formats.tagged import Tagged
    from recurra.data.formats.text import Text
    from recurra.data.formats.tsv import TSV

LOOKED_AT = 100
"""Lines of a JSONL file that are looked at to tell spans from classes."""

__all__ = [
    "CSV",
    "JSONL",
    "NPZ",
    "TSV",
    "Babi",
    "Brat",
    "CoNLL",
    "CoNLLU",
    "FastText",
    "Parallel",
    "Parquet",
    "Reader",
    "Row",
    "Segments",
    "Spans",
    "Tagged",
    "Text",
    "Value",
    "endings",
    "reader",
    "rows",
]


def __getattr__(name: str) -> object:
    """A reader by the name of its class, imported when first touched: a text that is asked about needs none."""
    if name not in __all__:
        raise AttributeError(f"module 'recurra.data.formats' has no attribute {name!r}")
    return getattr(import_module(f"recurra.data.formats.{name.lower()}"), name)


def reader(
    path: PathLike,
    format: str | Mapping[str, object] | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
) -> Reader:
    """The reader that data.format names, or else the ending of the path.

    >>> type(reader("train.tsv.gz")).__name__, type(reader("train.tsv", "text")).__name__
    ('TSV', 'Text')
    >>> reader("train.txt", {"name": "conll", "separator": " "}).separator
    ' '
    """
    name, options = _name_and_options(path, format)
    with about("format"):
        kind = find(Reader, name)
    if columns is not None:
        if "columns" not in options_of(kind):
            raise ConfigError(
                f"the columns of a {name} file are fixed, so data.columns = {columns!r} has no effect: remove it."
            )
        if "columns" in options:
            raise ConfigError("columns is given twice, in data.format and in data.columns. Keep one of them.")
        options["columns"] = columns
    with about("columns" if columns is not None else "format"):
        check_options(kind, name, options)
        return made(kind, name, **options)


def rows(
    path: PathLike,
    *,
    format: str | Mapping[str, object] | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
) -> Iterator[Row]:
    r"""The rows of a file, as a stream.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.tsv"
    >>> _ = file.write_text("cat\tkat\ndog\thond\n")
    >>> [row.values["target"] for row in rows(file, columns=["source", "target"])]
    ['kat', 'hond']
    """
    found = reader(path, format, columns).read(path)
    return _at_least_one(path, found) if not isinstance(path, Excerpt) else (r for r in found if r.line > path.skipped)


def _at_least_one(path: PathLike, stream: Iterator[Row]) -> Iterator[Row]:
    empty = True
    for row in stream:
        empty = False
        yield row
    if empty:
        raise DataError(f"'{path}' is empty: it has no rows.")


def _name_and_options(path: PathLike, format: str | Mapping[str, object] | None) -> tuple[str, dict[str, object]]:
    if format is None:
        return _by_extension(path), {}
    if isinstance(format, str):
        return format, {}
    if isinstance(format, Mapping) and isinstance(name := format.get("name"), str):
        return name, {option: value for option, value in format.items() if option != "name"}
    raise ConfigError(f"data.format is a name or a table such as {{name = 'conll'}}, but found {format!r}.")


def _by_extension(path: PathLike) -> str:
    if len(parallel_files(path)) > 1:
        return "parallel"
    ending = extension(path)
    known = endings()
    if ending in known:
        if known[ending] == "text" and _begins_as_conll(whole(path)):
            return "conll"
        return "spans" if known[ending] == "jsonl" and _begins_with_spans(whole(path)) else known[ending]
    if _is_tagged(path):
        return "tagged"
    opened(path).close()  # a file that is not there is said to be missing
    shown = f"the ending '.{ending}'" if ending else "a name without an ending"
    raise DataError(
        f"'{path}': cannot detect the format from {shown}. Known: "
        f"{', '.join(f'.{name}' for name in sorted(known))}, also with .gz or .zst. Otherwise set data.format = "
        f"{' | '.join(sorted({*known.values()}))}. For two parallel files, give both names with a comma between "
        'them, as in "train.en,train.de".'
    )


def _is_tagged(path: PathLike) -> bool:
    from recurra.data.formats.tagged import is_tagged

    return is_tagged(path)


def _begins_as_conll(path: PathLike) -> bool:
    """Whether a text file is one of CoNLL-2003, which mark each document by a line of their own."""
    try:
        return next(lines(path), (0, ""))[1].startswith("-DOCSTART-")
    except DataError:  # said when its rows are read
        return False


def _begins_with_spans(path: PathLike) -> bool:
    """Whether the first line of a JSONL file that tells is a text with spans."""
    from recurra.data.formats.jsonl import DECODER, Refusal
    from recurra.data.formats.spans import is_spans

    try:
        for _, line in itertools.islice(lines(path), LOOKED_AT):
            found = is_spans(DECODER.decode(line)) if "[" in line else False
            if found is not None:
                return found
        return False
    except (DataError, ValueError, RecursionError, Refusal):  # said when its rows are read
        return False


@cache
def endings() -> dict[str, str]:
    """From an ending to the name of its format."""
    return {ending: name for name in catalogue(Reader) for ending in find(Reader, name).extensions}
