"""Distribution functions, quantiles, means and CRPS against numerical integrals, sums and torch.distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, distributions, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from recurra.densities import (
    Counting,
    Density,
    Gaussian,
    Mixture,
    NegativeBinomial,
    Poisson,
    Quantiles,
    StudentT,
    quantiles,
)
from recurra.densities.density import pinball
from recurra.densities.incomplete_beta import incomplete_beta
from recurra.densities.student_t import Cost, CostOfOutputs, quantile_at, standard_quantile
from recurra.errors import ConfigError
from recurra.named import find

REAL = ("gaussian", "student_t", "mixture", "log_normal", "quantiles")
COUNTS = ("poisson", "negative_binomial")
EMPTY = torch.zeros(1, dtype=torch.float64)


def fixed(name: str, *bias: float, unit: float = 1.0, **options: object) -> Density:
    """A density of one value whose parameters are these numbers, whatever the features."""
    density = find(Density, name)(1, 1, **options).double()
    layer = density.readout
    assert isinstance(layer, nn.Linear)
    nn.init.zeros_(layer.weight)
    with torch.no_grad():
        layer.bias.copy_(torch.tensor(bias, dtype=torch.float64))
    if isinstance(density, Counting):
        density.unit.fill_(unit)
    return density


def chosen(name: str, a: float, b: float, c: float) -> Density:
    match name:
        case "poisson":
            return fixed(name, a, unit=math.exp(c))
        case "gaussian" | "log_normal" | "negative_binomial":
            return fixed(name, a, b, **({"unit": math.exp(c)} if name == "negative_binomial" else {}))
        case "mixture":
            return fixed(name, a, b, c, c, a, b, b, c, a)
        case "quantiles":
            return fixed(name, c, a, b, a, levels=[0.1, 0.4, 0.7, 0.9])
    return fixed(name, a, b, c)


def at(method: Callable[[Tensor, Tensor], Tensor], values: Tensor) -> Tensor:
    """What a method of a density gives for each of some values, (N,)."""
    return method(EMPTY.expand(len(values), 1), values.unsqueeze(1)).squeeze(1).detach()


PLAIN = st.floats(-2.0, 2.0)


@settings(max_examples=10, deadline=None)
@given(name=st.sampled_from(REAL), a=PLAIN, b=PLAIN, c=PLAIN, x=st.floats(-4.0, 4.0))
def test_quantiles_invert_the_distribution_function_and_the_crps_is_its_integral(
    name: str, a: float, b: float, c: float, x: float
) -> None:
    density = chosen(name, a, min(b, 0.0) if name == "log_normal" else b, c)
    x = math.exp(x / 2) if name == "log_normal" else x
    shares = (torch.arange(4_000, dtype=torch.float64) + 0.5) / 4_000
    q = at(density.quantile, shares)
    few = torch.tensor([1e-9, 1e-4, 0.03, 0.31, 0.5, 0.77, 0.999], dtype=torch.float64)
    assert_close(at(density.cdf, at(density.quantile, few)), few, rtol=1e-8, atol=1e-12)
    assert_close(at(density.tail, at(density.quantile, few)), 2 * torch.minimum(few, 1 - few), rtol=1e-7, atol=1e-12)
    value = torch.tensor([x], dtype=torch.float64)
    mean = density.mean(EMPTY).detach()
    assert_close(q.mean(), mean[0], rtol=1e-2, atol=1e-2)
    if name == "quantiles":  # its CRPS is by its own levels
        wanted = torch.zeros_like(value)
        for level, found in zip((0.1, 0.4, 0.7, 0.9), density.levels_of(EMPTY).detach()[0], strict=True):  # type: ignore[operator]
            wanted += 2 / 4 * torch.maximum(level * (value - found), (level - 1) * (value - found))
        assert_close(at(density.crps, value), wanted)
        return
    by_quantiles = (2 * ((x < q).double() - shares) * (q - x)).mean()
    assert_close(at(density.crps, value)[0], by_quantiles, rtol=1e-2, atol=1e-2)
    if name in ("gaussian", "log_normal"):
        assert_close(Density.crps(density, EMPTY, value).detach()[0], by_quantiles, rtol=0.1, atol=0.05)


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(COUNTS), a=st.floats(-2.0, 30.0), b=PLAIN, c=PLAIN, k=st.integers(0, 60))
def test_counts_are_those_of_brute_force_sums(name: str, a: float, b: float, c: float, k: int) -> None:
    density = chosen(name, a, b, c)
    assert isinstance(density, Counting)
    unit = density.unit.item()
    every = torch.arange(40_000, dtype=torch.float64)
    p = (-at(density.costs, every / unit)).exp()
    assert_close(p.sum().item(), 1.0, rtol=1e-6, atol=1e-6)
    assert_close((p * every).sum() / unit, density.mean(EMPTY).detach()[0], rtol=1e-5, atol=1e-5)
    below = p.cumsum(0)
    assert_close(at(density.cdf, every[:200] / unit), below[:200], rtol=1e-8, atol=1e-10)
    assert at(density.cdf, torch.tensor([-0.5], dtype=torch.float64)).item() == 0
    shares = torch.tensor([0.01, 0.2, 0.5, 0.9, 0.999], dtype=torch.float64)
    least = torch.searchsorted(below, shares)
    assert_close(at(density.quantile, shares) * unit, least.double(), rtol=0, atol=1e-9)
    above = 1 - below + p
    for count in (0, k, 3 * k + 7):
        wanted = min(1.0, 2 * min(below[count].item(), above[count].item()))
        found = at(density.tail, torch.tensor([count / unit], dtype=torch.float64)).item()
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-10)
    crps = (below - (every >= k).double()).square().sum() / unit
    assert_close(at(density.crps, torch.tensor([k / unit], dtype=torch.float64))[0], crps, rtol=1e-6, atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(a=PLAIN, b=PLAIN, c=PLAIN, x=st.floats(-5.0, 5.0))
def test_costs_are_those_of_torch_distributions(a: float, b: float, c: float, x: float) -> None:
    value, count = torch.tensor([x], dtype=torch.float64), torch.tensor([float(round(abs(3 * x)))], dtype=torch.float64)
    one = torch.tensor(1.0, dtype=torch.float64)
    nu, spread = 2.01 + math.log1p(math.exp(c)), math.exp(b / 2)
    rate, r = math.log1p(math.exp(a)) + 1e-6, math.exp(b)
    mixture = distributions.MixtureSameFamily(
        distributions.Categorical(logits=torch.tensor([a, b, c], dtype=torch.float64)),
        distributions.Normal(
            torch.tensor([c, a, b], dtype=torch.float64), torch.tensor([b / 2, c / 2, a / 2], dtype=torch.float64).exp()
        ),
    )
    cases = [
        (chosen("student_t", a, b, c), value, distributions.StudentT(nu * one, a * one, spread * one)),
        (chosen("log_normal", a, b, c), value.exp(), distributions.LogNormal(a * one, spread * one)),
        (fixed("poisson", a), count, distributions.Poisson(rate * one)),
        (fixed("negative_binomial", a, b), count, distributions.NegativeBinomial(r * one, rate / (r + rate) * one)),
        (chosen("mixture", a, b, c), value, mixture),
    ]
    for density, given_value, known in cases:
        assert_close(at(density.costs, given_value), -known.log_prob(given_value), rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(a=st.floats(0.01, 200.0), b=st.floats(0.01, 200.0), x=st.floats(0.001, 0.999))
def test_the_incomplete_beta_function_is_its_integral(a: float, b: float, x: float) -> None:
    # With t = e^(−v) below and 1 − t = e^(−v) above, neither end is singular.
    def below(a: float, b: float, x: float) -> float:
        v = -math.log(x) + np.linspace(0, 1, 20_001) * 45 / min(a, 1.0)
        log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        values = np.exp(-a * v + (b - 1) * np.log1p(-np.exp(-v)) - log_beta)
        return float(np.trapezoid(values, v))

    middle = a / (a + b)
    wanted = below(a, b, x) if x < middle else 1 - below(b, a, 1 - x)
    found = incomplete_beta(*(torch.tensor([each], dtype=torch.float64) for each in (a, b, x)))
    assert found.item() == pytest.approx(wanted, abs=2e-3)
    # Exactly known: a difference of two of them is a binomial probability.
    n, k = 12, 1 + int(a) % 11
    p = torch.tensor([x], dtype=torch.float64)
    upper = [incomplete_beta(torch.full_like(p, j), torch.full_like(p, n - j + 1), p).item() for j in (k, k + 1)]
    assert upper[0] - upper[1] == pytest.approx(math.comb(n, k) * x**k * (1 - x) ** (n - k), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("nu", [2.01, 3.0, 7.5, 30.0, 100.0])
def test_quantiles_of_students_t_are_exact_far_out_too(nu: float) -> None:
    density = fixed("student_t", 0.0, 0.0, math.log(math.expm1(max(nu - 2.01, 1e-9))))
    shares = torch.tensor([1e-14, 1e-8, 1e-3, 0.2, 0.45, 0.5, 0.8, 0.9999], dtype=torch.float64)
    assert_close(at(density.cdf, at(density.quantile, shares)), shares, rtol=1e-7, atol=0)
    assert at(density.quantile, torch.tensor([0.5], dtype=torch.float64)).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.8, 0.999])
def test_one_quantile_of_many_degrees_of_freedom_is_interpolated_exactly(share: float) -> None:
    nu = torch.from_numpy(np.concatenate([np.linspace(2.01, 5, 600), np.linspace(5, 100, 600)]))
    found = quantile_at(torch.full_like(nu, share), nu)
    wanted = standard_quantile(torch.full_like(nu, share), nu)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)


def test_known_quantiles_of_students_t() -> None:
    # t with 3 degrees of freedom has a closed distribution function.
    z = torch.tensor([-8.0, -1.0, 0.0, 0.5, 3.0], dtype=torch.float64)
    w = z / math.sqrt(3)
    wanted = 0.5 + (torch.atan(w) + w / (1 + w.square())) / math.pi
    density = fixed("student_t", 0.0, 0.0, math.log(math.expm1(0.99)))
    assert_close(at(density.cdf, z), wanted, rtol=1e-12, atol=1e-14)


EXTREMES = (-1e4, -20.0, 0.0, 100.0, 1e4)


@pytest.mark.parametrize("name", [*REAL, *COUNTS, "bernoulli"])
def test_in_float32_extreme_features_and_values_give_no_nan(name: str) -> None:
    torch.manual_seed(0)
    density = find(Density, name)(2, 1)
    features = torch.cartesian_prod(torch.tensor(EXTREMES), torch.tensor(EXTREMES)).requires_grad_()
    values = [0.0, 1.0] if name == "bernoulli" else [0.0, 1.0, 1e6] if name in COUNTS else [1e-20, 1.0, 1e9, -1e9]
    values = [abs(value) for value in values] if name == "log_normal" else values
    for value in values:
        targets = torch.full((len(features), 1), value)
        loss = density.loss(features.unsqueeze(0), targets.unsqueeze(0), torch.ones(1, len(features), dtype=torch.bool))
        gradients = torch.autograd.grad(loss.sum(), [features, *density.parameters()])
        assert not any(gradient.isnan().any() for gradient in (loss, *gradients))
        with torch.no_grad():
            assert not density.cdf(features, targets).isnan().any()
            assert not density.crps(features, targets).isnan().any()
    with torch.no_grad():
        for share in (0.0, 0.05, 0.5, 0.95):
            found = density.quantile(features, torch.full((len(features), 1), share))
            assert found.isfinite().all()
        assert density.mean(features).isfinite().all()
        assert density.best(features).isfinite().all()


@pytest.mark.parametrize("name", [*REAL, *COUNTS])
def test_features_may_have_any_leading_shape(name: str) -> None:
    torch.manual_seed(0)
    density = find(Density, name)(3, 2).double()
    features = torch.randn(2, 3, 4, 3, dtype=torch.float64)
    values = torch.randint(1, 5, (2, 3, 4, 2)).double()
    shares = torch.rand(2, 3, 4, 2, dtype=torch.float64)
    with torch.no_grad():
        for whole, alone in (
            (
                density.loss(features, values, torch.ones(2, 3, 4, dtype=torch.bool)),
                density.costs(features[1, 2, 0], values[1, 2, 0]).sum(-1),
            ),
            (density.mean(features), density.mean(features[1, 2, 0])),
            (density.best(features), density.best(features[1, 2, 0])),
            (density.quantile(features, shares), density.quantile(features[1, 2, 0], shares[1, 2, 0])),
            (density.cdf(features, values), density.cdf(features[1, 2, 0], values[1, 2, 0])),
            (density.crps(features, values), density.crps(features[1, 2, 0], values[1, 2, 0])),
        ):
            assert_close(whole[1, 2, 0], alone)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-50.0, 50.0), min_size=19, max_size=19))
def test_quantiles_never_cross(numbers: list[float]) -> None:
    density = fixed("quantiles", *numbers)
    assert isinstance(density, Quantiles)
    assert (density.levels_of(EMPTY).diff(dim=-1) >= 0).all()
    assert (at(density.quantile, torch.linspace(0.001, 0.999, 200, dtype=torch.float64)).diff() >= -1e-12).all()


def test_before_training_quantiles_are_those_of_the_standard_normal_distribution() -> None:
    density = Quantiles(3, 1).double()
    nn.init.zeros_(density.readout.weight)
    wanted = torch.special.ndtri(density.levels)
    assert_close(density.levels_of(torch.zeros(3, dtype=torch.float64))[0].detach(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("piece", [1, 120, 1 << 16])
def test_the_loss_in_pieces_and_its_gradients_are_those_of_the_definition(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    density = Quantiles(4, 3, levels=[0.1, 0.4, 0.7, 0.9]).double()
    features = torch.randn(2, 3, 5, 4, dtype=torch.float64)[:, :, ::2].requires_grad_()  # not in one piece of memory
    values = torch.randn(2, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 3, 3, 3, dtype=torch.float64)
    asked = [features, values, density.readout.weight, density.readout.bias]
    found, apart = density.levels_of(features), values.unsqueeze(-1)
    plain = 2 * pinball(found, apart, density.levels).mean(-1)
    wanted = [plain, *torch.autograd.grad((plain * weights).sum(), asked)]
    monkeypatch.setattr(quantiles, "MANY", 0)
    monkeypatch.setattr(quantiles, "PIECE", piece)
    costs = density.costs(features, values)
    assert "InPieces" in type(costs.grad_fn).__name__
    assert_close([costs, *torch.autograd.grad((costs * weights).sum(), asked)], wanted, rtol=1e-12, atol=1e-12)


def test_in_pieces_no_table_of_all_quantiles_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles, "MANY", 1000)
    density, rows = Quantiles(2, 2), 40_000
    made: list[int] = []

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            made.append(found.numel() if isinstance(found, Tensor) else 0)
            return found

    with Noting():  # type: ignore[no-untyped-call]
        density.costs(torch.randn(rows, 2, requires_grad=True), torch.randn(rows, 2)).sum().backward()
    assert max(made) <= 2 * rows < quantiles.PIECE * 2 < rows * 2 * 19


@pytest.mark.parametrize("levels", [[0.5], [0.9, 0.1], [0.1, 0.1, 0.5], [0.0, 0.5], [0.5, 1.0]])
def test_levels_that_are_none_are_refused(levels: list[float]) -> None:
    with pytest.raises(ConfigError, match="levels must be at least two ascending numbers between 0 and 1"):
        Quantiles(3, 1, levels=levels)


def test_a_mixture_of_one_is_a_gaussian_and_needs_at_least_one() -> None:
    one, plain = fixed("mixture", 0.3, 0.7, -0.4, count=1), fixed("gaussian", 0.7, -0.4)
    assert isinstance(one, Mixture)
    assert isinstance(plain, Gaussian)
    values = torch.linspace(-3, 3, 7, dtype=torch.float64)
    for found, wanted in ((one.costs, plain.costs), (one.cdf, plain.cdf), (one.crps, plain.crps)):
        assert_close(at(found, values), at(wanted, values))
    shares = torch.linspace(0.01, 0.99, 9, dtype=torch.float64)
    assert_close(at(one.quantile, shares), at(plain.quantile, shares), rtol=1e-9, atol=1e-9)
    with pytest.raises(ConfigError, match="count must be a whole number of at least 1, but is 0"):
        Mixture(3, 1, count=0)


def test_a_count_that_went_through_float32_is_still_that_count() -> None:
    density = Poisson(2, 1)
    density.unit.fill_(7.3)
    counts = torch.arange(1000.0)
    features = torch.zeros(1000, 2)
    assert torch.equal(density.counts_of(features, (counts / 7.3).unsqueeze(1)).squeeze(1), counts.double())


def test_the_unit_of_counts_stays_exact_when_weights_become_others() -> None:
    density = NegativeBinomial(2, 1)
    density.unit.fill_(1 / 3)
    assert density.half().float().unit.item() == 1 / 3


def test_densities_with_more_freedom_tend_to_those_with_less() -> None:
    values = torch.linspace(-2, 2, 5, dtype=torch.float64)
    wide = fixed("student_t", 0.2, 0.1, 1000.0)
    assert isinstance(wide, StudentT)
    assert_close(at(wide.costs, values), at(fixed("gaussian", 0.2, 0.1).costs, values), rtol=0.02, atol=0.02)
    counts = torch.arange(9, dtype=torch.float64)
    narrow = fixed("negative_binomial", 3.0, 12.0)
    assert_close(at(narrow.crps, counts), at(fixed("poisson", 3.0).crps, counts), rtol=1e-4, atol=1e-4)


def test_gradients_of_students_t_are_those_of_its_logarithm_taken_apart() -> None:
    draw = torch.Generator().manual_seed(0)
    x, mean, log_square = torch.randn(3, 40, generator=draw, dtype=torch.float64)
    nu = 2.01 + 90 * torch.rand(40, generator=draw, dtype=torch.float64)
    given = [each.requires_grad_() for each in (x, mean, log_square, nu)]
    cost = Cost.apply(*given)  # type: ignore[no-untyped-call]
    wanted = -distributions.StudentT(nu, mean, (0.5 * log_square).exp()).log_prob(x)
    assert_close(cost, wanted)
    assert_close(torch.autograd.grad(cost.sum(), given), torch.autograd.grad(wanted.sum(), given))
    assert torch.autograd.gradgradcheck(Cost.apply, [each[:3].detach().requires_grad_() for each in given])
    # Of each value by itself, through torch.func.
    one = torch.func.vmap(torch.func.grad(Cost.apply, argnums=3))(*(each.detach() for each in given))
    assert_close(one, torch.autograd.grad(Cost.apply(*given).sum(), given[3])[0])  # type: ignore[no-untyped-call]


def test_a_value_far_out_has_a_finite_gradient_in_students_t() -> None:
    parts = [torch.tensor([each], dtype=torch.float64, requires_grad=True) for each in (0.0, 1e200, 0.0, 5.0)]
    Cost.apply(*parts).sum().backward()  # type: ignore[no-untyped-call]
    assert all(part.grad is not None and part.grad.isfinite().all() for part in parts)


def test_the_cost_by_outputs_has_the_gradients_of_the_cost_by_parts_also_at_the_bounds() -> None:
    torch.manual_seed(0)
    density = StudentT(3, 2).double()
    with torch.no_grad():
        density.readout.bias.copy_(torch.tensor([0.3, -0.2, 20.0, 0.1, 0.5, 300.0]))  # l and ν beyond their bounds
    features = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    wanted = [features, values, *density.parameters()]
    by_parts = Cost.apply(values, *density.parts(features))  # type: ignore[no-untyped-call]
    assert_close(density.costs(features, values), by_parts)
    gradients = [torch.autograd.grad(each.sum(), wanted) for each in (density.costs(features, values), by_parts)]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-14)
    o = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(CostOfOutputs.apply, (o, x))
    assert torch.autograd.gradgradcheck(CostOfOutputs.apply, (o, x))
