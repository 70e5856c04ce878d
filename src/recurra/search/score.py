"""How whole sequences are compared."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.search.arrays import Array, clipped_log, where

LEAST_COVERED = 1e-10
"""A source place with less attention than this counts as having this much, so that no score becomes -∞."""


def divisor(length: int, length_penalty: float) -> float:
    """((5 + |y|) / 6)^α (Wu et al. 2016): what log P of a sequence of |y| tokens, its end among them, is divided by.

    >>> divisor(1, 0.7), divisor(7, 1.0), divisor(7, 0.0)
    (1.0, 2.0, 1.0)
    """
    return ((5 + length) / 6) ** length_penalty


@functools.lru_cache(maxsize=64)
def divisors(length: int, length_penalty: float) -> NDArray[np.float64]:
    """(length + 1,): what log P of sequences of 0, 1, …, `length` tokens is divided by."""
    found = np.array([divisor(each, length_penalty) for each in range(length + 1)])
    found.flags.writeable = False
    return found


def uncovered(sums: Array, places: Array | None) -> Array:
    """Σ_j log min(1, Σ_i α_ij) over the source places j that are true in `places`, (N,), from sums (N, S) over i.

    >>> import torch
    >>> sums = torch.tensor([[0.5, 1.5, 0.0]])
    >>> uncovered(sums, torch.tensor([[True, True, False]])).exp()
    tensor([0.5000])
    """
    lacking = clipped_log(sums, LEAST_COVERED, 1)
    return (lacking if places is None else where(places, lacking, 0)).sum(1)


def check_penalties(length_penalty: float, coverage_penalty: float, watches: bool) -> None:
    """A ConfigError for what scores cannot be made of."""
    for name, value in (("length_penalty", length_penalty), ("coverage_penalty", coverage_penalty)):
        if not value >= 0:
            raise ConfigError(f"{name} must be a number of at least 0, but is {value!r}.")
    if coverage_penalty and not watches:
        raise ConfigError("coverage_penalty needs attention weights, but this model has no attention: set it to 0.")
