"""One or several vectors out of a sequence, each a mean that a learned query weighs."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.attention import Attention
from recurra.attention.masking import masked_softmax
from recurra.cells.weights import check_size
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import Part


@final
class QueryPooling(nn.Module):
    """K learned queries q_1 … q_K, each of which looks at all steps (Yang et al. 2016; Lin et al. 2017).

        e_kt = q_k · tanh(W h_t + b)                 or score(q_k, h_t) of any attention, named by `similarity`
        α_kt = exp(e_kt) / Σ_u exp(e_ku)             over the real steps
        s_k  = Σ_t α_kt v_t                          v_t = h_t, or V h_t where `values` gives its size

    (B, T, H) to the vectors (B, K, H) and their weights (B, K, T): in [0, 1], sum 1, exactly 0 on padding. A row
    without a step has zeros for both. A query has `size` features: 128, or, with a similarity, H.

    >>> pool = QueryPooling(3, queries=2, size=4)
    >>> vectors, weights = pool(Padded(torch.randn(1, 5, 3), torch.tensor([4])))
    >>> vectors.shape, weights.sum(-1).round(decimals=5).tolist(), weights[0, :, 4].tolist()
    (torch.Size([1, 2, 3]), [[1.0, 1.0]], [0.0, 0.0])
    >>> QueryPooling(3, similarity="scaled_dot", values=5)(Padded.full(torch.randn(1, 5, 3)))[0].shape
    torch.Size([1, 1, 5])
    """

    def __init__(
        self,
        input_size: int,
        *,
        queries: int = 1,
        size: int | None = None,
        similarity: Part | None = None,
        values: int | None = None,
    ) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        usual = 128 if similarity is None else input_size
        size = usual if size is None else check_size(size, "size")
        self.project: nn.Linear | None = None
        self.to_values: nn.Linear | None = None
        self.attention: Attention | None = None
        if similarity is None:
            self.project = nn.Linear(input_size, size)
            self.to_values = None if values is None else nn.Linear(input_size, check_size(values, "values"), bias=False)
        else:
            table = {"name": similarity} if isinstance(similarity, str) else dict(similarity)
            spec = table if values is None else {**table, "values": values}
            self.attention = built(Attention, spec, size, input_size)
        own = input_size if self.attention is None else self.attention.context_size
        self.output_size = own if values is None else values
        self.queries = nn.Parameter(torch.empty(check_size(queries, "queries"), size))
        nn.init.normal_(self.queries, std=size**-0.5)

    def forward(self, h: Padded) -> tuple[Tensor, Tensor]:
        values = h.zeroed().values  # what is on padding may be NaN, and 0 · NaN is NaN
        if self.attention is not None:
            memory = self.attention.remember(values, h.mask)
            seen = self.attention(self.queries.expand(len(values), -1, -1), memory)
            return seen.context, seen.weights
        assert self.project is not None, "there is a similarity or a projection"
        scores = self.queries @ self.project(values).tanh().transpose(1, 2)  # (B, K, T)
        weights = masked_softmax(scores, h.mask.unsqueeze(1))
        return weights @ (values if self.to_values is None else self.to_values(values)), weights

    def extra_repr(self) -> str:
        return f"{self.input_size}, queries={len(self.queries)}"
