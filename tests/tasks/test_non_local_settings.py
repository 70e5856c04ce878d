"""Non-local blocks from settings: over the steps of a text, and over the places of a film's frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.errors import ConfigError
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import jsonl

SMALL = ["model.hidden=8", "model.dropout=0", "data.cache=false", "training.device=cpu", "training.threads=1"]
FEW = ["training.steps=60", "training.average=none", "training.learning_rate=0.02", "training.batch_size=8"]


def films(folder: Path) -> str:
    """Four frames of 2 × 2 places with two channels: whether the bright place of the first frame lights up again."""
    chance, rows = np.random.default_rng(1), []
    for number in range(16):
        film = 0.1 * chance.normal(size=(4, 2, 2, 2))
        first, again = chance.integers(2, size=2), number % 2
        film[0, *first, 0] = 2.0
        film[3, *(first if again else 1 - first), 1] = 2.0
        rows.append({"frames": film.reshape(4, -1).round(3).tolist(), "label": "ny"[again]})
    return jsonl(folder / "films.jsonl", rows)


def trained(folder: Path, file: str, *overrides: str) -> Trained:
    given = {"train": file}
    begin(setup("classification", given=given, overrides=[*SMALL, *FEW, *overrides]), folder / "run", Silent())
    return load(folder / "run")


def test_a_film_is_learned_through_a_block_over_time_rows_and_columns(tmp_path: Path) -> None:
    file = films(tmp_path)
    block = 'model.non_local={name = "additive", shape = [2, 2]}'
    model = trained(tmp_path, file, "data.frames=frames", "data.label=label", block)
    network: Any = model.model
    assert network.non_local.block.channels == 2
    assert network.non_local.block.to_output.weight.abs().sum() > 0  # it has learned to look
    assert model.evaluate(file).values["accuracy"] == 1.0


def test_a_shape_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"shape = \[3\]: a step has 8 numbers"):
        trained(
            tmp_path,
            films(tmp_path),
            "data.frames=frames",
            "data.label=label",
            'model.non_local={name="dot", shape=[3]}',
        )
