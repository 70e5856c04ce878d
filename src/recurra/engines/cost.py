"""How long an engine is expected to take: a small model, so that `auto` can take the cheapest engine that can.

    seconds = call + T (gate G + weight Σ|U| + number B G H + product B Σ|U|)  +  projection

with B rows, T steps, H units, U the recurrent weights, and G gates: as many as there are blocks of H numbers in what U
makes, 4 for an LSTM. A `Rates` holds the five rates of one engine. They were fitted to times measured by
benchmarks/engine_costs.py, which prints both. The projection of the inputs is the same for every engine. Only ratios
between engines matter: a machine that is twice as fast as the one measured is twice as fast for all of them.

On a GPU, a layer that is called takes the time in which the host launches its kernels; one that is replayed as a part
of a CUDA graph takes what the kernels take. Engines have rates for both, and `Work.graphed` says which count.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from recurra.cells import Product, Wrapper
from recurra.cells.weights import leaves
from recurra.engines.c_library import compiler
from recurra.engines.engine import Layer, Work
from recurra.padding import Padded
from recurra.recording import is_graphed


def work_of(layer: Layer, x: Padded) -> Work:
    """The work of one layer."""
    reader = layer[0]
    cell = reader.cell
    while isinstance(cell, Wrapper):
        cell = cell.cell
    width = weights = 0
    for product in leaves(reader.fixed, Product):
        if product.weight.dim() == 2:
            width += product.weight.shape[0]
            weights += product.weight.numel()
    values = x.values
    rows, steps, input_size = values.shape
    device = values.device.type
    return Work(
        type(cell),
        len(layer),
        rows,
        steps,
        input_size,
        cell.hidden_size,
        width or 2 * cell.hidden_size,  # without a recurrent matrix: as a gate and a candidate would be
        weights,
        0 if reader.resets is None else int(reader.resets.mask.sum(1).max()),
        torch.is_grad_enabled(),
        device,
        values.dtype,
        torch.is_autocast_enabled(device),
        torch.get_num_threads(),
        compiler() is not None,
        device == "cuda" and is_graphed(),
        torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None,
    )


PROJECTION = 2.5e-11
"""Seconds of one thread for each product of an input with W; three times as much with the backward pass."""


AUTOCAST = 1.7
"""How many times as long a gate takes under autocast, where every operation first casts what it is given."""


class Rates(NamedTuple):
    """Seconds per call of a reader; and at each step per gate, weight, number and product."""

    call: float
    gate: float = 0.0
    weight: float = 0.0
    number: float = 0.0
    product: float = 0.0

    def seconds(self, work: Work) -> float:
        """The estimate for a layer."""
        return projection(work) + sum(rate * count for rate, count in zip(self, terms(work), strict=True))


class Estimate(NamedTuple):
    """The rates of an engine with the backward pass and without."""

    training: Rates
    inference: Rates

    def seconds(self, work: Work) -> float:
        return (self.training if work.training else self.inference).seconds(work)


def in_graph(rates: Rates) -> Estimate:
    """An estimate for layers inside a CUDA graph, from rates measured in training; inference is taken for a half."""
    return Estimate(rates, Rates(*(rate / 2 for rate in rates)))


def terms(work: Work) -> tuple[float, float, float, float, float]:
    """How often each rate counts: calls, gates, weights, numbers, products."""
    wide = 2 if work.dtype == torch.float64 else 1
    steps = work.readers * work.steps
    numbers, products = steps * work.rows * work.width, steps * work.rows * work.weights
    gates = steps * work.width / work.hidden_size * (AUTOCAST if work.autocast and not work.graphed else 1)
    return work.readers, gates, wide * steps * work.weights, wide * numbers, wide * products / work.threads


def projection(work: Work) -> float:
    """Seconds that W x takes, whichever engine runs the steps; next to none on a GPU, where calls are what costs."""
    if work.device != "cpu":
        return 0.0
    products = work.readers * work.steps * work.rows * work.width * work.input_size
    return PROJECTION * products * (3 if work.training else 1) / work.threads
