"""Where recurra keeps what it can make again: compiled row passes, encoded examples."""

from __future__ import annotations

import os
from pathlib import Path

from recurra.errors import ConfigError


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
