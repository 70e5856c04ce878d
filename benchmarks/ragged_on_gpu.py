"""Rows of different lengths on a GPU: recurra's engines, full and ragged, beside packed rows of torch.nn.LSTM.

    python benchmarks/ragged_on_gpu.py [--cells lstm peephole_lstm] [--engines vendor graph]

Forward and backward of one layer in bfloat16, lengths drawn evenly from half of T to T, drawn anew for each call as in
a training. Medians by CUDA events around calls from Python, taken turn by turn; `graph`: full and ragged (one draw)
inside a CUDA graph, where that can be recorded. `of full`: ragged over full; `packed`: torch's packed rows over ragged.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from recurra import Padded, Recurrent  # noqa: E402
from recurra.errors import RecurraError  # noqa: E402
from recurra.reports.speed_on_gpu import timed_in_graph  # noqa: E402

SHAPES = [(32, 64, 512), (128, 50, 512), (64, 64, 1024), (64, 512, 768)]
CELLS = ["lstm", '{name = "gru", reset = "after"}', "peephole_lstm", "gru"]


def taken(work: Callable[[], object]) -> float:
    """Milliseconds between CUDA events around one call."""
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    first.record()
    work()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last)


def drawn(B: int, T: int) -> Tensor:
    lengths = torch.randint(T // 2, T + 1, (B,))
    lengths[0] = T
    return lengths


def main() -> None:
    from recurra.commands.cells import spec

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", default=CELLS)
    parser.add_argument("--engines", nargs="+", default=["vendor", "graph"])
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; milliseconds")
    heads = ["full", "ragged", "of full", "packed", "packed/", "graph", "ragged", "of full"]
    print(f"{'shape':>14} {'cell':34}{'engine':9}" + "".join(f"{head:>9}" for head in heads))
    for B, T, H in SHAPES:
        torch.manual_seed(0)
        x = torch.randn(B, T, H, device="cuda").bfloat16().requires_grad_()
        gradient = torch.randn(B, T, H, device="cuda").bfloat16()
        lstm = torch.nn.LSTM(H, H, batch_first=True).to("cuda", torch.bfloat16)

        def packed(
            lstm: torch.nn.LSTM = lstm, x: Tensor = x, gradient: Tensor = gradient, B: int = B, T: int = T
        ) -> object:
            rows = pack_padded_sequence(x, drawn(B, T), batch_first=True, enforce_sorted=False)
            outputs = pad_packed_sequence(lstm(rows)[0], batch_first=True, total_length=T)[0]
            return torch.autograd.grad(outputs, [x, *lstm.parameters()], gradient)

        for cell in given.cells:
            for engine in given.engines:
                rnn = Recurrent(spec(cell), H, H, engine=engine).to("cuda", torch.bfloat16)
                sources = [x, *rnn.parameters()]

                def run(lengths: Tensor, rnn: Recurrent = rnn, sources: list[Tensor] = sources) -> object:
                    outputs = rnn(Padded(sources[0], lengths))[0].values
                    return torch.autograd.grad(outputs, sources, gradient)  # noqa: B023

                full, some = torch.full((B,), T), drawn(B, T)
                line = f"{f'{B},{T},{H}':>14} {cell:34}{engine:9}"
                try:
                    for _ in range(4):
                        run(full)
                        run(drawn(B, T))
                        packed()
                    turns = [
                        (taken(lambda: run(full)), taken(lambda: run(drawn(B, T))), taken(packed))  # noqa: B023
                        for _ in range(given.turns)
                    ]
                    a, b, c = (statistics.median(times) for times in zip(*turns, strict=True))
                    line += f"{a:9.3f}{b:9.3f}{b / a:9.2f}{c:9.3f}{c / b:9.2f}"
                    pair = [timed_in_graph(lambda n=n: run(n), 0.3) for n in (full, some)]  # type: ignore[misc]
                    line += "".join(f"{'-':>9}" if ms is None else f"{ms:9.3f}" for ms in pair)
                    line += f"{pair[1] / pair[0]:9.2f}" if pair[0] and pair[1] else f"{'-':>9}"
                except RecurraError as reason:
                    line += f"  {str(reason).split(': ', 1)[-1][:90]}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
