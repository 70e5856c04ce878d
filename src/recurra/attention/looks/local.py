"""Looking at a few places only."""

from __future__ import annotations

from typing import ClassVar, Literal, final

import torch
from torch import Tensor, nn

from recurra.attention.looks.look import Look, Looked
from recurra.attention.masking import masked_softmax
from recurra.cells.weights import check_size
from recurra.errors import ConfigError
from recurra.named import choose


@final
class Local(Look):
    """Places within `reach` of one (Luong et al. 2015, local-m and local-p).

        p_t  = t                                             centre = "monotonic": the t-th step at the t-th place
        p_t  = S σ(vᵀ tanh(W q_t))                           centre = "predictive": S is the number of real places
        α_ts = softmax of e_ts over the places |s - p_t| ≤ D     s = 0 … S - 1, D = reach; 0 elsewhere
        α_ts ← α_ts exp(-(s - p_t)² / (2 (D / 2)²))          predictive only, and not normalised again: Σ_s α_ts ≤ 1

    Where no place is within reach, as behind the end of a short source, all weights are 0. It needs a sequence: places
    of a grid have no such order.
    """

    counts: ClassVar[bool] = True

    def __init__(
        self, query_size: int, *, centre: Literal["monotonic", "predictive"] = "predictive", reach: int = 10
    ) -> None:
        super().__init__(query_size)
        self.centre = choose(("monotonic", "predictive"), centre, "centre")
        self.reach = check_size(reach, "reach")
        self.from_query: nn.Linear | None = None  # W
        self.v: nn.Parameter | None = None
        if centre == "predictive":
            self.from_query = nn.Linear(query_size, query_size, bias=False)
            self.v = nn.Parameter(torch.empty(query_size))
            nn.init.uniform_(self.v, -(query_size**-0.5), query_size**-0.5)

    def forward(self, scores: Tensor, queries: Tensor, mask: Tensor, steps: Tensor | None, grid: bool) -> Looked:
        if grid:
            raise ConfigError(
                "an attention with look = 'local' needs a sequence, but these places have rows and columns: leave "
                "the look out."
            )
        assert steps is not None, "it counts"
        if self.from_query is None or self.v is None:
            p = steps.to(scores.dtype)
        else:
            S = mask.sum(1, keepdim=True).to(scores.dtype)
            p = S * (self.from_query(queries).tanh() @ self.v).sigmoid()  # (B, Q)
        s = torch.arange(mask.shape[1], device=mask.device, dtype=scores.dtype)
        away = s - p.unsqueeze(2)  # (B, Q, S)
        is_near = (away.abs() <= self.reach) & mask.unsqueeze(1)
        bell = None if self.centre == "monotonic" else (-away.square() / (2 * (self.reach / 2) ** 2)).exp()
        if scores.dim() == 4:  # the same for all heads
            is_near, bell = is_near.unsqueeze(1), None if bell is None else bell.unsqueeze(1)
        weights = masked_softmax(scores, is_near)
        return Looked(weights if bell is None else weights * bell)

    def extra_repr(self) -> str:
        return f"{self.centre}, reach {self.reach}"
