"""Translation by exported models beside the run in torch and the floor of the machine: sentences a second of CPU.

    python benchmarks/exported_translation.py FOLDER [--repeat 5] [--threads 1]

FOLDER holds train.en, train.de and test.en. BiLSTM of 256 a direction, LSTM of 512, vectors of 256, 8,000 words a side,
bilinear attention with input feeding, three updates (speed only); every sentence is made 15 tokens long. The floor is
the time that the products' multiplications take at the rate of a loop that does nothing else, or that it takes to read
the weights once a step from the caches, whichever is longer; both rates are measured in the same run.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

CELLS = ((1, 1), (1, 32), (5, 1), (5, 32))
LENGTH, SENTENCES = 15, 64
BEAM = ["decoding.search=beam", "decoding.width=5"]
SHAPE = [
    "data.source.tokens=symbols",
    "data.target.tokens=symbols",
    "data.source.max_size=8000",
    "data.target.max_size=8000",
    "data.cache=false",
    "model.embedding=256",
    "model.hidden=512",
    "model.attention=bilinear",
    "model.wiring=feeding",
    "training.batch_size=64",
    "training.steps=3",
    "training.average=none",
    "training.device=cpu",
    f"decoding.min_length={LENGTH}",
    f"decoding.max_length={LENGTH}",
    "decoding.max_ratio=100",
]

PER_WORD = 256 * 2048 + 256 * 2048 + 512 * 512
PER_TOKEN = 768 * 2048 + 512 * 2048 + 1024 * 512 + 512 * 8000
"""Weights that a word of the source, and a token of the target, is multiplied by."""

RATES = """
#include <stdint.h>
typedef float vector __attribute__((vector_size(64)));
float multiplied(int64_t n) {
    vector s[16], x = {0};
    for (int i = 0; i < 16; i++) s[i] = x + (float)i;
    x += 0.999f;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < 16; i++) s[i] = s[i] * x + x;
    for (int i = 1; i < 16; i++) s[0] += s[i];
    return s[0][0];
}
float read_once(const vector *w, int64_t n) {
    vector s[8] = {{0}};
    for (int64_t k = 0; k + 8 <= n; k += 8)
        for (int i = 0; i < 8; i++) s[i] += w[k + i];
    for (int i = 1; i < 8; i++) s[0] += s[i];
    return s[0][0];
}
"""


def least(work: Callable[[], object], repeat: int) -> float:
    """CPU seconds, the least of several."""
    work()
    found = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def rates() -> tuple[float, float]:
    """Multiplications, and bytes that are read, a second."""
    import numpy as np

    from recurra.engines.c_library import library

    code = library(RATES)
    code.multiplied.argtypes, code.read_once.argtypes = [ctypes.c_int64], [ctypes.c_void_p, ctypes.c_int64]
    steps, size = 1 << 21, 4 * (PER_TOKEN // 1024 * 1024)
    held = np.zeros(size + 64, np.uint8)
    start = held.ctypes.data + -held.ctypes.data % 64
    multiplied = steps * 16 * 16 / least(lambda: code.multiplied(steps), 20)
    return multiplied, size / least(lambda: code.read_once(start, size // 64), 50)


def floor(width: int, rows: int, words: float, multiplied: float, read: float) -> float:
    """Sentences a second, at most."""
    step = max(rows * width * PER_TOKEN / multiplied, 4 * PER_TOKEN / read)
    return rows / (LENGTH * step + words * max(rows * PER_WORD / multiplied, 4 * PER_WORD / read / 2))


def main() -> None:
    import torch

    import recurra
    from recurra.exported import load_exported
    from recurra.exporting.folder import export
    from recurra.programs.narrowing import NARROWEST
    from recurra.training.trained import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--run", type=Path, help="a run of this shape that there is already")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = (options.folder / "test.en").read_text("utf-8").splitlines()[:SENTENCES]
    words = sum(len(line.split()) for line in lines) / len(lines)
    multiplied, read = rates()
    print(f"multiplications of float32: {multiplied / 1e9:.0f} G a second; reads of the caches: {read / 1e9:.0f} GB")
    with tempfile.TemporaryDirectory() as place:
        run = options.run or Path(place) / "run"
        if options.run is None:
            files = f"{options.folder}/train.en,{options.folder}/train.de"
            recurra.train("seq2seq", train=files, out=run, settings=dict(each.split("=") for each in SHAPE))
        ways: dict[str, Any] = {"torch": load(run)}
        for width in ("float32", *reversed(NARROWEST)):
            export(run, Path(place) / width, weights=width)
            ways[width] = load_exported(Path(place) / width, by="c")
        for beam, rows in CELLS:
            most = floor(beam, rows, words, multiplied, read)
            found = []
            for name, way in ways.items():
                asked = way.with_settings(["decoding.search=greedy"] if beam == 1 else BEAM)

                def work(asked: Any = asked, rows: int = rows) -> None:
                    for first in range(0, len(lines), rows):
                        asked.predict(lines[first : first + rows], batch_tokens=1 << 30)

                rate = len(lines) / least(work, options.repeat)
                found.append(f"{name} {rate:,.0f} ({rate / most:.0%})")
            print(f"beam {beam}, {rows} at once: {', '.join(found)}; floor of float32 {most:,.0f}", flush=True)


if __name__ == "__main__":
    main()
