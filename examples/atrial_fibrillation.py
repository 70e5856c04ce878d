"""Atrial fibrillation from the seconds between heart beats: python examples/atrial_fibrillation.py

Where $RECURRA_DATA has afdb_rr (the MIT-BIH AF database) it is read; otherwise rhythms are made up.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recurra

BEATS = 100
DATA = Path(os.environ.get("RECURRA_DATA", "")) / "afdb_rr"


def made_up(seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Windows (120, 100), half of them regular, with intervals that swing with the breath; the others drawn anew."""
    chance = np.random.default_rng(seed)
    pace, breath, start = (chance.uniform(low, high, (120, 1)) for low, high in ((0.6, 1.0), (0.8, 1.6), (0, 6)))
    regular = 0.04 * np.sin(np.arange(BEATS) * breath + start) + chance.normal(0, 0.02, (120, BEATS))
    is_afib = np.arange(120) % 2 == 1
    return (pace + np.where(is_afib[:, None], chance.normal(0, 0.18, (120, BEATS)), regular)).clip(0.3), is_afib


def real(part: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Every fourth window of the recordings; AF where it is the rhythm of more than half of the beats."""
    names = json.loads((DATA / "split.json").read_text("utf-8"))[part]
    with np.load(DATA / "afdb_rr.npz") as archive:
        found = [(archive[f"rr_{name}"] / 250, archive[f"rhythm_{name}"] == 1) for name in names]
    cut = [[side[: len(side) // BEATS * BEATS].reshape(-1, BEATS)[::4] for side in pair] for pair in found]
    return np.concatenate([beats for beats, _ in cut]), np.concatenate([rhythm.mean(axis=1) > 0.5 for _, rhythm in cut])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {part: str(Path(folder) / f"{part}.npz") for part in ("train", "valid", "test")}
        for seed, (part, file) in enumerate(files.items()):
            intervals, is_afib = real(part) if DATA.is_dir() else made_up(seed)
            np.savez(file, intervals=intervals, label=np.where(is_afib, "afib", "other"))
        settings = {
            "data": {"frames": "intervals", "positive": "afib", "cache": False},
            "model": {"hidden": 16, "summary": "max", "dropout": 0.1},
            "training": {"epochs": 12, "batch_size": 16, "learning_rate": 0.01, "average": None},
        }
        run = Path(folder) / "run"
        model = recurra.train("classification", train=files["train"], valid=files["valid"], out=run, settings=settings)
        scores = model.evaluate(files["test"])
        for name in ("accuracy", "sensitivity", "specificity", "auc"):
            print(f"{name}: {scores.values[name]:.2f}")


if __name__ == "__main__":
    main()
