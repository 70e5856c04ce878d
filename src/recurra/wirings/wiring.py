"""Wiring: how the cells of a decoder and its attention meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from recurra.attention import Attention, Past
from recurra.cells import AnyCell, AnyState, Spec
from recurra.encoders.dropout import Dropout
from recurra.errors import ConfigError
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import Part, about
from recurra.stacks.recurrent import Recurrent, States

if TYPE_CHECKING:
    from recurra.wirings.advancing import Advance, Reading


class Shape(NamedTuple):
    """The sizes and parts from which a wiring is built."""

    cell: Spec
    input_size: int  # of what is read at each step
    widths: tuple[int, ...]  # of the layers of cells
    memory_size: int
    summary_size: int  # of a summary that goes to the output; 0: none
    features: int  # size of what comes out
    attention: Part | None
    query: Literal["previous", "current"] | None = None
    skip: Literal["none", "residual", "highway"] = "none"
    dropout: float = 0.0
    locked: bool = False
    engine: str = "auto"
    heads: int = 4  # of a Transformer's attentions
    feed_forward: int | None = None  # inside a Transformer's layers; None: 4 × their width
    window: int = 5  # tokens that a decoder without cells reads
    around: int = 2  # places on either side that are looked at together
    form: Literal["pre_norm", "vaswani"] = "pre_norm"  # of a Transformer's layers
    mix: Literal["last", "concat", "mean", "learned"] = "last"  # of the outputs of all layers
    readout: Literal["tanh", "maxout"] = "tanh"  # from a state and what was seen to the features


class Source(NamedTuple):
    """What a decoder receives about the source: B rows."""

    memory: tuple[Any, ...] | None  # what is attended to, as `remember` made it: a Memory, or one for each layer
    summary: Tensor | None  # (B, ·): a vector of the whole
    elements: Tensor | None = None  # (B, X, E): what is read of an element that was chosen; None: nothing is pointed at


class WiringState(NamedTuple):
    """The state of a decoder between steps: N rows on every leaf."""

    cells: tuple[AnyState, ...]  # of each layer
    past: Past  # of the attention's terms
    fed: Tensor | None  # (N, ·): what the next step takes of the last one besides, to read it or to look from it
    weights: Tensor | None  # (N, S): where the last step has looked
    chance: Tensor | None = None  # (N, 2): what its look has left to chance, as `recurra.attention.Attended` has it


class Features(NamedTuple):
    """The output of a decoder for all its inputs."""

    values: Tensor  # (B, T, F)
    weights: Tensor | None  # (B, T, S)
    chance: Tensor | None = None  # (B, T, 2): what looks have left to chance


class Wiring(nn.Module, ABC):
    """Maps token embeddings x_1 … x_T and a source to the features from which the output predicts y_1 … y_T.

    `forward` computes all steps at once, or in a loop if each step needs the attention of the previous one; `step`
    computes one step, with the same numbers. With k rows per source, one after the other, the source is not copied.
    """

    in_turn: ClassVar[tuple[str, ...]] = ()
    """The attributes that hold two stacks which change the same state in turn, one after the other in each step."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    @property
    @abstractmethod
    def layers(self) -> list[AnyCell]:
        """One cell of each layer: they say which states a decoder starts from."""

    def remember(self, values: Tensor, mask: Tensor, columns: int | None = None) -> tuple[Any, ...] | None:
        """What is attended to, of places (B, S, D) of sources; None without attention."""
        attention: Attention | None = getattr(self, "attention", None)
        return None if attention is None else attention.remember(values, mask, columns)

    @abstractmethod
    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        """The state before the first step."""

    @abstractmethod
    def fixed(self, rows: int, like: Tensor) -> Any:
        """What the cells keep over a sequence of so many rows: recurrent weights and masks, drawn at each call."""

    @abstractmethod
    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        """(N, input_size) to features (N, F), one step of each row; the same `fixed` for all steps of a sequence."""

    @abstractmethod
    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        """(B, T, input_size) to features (B, T, F)."""

    def advancing(self, reading: Reading, state: WiringState, source: Source) -> Advance | None:
        """`step` by few kernels on a GPU, for tokens that are known one after the other; None where there are none."""
        return None

    # What the wirings are built from

    def attention_from(self, query_size: int) -> Attention:
        """The attention that the settings name."""
        assert self.shape.attention is not None, "a wiring with attention is given one"
        with about("attention"):
            return built(Attention, self.shape.attention, query_size, self.shape.memory_size)

    def stack(self, input_size: int, widths: tuple[int, ...], *, below: int = 0) -> Recurrent:
        """Layers of cells, one upon the other, perhaps upon a layer of the size `below` that runs apart from them."""
        shape = self.shape
        return Recurrent(
            shape.cell,
            input_size,
            widths,
            mix=shape.mix,
            skip=shape.skip,
            below=below,
            dropout=shape.dropout,
            locked=shape.locked,
            engine=shape.engine,
        )

    def layer(self, input_size: int, width: int) -> Recurrent:
        """A layer of cells that runs apart from those above it: what leads past a layer, or mixes them, is not its."""
        return Recurrent(self.shape.cell, input_size, width, engine=self.shape.engine)

    def extra_repr(self) -> str:
        return f"{self.shape.input_size} to {self.shape.features}"


class Readout(nn.Module):
    """The features of a step, from what was read, x, and parts such as a state and what was seen; with dropout.

    tanh      h̃   = tanh(W [parts])                      (Luong et al. 2015)
    maxout    t̃   = W [parts; x],  h̃_j = max(t̃_2j-1, t̃_2j)    (Bahdanau et al. 2015: t̃ = U s + V E y + C context)
    """

    def __init__(self, shape: Shape, *sizes: int) -> None:
        super().__init__()
        self.is_maxout = shape.readout == "maxout"
        own, wide = (shape.input_size, 2) if self.is_maxout else (0, 1)
        self.mix = nn.Linear(sum(sizes) + shape.summary_size + own, wide * shape.features)
        self.dropout = Dropout(shape.dropout, locked=shape.locked)
        self.summarises = shape.summary_size > 0

    def forward(self, source: Source, *parts: Tensor, x: Tensor | None = None) -> Tensor:
        """(N, F) of parts (N, ·), or (B, T, F) of parts (B, T, ·), and of x likewise; a summary is joined to each."""
        if self.summarises:
            assert source.summary is not None, "the decoder was made with a summary"
            parts = (*parts, rows_like(source.summary, parts[0]))
        if not self.is_maxout:
            h: Tensor = self.dropout(self.mix(torch.cat(parts, dim=-1)).tanh())
            return h
        if x is None:
            raise ConfigError(
                "model.readout = 'maxout' sees what is read at each step, which this wiring does not give it: call "
                "readout(source, state, context, x=x), or set model.readout = 'tanh'."
            )
        pairs = self.mix(torch.cat([*parts, x], dim=-1)).unflatten(-1, (-1, 2))
        t: Tensor = self.dropout(pairs.amax(-1))
        return t


def rows_like(vectors: Tensor, like: Tensor) -> Tensor:
    """Vectors (B, n) of sources, one for each row of `like`: (N, n) beside (N, ·), (B, T, n) beside (B, T, ·)."""
    if like.dim() == 3:
        return vectors.unsqueeze(1).expand(-1, like.shape[1], -1)
    return vectors if len(vectors) == len(like) else vectors.repeat_interleave(len(like) // len(vectors), dim=0)


def stacked(steps: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """What each step has, as one tensor (B, T, ·); nothing where steps have none."""
    found = [each for each in steps if each is not None]
    return (torch.stack(found, dim=1),) if found else ()


def only(states: tuple[AnyState, ...]) -> States:
    """States of layers as a stack of one direction has them."""
    return tuple((state,) for state in states)


def layers_of(states: States) -> tuple[AnyState, ...]:
    """The states of each layer of a stack of one direction."""
    return tuple(layer[0] for layer in states)


def cells_of(stack: Recurrent) -> list[AnyCell]:
    """The cell of each layer of a stack of one direction."""
    found: list[Any] = [layer[0] for layer in stack.cells]  # type: ignore[index]  # a ModuleList for each layer
    return found
