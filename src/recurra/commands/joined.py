"""Answers beside the columns of what was asked, as a table or as JSON lines: `recurra predict --out FILE`."""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from recurra.data.files import extension
from recurra.errors import ConfigError, DataError
from recurra.text.json_file import json_text
from recurra.views.prediction import Prediction

if TYPE_CHECKING:
    from recurra.data.formats import Row

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


_BREAKS = re.compile(r"[\t\r\n]+")
"""What a cell of a TSV file cannot hold; a blank stands in its place."""


class Commas(csv.excel):
    """CSV as it is usual, with plain line ends."""

    lineterminator = "\n"


class Tabs(Commas):
    """TSV as data/formats/tsv.py reads it: quotes are characters like any other."""

    delimiter = "\t"
    quoting = csv.QUOTE_NONE
    quotechar = None


def check_is_free(path: Path, *, also: Sequence[str] = ()) -> None:
    """Refuse a file of another kind, and one that would be overwritten."""
    if f".{extension(path)}" not in (*ENDINGS, *also):
        raise ConfigError(
            f"--out {path}: the file must end in {', '.join(ENDINGS)}; text also with .gz or .zst. Taggers also write "
            ".conllu and .conll."
        )
    if path.exists():
        raise ConfigError(f"--out {path}: this file exists already. Remove it, or choose another name.")


def write_joined(path: Path, at: Path, answers: Iterable[Prediction], file: str | None, data: Any) -> int:
    """Write one record for each row of the file, or for each line that was asked; how many have an answer.

    The name of `path` says what is written, and it is written to `at`. `data` are the settings that the run reads its
    data by.
    """
    if extension(path) == "parquet":
        from recurra.commands.joined_parquet import write_parquet

        return write_parquet(path, at, answers, file, lambda: joined(answers, file, data))
    with written(path, at) as target:
        return _write(target, path, joined(answers, file, data))


def write_pieces(path: Path, at: Path, pieces: Iterable[str]) -> int:
    """Write pieces of text one after the other; how many. The name of `path` says whether they are compressed."""
    count = 0
    with written(path, at) as target:
        for piece in pieces:
            target.write(piece)
            count += 1
    return count


@contextmanager
def written(path: Path, at: Path) -> Iterator[TextIO]:
    """A file to write text to, compressed as the name of `path` says; equal texts give equal bytes."""
    ending = path.suffix.lower()
    with ExitStack() as closing:
        target: Any = closing.enter_context(open(at, "wb"))
        if ending == ".gz":
            import gzip

            target = closing.enter_context(gzip.GzipFile("", "wb", fileobj=target, mtime=0))
        elif ending == ".zst":
            try:
                zstandard: Any = importlib.import_module("zstandard")
            except ImportError as error:
                raise ConfigError(f"--out {path} needs the zstandard package: pip install 'recurra[data]'.") from error
            target = closing.enter_context(zstandard.ZstdCompressor().stream_writer(target, closefd=False))
        yield closing.enter_context(io.TextIOWrapper(target, encoding="utf-8", newline=""))


def joined(answers: Iterable[Prediction], file: str | None, data: Any) -> Iterator[dict[str, Any]]:
    """The columns of each row, its prediction and its score; both None for a row that was not answered."""
    asked = None if file is None else _asked(file, data)
    if asked is None:
        for answer in answers:
            yield {"input": answer.input, **answered(answer, {})}
        return
    names: Sequence[str] | None = None
    for answer in answers:
        for row in asked.rows:
            if names is None and asked.is_table:
                has_header = row.line < answer.line  # the first line of a table is not answered: it is its header
                names = _header(row) if has_header else _roles(row, data)
                if has_header:
                    continue
            record = _named(row.values, names)
            if row.line < answer.line:
                yield {**record, **answered(None, record)}
                continue
            if row.line > answer.line:
                raise not_row_by_row(file)
            yield {**record, **answered(answer, record)}
            break
        else:
            raise not_row_by_row(file)
    for row in asked.rows:
        record = _named(row.values, names)
        yield {**record, **answered(None, record)}


def not_row_by_row(file: str | None) -> ConfigError:
    return ConfigError(
        f"--out: there is not exactly one answer for each row of {file}, so the answers cannot be written next to its "
        "rows. Leave --out out; --json prints the line number of each answer."
    )


class Asked(NamedTuple):
    """The rows of a file of questions; of a table with its header, if it has one."""

    rows: Iterator[Row]
    is_table: bool


def _asked(file: str, data: Any) -> Asked | None:
    """The rows of a file; None where every line is asked as it is."""
    from recurra.data.formats import CSV, reader, rows
    from recurra.reading.asked import read_by

    by = read_by(file, data)
    if by is None:
        return None
    kind = reader(file, by.format)
    if not kind.is_table:
        return Asked(rows(file, format=by.format, columns=by.columns), is_table=False)
    name = "csv" if isinstance(kind, CSV) else "tsv"
    options = by.format if isinstance(by.format, dict) else {"name": by.format or name}
    plain = {key: value for key, value in options.items() if key != "columns"}
    return Asked(rows(file, format={**plain, "header": False}), is_table=True)


def _header(row: Row) -> list[str]:
    return [str(cell).strip() for cell in row.values.values()]


def _roles(row: Row, data: Any) -> list[str]:
    """The columns of a table without a header, called by their roles where they have one of their own."""
    names, roles = list(row.values), data.columns or []
    if len(roles) != len(names):
        return names
    is_own = [role not in ("", "_") and roles.count(role) == 1 for role in roles]
    return [role if own else name for role, name, own in zip(roles, names, is_own, strict=True)]


def _named(values: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """A row of a table under the names of its columns; one that has names of its own as it is."""
    return dict(values) if names is None else dict(zip(names, values.values(), strict=True))


def answered(answer: Prediction | None, beside: Mapping[str, Any]) -> dict[str, Any]:
    """The prediction and its score, under names that no column beside them has."""
    output, score = (None, None) if answer is None else (answer.output, round(answer.score, 6))
    found = {"prediction": output, "score": score}
    return {f"predicted_{name}" if name in beside else name: value for name, value in found.items()}


def _write(target: TextIO, path: Path, records: Iterator[dict[str, Any]]) -> int:
    answered = 0
    is_json, is_tsv = (extension(path) == ending for ending in ("jsonl", "tsv"))
    table: csv.DictWriter[str] | None = None
    for record in records:
        answered += record.get("predicted_prediction", record["prediction"]) is not None
        if is_json:
            target.write(json_text(record) + "\n")
            continue
        if table is None:
            table = csv.DictWriter(target, list(record), dialect=Tabs if is_tsv else Commas)
            table.writeheader()
        if not record.keys() <= {*table.fieldnames}:
            new = ", ".join(record.keys() - {*table.fieldnames})
            raise DataError(
                f"--out {path}: a later row has columns ({new}) that the first row does not have. Use a .jsonl "
                "file instead."
            )
        cells = {name: _cell(value) for name, value in record.items()}
        table.writerow(cells if not is_tsv else {name: _BREAKS.sub(" ", str(cell)) for name, cell in cells.items()})
    return answered


def _cell(value: Any) -> Any:
    """A value as a cell of a table: words with blanks between them, other lists as JSON."""
    if isinstance(value, list):
        return " ".join(value) if all(isinstance(each, str) for each in value) else json_text(value)
    return "" if value is None else value
