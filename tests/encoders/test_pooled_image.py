import pytest
import torch
from torch.testing import assert_close

from recurra.config import ImageModel
from recurra.encoders.image import ImageEncoder
from recurra.encoders.pooled_image import PooledImage, in_rows
from recurra.padding import Grid, gridded

SMALL = ImageModel(widths=[4, 6], layers=1, dropout=0.0)


def pictures() -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.rand(1, 9, 14), torch.rand(1, 17, 6), torch.rand(1, 3, 3)]


def test_a_mean_and_a_maximum_are_those_over_the_real_places_of_the_map() -> None:
    torch.manual_seed(2)
    mean = PooledImage(SMALL, 1, "mean").double().eval()
    largest = PooledImage(SMALL, 1, "max").double().eval()
    largest.load_state_dict(mean.state_dict())
    for picture in pictures():
        alone = gridded([picture.double()])
        found = mean.image(alone).values[0]
        assert_close(mean(alone)[0][0], found.mean((1, 2)))
        assert_close(largest(alone)[0][0], found.amax((1, 2)))


@pytest.mark.parametrize("summary", ["mean", "max", {"name": "attention", "queries": 2, "size": 3}])
def test_a_picture_has_the_same_vector_alone_and_in_a_batch(summary: str | dict[str, object]) -> None:
    torch.manual_seed(2)
    network = PooledImage(SMALL, 1, summary).double().eval()
    together, weights = network(gridded([picture.double() for picture in pictures()]))
    for row, picture in enumerate(pictures()):
        alone, own = network(gridded([picture.double()]))
        assert_close(together[row], alone[0])
        if weights is not None:
            assert own is not None
            assert_close(weights[row, :, : own.shape[2]], own[0])
            assert_close(weights[row].sum(1), torch.ones(2).double())


def test_real_places_stand_row_after_row() -> None:
    values = torch.arange(24.0).view(2, 1, 3, 4)
    found = in_rows(Grid(values, torch.tensor([[2, 3], [3, 1]])))
    assert found.lengths.tolist() == [6, 3]
    assert found.values[0, :6, 0].tolist() == [0, 1, 2, 4, 5, 6]
    assert found.values[1, :3, 0].tolist() == [12, 16, 20]


def test_gradients_reach_the_first_convolution() -> None:
    network = PooledImage(SMALL, 1, "max")
    network(gridded(pictures()))[0].sum().backward()
    first = next(ImageEncoder.parameters(network.image)).grad
    assert first is not None
    assert bool(first.abs().sum() > 0)
