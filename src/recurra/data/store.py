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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

Encoded: TypeAlias = Mapping[str, NDArray[Any]]
"""One example as arrays: (T,) or (T, n) for each field; a field's type and n are the same in all examples."""

TOUCHED_AT_MOST = 64 << 20
"""Bytes read through the maps before their pages are given back; the system keeps them in its own cache."""


class Field(NamedTuple):
    """What one field of a store looks like."""

    dtype: str
    width: int | None  # n of (T, n); None for (T,)


class Store:
    """Encoded examples in a folder, read one at a time.

    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> store = Store.write(folder, [{"words": np.array([3, 1], "int32")}, {"words": np.array([2], "int32")}])
    >>> len(store), store[1]["words"].tolist(), store.lengths("words").tolist()
    (2, [2], [2, 1])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            meta = json.loads((folder / "meta.json").read_text("utf-8"))
            self.rows: int = meta["rows"]
            self.fields = {name: Field(*field) for name, field in meta["fields"].items()}
            self._offsets = {name: np.load(folder / f"{name}.offsets.npy", mmap_mode="r") for name in self.fields}
            self._maps = {name: _mapped(folder / f"{name}.values") for name in self.fields}
            for name, field in self.fields.items():
                wanted = int(self._offsets[name][-1]) * np.dtype(field.dtype).itemsize * (field.width or 1)
                if len(self._offsets[name]) != self.rows + 1 or os.stat(folder / f"{name}.values").st_size != wanted:
                    raise ValueError(f"{name} is not as long as it should be")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the encoded examples in {folder} cannot be used ({error}). Remove that folder."
            ) from error
        self._touched = 0

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> dict[str, NDArray[Any]]:
        """All fields of one row, copied out of the maps."""
        if self._touched > TOUCHED_AT_MOST:
            self._give_back()
        result = {}
        for name, (dtype, width) in self.fields.items():
            start, end = self._offsets[name][row : row + 2].tolist()
            items = width or 1
            size = np.dtype(dtype).itemsize * items
            flat = np.frombuffer(self._maps[name], dtype, (end - start) * items, start * size) if end > start else None
            values = np.empty(0, dtype) if flat is None else flat.copy()
            result[name] = values if width is None else values.reshape(-1, width)
            # A page is the least that is read, however short the row.
            self._touched += (end - start) * size + 2 * mmap.PAGESIZE
        return result

    def lengths(self, field: str) -> NDArray[np.int64]:
        """The length of every row of a field."""
        return np.diff(self._offsets[field])

    def _give_back(self) -> None:
        self._touched = 0
        for name, pages in self._maps.items():
            for one in (pages, getattr(self._offsets[name], "_mmap", None)):
                if isinstance(one, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                    one.madvise(mmap.MADV_DONTNEED)

    @classmethod
    def write(cls, folder: Path, examples: Iterable[Encoded]) -> Store:
        """Write a store in one pass; it takes its name only when it is whole."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".unfinished", dir=folder.parent))
        try:
            _write(unfinished, examples)
            try:
                os.rename(unfinished, folder)
            except OSError:
                if not (folder / "meta.json").exists():  # another process was quicker, with the same
                    raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return cls(folder)


def _write(folder: Path, examples: Iterable[Encoded]) -> None:
    fields: dict[str, Field] = {}
    files: dict[str, Any] = {}
    offsets: dict[str, _Numbers] = {}
    rows = 0
    try:
        for rows, example in enumerate(examples, 1):
            if rows == 1:
                for name, values in example.items():
                    fields[name] = Field(values.dtype.str, values.shape[1] if values.ndim == 2 else None)
                    files[name] = open(folder / f"{name}.values", "wb")  # noqa: SIM115  # closed below
                    offsets[name] = _Numbers()
                    offsets[name].append(0)
            assert example.keys() == fields.keys(), "every example has the same fields"
            for name, values in example.items():
                field = Field(values.dtype.str, values.shape[1] if values.ndim == 2 else None)
                assert field == fields[name], f"{name}: {field} after {fields[name]}"
                files[name].write(values.tobytes())
                offsets[name].append(offsets[name].last + len(values))
    finally:
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
    for name, numbers in offsets.items():
        np.save(folder / f"{name}.offsets.npy", numbers.array())
    meta = {"rows": rows, "fields": {name: list(field) for name, field in fields.items()}}
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")


class _Numbers:
    """A growing array of whole numbers: 8 bytes each, where a list would take 36."""

    def __init__(self) -> None:
        self._values = np.empty(1024, np.int64)
        self._count = 0
        self.last = 0

    def append(self, value: int) -> None:
        if self._count == len(self._values):
            self._values = np.resize(self._values, 2 * self._count)
        self._values[self._count] = self.last = value
        self._count += 1

    def array(self) -> NDArray[np.int64]:
        return self._values[: self._count]


def _mapped(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_RANDOM"):
        pages.madvise(mmap.MADV_RANDOM)
    return pages


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
