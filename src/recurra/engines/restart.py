"""Resets in the steps of a plan: what a step reads of the states before it, and which gradients end there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.engines.memory import Buffers
from recurra.engines.plan import Place, Plan


class Copy(NamedTuple):
    """One state on the way forward: what step t reads stands at t − 1 of `read`."""

    written: Tensor  # (B, T, w): the state after each step
    anew: Tensor  # (B, w): the state to start anew from
    read: Tensor  # (B, T, w)


class Restart(NamedTuple):
    """All that the steps must do about resets, in either direction."""

    mask: Tensor  # (B, T), contiguous, in the order of reading: whether the state starts anew before a step
    copies: list[Copy]  # forward
    cuts: list[Tensor]  # backward: parts of the gradients of states, (2, B, w) written in turns or (B, w)

    def start_anew(self, t: int) -> None:
        """Lay out what step t reads."""
        here = self.mask[:, t].unsqueeze(1)
        for written, anew, read in self.copies:
            read[:, t - 1] = torch.where(here, anew, written[:, t - 1])

    def cut_gradients(self, t: int) -> None:
        """Drop what step t has left for the states before it, where it did not read them."""
        for part in self.cuts:
            (part[t % 2] if part.dim() == 3 else part).masked_fill_(self.mask[:, t].unsqueeze(1), 0)


def forward_restart(plan: Plan, memory: Buffers, mask: Tensor, anew: list[Tensor]) -> Restart:
    """For the way forward: steps read copies of the states, in which resets show."""
    copies = []
    for number, (buffer, state) in enumerate(zip(plan.states, anew, strict=True)):
        name, written = f"previous {number}", memory.tensor(buffer)
        memory.first[name] = torch.where(mask[:, :1], state, memory.first[name])
        memory.tensors[name] = torch.empty_like(written)
        copies.append(Copy(written, state, memory.tensors[name]))
    return Restart(mask, copies, [])


def backward_restart(plan: Plan, memory: Buffers, mask: Tensor, anew: list[Tensor]) -> Restart:
    """For the way back: the same copies, all steps at once, and where gradients are cut."""
    rows, steps = mask[:, 1:].nonzero(as_tuple=True)
    cuts = []
    for number, (state, parts) in enumerate(zip(anew, plan.d_states, strict=True)):
        name = f"previous {number}"
        memory.first[name] = torch.where(mask[:, :1], state, memory.first[name])
        memory.tensors[name] = memory.tensors[name].clone()
        memory.tensors[name][rows, steps] = state[rows]
        for buffer, column in parts:
            tensor = memory.tensor(buffer)
            cuts.append(tensor if buffer.place is Place.TURNS else tensor[:, column : column + parts[0][0].width])
    return Restart(mask, [], cuts)
