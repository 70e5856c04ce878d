"""Data frames and rows in memory, as files: pandas, polars and Arrow by narwhals, lists and other iterables of dicts.

Whatever reads data here reads it several times, and a run that is resumed reads it once more. So the rows are written
once, as JSON lines, to a file that is named after what it holds.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from recurra.errors import ConfigError, DataError, RecurraError
from recurra.frozen import NamedTuple


class Frame(Protocol):
    """A data frame of some library: it has columns."""

    @property
    def columns(self) -> Any: ...


Rows: TypeAlias = Frame | Iterable[Mapping[str, object]]
"""A data frame, or rows as dicts."""

MISSING = ("NAType", "NaTType")
"""What pandas has where a value is missing, beside None and NaN."""


LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries whose data frames answers can be, the usual one first."""


class Like(NamedTuple):
    """Which library a data frame is of, and how its rows are called where the library knows names of rows (pandas)."""

    library: str
    index: Any = None


def is_frame(given: object) -> TypeGuard[Frame]:
    """Whether this is a data frame.

    >>> is_frame([{"text": "tea"}]), is_frame("train.tsv")
    (False, False)
    """
    return not isinstance(given, str | os.PathLike | Mapping | list | tuple) and hasattr(type(given), "columns")


def is_rows(given: object) -> TypeGuard[Rows]:
    """Whether this is a data frame, a list of dicts or another iterable, and no path or list of paths.

    >>> is_rows([{"text": "tea"}]), is_rows(iter(())), is_rows(["a.tsv", "b.tsv"]), is_rows("a.tsv"), is_rows(())
    (True, True, False, False, False)
    """
    if isinstance(given, list | tuple):
        return any(isinstance(each, Mapping) for each in given[:1])
    return is_frame(given) or (isinstance(given, Iterable) and not isinstance(given, str | os.PathLike | Mapping))


def like(given: object) -> Like | None:
    """Of what kind a data frame, or a column of one, is; None: it is neither."""
    library = type(given).__module__.partition(".")[0]
    if library not in LIBRARIES:
        return None
    return Like(library, getattr(given, "index", None) if library == "pandas" else None)


def rows(given: Rows, name: str) -> Iterator[dict[str, object]]:
    """Each row as JSON has it; `name` is what the data are called in an error.

    Times among the names of pandas' rows are columns too.

    >>> import datetime
    >>> next(rows([{"day": datetime.date(2026, 5, 1), "sold": np.int64(3), "price": float("nan")}], "train="))
    {'day': '2026-05-01', 'sold': 3, 'price': None}
    """
    table: Iterable[Mapping[Any, object]] = _rows_of_frame(given, name) if is_frame(given) else given  # type: ignore[assignment]
    for number, row in enumerate(table, 1):
        if not isinstance(row, Mapping):
            raise DataError(
                f"{name}, row {number}: found {row!r:.60}, but each row must be a dict such as "
                '{"text": "…", "label": "…"}. Give a data frame, dicts, or the path of a file.'
            )
        yield {str(key): _plain(value, f"{name}, row {number}: the value of '{key}'") for key, value in row.items()}


def _rows_of_frame(given: Frame, name: str) -> Iterator[dict[str, object]]:
    narwhals = _narwhals(name)
    named = getattr(given, "index", None)
    if named is not None and any("datetime" in str(kind) or "period" in str(kind) for kind in _kinds(named)):
        if None in named.names:
            raise DataError(
                f"{name}: the rows are named by times, but these names have none themselves. Give them one, which is "
                'then a column: frame.rename_axis("time").'
            )
        given = given.reset_index()  # type: ignore[attr-defined]  # of pandas
    try:
        frame = narwhals.from_native(given)
        frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
        found: Iterator[dict[str, object]] = frame.iter_rows(named=True)
    except (TypeError, ValueError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"{name}: a {type(given).__name__} cannot be read as a table ({reason:.200}). Give a data frame of pandas, "
            "polars or Arrow, or a list of dicts."
        ) from error
    return found


def _kinds(index: Any) -> Sequence[object]:
    """The types of the names of rows, of each level."""
    return list(index.dtypes) if hasattr(index, "dtypes") else [index.dtype]


def _narwhals(name: str) -> ModuleType:
    try:
        import narwhals
    except ImportError as error:
        raise DataError(
            f"{name}: a data frame needs the narwhals package: pip install 'recurra[frames]'. A list of dicts does not."
        ) from error
    return narwhals


def _plain(value: object, what: str) -> object:
    """A value as JSON has it; None where it is missing."""
    if value is None or isinstance(value, bool | int | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), what)
    if isinstance(value, list | tuple):
        return [_plain(part, what) for part in value]
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, datetime.date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if (found := _decimal(value)) is not None:
        return found
    if type(value).__name__ == "Period":  # of pandas: the time at which it begins
        return _plain(value.start_time, what)  # type: ignore[attr-defined]
    raise DataError(
        f"{what} is a {type(value).__name__}, but only texts, numbers, dates and lists of them can be read. Convert "
        "the column, or leave it out."
    )


def _decimal(value: object) -> float | None:
    """A number of the module `decimal`, which is imported where there is one; None: it is something else."""
    decimal = sys.modules.get("decimal")
    return float(value) if decimal is not None and isinstance(value, decimal.Decimal) else None


def write_rows(given: Rows, folder: Path, name: str) -> Path:
    """The file in this folder that holds these rows, one JSON object a line; its name says what it holds."""
    import tempfile

    digest = hashlib.sha256()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(suffix=".unfinished", dir=folder)
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                number = 0
                for number, row in enumerate(rows(given, name), 1):
                    if not row:
                        raise DataError(f"{name}, row {number} has no columns. Leave it out.")
                    try:
                        line = json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"
                    except ValueError:
                        raise DataError(
                            f"{name}, row {number} holds an infinite number. Correct it, or leave it missing."
                        ) from None
                    file.write(line)
                    digest.update(line.encode())
            if not number:
                raise DataError(f"{name} has no rows.")
            path = folder / f"{digest.hexdigest()[:24]}.jsonl"
            os.replace(unfinished, path)
        finally:
            Path(unfinished).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{name} cannot be written to {folder}: {error.strerror}. Set RECURRA_CACHE.") from error
    return path


@contextlib.contextmanager
def named_as(names: Mapping[str, str]) -> Iterator[None]:
    """Errors about files that hold rows are told with what these are called, such as "train=, row 3: …"."""
    try:
        yield
    except RecurraError as error:
        if error.args and isinstance(error.args[0], str) and any(path in error.args[0] for path in names):
            error.args = (_renamed(error.args[0], names), *error.args[1:])
        raise


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for path, name in names.items():
        head, *others = text.split(path)
        for other in others:
            place, is_line, rest = other.partition(":")
            number = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            if not place and is_line and number:
                head += f"{name}, row {number}{rest[len(number) :]}"
            else:
                head += name + other
        text = head
    return text


@contextlib.contextmanager
def as_files(given: object, name: str) -> Iterator[list[str | Path]]:
    """The files that are meant: those that were named, or, while this lasts, one that holds the rows that were given.

    >>> with as_files([{"text": "tea"}], "evaluate") as [file]:
    ...     print(Path(file).read_text(), end="")
    {"text": "tea"}
    """
    if not is_rows(given):
        yield [given] if isinstance(given, str | os.PathLike) else list(given)  # type: ignore[list-item, call-overload]
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="recurra-") as folder:
        path = write_rows(given, Path(folder), name)
        with named_as({str(path): name}):
            yield [path]


def first_row(given: Rows) -> tuple[object, Rows]:
    """The first of some rows, and the same rows, for an iterator has each only once; None where there is none."""
    if not is_frame(given) and like(given) is not None:  # one column of a frame
        given = given.to_pylist() if hasattr(given, "to_pylist") else given.to_list()  # type: ignore[union-attr]
    if is_frame(given) or isinstance(given, Sequence):
        return (given[0] if isinstance(given, Sequence) and len(given) else None), given
    stream = iter(given)  # type: ignore[arg-type]  # it has been asked whether it is a frame
    first = next(stream, None)
    return first, chain([] if first is None else [first], stream)


def like_named(library: str | None) -> Like | None:
    """Which library a frame is to be of, by its name; None leaves it open.

    >>> like_named("polars")
    Like(library='polars', index=None)
    """
    if library is not None and library not in LIBRARIES:
        raise ConfigError(f"to_frame('{library}') is not known: the libraries are {', '.join(LIBRARIES)}.")
    return None if library is None else Like(library)


def made_frame(columns: Mapping[str, Sequence[object]], of: Like | None, what: str) -> Any:
    """A data frame with these columns: of the same library, or of the first that is installed."""
    narwhals = _narwhals(what)
    for library in [of.library] if of is not None else LIBRARIES:
        try:
            frame = narwhals.from_dict(dict(columns), backend=library).to_native()
        except (ImportError, ModuleNotFoundError):
            continue
        index = None if of is None else of.index
        if index is not None and len(index) == len(frame):
            frame.index = index
        return frame
    raise DataError(
        f"{what}: no library for data frames is installed: pip install pandas (or polars, or pyarrow), or give its "
        "name."
    )
