"""What is given at once is read by its equations, place by place, whatever stands beside it in a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recurra.config import ImageModel
from recurra.encoders.given import GivenEncoder, PictureEncoder
from recurra.padding import Grid, Padded, gridded, pad


def array(tensor: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = tensor.detach().double().numpy()
    return found


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_every_place_goes_through_the_same_layers_and_the_whole_is_their_mean(layers: int) -> None:
    torch.manual_seed(layers)
    network = GivenEncoder(3, 5, layers).double()
    sources = [torch.randn(length, 3).double() for length in (4, 1, 6)]
    read = network(pad(sources))
    for row, source in enumerate(sources):
        m = source.numpy()
        for layer in range(layers):
            weights = network.state_dict()
            m = np.tanh(m @ array(weights[f"maps.{layer}.weight"]).T + array(weights[f"maps.{layer}.bias"]))
        assert read.memory.mask[row].tolist() == [place < len(source) for place in range(6)]
        assert_close(array(read.memory.values[row, : len(source)]), m, atol=1e-12, rtol=0)
        assert_close(array(read.summary[row]), m.mean(0), atol=1e-12, rtol=0)
        assert_close(read.ends[0]["h"][row], read.summary[row])
    assert network.output_size == network.summary_size == (5 if layers else 3)


def test_a_decoder_starts_from_it_only_where_it_is_to() -> None:
    network = GivenEncoder(3, 5, 1, starts=False)
    assert network.end_sizes == ()
    assert network(Padded.full(torch.randn(2, 1, 3))).ends == ()
    assert GivenEncoder(3, 5, 1).end_sizes == ({"h": 5},)


def test_the_places_of_a_grid_stand_row_after_row() -> None:
    torch.manual_seed(0)
    network = GivenEncoder(2, 4, 1).double()
    one, other = torch.randn(2, 2, 3).double(), torch.randn(2, 1, 2).double()
    read = network(gridded([one, other]))
    assert read.memory.columns == 3
    alone = network(Padded.full(one.permute(1, 2, 0).reshape(1, 6, 2)))
    assert_close(read.memory.values[0], alone.memory.values[0])
    assert_close(read.summary[0], alone.summary[0])
    assert read.memory.mask[1].tolist() == [True, True, False, False, False, False]
    assert_close(read.summary[1], network(gridded([other])).summary[0])
    extents = network.extents(gridded([one, other]))
    assert (extents.each, extents.columns) == ([(2, 3), (1, 2)], 3)


def test_what_lies_beyond_a_source_is_never_read() -> None:
    network = GivenEncoder(2, 4, 2).double()
    source = pad([torch.randn(3, 2).double(), torch.randn(1, 2).double()])
    source.values[1, 1:] = torch.nan
    read = network(source)
    assert not read.summary.isnan().any()
    assert_close(read.summary[1], network(Padded.full(source.values[1:, :1])).summary[0])


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_a_picture_is_the_places_of_its_map_and_their_mean_alone_and_in_any_batch(norm: str) -> None:
    torch.manual_seed(1)
    settings = ImageModel(widths=[3, 6], layers=1, norm=norm)  # type: ignore[arg-type]
    network = PictureEncoder(settings, 1).double().eval()
    pictures = [torch.rand(1, 9, 14).double(), torch.rand(1, 5, 21).double(), torch.rand(1, 1, 1).double()]
    together = network(gridded(pictures))
    extents = network.extents(gridded(pictures))
    assert (extents.each, extents.columns) == ([(3, 4), (2, 6), (1, 1)], 6)
    for row, picture in enumerate(pictures):
        alone = network(gridded([picture]))
        map_ = network.image(Grid(picture.unsqueeze(0), torch.tensor([picture.shape[1:]]))).values[0]
        assert_close(alone.memory.values[0], map_.flatten(1).T)
        assert_close(alone.summary[0], map_.flatten(1).mean(1))
        assert_close(together.memory.values[row][together.memory.mask[row]], alone.memory.values[0])
        assert_close(together.summary[row], alone.summary[0], atol=1e-12, rtol=1e-12)
