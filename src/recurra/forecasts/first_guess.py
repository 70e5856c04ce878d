"""A first guess of the autoregression of a direct forecaster, by least squares (`models.at_once`).

From every origin t of the training series, with the last L values minus the last one as row X_t, and the residual of
the rule that the last season comes again as target,

    R_tk = x_{t+k} − x_t − Σ_j A⁰_kj (x_{t−L+j} − x_t)                          A⁰ is that rule
    A    = A⁰ + argmin_D  Σ_t w_t |R_t − D X_t|² + λ n |D|²

where w_t = 1 / max(1, √ mean_k R_tk²), so that no outlier counts for more than its size, and n is the mean of the
diagonal of Σ w X Xᵀ. λ is the one of LAMBDAS with the least error on the last fifth of the origins of each series, by
a fit to those before them; then both are fitted together. Where that is A⁰ itself, it stays.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from recurra.forecasts.conventions import Conventions

Floats = NDArray[np.float64]

LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)

MOST = 100_000
"""Origins, about, that are looked at: every so-many-th."""

AT_ONCE = 2**22
"""Numbers, about, of the matrices of some origins."""

READ = 1024
"""Series that are read together."""

HELD_OUT = 0.2
"""The share of the origins of a series by which λ is chosen."""

QUIET = 0.1
"""By this the weights of the density are multiplied: at first the network shall say little beside the guess."""


class Sums(NamedTuple):
    """What least squares needs to know of origins."""

    squares: Floats  # (L, L): Σ w X Xᵀ
    products: Floats  # (L, K): Σ w X Rᵀ
    residuals: float  # Σ w |R|²
    origins: int

    @classmethod
    def zeros(cls, lags: int, horizon: int) -> Sums:
        return cls(np.zeros((lags, lags)), np.zeros((lags, horizon)), 0.0, 0)

    def added(self, x: Floats, r: Floats) -> Sums:
        """With origins of which x (n, L) and r (n, K) are known."""
        w = 1 / np.maximum(1, np.sqrt(np.square(r).mean(1, keepdims=True)))
        return Sums(
            self.squares + (w * x).T @ x,
            self.products + (w * x).T @ r,
            self.residuals + float((w * np.square(r)).sum()),
            self.origins + len(x),
        )

    def __or__(self, other: Sums) -> Sums:
        return Sums(
            self.squares + other.squares,
            self.products + other.products,
            self.residuals + other.residuals,
            self.origins + other.origins,
        )

    def solved(self, penalty: float) -> Floats:
        """(L, K): Dᵀ."""
        ridge = penalty * np.trace(self.squares) / len(self.squares) + 1e-12
        return np.asarray(np.linalg.solve(self.squares + ridge * np.eye(len(self.squares)), self.products))

    def error(self, found: Floats) -> float:
        """Σ w |R − D X|² of Dᵀ (L, K)."""
        return self.residuals - 2 * float((found * self.products).sum()) + float((found * (self.squares @ found)).sum())


def first_guess(conventions: Conventions, model: Any, store: Any) -> str | None:
    """Put the autoregression that fits the encoded training series best into a new model, and say so. (torch)"""
    direct = model.direct
    if direct is None:
        return None
    seasonal = direct.autoregression.detach().cpu().double().numpy()  # (K, L)
    early, late = _sums(store, seasonal, earliest=(conventions.settings.data.season or 1) - 1)
    if not early.origins or not late.origins:
        return None
    errors = {penalty: late.error(early.solved(penalty)) for penalty in LAMBDAS}
    penalty = min(errors, key=lambda each: errors[each])
    if not errors[penalty] < late.residuals:
        return None
    found = seasonal + (early | late).solved(penalty).T
    with torch.no_grad():
        direct.autoregression.copy_(torch.from_numpy(found))
        for part in model.density.modules():
            if isinstance(part, torch.nn.Linear):
                part.weight.mul_(QUIET)
    share = np.sqrt(errors[penalty] / late.residuals)
    return (
        f"the autoregression starts from a least-squares fit to the training series: on their last fifth its root mean "
        f"squared error is {share:.2f} times that of repeating the last season"
    )


def _sums(store: Any, seasonal: Floats, *, earliest: int) -> tuple[Sums, Sums]:
    """Of the first origins of all series, and of the last, by which λ is chosen."""
    horizon, lags = seasonal.shape
    early = late = Sums.zeros(lags, horizon)
    stride = max(1, int(store.size("values")) // MOST)
    for row in itertools.chain.from_iterable(store.take(some) for some in _in_parts(len(store))):
        values, known = row["values"].astype(np.float64), row["known"]
        origins = np.arange(min(earliest, max(0, len(values) - horizon - 1)), len(values) - horizon, stride)
        last = int((1 - HELD_OUT) * len(values))
        numbers = len(origins) * (lags + horizon) * values.shape[1]
        for some in np.array_split(origins, max(1, numbers // AT_ONCE)):
            x, r = _rows(values, known, some, seasonal)
            is_whole = ~np.isnan(r).any(1)
            at = np.tile(some, values.shape[1])
            is_early, is_late = at + horizon < last, at >= last
            if len(origins) and origins[-1] < last:  # a short series has its last origin there
                is_late = at == origins[-1]
                is_early = is_early & ~is_late
            early = early.added(x[is_whole & is_early], r[is_whole & is_early])
            late = late.added(x[is_whole & is_late], r[is_whole & is_late])
    return early, late


def _in_parts(rows: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(rows), -(-rows // READ)) if rows else []


def _rows(values: Floats, known: Any, origins: NDArray[np.int64], seasonal: Floats) -> tuple[Floats, Floats]:
    """X (n d, L) and R (n d, K), NaN where a value is not known."""
    horizon, lags = seasonal.shape
    level = values[origins].T[:, :, None]  # (d, n, 1)
    x = values[np.maximum(origins[:, None] + np.arange(1 - lags, 1), 0)].transpose(2, 0, 1) - level
    gold = np.where(known, values, np.nan)[origins[:, None] + np.arange(1, horizon + 1)].transpose(2, 0, 1) - level
    r = gold - x @ seasonal.T
    return x.reshape(-1, lags), r.reshape(-1, horizon)
