"""Copy, repeat copy and associative recall: right bits beyond the lengths of training, by LSTM, NTM and DNC.

    python benchmarks/memories.py                                        # all, 3 minutes each at most, one thread
    python benchmarks/memories.py --problems copy --cells ntm,dnc --minutes 2
    python benchmarks/memories.py --device cuda

Nothing is read: all sequences are drawn. Copy is trained with 1 to 10 vectors of 8 bits, repeat copy with 1 to 5 of 6
bits, 1 to 3 times, recall with 2 to 4 items of 3 × 6 bits; Adam 0.003, 32 rows, clip 10, 64 hidden units, for NTM and
DNC an LSTM as controller and a memory of 24 rows. No weight depends on the number of rows, so beyond the training
lengths the same weights are asked with as many rows as are needed. Every 100 updates 50 rows at twice the length are
scored; the weights that were best there, and of these the latest, are scored on 200 other rows at each length.
"""

from __future__ import annotations

import argparse
import copy
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1] / "src")]

import torch  # noqa: E402

from recurra.analysis.memory_problems import (  # noqa: E402
    AssociativeRecall,
    BitNetwork,
    BitProblem,
    CopyBits,
    RepeatCopy,
    learn_bits,
)

HIDDEN, WIDTH, ROWS, LARGE = 64, 10, 24, 128
TIMES = (1, 2, 3, 5)
GOAL = 0.99
"""Bits that are right in copies of twice the training length, by NTM and DNC."""

ENOUGH = 0.9999
"""A network with so many right bits at both lengths is not trained on."""


class Kind(NamedTuple):
    """A problem: what it is trained with, and its name in the table."""

    longest: int
    make: type[CopyBits] | type[RepeatCopy] | type[AssociativeRecall]

    def at(self, times: int) -> BitProblem:
        """The problem at exactly so many times the longest training length."""
        return self.make(times * self.longest, times * self.longest)


PROBLEMS = {"copy": Kind(10, CopyBits), "repeat": Kind(5, RepeatCopy), "recall": Kind(4, AssociativeRecall)}


def spec_of(cell: str, rows: int) -> dict[str, Any]:
    return {"name": cell, "rows": rows, "width": WIDTH} if cell in ("ntm", "dnc") else {"name": cell}


def large(network: BitNetwork, cell: str, problem: BitProblem) -> BitNetwork:
    """The same weights with a large memory."""
    where = network.readout.weight.device
    found = BitNetwork(spec_of(cell, LARGE), problem, HIDDEN, engine="auto" if cell == "lstm" else "loop").to(where)
    found.load_state_dict(network.state_dict())
    return found


def course(kind: Kind, cell: str, seed: int, minutes: float, device: str) -> tuple[list[float], int, float]:
    """The share of right bits at each of TIMES, the updates of the weights that were kept, and the seconds in all."""
    torch.manual_seed(seed)
    problem, longer = kind.make(kind.longest), kind.at(2)
    network = BitNetwork(spec_of(cell, ROWS), problem, HIDDEN).to(device)
    best, kept, at, seconds = -1.0, network.state_dict(), 0, 0.0
    for look in learn_bits(network, problem, seed=seed):
        seconds = look.seconds
        right = large(network, cell, problem).right(longer, rows=50, seed=1000)
        if right >= best:
            best, kept, at = right, copy.deepcopy(network.state_dict()), look.updates
        if seconds > 60 * minutes or min(right, network.right(problem, rows=50, seed=1001)) >= ENOUGH:
            break
    network.load_state_dict(kept)
    asked = large(network, cell, problem)
    return [asked.right(kind.at(times), seed=2000 + times) for times in TIMES], at, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="copy, repeat and recall, or some of them")
    parser.add_argument("--cells", default="lstm,ntm,dnc")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each (1)")
    parser.add_argument("--minutes", type=float, default=3.0, help="at most so long for each (3)")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    print(
        f"python {' '.join(sys.argv)}\ntorch {torch.__version__}, Python {platform.python_version()}, {options.device}"
    )
    heads = "".join(f"{f'{times} × length':>13}" for times in TIMES)
    print(f"\n{'problem':10}{'cell':8}{'seed':>5}{heads}{'updates':>10}{'seconds':>9}")
    reached = []
    for name in options.problems.split(","):
        for cell in options.cells.split(","):
            for seed in range(1, options.seeds + 1):
                shares, updates, seconds = course(PROBLEMS[name], cell, seed, options.minutes, options.device)
                told = "".join(f"{100 * share:11.2f} %" for share in shares)
                print(f"{name:10}{cell:8}{seed:5}{told}{updates:10,}{seconds:9.0f}", flush=True)
                if name == "copy" and cell != "lstm":
                    reached.append((cell, shares[1]))
    for cell, share in reached:
        print(f"copy at 2 × length, {cell}: {100 * share:.2f} % of bits, goal at least {100 * GOAL:g} %")


if __name__ == "__main__":
    main()
