"""A picture to a map of features: the equations in numpy, padding, positions, rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recurra.config import ImageModel
from recurra.encoders.image import ImageEncoder, map_waves, waves
from recurra.errors import ConfigError
from recurra.padding import Grid, Padded, gridded
from recurra.stacks.recurrent import Recurrent

Array = NDArray[np.float64]

SPECS: list[dict[str, Any]] = [
    {},
    {"norm": "layer"},
    {"layers": 0},
    {"non_local": True, "positions": False},
    {"rows": "gru"},
    {"rows": {"name": "lstm"}, "hidden": 6, "norm": "layer", "positions": False},
]
every = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: " ".join(map(str, spec)) or "plain")
sizes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 11)), min_size=1, max_size=3)


def drawn(spec: dict[str, Any], channels: int = 2) -> ImageEncoder:
    """A network whose every weight matters: those that start at 0 or 1 are drawn too."""
    network = ImageEncoder(ImageModel(**{"widths": [3, 4], "layers": 1, "dropout": 0.0, **spec}), channels).double()
    with torch.no_grad():
        for name, value in [*network.named_parameters(), *network.named_buffers()]:
            value.copy_(torch.rand_like(value) + 0.5 if "variance" in name else torch.randn_like(value) * 0.5)
    return network.eval()


def same(one: Tensor, other: Tensor) -> None:
    assert_close(one, other, rtol=0, atol=1e-10)


def convolved(weight: Array, x: Array, stride: int) -> Array:
    """One picture (C, H, W): a sum for every place of the result and every place of the filter."""
    _, height, width = x.shape
    y = np.zeros((len(weight), -(-height // stride), -(-width // stride)))
    for r, c in np.ndindex(y.shape[1:]):
        for i, j in np.ndindex(3, 3):
            row, column = r * stride + i - 1, c * stride + j - 1
            if 0 <= row < height and 0 <= column < width:
                y[:, r, c] += weight[:, :, i, j] @ x[:, row, column]
    return y


def normal(w: dict[str, Array], name: str, x: Array) -> Array:
    """Of one picture, as in evaluation."""
    if f"{name}.running_mean" in w:
        mean, variance = (w[f"{name}.running_{part}"][:, None, None] for part in ("mean", "variance"))
    else:
        mean, variance = x.mean(0), x.var(0)
    y: Array = (x - mean) / np.sqrt(variance + 1e-5)
    return y * w[f"{name}.weight"][:, None, None] + w[f"{name}.bias"][:, None, None]


def wave(place: int, k: int, channels: int) -> float:
    angle = place / 10_000 ** (2 * (k // 2) / channels)
    return math.sin(angle) if k % 2 == 0 else math.cos(angle)


def by_numpy(network: ImageEncoder, x: Array, stages: int, layers: int) -> Array:
    w = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    for stage in (f"stages.{number}" for number in range(stages)):
        x = np.maximum(normal(w, f"{stage}.halve_norm", convolved(w[f"{stage}.halve.weight"], x, 2)), 0)
        for i in range(layers):
            y = normal(w, f"{stage}.norms.{i}", convolved(w[f"{stage}.layers.{i}.weight"], x, 1))
            x = np.maximum(x + y, 0)
    for k, r, c in np.ndindex(x.shape):
        half = len(x) // 2
        x[k, r, c] += wave(r, k, half) if k < half else wave(c, k - half, len(x) - half)
    return x


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_the_equations_hold_for_each_picture_of_a_batch(norm: str) -> None:
    torch.manual_seed(1)
    network = drawn({"norm": norm, "widths": [3, 5], "layers": 2})
    pictures = [torch.rand(2, height, width, dtype=torch.float64) for height, width in [(7, 9), (1, 4), (8, 1)]]
    found = network(gridded(pictures))
    assert found.sizes.tolist() == [[2, 3], [1, 1], [2, 1]]
    for row, picture in enumerate(pictures):
        expected = by_numpy(network, picture.numpy(), stages=2, layers=2)
        _, height, width = expected.shape
        same(found.values[row, :, :height, :width], torch.from_numpy(expected))


@settings(max_examples=settings().max_examples // 6)
@given(spec=st.sampled_from(SPECS), sizes=sizes, more=st.integers(0, 5), seed=st.integers(0, 99))
def test_a_picture_alone_gives_the_same_as_in_a_padded_batch(
    spec: dict[str, Any], sizes: list[tuple[int, int]], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    network = drawn(spec).train("norm" in spec)  # a norm over channels is a picture's own in training too
    pictures = [torch.rand(2, *size, dtype=torch.float64) for size in sizes]
    batch = gridded(pictures)
    beyond = torch.nn.functional.pad(batch.values, (0, more, 0, more))
    wide = Grid(beyond, batch.sizes)
    found = network(Grid(beyond.masked_fill(~wide.mask.unsqueeze(1), torch.nan), batch.sizes))
    assert (found.values.masked_select(~found.mask.unsqueeze(1)) == 0).all()
    for row, picture in enumerate(pictures):
        alone = network(gridded([picture]))
        height, width = alone.values.shape[2:]
        assert found.sizes[row].tolist() == [height, width]
        same(found.values[row, :, :height, :width], alone.values[0])


@every
def test_a_batch_with_more_padding_gives_the_same_in_training_too(spec: dict[str, Any]) -> None:
    network = drawn(spec).train()
    batch = gridded([torch.rand(2, 7, 13).double(), torch.rand(2, 9, 5).double()])
    more = Grid(torch.nn.functional.pad(batch.values, (0, 3, 0, 7)), batch.sizes)
    found, again = network(batch), network(more)
    assert found.sizes.tolist() == again.sizes.tolist()
    for number, (height, width) in enumerate(found.sizes.tolist()):
        one, other = (each.values[number, :, :height, :width] for each in (found, again))
        assert_close(other, one, atol=1e-10, rtol=0)


@every
def test_padding_has_no_gradient_and_what_is_real_has(spec: dict[str, Any]) -> None:
    torch.manual_seed(3)
    network = drawn(spec).train()
    x = torch.rand(2, 2, 9, 8, dtype=torch.float64)
    batch = Grid(x, torch.tensor([[9, 8], [5, 3]]))
    x.masked_fill_(~batch.mask.unsqueeze(1), torch.nan).requires_grad_()
    found = network(batch).values
    (found * torch.randn_like(found)).sum().backward()
    assert x.grad is not None
    assert (x.grad.masked_select(~batch.mask.unsqueeze(1)) == 0).all()
    assert (x.grad.abs().sum((1, 2, 3)) > 0).all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@every
def test_gradients_are_those_of_differences(spec: dict[str, Any]) -> None:
    torch.manual_seed(4)
    network = drawn(spec, channels=1)
    x = torch.rand(2, 1, 5, 6, dtype=torch.float64, requires_grad=True)
    sizes = torch.tensor([[5, 6], [3, 4]])
    assert torch.autograd.gradcheck(lambda x: network(Grid(x, sizes)).values, x, fast_mode=True)


def test_a_map_knows_its_places_by_waves() -> None:
    found = waves(5, 6, torch.zeros((), dtype=torch.float64))
    for k in range(6):
        for place in range(5):
            assert found[k, place].item() == pytest.approx(wave(place, k, 6), abs=1e-12)
    both = map_waves(torch.zeros(1, 5, 3, 4, dtype=torch.float64))  # an odd number: the column has one more
    same(both[:2, :, 0], waves(3, 2, both))
    same(both[2:, 0], waves(4, 3, both))
    assert waves(3, 1, both).shape == (1, 3)
    assert map_waves(torch.zeros(1, 1, 2, 2)).shape == (1, 2, 2)


def test_in_half_precision_waves_are_those_of_whole_numbers() -> None:
    exact = waves(400, 8, torch.zeros(()))
    assert_close(waves(400, 8, torch.zeros((), dtype=torch.bfloat16)).float(), exact, rtol=0, atol=0.004)


def test_each_row_of_a_map_is_read_both_ways() -> None:
    torch.manual_seed(5)
    network = drawn({"rows": "gru", "hidden": 6})
    plain = drawn({})
    plain.load_state_dict({name: value for name, value in network.state_dict().items() if "rows." not in name})
    pictures = gridded([torch.rand(2, 9, 12).double(), torch.rand(2, 5, 7).double()])
    found, before = network(pictures), plain(pictures)
    assert network.output_size == 6
    assert isinstance(network.rows, Recurrent)
    for picture, (height, width) in enumerate(before.sizes.tolist()):
        for row in range(height):
            steps = before.values[picture, :, row, :width].T.unsqueeze(0)
            read = network.rows(Padded.full(steps))[0].values[0]
            same(found.values[picture, :, row, :width], read.T)


def test_features_are_dropped_in_training_alone() -> None:
    network = drawn({"dropout": 0.5, "norm": "layer", "positions": False})
    pictures = gridded([torch.rand(2, 9, 12).double()])
    assert torch.equal(network(pictures).values, network(pictures).values)
    assert not torch.equal(network.train()(pictures).values, network(pictures).values)


@every
def test_in_half_precision_the_map_is_nearly_the_same(spec: dict[str, Any]) -> None:
    torch.manual_seed(6)
    network = drawn({**spec, "positions": False}).float().train()
    pictures = gridded([torch.rand(2, 9, 12), torch.rand(2, 5, 7)])
    exact = network(pictures).values
    with torch.autocast("cpu", torch.bfloat16):
        found = network(pictures).values
    found.float().sum().backward()
    assert_close(found.float(), exact, rtol=0.1, atol=0.15)
    assert all(buffer.dtype == torch.float32 for buffer in network.buffers())


def test_it_learns_to_tell_two_strokes_apart() -> None:
    torch.manual_seed(7)
    network = ImageEncoder(ImageModel(widths=[8, 16], layers=1), 1)
    to_class = torch.nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*network.parameters(), *to_class.parameters()], lr=0.01)

    def batch(rows: int) -> tuple[Grid, Tensor]:
        labels = torch.randint(0, 2, (rows,))
        pictures = []
        for label in labels.tolist():  # a stroke down, or one across, of any length
            picture = torch.zeros(1, *torch.randint(9, 16, (2,)).tolist())
            at, length = int(torch.randint(2, 7, ())), int(torch.randint(4, 9, ()))
            picture[(0, slice(length), at) if label else (0, at, slice(length))] = 1.0
            pictures.append(picture)
        return gridded(pictures), labels

    def scores(pictures: Grid) -> Tensor:
        y: Tensor = to_class(network(pictures).values.amax((2, 3)))
        return y

    for _ in range(30):
        pictures, labels = batch(32)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores(pictures), labels).backward()
        optimizer.step()
    network.eval()
    pictures, labels = batch(200)
    assert (scores(pictures).argmax(1) == labels).double().mean() > 0.95


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"widths": []}, r"model\.image\.widths must be at least 1, for each of one stage or several, but is \[\]"),
        ({"widths": [8, 0]}, r"but is \[8, 0\]"),
        ({"layers": -1}, r"model\.image\.layers must be at least 0, but is -1"),
        ({"dropout": 1.0}, r"model\.image\.dropout must be at least 0 and below 1, but is 1\.0"),
        (
            {"hidden": 8},
            r"model\.image\.hidden = 8 has no effect, because.*rows is none\. Set model\.image\.rows to a cell,",
        ),
        ({"rows": "gru", "hidden": 7}, r"rows = 'gru' is bidirectional, .* 7: set model\.image\.hidden = 8"),
        ({"rows": "gru", "hidden": 0}, r"model\.image\.hidden must be at least 1, but is 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ImageModel(**spec)
