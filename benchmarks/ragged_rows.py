"""Ragged rows on torch's kernels: packing them, as torch does, or holding the cell over padding, as recurra does.

    python benchmarks/ragged_rows.py [--threads 2]

Forward and backward of one layer, float32, lengths drawn evenly from half of T to T; times over that of full rows,
taken turn by turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from recurra import Padded, from_torch

SHAPES = [(32, 30, 256, 256), (64, 50, 512, 512), (8, 100, 128, 128), (64, 20, 64, 64)]


def timed(work: Callable[[], torch.Tensor]) -> float:
    started = time.perf_counter()
    work().sum().backward()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print(f"{torch.get_num_threads()} thread(s), torch {torch.__version__}; time over that of full rows\n")
    print(f"{'module':8}{'(B, T, I, H)':24}{'pack':>8}{'hold':>8}")
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for B, T, I, H in SHAPES:  # noqa: E741  # the letters of the equations
            theirs: nn.LSTM | nn.GRU | nn.RNN = kind(I, H, batch_first=True)
            ours = from_torch(theirs)
            x = torch.randn(B, T, I, requires_grad=True)
            lengths = torch.randint(T // 2, T + 1, (B,))
            lengths[0] = T

            def full(ours: nn.Module = ours, x: torch.Tensor = x) -> torch.Tensor:
                return ours(Padded.full(x))[0].values

            def pack(
                theirs: nn.Module = theirs, x: torch.Tensor = x, lengths: torch.Tensor = lengths, T: int = T
            ) -> torch.Tensor:
                outputs, _ = theirs(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
                return pad_packed_sequence(outputs, batch_first=True, total_length=T)[0]

            def hold(ours: nn.Module = ours, x: torch.Tensor = x, lengths: torch.Tensor = lengths) -> torch.Tensor:
                return ours(Padded(x, lengths))[0].values

            for work in (full, pack, hold):
                timed(work)
            turns = [(timed(full), timed(pack), timed(hold)) for _ in range(9)]
            packed = statistics.median(turn[1] / turn[0] for turn in turns)
            held = statistics.median(turn[2] / turn[0] for turn in turns)
            print(f"{kind.__name__:8}{(B, T, I, H)!s:24}{packed:8.2f}{held:8.2f}", flush=True)


if __name__ == "__main__":
    main()
