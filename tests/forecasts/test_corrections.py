"""Intervals of trained runs: from which forecasts they are corrected."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.forecasts.reviews import least_coprime
from recurra.metrics import forecasts
from tests.tasks.test_forecasting import trained, write

SEASON = 4


def lively_at_one_phase(path: Path, steps: int, seed: int) -> str:
    """Values that are ten times as uncertain at one phase of their season as at the others."""
    draw = np.random.default_rng(seed)
    spread = np.where(np.arange(steps) % SEASON == 0, 10.0, 1.0)
    return write(path, "x\n" + "".join(f"{value:.5f}\n" for value in spread * draw.normal(size=steps)))


@pytest.mark.parametrize("ahead", ["direct", "recursive"])
def test_intervals_are_corrected_from_all_phases_also_where_scores_begin_at_one(tmp_path: Path, ahead: str) -> None:
    train, valid = (lively_at_one_phase(tmp_path / f"{seed}.csv", 160, seed) for seed in range(2))
    options = ("training.steps=2", f"model.ahead={ahead}", f"data.season={SEASON}", "data.log=false")
    found: list[dict[str, Any]] = []
    for stride in (1, SEASON, 2 * SEASON + 1):
        folder = tmp_path / str(stride)
        folder.mkdir()
        trained(folder, train, *options, f"evaluation.stride={stride}", valid=valid)
        found.append(json.loads((folder / "run" / "calibration.json").read_text("utf-8")))
    every, of_one_phase, sparse = found
    assert of_one_phase == every
    for kind, known in sparse.items():  # which comes upon all phases by itself, is taken as it is
        assert 0 < known["counts"][0][0] < every[kind]["counts"][0][0]


@pytest.mark.parametrize(("least", "season"), [(1, 24), (24, 24), (7, 7), (10, 12), (5, 0), (6, 1)])
def test_origins_a_coprime_number_of_steps_apart_come_upon_every_phase(least: int, season: int) -> None:
    stride = least_coprime(least, season)
    assert least <= stride < least + max(1, season)
    assert len({number * stride % max(1, season) for number in range(season)}) == season


def test_a_model_that_is_too_unsure_is_corrected_less_by_few_blocks_of_time(tmp_path: Path) -> None:
    draw, found = np.random.default_rng(0), list[float]()
    train = write(tmp_path / "train.csv", "x\n" + "".join(f"{x:.5f}\n" for x in draw.normal(size=160)))
    for blocks in (6, 60):
        folder = tmp_path / str(blocks)
        folder.mkdir()
        calm = 0.02 * draw.normal(size=SEASON + 3 * blocks)  # the horizon is 3
        valid = write(folder / "valid.csv", "x\n" + "".join(f"{x:.5f}\n" for x in calm))
        model = trained(folder, train, "training.steps=1", f"data.season={SEASON}", "data.log=false", valid=valid)
        task: Any = model.task
        found.append(float(task.intervals.calibrations["paths"].at(0.9).mean()))
    few, many = found
    assert many < -0.3  # half of the width is all that an interval can be drawn in
    assert many + 0.1 < few < 0


def test_corrections_come_from_a_fan_a_piece_at_a_time_and_to_the_same_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(0)
    train, valid = (
        write(tmp_path / f"{name}.csv", "x,y\n" + "".join(f"{x:.5f},{y:.5f}\n" for x, y in draw.normal(size=(n, 2))))
        for name, n in (("train", 100), ("valid", 700))
    )
    model = trained(tmp_path, train, "training.steps=1", "data.season=1", valid=valid)
    examples, outputs = model.to_score([valid])
    task: Any = model.task
    assert outputs[0].fan.dtype == np.float32
    found, most = [], []
    for piece in (1 << 40, 500):
        monkeypatch.setattr(forecasts, "PIECE", piece)
        tracemalloc.start()
        again = task.intervals.calibrated(model.model, examples, [], outputs)
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        found.append(again.calibrations["paths"].quantiles.tobytes())
    assert found[0] == found[1] == task.intervals.calibrations["paths"].quantiles.tobytes()
    assert most[1] + outputs[0].fan.nbytes < most[0]
