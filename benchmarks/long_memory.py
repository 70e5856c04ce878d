"""What the cells can remember: the adding problem and copy memory over 200 steps.

    python benchmarks/long_memory.py [--problem adding|copy] [--seconds 600]

Prints a table: the loss that each cell ends with, on sequences it has not seen, beside the best without a memory.
"""

from __future__ import annotations

import argparse

import torch

from recurra.analysis.problems import Adding, CopyMemory, Problem, Progress, learn
from recurra.cells import Spec

ORTHOGONAL: Spec = {"name": "orthogonal_elman", "activation": "identity"}
MODRELU: Spec = {"name": "orthogonal_elman", "activation": "modrelu"}


def course(problem: Problem, cell: Spec, hidden: int, goal: float, seconds: float) -> Progress:
    """Learn until the goal is reached or the time is over."""
    for progress in learn(problem, cell, hidden=hidden):
        if progress.loss < goal or progress.seconds > seconds:
            return progress
    raise AssertionError("learning has no end")


def table(title: str, problem: Problem, cells: list[Spec], hidden: int, goal: float, seconds: float) -> None:
    print(f"{title}; without memory {problem.without_memory:.4f}; hidden {hidden}, 32 rows, Adam 1e-3, clip 1")
    print(f"{'cell':28}{'loss':>10}{'updates':>10}{'seconds':>10}")
    for cell in cells:
        name = cell if isinstance(cell, str) else f"{cell['name']}, {cell['activation']}"
        progress = course(problem, cell, hidden, goal, seconds)
        print(f"{name:28}{progress.loss:10.5f}{progress.updates:10}{progress.seconds:10.0f}", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", choices=["adding", "copy"], help="one of the two alone")
    parser.add_argument("--seconds", type=float, default=600, help="at most so long for each cell (600)")
    options = parser.parse_args()
    print(f"{torch.get_num_threads()} thread(s), torch {torch.__version__}\n")
    if options.problem != "copy":
        table("Adding, T = 200, mean squared error", Adding(200), ["elman", "gru", "lstm"], 64, 0.002, options.seconds)
    if options.problem != "adding":
        cells: list[Spec] = ["elman", "lstm", ORTHOGONAL, MODRELU]
        table("Copy memory, T = 200, nats a step", CopyMemory(200), cells, 128, 0.001, options.seconds)


if __name__ == "__main__":
    main()
