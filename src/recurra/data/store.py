"""Encoded examples on disk: for every field one flat array, and where each row of it begins.

A store is written once, in one pass, and then read through memory maps, so that a corpus larger than memory trains in a
flat amount of it. A finished store is a folder; an unfinished one has another name and is never opened.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

Encoded: TypeAlias = Mapping[str, NDArray[Any]]
"""One example as arrays: (T,) or (T, n) for each field; a field's type and n are the same in all examples."""

TOUCHED_AT_MOST = 64 << 20
"""Bytes read through the maps before their pages are given back; the system keeps them in its own cache."""

TOUCHED_AT_ONCE = 64 << 10
"""Bytes that the system maps around each that is read: sixteen pages on Linux."""


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

    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> store = Store.write(folder, [{"words": np.array([3, 1], "int32")}, {"words": np.array([2], "int32")}])
    >>> len(store), store[1]["words"].tolist(), store.lengths("words").tolist()
    (2, [2], [2, 1])

    The folder holds meta.json, a NAME.values for each field, and offsets.npy: (rows + 1, fields), in steps.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            meta = json.loads((folder / "meta.json").read_text("utf-8"))
            self.rows: int = meta["rows"]
            self.fields = {name: Field(*field) for name, field in meta["fields"].items()}
            self._offsets = np.load(folder / "offsets.npy", mmap_mode="r", allow_pickle=False)
            self._maps = [_mapped(folder / f"{name}.values") for name in self.fields]
            if self._offsets.shape != (self.rows + 1, len(self.fields)) or self._offsets.dtype != np.int64:
                raise ValueError("its offsets are not those of its rows")
            for (name, field), end, pages in zip(self.fields.items(), self._offsets[-1], self._maps, strict=True):
                if np.dtype(field.dtype).hasobject or len(pages) != int(end) * field.step_bytes:
                    raise ValueError(f"{name} is not as long as it should be")
        except Exception as error:  # a broken file may fail in any way
            raise DataError(
                f"the encoded examples in {folder} cannot be used ({error}). Remove that folder."
            ) from error
        self._steps = [(name, field, np.dtype(field.dtype), field.step_bytes) for name, field in self.fields.items()]
        self._touched = 0

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> dict[str, NDArray[Any]]:
        """All fields of one row, copied out of the maps."""
        if self._touched > TOUCHED_AT_MOST:
            self._give_back()
        number = range(self.rows)[row]
        starts, ends = self._offsets[number : number + 2].tolist()
        result: dict[str, NDArray[Any]] = {}
        for (name, field, dtype, size), pages, start, end in zip(self._steps, self._maps, starts, ends, strict=True):
            try:
                here = np.ndarray(field.shape(end - start), dtype, pages, start * size)
            except (ValueError, TypeError) as error:
                raise DataError(f"row {number} in {self.folder} is broken ({error}). Remove that folder.") from error
            result[name] = here.copy()
            self._touched += here.nbytes + TOUCHED_AT_ONCE
        self._touched += TOUCHED_AT_ONCE
        return result

    def lengths(self, field: str) -> NDArray[np.int64]:
        """The length of every row of a field."""
        if not self.rows:  # then nobody has said what fields there are
            return np.zeros(0, np.int64)
        self._touched += self._offsets.nbytes
        return np.diff(self._offsets[:, list(self.fields).index(field)])

    def _give_back(self) -> None:
        self._touched = 0
        for pages in (*self._maps, getattr(self._offsets, "_mmap", None)):
            if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)

    @classmethod
    def write(cls, folder: Path, examples: Iterable[Encoded]) -> Store:
        """Write a store in one pass; it takes its name only when it is whole."""
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".unfinished", dir=folder.parent))
            try:
                _write(unfinished, examples)
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


def _write(folder: Path, examples: Iterable[Encoded]) -> None:
    fields: dict[str, Field] = {}
    files: dict[str, BinaryIO] = {}
    ends: dict[str, int] = {}
    offsets = array("q")  # 8 bytes a number, where a list would take 36
    rows = 0
    with ExitStack() as closing:
        for rows, example in enumerate(examples, 1):
            if rows == 1:
                fields = {name: Field.of(values) for name, values in example.items()}
                files = {name: closing.enter_context(open(folder / f"{name}.values", "wb")) for name in fields}
                ends = dict.fromkeys(fields, 0)
                offsets.extend(ends.values())
            assert example.keys() == fields.keys(), "every example has the same fields"
            for name, field in fields.items():
                values = example[name]
                assert Field.of(values) == field, f"{name}: {Field.of(values)} after {field}"
                files[name].write(values.tobytes())
                ends[name] += len(values)
            offsets.extend(ends.values())
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    np.save(folder / "offsets.npy", np.asarray(offsets, np.int64).reshape(rows + 1, len(fields)))
    meta = {"rows": rows, "fields": {name: list(field) for name, field in fields.items()}}
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")


def _mapped(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""  # there is nothing to map
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_RANDOM"):
        pages.madvise(mmap.MADV_RANDOM)
    return pages


@final
class Rows:
    """A few encoded examples in memory, with the face of a store."""

    def __init__(self, examples: Iterable[Encoded]) -> None:
        self._examples = list(examples)

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, row: int) -> Encoded:
        return self._examples[row]

    def lengths(self, field: str) -> NDArray[np.int64]:
        return np.array([len(example[field]) for example in self._examples], np.int64)
