"""Convolutions over time: the equation in numpy, short rows, padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.config import ConvolutionModel
from recurra.encoders.convolution import Convolution
from recurra.errors import ConfigError
from recurra.padding import Padded


def by_numpy(network: Convolution, x: NDArray[np.float64], pooling: str) -> NDArray[np.float64]:
    """One row: a sum for every step, filter and place under the filter."""
    for layer in network.layers:
        found = []
        for convolution in layer.children():
            weight = convolution.weight.detach().numpy()  # type: ignore[operator]  # (filters, inputs, width)
            bias = convolution.bias.detach().numpy()  # type: ignore[operator]
            width = weight.shape[2]
            y = np.tile(bias, (len(x), 1))
            for t in range(len(x)):
                for j in range(width):
                    place = t + j - (width - 1) // 2
                    if 0 <= place < len(x):
                        y[t] += weight[:, :, j] @ x[place]
            found.append(np.maximum(y, 0))
        x = np.concatenate(found, axis=1)
    return x.max(0) if pooling == "max" else x.mean(0)


@pytest.mark.parametrize("pooling", ["max", "mean"])
@pytest.mark.parametrize("layers", [1, 2])
def test_the_equations_hold_also_for_rows_shorter_than_a_filter(pooling: str, layers: int) -> None:
    torch.manual_seed(1)
    settings = ConvolutionModel(widths=[1, 2, 5], filters=3, layers=layers, pooling=pooling)  # type: ignore[arg-type]
    network = Convolution(settings, 4).double()
    lengths = [7, 1, 2, 4]
    x = np.random.default_rng(1).normal(size=(4, 7, 4))
    for row, length in enumerate(lengths):
        x[row, length:] = np.nan
    found = network(Padded(torch.from_numpy(x), torch.tensor(lengths))).vector.detach().numpy()
    assert found.shape == (4, network.output_size)
    for row, length in enumerate(lengths):
        assert np.allclose(found[row], by_numpy(network, x[row, :length], pooling), atol=1e-12)


def test_rows_without_a_step_are_zeros() -> None:
    network = Convolution(ConvolutionModel(widths=[2], filters=3), 4)
    assert (network(Padded(torch.ones(2, 3, 4), torch.tensor([3, 0]))).vector[1] == 0).all()
    assert (network(Padded(torch.ones(2, 0, 4), torch.tensor([0, 0]))).vector == 0).all()


def test_padding_has_no_gradient() -> None:
    network = Convolution(ConvolutionModel(widths=[3], filters=2), 2).double()
    x = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    network(Padded(x, torch.tensor([5, 2]))).vector.sum().backward()
    assert x.grad is not None
    assert (x.grad[1, 2:] == 0).all()


@pytest.mark.parametrize("widths", [[], [0, 2]])
def test_widths_must_be_widths(widths: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"model\.convolution\.widths must hold widths of at least 1"):
        ConvolutionModel(widths=widths)
