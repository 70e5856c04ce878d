"""Learned queries: weights that sum to 1 and are 0 on padding, against numpy."""

from __future__ import annotations

from typing import Any

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
    assert pool.project is not None
    W, b = pool.project.weight.detach().numpy(), pool.project.bias.detach().numpy()
    for k, q in enumerate(pool.queries.detach().numpy()):
        e = np.array([q @ np.tanh(W @ step + b) for step in h[0, :4]])
        alpha = np.exp(e) / np.exp(e).sum()
        assert np.allclose(weights[0, k, :4].detach().numpy(), alpha, atol=1e-12)
        assert np.allclose(vectors[0, k].detach().numpy(), alpha @ h[0, :4], atol=1e-12)


def test_there_must_be_a_query() -> None:
    with pytest.raises(ConfigError, match="queries must be"):
        QueryPooling(3, queries=0)


@pytest.mark.parametrize("values", [None, 5])
@pytest.mark.parametrize(
    "similarity", ["additive", "bilinear", "dot", "scaled_dot", {"name": "projected_dot", "size": 4}]
)
def test_any_similarity_weighs_and_values_may_be_maps_of_their_own(similarity: Any, values: int | None) -> None:
    torch.manual_seed(2)
    size = None if similarity in ("dot", "scaled_dot") else 2
    pool = QueryPooling(3, queries=2, size=size, similarity=similarity, values=values).double()
    for parameter in pool.parameters():
        torch.nn.init.normal_(parameter)
    h = np.random.default_rng(1).normal(size=(1, 5, 3))
    vectors, weights = pool(Padded(torch.from_numpy(h), torch.tensor([4])))
    w = {name.removeprefix("attention."): value.detach().numpy() for name, value in pool.state_dict().items()}
    scores: dict[str, Any] = {
        "additive": lambda q, k: w["v"] @ np.tanh(w["from_query.weight"] @ q + w["from_memory.weight"] @ k),
        "bilinear": lambda q, k: q @ w["project.weight"] @ k,
        "dot": lambda q, k: q @ k,
        "scaled_dot": lambda q, k: q @ k / np.sqrt(3),
        "projected_dot": lambda q, k: (w["from_query.weight"] @ q) @ (w["from_memory.weight"] @ k) / 2,
    }
    score = scores[similarity if isinstance(similarity, str) else similarity["name"]]
    for number, q in enumerate(w["queries"]):
        e = np.array([score(q, step) for step in h[0, :4]])
        alpha = np.exp(e) / np.exp(e).sum()
        seen = h[0, :4] if values is None else h[0, :4] @ w["to_values.weight"].T
        np.testing.assert_allclose(weights[0, number, :4].detach(), alpha, atol=1e-12)
        np.testing.assert_allclose(vectors[0, number].detach(), alpha @ seen, atol=1e-12)
    assert not weights[0, :, 4].any()
    empty, none = pool(Padded(torch.zeros(1, 5, 3).double(), torch.tensor([0])))
    assert not empty.any()
    assert not none.any()


def test_own_values_without_a_similarity() -> None:
    pool = QueryPooling(3, queries=2, size=4, values=6).double()
    x = torch.randn(1, 4, 3).double()
    vectors, weights = pool(Padded.full(x))
    assert pool.to_values is not None
    assert torch.allclose(vectors, weights @ pool.to_values(x))


def test_a_query_of_another_size_is_refused_by_a_product() -> None:
    with pytest.raises(ConfigError, match="dot"):
        QueryPooling(3, size=4, similarity="dot")
