"""Several models that search as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from recurra.errors import ConfigError
from recurra.search.search import Step


def together(
    steps: Sequence[Step[Any, Any]], combine: Literal["mean", "product"] = "mean"
) -> Step[tuple[Any, ...], tuple[Any, ...]]:
    """One step of several models with the same vocabulary; moving and fixed are tuples with a part for each.

        mean       p(w) = 1/n Σ_m p_m(w)
        product    p(w) ∝ (Π_m p_m(w))^(1/n)

    >>> def sure(tokens, moving, fixed):
    ...     return torch.tensor([[0.9, 0.1]]).log().expand(len(tokens), -1), moving
    >>> def unsure(tokens, moving, fixed):
    ...     return torch.tensor([[0.5, 0.5]]).log().expand(len(tokens), -1), moving
    >>> log_p, _ = together([sure, unsure])(torch.tensor([0]), ((), ()), ((), ()))
    >>> log_p.exp()
    tensor([[0.7000, 0.3000]])
    >>> log_p, _ = together([sure, unsure], "product")(torch.tensor([0]), ((), ()), ((), ()))
    >>> log_p.exp()
    tensor([[0.7500, 0.2500]])
    """
    if not steps:
        raise ConfigError("an ensemble needs at least one model.")
    if combine not in ("mean", "product"):
        raise ConfigError(f"combine must be 'mean' or 'product', but is {combine!r}.")

    def step(tokens: Tensor, moving: tuple[Any, ...], fixed: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        log_ps, moved = zip(
            *(each(tokens, own, source) for each, own, source in zip(steps, moving, fixed, strict=True)), strict=True
        )
        sizes = [log_p.shape[1] for log_p in log_ps]
        if len({*sizes}) > 1:
            raise ConfigError(f"the models of an ensemble need the same vocabulary, but theirs have {sizes} tokens.")
        stacked = torch.stack(log_ps)
        if combine == "product":
            return stacked.mean(0).log_softmax(1), moved
        return stacked.logsumexp(0) - math.log(len(steps)), moved

    return step
