"""Counts and log-normal values whose unit or base a row brings along, against densities written in NumPy's float64."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.densities import Counting, Density
from recurra.named import find

Floats = NDArray[np.float64]
COUNTS = ("poisson", "negative_binomial")
UNITS = np.array([[0.37, 40.0], [7.3, 1.0], [125.0, 3.0]])
BASES = np.array([[0.0, 2.5], [-1.0, 0.8], [1.1, 60.0]])


def made(name: str) -> Density:
    torch.manual_seed(0)
    density = find(Density, name)(3, 2).double()
    for parameter in density.parameters():
        nn.init.normal_(parameter, std=0.5)
    return density


def outputs(density: Density, h: Tensor) -> Floats:
    layer = density.readout
    assert isinstance(layer, nn.Linear)
    found: Floats = h.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    return found


def means(o: Floats, start: Floats | float = 0.0) -> Floats:
    found: Floats = np.logaddexp(0, o[..., :2] + start) + 1e-6
    return found


log_gamma = np.vectorize(math.lgamma, otypes=[float])


def probabilities(name: str, o: Floats, mean: Floats, *, most: int) -> Floats:
    """(most, ...): P(K = k) of k = 0, 1, 2, …"""
    k = np.arange(float(most)).reshape(-1, *[1] * mean.ndim)
    if name == "poisson":
        return np.asarray(np.exp(k * np.log(mean) - mean - log_gamma(k + 1)))
    r = np.exp(o[..., 2:])
    ways = log_gamma(k + r) - log_gamma(r) - log_gamma(k + 1)
    return np.asarray(np.exp(ways + r * np.log(r / (r + mean)) + k * np.log(mean / (r + mean))))


@pytest.mark.parametrize("with_base", [False, True], ids=["unit", "unit and base"])
@pytest.mark.parametrize("name", COUNTS)
def test_each_row_counts_in_a_unit_of_its_own(name: str, with_base: bool) -> None:
    density, h = made(name), torch.randn(3, 5, 3, dtype=torch.float64)
    features, base = h, np.broadcast_to(BASES[:, None], (3, 5, 2))
    rest: Tensor | float = 0.0
    if with_base:
        features, rest = density.with_base(features, torch.from_numpy(base.copy()))
    features = density.with_unit(features, torch.from_numpy(UNITS))
    assert rest == 0.0
    start = np.log(np.expm1(np.maximum(base, 0.05))) if with_base else 0.0
    units = UNITS[:, None]
    o = outputs(density, h)
    mean = units * means(o, start)
    p = probabilities(name, o, mean, most=8000)
    cdf = p.cumsum(0)
    assert (cdf[-1] > 0.999).all()  # else the quantiles below might be beyond
    counts = np.random.default_rng(1).poisson(mean)
    values = torch.from_numpy(counts / units)
    assert_close(density.mean(features).detach(), torch.from_numpy(mean / units), rtol=1e-10, atol=0)
    of_counts, below = (np.take_along_axis(each, counts[None], 0)[0] for each in (p, cdf))
    np.testing.assert_allclose(density.costs(features, values).detach(), -np.log(of_counts), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(density.cdf(features, values).detach(), below, rtol=1e-7, atol=1e-9)
    shares = np.array([0.03, 0.31, 0.5, 0.77, 0.96])[None, :, None]
    quantiles = density.quantile(features, torch.from_numpy(np.broadcast_to(shares, mean.shape).copy()))
    wanted = (cdf < shares).sum(0)  # the least k with P(K <= k) >= u
    every = density.quantiles(features, [0.1, 0.5, 0.9])
    for level, one in zip((0.1, 0.5, 0.9), every.unbind(-2), strict=True):
        assert torch.equal(one, density.quantile(features, torch.full_like(values, level)))
    np.testing.assert_allclose((quantiles * torch.from_numpy(units)).detach(), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", COUNTS)
def test_the_crps_is_that_of_the_count_in_units_of_its_row(name: str) -> None:
    density, h = made(name), torch.randn(3, 1, 3, dtype=torch.float64)
    units = np.array([[0.4, 2.0], [3.0, 1.0], [5.0, 0.7]])
    features = density.with_unit(h, torch.from_numpy(units))
    o = outputs(density, h)
    p = probabilities(name, o, units[:, None] * means(o), most=600)
    counts = np.array([[[0.0, 2.0]], [[4.0, 1.0]], [[9.0, 0.0]]])
    every = np.arange(600.0)[:, None, None, None]
    summed = np.square(p.cumsum(0) - (counts <= every)).sum(0)
    found = density.crps(features, torch.from_numpy(counts / units[:, None]))
    np.testing.assert_allclose(found.detach(), summed / units[:, None], rtol=1e-6, atol=1e-9)


def test_one_unit_for_all_rows_is_the_same_as_that_of_the_column() -> None:
    density, h = made("negative_binomial"), torch.randn(4, 3, dtype=torch.float64)
    assert isinstance(density, Counting)
    told = density.with_unit(h, torch.tensor([[6.5, 0.2]], dtype=torch.float64).expand(4, 2))
    k = torch.tensor([[3.0, 1.0]], dtype=torch.float64) / torch.tensor([6.5, 0.2], dtype=torch.float64)
    values = k.expand(4, 2)
    density.measured_in([6.5, 0.2])
    assert torch.equal(density.costs(told, values), density.costs(h, values))
    assert torch.equal(density.crps(told, values), density.crps(h, values))


def test_a_row_that_only_fills_a_batch_up_spoils_no_gradient() -> None:
    density = made("poisson")
    h = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    told = density.with_unit(h, torch.tensor([[2.0, 3.0], [0.0, 0.0]], dtype=torch.float64))
    mask = torch.tensor([[True] * 4, [False] * 4])
    density.loss(told, torch.ones(2, 4, 2, dtype=torch.float64), mask).sum().backward()
    assert h.grad is not None
    assert bool(h.grad.isfinite().all())
    assert not h.grad[1].any()


def test_units_stay_exact_beside_features_of_half_the_length() -> None:
    density = find(Density, "poisson")(3, 1).bfloat16()
    told = density.with_unit(torch.randn(1, 3).bfloat16(), torch.tensor([[1234.5678]]))
    assert isinstance(density, Counting)
    assert density.parted(told)[2].item() == pytest.approx(1234.5678, rel=1e-7)
    assert density.mean(told).dtype == torch.bfloat16


def test_the_median_of_a_log_normal_value_starts_at_its_base() -> None:
    density, h = made("log_normal"), torch.randn(3, 3, dtype=torch.float64)
    features, rest = density.with_base(h, torch.from_numpy(BASES))
    assert rest == 0.0
    o = outputs(density, h)
    middle, sigma = np.maximum(BASES, 0.01) * np.exp(o[:, :2]), np.exp(o[:, 2:] / 2)
    x = np.array([[0.5, 3.0]])
    z = (np.log(x) - np.log(middle)) / sigma
    costs = 0.5 * z**2 + np.log(sigma * x * math.sqrt(2 * math.pi))
    below = np.vectorize(NormalDist().cdf)(z)
    np.testing.assert_allclose(density.best(features).detach(), middle, rtol=1e-12)
    np.testing.assert_allclose(density.mean(features).detach(), middle * np.exp(sigma**2 / 2), rtol=1e-12)
    values = torch.from_numpy(np.broadcast_to(x, (3, 2)).copy())
    np.testing.assert_allclose(density.costs(features, values).detach(), costs, rtol=1e-10)
    np.testing.assert_allclose(density.cdf(features, values).detach(), below, rtol=1e-10)


def test_a_base_is_added_to_what_other_densities_say() -> None:
    density, h, base = made("gaussian"), torch.randn(3, 3, dtype=torch.float64), torch.from_numpy(BASES)
    features, rest = density.with_base(h, base)
    assert features is h
    assert rest is base
    assert density.with_unit(h, torch.from_numpy(UNITS)) is h
