"""Answers beside the columns of what was asked, as Parquet: `recurra predict --out FILE.parquet`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from recurra.commands.joined import answered, not_row_by_row
from recurra.data.files import extension
from recurra.errors import ConfigError, DataError
from recurra.views.prediction import Prediction

ROWS = 4096
"""Rows of a row group."""


def write_parquet(
    path: Path,
    at: Path,
    answers: Iterable[Prediction],
    file: str | None,
    records: Callable[[], Iterator[dict[str, Any]]],
) -> int:
    """Write the columns of a Parquet file as they are with two more, or else `records`; how many have an answer."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigError(f"--out {path} needs the pyarrow package: pip install 'recurra[data]'.") from error
    is_parquet = file is not None and extension(file) == "parquet"
    tables = _beside(arrow, parquet, str(file), iter(answers)) if is_parquet else _of_records(arrow, path, records())
    count = 0
    writer: Any = None
    try:
        for table, some in tables:
            writer = parquet.ParquetWriter(at, table.schema) if writer is None else writer
            writer.write_table(table)
            count += some
        if writer is None:
            raise DataError(f"--out {path}: there is nothing to write, for the input has no rows.")
    finally:
        if writer is not None:
            writer.close()
    return count


def _beside(arrow: Any, parquet: Any, file: str, answers: Iterator[Prediction]) -> Iterator[tuple[Any, int]]:
    """The row groups of a file with their answers, which name their row."""
    table = parquet.ParquetFile(file)
    waiting = next(answers, None)
    row = 0
    for batch in table.iter_batches(ROWS):
        outputs: list[str | None] = []
        scores: list[float | None] = []
        for _ in range(batch.num_rows):
            row += 1
            found = answered(None, {})
            if waiting is not None and waiting.line == row:
                found, waiting = answered(waiting, {}), next(answers, None)
            outputs.append(found["prediction"])
            scores.append(found["score"])
        if waiting is not None and waiting.line < row:
            raise not_row_by_row(file)
        names = answered(None, dict.fromkeys(batch.schema.names))
        columns = zip(names, (arrow.array(outputs, arrow.string()), arrow.array(scores, arrow.float64())), strict=True)
        whole = arrow.Table.from_batches([batch])
        for name, column in columns:
            whole = whole.append_column(name, column)
        yield whole, sum(output is not None for output in outputs)
    if waiting is not None:
        raise not_row_by_row(file)


def _of_records(arrow: Any, path: Path, records: Iterator[dict[str, Any]]) -> Iterator[tuple[Any, int]]:
    """Records as row groups; the first say which columns there are and of what type."""
    schema: Any = None
    while some := list(islice(records, ROWS)):
        count = sum(record.get("predicted_prediction", record["prediction"]) is not None for record in some)
        try:
            table = arrow.Table.from_pylist(some, schema=schema)
            if schema is None:  # a column without a value so far is of texts
                fields = [
                    arrow.field(f.name, arrow.string()) if arrow.types.is_null(f.type) else f for f in table.schema
                ]
                schema = arrow.schema(fields)
                table = table.cast(schema)
        except (arrow.ArrowException, TypeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0][:200]
            raise DataError(
                f"--out {path}: a row does not have the columns and types of the first rows ({reason}). Use a .jsonl "
                "file instead."
            ) from error
        if new := {name for record in some for name in record} - {*schema.names}:
            raise DataError(
                f"--out {path}: a later row has columns ({', '.join(sorted(new))}) that the first rows do not have. "
                "Use a .jsonl file instead."
            )
        yield table, count
