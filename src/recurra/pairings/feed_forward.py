"""Fully connected layers, the same at every place."""

from __future__ import annotations

import itertools
from typing import final

from torch import Tensor, nn

from recurra.cells.weights import check_size


@final
class FeedForward(nn.Module):
    """x⁰ = x,  xˡ = relu(Wˡ drop(xˡ⁻¹) + bˡ): (…, input_size) to (…, size)."""

    def __init__(self, input_size: int, size: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [input_size, *[check_size(size, "size")] * check_size(layers, "layers")]
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(nn.Linear(*each) for each in itertools.pairwise(sizes))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")  # type: ignore[arg-type]
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        self.output_size = size

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(self.drop(x)).relu()
        return x
