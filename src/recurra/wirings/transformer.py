"""A Transformer in place of cells: every layer looks back at the target and over at the source."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from recurra.attention import Memory
from recurra.cells import AnyCell, AnyState
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.transformer import Transformer as Layers
from recurra.wirings.wiring import Features, Shape, Source, Wiring, WiringState, layers_of, only, rows_like


class Remembered(NamedTuple):
    """Sources as the layers look at them."""

    memories: tuple[Memory, ...]  # of each layer, with keys and values of its own; () without attention
    mask: Tensor  # (B, S)


@final
class Transformer(Wiring):
    """The decoder of a Transformer (Vaswani et al. 2017).

    h_t = Transformer(x_1 … x_t, memory)         causal, with absolute positions; see recurra.transformer
    h̃_t = W [h_t; summary] + b                   W only where sizes differ, or there is a summary

    It has no state to start from: the cells' states are the keys and values of the steps so far. The weights that are
    handed on are those of the last layer, the mean of its heads.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        width, *others = shape.widths
        if {*others} - {width}:
            raise ConfigError(
                "all layers of a Transformer must have the same size, but they have the sizes "
                f"{', '.join(map(str, shape.widths))}."
            )
        self.attends = shape.attention is not None
        self.transformer = Layers(
            shape.input_size,
            width,
            layers=len(shape.widths),
            heads=shape.heads,
            feed_forward=shape.feed_forward,
            dropout=shape.dropout,
            causal=True,
            absolute=True,
            memory_size=shape.memory_size if self.attends else None,
            form=shape.form,
        )
        is_plain = shape.features == width and not shape.summary_size
        self.readout = None if is_plain else nn.Linear(width + shape.summary_size, shape.features)

    @property
    def layers(self) -> list[AnyCell]:
        return []

    def remember(self, values: Tensor, mask: Tensor, columns: int | None = None) -> Remembered:
        return Remembered(self.transformer.remember(values, mask) if self.attends else (), mask)

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        # Rows of zero features on the device of the source: nothing has been read.
        remembered = remembered_of(source)
        like = self.transformer.like.new_zeros((), device=remembered.mask.device)
        return WiringState(layers_of(self.transformer.start(len(remembered.mask), like)), (), None, None)

    def fixed(self, rows: int, like: Tensor) -> None:
        return None

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        batch, states = Padded.full(x.unsqueeze(1)), only(state.cells)
        reading = self.transformer.read(batch, states, remembered_of(source).memories, weighed=self.attends)
        after = layers_of(self.transformer.after(reading, batch, states))
        weights = None if reading.weights is None else reading.weights.squeeze(1)
        h = self._read_out(reading.values.squeeze(1), source)
        return h, WiringState(after, (), None, weights)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        memories = remembered_of(source).memories
        reading = self.transformer.read(x, only(state.cells), memories, weighed=self.attends)
        return Features(self._read_out(reading.values, source), reading.weights)

    def _read_out(self, h: Tensor, source: Source) -> Tensor:
        if self.readout is None:
            return h
        if self.shape.summary_size:
            assert source.summary is not None, "the decoder was made with a summary"
            h = torch.cat([h, rows_like(source.summary, h)], dim=-1)
        found: Tensor = self.readout(h)
        return found


def remembered_of(source: Source) -> Remembered:
    """What `remember` has made of the sources."""
    assert isinstance(source.memory, Remembered), "a Transformer looks at what it has remembered itself"
    return source.memory
