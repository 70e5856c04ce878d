"""The forecaster against plain loops: one step at a time, alone, fed back by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.config import ForecastingModel
from recurra.config.transformer import CausalTransformerModel
from recurra.densities import Density
from recurra.metrics.forecast_errors import LEVELS
from recurra.models import reviewing
from recurra.models.forecaster import Forecaster
from recurra.models.series_batch import ForecasterBatch
from recurra.padding import Padded, pad

OUTPUTS = ("gaussian", "squared_error", "bernoulli")


class Laplace(Density):
    """A density of one's own: p(x) = ½ exp(−|x − μ|), of which nothing can be drawn."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = nn.Linear(input_size, size)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        return (targets - self.readout(features)).abs() + math.log(2)

    def mean(self, features: Tensor) -> Tensor:
        found: Tensor = self.readout(features)
        return found

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        raise NotImplementedError


def test_a_density_of_ones_own_is_named_by_its_module() -> None:
    model = made("tests.models.test_forecaster:Laplace")
    total, count = model.loss(batch(drawn(6)))
    assert count == 5
    assert float(total.detach()) > 10 * math.log(2)
    assert model.predict(batch(drawn(6)), horizon=2)[0].values.shape == (2, 2)


def made(output: str = "gaussian", *, from_nothing: bool = False, **options: Any) -> Forecaster:
    torch.manual_seed(1)
    settings = ForecastingModel(**{"cell": "lstm", "hidden": 5, "dropout": 0.0, "engine": "loop", **options})
    return Forecaster(settings, output=output, size=2, from_nothing=from_nothing).double().eval()


def drawn(*lengths: int, output: str = "gaussian") -> list[Tensor]:
    torch.manual_seed(2)
    rows = [torch.randn(length, 2, dtype=torch.float64) for length in lengths]
    return [(row > 0).double() for row in rows] if output == "bernoulli" else rows


def batch(rows: list[Tensor]) -> ForecasterBatch:
    values = pad(rows)
    return ForecasterBatch(values, torch.ones_like(values.values, dtype=torch.bool))


def one_by_one(model: Forecaster, row: Tensor) -> tuple[list[Tensor], Any]:
    """The features after each step of a row, fed one at a time, and the last state."""
    steps = [torch.zeros(2, dtype=torch.float64), *row] if model.from_nothing else list(row)
    states, features = model.stack.start(1), []
    for step in steps:
        found, states = model.step(step.unsqueeze(0), states)
        features.append(found)
    return features, states


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("from_nothing", [True, False])
def test_the_loss_is_that_of_steps_fed_one_at_a_time(output: str, from_nothing: bool) -> None:
    model = made(output, from_nothing=from_nothing, embedding=3)
    rows = drawn(6, 3, 1, output=output)
    total, count = model.loss(batch(rows))
    wanted, steps = 0.0, 0
    for row in rows:
        features, _ = one_by_one(model, row)
        targets = row if from_nothing else row[1:]
        for feature, target in zip(features, targets, strict=False):
            one = torch.ones(1, dtype=torch.bool)
            wanted += float(model.density.loss(feature, target.unsqueeze(0), one).detach())
            steps += 1
    assert count == steps == (10 if from_nothing else 7)
    assert float(total.detach()) == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("from_nothing", [True, False])
def test_the_horizon_is_that_of_a_plain_loop(output: str, from_nothing: bool) -> None:
    model = made(output, from_nothing=from_nothing, embedding=3, layers=2, skip="residual")
    rows = drawn(4, 7, 1, output=output)
    forecasts = model.predict(batch(rows), horizon=5)
    for row, forecast in zip(rows, forecasts, strict=True):
        features, states = one_by_one(model, row)
        feature, log_p, found = features[-1], 0.0, []
        for _ in range(5):
            step = model.density.best(feature)
            log_p -= float(model.density.loss(feature, step, torch.ones(1, dtype=torch.bool)).detach())
            found.append(step[0])
            feature, states = model.step(step, states)
        assert_close(torch.from_numpy(forecast.values), torch.stack(found).detach(), atol=1e-12, rtol=0)
        assert forecast.score == pytest.approx(log_p, abs=1e-10)


def test_drawn_paths_are_the_same_alone_and_among_others_and_differ_from_each_other() -> None:
    model = made()
    rows = drawn(4, 7, 1)
    together = model.predict(batch(rows), horizon=3, paths=6, seed=5)
    for row, forecast in zip(rows, together, strict=True):
        [alone] = model.predict(batch([row]), horizon=3, paths=6, seed=5)
        assert forecast.paths is not None and alone.paths is not None  # noqa: PT018  # for mypy
        np.testing.assert_allclose(forecast.paths, alone.paths, atol=1e-12)
        assert len(np.unique(forecast.paths[:, 0, 0])) == 6
    [other] = model.predict(batch(rows[:1]), horizon=3, paths=6, seed=6)
    assert not np.array_equal(np.array(other.paths), np.array(together[0].paths))


def test_a_path_is_what_the_density_gives_when_each_draw_is_fed_back() -> None:
    model = made()
    [row] = drawn(4)
    [forecast] = model.predict(batch([row]), horizon=3, paths=2, seed=5)
    shares = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    for path in range(2):
        features, states = one_by_one(model, row)
        feature = features[-1]
        for step in range(3):
            value = model.density.quantile(feature, shares[path, step].unsqueeze(0))
            assert forecast.paths is not None
            np.testing.assert_allclose(forecast.paths[path, step], value[0].detach(), atol=1e-12)
            feature, states = model.step(value, states)


@pytest.mark.parametrize("from_nothing", [True, False])
@pytest.mark.parametrize(("chunk", "has_origins"), [(3, True), (2048, True), (3, False)])
@pytest.mark.parametrize("network", ["rnn", "pre_norm", "vaswani"])
def test_a_review_is_what_reading_up_to_each_step_gives(
    from_nothing: bool, chunk: int, has_origins: bool, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviewing, "CHUNK", chunk)
    monkeypatch.setattr(reviewing, "ORIGINS", 2)
    model = made(from_nothing=from_nothing)
    if network != "rnn":
        own = CausalTransformerModel(heads=2, dropout=0.0, form=network, context=4)  # type: ignore[arg-type]
        model = made(from_nothing=from_nothing, encoder="transformer", hidden=8, transformer=own, engine="auto")
    rows = drawn(9, 4, 2)
    origins = [np.array([1, 4, 5, 8]), np.array([2, 3]), np.zeros(0, np.int64)]
    if not has_origins:
        origins = [each[:0] for each in origins]
    reviews = reviewing.review(model, batch(rows), origins, horizon=3, quantiles=True)
    for row, review, begins in zip(rows, reviews, origins, strict=True):
        first = 0 if from_nothing else 1
        assert len(review.losses) == len(review.next) == len(row)
        assert np.isnan(review.next[:first]).all()
        assert review.losses[:first].sum() == 0
        features, _ = one_by_one(model, row)
        for step in range(first, len(row)):
            feature = features[step - first]
            one = torch.ones(1, dtype=torch.bool)
            loss = model.density.loss(feature, row[step].unsqueeze(0), one)
            assert review.losses[step] == pytest.approx(float(loss.detach()), abs=1e-10)
            np.testing.assert_allclose(review.next[step], model.density.mean(feature)[0].detach(), atol=1e-12)
            low, high = (model.density.quantile(feature, torch.full((1, 2), q).double()) for q in (0.05, 0.95))
            assert review.inside is not None
            assert review.inside[step].tolist() == ((low <= row[step]) & (row[step] <= high))[0].tolist()
        assert review.ahead.shape == (len(begins), 3, 2)
        for origin, ahead in zip(begins, review.ahead, strict=True):
            [forecast] = model.predict(batch([row[:origin]]), horizon=3)
            np.testing.assert_allclose(ahead, forecast.values, atol=1e-12)


def test_padding_and_neighbours_change_nothing() -> None:
    model = made(from_nothing=True, cell="gru")
    rows = drawn(3, 8, 5)
    spoiled = batch(rows)
    spoiled.values.values[0, 3:] = 1e6
    together = model.predict(spoiled, horizon=4)
    alone = [model.predict(batch([row]), horizon=4)[0] for row in rows]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=1e-12)
    losses = [model.loss(batch([row]))[0] for row in rows]
    assert_close(model.loss(spoiled)[0], torch.stack(losses).sum())


def test_a_value_that_is_not_known_costs_nothing() -> None:
    model = made()
    [row] = drawn(6)
    known = torch.ones(1, 6, 2, dtype=torch.bool)
    known[0, 2, 0] = False
    less, _ = model.loss(ForecasterBatch(Padded.full(row.unsqueeze(0)), known))
    all_of_it, _ = model.loss(batch([row]))
    features, _ = one_by_one(model, row)
    cost = model.density.costs(features[1], row[2].unsqueeze(0))[0, 0]
    assert_close(all_of_it - less, cost)


def test_input_dropout_sets_single_values_to_zero_in_training_alone() -> None:
    model = made(input_dropout=0.5, hidden=2)
    seen: list[Tensor] = []
    model.stack.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].values.clone()))
    x = Padded.full(torch.ones(50, 20, 2, dtype=torch.float64))
    model.train()
    model.read(x)
    share = float((seen[0] == 0).double().mean())
    assert share == pytest.approx(0.5, abs=0.05)
    assert set(seen[0].unique().tolist()) == {0.0, 1.0}
    model.eval()
    model.read(x)
    assert (seen[1] == 1).all()


def test_locked_dropout_takes_parts_of_the_linear_layer_and_never_a_column_away() -> None:
    x = Padded.full(torch.ones(30, 4, 2, dtype=torch.float64))
    seen: list[Tensor] = []
    for embedding in (0, 8):
        model = made(dropout=0.5, embedding=embedding).train()
        model.stack.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].values.clone()))
        model.read(x)
    assert (seen[0] == 1).all()
    assert 0.3 < float((seen[1] == 0).double().mean()) < 0.7
    assert ((seen[1] == 0) == (seen[1][:, :1] == 0)).all()  # the same for all steps


def test_a_row_without_a_step_and_a_batch_of_such_rows_are_read() -> None:
    assert len(made(from_nothing=True).predict(batch(drawn(0, 2)), horizon=2)) == 2
    assert len(made().predict(batch(drawn(0, 0)), horizon=2)) == 2
    assert made().loss(batch(drawn(1, 1)))[1] == 0
    [review] = reviewing.review(
        made(from_nothing=True), batch(drawn(0)), [np.zeros(0, np.int64)], horizon=2, quantiles=False
    )
    assert review.losses.shape == (0,)


def test_the_gradient_is_that_of_finite_differences() -> None:
    model = made("gaussian", from_nothing=True, embedding=2, hidden=2, cell="elman")
    rows = batch(drawn(3, 2))
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def loss(*_: Tensor) -> Tensor:
        return model.loss(rows)[0]

    assert torch.autograd.gradcheck(loss, tuple(weights))


@pytest.mark.parametrize("output", ["gaussian", "student_t", "quantiles"])
@pytest.mark.parametrize("summed", [False, True])
def test_fans_are_the_quantiles_of_the_paths_from_each_origin(output: str, summed: bool) -> None:
    model = made(output)
    rows = drawn(9, 6)
    origins = [np.array([2, 5, 7]), np.array([3])]
    reviews = reviewing.review(model, batch(rows), origins, horizon=4, quantiles=True, paths=11, seed=3, summed=summed)
    for row, places, review in zip(rows, origins, reviews, strict=True):
        assert review.fan is not None
        for number, origin in enumerate(places):
            [alone] = model.predict(batch([row[:origin]]), horizon=4, paths=11, seed=3)
            assert alone.paths is not None
            paths = alone.paths.cumsum(1) if summed else alone.paths
            wanted = np.quantile(paths, LEVELS, axis=0).swapaxes(0, 1)
            np.testing.assert_allclose(review.fan[number], wanted, rtol=1e-9, atol=1e-12)
    again = reviewing.review(model, batch(rows), origins, horizon=4, quantiles=True)
    assert again[0].fan is None
    assert again[0].crps is not None
    features, _ = one_by_one(model, rows[0])
    for step in range(1, 9):
        wanted = model.density.crps(features[step - 1], rows[0][step].unsqueeze(0))[0].detach().numpy()
        np.testing.assert_allclose(again[0].crps[step], wanted, rtol=1e-9)
    assert np.isnan(again[0].crps[0]).all()


@pytest.mark.parametrize("output", ["gaussian", "quantiles"])
def test_observed_steps_are_those_of_each_density_by_itself(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "CHUNK", 3)
    model = made(output)
    rows = drawn(8, 5)
    for row, found in zip(rows, reviewing.observed(model, batch(rows)), strict=True):
        features, _ = one_by_one(model, row)
        assert np.isnan(found.tails[0]).all()
        for step in range(1, len(row)):
            h, x = features[step - 1], row[step].unsqueeze(0)
            low = model.density.quantile(h, torch.full_like(x, 0.05))
            for seen, wanted in (
                (found.expected, model.density.mean(h)),
                (found.bounds[0], low),
                (found.costs, model.density.costs(h, x)),
                (found.tails, model.density.tail(h, x)),
            ):
                np.testing.assert_allclose(seen[step], wanted[0].detach(), rtol=1e-9)
