"""The whole stack of a Transformer, with the face of a stack of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeGuard, final

import torch
from torch import Tensor, nn

from recurra.attention import Memory
from recurra.attention.rotary import rotation
from recurra.cells.weights import check_flag, check_rate, check_size
from recurra.errors import ConfigError, DataError
from recurra.named import choose
from recurra.padding import Padded, beside, inputs_of
from recurra.stacks.recurrent import States
from recurra.transformer.layer import Cache, Sight, TransformerLayer

Form: TypeAlias = Literal["pre_norm", "vaswani"]
FORMS: tuple[Form, ...] = ("pre_norm", "vaswani")


class Reading(NamedTuple):
    """What a Transformer made of a batch."""

    values: Tensor  # (B, T, width)
    columns: tuple[tuple[Tensor, Tensor], ...]  # keys and values of each layer, (B, heads, t + T, d)
    weights: Tensor | None  # (B, T, S): where the last layer looked in the memory, the mean of its heads


@final
class Transformer(nn.Module):
    """A stack of Transformer layers that reads a padded batch, as Recurrent does.

        x ← W_in x                  only where input_size is not width
        x_i ← x_i + p_i             only where positions are absolute: p_i = [cos i ω_1 … ; sin i ω_1 …], as rotary's
        x ← layer_1 … layer_n (x)   see TransformerLayer
        h = LN(x)                   h = x where norms come after the parts of a layer

    >>> model = Transformer(8, 8, layers=2, causal=True)
    >>> outputs, states = model(Padded(torch.randn(2, 7, 8), torch.tensor([7, 4])))
    >>> h, states = model.step(torch.randn(2, 8), states)     # one more step of each row
    >>> h.shape, states[1][0].keys.shape                      # second layer: (N, heads, t, d)
    (torch.Size([2, 8]), torch.Size([2, 4, 8, 2]))

    heads           of each attention; width is a multiple of 2 × heads, since features are turned in pairs
    feed_forward    rows of W_1; none: 4 × width
    dropout         of what each part adds
    causal          a step sees itself and those before it, so that states are carried from step to step
    context         of those before it, only so many, which is also what the states keep at most; none: all
    absolute        steps know their number, and not only how far apart they are: so a decoder finds the place of a
                    source that it has come to
    memory_size     features of a memory that every layer looks at besides; none: no memory
    form            pre_norm: norms before each part, gelu, queries and keys turned by their positions;
                    vaswani: norms after each part, relu, and sinusoidal positions added to the input alone (2017)
    """

    def __init__(
        self,
        input_size: int,
        width: int,
        *,
        layers: int = 1,
        heads: int = 4,
        feed_forward: int | None = None,
        dropout: float = 0.0,
        causal: bool = False,
        context: int | None = None,
        absolute: bool = False,
        memory_size: int | None = None,
        form: Form = "pre_norm",
    ) -> None:
        super().__init__()
        self.input_size, self.output_size = check_size(input_size, "input_size"), check_size(width, "width")
        self.heads = check_size(heads, "heads")
        if width % (2 * heads):
            nearest = max(1, round(width / (2 * heads))) * 2 * heads
            raise ConfigError(
                f"a Transformer of {heads} heads needs a width that is a multiple of {2 * heads}, but it is "
                f"{width}: set {nearest}, or change the number of heads."
            )
        self.turns = choose(FORMS, form, "form") == "pre_norm"  # queries and keys
        self.causal, self.absolute = check_flag(causal, "causal"), check_flag(absolute, "absolute") or not self.turns
        self.context = None if context is None else check_size(context, "context")
        if context is not None and not causal:
            raise ConfigError("context needs causal = True: it limits how many previous steps a step can see.")
        inner = 4 * width if feed_forward is None else check_size(feed_forward, "feed_forward")
        check_rate(dropout, "dropout")
        self.from_input = None if input_size == width else nn.Linear(input_size, width)
        self.layers = nn.ModuleList()
        for _ in range(check_size(layers, "layers")):
            layer = TransformerLayer(
                width,
                heads=heads,
                feed_forward=inner,
                dropout=dropout,
                memory_size=memory_size,
                norm="pre" if self.turns else "post",
                activation="gelu" if self.turns else "relu",
            )
            layer.initialise(layers * (2 if memory_size is None else 3))
            self.layers.append(layer)
        self.norm = nn.LayerNorm(width) if self.turns else nn.Identity()

    @property
    def like(self) -> Tensor:
        """Something of the type and on the device of the weights."""
        return next(self.parameters())

    def forward(self, x: Padded, states: States | None = None) -> tuple[Padded, States]:
        """Outputs (B, T, width), zero on padding; causal: and the states after each row's last real step, else ()."""
        reading = self.read(x, states)
        outputs = Padded(reading.values, x.lengths).zeroed()
        return outputs, self.after(reading, x, states) if self.causal else ()

    def step(self, x: Tensor, states: States | None = None) -> tuple[Tensor, States]:
        """One element of each row: (B, input_size) and states in, (B, width) and states out.

        Step by step gives the numbers of the whole sequence.
        """
        if not self.causal:
            raise ConfigError(
                "a bidirectional Transformer cannot run one step at a time: its first output needs the last input. "
                "Create it with causal = True."
            )
        if not isinstance(x, Tensor) or x.dim() != 2:
            found = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise DataError(f"step needs one element per row, of shape (rows, {self.input_size}), but got {found}.")
        batch = Padded.full(x.unsqueeze(1))
        reading = self.read(batch, states)
        return reading.values.squeeze(1), self.after(reading, batch, states)

    def start(self, rows: int, like: Tensor | None = None) -> States:
        """The states before the first step, for so many rows: nothing is remembered."""
        like = self.like if like is None else like
        nothing = like.new_zeros(rows, self.heads, 0, self.output_size // self.heads)
        real = torch.zeros(rows, 0, dtype=torch.bool, device=like.device)
        position = torch.zeros(rows, dtype=torch.long, device=like.device)
        return tuple((Cache(nothing, nothing, real, position),) for _ in self.layers)

    def empty(self, rows: int) -> States:
        """The same with as many columns as are kept at most, none of them real."""
        assert self.context is not None, "states without an end have no largest size"
        nothing = self.like.new_zeros(rows, self.heads, self.context, self.output_size // self.heads)
        real = torch.zeros(rows, self.context, dtype=torch.bool, device=self.like.device)
        position = torch.zeros(rows, dtype=torch.long, device=self.like.device)
        return tuple((Cache(nothing, nothing, real, position),) for _ in self.layers)

    def remember(self, values: Tensor, mask: Tensor) -> tuple[Memory, ...]:
        """The memory (B, S, memory_size), with its mask (B, S), as each layer looks at it."""
        return tuple(layer.memory_attention.attention.remember(values, mask) for layer in self.layers)  # type: ignore[union-attr, operator]

    def read(
        self, x: Padded, states: States | None = None, memories: Sequence[Memory] = (), *, weighed: bool = False
    ) -> Reading:
        """What all layers make of a batch, whose padding holds anything; weighed: with the last layer's weights."""
        x = inputs_of(x, self.input_size, "Transformer").zeroed()
        pasts = self._pasts(states, x)
        y = x.values if self.from_input is None else self.from_input(x.values)
        positions = torch.arange(x.values.shape[1], device=y.device)
        if pasts:
            positions = pasts[0].position[:, None] + positions  # for each row its own
        if self.absolute:
            y = y + torch.cat(rotation(positions, self.output_size, y), dim=-1)
        sight, columns, weights = self._sight(x, positions, pasts[0] if pasts else None), [], None
        for number, layer in enumerate(self.layers):
            past, memory = pasts[number] if pasts else None, memories[number] if memories else None
            is_last = number + 1 == len(self.layers)
            y, found, weights = layer(y, past, sight, memory, weighed=weighed and is_last)
            columns.append(found)
        return Reading(self.norm(y), tuple(columns), weights)

    def after(self, reading: Reading, x: Padded, states: States | None) -> States:
        """The states after a batch: the last columns of each row, as many as are needed."""
        steps, pasts, lengths = x.values.shape[1], self._pasts(states, x), beside(x.lengths, x.values)
        real = torch.cat([pasts[0].real, x.mask], dim=1) if pasts else x.mask
        position = pasts[0].position + lengths if pasts else lengths
        kept = real.shape[1] if self.context is None else min(self.context, real.shape[1])
        first = real.shape[1] - kept
        if x.is_full:
            ends = [(k[:, :, first:], v[:, :, first:]) for k, v in reading.columns]
            return tuple((Cache(*end, real[:, first:], position),) for end in ends)
        # Each row moves to the right, until its last real step stands in the last column.
        at = torch.arange(first, real.shape[1], device=real.device) - (steps - lengths)[:, None]
        real = real.gather(1, at.clamp_min(0)) & (at >= 0)

        def moved(each: Tensor) -> Tensor:
            places = at.clamp_min(0)[:, None, :, None].expand(-1, each.shape[1], -1, each.shape[3])
            return each.gather(2, places)

        return tuple((Cache(moved(k), moved(v), real, position),) for k, v in reading.columns)

    def states_at(self, reading: Reading, x: Padded, states: States | None, row: int, places: Tensor) -> States:
        """The states of one row after each of some of its steps, (n,), as rows of their own."""
        pasts = self._pasts(states, x)
        before = pasts[0].real.shape[1] if pasts else 0
        real = torch.cat([pasts[0].real, x.mask], dim=1) if pasts else x.mask
        position = (pasts[0].position[row] if pasts else 0) + places + 1
        kept = real.shape[1] if self.context is None else min(self.context, real.shape[1])
        at = before + places[:, None] + torch.arange(1 - kept, 1, device=real.device)  # (n, kept)
        known = real[row][at.clamp_min(0)] & (at >= 0)

        def columns(each: Tensor) -> Tensor:
            return each[row][:, at.clamp_min(0)].transpose(0, 1)  # (n, heads, kept, d)

        return tuple((Cache(columns(k), columns(v), known, position),) for k, v in reading.columns)

    def _sight(self, x: Padded, positions: Tensor, past: Cache | None) -> Sight:
        steps, before, device = x.values.shape[1], 0 if past is None else past.real.shape[1], x.values.device
        of_heads = positions if past is None else positions[:, None]  # for each head the same
        angles = rotation(of_heads, self.output_size // self.heads, x.values) if self.turns else None
        if not self.causal:
            # A row without any step sees its padding: whatever it finds there is put to zero in the end.
            allowed = None if x.is_full else x.mask | (beside(x.lengths, x.values) == 0)[:, None]
            return Sight(angles, None if allowed is None else allowed[:, None, None], False)
        if not before and (self.context is None or self.context >= steps - 1):
            return Sight(angles, None, True)  # padding stands to the right, where no real step looks
        columns = torch.arange(before + steps, device=device)
        distance = columns[before:, None] - columns
        allowed = distance >= 0 if self.context is None else (distance >= 0) & (distance <= self.context)
        if past is None:
            return Sight(angles, allowed, False)
        new = past.real.new_ones(len(past.real), steps)
        return Sight(angles, (allowed & torch.cat([past.real, new], dim=1)[:, None])[:, None], False)

    def _pasts(self, states: States | None, x: Padded) -> list[Cache]:
        """The cache of each layer; none where a batch follows on nothing."""
        if states is None:
            return []
        if not self.causal:
            raise ConfigError("a bidirectional Transformer has no states: pass none, or create it with causal = True.")
        rows, size = len(x.lengths), self.output_size // self.heads
        pasts = [layer[0] for layer in states if are_caches(layer, (rows, self.heads, size))]
        if len(pasts) != len(states) or len(pasts) != len(self.layers):
            raise DataError(
                f"states must be those that this Transformer returned for {rows} rows ({len(self.layers)} layers, "
                f"{self.heads} heads of {size} features), but these come from another batch or network."
            )
        return pasts


def are_caches(layer: object, shape: tuple[int, int, int]) -> TypeGuard[tuple[Cache]]:
    """Whether these are the states of one layer for (rows, heads, features)."""
    if not isinstance(layer, tuple) or len(layer) != 1 or not isinstance(layer[0], Cache):
        return False
    return all(each.shape == (*shape[:2], layer[0].real.shape[1], shape[2]) for each in layer[0][:2])


def continued(states: States, kept: Tensor) -> States:
    """The states of rows that go on; a row that is not kept, (B,), begins anew.

    >>> _, states = Transformer(8, 8, causal=True)(Padded.full(torch.randn(2, 3, 8)))
    >>> continued(states, torch.tensor([True, False]))[0][0].real.tolist()
    [[True, True, True], [False, False, False]]
    """

    def again(cache: Cache) -> Cache:
        return cache._replace(real=cache.real & kept[:, None], position=cache.position * kept)

    return tuple(tuple(again(state) for state in layer) for layer in states)  # type: ignore[arg-type]
