"""Resets: steps before which the state starts anew, so that a row holds several sequences one after the other."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.cells import AnyState
from recurra.padding import Padded


class Resets(NamedTuple):
    """Where the rows of a batch are cut, and what a sequence starts from.

    mask    (B, T), True where a new sequence begins with that step; False on padding
    state   what the cell starts from, fields (B, n)
    """

    mask: Tensor
    state: AnyState

    @property
    def is_learned(self) -> bool:
        """Whether the start state has a gradient of its own."""
        return torch.is_grad_enabled() and any(field.requires_grad for field in self.state)

    @property
    def is_zero(self) -> bool:
        """Whether a sequence starts from zeros, as most cells do."""
        return not any(bool(field.any()) for field in self.state)

    def before_steps(self, lengths: Tensor, backward: bool) -> Tensor:
        """(B, T): whether the state starts anew before a step is read. Steps lie in the order of time.

        Read backward, a cut before step t is passed between t and t − 1: before t − 1 is read.
        """
        if not backward:
            return self.mask
        steps = torch.arange(1, self.mask.shape[1] + 1, device=self.mask.device)
        following = torch.cat([self.mask[:, 1:], self.mask.new_zeros(len(self.mask), 1)], dim=1)
        return following & (steps < lengths.to(self.mask.device).unsqueeze(1))

    def in_reading_order(self, lengths: Tensor, backward: bool) -> Tensor:
        """The same with the steps in the order in which they are read."""
        before = self.before_steps(lengths, backward)
        return Padded(before, lengths).reversed().values if backward else before
