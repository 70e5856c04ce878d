"""The first guess of an autoregression against one that is known, and against a dense solution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.config import ForecastingModel
from recurra.config.forecasting import ForecastingTraining
from recurra.data.store import Store
from recurra.forecasts.first_guess import QUIET, Sums, first_guess
from recurra.models.forecaster import Forecaster
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load

HORIZON, LAGS, SEASON = 3, 6, 2


class OfSeason:
    """All that a guess asks of the conventions of a run."""

    class settings:
        class data:
            season = SEASON


def made() -> Any:
    torch.manual_seed(1)
    model = ForecastingModel(ahead="direct", hidden=4, horizon=HORIZON, lags=LAGS)
    return Forecaster(model, output="gaussian", size=1, from_nothing=False, season=SEASON)


def store_of(folder: Path, *series: Any) -> Store:
    rows = ({"values": x[:, None].astype(np.float32), "known": np.ones((len(x), 1), bool)} for x in series)
    return Store.write(folder / "store", rows)


def autoregressive(count: int, seed: int, noise: float) -> Any:
    draw = np.random.default_rng(seed)
    x = list(draw.normal(size=2))
    while len(x) < count:
        x.append(0.6 * x[-1] - 0.5 * x[-2] + noise * draw.normal())
    return np.array(x)


def test_the_guess_predicts_an_autoregressive_series_better_than_its_last_season(tmp_path: Path) -> None:
    model, convention = made(), OfSeason()
    before = model.density.readout.weight.detach().clone()
    store = store_of(tmp_path, *(autoregressive(200, seed, 1.0) for seed in range(5)))
    said = first_guess(convention, model, store)  # type: ignore[arg-type]
    assert said is not None
    assert "times that of repeating the last season" in said
    assert torch.equal(model.density.readout.weight, QUIET * before)
    x = autoregressive(2000, 99, 1.0)
    places = np.arange(LAGS, len(x) - HORIZON)
    last = x[places[:, None] + np.arange(-LAGS, 0)]
    gold, level = x[places[:, None] + np.arange(HORIZON)], last[:, -1:]
    base = model.direct.base(torch.from_numpy(last.astype(np.float32))[..., None]).detach().numpy()[..., 0]
    best = level + (last - level) @ np.linalg.lstsq(last - level, gold - level, rcond=None)[0]
    season = last[:, [-2, -1, -2]]
    errors = [np.square(said - gold).mean() for said in (best, base, season)]
    assert errors[0] <= errors[1] <= 1.05 * errors[0]
    assert errors[1] < 0.8 * errors[2]


def test_series_that_repeat_their_season_keep_that_rule(tmp_path: Path) -> None:
    model, store = made(), store_of(tmp_path, np.tile([1.0, -1.0], 40))
    before = model.direct.autoregression.detach().clone()
    assert first_guess(OfSeason(), model, store) is None  # type: ignore[arg-type]
    assert torch.equal(model.direct.autoregression, before)


def test_too_short_series_and_recursive_models_have_no_guess(tmp_path: Path) -> None:
    store = store_of(tmp_path, np.arange(3.0))
    assert first_guess(OfSeason(), made(), store) is None  # type: ignore[arg-type]
    recursive = Forecaster(ForecastingModel(ahead="recursive", hidden=4), output="gaussian", size=1, from_nothing=False)
    assert first_guess(OfSeason(), recursive, store) is None  # type: ignore[arg-type]


def test_sums_give_the_least_squares_solution_and_its_error() -> None:
    draw = np.random.default_rng(2)
    x, r = draw.normal(size=(50, 4)), 0.1 * draw.normal(size=(50, 2))  # so small that each counts as 1
    sums = Sums.zeros(4, 2).added(x[:20], r[:20]) | Sums.zeros(4, 2).added(x[20:], r[20:])
    wanted = np.linalg.lstsq(x, r, rcond=None)[0]
    np.testing.assert_allclose(sums.solved(0.0), wanted, atol=1e-9)
    assert sums.error(wanted.astype(np.float64)) == pytest.approx(np.square(r - x @ wanted).sum())
    assert sums.origins == 50
    far = Sums.zeros(4, 2).added(x[:1], np.array([[30.0, 40.0]]))  # a residual of √1250 has the weight 1/√1250
    assert far.residuals == pytest.approx(2500 / np.sqrt(1250))


def test_a_run_says_where_its_autoregression_starts_and_how_long_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, notes = tmp_path / "a.csv", list[str]()
    monkeypatch.setattr(Silent, "note", lambda self, text: notes.append(text))
    rows = (f"{number},{value:.5f}\n" for number, value in enumerate(autoregressive(60, 3, 1.0)))
    file.write_text("t,x\n" + "".join(rows))
    overrides = [
        "decoding.horizon=2",
        "data.season=2",
        "model.hidden=2",
        "data.cache=false",
        "training.batch_tokens=9999",
    ]
    begin(setup("forecasting", given={"train": str(file)}, overrides=overrides), tmp_path / "run", Silent())
    assert any(note.startswith("the autoregression starts from a least-squares fit") for note in notes)
    assert any("trained for 1,000 updates, at most 100 epochs" in note for note in notes)
    training = load(tmp_path / "run").task.settings.training
    assert (training.epochs, training.steps) == (100, 1000)


def test_only_what_has_no_limit_gets_the_usual_one() -> None:
    assert ForecastingTraining(epochs=300).limited(at_once=True, validated=True).steps is None
    assert ForecastingTraining(minutes=2).limited(at_once=True, validated=True).epochs is None
    for at_once, validated, usual in (
        (True, True, (100, 1000, 10)),
        (True, False, (100, 1000, None)),
        (False, True, (100, None, None)),
    ):
        found = ForecastingTraining().limited(at_once=at_once, validated=validated)
        assert (found.epochs, found.steps, found.patience) == usual
    assert ForecastingTraining(patience=3).limited(at_once=True, validated=True).patience == 3
