"""Weights from scores, where some places must not be looked at."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from torch.testing import assert_close

from recurra.attention.masking import masked_softmax

SHAPES = arrays.array_shapes(min_dims=2, max_dims=3, max_side=5)


@st.composite
def scores_and_mask(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    shape = draw(SHAPES)
    scores = draw(arrays.arrays(np.float64, shape, elements=st.floats(-300, 300)))
    return scores, draw(arrays.arrays(np.bool_, shape))


@given(scores_and_mask())
def test_weights_are_the_softmax_of_what_may_be_seen(pair: tuple[NDArray[np.float64], NDArray[np.bool_]]) -> None:
    scores, mask = pair
    weights = masked_softmax(torch.from_numpy(scores), torch.from_numpy(mask)).numpy()
    for place in np.ndindex(scores.shape[:-1]):
        seen = scores[place][mask[place]]
        exponentials = np.exp(seen - seen.max()) if seen.size else seen
        expected = np.zeros(scores.shape[-1])
        expected[mask[place]] = exponentials / exponentials.sum() if seen.size else []
        assert np.allclose(weights[place], expected, atol=1e-12)
    assert (weights[~mask] == 0).all()
    assert ((weights >= 0) & (weights <= 1)).all()


def test_what_is_behind_the_mask_reaches_neither_weights_nor_gradients() -> None:
    scores = torch.tensor([[1.0, torch.nan, 2.0], [torch.nan, torch.inf, -torch.inf]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    weights = masked_softmax(scores, mask)
    (weights * torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    clean = torch.tensor([[1.0, 2.0]], requires_grad=True)
    (clean.softmax(-1) * torch.tensor([1.0, 4.0])).sum().backward()
    assert scores.grad is not None
    assert clean.grad is not None
    assert_close(weights.detach(), torch.tensor([[0.26894142, 0.0, 0.73105858], [0.0, 0.0, 0.0]]))
    assert_close(scores.grad[0, [0, 2]], clean.grad[0])
    assert (scores.grad[1] == 0).all()
    assert scores.grad[0, 1] == 0


def test_where_there_are_no_places_there_are_no_weights() -> None:
    assert masked_softmax(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool)).shape == (2, 0)
