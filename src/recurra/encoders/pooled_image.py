"""A picture to one vector."""

from __future__ import annotations

from typing import final

import torch
from torch import nn

from recurra.config import ImageModel
from recurra.encoders.image import ImageEncoder
from recurra.encoders.summaries import summary
from recurra.encoders.summaries.summary import Summarised
from recurra.padding import Grid, Padded
from recurra.settings import Part


@final
class PooledImage(nn.Module):
    """F = ImageEncoder(picture);  s = summary(F_1 … F_P) over the places of the map, row after row.

    >>> network = PooledImage(ImageModel(widths=[4, 8]), 1, "mean")
    >>> vector, weights = network(Grid(torch.rand(2, 1, 16, 21), torch.tensor([[16, 9], [3, 21]])))
    >>> vector.shape, weights, network.output_size
    (torch.Size([2, 8]), None, 8)
    """

    def __init__(self, settings: ImageModel, channels: int, summary_by: Part) -> None:
        super().__init__()
        self.image = ImageEncoder(settings, channels)
        self.summary = summary(summary_by, self.image.output_size, [])
        self.output_size = self.summary.output_size

    def forward(self, pictures: Grid) -> Summarised:
        """(B, channels, H, W) to (B, output_size); its weights are those of the P places of a map."""
        found: Summarised = self.summary(in_rows(self.image(pictures)), ())
        return found


def in_rows(features: Grid) -> Padded:
    """The real places of each map (B, D, H, W), row after row, as sequences (B, P, D).

    >>> in_rows(Grid(torch.arange(6.0).view(1, 1, 2, 3), torch.tensor([[2, 2]]))).values[0, :4, 0].tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    values = features.values.flatten(2).transpose(1, 2)
    lengths = features.sizes.prod(1)
    if features.is_full:
        return Padded(values, lengths)
    # A narrow picture has padding at the end of every row: real places come first, in their order.
    order = features.mask.flatten(1).logical_not().to(torch.uint8).argsort(dim=1, stable=True)
    return Padded(values.gather(1, order.unsqueeze(2).expand(-1, -1, values.shape[2])), lengths)
