"""The cost of a softmax over a vocabulary on a GPU, forward and backward: its time and its memory.

    python benchmarks/loss_on_gpu.py
    python benchmarks/loss_on_gpu.py --device cpu --rows 64         to try the script

6,400 features of 512 numbers (128 rows of 50 steps) in bfloat16 by autocast, as training has them. `plain` is torch's
own: scores of all rows, in float32 for the softmax. `recurra` is what sequence-to-sequence and language models call in
training (recurra.outputs.Softmax). `peak` is what is allocated at most beyond features, weights and their gradients.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from recurra.outputs.softmax import Softmax
from recurra.products.cross_entropy import Options, cost
from recurra.reports.speed_on_gpu import timed

OPTIONS = {"plain targets": Options(), "smoothed": Options(smoothing=0.1), "R-Drop": Options(smoothing=0.1, r_drop=2.0)}


def peak_of(work: Callable[[], object], device: torch.device) -> float:
    """MiB allocated at most by a call, beyond what was there."""
    if device.type != "cuda":
        return float("nan")
    work()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=6400)
    parser.add_argument("--vocabularies", type=int, nargs="+", default=[6003, 8000, 32000])
    given = parser.parse_args()
    device = torch.device(given.device)
    print(f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}, torch {torch.__version__}")
    print(f"{'V':>6}  {'cost':14}{'plain':>10}{'recurra':>10}{'plain peak':>13}{'recurra peak':>14}{'error':>9}")
    for size in given.vocabularies:
        torch.manual_seed(0)
        output = Softmax(512, size).to(device)
        features = torch.randn(given.rows, 512, device=device, requires_grad=True)
        targets = torch.randint(size, (given.rows,), device=device)
        sources = [features, output.readout.weight, output.readout.bias]

        def gradients(total: Tensor, sources: list[Tensor] = sources) -> tuple[Tensor, ...]:
            return torch.autograd.grad(total, sources)

        for name, options in OPTIONS.items():

            def plain(options: Options = options) -> tuple[Tensor, ...]:
                with torch.autocast(device.type, torch.bfloat16):
                    scores = functional.linear(features, output.readout.weight, output.readout.bias)  # noqa: B023
                return gradients(cost(scores.float().log_softmax(1), targets, options))  # noqa: B023

            def ours(options: Options = options) -> tuple[Tensor, ...]:
                with torch.autocast(device.type, torch.bfloat16):
                    return gradients(output.cost(features, targets, options))  # noqa: B023

            pairs = zip(ours(), plain(), strict=True)
            error = max(float((a - b).norm() / b.norm()) for a, b in pairs)
            times = [timed(work) if device.type == "cuda" else float("nan") for work in (plain, ours)]
            peaks = [peak_of(work, device) for work in (plain, ours)]
            in_words = f"{times[0]:8.2f}ms{times[1]:8.2f}ms{peaks[0]:10,.0f}MiB{peaks[1]:11,.0f}MiB{error:9.1e}"
            print(f"{size:6}  {name:14}{in_words}", flush=True)


if __name__ == "__main__":
    main()
