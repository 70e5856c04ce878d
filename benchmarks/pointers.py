"""Pointer networks: convex hulls, Delaunay triangles, shortest tours and sorting, beside the figures of the paper.

    python benchmarks/pointers.py --device cuda                  # all of TRAININGS at once on one GPU, 3.5 minutes each
    python benchmarks/pointers.py hull --device cpu --examples 20000 --minutes 2
    python benchmarks/pointers.py tour sort --device cpu --points 5 --one-by-one --set model.hidden=128
    python benchmarks/pointers.py hull tour --seeds 1 2 3

examples/data/geometry.py makes the problems and solves them exactly; no data are needed. "as published" has the network
of Vinyals et al. (2015): one layer of LSTM cells that reads in one direction, one that points, and no other attention.
"hull" and the others also read backwards, and look at all points before they point. Weights are those with the most
exact answers of greedy search on 1,000 problems; 10,000 others are for the test, by a beam of 5 in which no point comes
twice (delaunay: it may). Of the paper are given the figures of networks trained on the same numbers of points, with a
million examples; those for "hull" at 10 points are of one trained on 5 to 50.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch

sys.path[:0] = [str(Path(__file__).parents[1] / "src")]

from recurra.runs import begin, setup  # noqa: E402
from recurra.training.progress import progress  # noqa: E402
from recurra.version import __version__  # noqa: E402

MAKER = Path(__file__).parents[1] / "examples" / "data" / "geometry.py"

COMMON = [
    "model.pointer=additive",
    "model.embedding=128",
    "model.dropout=0",
    "model.label_smoothing=0",
    "training.learning_rate=2e-3",
    "training.deterministic=false",
    "training.epochs=1000",  # the time ends it
    "decoding.length_penalty=0",
]

PLAIN = ["model.hidden=256", "model.attention=none", "model.bidirectional=false"]
LOOKING = ["model.hidden=512", "model.attention=additive"]


class Training(NamedTuple):
    """A problem, a network for it, and what is to be shown."""

    problem: str
    points: str
    examples: int
    settings: list[str]
    scores: list[str]
    published: str


ONCE = ["decoding.elements=once"]
TRAININGS = {
    "hull": Training(
        *("hull", "10", 600_000, [*LOOKING, *ONCE, "evaluation.shape=hull"]),
        *(["exact_match", "area_coverage", "simple"], "87.0 exact (5 to 50 points), 99.8 area"),
    ),
    "hull, as published": Training(
        *("hull", "10", 600_000, [*PLAIN, *ONCE, "evaluation.shape=hull"]),
        *(["exact_match", "area_coverage", "simple"], "87.0 exact (5 to 50 points), 99.8 area"),
    ),
    "delaunay": Training(
        *("delaunay", "5", 300_000, [*LOOKING, "evaluation.shape=triangles"]),
        *(["exact_match", "triangle_coverage"], "80.7 exact, 93.0 triangles"),
    ),
    "tour": Training(
        *("tour", "10", 100_000, [*LOOKING, "decoding.elements=all", "evaluation.shape=tour"]),
        *(["exact_match", "length_ratio", "valid"], "2.88 / 2.87 = 1.003 length"),
    ),
    "sort": Training(
        *("sort", "10", 100_000, [*LOOKING, "decoding.elements=all"]),
        *(["exact_match", "symbol_error_rate"], "none"),
    ),
}


def made(training: Training, folder: Path, examples: int, test: int) -> subprocess.Popen[bytes] | None:
    """The process that makes the problems of a training; None where they are there."""
    if (folder / "test.npz").exists():
        return None
    sizes = [
        "--points",
        training.points,
        "--train",
        str(examples),
        "--valid",
        str(min(1000, test)),
        "--test",
        str(test),
    ]
    return subprocess.Popen([sys.executable, str(MAKER), training.problem, str(folder), *sizes])


def trained(name: str, seed: int, data: Path, run: Path, options: argparse.Namespace) -> None:
    """Train one network and score it on the test problems."""
    on_gpu = options.device != "cpu" and torch.cuda.is_available()
    speed = ["training.batch_size=1024", "training.precision=bfloat16"] if on_gpu else ["training.batch_size=128"]
    own = [f"training.device={options.device}", f"training.minutes={options.minutes}", f"training.seed={seed}"]
    given = {part: str(data / f"{part}.npz") for part in ("train", "valid", "test")}
    overrides = [*COMMON, *TRAININGS[name].settings, *speed, *own, *options.set]
    begin(setup("seq2seq", given=given, overrides=overrides), run, progress(sys.stderr))


def shown(name: str, training: Training, seed: int, run: Path) -> str:
    """A line of the table."""
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    scores = [f"{score} {summary['test']['scores'][score]:.4f}" for score in training.scores]
    times = f"{summary['epochs']:5} epochs {summary['seconds']:4.0f} s"
    return f"{name:20}{training.points:>4}{seed:>3} {times}  {', '.join(scores):62}  paper: {training.published}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs="*", help=f"which of {', '.join(TRAININGS)} (all)")
    parser.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    parser.add_argument("--minutes", type=float, default=3.5, help="of each training, at most (3.5)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--examples", type=int, help="problems to learn from (those of TRAININGS)")
    parser.add_argument("--points", help="points of each problem, a number or from-to (those of TRAININGS)")
    parser.add_argument("--test", type=int, default=10_000, help="problems to test with (10000)")
    parser.add_argument("--one-by-one", action="store_true", help="not all trainings at once")
    parser.add_argument("--out", type=Path, help="keep problems and runs in this folder")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        name, seed, data, run = options.worker
        trained(name, int(seed), Path(data), Path(run), options)
        return
    names = options.trainings or list(TRAININGS)
    if unknown := {*names} - {*TRAININGS}:
        parser.error(f"there is no training {sorted(unknown)[0]!r}: choose of {', '.join(TRAININGS)}.")
    trainings = {name: TRAININGS[name] for name in names}
    if options.points is not None:
        other = {"points": options.points, "published": "other numbers of points"}
        trainings = {name: training._replace(**other) for name, training in trainings.items()}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() and options.device != "cpu" else "CPU"
    print(f"recurra {__version__}, torch {torch.__version__}, {device}: {' '.join(['pointers.py', *sys.argv[1:]])}")
    with tempfile.TemporaryDirectory() as private:
        out, began = options.out or Path(private), time.perf_counter()
        counts = {name: options.examples or trainings[name].examples for name in names}
        folders = {name: out / f"{trainings[name].problem}-{trainings[name].points}-{counts[name]}" for name in names}
        by_folder = {folder: name for name, folder in folders.items()}  # two networks may learn the same problems
        makers = [made(trainings[name], folder, counts[name], options.test) for folder, name in by_folder.items()]
        for maker in makers:
            if maker is not None and maker.wait():
                sys.exit(f"the problems could not be made: exit status {maker.returncode}")
        print(f"problems made in {time.perf_counter() - began:.0f} s", flush=True)
        jobs = []
        for name in names:
            for seed in options.seeds:
                run = out / f"{name.replace(', ', '-').replace(' ', '-')}.{seed}"
                if not (run / "summary.json").exists():
                    own = ["--worker", name, str(seed), str(folders[name]), str(run)]
                    kept = ["--device", options.device, "--minutes", str(options.minutes)]
                    more = [part for each in options.set for part in ("--set", each)]
                    log = (out / f"{run.name}.log").open("w")
                    job = subprocess.Popen([sys.executable, __file__, *own, *kept, *more], stderr=log, stdout=log)
                    if options.one_by_one:
                        job.wait()
                    jobs.append((job, log))
        for job, log in jobs:
            job.wait()
            log.close()
            if job.returncode:
                print(Path(log.name).read_text("utf-8")[-2000:])
        for name in names:
            for seed in options.seeds:
                run = out / f"{name.replace(', ', '-').replace(' ', '-')}.{seed}"
                if (run / "summary.json").exists():
                    print(shown(name, trainings[name], seed, run), flush=True)
        print(f"{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
