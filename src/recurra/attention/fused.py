"""Scores, softmax and average in one kernel, where nobody asks for the weights."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def attended(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    allowed: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(scale · q kᵀ) v of each head: (B, n, Q, D).

    Queries are (B, n, Q, d), keys (B, n, S, d) and values (B, n, S, D). `allowed` is True where a query may
    look, in a shape that broadcasts to (B, n, Q, S); causal: query i sees the keys up to the i-th. A query that may
    look nowhere gets zeros. The scale is 1 / √d unless one is given.

    >>> import torch
    >>> one = torch.ones(1, 1, 1, 2)
    >>> attended(one, one, 3 * one, torch.tensor([[[[False]]]])).tolist()
    [[[[0.0, 0.0]]]]
    """
    if not (queries.shape[0] and queries.shape[2] and keys.shape[2]):
        return values.new_zeros(*queries.shape[:3], values.shape[3])
    if allowed is None:
        return functional.scaled_dot_product_attention(queries, keys, values, is_causal=causal, scale=scale)
    # The softmax of nothing is NaN, and so is its gradient: who sees nothing looks everywhere, and is then put to zero.
    blind = ~allowed.any(-1, keepdim=True)
    seen = functional.scaled_dot_product_attention(queries, keys, values, allowed | blind, scale=scale)
    return seen.masked_fill(blind, 0.0)
