"""One or several vectors out of a sequence, each a mean that a learned query weighs."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.masking import masked_softmax
from recurra.cells.weights import check_size
from recurra.padding import Padded


@final
class QueryPooling(nn.Module):
    """K learned queries q_1 … q_K, each of which looks at all steps (Yang et al. 2016; Lin et al. 2017).

        e_kt = q_k · tanh(W h_t + b)
        α_kt = exp(e_kt) / Σ_u exp(e_ku)             over the real steps
        s_k  = Σ_t α_kt h_t

    (B, T, H) to the vectors (B, K, H) and their weights (B, K, T): in [0, 1], sum 1, exactly 0 on padding. A row
    without a step has zeros for both.

    >>> pool = QueryPooling(3, queries=2, size=4)
    >>> vectors, weights = pool(Padded(torch.randn(1, 5, 3), torch.tensor([4])))
    >>> vectors.shape, weights.sum(-1).round(decimals=5).tolist(), weights[0, :, 4].tolist()
    (torch.Size([1, 2, 3]), [[1.0, 1.0]], [0.0, 0.0])
    """

    def __init__(self, input_size: int, *, queries: int = 1, size: int = 128) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        self.project = nn.Linear(input_size, check_size(size, "size"))
        self.queries = nn.Parameter(torch.empty(check_size(queries, "queries"), size))
        nn.init.normal_(self.queries, std=size**-0.5)

    def forward(self, h: Padded) -> tuple[Tensor, Tensor]:
        values = h.zeroed().values  # what is on padding may be NaN, and 0 · NaN is NaN
        scores = self.queries @ self.project(values).tanh().transpose(1, 2)  # (B, K, T)
        weights = masked_softmax(scores, h.mask.unsqueeze(1))
        return weights @ values, weights

    def extra_repr(self) -> str:
        return f"{self.input_size}, queries={len(self.queries)}"
