"""The regularised incomplete beta function, which the distribution functions of Student's t and of counts need.

    I_x(a, b) = 1/B(a, b) ∫_0^x t^(a−1) (1 − t)^(b−1) dt = 1 − I_(1−x)(b, a)

By its continued fraction, evaluated as Lentz does, on the side of the symmetry where it converges fast:

    I_x(a, b) = x^a (1−x)^b / (a B(a, b)) · 1/(1 + d_1/(1 + d_2/(1 + …))),        for x ≤ (a + 1) / (a + b + 2)
    d_2m   = m (b − m) x / ((a + 2m − 1)(a + 2m))
    d_2m+1 = −(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1))

All in float64, where the device has it. It has no gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.padding import lengthened

MOST = 2000
"""Terms of the fraction; about √min(a, b) of them are needed."""

LEAST = {torch.float64: 1e-300, torch.float32: 1e-37}
"""Stands for a denominator that is 0."""

ENOUGH = {torch.float64: 1e-13, torch.float32: 3e-7}
"""A term that changes less than this part of the sum is the last one."""


@torch.no_grad()
def incomplete_beta(a: Tensor, b: Tensor, x: Tensor, y: Tensor | None = None) -> Tensor:
    """I_x(a, b) of tensors that fit each other; y is 1 − x, where it is known better than x.

    >>> one, two = torch.ones(1, dtype=torch.float64), torch.full((1,), 2.0, dtype=torch.float64)
    >>> round(incomplete_beta(two, one, 0.25 * two).item(), 12)       # of a = 2, b = 1 it is x²
    0.25
    """
    y = 1 - x if y is None else y
    a, b, x, y = torch.broadcast_tensors(*(lengthened(each) for each in (a, b, x, y)))
    is_turned = x > (a + 1) / (a + b + 2)
    a, b, x, y = b.where(is_turned, a), a.where(is_turned, b), y.where(is_turned, x), x.where(is_turned, y)
    log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    found = (torch.special.xlogy(a, x) + torch.special.xlogy(b, y) - log_beta - a.log()).exp() * _fraction(a, b, x)
    return (1 - found).where(is_turned, found).clamp(0, 1)


def _fraction(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """1/(1 + d_1/(1 + d_2/(1 + …)))."""
    c = torch.ones_like(x)
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
        if bool(((found - before).abs() <= ENOUGH[x.dtype] * found.abs()).all()):
            break
    return found


def _not_zero(value: Tensor) -> Tensor:
    least = LEAST[value.dtype]
    return value.where(value.abs() > least, least)
