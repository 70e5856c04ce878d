"""Learned queries: weights that sum to 1 and are 0 on padding, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recurra.attention.pooling import QueryPooling
from recurra.errors import ConfigError
from recurra.padding import Padded


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4), queries=st.integers(1, 3), seed=st.integers(0, 99))
def test_weights_sum_to_one_and_are_zero_on_padding(lengths: list[int], queries: int, seed: int) -> None:
    torch.manual_seed(seed)
    pool = QueryPooling(3, queries=queries, size=4).double()
    values = 20 * torch.randn(len(lengths), max(lengths), 3, dtype=torch.float64)
    values[~Padded(values, torch.tensor(lengths)).mask] = torch.nan
    vectors, weights = pool(Padded(values, torch.tensor(lengths)))
    assert vectors.shape == (len(lengths), queries, 3)
    for row, length in enumerate(lengths):
        assert ((weights[row] >= 0) & (weights[row] <= 1)).all()
        assert (weights[row, :, length:] == 0).all()
        assert torch.allclose(weights[row].sum(-1), torch.full((queries,), float(length > 0), dtype=torch.float64))
        if length == 0:
            assert (vectors[row] == 0).all()


def test_the_equations_hold() -> None:
    torch.manual_seed(1)
    pool = QueryPooling(3, queries=2, size=4).double()
    h = np.random.default_rng(1).normal(size=(1, 5, 3))
    vectors, weights = pool(Padded(torch.from_numpy(h), torch.tensor([4])))
    W, b = pool.project.weight.detach().numpy(), pool.project.bias.detach().numpy()
    for k, q in enumerate(pool.queries.detach().numpy()):
        e = np.array([q @ np.tanh(W @ step + b) for step in h[0, :4]])
        alpha = np.exp(e) / np.exp(e).sum()
        assert np.allclose(weights[0, k, :4].detach().numpy(), alpha, atol=1e-12)
        assert np.allclose(vectors[0, k].detach().numpy(), alpha @ h[0, :4], atol=1e-12)


def test_there_must_be_a_query() -> None:
    with pytest.raises(ConfigError, match="queries must be"):
        QueryPooling(3, queries=0)
