"""Draws what a sweep found: python docs/draw_sweep.py [FOLDER].

Writes docs/pictures/sweep_importance.svg and sweep_trials.svg. The sweep has 40 trials on the Japanese vowels of nine
speakers, read from $RECURRA_DATA (../shared/data). It is kept in FOLDER, if that is given, and goes on there.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.sweeping.pictures import importance_scene, parallel_scene
from recurra.sweeping.results import Sweep
from recurra.views.svg import as_svg

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("RECURRA_DATA", HERE.parents[1] / "shared" / "data")) / "japanese_vowels"

WIDTH = 760.0

SPACE = {
    "model.cell": ["gru", "lstm"],
    "model.hidden": {"from": 4, "to": 32, "step": 4},
    "model.dropout": {"from": 0.0, "to": 0.6},
    "training.learning_rate": {"from": 3e-4, "to": 3e-2, "log": True},
}


def main(out: Path) -> None:
    found: Sweep = recurra.sweep(
        "classification",
        SPACE,
        train=str(DATA / "train.jsonl.gz"),
        valid="30%",
        out=out,
        trials=40,
        settings={"training.epochs": 6, "training.batch_size": 16, "training.threads": 1, "training.device": "cpu"},
    )
    print(found)
    scenes = {"importance": importance_scene(found.importances, WIDTH), "trials": parallel_scene(found, WIDTH)}
    for name, scene in scenes.items():
        (HERE / "pictures" / f"sweep_{name}.svg").write_text(as_svg(scene), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]) / "sweep")
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "sweep")
