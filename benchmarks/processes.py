"""Training in two processes beside one: the same curve of losses, how fast, and what becomes of a killed process.

    OMP_NUM_THREADS=1 python benchmarks/processes.py > benchmarks/results/processes.txt

Each task trains a model on data that are drawn here, with everything switched off that is drawn in training. `float64`
and `float32` are the largest differences of the loss of a step, 200 and 50 steps long; of a loss above 1, as a part of
it. `rounding` is, for comparison, how far the float32 losses of one process are from its float64 losses. The times are
those of a step of the float32 runs, whose model is larger, with one torch thread in each process: by the clock, and the
processor time of the process that takes the most, which other programs on the machine change less.

With --forecasting, why float32 curves of a forecaster may differ: two processes beside one whose batches have their
rows in other orders, with a density that has a kink and with others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

EPS = 'training.optimizer={name="adam", eps=0.0001}'
"""Forecasting begins with weights by a formula, where some gradients are nothing but rounding: Adam with its usual eps
of 1e-8 moves a weight by the learning rate for the sign of that."""

WORDS = [f"w{number}" for number in range(200)]


class Problem(NamedTuple):
    """A task, its settings and its data."""

    task: str
    settings: Sequence[str]
    file: str
    content: str


def problems() -> list[Problem]:
    """A problem for each task, with enough to compute that a step takes milliseconds."""
    draw = random.Random(1)

    def words(least: int, most: int) -> list[str]:
        return [draw.choice(WORDS) for _ in range(draw.randint(least, most))]

    tagged = "\n\n".join("\n".join(f"{word}\t{'ABC'[int(word[1:]) % 3]}" for word in words(5, 25)) for _ in range(300))
    texts = [words(5, 40) for _ in range(300)]
    classes = "text\tlabel\n" + "".join(f"{' '.join(text)}\t{'ab'[len(text) % 2]}\n" for text in texts)
    waves = "".join(
        f"{series},{step},{(step % 12) + series + draw.random():.3f}\n" for series in range(24) for step in range(80)
    )
    pairs = "".join(f"{' '.join(text)}\t{' '.join(text[::-1])}\n" for text in (words(4, 12) for _ in range(300)))
    vectors = "".join(f"{draw.random():.3f}\t{draw.random():.3f}\t{' '.join(words(2, 6))}\n" for _ in range(300))
    small = ["model.embedding=64", "model.hidden=64"]
    quiet = ["model.dropout=0"]
    return [
        Problem(
            "tagging",
            [*small, *quiet, "model.word_dropout=0", "model.characters.cell=none", "training.batch_tokens=600"],
            "train.conll",
            f"{tagged}\n\n",
        ),
        Problem(
            "classification",
            [*small, *quiet, "model.word_dropout=0", "model.encoder=rnn", "training.batch_size=32"],
            "train.tsv",
            classes,
        ),
        Problem(
            "classification",
            [*quiet, "model.word_dropout=0", "model.encoder=bag", "model.bag.dropout=0", "training.batch_size=32"],
            "train.tsv",
            classes,
        ),
        Problem(
            "language_model",
            [
                *(*small, *quiet, "model.token_dropout=0", "model.output_dropout=0", "model.weight_drop=0"),
                *("training.batch_size=32", "reading.steps=30"),
            ],
            "train.txt",
            " ".join(words(20_000, 20_000)),
        ),
        Problem(
            "forecasting",
            ["model.hidden=64", *quiet, "data.window=40", "training.batch_tokens=1000", "decoding.horizon=4", EPS],
            "train.csv",
            f"series,time,level\n{waves}",
        ),
        Problem("seq2seq", [*small, *quiet, "training.batch_tokens=400"], "train.tsv", pairs),
        Problem("vec2seq", [*small, *quiet, "training.batch_size=32"], "train.tsv", vectors),
        Problem(
            "question_answering",
            ["model.hidden=32", "model.noise=0", "training.batch_size=32"],
            "stories.txt",
            "".join(stories(draw, 200)),
        ),
    ]


def stories(draw: random.Random, count: int) -> list[str]:
    found = []
    for _ in range(count):
        line = 0
        for line in range(1, 6):
            who, where = draw.choice(["Ann", "Bob", "Eve"]), draw.choice(["home", "out", "away"])
            found.append(f"{line} {who} went {where}.\n")
        found.append(f"{line + 1} Where is {who}?\t{where}\t{line}\n")
    return found


class Trained(NamedTuple):
    """The loss of each step, and the milliseconds of one: by the clock, and of the processor."""

    losses: list[float]
    clock: float
    processor: float


def trained(
    problem: Problem,
    folder: Path,
    name: str,
    processes: int,
    more: Sequence[str],
    change: Callable[[], None] = lambda: None,
) -> Trained:
    """A new run, in processes that are forked from this one: none waits until torch is imported.

    `change` is what each of them changes of itself before.
    """
    (folder / problem.file).write_text(problem.content, "utf-8")
    out = folder / f"{name}-{processes}"
    children = []
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                change()
                train_here(problem, out, folder / f"store-{name}", rank, processes, more)
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        children.append(child)
    if any([os.waitpid(child, 0)[1] for child in children]):  # noqa: C419  # all are waited for
        sys.exit(f"{problem.task} in {processes} processes has failed")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    times = [json.loads((folder / f"{out.name}.{rank}").read_text()) for rank in range(processes)]
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    return Trained(losses, *(1000 * max(each) / len(losses) for each in zip(*times, strict=True)))


def train_here(problem: Problem, out: Path, store: Path, rank: int, processes: int, more: Sequence[str]) -> None:
    """One of the processes: every step is logged, and nothing is reported."""
    from recurra import runs
    from recurra.training import trainer
    from recurra.training.progress import Silent

    if processes > 1:
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
        os.environ.update({each: str(number) for each, number in numbers.items()})
        os.environ.update({"RECURRA_RENDEZVOUS": str(store), "GLOO_SOCKET_IFNAME": "lo"})
    trainer.LOG_SECONDS = -1.0
    runs._finish = lambda *_: None
    steps = trainer.Trainer._steps

    def timed(self: Any, *given: Any) -> str:
        began = time.monotonic(), time.process_time()
        ended = steps(self, *given)
        times = time.monotonic() - began[0], time.process_time() - began[1]
        (out.parent / f"{out.name}.{rank}").write_text(json.dumps(times))
        return ended

    trainer.Trainer._steps = timed  # type: ignore[assignment, method-assign]
    usual = ["training.threads=1", "training.device=cpu", "training.epochs=none", "data.cache=false"]
    given = {"train": str(out.parent / problem.file)}
    runs.begin(runs.setup(problem.task, given=given, overrides=[*usual, *problem.settings, *more]), out, Silent())


def largest_difference(one: Trained, other: Trained) -> float:
    assert len(one.losses) == len(other.losses), (len(one.losses), len(other.losses))
    return max(abs(a - b) / max(1.0, abs(a)) for a, b in zip(one.losses, other.losses, strict=True))


def compared(problem: Problem, folder: Path, name: str) -> str:
    """A line of the table."""
    tiny = ["training.precision=float64", "training.steps=200"]
    tiny += [] if "model.encoder=bag" in problem.settings else ["model.hidden=8"]
    tiny += ["training.batch_size=6"] if "training.batch_size=32" in problem.settings else ["training.batch_tokens=80"]
    long = [trained(problem, folder, "long", n, tiny) for n in (1, 2)]
    short = [trained(problem, folder, "short", n, ["training.steps=50"]) for n in (1, 2)]
    exact = trained(problem, folder, "exact", 1, ["training.steps=50", "training.precision=float64"])
    far, near, rounding = (largest_difference(*each) for each in (long, short, (exact, short[0])))
    times = [f"{a:7.1f} {b:7.1f} {a / b:6.2f}" for a, b in zip(short[0][1:], short[1][1:], strict=True)]
    return f"{name:29} {far:9.1e} {near:9.1e} {rounding:9.1e}   {times[0]}   {times[1]}"


def permuted(seed: int) -> None:
    """Give the rows of each batch another order, by which sums are rounded in another one."""
    import numpy as np
    from numpy.typing import NDArray

    from recurra.tasks.forecasting import Forecasting

    usual = Forecasting.chosen
    draw = np.random.default_rng(seed)

    def chosen(self: Forecasting, store: Any, numbers: NDArray[np.int64]) -> Sequence[Any]:
        return usual(self, store, draw.permutation(numbers))

    Forecasting.chosen = chosen  # type: ignore[method-assign]


def forecasters(folder: Path) -> None:
    """Lines with the largest differences of the first 50 losses, in float32, from those of one process."""
    [problem] = [each for each in problems() if each.task == "forecasting"]
    print(f"{'output':10} {'two':>8} {'float64':>8}   one process, rows of each batch in six other orders")
    for output in ("quantiles", "gaussian", "student_t"):
        more = ["training.steps=50", f"model.output={output}"]
        one, two = (trained(problem, folder, output, n, more) for n in (1, 2))
        exact = trained(problem, folder, f"{output}-exact", 1, [*more, "training.precision=float64"])
        found = [two, exact]
        for seed in range(6):
            found.append(trained(problem, folder, f"{output}-{seed}", 1, more, partial(permuted, seed)))
        numbers = [f"{largest_difference(one, each):8.1e}" for each in found]
        print(f"{output:10} {numbers[0]} {numbers[1]}   {' '.join(numbers[2:])}", flush=True)


def killed(folder: Path) -> str:
    """A process of two is killed with SIGKILL in the middle of training."""
    problem = problems()[0]
    data = folder / problem.file
    data.write_text(problem.content, "utf-8")
    usual = ["training.threads=1", "training.device=cpu", "training.epochs=none", "training.steps=150"]
    often = ["training.validate=25", "model.hidden=32"]
    sets = [word for each in (*usual, *problem.settings, *often) for word in ("--set", each)]
    command = [
        sys.executable,
        "-m",
        "recurra",
        "train",
        problem.task,
        "--train",
        str(data),
        "--valid",
        str(data),
        *sets,
    ]
    for name in ("unbroken", "killed"):
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "--processes", "2", "--out", str(folder / name)], stderr=subprocess.PIPE, text=True, stdout=-3
        )
        if name == "killed":
            log = folder / name / "metrics.jsonl"
            while not (log.exists() and '"step": 50' in log.read_text()):
                time.sleep(0.02)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)
        said = process.communicate()[1]
        print(f"{name}: exit status {process.returncode} after {time.monotonic() - began:.0f} s")
        print("".join(f"    {line}\n" for line in said.splitlines() if "killed" in line), end="", flush=True)
    marks = [
        hashlib.sha256((folder / name / "model.safetensors").read_bytes()).hexdigest()
        for name in ("unbroken", "killed")
    ]
    return (
        f"model.safetensors {marks[0][:16]} and {marks[1][:16]}: {'the same' if marks[0] == marks[1] else 'DIFFERENT'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="compare these tasks alone, with commas between them")
    parser.add_argument("--forecasting", action="store_true", help="why float32 curves of a forecaster may differ")
    options = parser.parse_args()
    import torch

    import recurra.stacks.recurrent  # noqa: F401  # once, for all that are forked

    print(f"OMP_NUM_THREADS=1 python {' '.join(sys.argv)}; torch {torch.__version__}, {os.cpu_count()} cores\n")
    if options.forecasting:
        with tempfile.TemporaryDirectory() as folder:
            forecasters(Path(folder))
        return
    print(f"{'':29} {'difference of losses':>29}   {'ms a step, clock':>22}   {'ms a step, processor':>22}")
    heads = f"{'one':>7} {'two':>7} {'ratio':>6}"
    print(f"{'task':29} {'float64':>9} {'float32':>9} {'rounding':>9}   {heads}   {heads}", flush=True)
    for problem in problems():
        name = f"{problem.task}{' (sparse bag)' if 'model.encoder=bag' in problem.settings else ''}"
        if options.only is None or problem.task in options.only.split(","):
            with tempfile.TemporaryDirectory() as folder:
                print(compared(problem, Path(folder), name), flush=True)
    print()
    with tempfile.TemporaryDirectory() as folder:
        print(killed(Path(folder)))


if __name__ == "__main__":
    main()
