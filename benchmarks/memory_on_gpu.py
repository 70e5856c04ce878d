"""The peak memory of a training step on a GPU: torch.nn.LSTM, recurra's engines, and `recompute`.

    python benchmarks/memory_on_gpu.py

One layer in bfloat16, forward and backward with a gradient of all outputs, the third such step in a process. Counted is
the most that torch had allocated, less what is there before: weights and batch. So outputs, all gradients, and the
buffers that an engine keeps from call to call are included. With `recompute` every 100th state is kept; the gradient
comes from the last output alone there, and `without outputs` leaves out the outputs, their gradient and that of the
batch, which any way to read a sequence of that length must have.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from recurra import Padded, Recurrent  # noqa: E402
from recurra.engines.graph import WORKSPACES  # noqa: E402

SHAPES = [(64, 64, 1024), (64, 512, 768)]
CELLS = {
    "torch.nn.LSTM": None,
    "lstm, vendor": ("lstm", "vendor"),
    "lstm, graph": ("lstm", "graph"),
    "peephole_lstm, graph": ("peephole_lstm", "graph"),
    "gru, graph": ("gru", "graph"),
    "min_gru, scan": ("min_gru", "scan"),
}
LONG = ["lstm, vendor", "peephole_lstm, graph", "min_gru, scan"]
MiB = 1 << 20


def peak(name: str, B: int, T: int, H: int, recompute: int = 0, only_last: bool = False) -> float:
    """MiB above weights and batch."""
    WORKSPACES.idle.clear()
    gc.collect()
    torch.cuda.empty_cache()
    torch.manual_seed(0)
    x = torch.randn(B, T, H, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    run: Callable[[], torch.Tensor]
    if (found := CELLS[name]) is None:
        lstm = torch.nn.LSTM(H, H, batch_first=True).to("cuda", torch.bfloat16)
        parameters = list(lstm.parameters())

        def run() -> torch.Tensor:
            outputs: torch.Tensor = lstm(x)[0]
            return outputs
    else:
        rnn = Recurrent(found[0], H, H, engine=found[1], recompute=recompute).to("cuda", torch.bfloat16)
        parameters = list(rnn.parameters())

        def run() -> torch.Tensor:
            return rnn(Padded.full(x))[0].values

    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    most = 0
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        outputs = run()
        total = outputs[:, -1].sum() if only_last else outputs.sum()
        total.backward()
        del outputs, total
        torch.cuda.synchronize()
        most = torch.cuda.max_memory_allocated()
        for tensor in (x, *parameters):
            tensor.grad = None
    return (most - before) / MiB


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; MiB above weights and batch\n")
    print(f"{'shape':>16} {'what':26}{'peak':>9}{'/ LSTM':>9}")
    for B, T, H in SHAPES:
        theirs = peak("torch.nn.LSTM", B, T, H)
        for name in CELLS:
            own = theirs if CELLS[name] is None else peak(name, B, T, H)
            print(f"{f'{B},{T},{H}':>16} {name:26}{own:9.0f}{own / theirs:9.2f}", flush=True)
    print("\n16 rows, 256 units; keeping every state, and with recompute = 100\n")
    print(f"{'what':26}{'steps':>8}{'recompute':>11}{'peak':>9}{'without outputs':>17}")
    for name in ["torch.nn.LSTM", *LONG]:
        for T in (1000, 10_000):
            for recompute in (0, 100) if CELLS[name] else (0,):
                own = peak(name, 16, T, 256, recompute, only_last=True)
                apart = own - 3 * 16 * T * 256 * 2 / MiB
                print(f"{name:26}{T:8}{recompute:11}{own:9.1f}{apart:17.1f}", flush=True)


if __name__ == "__main__":
    main()
