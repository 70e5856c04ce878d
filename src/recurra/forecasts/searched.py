"""Log p and quantiles of densities whose quantiles have to be searched for, without torch, from their parameters.

    poisson              rate λ/s               P(K ≤ k) = Q(k + 1, λ)
    negative_binomial    rate m/s, shape r      P(K ≤ k) = I_p(r, k + 1),   p = r/(r + m)
    student_t            log σ² and ν           F_ν(z) = 1 − ½ I_{ν/(ν+z²)}(ν/2, ½) for z ≥ 0
    mixture              log w_i, μ_i, log σ_i²  F(x) = Σ_i w_i Φ((x − μ_i)/σ_i)

s is the unit of counts. A program computes the parameters of each step ahead; what is made of them here is what the
classes of `recurra.densities` make of them in torch, in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from recurra.forecasts.distributions import incomplete_beta, log_gamma, upper_gamma
from recurra.metrics.forecast_errors import LEVELS

Floats = NDArray[np.float64]

HALVINGS, NEAR = 60, 1e-10
"""Of an interval in which a quantile of a mixture lies, and how long it is in the end, beside 1 or what lies there."""

normal_cdf: Any = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)), otypes=[np.float64])
"""Φ(z)."""

CORRECTIONS = 4
"""Steps that bring a first guess of a quantile of Student's t to full precision."""


def searched(said: Mapping[str, Floats], unit: Floats, *, fan: bool) -> dict[str, Floats]:
    """`log_p` (h,) of the values (h, d) of steps ahead, and of a `fan` the quantiles (h, L, d) at LEVELS."""
    density = Counts(said, unit) if "rate" in said else StudentT(said) if "freedom" in said else Mixture(said)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        found = {"log_p": density.log_p().sum(1)}
        return {**found, "fan": density.quantiles()} if fan else found


class Searched(ABC):
    """The density of each value of the steps ahead."""

    @abstractmethod
    def log_p(self) -> Floats:
        """(h, d): of the values that are answered."""

    @abstractmethod
    def quantiles(self) -> Floats:
        """(h, L, d): at LEVELS."""


@final
class Counts(Searched):
    """Whole numbers from 0: Poisson's distribution, or with a shape the negative binomial one."""

    def __init__(self, said: Mapping[str, Floats], unit: Floats) -> None:
        self.values, self.unit = said["values"], unit
        self.mean, self.shape = said["rate"] * unit, said.get("shape")

    def log_p(self) -> Floats:
        k, m, r = self._counts(), self.mean, self.shape
        if r is None:
            return np.asarray(k * np.log(m) - m - log_gamma(k + 1))
        ways = log_gamma(k + r) - log_gamma(r) - log_gamma(k + 1)
        return np.asarray(ways - r * np.log1p(m / r) - k * np.log1p(r / m))

    def _counts(self) -> Floats:
        """The values as counts; one that went through float32 is still that count."""
        counts = self.values * self.unit
        whole = np.round(counts)
        return np.where(np.abs(counts - whole) <= 1e-6 * np.abs(whole) + 1e-9, whole, counts)

    def quantiles(self) -> Floats:
        """The least k with P(K ≤ k) ≥ u, from a normal distribution's quantile on."""
        m = self.mean[:, None]
        r = None if self.shape is None else self.shape[:, None]
        spread = np.sqrt(m if r is None else m + m**2 / r)
        levels, normal = (np.array(each)[:, None] for each in (LEVELS, [*map(NormalDist().inv_cdf, LEVELS)]))
        guess = np.maximum(np.floor(m + spread * normal), 0)
        low, high = self._around(guess, levels, m, r)
        while (high - low > 1).any():  # P(K ≤ low) < u ≤ P(K ≤ high)
            middle = np.floor((low + high) / 2)
            is_enough = below(middle, m, r) >= levels
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return np.asarray(high / self.unit)

    def _around(self, guess: Floats, levels: Floats, m: Floats, r: Floats | None) -> tuple[Floats, Floats]:
        """Counts between which the quantile lies: steps from the guess, each twice as long as the one before."""
        is_enough = below(guess, m, r) >= levels
        low, high = np.where(is_enough, guess - 1, guess), np.where(is_enough, guess, guess + 1)
        step = 1.0
        while True:
            too_high = (low >= 0) & (below(low, m, r) >= levels)
            too_low = below(high, m, r) < levels
            if not (too_high | too_low).any():
                return low, high
            low, high = (
                np.where(too_high, np.maximum(low - step, -1), np.where(too_low, high, low)),
                np.where(too_high, low, np.where(too_low, high + step, high)),
            )
            step *= 2


def below(counts: Floats, m: Any, r: Any) -> Floats:
    """P(K ≤ k) of whole numbers k ≥ −1, by the mean and a shape; None: Poisson's."""
    k = np.maximum(counts, 0) + 1
    found = upper_gamma(k, m) if r is None else incomplete_beta(r, k, r / (r + m), m / (r + m))
    return np.where(counts < 0, 0.0, found)


@final
class StudentT(Searched):
    """Real values with heavy tails."""

    def __init__(self, said: Mapping[str, Floats]) -> None:
        self.means, self.values = said["means"], said["values"]
        self.log_square, self.freedom = said["log_square"], said["freedom"]

    def log_p(self) -> Floats:
        z = (self.values - self.means) * np.exp(-0.5 * self.log_square)
        return np.asarray(log_density(z, self.freedom) - 0.5 * self.log_square)

    def quantiles(self) -> Floats:
        found = standard_quantiles(self.freedom[:, None])
        return np.asarray(self.means[:, None] + np.exp(0.5 * self.log_square)[:, None] * found)


def log_density(z: Floats, nu: Floats) -> Floats:
    """log f_ν(z). The square of a far z would overflow: log(1 + z²/ν) = 2 log √(1² + (z/√ν)²)."""
    far = 2 * np.log(np.hypot(1.0, z / np.sqrt(nu)))
    normal = log_gamma(0.5 * nu + 0.5) - log_gamma(0.5 * nu) - 0.5 * np.log(np.pi * nu)
    return np.asarray(normal - 0.5 * (nu + 1) * far)


def standard_quantiles(nu: Floats) -> Floats:
    """F_ν⁻¹(u) at LEVELS, (h, L, d) of ν (h, 1, d): by Newton's method on log F of the lower tail, which is concave.

    It starts from the larger of two limits: far out, F ≈ C |z|^−ν; in the middle, an expansion in 1/ν.
    """
    shares = np.array(LEVELS)[:, None]
    low = np.minimum(shares, 1 - shares)
    n: Any = np.array([NormalDist().inv_cdf(each) for each in low[:, 0]])[:, None]
    log_c = log_gamma(0.5 * nu + 0.5) - log_gamma(0.5 * nu) - 0.5 * math.log(math.pi) + (0.5 * nu - 1) * np.log(nu)
    outer = -np.exp((log_c - np.log(low)) / nu)
    inner = n + (n**3 + n) / (4 * nu) + (5 * n**5 + 16 * n**3 + 3 * n) / (96 * nu**2)
    z = np.where(outer < -2.5 * np.sqrt(nu), outer, inner)
    for _ in range(CORRECTIONS):
        tail = np.maximum(lower_tail(z, nu), 1e-300)
        slope = np.exp(log_density(z, nu)) / tail
        z = np.minimum(z - (np.log(tail) - np.log(low)) / slope, 0)
    return np.where(shares < 0.5, z, -z)


def lower_tail(z: Floats, nu: Floats) -> Floats:
    """F_ν(z) of z ≤ 0."""
    x = 1 / (1 + z**2 / nu)
    return np.asarray(0.5 * incomplete_beta(0.5 * nu, np.float64(0.5), x, 1 - x))


@final
class Mixture(Searched):
    """Several normal distributions for each value, which may lie around something besides: the answer is the mean."""

    def __init__(self, said: Mapping[str, Floats]) -> None:
        self.weights, self.centres = np.exp(said["log_weights"]), said["centres"]  # (h, d, K)
        self.spreads = np.exp(0.5 * said["log_squares"])
        own = (self.weights * self.centres).sum(-1)
        self.base, self.values = said["means"] - own, own + said["values"] - said["means"]

    def log_p(self) -> Floats:
        z = (self.values[..., None] - self.centres) / self.spreads
        each = np.log(self.weights) - 0.5 * (math.log(2 * math.pi) + z**2) - np.log(self.spreads)
        return np.asarray(np.logaddexp.reduce(each, axis=-1))

    def quantiles(self) -> Floats:
        """Between the smallest and the largest quantile of the components, by halves."""
        weights, centres, spreads = (each[:, None] for each in (self.weights, self.centres, self.spreads))
        levels, normal = (np.array(each)[:, None] for each in (LEVELS, [*map(NormalDist().inv_cdf, LEVELS)]))
        each = centres + spreads * normal[..., None]  # (h, L, d, K)
        low, high = each.min(-1), each.max(-1)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_below = (weights * normal_cdf((middle[..., None] - centres) / spreads)).sum(-1) < levels
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
            if (high - low <= NEAR * (1 + np.abs(high))).all():
                break
        return np.asarray(self.base[:, None] + 0.5 * (low + high))
