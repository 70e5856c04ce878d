"""Attention decoders on a GPU: a training step of the decoder alone, with and without CUDA graphs.

    python benchmarks/decoders_on_gpu.py

128 rows, sources of 50 places, targets of 50 steps, 512 units, bfloat16 by autocast. The difference is that of outputs
and all gradients in float32 between the replayed loop and the loop itself, the largest relative norm, with rows, places
and steps that are not what a graph is recorded for. Medians by CUDA events.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".", "benchmarks")]

from cells_on_gpu import timed  # noqa: E402
from recurra import Padded  # noqa: E402
from recurra.named import built  # noqa: E402
from recurra.wirings import Shape, Source, Wiring  # noqa: E402

DECODERS = {
    "feeding, LSTM, bilinear": ("feeding", "lstm", "bilinear"),
    "inside, GRU, additive": ("inside", "gru", "additive"),
    "conditional, GRU, additive": ("conditional", "gru", "additive"),
    "outside, LSTM, bilinear": ("outside", "lstm", "bilinear"),
}


class Step:
    """A decoder, a batch for it, and its training step."""

    def __init__(self, name: str, B: int, S: int, T: int, H: int) -> None:
        wiring, cell, attention = DECODERS[name]
        torch.manual_seed(0)
        shape = Shape(cell, H, (H,), H, 0, H, attention)
        self.wiring: Any = built(Wiring, wiring, shape).cuda()
        self.x = torch.randn(B, T, H, device="cuda", requires_grad=True)
        self.memory = torch.randn(B, S, H, device="cuda", requires_grad=True)
        self.mask = torch.arange(S, device="cuda") < torch.randint(S // 2, S + 1, (B, 1), device="cuda")
        self.gradient = torch.randn(B, T, H, device="cuda")
        self.sources = [self.x, self.memory, *self.wiring.parameters()]

    def run(self) -> list[Tensor]:
        source = Source(self.wiring.remember(self.memory, self.mask), None)
        starts = tuple(cell.start(len(self.x), self.x) for cell in self.wiring.layers)
        state = self.wiring.start(starts, source)
        features = self.wiring(Padded.full(self.x), state, source).values
        return [features, *torch.autograd.grad(features, self.sources, self.gradient.to(features.dtype))]

    def run_loop(self) -> list[Tensor]:
        """The same without graphs."""
        shape = self.wiring.shape
        self.wiring.shape = shape._replace(engine="loop")
        try:
            return self.run()
        finally:
            self.wiring.shape = shape


def difference(name: str) -> float:
    step = Step(name, 37, 21, 13, 64)
    for _ in range(3):
        found = step.run()
    pairs = zip(found, step.run_loop(), strict=True)
    return max(((a - b).norm() / b.norm().clamp_min(1e-30)).item() for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decoders", nargs="+", default=list(DECODERS))
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{'decoder':30}{'replayed':>10}{'loop':>10}{'first':>10}{'memory':>10}{'difference':>12}")
    for name in given.decoders:
        wrong = difference(name)
        step = Step(name, 128, 50, 50, 512)
        with torch.autocast("cuda", torch.bfloat16):
            loop = timed(step.run_loop, most=5)
            began = time.perf_counter()
            for _ in range(2):
                step.run()
            torch.cuda.synchronize()
            first = time.perf_counter() - began
            torch.cuda.reset_peak_memory_stats()
            replayed = timed(step.run)
        memory = torch.cuda.max_memory_allocated() / 2**20
        print(f"{name:30}{replayed:8.2f}ms{loop:8.1f}ms{first:9.2f}s{memory:7.0f}MiB{wrong:12.1e}", flush=True)


if __name__ == "__main__":
    main()
