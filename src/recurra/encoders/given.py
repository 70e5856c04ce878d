"""What is given at once, a vector, features of places or a picture, as a memory and a vector of the whole."""

from __future__ import annotations

import itertools
from typing import final

from torch import Tensor, nn

from recurra.config import ImageModel
from recurra.data.extents import Extents
from recurra.encoders.dropout import Dropout
from recurra.encoders.image import ImageEncoder
from recurra.encoders.memory import Places, Read
from recurra.padding import Grid, Padded


@final
class GivenEncoder(nn.Module):
    """Vectors x_1 … x_S of places, one for a vector that stands alone, to a memory and a vector of the whole (D11).

        m_i = x_i                                            layers = 0: as it is
        m_i = tanh(W_L … tanh(W_1 x_i + b_1) … + b_L)        layers = L
        s   = (1/S) Σ_i m_i                                  over the real places

    With `starts`, a decoder begins from s too.
    """

    recurrent: None = None
    ends_are_last = False

    def __init__(self, input_size: int, hidden: int, layers: int, *, dropout: float = 0.0, starts: bool = True) -> None:
        super().__init__()
        sizes = [input_size, *[hidden] * layers]
        self.maps = nn.ModuleList(nn.Linear(size, after) for size, after in itertools.pairwise(sizes))
        self.dropout = Dropout(dropout)
        self.output_size = self.summary_size = sizes[-1]
        self.end_sizes: tuple[dict[str, int], ...] = ({"h": self.output_size},) if starts else ()

    def extents(self, source: Padded | Grid) -> Extents:
        """A place for each that was given."""
        return extents(source, 1)

    def forward(self, source: Padded | Grid) -> Read:
        """(B, S, I), or a map (B, I, H, W), to a memory (B, S, output_size)."""
        places = Places.of(source.zeroed())
        values = places.values
        for number, layer in enumerate(self.maps):
            values = layer(self.dropout(values) if number else values).tanh()
        return whole(places._replace(values=values), starts=bool(self.end_sizes))


@final
class PictureEncoder(nn.Module):
    """A picture to a memory of the places of its map of features, and their mean (D11).

    F = ImageEncoder(picture)          (D, H', W')
    m = F, row after row;  s = (1/S) Σ_i m_i
    """

    recurrent: None = None
    ends_are_last = False

    def __init__(self, settings: ImageModel, channels: int, *, starts: bool = True) -> None:
        super().__init__()
        self.image = ImageEncoder(settings, channels)
        self.output_size = self.summary_size = self.image.output_size
        self.end_sizes: tuple[dict[str, int], ...] = ({"h": self.output_size},) if starts else ()

    def extents(self, source: Padded | Grid) -> Extents:
        """A place for each square of pixels."""
        return extents(source, self.image.stride)

    def forward(self, source: Grid) -> Read:
        """(B, channels, H, W) in 0 … 1 to a memory (B, H' · W', output_size)."""
        return whole(Places.of(self.image(source)), starts=bool(self.end_sizes))


def whole(places: Places, *, starts: bool) -> Read:
    """Places, and their mean as the vector of all; 0 where there are none."""
    real = places.mask.unsqueeze(2)
    counts = real.sum(1).clamp_min(1)
    mean: Tensor = places.values.masked_fill(~real, 0.0).sum(1) / counts
    return Read(places, ({"h": mean},) if starts else (), None, mean)


def extents(source: Padded | Grid, stride: int) -> Extents:
    """Rows and columns of places, each of which stands for so many pixels or steps a side.

    >>> import torch
    >>> extents(Grid(torch.zeros(1, 1, 9, 4), torch.tensor([[9, 3]])), 4)
    Extents(each=[(3, 1)], columns=1)
    """
    if isinstance(source, Padded):
        return Extents([(1, -(-length // stride)) for length in source.lengths.tolist()], None)
    sizes = [(-(-rows // stride), -(-columns // stride)) for rows, columns in source.sizes.tolist()]
    return Extents(sizes, -(-source.values.shape[3] // stride))
