"""Units that see only themselves, over long sequences on a GPU: Newton's method beside the engine `graph`.

    python benchmarks/newton_on_gpu.py
    python benchmarks/newton_on_gpu.py --device cpu --steps 512         to try the script, beside `planned`

`ind_rnn` with tanh or relu, its input as wide as its state, float32, forward and backward: the median between CUDA
events. `apart` is the largest relative norm of a difference between both engines' gradients of parameters.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import recurra
from recurra.reports.speed_on_gpu import timed

SIZES = ((1, 256), (4, 64), (8, 256))


def milliseconds(work: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        return timed(work, seconds=0.3, most=5)
    found = []
    for _ in range(3):
        before = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - before))
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=16384)
    given = parser.parse_args()
    device = torch.device(given.device)
    other = "graph" if device.type == "cuda" else "planned"
    print(f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}, torch {torch.__version__}")
    print(f"{'rows':>5}{'steps':>8}{'units':>7}  {'activation':12}{'newton':>10}{other:>11}{'faster':>9}{'apart':>10}")
    for rows, units in SIZES:
        for activation in ("tanh", "relu"):
            torch.manual_seed(0)
            x = recurra.Padded.full(torch.randn(rows, given.steps, units, device=device))
            times, gradients = [], []
            for engine in ("newton", other):
                torch.manual_seed(0)
                rnn = recurra.Recurrent({"name": "ind_rnn", "activation": activation}, units, units, engine=engine).to(
                    device
                )

                def work(rnn: recurra.Recurrent = rnn, x: recurra.Padded = x) -> tuple[Tensor, ...]:
                    return torch.autograd.grad(rnn(x)[0].values.square().mean(), list(rnn.parameters()))

                gradients.append(work())
                times.append(milliseconds(work, device))
            apart = max(float((a - b).norm() / b.norm()) for a, b in zip(*gradients, strict=True))
            print(
                f"{rows:5}{given.steps:8}{units:7}  {activation:12}{times[0]:8.2f}ms{times[1]:9.2f}ms"
                f"{times[1] / times[0]:9.1f}{apart:10.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
