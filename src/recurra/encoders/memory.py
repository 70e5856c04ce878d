"""From a source to a memory: what a decoder attends to, starts from and is told of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.cell import AnyCell, fields
from recurra.config import Seq2SeqModel
from recurra.data.extents import Extents
from recurra.encoders.dropout import Dropout
from recurra.encoders.pyramid import Pyramid, stack
from recurra.encoders.summaries import state_sizes, summary
from recurra.padding import Grid, Padded, beside
from recurra.stacks.recurrent import Recurrent, States
from recurra.transformer import Transformer


class Places(NamedTuple):
    """What may be looked at: S places of B sources."""

    values: Tensor  # (B, S, D)
    mask: Tensor  # (B, S): False where there is nothing
    columns: int | None = None  # places of a grid stand row after row, so many a row; None: all in one row

    @classmethod
    def of(cls, values: Padded | Grid) -> Places:
        """Steps one after the other, or a map (B, D, H, W) row after row."""
        if isinstance(values, Grid):
            features = values.values.flatten(2).transpose(1, 2)
            return cls(features, values.mask.flatten(1), values.values.shape[3])
        return cls(values.values, values.mask)

    def rounded(self, multiple: int) -> Places:
        """The same with empty places behind, up to a multiple of so many: batches of few different shapes.

        A grid stays as it is, and so do fewer places than that.

        >>> places = Places(torch.ones(1, 5, 2), torch.ones(1, 5, dtype=torch.bool)).rounded(4)
        >>> places.values.shape, places.mask.int().tolist()
        (torch.Size([1, 8, 2]), [[1, 1, 1, 1, 1, 0, 0, 0]])
        """
        missing = missing_places(self.mask.shape[1], multiple)
        if self.columns is not None or not missing:
            return self
        return Places(functional.pad(self.values, (0, 0, 0, missing)), functional.pad(self.mask, (0, missing)))


def missing_places(count: int, multiple: int) -> int:
    """How many empty places bring so many to a multiple; none where they are fewer than that."""
    return -count % multiple if count >= multiple else 0


class Read(NamedTuple):
    """What was found in a batch of sources."""

    memory: Places
    ends: tuple[dict[str, Tensor], ...]  # of each layer, the states that a decoder may start from; () without any
    states: States | None  # as they are, where they are last states
    summary: Tensor | None  # (B, ·)
    elements: Tensor | None = None  # (B, X, E): what was read of each element, where a decoder points at them


class Encoder(Protocol):
    """What a decoder knows of what reads its sources."""

    @property
    def output_size(self) -> int:
        """Of a place of the memory."""

    @property
    def summary_size(self) -> int:
        """Of the vector of a whole; 0: none is made."""

    @property
    def recurrent(self) -> Recurrent | Pyramid | None:
        """Whose last states may be taken over as they are."""

    @property
    def ends_are_last(self) -> bool:
        """Whether a decoder starts from them."""

    @property
    def end_sizes(self) -> tuple[dict[str, int], ...]:
        """The sizes of `Read.ends`, per layer."""

    def extents(self, source: Padded | Grid) -> Extents:
        """How many places the memory of each source has."""


@final
class SourceEncoder(nn.Module):
    """Vectors x_1 … x_S of a source to a memory m_1 … m_S, with what the decoder starts from (D4, D11).

        rnn   m = Recurrent(x), any cell, depth and direction
        pyramid   m = Pyramid(x), with half as many places from layer to layer
        cnn   m_i = relu(b + Σ_j W_j x_{i + j − ⌊(w − 1) / 2⌋}), layers of it, each added to its input where sizes agree
        bag   m_i = tanh(W x_i + b): without order
        embeddings   m_i = x_i
        transformer   m = Transformer(x), where each step sees all, or, read one way only, itself and those before it

    The memory itself is not dropped: on Multi30k, that cost three points of BLEU.

    Start states: those after the last step, or the mean or largest over all steps, of h and of c.
    """

    def __init__(self, settings: Seq2SeqModel, input_size: int) -> None:
        super().__init__()
        widths, own = settings.encoder_widths, settings.encoder
        self.kind = own.kind
        self.start = settings.start if settings.decoder.kind == "rnn" else "zeros"  # the others have no states
        self.ends_are_last = self.start == "last"
        self.recurrent: Recurrent | Pyramid | None = None
        self.transformer: Transformer | None = None
        self.layers = nn.ModuleList()
        if own.kind in ("rnn", "pyramid"):
            self.recurrent = stack(
                own.kind == "pyramid",
                settings.cell if own.cell is None else own.cell,
                input_size,
                widths,
                bidirectional=settings.bidirectional,
                direction=settings.direction,
                merge=settings.merge,
                mix=settings.mix,
                skip=settings.skip,
                dropout=settings.dropout,
                locked=settings.locked,
                engine=settings.engine,
            )
            self.output_size = self.recurrent.output_size
        elif own.kind == "transformer":
            self.transformer = Transformer(
                input_size,
                widths[0],
                layers=len(widths),
                heads=own.heads,
                feed_forward=own.feed_forward,
                form=own.form,
                dropout=settings.dropout,
                causal=not settings.bidirectional,
                absolute=True,
            )
            self.output_size = self.transformer.output_size
        elif own.kind == "embeddings":
            self.output_size = input_size
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
        self.dropout = Dropout(settings.dropout, locked=settings.locked)

    @property
    def end_sizes(self) -> tuple[dict[str, int], ...]:
        """The sizes of `Read.ends`, per layer."""
        if self.start == "zeros":
            return ()
        if self.recurrent is None:
            return ({"h": self.output_size},)
        ends = self._ends(self.recurrent, self.recurrent.start(0))
        return tuple({name: value.shape[1] for name, value in layer.items()} for layer in ends)

    def extents(self, source: Padded | Grid) -> Extents:
        """A place for each step, or for several that a pyramid makes one."""
        assert isinstance(source, Padded), "steps are read"
        lengths = source.lengths
        if isinstance(self.recurrent, Pyramid):
            lengths = self.recurrent.steps(lengths)[-1]
        return Extents([(1, length) for length in lengths.tolist()], None)

    def forward(self, x: Padded) -> Read:
        """(B, S, I) to a memory (B, S, output_size) and what stands beside it."""
        if self.recurrent is not None:
            return self._recurrent(self.recurrent, x)
        memory = x.zeroed() if self.transformer is None else self.transformer(x)[0]
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Conv1d)
            y = convolved(layer, self.dropout(memory.values) if number else memory.values)
            y = y.relu() if self.kind == "cnn" else y.tanh()
            y = y + memory.values if self.kind == "cnn" and y.shape == memory.values.shape else y
            memory = Padded(y, x.lengths).zeroed()
        ends = () if self.start == "zeros" else ({"h": pooled(memory, self.start)},)
        return self._found(memory, ends, None)

    def _recurrent(self, recurrent: Recurrent | Pyramid, x: Padded) -> Read:
        if self.start in ("mean", "max"):
            memory, every = recurrent(x, every=True)
            steps = recurrent.steps(x.lengths) if isinstance(recurrent, Pyramid) else [x.lengths] * len(every)
            ends = tuple(
                {name: pooled(Padded(value, lengths), self.start) for name, value in layer.items()}
                for layer, lengths in zip(self._ends(recurrent, every), steps, strict=True)
            )
            starts = recurrent.start(len(x.lengths), x.values)
            ways = (False, True) if recurrent.bidirectional else (recurrent.direction == "backward",)
            last = None if self.summary is None else last_of(every, starts, steps, ways)
            return self._found(memory, ends, last)._replace(states=None)
        memory, states = recurrent(x)
        ends = () if self.start == "zeros" else self._ends(recurrent, states)
        return self._found(memory, ends, states)

    def _ends(self, recurrent: Recurrent | Pyramid, states: States) -> tuple[dict[str, Tensor], ...]:
        """Of each layer, what may be carried over, its directions side by side."""
        return tuple(
            {name: torch.cat([getattr(state, name) for state in layer], dim=-1) for name in carried(cells[0])}  # type: ignore[index]  # a ModuleList
            for layer, cells in zip(states, recurrent.cells, strict=True)
        )

    def _found(self, memory: Padded, ends: tuple[dict[str, Tensor], ...], states: States | None) -> Read:
        whole = None if self.summary is None else self.summary(memory, () if states is None else states).vector
        return Read(Places.of(memory), ends, None if self.start == "zeros" else states, whole)


def convolved(layer: nn.Conv1d, x: Tensor) -> Tensor:
    """(B, S, after) from (B, S, size): as many steps as before, with zeros on both sides of them."""
    if x.shape[1] == 0:
        return x.new_zeros(len(x), 0, layer.out_channels)
    width = layer.kernel_size[0]
    y: Tensor = layer(functional.pad(x.transpose(1, 2), ((width - 1) // 2, width // 2)))
    return y.transpose(1, 2)


def carried(cell: AnyCell) -> list[str]:
    """The states that a cell may hand to another, or take over: h, and c where it is not kept in units of its own.

    >>> from recurra.cells import LSTM, SLSTM
    >>> carried(LSTM(2, 3)), carried(SLSTM(2, 3))
    (['h', 'c'], ['h'])
    """
    names = fields(cell.State)
    return [name for name in ("h", "c") if name in names and (cell.blendable is None or name in cell.blendable)]


def last_of(every: States, starts: States, steps_of_layers: Sequence[Tensor], ways: Sequence[bool]) -> States:
    """The states after all steps, out of those after each, fields (B, T, n), and those before the first, (B, n).

    `ways` says of each direction of a layer whether it reads backward.
    """

    def last(steps: Tensor, start: Tensor, lengths: Tensor, backward: bool) -> Tensor:
        if steps.shape[1] == 0:
            return start
        lengths = beside(lengths, steps)
        at = torch.zeros_like(lengths) if backward else (lengths - 1).clamp_min(0)
        is_empty = (lengths == 0).unsqueeze(1)
        rows = torch.arange(len(lengths), device=steps.device)
        return torch.where(is_empty, start, steps[rows, at])

    return tuple(
        tuple(
            type(state)(*(last(steps, start, lengths, way) for steps, start in zip(state, before, strict=True)))
            for state, before, way in zip(layer, layer_starts, ways, strict=True)
        )
        for layer, layer_starts, lengths in zip(every, starts, steps_of_layers, strict=True)
    )


def pooled(values: Padded, how: Literal["mean", "max"] | str) -> Tensor:
    """(B, n): the mean or the largest over a row's real steps; 0 where it has none."""
    if how == "mean":
        counts = beside(values.lengths, values.values).clamp_min(1).to(values.values.dtype)
        return values.zeroed().values.sum(1) / counts.unsqueeze(1)
    if values.values.shape[1] == 0:
        return values.values.new_zeros(len(values.lengths), values.values.shape[2])
    closed = ~values.mask.unsqueeze(2)
    largest = values.values.masked_fill(closed, -torch.inf).amax(1)
    return largest.masked_fill(closed.all(1), 0.0)
