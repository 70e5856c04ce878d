"""A picture to a map of features."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.non_local import NonLocal
from recurra.config import ImageModel
from recurra.encoders.dropout import Dropout
from recurra.encoders.masked_norm import BatchNorm, LayerNorm
from recurra.padding import Grid, Padded
from recurra.settings import about
from recurra.stacks.recurrent import Recurrent


@final
class ImageEncoder(nn.Module):
    """A residual network of convolutions, each stage of which halves the rows and the columns (He et al. 2016).

        a stage      x ← relu(norm(W ∗ x))                   3 × 3, every second place: ⌈n / 2⌉ of n
                     x ← relu(x + norm(W ∗ x))               3 × 3, `layers` times
        non_local    x ← NonLocal(x)
        positions    x_rc ← x_rc + [p_r; p_c]                see `waves`
        rows         x_r ← [h→; h←] of a recurrent network along each row r (Deng et al. 2017)

    Beyond a picture all is 0, after every convolution too, so it gives the same map alone and in any batch.

    >>> network = ImageEncoder(ImageModel(widths=[4, 8]), 1)
    >>> features = network(Grid(torch.rand(2, 1, 16, 21), torch.tensor([[16, 9], [3, 21]])))
    >>> features.values.shape, features.sizes.tolist(), network.output_size, network.stride
    (torch.Size([2, 8, 4, 6]), [[4, 3], [1, 6]], 8, 4)
    """

    def __init__(self, settings: ImageModel, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.output_size = settings.output_size
        self.stride = 2 ** len(settings.widths)
        self.positions = settings.positions
        sizes = [channels, *settings.widths]
        self.stages = nn.ModuleList(
            Stage(size, width, settings.layers, settings.norm)
            for size, width in zip(sizes, settings.widths, strict=False)
        )
        self.non_local = None
        if settings.non_local:
            with about("model", "image", "non_local"):
                similarity = "dot" if settings.non_local is True else settings.non_local
                self.non_local = NonLocal(sizes[-1], similarity=similarity)
        self.dropout = Dropout(settings.dropout)
        self.rows = (
            None
            if settings.rows is None
            else Recurrent(settings.rows, sizes[-1], settings.output_size // 2, bidirectional=True)
        )

    def forward(self, pictures: Grid) -> Grid:
        """(B, channels, H, W) of numbers from 0 to 1 to (B, output_size, H', W'), zeros for padding."""
        found = pictures.zeroed()
        for stage in self.stages:
            found = stage(found)
        values, sizes = found
        mask = None if found.is_full else found.mask
        if self.non_local is not None:
            values = self.non_local(values, mask)
        values = self.dropout(values)
        if self.positions:
            values = values + map_waves(values)
            values = values if mask is None else values.masked_fill(~mask.unsqueeze(1), 0.0)
        found = Grid(values, sizes)
        return found if self.rows is None else along_rows(self.rows, found)


@final
class Stage(nn.Module):
    """x ← relu(norm(W ∗ x)) with half of the rows and columns, then x ← relu(x + norm(W ∗ x)), `layers` times."""

    def __init__(self, size: int, width: int, layers: int, norm: str) -> None:
        super().__init__()
        kind = BatchNorm if norm == "batch" else LayerNorm
        self.halve = nn.Conv2d(size, width, 3, stride=2, padding=1, bias=False)  # the norm has a bias
        self.halve_norm = kind(width)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(layers))
        self.norms = nn.ModuleList(kind(width) for _ in range(layers))
        for convolution in (self.halve, *self.layers):
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")

    def forward(self, x: Grid) -> Grid:
        # Channels last is what convolutions in half precision want, and what a norm over channels reads in one piece.
        y = self.halve(x.values).contiguous(memory_format=torch.channels_last)
        found = Grid(y, (x.sizes + 1) // 2)
        mask = None if found.is_full else found.mask.unsqueeze(1)
        y = kept(self.halve_norm(y, mask).relu(), mask)
        for convolution, norm in zip(self.layers, self.norms, strict=True):
            y = kept((y + norm(convolution(y), mask)).relu(), mask)
        return Grid(y, found.sizes)


def kept(x: Tensor, mask: Tensor | None) -> Tensor:
    """x where the mask is True, 0 elsewhere."""
    return x if mask is None else x * mask.to(x.dtype)


def along_rows(network: Recurrent, x: Grid) -> Grid:
    """Each row of a map (B, C, H, W) read as a sequence: (B, D, H, W). A row below the picture has no step."""
    batch, _, height, _ = x.values.shape
    is_real = torch.arange(height) < x.sizes[:, :1]
    lengths = torch.where(is_real, x.sizes[:, 1:], 0).flatten()
    rows = x.values.permute(0, 2, 3, 1).flatten(0, 1)  # (B H, W, C)
    outputs, _ = network(Padded(rows, lengths))
    return Grid(outputs.values.unflatten(0, (batch, height)).permute(0, 3, 1, 2), x.sizes)


def map_waves(x: Tensor) -> Tensor:
    """(C, H, W) for a map (B, C, H, W): of a place's channels, the first half tells its row and the rest its column."""
    channels, height, width = x.shape[1:]
    rows = waves(height, channels // 2, x).unsqueeze(2).expand(-1, height, width)
    columns = waves(width, channels - channels // 2, x).unsqueeze(1).expand(-1, height, width)
    return torch.cat([rows, columns])


def waves(places: int, channels: int, like: Tensor) -> Tensor:
    """(channels, places): sin(i ω_k) and cos(i ω_k) of place i, in turn, ω_k = 10000^(−2k / channels).

    Neighbours differ in the fast waves, far places in the slow ones (Vaswani et al. 2017).
    """
    exact = torch.promote_types(like.dtype, torch.float32)  # in half precision, far places would be one
    numbers = torch.arange(channels, device=like.device)
    speed = 10_000.0 ** (-2.0 * (numbers // 2).to(exact) / max(1, channels))
    angles = torch.arange(places, device=like.device).to(exact) * speed.unsqueeze(1)
    return torch.where((numbers % 2 == 0).unsqueeze(1), angles.sin(), angles.cos()).to(like.dtype)
