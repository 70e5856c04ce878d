"""What a synthetic voice says, written as digits: python examples/spoken_digits.py [STEPS]

Sound becomes 24 numbers every 10 ms, a pyramid makes one place of four of these frames, and attention, which sees where
it looked last, goes from left to right (data/speech.py makes the voices; those of test are not those of training). In
half a minute:

    of 40 recordings of other speakers, 7% of the digits are wrong
    1.23 seconds of 8 2 8
    heard: 8 at 0.12 s, 2 at 0.50 s, 8 at 0.77 s
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from data.speech import recordings, write

import recurra

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {part: Path(folder) / f"{part}.npz" for part in ("train", "valid", "test")}
        for seed, (part, file) in enumerate(files.items()):
            made = recordings(2 * STEPS if part == "train" else 40, seed=seed, speakers=20, digits=(2, 4))
            write(file, made)
        settings = {
            "data": {"frames": "frames", "target": "digits", "target.tokens": "symbols", "cache": False},
            "model": {
                "encoder": "pyramid",
                "attention": {"name": "bilinear", "terms": ["location"]},
                "embedding": 32,
                "hidden": 96,
                "dropout": 0.1,
            },
            "augmentation": {"noise": 0.1, "scale": 0.1},
            "training": {"steps": STEPS, "batch_size": 16, "learning_rate": 0.005, "average": None},
        }
        parts = {part: str(file) for part, file in files.items() if part != "test"}
        model = recurra.train("seq2seq", **parts, out=Path(folder) / "run", settings=settings)
        error = model.evaluate(files["test"]).values["symbol_error_rate"]
        print(f"of 40 recordings of other speakers, {100 * error:.0f}% of the digits are wrong")
        answer = next(model.predict_file(files["test"], [], detail=True))
        assert answer.alignment is not None
        weights = answer.alignment[:-1]  # the last row is that of the end
        seconds = 0.04 * (weights @ np.arange(weights.shape[1]) + 0.5)  # a place is four frames of 10 ms
        heard = [f"{digit} at {at:.2f} s" for digit, at in zip(answer.detail["tokens"], seconds, strict=True)]
        print(f"{len(made[0].samples) / 8000:.2f} seconds of {' '.join(made[0].digits)}")
        print(f"heard: {', '.join(heard)}")


if __name__ == "__main__":
    main()
