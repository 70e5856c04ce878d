"""NPZ: NumPy's archive of arrays, one row for each place along their first axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from recurra.data.files import PathLike, opened
from recurra.data.formats import values
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

LENGTHS = "_lengths"
"""An array NAME_lengths says how many steps each row has in NAME, where all rows stand one after the other."""

LARGEST_SURE, MOST_SHRINKING = 1 << 28, 200
"""An array of more bytes than the first is read only where compression has not made it smaller than by the second."""


class NPZ(Reader):
    """One row a place along the first axis of every array; a row's line is its number.

        label    (N,)                       a number or a text
        pulse    (N, T)                     a list of numbers
        frames   (N, T, d)                  a list of frames
        frames   (ΣT, d), frames_lengths (N,)   rows of different length: the first has frames_lengths[0] steps, …

    columns names the arrays that are wanted: a list, or a table of name = "array". Arrays of Python objects are
    refused, for reading them would run what the file says.
    """

    extensions = ("npz",)

    def __init__(self, *, columns: Mapping[str, str] | Sequence[str] | None = None) -> None:
        self.columns = values.wanted(columns)

    def read(self, path: PathLike) -> Iterator[Row]:
        if str(path).lower().endswith((".gz", ".zst")):
            raise DataError(f"'{path}' is compressed, but .npz files are compressed already. Unpack it first.")
        with opened(path) as file:
            found, sure = dict[str, Sequence[NDArray[Any]]](), set[str]()
            for name, array, lengths in self._arrays(path, file):
                found[name] = _cut(path, name, array, lengths)
                if array.dtype.kind in "iuf" and array.ndim <= values.DEEPEST and np.isfinite(array).all():
                    sure.add(name)  # looked at once, for all rows
        first = next(iter(found))
        count = len(found[first])
        for name, rows in found.items():
            if len(rows) != count:
                raise DataError(
                    f"{path}: '{name}' has {len(rows):,} rows, but '{first}' {count:,}: every array needs one row "
                    f"per example. If the rows of '{name}' differ in length, add '{name}{LENGTHS}'; if it is not "
                    "wanted, name the others with data.columns."
                )
        for number in range(count):
            place = f"{path}: row {number + 1}"
            each = {name: rows[number].tolist() for name, rows in found.items()}
            yield Row(
                {name: raw if name in sure else values.value(raw, name, place) for name, raw in each.items()},
                number + 1,
            )

    def _arrays(self, path: PathLike, file: BinaryIO) -> Iterator[tuple[str, NDArray[Any], NDArray[np.int64] | None]]:
        """The name that a row gives an array, the array, and its lengths where there are some."""
        name = ""
        try:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                raise DataError(f"{path}: this is one array, not an archive. Write it with numpy.savez.")
            with loaded as archive:
                names = [name for name in archive.files if not _is_lengths(name, archive.files)]
                roles = self.columns or {name: name for name in names}
                if not roles:
                    raise DataError(f"{path}: this archive contains no arrays.")
                for role, name in roles.items():  # named in the error
                    if name not in names:
                        raise values.missing(str(path), name, names)
                    _refuse_bomb(path, archive, name)
                    lengths = archive[name + LENGTHS] if name + LENGTHS in archive.files else None
                    yield role, archive[name], lengths
        except DataError:
            raise
        except Exception as error:  # a broken archive may fail in any way
            is_of_objects = "allow_pickle" in str(error)
            if is_of_objects and name:
                raise DataError(
                    f"{path}: the array '{name}' holds Python objects, which are not read because loading them "
                    "could run code from the file. For rows of different lengths, concatenate them into one array "
                    f"and save their lengths as '{name}{LENGTHS}'."
                ) from error
            why = "it does not begin like one" if is_of_objects else error
            raise DataError(f"{path}: this is not an .npz archive, or it is corrupt ({why}).") from error


def _refuse_bomb(path: PathLike, archive: np.lib.npyio.NpzFile, name: str) -> None:
    """Arrays shrink to a hundredth where they are nearly all zeros; what shrinks more was made to fill the memory."""
    for info in archive.zip.infolist() if archive.zip is not None else ():
        is_wanted = info.filename.removesuffix(".npy") in (name, name + LENGTHS)
        if is_wanted and info.file_size > max(LARGEST_SURE, MOST_SHRINKING * info.compress_size):
            raise DataError(
                f"{path}: '{name}' would unpack from {info.compress_size:,} to {info.file_size:,} bytes, so it is not "
                f"read: such archives are made to fill the memory. If it is your own, save it with numpy.savez."
            )


def _is_lengths(name: str, files: Sequence[str]) -> bool:
    return name.endswith(LENGTHS) and name.removesuffix(LENGTHS) in files


def _cut(path: PathLike, name: str, array: NDArray[Any], lengths: NDArray[Any] | None) -> Sequence[NDArray[Any]]:
    """The array's rows, each of which a row of values can hold."""
    if array.dtype.kind not in "biufU":
        raise DataError(
            f"{path}: the array '{name}' is of type {array.dtype}, which cannot be read; supported are numbers, "
            "booleans and texts. Convert it, or list only the arrays that you need in data.columns."
        )
    if array.ndim == 0:
        raise DataError(f"{path}: '{name}' is a single value, but must be an array with one row per example.")
    if array.dtype.kind == "b" and (array.ndim > 1 or lengths is not None):
        array = array.astype(np.uint8)  # notes of a roll, not the words true and false
    if lengths is None:
        return array  # type: ignore[return-value]  # an array is a sequence of its rows
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise DataError(f"{path}: '{name}{LENGTHS}' must contain one whole number per row: its number of steps.")
    if int(lengths.sum()) != len(array):
        raise DataError(
            f"{path}: '{name}' has {len(array):,} steps, but '{name}{LENGTHS}' adds up to {lengths.sum():,}."
        )
    return np.split(array, np.cumsum(lengths)[:-1]) if len(lengths) else []
