from typing import NamedTuple

import torch
from torch import Tensor, nn

from recurra.padding import Grid, Padded, fitted


class Mixed(NamedTuple):
    pictures: Grid
    words: Padded | None
    label: Tensor


def test_lengths_and_sizes_stay_where_they_are_when_a_batch_goes_to_a_device() -> None:
    batch = Mixed(
        Grid(torch.zeros(1, 1, 2, 3), torch.tensor([[2, 3]])),
        Padded(torch.zeros(1, 2), torch.tensor([2])),
        torch.zeros(1),
    )
    found = fitted(batch, nn.Linear(1, 1, device="meta"))
    assert (found.pictures.values.device.type, found.pictures.sizes.device.type) == ("meta", "cpu")
    assert (found.words.values.device.type, found.words.lengths.device.type) == ("meta", "cpu")
    assert found.label.device.type == "meta"
    assert fitted(batch._replace(words=None), nn.Linear(1, 1, device="meta")).words is None
