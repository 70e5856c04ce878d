"""What a reset mask costs: the time of each engine with resets over that of the same engine without.

    python benchmarks/resets.py

A batch of 16 rows of 200 steps (one row where `single` runs), I = H = 256, float32, two resets a row; forward alone for
`single`, else forward and backward. Times are those of the processor, so that other programs on the machine count
little; both are taken turn by turn, and the ratio is the median of the turns' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from recurra import Padded, Recurrent

CASES: list[tuple[str, Any]] = [
    ("single", "lstm"),
    ("vendor", "lstm"),
    ("vendor", {"name": "gru", "reset": "after"}),
    ("planned", "lstm"),
    ("planned", "gru"),
    ("planned", "min_gru"),
    ("scan", "min_gru"),
    ("loop", "lstm"),
    ("loop", "gru"),
]


def timed(rnn: Recurrent, x: Padded, resets: torch.Tensor | None, training: bool) -> float:
    rnn.zero_grad()
    started = time.process_time()
    with torch.set_grad_enabled(training):
        outputs, _ = rnn(x, resets=resets)
        if training:
            outputs.values.sum().backward()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--resets", type=int, default=2, help="in each row, at random steps")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'engine':<10}{'cell':<12}{'without, ms':>12}{'with, ms':>12}{'ratio':>8}")
    for engine, spec in CASES:
        torch.manual_seed(0)
        rows, training = (1, False) if engine == "single" else (16, True)
        x = Padded.full(torch.randn(rows, options.steps, options.hidden))
        resets = torch.zeros(rows, options.steps, dtype=torch.bool)
        for row in resets:
            row[torch.randperm(options.steps - 1)[: options.resets] + 1] = True
        rnn = Recurrent(spec, options.hidden, options.hidden, engine=engine)
        times: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(options.turns + 1):
            for is_reset in times:
                taken = timed(rnn, x, resets if is_reset else None, training)
                times[is_reset] += [taken] if turn else []
        without, with_resets = (statistics.median(times[is_reset]) for is_reset in (False, True))
        ratio = statistics.median(b / a for a, b in zip(times[False], times[True], strict=True))
        name = spec if isinstance(spec, str) else "gru after"
        print(
            f"{engine:<10}{name:<12}{without * 1e3:>12.2f}{with_resets * 1e3:>12.2f}{ratio:>8.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
