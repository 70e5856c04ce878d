"""Words are aligned, compared with what they are aligned to, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import torch
from torch import Tensor, nn

from recurra.attention.masking import masked_softmax
from recurra.cells.weights import check_size
from recurra.padding import Padded
from recurra.pairings.feed_forward import FeedForward
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.pairings.rows import halves, stacked
from recurra.stacks.recurrent import Recurrent


@final
class Within(nn.Module):
    """Attention within a sentence (Parikh et al. 2016).

        f_ij = F′(a_i) · F′(a_j)
        a′_i = Σ_j softmax_j(f_ij + d_{i−j}) a_j        d one number for each distance, clipped at ± `distance`

    (B, T, E) to [a_i; a′_i], (B, T, 2E).
    """

    def __init__(self, input_size: int, size: int, *, layers: int, dropout: float, distance: int) -> None:
        super().__init__()
        self.distance = check_size(distance, "distance")
        self.f = FeedForward(input_size, size, layers=layers, dropout=dropout)
        self.bias = nn.Parameter(torch.zeros(2 * distance + 1))  # d_{−distance} … d_{distance}

    def forward(self, a: Padded) -> Padded:
        values, steps = a.values, torch.arange(a.values.shape[1], device=a.values.device)
        f = self.f(values)
        apart = (steps.unsqueeze(1) - steps).clamp(-self.distance, self.distance) + self.distance
        weights = masked_softmax(f @ f.transpose(1, 2) + self.bias[apart], a.mask.unsqueeze(1))
        return Padded(torch.cat([values, weights @ values], -1), a.lengths)


@final
class Decomposable(Pairing):
    """Decomposable attention (Parikh et al. 2016); with `read`, enhanced sequential inference (Chen et al. 2017).

        e_ij = F(a_i) · F(b_j)                                                  attend
        β_i = Σ_j softmax_j(e_ij) b_j,   α_j = Σ_i softmax_i(e_ij) a_i
        v₁ = Σ_i G([a_i; β_i]),          v₂ = Σ_j G([b_j; α_j])                 compare
        s = H([v₁; v₂])                                                         aggregate

    F, G and H are layers of relu. By default a_i and b_j are the vectors of words, projected to `size`.

    size, layers    of F, G and H
    within          the inputs are [a_i; a′_i] with attention within each sentence, biased by distances up to `distance`
    read            a recurrent network (model.cell, model.hidden, …) reads each sentence first: a_i are its outputs
    compare         "concat": G sees [a_i; β_i]; "all": [a_i; β_i; a_i − β_i; a_i ∘ β_i]
    pool            of the compared words: "sum", or "mean_max": [mean; max]
    """

    def __init__(
        self,
        input_size: int,
        parts: Parts,
        *,
        size: int = 200,
        layers: int = 2,
        within: bool = False,
        distance: int = 10,
        read: bool = False,
        compare: Literal["concat", "all"] = "concat",
        pool: Literal["sum", "mean_max"] = "sum",
    ) -> None:
        super().__init__(input_size, parts)
        dropout = parts.dropout
        self.compare, self.pool = compare, pool
        self.stack: Recurrent | None = parts.stack(input_size) if read else None
        self.project = None if read else nn.Linear(input_size, size, bias=False)
        width = size if self.stack is None else self.stack.output_size
        self.within = Within(width, size, layers=layers, dropout=dropout, distance=distance) if within else None
        width = 2 * width if within else width
        self.f = FeedForward(width, size, layers=layers, dropout=dropout)
        self.g = FeedForward((2 if compare == "concat" else 4) * width, size, layers=layers, dropout=dropout)
        self.h = FeedForward((2 if pool == "sum" else 4) * size, size, layers=layers, dropout=dropout)
        self.output_size = size

    def forward(self, first: Padded, second: Padded) -> Paired:
        a, b = self._inputs(first, second)
        e = self.f(a.values) @ self.f(b.values).transpose(1, 2)  # (B, T₁, T₂)
        to_second = masked_softmax(e, b.mask.unsqueeze(1))
        to_first = masked_softmax(e.transpose(1, 2), a.mask.unsqueeze(1))
        beta, alpha = to_second @ b.values, to_first @ a.values
        compared = torch.cat([self._compared(a, beta), self._compared(b, alpha)], -1)
        real = to_first * b.mask.unsqueeze(2), to_second * a.mask.unsqueeze(2)
        return Paired(self.h(compared), *real)

    def _inputs(self, first: Padded, second: Padded) -> tuple[Padded, Padded]:
        """a and b, with zeros on padding."""
        both = stacked(first, second).zeroed()
        if self.stack is not None:
            both, _ = self.stack(both)
        elif self.project is not None:
            both = Padded(self.project(both.values), both.lengths)
        values = (both if self.within is None else self.within(both)).zeroed().values
        a, b = halves(values)
        return (
            Padded(a[:, : first.values.shape[1]], first.lengths),
            Padded(b[:, : second.values.shape[1]], second.lengths),
        )

    def _compared(self, a: Padded, beta: Tensor) -> Tensor:
        """v of one text, (B, size): its words beside what they are aligned to."""
        x = a.values
        seen = [x, beta] if self.compare == "concat" else [x, beta, x - beta, x * beta]
        compared = Padded(self.g(torch.cat(seen, -1)), a.lengths).zeroed().values
        total = compared.sum(1)
        if self.pool == "sum":
            return total
        # G ends in relu, so that the zeros of padding are never above the largest real value.
        largest = compared.amax(1) if compared.shape[1] else total
        return torch.cat([total / a.mask.sum(1, keepdim=True).clamp_min(1), largest], -1)

    def read_by_stacks(self, first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
        return [] if self.stack is None else [[*first, *second]]
