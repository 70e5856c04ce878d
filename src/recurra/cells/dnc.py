"""The differentiable neural computer."""

from __future__ import annotations

import functools
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

OWN = ("memory", "reads", "read_weights", "write_weights", "usage", "precedence", "link")
PARTS = ("allocation", "free", "allocation_gate", "write_gate", "modes", "erase", "written")


class DNC(Cell[Any, Any]):
    """The differentiable neural computer (Graves et al. 2016): memory that is allocated, freed and read in order.

        c' = controller([x; r], c)                        any cell, of hidden_size units; r: what was read at t − 1
        k_r, β_r, f, π of each read head; k_w, β_w, e, v, g_a, g_w = W_heads h_c' + b
        β = 1 + softplus(β̃),  e, f, g_a, g_w = σ(…),  π = softmax over backward, content, forward
        ψ  = Π_heads (1 − f w_r)
        u' = (u + w_w − u ∘ w_w) ∘ ψ                      usage
        a[φ_j] = (1 − u'[φ_j]) Π_{i<j} u'[φ_i]            allocation, φ: rows by ascending usage
        c_w = softmax_i(β_w cos(k_w, M_i))
        w_w' = g_w (g_a a + (1 − g_a) c_w)
        L'_ij = (1 − w_w',i − w_w',j) L_ij + w_w',i p_j,  L'_ii = 0        which row was written after which
        p' = (1 − Σ w_w') p + w_w'
        M' = M ∘ (1 − w_w' eᵀ) + w_w' vᵀ
        c_r = softmax_i(β_r cos(k_r, M'_i))
        w_r' = π₁ L'ᵀ w_r + π₂ c_r + π₃ L' w_r
        r' = Σ_i w_r',i M'_i                              for each read head
        h' = h_c' + W_reads r'

    M starts at 10⁻⁶, all else at 0. In states, M is (B, N·W), the link (B, N·N) and read weights (B, reads·N).
    """

    blendable = ("h",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        rows: int = 64,
        width: int = 20,
        reads: int = 1,
        controller: Spec = "lstm",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.rows, self.width, self.reads = (
            check_size(rows, "rows"),
            check_size(width, "width"),
            check_size(reads, "reads"),
        )
        self.controller = controller_of(controller, input_size + reads * width, hidden_size)
        self.sizes = [reads * width, reads, reads, 3 * reads, width, 1, width, width, 1, 1]
        self.to_heads = heads_of(hidden_size, sum(self.sizes))
        self.from_reads = heads_of(reads * width, hidden_size)
        self.State = named_values("DNCState", "h", *of_controller(self.controller), *OWN)
        self.Parts = named_values("DNCParts", *self.State._fields, *PARTS)

    def start(self, rows: int, like: Tensor) -> Any:
        N = self.rows
        memory = like.new_full((rows, N * self.width), EMPTY)
        sizes = [self.reads * self.width, self.reads * N, N, N, N, N * N]
        zeros = [like.new_zeros(rows, size) for size in (self.hidden_size, *sizes)]
        return self.State(zeros[0], *self.controller.start(rows, like), memory, *zeros[1:])

    def fixed(self, rows: int, like: Tensor) -> Any:
        return self.controller.fixed(rows, like)

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> AnyState:
        N, R = self.rows, self.reads
        M = state.memory.unflatten(1, (N, self.width))
        L = state.link.unflatten(1, (N, N))
        w_r, w_w, u, p = state.read_weights.unflatten(1, (R, N)), state.write_weights, state.usage, state.precedence
        c = controlled(self.controller, torch.cat([inputs, state.reads], 1), state, fixed)
        k_r, beta_r, f, pi, k_w, beta_w, e, v, g_a, g_w = self.to_heads(c[0]).split(self.sizes, 1)
        beta_r, beta_w = 1 + functional.softplus(beta_r), 1 + functional.softplus(beta_w)
        f, e, g_a, g_w = f.sigmoid(), e.sigmoid(), g_a.sigmoid(), g_w.sigmoid()
        pi = pi.unflatten(1, (R, 3)).softmax(-1)
        psi = functools.reduce(torch.mul, (1 - f.unsqueeze(2) * w_r).unbind(1))
        u = (u + w_w - u * w_w) * psi
        a = allocation(u)
        c_w = content(k_w.unsqueeze(1), beta_w, M).squeeze(1)
        w_w = g_w * (g_a * a + (1 - g_a) * c_w)
        L = (1 - w_w.unsqueeze(2) - w_w.unsqueeze(1)) * L + w_w.unsqueeze(2) * p.unsqueeze(1)
        L = L * (1 - torch.eye(N, dtype=L.dtype, device=L.device))
        p = (1 - w_w.sum(1, keepdim=True)) * p + w_w
        M = M * (1 - w_w.unsqueeze(2) * e.unsqueeze(1)) + w_w.unsqueeze(2) * v.unsqueeze(1)
        c_r = content(k_r.unflatten(1, (R, self.width)), beta_r, M)
        backward, forward = w_r @ L, w_r @ L.transpose(1, 2)  # Lᵀ w and L w, as rows
        w_r = pi[:, :, 0:1] * backward + pi[:, :, 1:2] * c_r + pi[:, :, 2:3] * forward
        r = (w_r @ M).flatten(1)
        h = c[0] + self.from_reads(r)
        own = (M.flatten(1), r, w_r.flatten(1), w_w, u, p, L.flatten(1))
        parts: AnyState = self.Parts(h, *c, *own, a, f, g_a, g_w, pi.flatten(1), e, v)
        return parts


def allocation(usage: Tensor) -> Tensor:
    """a[φ_j] = (1 − u[φ_j]) Π_{i<j} u[φ_i], φ: rows by ascending usage, equals in their order; (B, N).

    >>> allocation(torch.tensor([[0.5, 0.0, 1.0]])).tolist()
    [[0.0, 1.0, 0.0]]
    """
    ascending, order = usage.sort(dim=-1, stable=True)
    return torch.zeros_like(usage).scatter(1, order, (1 - ascending) * products_before(ascending))


def products_before(numbers: Tensor) -> Tensor:
    """Π_{i<j} x_i for each j, (B, N), by log₂ N products; torch's cumprod reads numbers of the GPU on the way back.

    >>> products_before(torch.tensor([[2.0, 0.0, 5.0, 7.0]])).tolist()
    [[1.0, 2.0, 0.0, 0.0]]
    """
    found = functional.pad(numbers[:, :-1], (1, 0), value=1.0)  # of the one before
    reach = 1
    while reach < numbers.shape[1]:
        found = found * functional.pad(found[:, :-reach], (reach, 0), value=1.0)  # and of twice as many
        reach *= 2
    return found
