"""A forecaster that reads covariates against a loop that joins what is known at each step by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.config import ForecastingModel
from recurra.encoders.covariates import Beside, Covariates
from recurra.models import reviewing
from recurra.models.forecaster import Forecaster
from recurra.models.series_batch import ForecasterBatch, recurring_series
from recurra.padding import Padded, pad

HORIZON = 3
LENGTHS = (7, 4)


def made(**options: Any) -> Forecaster:
    torch.manual_seed(1)
    settings = ForecastingModel(**{"cell": "lstm", "hidden": 5, "dropout": 0.0, "engine": "loop", **options})
    covariates = Covariates(future=2, past=4, masks=2, static=1, categories=(3,))
    model = Forecaster(settings, output="gaussian", size=1, from_nothing=False, covariates=covariates)
    return model.double().eval()


def drawn() -> ForecasterBatch:
    torch.manual_seed(2)
    values = pad([torch.randn(length, 1).double() for length in LENGTHS])
    future = torch.randn(2, max(LENGTHS) + HORIZON, 2).double()
    past = torch.randn(2, max(LENGTHS), 4).double()
    past[:, :, 2:] = (past[:, :, 2:] > 0).double()
    names = torch.tensor([[2], [0]])
    known = torch.ones_like(values.values, dtype=torch.bool)
    return ForecasterBatch(values, known, future, past, torch.randn(2, 1).double(), names)


def by_hand(model: Forecaster, batch: ForecasterBatch, row: int, values: list[Tensor], known: int) -> Tensor:
    """The features after some values, of which so many were known: u_t = [x_t ; p_t ; m_t ; f_{t+1} ; s ; E[c]]."""
    assert batch.past is not None
    assert batch.future is not None
    assert batch.static_numbers is not None
    assert batch.static_names is not None
    assert model.covariates is not None
    states = model.stack.start(1)
    features = torch.zeros(0)
    for t, value in enumerate(values):
        past = batch.past[row, min(t, known - 1)].clone()
        if t >= known:
            past[2:] = 0
        embedded = model.covariates.embeddings[0].weight[batch.static_names[row, 0]]  # type: ignore[index]
        u = torch.cat([value, past, batch.future[row, t + 1], batch.static_numbers[row], embedded])
        u = u if model.embedding is None else model.embedding(u)
        features, states = model.stack.step(u.unsqueeze(0), states)
    return features


@pytest.mark.parametrize("options", [{}, {"embedding": 4}, {"encoder": "transformer", "hidden": 8, "engine": "auto"}])
def test_the_horizon_reads_what_is_known_ahead_and_holds_what_is_not(options: dict[str, Any]) -> None:
    model, batch = made(**options), drawn()
    forecasts = model.predict(batch, horizon=HORIZON)
    for row, forecast in enumerate(forecasts):
        values = list(batch.values.values[row, : LENGTHS[row]])
        for step in range(HORIZON):
            mean = model.density.mean(by_hand(model, batch, row, values, LENGTHS[row]))[0]
            np.testing.assert_allclose(forecast.values[step], mean.detach(), atol=1e-6)
            values.append(mean)


@pytest.mark.parametrize("chunk", [2, 2048])
def test_a_review_reads_from_each_origin_what_was_known_then(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewing, "CHUNK", chunk)
    model, batch = made(), drawn()
    origins = [np.array([2, 5]), np.array([3])]
    reviews = reviewing.review(model, batch, origins, horizon=2, quantiles=False)
    for row, (review, begins) in enumerate(zip(reviews, origins, strict=True)):
        for origin, ahead in zip(begins.tolist(), review.ahead, strict=True):
            values = list(batch.values.values[row, :origin])
            for step in range(2):
                mean = model.density.mean(by_hand(model, batch, row, values, origin))[0]
                np.testing.assert_allclose(ahead[step], mean.detach(), atol=1e-10)
                values.append(mean)


def test_the_loss_of_a_step_reads_what_is_known_of_that_step() -> None:
    model, batch = made(), drawn()
    total, count = model.loss(batch)
    wanted = torch.zeros(())
    for row, length in enumerate(LENGTHS):
        values = list(batch.values.values[row, :length])
        for t in range(1, length):
            feature = by_hand(model, batch, row, values[:t], t)
            wanted = wanted + model.density.costs(feature, values[t].unsqueeze(0)).sum()
    assert count == sum(LENGTHS) - 2
    assert_close(total, wanted.to(total))
    assert_close(model.loss(recurring_series(batch))[0], total)  # padding to a size that occurs again changes nothing


def test_drawn_paths_read_the_same_covariates_as_the_mean() -> None:
    model, batch = made(), drawn()
    [first, _] = model.predict(batch, horizon=HORIZON, paths=3, seed=4)
    shares = torch.rand(3, HORIZON, 1, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    for path in range(3):
        values = list(batch.values.values[0])
        for step in range(HORIZON):
            feature = by_hand(model, batch, 0, values, LENGTHS[0])
            values.append(model.density.quantile(feature, shares[path, step].unsqueeze(0))[0])
            assert first.paths is not None
            np.testing.assert_allclose(first.paths[path, step], values[-1].detach(), atol=1e-10)


def test_in_training_a_row_is_held_from_some_step_on_or_left_as_it_is() -> None:
    covariates = Covariates(future=0, past=2, masks=1, static=0, categories=())
    past = torch.stack([torch.arange(1.0, 9.0), torch.ones(8)], dim=1).expand(200, 8, 2)
    torch.manual_seed(0)
    held = covariates.held(Beside(past=past)).past
    assert held is not None
    ends = []
    for row in held:
        last = int(row[:, 1].sum())
        ends.append(last)
        assert row[:last, 0].tolist() == list(range(1, last + 1))
        assert row[last:, 0].tolist() == [last] * (8 - last)
    assert 0.4 < np.mean(np.array(ends) == 8) < 0.75
    assert {*range(1, 9)} == {*ends}


def test_scheduled_sampling_reads_covariates_too() -> None:
    from recurra.models.forcing import Forced

    model, batch = made(), drawn()
    x = Padded(batch.values.values[:, :-1], batch.values.lengths - 1)
    always = Forced.at(_forcing(1.0), 0, None)
    features = model.led(x, always, batch.beside)
    assert_close(features.values, model.read(x, beside=batch.beside)[0].values)


def _forcing(share: float) -> Any:
    from recurra.config.forcing import Forcing

    return Forcing.of(share)
