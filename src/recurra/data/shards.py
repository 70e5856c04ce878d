"""Data in several files of one folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from recurra.data.files import extension
from recurra.data.formats import endings
from recurra.errors import DataError


def shards(folder: Path) -> list[Path]:
    """The data files of a folder, in the order of their names."""
    known = {*endings(), "txt", "text"}
    found = sorted(path for path in folder.iterdir() if path.is_file() and extension(path) in known)
    if not found:
        raise DataError(f"the folder {folder} contains no data files (names that end in .{', .'.join(sorted(known))}).")
    return found


def with_shards(paths: Iterable[str | os.PathLike[str]]) -> list[str | Path]:
    """Paths in which a folder is replaced by the data files in it."""
    found: list[str | Path] = []
    for path in paths:
        is_folder = isinstance(path, str | os.PathLike) and os.path.isdir(path)
        found += shards(Path(path)) if is_folder else [path]  # type: ignore[list-item]
    return found
