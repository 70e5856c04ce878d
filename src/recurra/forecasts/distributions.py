"""The functions of which distribution functions are made, by NumPy alone: log Γ, Q(a, x) and I_x(a, b), in float64.

Q(a, x)   = 1/Γ(a) ∫_x^∞ t^(a−1) e^(−t) dt
I_x(a, b) = 1/B(a, b) ∫_0^x t^(a−1) (1 − t)^(b−1) dt = 1 − I_(1−x)(b, a)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

log_gamma: Any = np.vectorize(math.lgamma, otypes=[np.float64])

MOST = 2000
"""Terms of a fraction or series; about √min(a, b) of them are needed."""

LEAST, ENOUGH = 1e-300, 1e-13
"""What stands for a denominator that is 0, and a change that is none."""

MANY = 200.0
"""From this a on, Q(a, x) is an integral over few points."""

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(40)


def upper_gamma(a: Any, x: Any) -> Floats:
    """Q(a, x) of a > 0 and x ≥ 0 that fit each other.

    Small a: the series of 1 − Q where x < a + 1, else the continued fraction, as Lentz evaluates it. Large a: with the
    peak of the integrand at t = a − 1, Gauss and Legendre's rule from x to where it has vanished.

    >>> upper_gamma(1.0, np.array([0.0, 1.0])).round(12).tolist()         # Q(1, x) = e^−x
    [1.0, 0.367879441171]
    """
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    is_large, is_early = a > MANY, x < a + 1
    found = np.zeros(a.shape)
    for chosen, part in (
        (is_large, _by_points),
        (~is_large & is_early, _by_series),
        (~is_large & ~is_early, _by_fraction),
    ):
        if chosen.any():
            found[chosen] = part(a[chosen], x[chosen])
    return np.clip(found, 0, 1)


def _by_series(a: Floats, x: Floats) -> Floats:
    """1 − x^a e^−x Σ_n x^n / (a (a + 1) … (a + n)) / Γ(a)."""
    term = total = 1 / a
    for n in range(1, MOST):
        term = term * x / (a + n)
        total = total + term
        if (term <= ENOUGH * total).all():
            break
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(x > 0, total * np.exp(a * np.log(x) - x - log_gamma(a)), 0.0)
    return np.asarray(1 - below)


def _by_fraction(a: Floats, x: Floats) -> Floats:
    """x^a e^−x / Γ(a) · 1/(x + 1 − a − 1 (1 − a)/(x + 3 − a − …))."""
    b = x + 1 - a
    c, d = np.full_like(x, 1 / LEAST), 1 / b
    found = d
    for n in range(1, MOST):
        b = b + 2
        ratio = n * (a - n)
        d = 1 / _not_zero(ratio * d + b)
        c = _not_zero(b + ratio / c)
        found = found * (c * d)
        if (np.abs(c * d - 1) <= ENOUGH).all():
            break
    return np.asarray(found * np.exp(a * np.log(x) - x - log_gamma(a)))


def _by_points(a: Floats, x: Floats) -> Floats:
    """Beyond 12 widths from the peak both tails have vanished. By Stirling's Γ(a) nothing large is subtracted."""
    peak = a - 1
    wide = np.sqrt(peak)
    is_after = x > peak
    end = np.where(is_after, np.maximum(peak + 12 * wide, x + 8 * wide), np.maximum(np.minimum(peak, x) - 12 * wide, 0))
    half = 0.5 * (end - x)
    t = (0.5 * (end + x))[..., None] + half[..., None] * POINTS
    far = np.maximum(t / peak[..., None] - 1, -1 + 1e-12)
    each = np.exp(peak[..., None] * (np.log1p(far) - far))
    stirling = np.sqrt(2 * np.pi * peak) * np.exp(1 / (12 * peak) - 1 / (360 * peak**3))
    area = half * (each * WEIGHTS).sum(-1) / stirling
    return np.where(is_after, area, 1 + area)


def incomplete_beta(a: Any, b: Any, x: Any, y: Any) -> Floats:
    """I_x(a, b) of arrays that fit each other; y is 1 − x, where it is known better than x.

    By its continued fraction, as Lentz evaluates it, on the side of the symmetry where it converges fast:

        I_x(a, b) = x^a y^b / (a B(a, b)) · 1/(1 + d_1/(1 + d_2/(1 + …))),        for x ≤ (a + 1)/(a + b + 2)
        d_2m   = m (b − m) x / ((a + 2m − 1)(a + 2m))
        d_2m+1 = −(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1))

    >>> float(incomplete_beta(2.0, 1.0, 0.5, 0.5).round(12))             # of a = 2, b = 1 it is x²
    0.25
    """
    a, b, x, y = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (a, b, x, y)))
    is_turned = x > (a + 1) / (a + b + 2)
    a, b, x, y = (np.where(is_turned, *each) for each in ((b, a), (a, b), (y, x), (x, y)))
    log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(x > 0, a * np.log(x), -np.inf) + b * np.log(y)
    found = np.exp(powers - log_beta - np.log(a)) * _fraction(a, b, x)
    return np.clip(np.where(is_turned, 1 - found, found), 0, 1)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """1/(1 + d_1/(1 + d_2/(1 + …)))."""
    c = np.ones_like(x)
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, MOST):
        before = found
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            found = found * (c * d)
        if (np.abs(found - before) <= ENOUGH * np.abs(found)).all():
            break
    return found


def _not_zero(value: Floats) -> Floats:
    return np.where(np.abs(value) > LEAST, value, LEAST)
