"""The runs that a command or a function names: one, or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from recurra.errors import CheckpointError


def folders(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The run folders that are meant: one, a list of them, or several with commas between.

    >>> [str(path) for path in folders("runs/a,runs/b")]
    ['runs/a', 'runs/b']
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        found = [Path(each) for each in given]
    elif isinstance(given, str) and "," in given and not Path(given).exists():
        found = [Path(each.strip()) for each in given.split(",") if each.strip()]
    else:
        found = [Path(given)]
    if not found:
        raise CheckpointError("there is no run to load: name a folder created by `recurra train --out`.")
    return found
