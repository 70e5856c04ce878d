"""Where recurra keeps what it can make again: compiled row passes, encoded examples."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$RECURRA_CACHE, or recurra in the user's cache folder."""
    given = os.environ.get("RECURRA_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recurra"
