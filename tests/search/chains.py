"""Small models written by hand: what comes next depends on the last token alone, or on all that were."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

V = 6


class Memory(NamedTuple):
    """How often each token was read, (B, V)."""

    counts: Tensor


def weights(seed: int = 0) -> Tensor:
    """(V, V): scores of the next token after each."""
    return torch.randn(V, V, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def chain(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
    """p(w | last token)."""
    return weights()[tokens].log_softmax(1), moving


def remembering(tokens: Tensor, moving: Memory, fixed: Tensor) -> tuple[Tensor, Memory]:
    """p(w | all tokens, a bias of the row)."""
    counts = moving.counts + torch.eye(V, dtype=torch.float64)[tokens]
    return (counts @ weights() + fixed).log_softmax(1), Memory(counts)


def start(rows: int) -> Memory:
    return Memory(torch.zeros(rows, V, dtype=torch.float64))
