"""The fork server, and a small run of each task that is there to be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.fault import build_shim, why_no_shim
from tests.faults.fork_server import ForkServer
from tests.faults.small_runs import SmallRun

SmallRuns = Callable[[str], SmallRun]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    if (why := why_no_shim()) is not None:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("faults")
    with ForkServer(build_shim(folder), folder / "server") as server:
        yield server


@pytest.fixture(scope="session")
def small_runs(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> SmallRuns:
    """The run of a task, whose unbroken one is trained when it is first asked for."""
    made: dict[str, SmallRun] = {}

    def of(task: str) -> SmallRun:
        if task not in made:
            folder: Path = tmp_path_factory.mktemp(task)
            small = SmallRun(task, folder, server)
            small.prepare()
            made[task] = small
        return made[task]

    return of
