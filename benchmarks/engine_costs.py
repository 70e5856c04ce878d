"""The rates of the engines' cost model (src/recurra/engines/cost.py), measured on this machine.

Times one layer on every engine that can run it, forward alone and with backward, fits the rates of the model to the
times by least squares on relative errors, and prints both:

    python benchmarks/engine_costs.py                     # one thread, on the CPU
    python benchmarks/engine_costs.py --check             # no fit: the model as it stands beside the measured times
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from recurra import EngineError, Padded, Recurrent
from recurra.engines import ENGINES
from recurra.engines.cost import projection, terms, work_of
from recurra.engines.engine import Work

CELLS: dict[str, Any] = {
    "lstm": "lstm",
    "gru after": {"name": "gru", "reset": "after"},
    "elman": "elman",
    "min_gru": "min_gru",
}

SHAPES = [
    (1, 1, 64),
    (1, 4, 64),
    (1, 25, 64),
    (1, 100, 16),
    (1, 100, 256),
    (1, 400, 64),
    (1, 50, 512),
    (4, 10, 64),
    (16, 1, 64),
    (16, 4, 64),
    (16, 25, 64),
    (16, 100, 64),
    (16, 25, 256),
    (32, 30, 256),
    (64, 20, 128),
    (16, 1000, 64),
]


class Timed(NamedTuple):
    """One measured run."""

    cell: str
    engine: str
    training: bool
    shape: tuple[int, int, int]
    work: Work
    seconds: float


def best(work: Callable[[], object], device: str, turns: int, seconds: float) -> float:
    """The shortest of several turns: other programs only ever add to it."""
    work()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (len(times) < turns and time.perf_counter() < end):
        started = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return min(times)


def measured(device: str, autocast: bool, turns: int, seconds: float) -> list[Timed]:
    found = []
    for name, spec in CELLS.items():
        for B, T, H in SHAPES:
            rnn = Recurrent(spec, H, H).to(device)
            x = Padded.full(torch.randn(B, T, H, device=device))
            for training in (True, False):
                for engine in ENGINES:
                    rnn.engine = engine.name

                    def run(rnn: Recurrent = rnn, x: Padded = x, training: bool = training) -> None:
                        rnn.zero_grad()
                        with torch.set_grad_enabled(training), torch.autocast(device, torch.bfloat16, autocast):
                            outputs, _ = rnn(x)
                        if training:
                            outputs.values.sum().backward()

                    with torch.set_grad_enabled(training), torch.autocast(device, torch.bfloat16, autocast):
                        work = work_of(rnn._readers(0, rnn.start(B, x.values), rnn.fixed(B, x.values)), x)
                    try:
                        taken = best(run, device, turns, seconds)
                    except EngineError:
                        continue
                    found.append(Timed(name, engine.name, training, (B, T, H), work, taken))
    return found


def fitted(rows: list[Timed]) -> np.ndarray[Any, Any]:
    """The rates, none below 0, with the least sum of squared relative errors."""
    left = [max(row.seconds - projection(row.work), row.seconds / 10) for row in rows]
    matrix = np.array([[term / seconds for term in terms(row.work)] for row, seconds in zip(rows, left, strict=True)])
    used = list(range(matrix.shape[1]))
    while True:
        rates = np.zeros(matrix.shape[1])
        rates[used] = np.linalg.lstsq(matrix[:, used], np.ones(len(rows)), rcond=None)[0]
        if (rates >= 0).all():
            return rates
        used = [column for column in used if rates[column] > 0]


def print_rates(found: list[Timed]) -> None:
    """Seconds per call, gate, weight, number and product, for each engine."""
    print(f"{'engine':<10}{'cells':<12}{'':<12}{'call':>10}{'gate':>10}{'weight':>10}{'number':>10}{'product':>10}")
    for engine in ENGINES:
        for cells in (("lstm",), ("gru after", "elman"), ("min_gru",), tuple(CELLS)):
            for training in (True, False):
                rows = [r for r in found if (r.engine, r.training) == (engine.name, training) and r.cell in cells]
                if {row.cell for row in rows} != set(cells):
                    continue
                mode = "training" if training else "inference"
                rates = "".join(f"{rate:>10.1e}" for rate in fitted(rows))
                print(f"{engine.name:<10}{'+'.join(c[:5] for c in cells)[:11]:<12}{mode:<12}{rates}")


def print_check(found: list[Timed]) -> None:
    """Measured and estimated milliseconds, and what auto's choice costs beside the fastest."""
    engines = {engine.name: engine for engine in ENGINES}
    print(f"{'cell':<10}{'mode':<10}{'B, T, H':<14}" + "".join(f"{name:>18}" for name in engines) + "   auto")
    lost = []
    for key in dict.fromkeys((row.cell, row.training, row.shape) for row in found):
        rows = {row.engine: row for row in found if (row.cell, row.training, row.shape) == key}
        costs = {name: engines[name].cost(row.work) for name, row in rows.items()}
        pick = min(costs, key=lambda name: costs[name])
        lost.append(rows[pick].seconds / min(row.seconds for row in rows.values()))
        shown = "".join(
            f"{rows[name].seconds * 1e3:>9.2f} ({costs[name] * 1e3:>6.2f})" if name in rows else f"{'-':>18}"
            for name in engines
        )
        shape = ", ".join(map(str, key[2]))
        print(f"{key[0]:<10}{'train' if key[1] else 'infer':<10}{shape:<14}{shown}   {pick} {lost[-1]:.2f}")
    print(f"auto's choice over the fastest engine: median {np.median(lost):.2f}, largest {max(lost):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="print the model beside the times, fit nothing")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--autocast", action="store_true", help="under bfloat16 autocast")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.3, help="at most so long for one engine at one shape")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    found = measured(options.device, options.autocast, options.turns, options.seconds)
    if not options.check:
        print_rates(found)
    print_check(found)


if __name__ == "__main__":
    main()
