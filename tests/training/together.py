"""Several processes that train together, forked from one that has imported torch, and what each has seen."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from recurra.runs import Setup, begin
from recurra.training.launching import RENDEZVOUS
from recurra.training.progress import Progress


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


def in_processes(count: int, work: Callable[[], object]) -> list[str]:
    """Do the same in several processes that find each other; "" of each that has done it, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        children = [_forked(rank, count, Path(folder), work) for rank in range(count)]
        for child in children:
            os.waitpid(child, 0)
        return [(Path(folder) / f"{rank}.said").read_text() for rank in range(count)]


def _forked(rank: int, count: int, folder: Path, work: Callable[[], object]) -> int:
    if child := os.fork():
        return child
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    os.environ.update({name: str(number) for name, number in numbers.items()})
    os.environ.update({RENDEZVOUS: str(folder / "store"), "GLOO_SOCKET_IFNAME": "lo"})
    said = ""
    try:
        work()
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
        traceback.print_exc(file=sys.stderr)
    (folder / f"{rank}.said").write_text(said)
    os._exit(0)


def curve(this: Setup, folder: Path, *, processes: int = 1) -> list[float]:
    """The losses of all steps of a new run, which one process trains or several do."""
    if processes == 1:
        shown = Curve()
        begin(this, folder, shown)
        return shown.losses
    kept = folder.parent / f"{folder.name}.losses"

    def work() -> None:
        shown = Curve()
        begin(this, folder, shown)
        if shown.losses:
            kept.write_text("\n".join(map(repr, shown.losses)))

    said = in_processes(processes, work)
    assert not any(said), said
    return [float(line) for line in kept.read_text().split()]
