"""Always the most probable token."""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

from recurra.search.search import Fixed, Hypothesis, Moving, Step, collected, followed, without


def greedy(
    step: Step[Moving, Fixed],
    tokens: Tensor,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int,
    ends: Collection[int] = (),
    banned: Collection[int] = (),
) -> list[Hypothesis]:
    """y_t = argmax_w p(w | y_1 … y_{t-1}), up to a token in `ends` or to `length`; of equals, the lowest id.

    >>> import torch
    >>> def count(tokens, moving, fixed):                       # after 1 comes 2, after 2 comes 3, …
    ...     return torch.eye(5)[(tokens + 1) % 5].log_softmax(1), moving
    >>> [found] = greedy(count, torch.tensor([0]), (), (), length=9, ends=[4])
    >>> found.tokens, found.ended
    ([1, 2, 3, 4], True)
    """

    def choose(log_p: Tensor, _: list[int]) -> Tensor:
        return without(log_p, banned).argmax(1)

    steps = followed(step, choose, tokens, moving, fixed, length=length, is_end=lambda _, token: token in ends)
    return collected(len(tokens), steps)
