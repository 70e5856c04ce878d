"""Several processes that train together, forked from one that has imported torch, and what each has seen."""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from recurra.runs import Setup, begin
from recurra.training.launching import RENDEZVOUS
from recurra.training.progress import Progress
from tests.forked import Forks, forks

IMPORTS = [
    *("torch._dynamo", "tests.conftest", "tests.training.test_processes", "recurra.engines.stepping"),
    *("recurra.models.tagger", "recurra.models.language_model", "recurra.reports.report_pictures"),
    *("recurra.training.trained", "recurra.training.samples", "recurra.programs.in_c", "recurra.wirings.advancing"),
]
"""What takes a second to import, and none of many short trainings should wait for."""

Changed = Callable[[pytest.MonkeyPatch], None]
"""A function of a module that changes what a process trains with, in that process."""


class Curve(Progress):
    """The loss of every step, exactly, and what else is said."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.notes: list[str] = []

    def start(
        self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None
    ) -> None: ...

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self.losses.append(loss)

    def validating(self, done: int, total: int) -> None: ...

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stop(self) -> None: ...


@functools.cache
def _forks() -> Forks:
    """What forks them, until the tests end. It has no GPU, since processes that it forks could not use it."""
    kept = ExitStack()
    atexit.register(kept.close)
    folder = Path(kept.enter_context(tempfile.TemporaryDirectory()))
    return kept.enter_context(forks(folder, imports=IMPORTS, more={"CUDA_VISIBLE_DEVICES": ""}))


def in_processes(count: int, work: Callable[[], object], changed: Changed | None = None) -> list[str]:
    """Do the same in several processes that find each other; "" of each that has done it, or its error.

    `work` and `changed`, what is done before, go there by pickle: they are functions of a module, or partials of such.
    """
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        with job.open("wb") as file:
            pickle.dump((sys.path, os.getcwd(), {**os.environ}), file)
            pickle.dump((changed, work), file)  # its modules are found by the paths above
        started = []
        for rank in range(count):
            numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
            own = {name: str(number) for name, number in numbers.items()}
            own |= {RENDEZVOUS: str(Path(folder) / "store"), "GLOO_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": ""}
            call = f"live({str(job)!r}, {str(Path(folder) / f'{rank}.said')!r}, {own!r})"
            started.append(_forks().start(f"from {__name__} import live\n{call}", {}))
        for number in started:
            sys.stderr.write(_forks().wait(number).stderr)
        return [(Path(folder) / f"{rank}.said").read_text() for rank in range(count)]


def live(job: str, said: str, own: Mapping[str, str]) -> None:
    """What one of the processes does."""
    with open(job, "rb") as file:
        paths, folder, environment = pickle.load(file)
        sys.path[:] = paths
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment | own)
        changed, work = pickle.load(file)
    Path(said).write_text("")
    try:
        if changed is not None:
            changed(pytest.MonkeyPatch())
        work()
    except BaseException as error:
        Path(said).write_text(f"{type(error).__name__}: {error}")
        traceback.print_exc()


def curve(this: Setup, folder: Path, *, processes: int = 1, changed: Changed | None = None) -> list[float]:
    """The losses of all steps of a new run, which one process trains or several do."""
    if processes == 1:
        return _curve(this, folder)
    kept = folder.parent / f"{folder.name}.losses"
    said = in_processes(processes, functools.partial(_keep_curve, this, folder, kept), changed)
    assert not any(said), said
    return [float(line) for line in kept.read_text().split()]


def _curve(this: Setup, folder: Path) -> list[float]:
    shown = Curve()
    begin(this, folder, shown)
    return shown.losses


def _keep_curve(this: Setup, folder: Path, kept: Path) -> None:
    if losses := _curve(this, folder):
        kept.write_text("\n".join(map(repr, losses)))
