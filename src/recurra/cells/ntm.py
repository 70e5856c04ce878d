"""The neural Turing machine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells.addressing import (
    EMPTY,
    Spec,
    content,
    controlled,
    controller_of,
    heads_of,
    named_values,
    of_controller,
)
from recurra.cells.cell import AnyState, Cell
from recurra.cells.weights import check_size

OWN = ("memory", "reads", "weights")
PARTS = ("key", "strength", "gate", "shift", "sharpness", "erase", "add")


class NTM(Cell[Any, Any]):
    """The neural Turing machine (Graves et al. 2014): a cell that reads and writes a memory M of N rows.

        c' = controller([x; r], c)                        any cell, of hidden_size units; r: what was read at t − 1
        k, β, g, s, γ of each head; e, a of each write head = W_heads h_c' + b
        β  = softplus(β̃),  g = σ(g̃),  s = softmax(s̃),  γ = 1 + softplus(γ̃),  e = σ(ẽ)
        w_c = softmax_i(β cos(k, M_i))                    by content
        w_g = g w_c + (1 − g) w                           or where it was
        w̃_i = Σ_j w_g,i−j s_j                             shifted by j = −shifts … shifts, around the end
        w'  ∝ w̃^γ                                         sharpened
        M'_i = M_i ∘ Π_heads (1 − w'_i e) + Σ_heads w'_i a
        r'  = Σ_i w'_i M'_i                               for each read head
        h'  = h_c' + W_reads r'

    All heads find their weights in M before it is written. M starts at 10⁻⁶, r at 0, each head at row 0. In states, M
    is (B, N·W), weights are (B, heads·N) with the read heads first.
    """

    blendable = ("h",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        rows: int = 128,
        width: int = 20,
        reads: int = 1,
        writes: int = 1,
        shifts: int = 1,
        controller: Spec = "lstm",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.rows, self.width = check_size(rows, "rows"), check_size(width, "width")
        self.reads, self.writes = check_size(reads, "reads"), check_size(writes, "writes")
        self.shifts = check_size(shifts, "shifts")
        self.heads = reads + writes
        self.controller = controller_of(controller, input_size + reads * width, hidden_size)
        self.sizes = [self.heads * size for size in (width, 1, 1, 2 * shifts + 1, 1)] + [writes * width] * 2
        self.to_heads = heads_of(hidden_size, sum(self.sizes))
        self.from_reads = heads_of(reads * width, hidden_size)
        self.State = named_values("NTMState", "h", *of_controller(self.controller), *OWN)
        self.Parts = named_values("NTMParts", *self.State._fields, *PARTS)

    def start(self, rows: int, like: Tensor) -> Any:
        memory = like.new_full((rows, self.rows * self.width), EMPTY)
        weights = like.new_zeros(rows, self.heads, self.rows)
        weights[:, :, 0] = 1
        h, reads = like.new_zeros(rows, self.hidden_size), like.new_zeros(rows, self.reads * self.width)
        return self.State(h, *self.controller.start(rows, like), memory, reads, weights.flatten(1))

    def fixed(self, rows: int, like: Tensor) -> Any:
        return self.controller.fixed(rows, like)

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> AnyState:
        M = state.memory.unflatten(1, (self.rows, self.width))
        c = controlled(self.controller, torch.cat([inputs, state.reads], 1), state, fixed)
        given = self.to_heads(c[0]).split(self.sizes, 1)
        key, beta, gate, shift, gamma = (each.unflatten(1, (self.heads, -1)) for each in given[:5])
        e, a = (each.unflatten(1, (self.writes, -1)) for each in given[5:])
        beta, g, s = functional.softplus(beta), gate.sigmoid(), shift.softmax(-1)
        gamma, e = 1 + functional.softplus(gamma), e.sigmoid()
        w_c = content(key, beta.squeeze(2), M)
        w_g = g * w_c + (1 - g) * state.weights.unflatten(1, (self.heads, self.rows))
        w = sharpened(shifted(w_g, s), gamma)
        written = w[:, self.reads :].transpose(1, 2)  # (B, N, writes)
        kept = torch.ones_like(M)
        for head in range(self.writes):
            kept = kept * (1 - written[:, :, head : head + 1] * e[:, head : head + 1])
        M = M * kept + written @ a
        r = (w[:, : self.reads] @ M).flatten(1)
        h = c[0] + self.from_reads(r)
        own = (M.flatten(1), r, w.flatten(1))
        parts: AnyState = self.Parts(h, *c, *own, *(each.flatten(1) for each in (key, beta, g, s, gamma, e, a)))
        return parts


def shifted(weights: Tensor, shift: Tensor) -> Tensor:
    """The circular convolution Σ_j w_{i−j} s_j for j = −n … n: weights (B, heads, N), shift (B, heads, 2n + 1).

    >>> shifted(torch.tensor([[[1.0, 0.0, 0.0]]]), torch.tensor([[[0.0, 0.25, 0.75]]])).tolist()
    [[[0.25, 0.75, 0.0]]]
    """
    most = shift.shape[-1] // 2
    turned = [weights.roll(j, -1) * shift[:, :, j + most, None] for j in range(-most, most + 1)]
    return torch.stack(turned).sum(0)


def sharpened(weights: Tensor, gamma: Tensor) -> Tensor:
    """w_i^γ / Σ w^γ: weights (B, heads, N), gamma (B, heads, 1); of shares of the largest, so that none becomes 0."""
    shares = (weights / weights.amax(-1, keepdim=True)).clamp(min=0)
    powers = shares**gamma
    return powers / powers.sum(-1, keepdim=True)
