"""One encoder for both texts, then a comparison of the two vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch

from recurra.padding import Padded
from recurra.pairings.feed_forward import FeedForward
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.pairings.rows import halves, stacked


@final
class Siamese(Pairing):
    """Two vectors by the same encoder, compared (Bromley et al. 1993; Mou et al. 2016).

        u = encoder(a),   v = encoder(b)
        s = MLP([u; v; |u − v|; u ∘ v])

    size, layers    of the MLP, whose activation is relu
    """

    def __init__(self, input_size: int, parts: Parts, *, size: int = 256, layers: int = 1) -> None:
        super().__init__(input_size, parts)
        self.encoder = parts.encoder(input_size)
        inputs = 4 * int(self.encoder.output_size)  # type: ignore[arg-type]
        self.mlp = FeedForward(inputs, size, layers=layers, dropout=parts.dropout)
        self.output_size = size

    def forward(self, first: Padded, second: Padded) -> Paired:
        u, v = halves(self.encoder(stacked(first, second)).vector)
        return Paired(self.mlp(torch.cat([u, v, (u - v).abs(), u * v], -1)))

    def read_by_stacks(self, first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
        return [[*first, *second]]
