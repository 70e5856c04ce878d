"""Densities against their closed forms, written in NumPy's float64 and in the standard library."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from recurra.densities import Bernoulli, Density, Gaussian, SquaredError
from recurra.errors import ConfigError, DataError
from recurra.named import catalogue, find

NAMES = catalogue(Density)


def made(name: str, inputs: int = 3, size: int = 2) -> Density:
    torch.manual_seed(0)
    density = find(Density, name)(inputs, size).double()
    for parameter in density.parameters():
        nn.init.normal_(parameter, std=0.5)
    return density


def drawn(name: str, *shape: int) -> torch.Tensor:
    values = torch.randn(*shape, dtype=torch.float64)
    if name in ("poisson", "negative_binomial"):
        return (3 * values).abs().round()
    return (values > 0).double() if name == "bernoulli" else values.exp() if name == "log_normal" else values


def outputs(density: Density, features: torch.Tensor) -> NDArray[np.float64]:
    layer = density.readout
    assert isinstance(layer, nn.Linear)
    found: NDArray[np.float64] = features.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    return found


def by_hand(name: str, o: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cost of each value."""
    if name == "squared_error":
        return (x - o) ** 2
    if name == "bernoulli":
        p = 1 / (1 + np.exp(-o))
        return -np.log(np.where(x == 1, p, 1 - p))
    if name in ("poisson", "negative_binomial"):
        return counts_by_hand(name, o, x)
    if name == "quantiles":
        q = np.moveaxis(levels_by_hand(o), -1, 0)
        levels = np.arange(0.05, 0.96, 0.05)
        return np.mean([2 * np.where(x < each, 1 - u, u) * abs(x - each) for each, u in zip(q, levels, strict=True)], 0)
    if name == "mixture":
        weights, means, log_variances = np.moveaxis(o.reshape(*o.shape[:-1], 3, 2, 3), -3, 0)
        weights = np.exp(weights) / np.exp(weights).sum(-1, keepdims=True)
        return -np.log((weights * normal(x[..., None], means, np.exp(log_variances))).sum(-1))
    parts = np.split(o, o.shape[-1] // 2, axis=-1)
    mean, variance = parts[0], np.exp(np.clip(parts[1], -12, 12))
    if name == "log_normal":
        return -np.log(normal(np.log(x), mean, variance) / x)
    if name == "student_t":
        nu, z = 2.01 + np.log1p(np.exp(parts[2])), (x - mean) / np.sqrt(variance)
        gamma = np.vectorize(math.gamma)
        constant = gamma((nu + 1) / 2) / gamma(nu / 2) / np.sqrt(nu * np.pi * variance)
        return -np.log(constant * (1 + z**2 / nu) ** (-(nu + 1) / 2))
    return -np.log(normal(x, mean, variance))


def normal(x: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    return found


def counts_by_hand(name: str, o: NDArray[np.float64], k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Both as products: a probability of nothing, times what each further event multiplies it with."""
    mean = np.log1p(np.exp(o[..., : k.shape[-1]])) + 1e-6
    r = np.exp(o[..., k.shape[-1] :]) if name == "negative_binomial" else None
    found = -mean if r is None else r * np.log(r / (r + mean))
    for number in range(int(k.max())):
        more = mean if r is None else (r + number) * mean / (r + mean)
        found = np.where(number < k, found + np.log(more / (number + 1)), found)
    return -found


def levels_by_hand(o: NDArray[np.float64]) -> NDArray[np.float64]:
    o = o.reshape(*o.shape[:-1], 2, -1).copy()
    for level in range(1, o.shape[-1]):
        o[..., level] = o[..., level - 1] + np.log1p(np.exp(o[..., level]))
    return o


def test_the_catalogue_is_the_folder() -> None:
    assert NAMES == [
        "bernoulli",
        "gaussian",
        "log_normal",
        "mixture",
        "negative_binomial",
        "poisson",
        "quantiles",
        "squared_error",
        "student_t",
    ]
    with pytest.raises(ConfigError, match=r"there is no density 'gausian'\. Did you mean 'gaussian'"):
        find(Density, "gausian")


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_the_closed_form_and_padding_and_unknown_values_cost_nothing(name: str) -> None:
    density = made(name)
    features, targets = torch.randn(3, 4, 3, dtype=torch.float64), drawn(name, 3, 4, 2)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    wanted = by_hand(name, outputs(density, features), targets.numpy())
    wanted[0, 1, 0] = 0
    targets[0, 1, 0] = torch.nan
    targets[1, 2:] = torch.nan
    features[2] = 1e300
    found = density.loss(features, targets, mask)
    np.testing.assert_allclose(found.detach(), wanted.sum(-1) * mask.numpy(), rtol=1e-10)
    found.sum().backward()
    assert all(p.grad is not None and p.grad[:, None].isfinite().all() for p in density.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    density = made(name)
    features = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    targets, mask = drawn(name, 2, 2, 2), torch.tensor([[True, True], [True, False]])
    weights = tuple(density.parameters())

    def loss(features: torch.Tensor, targets: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return density.loss(features, targets, mask)

    targets.requires_grad_(name not in ("poisson", "negative_binomial"))
    assert torch.autograd.gradcheck(loss, (features, targets, *weights))


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_is_what_many_draws_come_to(name: str) -> None:
    density = made(name)
    features = torch.randn(3, dtype=torch.float64).expand(20_000, 3)
    if name == "squared_error":
        with pytest.raises(ConfigError, match="predicts no distribution, so it cannot be sampled"):
            density.sample(features, torch.Generator())
        return
    draws = density.sample(features, torch.Generator().manual_seed(1))
    spread = draws.std(0) / math.sqrt(len(draws))
    assert ((draws.mean(0) - density.mean(features)[0]).abs() < 5 * spread).all()
    again = density.sample(features, torch.Generator().manual_seed(1))
    assert torch.equal(draws, again)


def test_quantiles_of_a_gaussian_are_those_of_the_normal_distribution() -> None:
    density = made("gaussian")
    features = torch.randn(5, 3, dtype=torch.float64)
    o = outputs(density, features)
    share = torch.rand(5, 2, dtype=torch.float64)
    wanted = [
        [NormalDist(o[row, k], math.exp(o[row, 2 + k] / 2)).inv_cdf(float(share[row, k])) for k in range(2)]
        for row in range(5)
    ]
    assert_close(density.quantile(features, share).detach(), torch.tensor(wanted, dtype=torch.float64))
    ends = density.quantile(features[:1], torch.tensor([[0.0, 1.0]], dtype=torch.float64))
    assert ends.isfinite().all()


def test_a_gaussian_is_never_surer_than_its_floor() -> None:
    density = Gaussian(1, 1).double()
    nn.init.constant_(density.readout.bias, -1000.0)
    nn.init.zeros_(density.readout.weight)
    features, one = torch.zeros(1, 1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    cost = density.loss(features, torch.full((1, 1, 1), -1000.0, dtype=torch.float64), one)
    assert float(cost.detach()) == pytest.approx(0.5 * (math.log(2 * math.pi) - 12))


def test_the_answer_of_coins_is_the_likelier_side_and_of_numbers_the_mean() -> None:
    features = torch.randn(50, 3, dtype=torch.float64)
    coins = made("bernoulli")
    assert torch.equal(coins.best(features), (coins.mean(features) > 0.5).double())
    assert torch.equal(coins.quantile(features, torch.full((50, 2), 0.5).double()), coins.best(features))
    for name in ("gaussian", "squared_error"):
        assert torch.equal(made(name).best(features), made(name).mean(features))


def test_targets_and_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"targets must be a tensor of shape \(1, 2, 3\), but found \(1, 2, 1\)"):
        Bernoulli(4, 3).loss(torch.zeros(1, 2, 4), torch.zeros(1, 2, 1), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="size must be a whole number of at least 1, but is 0"):
        SquaredError(3, 0)
    assert repr(SquaredError(3, 2)).startswith("SquaredError(\n  3, 2\n")


@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_costs_keep_the_type_of_the_targets(name: str) -> None:
    density = made(name).float()
    features, targets = torch.randn(2, 3, 3), drawn(name, 2, 3, 2).float()
    mask = torch.ones(2, 3, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        found = density.loss(features, targets, mask)
    assert found.dtype == torch.float32
    assert_close(found, density.loss(features, targets, mask), rtol=0.05, atol=0.05)
