"""The memory of a training step: torch.nn.LSTM, the planned engine, and the planned engine with `recompute`.

    python benchmarks/memory.py

Each row is a process of its own; what it prints is the highest resident memory during three training steps (loss on the
last output) less that before them, batch, outputs and gradients included.
"""

from __future__ import annotations

import json
import subprocess
import sys

ROWS = [
    ("torch.nn.LSTM", "torch", 1000, 0),
    ("lstm, planned", "lstm", 1000, 0),
    ("peephole_lstm, planned", "peephole_lstm", 1000, 0),
    ("gru, planned", "gru", 1000, 0),
    ("peephole_lstm, planned", "peephole_lstm", 10_000, 0),
    ("peephole_lstm, planned, recompute = 100", "peephole_lstm", 1000, 100),
    ("peephole_lstm, planned, recompute = 100", "peephole_lstm", 10_000, 100),
]
SIZE, BATCH = 256, 16


def measure(cell: str, steps: int, recompute: int) -> float:
    import resource

    import torch

    from recurra import Padded, Recurrent

    torch.set_num_threads(2)
    x = torch.randn(BATCH, steps, SIZE)
    rnn = torch.nn.LSTM(SIZE, SIZE, batch_first=True) if cell == "torch" else None
    ours = Recurrent("elman" if rnn else cell, SIZE, SIZE, engine="planned", recompute=recompute)
    warm = Padded.full(x[:, :20].clone())
    (ours(warm)[0].values.sum() if rnn is None else rnn(warm.values)[0].sum()).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        outputs = rnn(x)[0] if rnn is not None else ours(Padded.full(x))[0].values
        outputs[:, -1].sum().backward()
        del outputs
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    print(f"{BATCH} rows, input and hidden {SIZE}, float32; MiB above what the process held before\n")
    print(f"{'what':42}{'steps':>8}{'MiB':>8}")
    for name, cell, steps, recompute in ROWS:
        command = [sys.executable, __file__, json.dumps([cell, steps, recompute])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{name:42}{steps:8}{float(done.stdout):8.0f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(measure(*json.loads(sys.argv[1])))
    else:
        main()
