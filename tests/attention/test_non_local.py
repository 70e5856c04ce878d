"""The non-local block: its equation in numpy, place by place, in one, two and three dimensions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.testing import assert_close

from recurra.attention.non_local import NonLocal
from recurra.errors import ConfigError, DataError

SHAPES = [(5,), (3, 4), (2, 3, 2)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=["1-d", "2-d", "3-d"])


def drawn(channels: int = 4, inner: int | None = None) -> NonLocal:
    """With weights unlike those at the start, where nothing changes."""
    block = NonLocal(channels, inner=inner).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return block


def by_numpy(block: NonLocal, x: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """One map (C, ...): a sum over all real positions for each."""
    w = {name: value.detach().numpy() for name, value in block.state_dict().items()}

    def mapped(name: str, features: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = w[f"{name}.weight"] @ features + w[f"{name}.bias"]
        return found

    y = x.copy()
    real = [place for place in np.ndindex(x.shape[1:]) if mask[place]]
    for i in real:
        e = np.array([mapped("theta", x[:, *i]) @ mapped("phi", x[:, *j]) for j in real])
        alpha = np.exp(e - e.max()) / np.exp(e - e.max()).sum()
        z = sum(a * mapped("g", x[:, *j]) for a, j in zip(alpha, real, strict=True))
        y[:, *i] = mapped("to_output", z) + x[:, *i]
    return y


@every_shape
@pytest.mark.parametrize("inner", [None, 3])
def test_the_equations_hold_with_a_mask_and_without(shape: tuple[int, ...], inner: int | None) -> None:
    torch.manual_seed(1)
    block = drawn(inner=inner)
    assert block.inner == (inner or 2)
    x, mask = torch.randn(3, 4, *shape, dtype=torch.float64), torch.rand(3, *shape) < 0.6
    found, masked = block(x).detach().numpy(), block(x, mask).detach().numpy()
    for row in range(3):
        everything = np.ones(shape, dtype=np.bool_)
        np.testing.assert_allclose(found[row], by_numpy(block, x[row].numpy(), everything), atol=1e-12)
        np.testing.assert_allclose(masked[row], by_numpy(block, x[row].numpy(), mask[row].numpy()), atol=1e-12)


@every_shape
def test_at_the_start_nothing_changes(shape: tuple[int, ...]) -> None:
    block, x = NonLocal(4), torch.randn(2, 4, *shape)
    assert torch.equal(block(x), x)
    assert torch.equal(block(x, torch.rand(2, *shape) < 0.5), x)


@every_shape
def test_what_is_behind_the_mask_is_neither_seen_nor_changed(shape: tuple[int, ...]) -> None:
    torch.manual_seed(2)
    block, mask = drawn(), torch.rand(2, *shape) < 0.6
    clean = torch.randn(2, 4, *shape, dtype=torch.float64)
    found = []
    for filling in (0.0, torch.nan, torch.inf):
        x = clean.masked_fill(~mask.unsqueeze(1), filling).requires_grad_()
        y = block(x, mask)
        real = y.masked_fill(~mask.unsqueeze(1), 0.0)
        assert torch.equal(y[(~mask).unsqueeze(1).expand_as(y)].isnan(), x[(~mask).unsqueeze(1).expand_as(x)].isnan())
        found.append((real, *torch.autograd.grad(real.square().sum(), [x, *block.parameters()])))
    assert_close(found[1], found[0], rtol=0, atol=1e-12)
    assert_close(found[2], found[0], rtol=0, atol=1e-12)


@every_shape
def test_a_map_of_padding_alone_stays_as_it_is_and_has_no_gradient(shape: tuple[int, ...]) -> None:
    block, x = drawn(), torch.randn(2, 4, *shape, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(2, *shape, dtype=torch.bool)
    mask[0] = True
    y = block(x, mask)
    assert torch.equal(y[1], x[1])
    (y - x).sum().backward()
    assert x.grad is not None
    assert (x.grad[1] == 0).all()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in block.parameters())


@every_shape
def test_gradients_are_those_of_differences(shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    block, mask = drawn(), torch.rand(2, *shape) < 0.6
    x = torch.randn(2, 4, *shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: block(x, mask), (x, *block.parameters()), fast_mode=True)


def test_maps_without_a_position_or_a_row_stay_as_they_are() -> None:
    block = drawn()
    for shape in ((0, 4, 3), (2, 4, 0), (2, 4, 0, 3)):
        assert block(torch.zeros(shape).double(), torch.ones(shape[0], *shape[2:], dtype=torch.bool)).shape == shape


def test_one_channel_has_one_inner_feature() -> None:
    assert NonLocal(1).inner == 1


def test_in_half_precision_it_is_nearly_the_same() -> None:
    block, x = drawn().float(), torch.randn(2, 4, 3, 4)
    mask = torch.rand(2, 3, 4) < 0.6
    with torch.autocast("cpu", torch.bfloat16):
        found = block(x, mask)
    assert_close(found.float(), block(x, mask), rtol=0.1, atol=0.2)


def test_maps_and_masks_of_other_shapes_are_refused() -> None:
    block = NonLocal(4)
    for x in (torch.zeros(2, 4), torch.zeros(2, 3, 5), torch.zeros(2, 4, 1, 1, 1, 1)):
        with pytest.raises(DataError, match=r"reads a map \(B, 4, \.\.\.\) of 1, 2 or 3 dimensions, but got \(2,"):
            block(x)
    with pytest.raises(DataError, match=r"mask of a map \(2, 4, 3, 5\) has shape \(2, 3, 5\), but got \(2, 3\)"):
        block(torch.zeros(2, 4, 3, 5), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ConfigError, match="channels must be a whole number of at least 1"):
        NonLocal(0)
    with pytest.raises(ConfigError, match="inner must be a whole number of at least 1"):
        NonLocal(4, inner=0)
