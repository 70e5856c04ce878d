"""From a source to a memory: what a decoder attends to, starts from and is told of the whole."""

from __future__ import annotations

from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.cell import AnyState, fields
from recurra.config import Seq2SeqModel
from recurra.encoders.summaries import state_sizes, summary
from recurra.padding import Padded
from recurra.recurrent import Recurrent, States

CARRIED = ("h", "c")
"""States that one network may take over from another; what else a cell keeps is a scale of its own."""


class Read(NamedTuple):
    """What was found in a batch of sources."""

    memory: Padded  # (B, S, D)
    ends: tuple[dict[str, Tensor], ...]  # of each layer, the states that a decoder may start from; () without any
    states: States | None  # as they are, where they are last states
    summary: Tensor | None  # (B, ·)


@final
class SourceEncoder(nn.Module):
    """Vectors x_1 … x_S of a source to a memory m_1 … m_S, with what the decoder starts from (D4, D11).

        rnn   m = Recurrent(x), any cell, depth and direction
        cnn   m_i = relu(b + Σ_j W_j x_{i + j − ⌊(w − 1) / 2⌋}), layers of it, each added to its input where sizes agree
        bag   m_i = tanh(W x_i + b): without order

    Start states: those after the last step, or the mean or largest over all steps, of h and of c.
    """

    def __init__(self, settings: Seq2SeqModel, input_size: int) -> None:
        super().__init__()
        widths, own = settings.encoder_widths, settings.encoder
        self.kind, self.start = own.kind, settings.start
        self.recurrent: Recurrent | None = None
        self.layers = nn.ModuleList()
        if own.kind == "rnn":
            self.recurrent = Recurrent(
                settings.cell if own.cell is None else own.cell,
                input_size,
                widths,
                bidirectional=settings.bidirectional,
                merge=settings.merge,
                skip=settings.skip,
                dropout=settings.dropout,
                locked=settings.locked,
                engine=settings.engine,
            )
            self.output_size = self.recurrent.output_size
        else:
            sizes = [input_size, *widths]
            width = own.width if own.kind == "cnn" else 1
            self.layers.extend(nn.Conv1d(size, after, width) for size, after in zip(sizes, widths, strict=False))
            self.output_size = widths[-1]
        self.summary = None
        self.summary_size = 0
        if settings.conditioning:
            sizes_of_states = [] if self.recurrent is None else state_sizes(self.recurrent)
            self.summary = summary(settings.summary, self.output_size, sizes_of_states)
            self.summary_size = self.summary.output_size
        self.dropout, self.locked = settings.dropout, settings.locked

    @property
    def end_sizes(self) -> tuple[dict[str, int], ...]:
        """The sizes of `ends`, per layer."""
        if self.start == "zeros":
            return ()
        if self.recurrent is None:
            return ({"h": self.output_size},)
        start = self.recurrent.start(0)
        return tuple({name: value.shape[1] for name, value in ends_of(layer).items()} for layer in start)

    def forward(self, x: Padded) -> Read:
        """(B, S, I) to a memory (B, S, output_size) and what stands beside it."""
        if self.recurrent is not None:
            return self._recurrent(self.recurrent, x)
        y = x.zeroed().values.transpose(1, 2)  # (B, I, S)
        for layer in self.layers:
            assert isinstance(layer, nn.Conv1d)
            width = layer.kernel_size[0]
            read = (
                layer(functional.pad(y, ((width - 1) // 2, width // 2)))
                if y.shape[2]
                else y.new_zeros(len(y), layer.out_channels, 0)
            )
            read = read.relu() if self.kind == "cnn" else read.tanh()
            y = Padded((read + y if read.shape == y.shape else read).transpose(1, 2), x.lengths).zeroed().values
            y = y.transpose(1, 2)
        memory = Padded(y.transpose(1, 2), x.lengths)
        ends = () if self.start == "zeros" else ({"h": pooled(memory, self.start)},)
        return self._found(memory, ends, None)

    def _recurrent(self, recurrent: Recurrent, x: Padded) -> Read:
        if self.start in ("mean", "max"):
            memory, every = recurrent(x, every=True)
            ends = tuple(
                {name: pooled(Padded(value, x.lengths), self.start) for name, value in ends_of(layer).items()}
                for layer in every
            )
            last = recurrent(x)[1] if self.summary is not None else None
            return self._found(memory, ends, last)._replace(states=None)
        memory, states = recurrent(x)
        ends = () if self.start == "zeros" else tuple(map(ends_of, states))
        return self._found(memory, ends, states)

    def _found(self, memory: Padded, ends: tuple[dict[str, Tensor], ...], states: States | None) -> Read:
        whole = None if self.summary is None else self.summary(memory, () if states is None else states).vector
        if self.training and self.dropout:
            values = memory.values
            masks = torch.ones_like(values[:, :1] if self.locked else values)
            memory = Padded(values * functional.dropout(masks, self.dropout), memory.lengths)
        return Read(memory, ends, None if self.start == "zeros" else states, whole)


def ends_of(directions: tuple[AnyState, ...]) -> dict[str, Tensor]:
    """h and c of a layer, those of its directions side by side."""
    names = [name for name in fields(directions[0]) if name in CARRIED]
    return {name: torch.cat([getattr(state, name) for state in directions], dim=-1) for name in names}


def pooled(values: Padded, how: Literal["mean", "max"] | str) -> Tensor:
    """(B, n): the mean or the largest over a row's real steps; 0 where it has none."""
    if how == "mean":
        counts = values.lengths.clamp_min(1).to(values.values.device, values.values.dtype)
        return values.zeroed().values.sum(1) / counts.unsqueeze(1)
    if values.values.shape[1] == 0:
        return values.values.new_zeros(len(values.lengths), values.values.shape[2])
    closed = ~values.mask.unsqueeze(2)
    largest = values.values.masked_fill(closed, -torch.inf).amax(1)
    return largest.masked_fill(closed.all(1), 0.0)
