"""How long a training step takes on a GPU, and how busy it keeps it: three trainings of this folder, as they are.

    python benchmarks/training_on_gpu.py                                    # multi30k, g2p and tagging
    python benchmarks/training_on_gpu.py g2p --seconds 20 --set training.precision=bfloat16
    python benchmarks/training_on_gpu.py --device cpu --seconds 5           # the same without a GPU

The models and batches are those of translation.py (attention), pronunciation.py and tagging.py (en); data are read from
$RECURRA_DATA (../shared/data). Each is trained by the trainer itself, its own loop, log and all, without validation.

    ms a step     the median over windows of 50 steps, at the ends of which the GPU is waited for, after 50 to warm up
    kernels       milliseconds a step in which the GPU ran a kernel or a copy, by torch.profiler over 30 steps
    busy          kernels / ms a step
    waits         how often a step made Python wait for the GPU, as torch counts it (set_sync_debug_mode) over 10 steps
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]

import torch  # noqa: E402

import pronunciation  # noqa: E402
import tagging  # noqa: E402
import translation  # noqa: E402
from recurra.runs import engines_in_words, setup  # noqa: E402
from recurra.training.log import Log  # noqa: E402
from recurra.training.preparation import HeldOut, prepared  # noqa: E402
from recurra.training.progress import Progress  # noqa: E402
from recurra.training.trainer import Trainer  # noqa: E402

WARM_UP, WINDOW, PROFILED, COUNTED = 50, 50, 30, 10
"""Steps."""

LEAST_WINDOWS = 4
"""So many are measured, however long they take."""


class Training(NamedTuple):
    """A task, its training file and its settings."""

    task: str
    train: str
    settings: list[str]


def trainings() -> dict[str, Training]:
    pattern, part, *_ = tagging.FILES["en"]
    return {
        "multi30k": Training(
            "seq2seq",
            translation.files("de", "train"),
            [*translation.COMMON, *translation.SETTINGS["attention"]],
        ),
        "g2p": Training("seq2seq", pronunciation.files("ice")["train"], pronunciation.SETTINGS),
        "tagging": Training("tagging", str(tagging.DATA / pattern.format(part)), tagging.SETTINGS["en"]),
    }


class EnoughError(Exception):
    """All is measured."""


class Measured(Progress):
    """Watches a training from within: it is told of each step, and stops it when all is measured."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.trainer: Trainer | None = None
        self.windows: list[float] = []  # milliseconds a step
        self.kernels: float | None = None  # milliseconds a step
        self.waits: float | None = None  # a step
        self.longest: list[str] = []  # the kernels that take most of the time, in words
        self._at, self._began = 0, 0.0  # of the present window
        self._first = 0.0  # when the first window began
        self._profiler: Any = None
        self._warned: Any = None
        self._caught: list[Any] = []

    @property
    def milliseconds(self) -> float:
        return statistics.median(self.windows) if self.windows else float("nan")

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        assert self.trainer is not None
        made = self.trainer.position.step  # more than were told of, where the trainer looks late
        if made - self._at < self._length():
            return
        wait(self.trainer.device)
        now = time.monotonic()
        if self._at == 0:
            self._first = now
        elif self._profiler is not None:
            self._profiler.__exit__(None, None, None)
            self.kernels = in_kernels(self._profiler.events()) / (made - self._at)
            self.longest = by_name(self._profiler.events(), made - self._at)
            self._count()
        elif self._warned is not None:
            self.waits = self._counted(made - self._at)
            raise EnoughError
        else:
            self.windows.append(1000 * (now - self._began) / (made - self._at))
            if len(self.windows) >= LEAST_WINDOWS and now - self._first >= self.seconds:
                if self.trainer.device.type != "cuda":
                    raise EnoughError
                self._profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
                self._profiler.__enter__()
        self._at, self._began = made, time.monotonic()

    def _length(self) -> int:
        if self._at == 0:
            return WARM_UP
        return PROFILED if self._profiler is not None else COUNTED if self._warned is not None else WINDOW

    def _count(self) -> None:
        """From now on, each wait is a warning."""
        self._profiler = None
        self._warned = warnings.catch_warnings(record=True)
        self._caught = self._warned.__enter__()
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")

    def _counted(self, steps: int) -> float:
        torch.cuda.set_sync_debug_mode("default")
        found = [each for each in self._caught if "synchroniz" in str(each.message)]
        self._warned.__exit__(None, None, None)
        for place in sorted({f"{each.filename}:{each.lineno}" for each in found}):
            print(f"    waits in {place}", file=sys.stderr)
        return len(found) / steps

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        pass

    def validating(self, done: int, total: int) -> None:
        pass

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        pass

    def note(self, text: str) -> None:
        print(f"    {text}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        pass


def in_kernels(events: Iterable[Any]) -> float:
    """Milliseconds in which at least one kernel or copy ran on the GPU."""
    spans = sorted(
        (event.time_range.start, event.time_range.end) for event in events if event.device_type.name == "CUDA"
    )
    total, end = 0.0, float("-inf")
    for first, last in spans:
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total / 1000


def by_name(events: Iterable[Any], steps: int, most: int = 25) -> list[str]:
    """The kernels that take most of the time: milliseconds a step, how often a step, and their names."""
    times: dict[str, list[float]] = {}
    for event in events:
        if event.device_type.name == "CUDA":
            times.setdefault(event.name, []).append((event.time_range.end - event.time_range.start) / 1000)
    found = sorted(times.items(), key=lambda item: -sum(item[1]))[:most]
    count = sum(map(len, times.values())) / steps
    lines = [f"    {sum(of) / steps:8.3f}{len(of) / steps:9.1f}  {name[:110]}" for name, of in found]
    return [f"    {count:.0f} kernels a step; ms, how often", *lines]


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(name: str, training: Training, options: argparse.Namespace) -> str:
    """A row of the table."""
    limits = [each for each in training.settings if not each.startswith(("training.epochs", "training.steps"))]
    own = [f"training.device={options.device}", "training.epochs=none", "training.steps=1000000", *options.set]
    limits = [each for each in limits if not each.startswith("training.validate=")]
    this = setup(training.task, given={"train": training.train}, overrides=[*limits, *own])
    began = time.monotonic()
    task, store = prepared(this.kind, this.settings, lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        watch = Measured(options.seconds)
        trainer = watch.trainer = Trainer(task, store, HeldOut([], []), Path(folder) / "run", watch)
        task.initialise(trainer.model)
        prepared_in = time.monotonic() - began
        try:
            with Log(Path(folder) / "run") as log:
                trainer.run(log)
        except EnoughError:
            pass
    print(f"    {engines_in_words(trainer.model)}; data and model ready in {prepared_in:.0f} s", file=sys.stderr)
    if options.kernels:
        print("\n".join(watch.longest), file=sys.stderr)
    busy = "" if watch.kernels is None else f"{watch.kernels / watch.milliseconds:.0%}"
    kernels = "" if watch.kernels is None else f"{watch.kernels:.2f}"
    waits = "" if watch.waits is None else f"{watch.waits:.1f}"
    spread = f"{min(watch.windows):.2f}–{max(watch.windows):.2f}"
    steps = WINDOW * len(watch.windows)
    return f"{name:12}{steps:>7}{watch.milliseconds:>11.2f}{spread:>16}{kernels:>10}{busy:>7}{waits:>8}"


def main() -> None:
    known = trainings()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trainings", nargs="*", help=f"which of {', '.join(known)} (all)")
    arguments.add_argument("--seconds", type=float, default=12.0, help="to measure each for, at least 200 steps (12)")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--kernels", action="store_true", help="also print which kernels take most of the time")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    where = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    print(f"{where}, torch {torch.__version__}, Python {sys.version.split()[0]}: {' '.join(sys.argv)}")
    print(f"{'training':12}{'steps':>7}{'ms a step':>11}{'windows':>16}{'kernels':>10}{'busy':>7}{'waits':>8}")
    for name in options.trainings or known:
        print(measure(name, known[name], options), flush=True)


if __name__ == "__main__":
    main()
