"""Quantiles and log p without torch are those of the densities in torch, and what their definitions say."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.densities import Density
from recurra.forecasts.distributions import incomplete_beta, upper_gamma
from recurra.forecasts.searched import below, searched
from recurra.metrics.forecast_errors import LEVELS
from recurra.named import built

STEPS, FEATURES = 12, 5


def drawn(name: str, unit: float, spread: float) -> tuple[Any, torch.Tensor]:
    """A density of two values with large weights, and features."""
    torch.manual_seed(3)
    density = built(Density, name, FEATURES, 2).double().measured_in([unit, 3 * unit])
    with torch.no_grad():
        for weight in density.parameters():
            weight.normal_(std=spread)
    return density, torch.randn(1, STEPS, FEATURES).double()


@pytest.mark.parametrize("spread", [0.3, 3.0])
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("student_t", 1.0),
        ("mixture", 1.0),
        *((name, unit) for name in ("poisson", "negative_binomial") for unit in (0.3, 40.0, 5e3)),
    ],
)
def test_what_is_searched_for_is_what_a_density_says_in_torch(name: str, unit: float, spread: float) -> None:
    density, features = drawn(name, unit, spread)
    with torch.no_grad():
        best, mask = density.best(features), torch.ones(1, STEPS, dtype=torch.bool)
        said = {"values": best, "means": density.mean(features), **density.searched(features)}
        log_p, fan = -density.loss(features, best, mask)[0], density.quantiles(features, LEVELS)[0]
    found = searched({key: each[0].numpy() for key, each in said.items()}, np.array([unit, 3 * unit]), fan=True)
    np.testing.assert_allclose(found["log_p"], log_p.numpy(), rtol=1e-8, atol=1e-8)
    # The t of torch has its shares in the type of the features, and interpolates.
    np.testing.assert_allclose(found["fan"], fan.numpy(), rtol=1e-9 if name != "student_t" else 1e-6, atol=1e-9)
    assert set(searched({key: each[0].numpy() for key, each in said.items()}, np.ones(2), fan=False)) == {"log_p"}


def summed(log_p: Any, most: int) -> NDArray[np.float64]:
    """P(K ≤ k) of k = 0, 1, …, one term after the other."""
    return np.cumsum([math.exp(log_p(k)) for k in range(most)])


@pytest.mark.parametrize("rate", [1e-6, 0.2, 3.0, 150.0, 199.5, 240.0, 2000.0])
def test_counts_of_poisson_are_summed(rate: float) -> None:
    most = int(rate + 12 * math.sqrt(rate) + 20)
    right = summed(lambda k: k * math.log(rate) - rate - math.lgamma(k + 1), most)
    counts = np.arange(most, dtype=np.float64)
    np.testing.assert_allclose(below(counts, np.float64(rate), None), right, rtol=0, atol=1e-11)
    assert below(np.array([-1.0]), np.float64(rate), None) == 0
    said = {"values": np.array([[rate]]), "means": np.array([[rate]]), "rate": np.array([[rate]])}
    fan = searched(said, np.ones(1), fan=True)["fan"][0, :, 0]
    assert fan.tolist() == [float(np.searchsorted(right, level - 1e-12)) for level in LEVELS]


@pytest.mark.parametrize(("m", "r"), [(0.1, 0.05), (4.0, 0.5), (4.0, 1e5), (90.0, 7.0)])
def test_counts_that_vary_more_are_summed(m: float, r: float) -> None:
    def log_p(k: int) -> float:
        ways = math.lgamma(k + r) - math.lgamma(r) - math.lgamma(k + 1)
        return ways - r * math.log1p(m / r) - k * math.log1p(r / m)

    right = summed(log_p, 3000)
    counts = np.arange(3000, dtype=np.float64)
    np.testing.assert_allclose(below(counts, np.float64(m), np.float64(r)), right, rtol=0, atol=1e-9)
    said = {name: np.array([[each]]) for name, each in (("values", m), ("means", m), ("rate", m), ("shape", r))}
    fan = searched(said, np.ones(1), fan=True)["fan"][0, :, 0]
    assert fan.tolist() == [float(np.searchsorted(right, level - 1e-12)) for level in LEVELS]


def test_quantiles_of_t_have_closed_forms_where_there_are_some() -> None:
    nu = np.array([[3.0], [4.0]])
    said = {"means": np.zeros((2, 1)), "values": np.zeros((2, 1)), "log_square": np.zeros((2, 1)), "freedom": nu}
    three, four = searched(said, np.ones(1), fan=True)["fan"][:, :, 0]

    def of_three(z: float) -> float:
        s = z / math.sqrt(3)
        return 0.5 + (s / (1 + s * s) + math.atan(s)) / math.pi

    assert [of_three(z) for z in three] == pytest.approx(LEVELS, abs=1e-12)
    for u, z in zip(LEVELS, four, strict=True):  # Shaw 2006
        alpha = 4 * u * (1 - u)
        q = math.cos(math.acos(math.sqrt(alpha)) / 3) / math.sqrt(alpha)
        assert z == pytest.approx(math.copysign(2 * math.sqrt(max(q - 1, 0)), u - 0.5), abs=1e-7)


def test_a_mixture_lies_around_what_is_added_to_it() -> None:
    parts = {
        "log_weights": np.log([[[0.2, 0.8]]]),
        "centres": np.array([[[-3.0, 2.0]]]),
        "log_squares": np.zeros((1, 1, 2)),
    }
    said = {"means": np.full((1, 1), 101.0), "values": np.full((1, 1), 101.0), **parts}  # 100 + 0.2 · −3 + 0.8 · 2
    found = searched(said, np.ones(1), fan=True)
    density = [0.2 * math.exp(-8) + 0.8 * math.exp(-0.5)]
    assert found["log_p"] == pytest.approx([math.log(density[0] / math.sqrt(2 * math.pi))], abs=1e-12)
    for level, value in zip(LEVELS, found["fan"][0, :, 0], strict=True):
        x = value - 100
        assert 0.2 * NormalDist(-3).cdf(x) + 0.8 * NormalDist(2).cdf(x) == pytest.approx(level, abs=1e-9)


def test_functions_of_distributions_have_their_values_at_the_ends() -> None:
    assert upper_gamma(np.array([0.5, 300.0, 1e9]), 0.0).tolist() == [1.0, 1.0, 1.0]
    assert upper_gamma(np.array([0.5, 300.0]), 1e6).tolist() == [0.0, 0.0]
    assert incomplete_beta(2.0, 3.0, np.array([0.0, 1.0]), np.array([1.0, 0.0])).tolist() == [0.0, 1.0]
    x = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(incomplete_beta(2.5, 0.5, x, 1 - x), 1 - incomplete_beta(0.5, 2.5, 1 - x, x), atol=1e-13)
