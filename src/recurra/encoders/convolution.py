"""A sequence to a vector by convolutions over time."""

from __future__ import annotations

from typing import final

import torch
from torch import nn
from torch.nn import functional

from recurra.config import ConvolutionModel
from recurra.encoders.dropout import LockedDropout
from recurra.encoders.summaries.max import Max
from recurra.encoders.summaries.mean import Mean
from recurra.encoders.summaries.summary import Summarised
from recurra.padding import Padded


@final
class Convolution(nn.Module):
    """Filters of several widths side by side, then the largest or mean response of each (Kim 2014).

        y_t = relu(b + Σ_j W_j x_{t + j − ⌊(w − 1) / 2⌋})     j = 0 … w − 1, for each width w; x is 0 beyond the row
        y   = [y of every width]                              the next layer reads it in place of x
        s_i = max_t y_ti,   or (1/T) Σ_t y_ti

    A row may be shorter than a filter is wide: it is read with zeros at its sides.

    `input_dropout` drops features of x, `dropout` those between layers.

    >>> network = Convolution(ConvolutionModel(widths=[1, 4], filters=6), 3)
    >>> network(Padded(torch.randn(2, 5, 3), torch.tensor([5, 1]))).vector.shape, network.output_size
    (torch.Size([2, 12]), 12)
    """

    def __init__(
        self, settings: ConvolutionModel, input_size: int, *, input_dropout: float = 0.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.widths = tuple(settings.widths)
        self.output_size = len(self.widths) * settings.filters
        sizes = [input_size] + [self.output_size] * (settings.layers - 1)
        self.drops = nn.ModuleList([LockedDropout(input_dropout), *(LockedDropout(dropout) for _ in sizes[1:])])
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(size, settings.filters, width) for width in self.widths) for size in sizes
        )
        kind = Max if settings.pooling == "max" else Mean
        self.pool = kind(self.output_size, ())

    def forward(self, x: Padded) -> Summarised:
        found: Summarised = self.pool(self.steps(x), ())
        return found

    def steps(self, x: Padded) -> Padded:
        """(B, T, output_size): y of each step."""
        if x.values.shape[1] == 0:
            return Padded(x.values.new_zeros(len(x.lengths), 0, self.output_size), x.lengths)
        for drop, layer in zip(self.drops, self.layers, strict=True):
            read = drop(x).zeroed().values.transpose(1, 2)  # (B, I, T)
            parts = [
                convolution(functional.pad(read, ((width - 1) // 2, width // 2)))
                for width, convolution in zip(self.widths, layer.children(), strict=True)
            ]
            x = Padded(torch.cat(parts, dim=1).relu().transpose(1, 2), x.lengths)
        return x
