"""Where recurra keeps what it can make again: compiled row passes, encoded examples."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from recurra.errors import ConfigError

UNUSED_DAYS = 30
UNFINISHED_DAYS = 2
"""After so long without use, what is in the cache is removed."""


def cache_folder() -> Path:
    """$RECURRA_CACHE, or recurra in the user's cache folder."""
    if given := os.environ.get("RECURRA_CACHE"):
        return Path(given)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "recurra"
    try:
        return Path.home() / ".cache" / "recurra"
    except RuntimeError as error:
        raise ConfigError(
            "no cache folder: the home folder is not known. Set the environment variable RECURRA_CACHE to a folder."
        ) from error


def private_folder() -> Path:
    """A folder for this process alone, which is removed when it ends."""
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="recurra-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def tidy(folder: Path) -> None:
    """Remove what was not used for a month, and what was never finished."""
    for entry in folder.iterdir():
        with suppress(OSError):  # another process tidies too
            days = (time.time() - entry.stat().st_mtime) / 86_400
            if days > (UNFINISHED_DAYS if entry.name.endswith(".unfinished") else UNUSED_DAYS):
                remove(entry)


def remove(entry: Path) -> None:
    """Remove a file or a folder of the cache."""
    if entry.is_dir():
        import shutil

        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)
