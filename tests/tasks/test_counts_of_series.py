"""Counts of several series, each in a unit of its own: trained, forecast, streamed, combined, exported."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.data.origins import Origins
from recurra.data.store import Rows
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.windows import windows_of
from recurra.models.reviewing import observed, review
from recurra.models.series_batch import batched, recurring_series
from recurra.padding import fitted
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.once import made_once
from tests.training.breaking import weights, weights_of_a_broken_run

SIZES = {"rare": 0.8, "usual": 20.0, "many": 2500.0}
LENGTHS = {"rare": 60, "usual": 48, "many": 71}
SETTINGS: dict[str, Any] = {
    "data.series": "shop",
    "data.values": ["sold"],
    "data.season": 4,
    "data.cache": False,
    "model.hidden": 6,
    "model.dropout": 0.0,
    "decoding.horizon": 3,
    "training.steps": 12,
    "training.threads": 1,
}
WAYS: dict[str, dict[str, Any]] = {
    "recursive": {"model.ahead": "recursive", "model.output": "negative_binomial", "data.window": 20},
    "direct": {"model.ahead": "direct", "model.output": "negative_binomial"},
    "attention": {"model.ahead": "attention", "model.output": "poisson"},
    "positive": {"model.ahead": "direct", "model.output": "log_normal"},
}


def counts(name: str, steps: int, first: int = 0) -> list[int]:
    draw = np.random.default_rng(sum(map(ord, name)))
    t = np.arange(200)
    rates = SIZES[name] * (1 + 0.6 * np.sin(2 * np.pi * t / 4))
    found: list[int] = (draw.poisson(rates) + (name != "rare")).tolist()
    return found[first : first + steps]


def table(path: Path, lengths: dict[str, int], *, least: int = 0) -> str:
    rows = [f"{name},{max(least, k)}" for name, steps in lengths.items() for k in counts(name, steps)]
    path.write_text("\n".join(["shop,sold", *rows]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(here: Path) -> None:
        for name, settings in WAYS.items():
            train = table(here / f"{name}.csv", LENGTHS, least=int(name == "positive"))
            recurra.train("forecasting", train=train, out=here / name, settings={**SETTINGS, **settings})

    return made_once(tmp_path_factory, "counts_of_series", make)


@pytest.mark.parametrize("has_own_values", [False, True], ids=["forced", "drawn"])
def test_a_broken_recursive_run_ends_as_the_whole_one_does_bit_for_bit(tmp_path: Path, has_own_values: bool) -> None:
    train = table(tmp_path / "train.csv", LENGTHS)
    valid = table(tmp_path / "valid.csv", dict.fromkeys(LENGTHS, 24))
    settings = {**SETTINGS, **WAYS["recursive"], "model.dropout": 0.3, "evaluation.stride": 9, "data.train": train}
    settings |= {"data.valid": valid, "training.batch_size": 3, "training.steps": 4}
    if has_own_values:  # counts that are drawn are read in training
        settings |= {"training.forcing": {"name": "linear", "c": 0.2, "replacement": "sampled"}}
        settings |= {"data.window": 6, "training.batch_size": 2}
    last = settings["training.steps"] // 2
    this = setup("forecasting", overrides=settings)
    begin(this, tmp_path / "whole", Silent())
    found = weights_of_a_broken_run(this, tmp_path / "broken", last=last)
    assert found == weights(tmp_path / "whole")
    begin(setup("forecasting", overrides={**settings, "training.steps": last}), tmp_path / "short", Silent())
    assert weights(tmp_path / "short") != found, "training goes on after that step"
    for name in ("calibration.json", "scales.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    said = [load(tmp_path / run).with_settings({"decoding.paths": 5}) for run in ("whole", "broken")]
    assert by_name(said[0], train) == by_name(said[1], train)


def by_name(model: Trained, file: str) -> dict[str, dict[str, Any]]:
    return {answer.detail["series"]: answer.detail for answer in model.predict_file(file, [], detail=True)}


@pytest.mark.parametrize("way", WAYS)
def test_forecasts_are_of_the_size_of_each_series(runs: Path, way: str) -> None:
    model: Any = load(runs / way)
    facts = model.task.conventions.facts
    for name, number in facts.names.items():
        values = [max(int(way == "positive"), k) for k in counts(name, LENGTHS[name])]
        assert facts.spreads[number, 0] == pytest.approx(np.mean(values))
        assert facts.means[number, 0] == 0
    found = by_name(model, str(runs / f"{way}.csv"))
    for name, size in SIZES.items():
        assert (np.array(found[name]["values"]) >= 0).all()
        assert 0.2 * size < np.mean(found[name]["values"]) < 3 * size


@pytest.mark.parametrize("way", ["recursive", "direct", "attention"])
def test_the_cost_of_a_step_is_that_of_the_count_itself(runs: Path, way: str) -> None:
    """Of a batch of series of several lengths, by a density of each step written out, from the mean that was said."""
    model = load(runs / way)
    task: Any = model.task
    network: Any = model.model.double()
    examples = list(task.read([str(runs / f"{way}.csv")]))
    rows = [task.conventions.encode(example) for example in examples]
    assert [row["unit"].tolist() for row in rows] == task.conventions.facts.spreads.tolist()
    batch = fitted(batched(rows), network)
    origins = [np.zeros(0, np.int64)] * len(rows)
    reviews = review(network, batch, origins, horizon=3, quantiles=True)
    for example, row, seen, reviewed in zip(examples, rows, observed(network, batch), reviews, strict=True):
        k = example.values[1:, 0]
        m = seen.expected[1:, 0] * row["unit"][0]
        if way == "attention":
            of_gamma = np.vectorize(math.lgamma)(k + 1)
            np.testing.assert_allclose(seen.costs[1:, 0], m - k * np.log(m) + of_gamma, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(seen.costs[1:, 0], reviewed.losses[1:], rtol=1e-7)


@pytest.mark.parametrize("way", ["recursive", "direct", "attention"])
def test_the_loss_of_training_is_a_mean_over_series_of_all_lengths(runs: Path, way: str) -> None:
    """Rows beside longer ones, and rows that only fill the batch up, change nothing."""
    model = load(runs / way)
    task: Any = model.task
    network: Any = model.model.double().eval()
    store = Rows([task.conventions.encode(each) for each in task.read([str(runs / f"{way}.csv")])])
    windows = windows_of(task.conventions, task.lengths(store))
    assert windows is not None
    numbers = np.arange(len(windows) if isinstance(windows, Origins) else len(windows.lengths))
    rows = task.chosen(store, numbers)
    batch = fitted(batched(rows), network)
    whole, count = network.loss(batch)
    single = [network.loss(fitted(batched([row]), network)) for row in rows]
    assert count == sum(each for _, each in single)
    assert float(whole.detach()) == pytest.approx(sum(float(each.detach()) for each, _ in single), rel=1e-9)
    padded, more = network.loss(recurring_series(batch))
    assert float(padded.detach()) == pytest.approx(float(whole.detach()), rel=1e-9)
    assert more == count or way == "recursive"


@pytest.mark.parametrize("way", ["recursive", "direct", "attention"])
def test_a_series_is_forecast_alone_as_among_others(runs: Path, tmp_path: Path, way: str) -> None:
    model = load(runs / way)
    together = by_name(model, str(runs / f"{way}.csv"))
    for name, steps in LENGTHS.items():
        alone = by_name(model, table(tmp_path / f"{name}.csv", {name: steps}))
        np.testing.assert_allclose(alone[name]["values"], together[name]["values"], rtol=1e-5)


@pytest.mark.parametrize("way", ["recursive", "direct", "attention"])
def test_a_new_series_is_counted_in_its_own_mean(runs: Path, way: str) -> None:
    model = load(runs / way)
    [found] = model.predict([{"series": "new", "values": [300, 420, 310, 200] * 6}], detail=True)
    assert 100 < np.mean(found.detail["values"]) < 700


@pytest.mark.parametrize("way", ["recursive", "direct", "attention"])
def test_a_stream_forecasts_as_the_whole_series_does(runs: Path, way: str) -> None:
    model = load(runs / way)
    values = counts("usual", 48)
    stream = model.stream()
    stream.read({"series": "usual", "values": values[:42]})
    stream = model.stream(stream.state())
    for value in values[42:]:
        found = stream.read(value)
    [whole] = model.predict([{"series": "usual", "values": values}], detail=True)
    np.testing.assert_allclose(found.detail["values"], whole.detail["values"], rtol=1e-4)


def test_several_runs_forecast_the_mean_of_what_each_says(runs: Path) -> None:
    file = str(runs / "direct.csv")
    both = by_name(load([runs / "direct", runs / "direct"]), file)
    one = by_name(load(runs / "direct"), file)
    for name in SIZES:
        np.testing.assert_allclose(both[name]["values"], one[name]["values"], rtol=1e-6)


def test_paths_are_counts_in_each_unit(runs: Path) -> None:
    model = load(runs / "recursive").with_settings(["decoding.paths=21"])
    for detail in by_name(model, str(runs / "recursive.csv")).values():
        low = np.array(detail["low"])
        np.testing.assert_allclose(low, np.round(low), atol=1e-3)


@pytest.mark.parametrize("way", ["recursive", "direct"])
def test_training_scores_and_backtests_work(runs: Path, way: str) -> None:
    model = load(runs / way)
    file = str(runs / f"{way}.csv")
    scores = model.evaluate(file).values
    assert np.isfinite(scores["nll"])
    assert np.isfinite(scores["mase"])
    found = model.backtest(file, windows=2, step=3)
    assert np.isfinite(found.scores()["model"]["crps"])


def test_one_unit_for_all_is_kept_where_it_is_asked_for(runs: Path, tmp_path: Path) -> None:
    settings = {**SETTINGS, **WAYS["recursive"], "data.scaling": "columns", "training.steps": 2}
    recurra.train("forecasting", train=str(runs / "recursive.csv"), out=tmp_path / "run", settings=settings)
    task: Any = load(tmp_path / "run").task
    conventions = task.conventions
    assert not conventions.tells_unit
    row = conventions.encode(next(iter(task.read([str(runs / "recursive.csv")]))))
    assert "unit" not in row
    every = [k for name, steps in LENGTHS.items() for k in counts(name, steps)]
    assert conventions.scale.spread[0] == pytest.approx(np.mean(every))


def test_a_run_whose_series_had_one_scale_keeps_it(runs: Path) -> None:
    """As all runs of counts up to version 0.2: what they learned of their tables says so."""
    trained: Any = load(runs / "recursive").task
    own = trained.conventions
    facts = dataclasses.replace(own.facts, by_series=False)
    task = type(trained)(Conventions(own.settings, own.scale, is_binary=False, facts=facts))
    [example, *_] = task.read([str(runs / "recursive.csv")])
    row = task.encode(example)
    assert "unit" not in row
    np.testing.assert_allclose(row["values"][:, 0], example.values[:, 0] / own.scale.spread[0], rtol=1e-6)
    model = task.build().eval()
    assert model.density.unit.tolist() == own.scale.spread.tolist()
    [said] = model.predict(task.batch([row]), horizon=3)
    assert np.isfinite(said.values).all()


@pytest.mark.parametrize("way", ["recursive", "direct", "attention", "positive"])
def test_an_exported_forecaster_answers_each_series_in_its_own_scale(runs: Path, tmp_path: Path, way: str) -> None:
    export(runs / way, tmp_path / "exported")
    file = str(runs / f"{way}.csv")
    right, found = by_name(load(runs / way), file), load_exported(tmp_path / "exported").predict_file(file, [])
    assert {answer.detail["series"] for answer in found} == right.keys()
    for answer in found:
        wanted = right[answer.detail["series"]]
        for part in {"values", "mean", "low", "high"} & wanted.keys():
            np.testing.assert_allclose(answer.detail[part], wanted[part], rtol=1e-4)
