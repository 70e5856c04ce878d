"""A tiny run of every task."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.runtime.hosted import Hosted, hosted
from tests.once import made_once
from tests.runtime.tiny_runs import train


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where they are, by the names of tiny_runs.ASKED."""
    return made_once(tmp_path_factory, "tiny-runs", train) / "runs"


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Hosted]:
    """They, ready to answer."""
    return hosted([str(folder)])
