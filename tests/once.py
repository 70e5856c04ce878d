"""What takes long to make is made once, whichever worker of the tests comes first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name that all workers share, which `make` has filled."""
    base = factory.getbasetemp()
    here = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    here.mkdir(parents=True, exist_ok=True)
    with (here / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (here / "made").exists():
            make(here)
            (here / "made").touch()
    return here
