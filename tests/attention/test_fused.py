"""Attention in one kernel, and positions as angles, against numpy."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recurra.attention.fused import attended
from recurra.attention.rotary import rotated, rotation


def parts(rows: int, heads: int, queries: int, places: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (torch.randn(rows, heads, n, size).double() for n, size in ((queries, 4), (places, 4), (places, 3)))
    return q, k, v


@settings(max_examples=60)
@given(
    queries=st.integers(0, 4),
    places=st.integers(0, 5),
    share=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    scale=st.sampled_from([None, 1.0, 0.3]),
    seed=st.integers(0, 99),
)
def test_it_is_a_softmax_over_the_places_that_are_allowed(
    queries: int, places: int, share: float, scale: float | None, seed: int
) -> None:
    torch.manual_seed(seed)
    q, k, v = parts(2, 2, queries, places)
    allowed = torch.rand(2, 1, queries, places) < share
    found = attended(q, k, v, allowed, scale=scale)
    assert found.shape == (2, 2, queries, 3)
    for row, head, i in np.ndindex(2, 2, queries):
        seen = [j for j in range(places) if allowed[row, 0, i, j]]
        scores = [float(q[row, head, i] @ k[row, head, j]) * (0.5 if scale is None else scale) for j in seen]
        weights = np.exp(scores) / np.exp(scores).sum() if seen else np.zeros(0)
        expected = sum((a * v[row, head, j].numpy() for a, j in zip(weights, seen, strict=True)), np.zeros(3))
        np.testing.assert_allclose(found[row, head, i].numpy(), expected, rtol=0, atol=1e-12)


def test_causal_is_a_triangle_of_what_is_allowed() -> None:
    q, k, v = parts(2, 2, 5, 5)
    triangle = torch.ones(5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(attended(q, k, v, causal=True), attended(q, k, v, triangle), rtol=0, atol=1e-12)


def test_gradients_are_right_also_of_a_query_that_sees_nothing() -> None:
    q, k, v = (each.requires_grad_() for each in parts(2, 1, 2, 3))
    allowed = torch.tensor([[[True, False, True], [False, False, False]]])[:, None]
    assert torch.autograd.gradcheck(lambda q, k, v: attended(q, k, v, allowed), (q, k, v))


def test_each_pair_of_features_turns_by_its_angle() -> None:
    x = torch.randn(2, 3, 6).double()
    positions = torch.tensor([[0, 1, 2], [7, 8, 9]])
    found = rotated(x, rotation(positions, 6, x)).numpy()
    for row, step, pair in np.ndindex(2, 3, 3):
        angle = int(positions[row, step]) * 10000 ** (-2 * pair / 6)
        a, b = float(x[row, step, pair]), float(x[row, step, pair + 3])
        expected = [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
        np.testing.assert_allclose(found[row, step, [pair, pair + 3]], expected, rtol=0, atol=1e-12)
