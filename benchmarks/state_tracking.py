"""State tracking: cells trained on words of up to 16 symbols, tested on words 16 times as long.

    python benchmarks/state_tracking.py                                   # parity and Tomita's languages, minutes
    python benchmarks/state_tracking.py --problems parity --seeds 3       # best of 3 by validation at twice the length
    python benchmarks/state_tracking.py --problems z60 s5 --hidden 256 --updates 20000 --device cuda
    python benchmarks/state_tracking.py --problems s5 --layers 2 --cells min_gru lstm --device cuda

Figures are the share of 2,000 new words of a length after whose last symbol the network's answer is right; the seed is
chosen by other words of twice the training length. `states` is the size of the automaton found by clustering the
network's states, minimised; `disagrees` the share of answers in which it differs from the network. min_gru and min_lstm
are linear in their state, with factors between 0 and 1 that the input alone sets: no such cell can follow a parity.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path

import torch

from recurra.analysis.automata import PROBLEMS
from recurra.reports.lab import as_text, compare_cells, write
from recurra.version import __version__

USUAL = ("parity", *(name for name in PROBLEMS if name.startswith("tomita")))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--problems", nargs="+", default=list(USUAL), choices=list(PROBLEMS), help="which")
    arguments.add_argument("--cells", nargs="+", default=["elman", "lstm", "min_gru"], help="elman lstm min_gru")
    arguments.add_argument("--length", type=int, default=16, help="the longest word of training (16)")
    arguments.add_argument("--hidden", type=int, default=32, help="units of each cell (32)")
    arguments.add_argument("--layers", type=int, default=1, help="layers of each network (1)")
    arguments.add_argument("--updates", type=int, default=1500, help="updates of each network, of 32 words (1500)")
    arguments.add_argument("--learning-rate", type=float, default=3e-3, help="of Adam (0.003)")
    arguments.add_argument("--seeds", type=int, help="networks of each (3 for parity, 1 for the others)")
    arguments.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    arguments.add_argument("--out", type=Path, help="write a page with curves and automata for each problem here")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if options.device.startswith("cuda") else "one CPU core"
    print(f"$ python {' '.join(sys.argv)}")
    print(
        f"recurra {__version__}, torch {torch.__version__}, Python {platform.python_version()}, {where}\n", flush=True
    )
    for problem in options.problems:
        began = time.perf_counter()
        found = compare_cells(
            problem,
            options.cells,
            length=options.length,
            hidden=options.hidden,
            layers=options.layers,
            updates=options.updates,
            learning_rate=options.learning_rate,
            seeds=options.seeds or (3 if problem == "parity" else 1),
            device=options.device,
            look_every=500,
            told=lambda line: print(line, file=sys.stderr, flush=True),
        )
        about, table, _ = as_text(found).split("\n\n")
        print(f"{about}\n{table}\n{time.perf_counter() - began:.0f} s\n", flush=True)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            write(found, options.out / f"{problem}.html")


if __name__ == "__main__":
    main()
