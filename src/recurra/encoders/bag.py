"""Bag: a text as the mean of the vectors of its n-grams (Joulin et al., Bag of Tricks for Efficient Text
Classification, 2017)."""

from __future__ import annotations

from typing import Any, NamedTuple, cast, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.encoders import c_bag
from recurra.engines.c_library import can_read
from recurra.padding import Padded


class Bags(NamedTuple):
    """The features of several texts, one text after the other."""

    ids: Tensor  # (N,) int32
    ends: Tensor  # (B,) int64: where each text ends in ids


@final
class Bag(nn.Module):
    """y = gain/N Σ_i E[id_i], 0 for a text without a feature.

    The gradient of E is sparse: it names the rows that the batch has met. In training a share `dropout` of the features
    is left out. On the CPU it is computed in C where a compiler is found, by torch elsewhere.

    >>> bag = Bag(10, 3, gain=1.0)
    >>> bag(Bags(torch.tensor([4, 7], dtype=torch.int32), torch.tensor([2, 2]))).shape
    torch.Size([2, 3])
    """

    def __init__(self, rows: int, size: int, *, gain: float, dropout: float = 0.0, sparse: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, size, sparse=sparse, _weight=torch.empty(rows, size))
        # Small: a feature that training never meets says next to nothing.
        nn.init.uniform_(self.table.weight, -0.01 / gain, 0.01 / gain)
        self.gain = gain
        self.dropout = dropout
        self.output_size = size

    def forward(self, bags: Bags | Padded) -> Tensor:
        """(B, n), also of features (B, F) that are padded, as exported models have them.

        A DataError says which feature or end does not fit: C and a GPU would read beside the table.
        """
        if isinstance(bags, Padded):
            vectors = self.table(bags.values).masked_fill(~bags.mask.unsqueeze(2), 0)
            means: Tensor = self.gain * vectors.sum(1) / bags.lengths.clamp_min(1).unsqueeze(1).to(vectors.dtype)
            return means
        ids, ends = c_bag.checked(*bags, self.table.num_embeddings)
        if self.training and self.dropout:
            is_kept = torch.rand(ids.shape, device=ids.device) >= self.dropout
            counted = torch.cat([ends.new_zeros(1), is_kept.cumsum(0)])
            ids, ends = ids[is_kept], counted[ends]
        weight = self.table.weight
        if self.table.sparse and can_read(torch.float32, weight) and c_bag.compiled() is not None:
            return cast(Tensor, _Mean.apply(weight, ids.contiguous(), ends.contiguous(), self.gain))  # type: ignore[no-untyped-call]
        starts = torch.cat([ends.new_zeros(1), ends[:-1]]).to(ids.dtype)
        means = functional.embedding_bag(ids, weight, starts, mode="mean", sparse=self.table.sparse)
        return self.gain * means


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, ends: Tensor, gain: float) -> Tensor:
        ctx.save_for_backward(ids, ends)
        ctx.gain, ctx.rows = gain, len(weight)
        return c_bag.mean(weight, ids, ends, gain)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, None, None, None]:
        ids, ends = ctx.saved_tensors
        return c_bag.gradient(slopes[0], ids, ends, ctx.gain, ctx.rows), None, None, None
