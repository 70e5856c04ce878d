"""From scores to weights, where some places must not be looked at."""

from __future__ import annotations

import torch
from torch import Tensor


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """softmax over the last axis of the places where the mask is True; exactly 0 elsewhere.

    The mask has the shape of the scores, or one that broadcasts to it. Where a row has no place at all its weights are
    zeros, and what lies behind the mask, even NaN, reaches neither weights nor gradients.

    >>> scores = torch.tensor([[0.0, 0.0, 9.0], [1.0, 2.0, 3.0]])
    >>> masked_softmax(scores, torch.tensor([[True, True, False], [False, False, False]])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    if scores.shape[-1] == 0:
        return scores
    # Not -∞: the softmax of -∞ everywhere is NaN. Beside any real score, exp(lowest - score) is exactly 0.
    lowest = torch.finfo(scores.dtype).min
    closed = ~mask
    return scores.masked_fill(closed, lowest).softmax(-1).masked_fill(closed, 0.0)
