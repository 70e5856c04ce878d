"""Encoded examples on disk: for every field one flat array, and where each row of it begins.

A store is written once, in one pass, and then read row by row, so that a corpus larger than memory trains in a flat
amount of it. A finished store is a folder; an unfinished one has another name and is never opened.

Rows are read, not mapped: a system may map a megabyte for a row of a hundred bytes, and reading takes half the time.
A store of moderate size is held in memory once rows are taken from it.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.frozen import NamedTuple

Encoded: TypeAlias = Mapping[str, NDArray[Any]]
"""One example as arrays: (T,) or (T, n) for each field; a field's type and n are the same in all examples."""

OFFSETS = "offsets"
ROWS_AT_ONCE = 1 << 16
"""So many rows' offsets are in memory together when all are asked for."""

HELD = 64 << 20
"""A store of so many bytes at most is held in memory."""


class Field(NamedTuple):
    """What one field of a store looks like."""

    dtype: str
    width: int | None  # n of (T, n); None for (T,)

    @classmethod
    def of(cls, values: NDArray[Any]) -> Field:
        assert values.ndim in (1, 2), f"a field has the shape (T,) or (T, n), not {values.shape}"
        return cls(values.dtype.str, values.shape[1] if values.ndim == 2 else None)

    @property
    def step_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    def shape(self, length: int) -> tuple[int, ...]:
        return (length,) if self.width is None else (length, self.width)


@final
class Store:
    """Encoded examples in a folder, read one at a time.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> store = Store.write(folder, [{"words": np.array([3, 1], "int32")}, {"words": np.array([2], "int32")}])
    >>> len(store), store[1]["words"].tolist(), store.lengths("words").tolist()
    (2, [2], [2, 1])

    The folder holds meta.json, a NAME.values for each field, and offsets: (rows + 1, fields) int64, in steps.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            meta = json.loads((folder / "meta.json").read_text("utf-8"))
            self.rows: int = meta["rows"]
            self.fields = {name: Field(*field) for name, field in meta["fields"].items()}
            self._steps = [
                (name, field, np.dtype(field.dtype), field.step_bytes) for name, field in self.fields.items()
            ]
            self._columns = {name: number for number, name in enumerate(self.fields)}
            self._files: list[int] = []
            weakref.finalize(self, _close, self._files)
            sizes = []
            for path in (
                folder / OFFSETS,
                *(folder / f"{name}.values" for name in self.fields),
            ):
                self._files.append(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)))
                sizes.append(os.fstat(self._files[-1]).st_size)
            self.bytes = sum(sizes)
            self._held: _Held | None = None
            if sizes[0] != (self.rows + 1) * 8 * len(self.fields):
                raise ValueError("the offsets do not match the rows")
            self._ends: list[int] = self._offsets(self.rows, self.rows + 1)[0].tolist()
            for (name, _, dtype, step), end, size in zip(self._steps, self._ends, sizes[1:], strict=True):
                if dtype.hasobject or size != end * step:
                    raise ValueError(f"{name} has the wrong size")
        except Exception as error:  # a broken file may fail in any way
            raise DataError(
                f"the encoded examples in {folder} cannot be used ({error}). Remove that folder."
            ) from error

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> dict[str, NDArray[Any]]:
        """All fields of one row."""
        number = range(self.rows)[row]
        starts, ends = self._offsets(number, number + 2).tolist()
        result: dict[str, NDArray[Any]] = {}
        places = zip(self._steps, self._files[1:], starts, ends, self._ends, strict=True)
        for (name, field, dtype, size), file, start, end, last in places:
            try:
                if not 0 <= start <= end <= last:
                    raise ValueError(f"{name} has the range {start} to {end}, but only {last} entries")
                content = _read(file, (end - start) * size, start * size)
                result[name] = np.ndarray(field.shape(end - start), dtype, content).copy()
            except (ValueError, OSError) as error:
                raise DataError(f"row {number} in {self.folder} is broken ({error}). Remove that folder.") from error
        return result

    def take(self, numbers: NDArray[np.int64]) -> Rows:
        """Some rows, in this order; those of a store that is held in memory cost next to nothing.

        >>> import tempfile
        >>> store = Store.write(Path(tempfile.mkdtemp()) / "store", [{"ids": np.arange(n)} for n in range(4)])
        >>> store.take(np.array([3, 1])).flat("ids")
        Flat(values=array([0, 1, 2, 0]), lengths=array([3, 1]))
        """
        held = self._in_memory()
        return Rows(self[int(number)] for number in numbers) if held is None else Rows(_Some(held, numbers))

    def _in_memory(self) -> _Held | None:
        """All that is held in memory; None: the store is too large for that."""
        if self._held is None and self.bytes <= HELD and self.rows:
            offsets = self._offsets(0, self.rows + 1)
            for name, starts in zip(self.fields, offsets.T, strict=True):
                if starts[0] != 0 or np.any(np.diff(starts) < 0):
                    raise DataError(f"rows of {name} in {self.folder} are broken. Remove that folder.")
            whole = [self.span(name, 0, end) for name, end in zip(self.fields, self._ends, strict=True)]
            self._held = _Held({name: (v, o) for name, v, o in zip(self.fields, whole, offsets.T.copy(), strict=True)})
        return self._held

    def lengths(self, field: str) -> NDArray[np.int64]:
        """The length of every row of a field."""
        found = np.zeros(self.rows, np.int64)
        if not self.rows:  # then nobody has said what fields there are
            return found
        if self._held is not None:
            return np.diff(self._held.fields[field][1])
        column = self._columns[field]
        for first in range(0, self.rows, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, self.rows)
            found[first:last] = np.diff(self._offsets(first, last + 1)[:, column])
        return found

    def size(self, field: str) -> int:
        """The length of a field over all rows."""
        return self._ends[self._columns[field]] if self.rows else 0

    def span(self, field: str, start: int, end: int) -> NDArray[Any]:
        """Steps `start` up to `end` of a field as if all rows were one: a running text goes on over its lines.

        >>> import tempfile
        >>> store = Store.write(Path(tempfile.mkdtemp()) / "store", [{"ids": np.arange(3)}, {"ids": np.arange(3, 5)}])
        >>> store.size("ids"), store.span("ids", 1, 4).tolist()
        (5, [1, 2, 3])
        """
        assert 0 <= start <= end, f"from {start} to {end}"
        column = self._columns[field]
        _, found, dtype, size = self._steps[column]
        try:
            content = _read(self._files[1 + column], (end - start) * size, start * size)
        except (ValueError, OSError) as error:
            raise DataError(f"{field} in {self.folder} is broken ({error}). Remove that folder.") from error
        return np.ndarray(found.shape(end - start), dtype, content)

    def spans(self, field: str, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Flat:
        """Several parts of a field, each as `span` gives it.

        >>> import tempfile
        >>> store = Store.write(Path(tempfile.mkdtemp()) / "store", [{"ids": np.arange(3)}, {"ids": np.arange(3, 5)}])
        >>> store.spans("ids", np.array([3, 0]), np.array([5, 1]))
        Flat(values=array([3, 4, 0]), lengths=array([2, 1]))
        """
        if (held := self._in_memory()) is not None:
            return _parts(held.fields[field][0], starts, ends - starts)
        parts = [self.span(field, start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        return Flat(np.concatenate(parts), ends - starts)

    def _offsets(self, first: int, last: int) -> NDArray[np.int64]:
        """Where rows `first` up to `last` begin in each field."""
        size = 8 * len(self.fields)
        content = _read(self._files[0], (last - first) * size, first * size)
        return np.frombuffer(content, np.int64).reshape(last - first, len(self.fields))

    @classmethod
    def write(cls, folder: Path, examples: Iterable[Encoded]) -> Store:
        """Write a store in one pass; it takes its name only when it is whole."""
        import shutil
        import tempfile

        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".unfinished", dir=folder.parent))
            try:
                with Writer(unfinished) as writer:
                    for block in blocks(examples):
                        writer.add(block)
                    writer.finish()
                try:
                    os.rename(unfinished, folder)
                except OSError:
                    if not (folder / "meta.json").exists():  # else another process was quicker, with the same
                        raise
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        except OSError as error:
            why = error.strerror or error
            raise DataError(f"the encoded examples cannot be written to {folder}: {why}.") from error
        return cls(folder)


WRITTEN_AT_ONCE = 1 << 10
"""Rows that are gathered before they are written: one call for all of them."""


class Block(NamedTuple):
    """Some rows as they are written: of each field what it looks like, all values, and the length of each row."""

    rows: int
    fields: dict[str, Field]
    columns: dict[str, Flat]

    @classmethod
    def of(cls, examples: Sequence[Encoded]) -> Block:
        """Encoded examples, one or more.

        >>> Block.of([{"ids": np.array([4, 5])}, {"ids": np.array([6])}]).columns["ids"]
        Flat(values=array([4, 5, 6]), lengths=array([2, 1]))
        """
        fields = {name: Field.of(values) for name, values in examples[0].items()}
        assert all(example.keys() == fields.keys() for example in examples), "every example has the same fields"
        columns: dict[str, Flat] = {}
        for name, field in fields.items():
            parts = [example[name] for example in examples]
            dtype, shape = np.dtype(field.dtype), field.shape(0)[1:]
            for values in parts:
                assert (values.dtype, values.shape[1:]) == (dtype, shape), f"{name}: {Field.of(values)}, {field}"
            columns[name] = Flat(np.concatenate(parts, dtype=dtype), np.array([*map(len, parts)], np.int64))
        return cls(len(examples), fields, columns)


def blocks(examples: Iterable[Encoded]) -> Iterator[Block]:
    """Encoded examples in blocks."""
    rest = iter(examples)
    while some := list(islice(rest, WRITTEN_AT_ONCE)):
        yield Block.of(some)


class Written(NamedTuple):
    """How much of a store is written: its rows, its fields, and where each of them ends."""

    rows: int = 0
    fields: Mapping[str, Field] = MappingProxyType({})
    ends: Sequence[int] = ()

    def to_json(self) -> dict[str, Any]:
        fields = {name: list(field) for name, field in self.fields.items()}
        return {"rows": self.rows, "fields": fields, "ends": list(self.ends)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Written:
        return cls(found["rows"], {name: Field(*field) for name, field in found["fields"].items()}, found["ends"])


@final
class Writer:
    """Writes the files of a store block by block; `finish` writes what says that it is whole.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Writer(folder) as writer:
    ...     writer.add(Block.of([{"ids": np.array([4, 5])}]))
    ...     so_far = writer.written
    ...     writer.add(Block.of([{"ids": np.array([7])}]))
    >>> with Writer(folder, so_far) as writer:  # goes on from there
    ...     writer.add(Block.of([{"ids": np.array([6])}]))
    ...     writer.finish()
    >>> [row["ids"].tolist() for row in Store(folder)]
    [[4, 5], [6]]
    """

    def __init__(self, folder: Path, written: Written = Written()) -> None:  # noqa: B008  # it never changes
        self.folder = folder
        self.written = written
        self._closing = ExitStack()
        self._files: dict[str, BinaryIO] = {}
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._offsets = self._open(OFFSETS, (written.rows + 1) * 8 * len(written.fields))
            for (name, field), end in zip(written.fields.items(), written.ends, strict=True):
                self._files[name] = self._open(f"{name}.values", end * field.step_bytes)
        except BaseException:
            self._closing.close()
            raise

    def _open(self, name: str, size: int) -> BinaryIO:
        """A file of which so many bytes are kept."""
        path = self.folder / name
        file = open(path, "r+b" if size else "wb")  # noqa: SIM115  # closed with the writer
        self._closing.callback(file.close)
        if size:
            if os.fstat(file.fileno()).st_size < size:
                raise OSError(0, f"{path} is shorter than it was")
            file.truncate(size)
            file.seek(size)
        return file

    def add(self, block: Block) -> None:
        """Write some rows more."""
        rows, fields, ends = self.written
        if not rows:
            fields, ends = block.fields, [0] * len(block.fields)
            self._files = {name: self._open(f"{name}.values", 0) for name in fields}
            self._offsets.write(np.zeros((1, len(fields)), np.int64).tobytes())
        assert block.fields == fields, f"every example has the same fields: {block.fields}, {fields}"
        lengths = np.zeros((block.rows, len(fields)), np.int64)
        for column, name in enumerate(fields):
            lengths[:, column] = block.columns[name].lengths
        for name, file in self._files.items():
            file.write(block.columns[name].values.tobytes())
        until = np.array(ends, np.int64) + lengths.cumsum(0)
        self._offsets.write(until.tobytes())
        self.written = Written(rows + block.rows, fields, until[-1].tolist())

    def sync(self) -> None:
        """Bring all that is written to the disk."""
        for file in (self._offsets, *self._files.values()):
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Say that the store is whole."""
        self.sync()
        meta = self.written.to_json()
        del meta["ends"]
        (self.folder / "meta.json").write_text(json.dumps(meta), "utf-8")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()


def _read(file: int, size: int, start: int) -> bytes:
    """So many bytes from there on; a ValueError where there are fewer."""
    if hasattr(os, "pread"):
        content = os.pread(file, size, start)
    else:
        os.lseek(file, start, os.SEEK_SET)
        content = os.read(file, size)
    if len(content) != size:
        raise ValueError(f"{len(content):,} of {size:,} bytes were found")
    return content


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


class Flat(NamedTuple):
    """A field of several rows, one row after the other.

    >>> Flat(np.array([4, 5, 6]), np.array([1, 2])).padded(np.int64, -1).tolist()
    [[4, -1], [5, 6]]
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]

    def padded(self, dtype: type, fill: float = 0) -> NDArray[Any]:
        """(B, T, ...): each row from the left, filled up on the right."""
        rows, longest = len(self.lengths), int(self.lengths.max(initial=0))
        if rows * longest == len(self.values):  # all rows are as long as the longest
            return self.values.astype(dtype).reshape(rows, longest, *self.values.shape[1:])
        whole = np.full((rows, longest, *self.values.shape[1:]), fill, dtype)
        whole[np.arange(longest) < self.lengths[:, None]] = self.values
        return whole


class _Held(NamedTuple):
    """A whole store: of each field all values, and where the rows begin."""

    fields: dict[str, tuple[NDArray[Any], NDArray[np.int64]]]


@final
class _Some(Sequence[Encoded]):
    """Some rows of a store that is held in memory."""

    def __init__(self, held: _Held, numbers: NDArray[np.int64]) -> None:
        self._held = held
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> Encoded: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Encoded]: ...
    def __getitem__(self, row: int | slice) -> Encoded | Sequence[Encoded]:
        if isinstance(row, slice):
            return _Some(self._held, self._numbers[row])
        number = int(self._numbers[row])
        fields = self._held.fields.items()
        return {name: values[starts[number] : starts[number + 1]].copy() for name, (values, starts) in fields}

    @property
    def fields(self) -> Collection[str]:
        return self._held.fields.keys()

    def lengths(self, field: str) -> NDArray[np.int64]:
        _, starts = self._held.fields[field]
        found: NDArray[np.int64] = starts[self._numbers + 1] - starts[self._numbers]
        return found

    def flat(self, field: str) -> Flat:
        values, starts = self._held.fields[field]
        first = starts[self._numbers]
        return _parts(values, first, starts[self._numbers + 1] - first)


def _parts(values: NDArray[Any], first: NDArray[np.int64], lengths: NDArray[np.int64]) -> Flat:
    """Parts of an array, one after the other."""
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] == len(ends) and lengths.min() == 1:
        return Flat(values[first], lengths)
    # Where each value stands in the store: it goes up by one, but for a jump at the start of each row.
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + lengths, lengths)
    return Flat(values[places], lengths)


@final
class Columns(Sequence[Encoded]):
    """Rows of which each field is given for all at once.

    >>> Columns({"ids": Flat(np.array([4, 5, 6]), np.array([1, 2]))})[1]["ids"].tolist()
    [5, 6]
    """

    def __init__(self, fields: Mapping[str, Flat]) -> None:
        self._fields = fields
        self._ends = {name: np.cumsum(each.lengths) for name, each in fields.items()}

    def __len__(self) -> int:
        return len(next(iter(self._fields.values())).lengths)

    @overload
    def __getitem__(self, row: int) -> Encoded: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Encoded]: ...
    def __getitem__(self, row: int | slice) -> Encoded | Sequence[Encoded]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = range(len(self))[row]
        return {
            name: each.values[end - length : end]
            for name, each in self._fields.items()
            for end, length in [(int(self._ends[name][number]), int(each.lengths[number]))]
        }

    @property
    def fields(self) -> Collection[str]:
        return self._fields.keys()

    def lengths(self, field: str) -> NDArray[np.int64]:
        return self._fields[field].lengths

    def flat(self, field: str) -> Flat:
        return self._fields[field]


@final
class Rows(Sequence[Encoded]):
    """Some encoded examples, with the face of a store.

    >>> Rows([{"ids": np.array([4, 5])}, {"ids": np.array([6])}]).flat("ids")
    Flat(values=array([4, 5, 6]), lengths=array([2, 1]))
    """

    def __init__(self, examples: Iterable[Encoded], beside: Mapping[str, Flat] = MappingProxyType({})) -> None:
        held: Iterable[Encoded] = examples._examples if isinstance(examples, Rows) else examples
        self._examples: _Some | Columns | list[Encoded] = held if isinstance(held, _Some | Columns) else list(held)
        self.beside = beside  # what a task takes along for the batch as a whole

    @classmethod
    def of(cls, examples: Sequence[Encoded]) -> Rows:
        """The examples themselves where they are such rows."""
        return examples if isinstance(examples, cls) else cls(examples)

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, row: int) -> Encoded: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Encoded]: ...
    def __getitem__(self, row: int | slice) -> Encoded | Sequence[Encoded]:
        return self._examples[row]

    @property
    def fields(self) -> Collection[str]:
        """What some row has."""
        if isinstance(self._examples, _Some | Columns):
            return self._examples.fields
        return {name for example in self._examples for name in example}

    def has(self, field: str) -> bool:
        """Whether every row has this field."""
        if isinstance(self._examples, _Some | Columns):
            return field in self._examples.fields
        return all(field in example for example in self._examples)

    def lengths(self, field: str) -> NDArray[np.int64]:
        if isinstance(self._examples, _Some | Columns):
            return self._examples.lengths(field)
        return np.array([len(example[field]) for example in self._examples], np.int64)

    def flat(self, field: str) -> Flat:
        """All values of a field, row after row."""
        if isinstance(self._examples, _Some | Columns):
            return self._examples.flat(field)
        parts = [example[field] for example in self._examples]
        # Numbers of another machine's byte order stay as they are.
        return Flat(np.concatenate(parts, dtype=parts[0].dtype if parts else None), self.lengths(field))

    def size(self, field: str) -> int:
        return int(self.lengths(field).sum())

    def span(self, field: str, start: int, end: int) -> NDArray[Any]:
        return self.flat(field).values[start:end]

    def spans(self, field: str, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Flat:
        return _parts(self.flat(field).values, starts, ends - starts)
