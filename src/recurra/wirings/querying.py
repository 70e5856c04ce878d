"""What looks: the state before or after a step."""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.attention import Memory
from recurra.wirings.wiring import Source


def before(start: Tensor, after: Tensor) -> Tensor:
    """(B, T, H): the state before each step, out of the start (B, H) and the states after each, (B, T, H).

    >>> before(torch.tensor([[9.0]]), torch.tensor([[[1.0], [2.0]]])).tolist()
    [[[9.0], [1.0]]]
    """
    return torch.cat([start.unsqueeze(1), after[:, :-1]], dim=1)[:, : after.shape[1]]


def memory_of(source: Source) -> Memory:
    """The memory, which a decoder with attention is always given."""
    assert isinstance(source.memory, Memory), "a decoder with attention reads a memory"
    return source.memory
