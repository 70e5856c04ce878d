"""A cell that reads gaps: forecasting gives it values, masks and elapsed times, and it learns from them."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.config.frequency import Frequency
from recurra.errors import ConfigError, DataError
from recurra.reading.steps import Steps
from recurra.runs import begin, resume, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.test_forecasting import SMALL, trained, write
from tests.training.test_trainer import StopsAt

ROOT = Path(__file__).parents[2]
GAPS = ("data.missing=previous", "model.cell=gru_d", "model.engine=auto", "model.ahead=recursive")


def doses(steps: int, series: int, seed: int) -> str:
    """A dose is given again at random, after the first always the same one; its effect fades by 0.6 a step."""
    draw, lines = np.random.default_rng(seed), ["series,time,dose,effect"]
    for name in range(series):
        dose, since = 1.2, 0
        for t in range(steps):
            effect = dose * 0.6**since
            is_given = t == 0 or draw.random() < 0.25
            dose, since = (1.2 if t == 0 else 1.0, 0) if is_given else (dose, since + 1)
            lines.append(f"{name},{t},{dose if is_given else ''},{effect:.4f}")
    return "\n".join(lines) + "\n"


def test_a_cell_that_sees_gaps_learns_what_carried_values_hide(tmp_path: Path) -> None:
    train, test = write(tmp_path / "a.csv", doses(40, 8, 1)), write(tmp_path / "b.csv", doses(40, 4, 2))
    few = ["data.missing=previous", "training.epochs=50", "model.hidden=8", "model.engine=auto", "decoding.horizon=1"]
    few.append("model.ahead=recursive")  # whose network alone predicts
    errors = {}
    for cell in ("gru", "gru_d"):
        model = trained(tmp_path / cell, train, *few, f"model.cell={cell}")
        errors[cell] = model.evaluate(test).values["mae"]
    assert errors["gru_d"] < 0.5 * errors["gru"], errors


def small(tmp_path: Path, *overrides: str) -> Trained:
    text = "time,x,y\n" + "".join(f"{t},{math.sin(t):.4f},{'' if t % 3 else t % 2}\n" for t in range(24))
    return trained(tmp_path, write(tmp_path / "a.csv", text), *GAPS, "training.steps=4", *overrides)


def test_what_stands_in_place_of_a_missing_value_does_not_matter(tmp_path: Path) -> None:
    model = small(tmp_path)
    [steps] = model.task.read([tmp_path / "a.csv"])
    other = dataclasses.replace(steps, values=np.where(steps.known, steps.values, 99.0))
    found: list[Any] = [model.task.predict(model.model, model.task.batch([model.task.encode(each)]))[0]
                        for each in (steps, other)]  # fmt: skip
    np.testing.assert_allclose(found[0].values, found[1].values)
    assert not np.array_equal(steps.values, other.values)


def test_steps_are_counted_or_timed_in_units_of_the_usual_step(tmp_path: Path) -> None:
    task: Any = small(tmp_path).task
    values, known = np.zeros((4, 2)), np.array([[True, True], [True, False], [False, False], [True, True]])
    counted = Steps("", values, known, 0, 1, "a:1")
    np.testing.assert_array_equal(task.encode(counted)["gaps"], np.column_stack([known, [0, 1, 1, 1]]))
    task.conventions.facts = dataclasses.replace(task.conventions.facts, step=10.0)
    timed = dataclasses.replace(counted, numbers=np.array([5.0, 15.0, 17.0, 47.0]))
    np.testing.assert_allclose(task.encode(timed)["gaps"][:, 2], [0, 1, 0.2, 3])
    task.conventions.facts = dataclasses.replace(task.conventions.facts, step=3600.0)
    at = np.array(["2026-03-01T00", "2026-03-01T01", "2026-03-01T04", "2026-03-02T04"], "datetime64[s]")
    dated = dataclasses.replace(counted, times=at)
    np.testing.assert_allclose(task.encode(dated)["gaps"][:, 2], [0, 1, 3, 24])
    np.testing.assert_allclose(task.encode(dated.reversed())["gaps"][:, 2], [0, 24, 3, 1])
    regular = dataclasses.replace(dated, frequency=Frequency.of("1h"))
    np.testing.assert_allclose(task.encode(regular)["gaps"][:, 2], [0, 1, 1, 1])


def test_steps_that_are_read_and_not_scored_were_observed_all_the_same(tmp_path: Path) -> None:
    task = small(tmp_path).task
    steps = Steps("", np.zeros((3, 2)), np.ones((3, 2), bool), 0, 1, "a:1").unscored(2)
    row = task.encode(steps)
    assert row["gaps"][:, :2].all()
    assert row["known"].tolist() == [[False] * 2, [False] * 2, [True] * 2]


def test_a_series_read_in_parts_or_as_a_whole_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(tmp_path)
    whole = model.evaluate(tmp_path / "a.csv").values
    monkeypatch.setattr("recurra.models.reviewing.CHUNK", 5)
    parts = model.evaluate(tmp_path / "a.csv").values
    assert parts["mae"] == pytest.approx(whole["mae"], rel=1e-5)
    assert parts["nll"] == pytest.approx(whole["nll"], rel=1e-5)


def test_predicted_steps_are_read_as_observed_one_step_later(tmp_path: Path) -> None:
    model = small(tmp_path, "decoding.horizon=3")
    network: Any = model.model
    [steps] = model.task.read([tmp_path / "a.csv"])
    batch: Any = model.task.batch([model.task.encode(steps)])
    [forecast] = network.predict(batch, horizon=3)
    x = torch.cat([batch.values.values, batch.gaps], dim=2)
    for step in range(3):
        h, _ = network.recurrent(network.seen(batch)._replace(values=x, lengths=torch.tensor([x.shape[1]])))
        said = network.density.best(h.values[:, -1])
        np.testing.assert_allclose(forecast.values[step], said.detach()[0].double().numpy(), atol=1e-5)
        x = torch.cat([x, torch.cat([said, torch.ones(1, 3)], dim=1).unsqueeze(1)], dim=1)


def test_a_broken_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", doses(20, 3, 1))
    changes = [*SMALL, *GAPS, "training.epochs=2", "data.window=8", "training.forcing=0.5"]
    changes += ["model.input_dropout=0.3", "model.layers=2"]
    this = setup("forecasting", given={"train": file, "valid": ""}, overrides=changes)
    begin(this, tmp_path / "whole", Silent())
    with pytest.raises(MemoryError):
        begin(this, tmp_path / "broken", StopsAt(2))
    resume(tmp_path / "broken", Silent())
    weights = [load(tmp_path / name).model.state_dict() for name in ("whole", "broken")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_layer_that_mixes_values_with_gaps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.embedding = 4 mixes values .* Set model\.embedding = 0\."):
        small(tmp_path, "model.embedding=4")


def test_another_number_of_variables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"variables = 3, but a step has 2 values .* Leave variables out\."):
        small(tmp_path, 'model.cell={name="gru_d",variables=3}')


def test_too_small_an_input_is_refused() -> None:
    from recurra import Recurrent

    with pytest.raises(ConfigError, match=r"variables = 2 needs an input of at least 5 numbers .* input_size is 4"):
        Recurrent({"name": "gru_d", "variables": 2}, 4, 3)


def test_the_recipe_loads_and_learns(tmp_path: Path) -> None:
    file, found = write(tmp_path / "a.csv", doses(20, 3, 1)), []
    small = ["data.cache=false", "training.threads=1", "model.hidden=8", "training.average=none", "training.warmup=0"]
    for steps in (1, 40):
        own = [*small, f"training.steps={steps}", "training.epochs=none", "training.learning_rate=0.02"]
        this = setup(str(ROOT / "recipes" / "gru_d.toml"), given={"train": file}, overrides=own)
        begin(this, tmp_path / str(steps), Silent())
        found.append(load(tmp_path / str(steps)))
    assert found[1].task.described() == "series of 2 values, GRU-D 8, gaussian output"
    costs = [model.evaluate(file).values["nll"] for model in found]
    assert costs[1] < costs[0] - 0.3


def classifier(folder: Path, cell: str, *overrides: str) -> Trained:
    """Whether the second number was measured at the last of four steps; its value tells nothing."""
    draw, rows = np.random.default_rng(1), list[str]()
    for _ in range(32):
        known = draw.random(4) < 0.5
        frames = [[round(float(draw.normal()), 3), 1.5 if each else None] for each in known]
        rows.append(json.dumps({"frames": frames, "label": "yes" if known[-1] else "no"}))
    file = write(folder.parent / "a.jsonl", "\n".join(rows) + "\n")
    changes = [f"model.cell={cell}", "model.hidden=6", "model.dropout=0", "model.summary=last", "data.cache=false"]
    changes += ["training.device=cpu", "training.threads=1", "training.average=none", "training.learning_rate=0.02"]
    changes += ["model.bidirectional=false", *overrides]
    begin(setup("classification", given={"train": file, "valid": ""}, overrides=changes), folder, Silent())
    return load(folder)


def test_a_classifier_of_series_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:1: 'frames' contains a number at step \d that is missing"):
        classifier(tmp_path / "refused", "gru_d", "training.steps=1")
    model = classifier(tmp_path / "run", "gru_d", "data.missing=mean", "training.steps=40")
    assert model.evaluate(tmp_path / "a.jsonl").values["accuracy"] > 0.95
    task: Any = model.task
    row = task.encode(next(task.questions(None, ["[[1, 1.5], [2, null]]"])))
    assert row["frames"][:, 2:].tolist() == [[1, 1, 1], [1, 0, 1]]
    assert row["frames"][1, 1] == 0  # the mean
    plain = classifier(tmp_path / "plain", "gru", "data.missing=mean", "training.steps=1")
    assert plain.task.encode(next(plain.task.questions(None, ["[[1, null]]"])))["frames"].shape == (1, 2)
    with pytest.raises(ConfigError, match=r"augmentation\.noise applies .* 'gru_d' reads masks beside the values"):
        classifier(tmp_path / "refused", "gru_d", "data.missing=mean", "augmentation.noise=0.1")


def test_irregular_times_and_covariates_of_a_table_reach_the_cell(tmp_path: Path) -> None:
    times = np.cumsum([1.0, 2.0, 2.0, 7.5, 2.0, 0.5, 2.0, 2.0, 3.0, 2.0])
    rows = [f"{t},{math.sin(t):.3f},{number % 2}" for number, t in enumerate(times)]
    file = write(tmp_path / "a.csv", "time,x,is_open\n" + "\n".join(rows) + "\n")
    ahead = write(tmp_path / "b.csv", "time,x,is_open\n" + "\n".join([*rows, "26,,1", "28,,0"]) + "\n")
    options = (*GAPS, "training.steps=2", "decoding.horizon=2", 'data.future=["is_open"]', "data.frequency=irregular")
    model = trained(tmp_path, file, *options)
    [steps] = model.task.read([file])
    elapsed = model.task.encode(steps)["gaps"][:, 1]
    np.testing.assert_allclose(elapsed, [0, *np.diff(times) / 2], rtol=1e-6)  # the usual step is 2
    network: Any = model.model
    assert network.recurrent.input_size == 1 + 1 + 1 + 1  # value, mask, time, covariate
    [answer] = list(model.predict_file(ahead, []))
    assert len(answer.detail["values"]) == 2
    assert np.isfinite(model.evaluate(file).values["mae"])
