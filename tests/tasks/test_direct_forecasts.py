"""Forecasts of a whole horizon at once: against the equations in NumPy, and what is found in the training data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.data.normal import Normal
from recurra.data.origins import Origins
from recurra.data.season import found_season
from recurra.data.unit import Unit
from recurra.errors import ConfigError, DataError
from recurra.models.direct import Direct
from recurra.padding import Padded
from recurra.reading.outlook import is_better_as_log
from recurra.runs import begin, resume, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.test_forecasting import SMALL, write
from tests.training.test_trainer import StopsAt

Floats = NDArray[np.float64]


def seasonal(path: Path, steps: int, *, series: int = 1, start: int = 0, season: int = 6, level: float = 50.0) -> str:
    """Series with a season, each on a level of its own; with noise that is the same whatever part is written."""
    lines = ["step,series,x"]
    for number in range(series):
        draw = np.random.default_rng(number).normal(size=1000)
        for t in range(start, start + steps):
            wave = 5 * np.sin(2 * np.pi * t / season) + draw[t]
            lines.append(f"{t},s{number},{(level + wave) * 10**number:.6f}")
    return write(path, "\n".join(lines) + "\n")


def trained(folder: Path, file: str, *overrides: str, valid: str = "", test: str = "") -> Trained:
    given = {"train": file, "valid": valid, "test": test}
    this = setup("forecasting", given=given, overrides=[*SMALL, *overrides])
    begin(this, folder / "run", Silent())
    return load(folder / "run")


def by_hand(network: Any, h: Floats, recent: Floats) -> tuple[Floats, Floats]:
    """f and b of each step ahead, (K, F) and (K, d), by the equations, from h (H,) and the last values (L, d)."""
    weights = {name: value.detach().double().numpy() for name, value in network.direct.named_parameters()}
    hidden = np.maximum(weights["hidden.weight"] @ h + weights["hidden.bias"], 0)
    features, base = [], []
    context = weights["features.weight"].shape[1]
    for k in range(network.direct.horizon):
        part = slice(k * context, (k + 1) * context)
        c = weights["contexts.weight"][part] @ hidden + weights["contexts.bias"][part]
        features.append(np.maximum(weights["features.weight"] @ c + weights["features.bias"], 0))
        level = recent[-1]
        base.append(level + sum(a * (x - level) for a, x in zip(weights["autoregression"][k], recent, strict=True)))
    return np.array(features), np.array(base)


def test_forecasts_are_those_of_the_equations(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 60)
    model = trained(tmp_path, file, "training.steps=20", "training.precision=float64", "model.output=gaussian")
    network: Any = model.model.double()
    [steps] = model.task.read([file])
    task: Any = model.task
    z = task.conventions.unit_of(steps).scaled(steps.values).astype(np.float32).astype(np.float64)
    features, _ = network.read(Padded.full(torch.from_numpy(z)[None]))
    lags = network.direct.lags
    recent = np.concatenate([np.repeat(z[:1], lags, axis=0), z])[-lags:]
    f, base = by_hand(network, features.values[0, -1].detach().numpy(), recent)
    readout = network.density.readout
    mean = f @ readout.weight[:1].detach().numpy().T + readout.bias[:1].detach().numpy() + base
    wanted = task.conventions.unit_of(steps).ahead(mean, steps.values[-1])
    [answer] = model.predict_file(file, [], detail=True)
    assert np.allclose(answer.detail["values"], wanted, rtol=1e-5)
    assert np.allclose(answer.detail["quantiles"]["0.5"], answer.detail["values"])


def test_the_loss_is_the_mean_over_the_horizon_of_all_forecasts_that_are_known(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 45)
    model = trained(tmp_path, file, "training.steps=2", "training.precision=float64", "model.output=squared_error")
    task: Any = model.task
    network: Any = model.model.double()
    [steps] = task.read([file])
    row = task.encode(steps)
    horizon, season = network.direct.horizon, task.settings.data.season
    windows = Origins(np.array([45]), count=32, lead=task.settings.data.window, horizon=horizon, earliest=season - 1)
    rows = []
    for _, start, end, first, own in np.stack(windows.at(np.arange(len(windows))), axis=1).tolist():
        rows.append({"values": row["values"][start:end], "known": row["known"][start:end], "place": row["place"]})
        rows[-1] |= {"origin": np.array([first]), "origins": np.array([own])}
    batch = task.batch(rows)
    batch = batch._replace(values=batch.values._replace(values=batch.values.values.double()))
    total, count = network.loss(batch)
    lost = 0.0
    for part in rows:
        z = part["values"].astype(np.float64)
        h = network.read(Padded.full(torch.from_numpy(z)[None]))[0].values[0].detach().numpy()
        for t in range(int(part["origin"][0]), int(part["origin"][0] + part["origins"][0])):
            recent = np.concatenate([np.repeat(z[:1], network.direct.lags, axis=0), z[: t + 1]])[-network.direct.lags :]
            f, base = by_hand(network, h[t], recent)
            said = f @ network.density.readout.weight.detach().numpy().T + network.density.readout.bias.detach().numpy()
            gold = z[t + 1 : t + 1 + horizon]
            lost += ((said + base)[: len(gold)] - gold).__pow__(2).sum() / horizon
    assert total.item() == pytest.approx(lost, rel=1e-9)
    assert count == 45 - 1 - (season - 1)


def test_an_untrained_model_repeats_the_last_season() -> None:
    direct = Direct(3, 2, horizon=5, lags=8, season=4)
    recent = np.random.default_rng(0).normal(size=(8, 2))
    assert np.allclose(
        direct.double().base(torch.from_numpy(recent)).detach(), [recent[4], recent[5], recent[6], recent[7], recent[4]]
    )


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(1, 12),
    st.integers(1, 5),
    st.integers(0, 7),
)
@settings(max_examples=60, deadline=None)
def test_every_origin_stands_in_one_window(lengths: list[int], count: int, lead: int, horizon: int, early: int) -> None:
    windows = Origins(np.array(lengths), count=count, lead=lead, horizon=horizon, earliest=early)
    seen: list[tuple[int, int]] = []
    every = np.stack(windows.at(np.arange(len(windows))), axis=1).reshape(-1, 5).tolist()
    for (row, start, end, first, own), counted in zip(every, windows.counts.tolist(), strict=True):
        here = range(start + first, start + first + own)
        assert 1 <= len(here) == counted <= count
        assert first == min(lead, start + first)  # as many steps before it as there are, up to the lead
        assert min(lengths[row], here[-1] + 1 + horizon) <= end <= min(lengths[row], here[0] + count + horizon)
        seen += [(row, origin) for origin in here]
    wanted = [
        (row, t) for row, steps in enumerate(lengths) for t in range(early if steps - 1 > early else 0, steps - 1)
    ]
    assert sorted(seen) == wanted


def test_an_epoch_of_many_origins_is_a_part_of_them_and_every_epoch_another() -> None:
    windows = Origins(np.array([500, 300]), count=10, lead=5, horizon=2, earliest=0)
    first, second = (windows.drawn(100, seed=1, epoch=epoch) for epoch in (0, 1))
    assert first is not None
    assert second is not None
    assert len(first) == len({*first.tolist()}) == 10
    assert first.tolist() != second.tolist()
    again = windows.drawn(100, seed=1, epoch=0)
    assert again is not None
    assert again.tolist() == first.tolist()


@given(st.integers(2, 30), st.integers(0, 10_000), st.floats(0, 0.3))
@settings(max_examples=30, deadline=None)
def test_a_season_is_found_under_noise_and_a_trend(season: int, seed: int, noise: float) -> None:
    draw = np.random.default_rng(seed)
    pattern = draw.normal(size=season)
    pattern[0] += 4  # so that no part of it repeats itself
    steps = np.arange(10 * season + 40)
    series = pattern[steps % season] + 0.05 * steps + noise * draw.normal(size=len(steps))
    assert found_season([series]) == season


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_season(seed: int) -> None:
    draw = np.random.default_rng(seed)
    assert found_season([draw.normal(size=200)]) == 1
    assert found_season([draw.normal(size=200).cumsum()]) == 1
    assert found_season([np.zeros(50), np.arange(3.0)]) == 1


def test_logarithms_are_taken_where_changes_grow_with_the_level() -> None:
    draw = np.random.default_rng(0)
    growing = np.exp(np.cumsum(0.05 + 0.1 * draw.normal(size=300)))[:, None]
    level = (100 + draw.normal(size=300).cumsum())[:, None]
    assert is_better_as_log([growing], 1)
    assert is_better_as_log([np.where(draw.random((300, 1)) < 0.05, 0.0, growing)], 1)  # some values are 0
    assert not is_better_as_log([level], 1)
    assert not is_better_as_log([growing, -level], 1)
    gapped = growing.copy()
    gapped[100:150] = np.nan
    assert is_better_as_log([gapped], 1)


@given(st.integers(0, 1000), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_scaled_values_come_back_in_their_unit(seed: int, log: bool, difference: bool) -> None:
    draw = np.random.default_rng(seed)
    values = np.exp(draw.normal(size=(12, 2)))
    unit = Unit(Normal(draw.normal(size=2), np.exp(draw.normal(size=2))), difference, np.full(2, 1e-9) if log else None)
    z = unit.scaled(values)
    assert np.allclose(unit.ahead(z[5:], values[4]), values[5:])
    # log dx/dz, by a small step of z.
    more = unit.ahead(z[5:6] + 1e-6, values[4])
    assert np.allclose(np.log((more - values[5:6]) / 1e-6), unit.log_size(values[5:6]), atol=1e-4)


def test_what_is_found_in_the_data_is_written_into_the_run(tmp_path: Path) -> None:
    model = trained(tmp_path, seasonal(tmp_path / "a.csv", 80, series=3), "training.steps=2")
    data, network = model.task.settings.data, model.task.settings.model
    assert (data.season, network.ahead, network.lags, network.horizon, data.window) == (6, "direct", 42, 3, 42)
    assert "quantiles output" in model.task.described()


def test_times_tell_the_season_where_they_have_one(tmp_path: Path) -> None:
    rows = "".join(f"{2000 + t // 12}-{t % 12 + 1:02},{t % 5}.5\n" for t in range(40))
    model = trained(tmp_path, write(tmp_path / "a.csv", "month,x\n" + rows), "training.steps=2")
    assert model.task.settings.data.season == 12


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("data.difference=true", "recursive"),
        ("model.direction=backward", "recursive"),
        ("model.output=poisson", "recursive"),
        ("training.forcing=0.5", "recursive"),
        ("decoding.paths=5", "recursive"),
        ("model.output=student_t", "direct"),
        ("model.encoder=transformer", "direct"),
    ],
)
def test_what_is_fed_back_is_recursive(tmp_path: Path, setting: str, wanted: str) -> None:
    rows = "".join(f"{t},{round(20 + 5 * np.sin(t))}\n" for t in range(40))
    file = write(tmp_path / "a.csv", "step,x\n" + rows)
    overrides = [each for each in SMALL if "encoder=transformer" not in setting or not each.startswith("model.")]
    this = setup("forecasting", given={"train": file}, overrides=[*overrides, setting])
    assert this.kind.resolved(this.settings).model.ahead == wanted


@pytest.mark.parametrize(
    "setting", ["data.difference=true", "model.direction=backward", "model.output=bernoulli", "decoding.paths=5"]
)
def test_direct_forecasts_refuse_what_is_of_steps_fed_back(tmp_path: Path, setting: str) -> None:
    name = setting.partition("=")[0].replace(".", r"\.")
    file = seasonal(tmp_path / "a.csv", 40)
    with pytest.raises(ConfigError, match=rf"model\.ahead = 'direct' predicts all steps at once, which {name} = "):
        setup("forecasting", given={"train": file}, overrides=[*SMALL, "model.ahead=direct", setting])


def test_a_horizon_beyond_that_of_training_goes_on_from_its_own_forecasts(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 70)
    model = trained(tmp_path, file, "training.steps=5")
    near, far = (model.with_settings([f"decoding.horizon={horizon}"]) for horizon in (3, 8))
    [short] = near.predict_file(file, [], detail=True)
    [long] = far.predict_file(file, [], detail=True)
    assert len(long.detail["values"]) == 8
    assert np.allclose(long.detail["values"][:3], short.detail["values"])
    # As if the forecasts had been measured.
    fed = write(
        tmp_path / "fed.csv",
        Path(file).read_text()
        + "".join(f"{70 + k},s0,{value[0]!r}\n" for k, value in enumerate(short.detail["values"])),
    )
    [again] = near.predict_file(fed, [], detail=True)
    assert np.allclose(long.detail["values"][3:6], again.detail["values"], rtol=1e-4)
    less = model.with_settings(["decoding.horizon=2"])
    [few] = less.predict_file(file, [], detail=True)
    assert np.allclose(few.detail["values"], short.detail["values"][:2])


def test_scores_are_of_the_same_forecasts_as_predictions(tmp_path: Path) -> None:
    whole = seasonal(tmp_path / "whole.csv", 63, series=2)
    past = seasonal(tmp_path / "past.csv", 60, series=2)
    model = trained(tmp_path, past, "training.steps=10", "evaluation.stride=100", "evaluation.context=60")
    answers = list(model.predict_file(past, [], detail=True))
    apart = []
    for answer, steps in zip(answers, model.task.read([whole]), strict=True):
        apart.append(np.abs(np.array(answer.detail["values"]) - steps.values[60:]).mean())
    assert model.evaluate(whole).values["mae"] == pytest.approx(np.mean(apart), rel=1e-5)


def test_the_scale_of_mase_is_that_of_the_whole_training_series(tmp_path: Path) -> None:
    train = seasonal(tmp_path / "a.csv", 200, series=2)
    later = seasonal(tmp_path / "b.csv", 3, series=2, start=200)
    model = trained(tmp_path, train, "training.steps=5", "evaluation.stride=3", "model.lags=12")
    scores = model.evaluate(later).values
    answers, wanted = list(model.predict_file(train, [], detail=True)), []
    for number, (known, coming) in enumerate(zip(*(model.task.read([file]) for file in (train, later)), strict=True)):
        x = known.values[:, 0]
        error = np.abs(np.array(answers[number].detail["values"])[:, 0] - coming.values[-3:, 0]).mean()
        wanted.append(error / np.abs(x[6:] - x[:-6]).mean())
    assert scores["mase"] == pytest.approx(np.mean(wanted), rel=1e-4)


def test_a_negative_value_has_no_logarithm(tmp_path: Path) -> None:
    rows = "".join(f"{t},{np.exp(0.1 * t + np.sin(t)):.4f}\n" for t in range(60))
    file = write(tmp_path / "a.csv", "step,x\n" + rows)
    model = trained(tmp_path, file, "training.steps=2")
    assert model.task.settings.data.log
    with pytest.raises(
        DataError, match=r"input:1: found -2, but the model takes the logarithm of values \(data\.log\)"
    ):
        model.predict([[3.0, -2.0]])
    assert min(np.ravel(model.predict([[3.0, 0.0]], detail=True)[0].detail["low"])) >= 0
    bad = write(tmp_path / "b.csv", "step,x\n1,3\n2,-1\n3,2\n")
    with pytest.raises(DataError, match=r"b\.csv:2: found -1, but the model takes the logarithm"):
        trained(tmp_path / "no", bad, "data.log=true", "training.steps=2")


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 90, series=3)
    options = ["training.epochs=6", "training.batch_tokens=64", "data.origins=128", "model.dropout=0.2"]
    whole = trained(tmp_path / "whole", file, *options)
    this = setup("forecasting", given={"train": file}, overrides=[*SMALL, *options])
    with pytest.raises(MemoryError):
        begin(this, tmp_path / "cut", StopsAt(7))
    resume(tmp_path / "cut", Silent())
    cut = load(tmp_path / "cut")
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, cut.model.state_dict()[name]), name


def test_direct_forecasts_learn_more_than_the_season(tmp_path: Path) -> None:
    """A drive that is known ahead moves the series; the season alone knows nothing of it."""
    draw = np.random.default_rng(0)
    drive = draw.integers(0, 2, 420)
    x = 20 + 3 * np.sin(2 * np.pi * np.arange(420) / 4) + 6 * drive + 0.2 * draw.normal(size=420)
    table = "".join(f"{t},{'' if t >= 417 else f'{x[t]:.4f}'},{drive[t]}\n" for t in range(420))
    file = write(tmp_path / "a.csv", "step,x,drive\n" + table)
    options = ("data.future=drive", "training.epochs=40", "training.batch_tokens=128", "data.season=4")
    model = trained(tmp_path, file, *options)
    [answer] = model.predict_file(file, [], detail=True)
    apart = np.abs(np.array(answer.detail["values"])[:, 0] - x[417:])
    season = np.abs(x[413:416] - x[417:])
    assert apart.mean() < 1.5
    assert apart.mean() < 0.7 * season.mean() or season.mean() < 1


def test_a_direct_forecast_feeds_nothing_back(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 50)
    model = trained(tmp_path, file, "training.steps=2")
    with pytest.raises(ConfigError, match="'direct' predicts all steps of the horizon at once and feeds nothing back"):
        model.free_running(file)
