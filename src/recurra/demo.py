"""The tour: three cells learn the adding problem before your eyes."""

from __future__ import annotations

from recurra.analysis.problems import Adding, Progress, learn

BLOCKS = "▁▂▃▄▅▆▇█"


def tour(*, steps: int = 60, seconds: float = 25.0, goal: float = 0.01) -> None:
    """Train Elman, GRU and LSTM on the adding problem for a few seconds each and print their learning curves."""
    problem = Adding(steps)
    print(
        f"The adding problem: {steps} numbers go by, two of them are marked; at the end, tell the sum of the two.\n"
        f"Always answering 1 has a mean squared error of {problem.without_memory:.4f}; a memory does better.\n"
        f"Each cell learns for up to {seconds:.0f} seconds, or until its error is below {goal}.\n"
    )
    for cell in ("elman", "gru", "lstm"):
        curve: list[Progress] = []
        for progress in learn(problem, cell, hidden=64, learning_rate=3e-3, look_every=50):
            curve.append(progress)
            if progress.loss < goal or progress.seconds > seconds:
                break
        print(f"  {cell:6} {drawn([p.loss for p in curve], problem.without_memory)}", end="")
        print(f"  error {curve[-1].loss:.4f} after {curve[-1].updates} updates, {curve[-1].seconds:.0f} s", flush=True)
    print(
        "\nElman's gradient fades over the steps; gates keep it alive.\n"
        "Next: `recurra check FILE` says which models a file can train, and how; `recurra cells` shows all\n"
        "cells with their equations, `recurra cells gru` one of them;\n"
        "`recurra bench` times them on this machine; docs/ explains each with a picture."
    )


def drawn(losses: list[float], top: float, width: int = 40) -> str:
    """A learning curve as a row of blocks, full height at `top` and above.

    >>> drawn([0.2, 0.1, 0.0], top=0.2, width=3)
    '█▄▁'
    """
    places = [round(place * (len(losses) - 1) / max(1, width - 1)) for place in range(width)]
    heights = [min(1.0, losses[place] / top) for place in places]
    return "".join(BLOCKS[min(7, int(height * 7.999))] for height in heights)
