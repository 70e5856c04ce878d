"""Recurrent: a deep, possibly two-way stack of cells over a padded batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells import AnyCell, AnyState, Spec, above, build
from recurra.cells.cell import fields
from recurra.cells.weights import check_flag, check_rate, check_size
from recurra.engines import (
    DirectedCell,
    EngineReport,
    Resets,
    engine_named,
    read_layer,
    read_stack,
    report_layer,
)
from recurra.engines.choice import is_replaced, parts_of
from recurra.engines.generators import unnoticed
from recurra.engines.looked_up import can_look_up, project
from recurra.engines.looked_up import read as read_looked_up
from recurra.errors import ConfigError, DataError
from recurra.named import choose as choose_name
from recurra.padding import Padded, inputs_of
from recurra.settings import about
from recurra.stacks import merge as merges
from recurra.stacks.one_step import stepped

States: TypeAlias = tuple[tuple[AnyState, ...], ...]
"""A state per layer and direction; batch first on every leaf."""

Fixed: TypeAlias = tuple[tuple[Any, ...], ...]
"""What stays the same over a sequence, per layer and direction."""


TYPICAL_STEPS = 100
"""As many as a batch has for which an engine is reported, where none is given."""


class Recurrent(nn.Module):
    """A multi-layer recurrent network of any cell, for batches of different lengths.

    >>> rnn = Recurrent("gru", 3, 5, layers=2, bidirectional=True)
    >>> outputs, states = rnn(Padded(torch.randn(2, 7, 3), torch.tensor([7, 4])))
    >>> outputs.values.shape                    # (B, T, 2H): the last layer, both directions
    torch.Size([2, 7, 10])
    >>> states[1][0].h.shape                    # second layer, forward direction
    torch.Size([2, 5])

    cell            a name, a table with options and wrappers, or 'package.module:Class'
    hidden_size     one width, or one per layer
    direction       "forward" or "backward": how a stack of one direction reads
    merge           how the two directions are combined: concat, mean, sum, max, projection, mean_projection, or yours
    mix             the output: the last layer, or the concat, mean or learned mix of all layers
    skip            from the second layer on, "residual": y = x + f(x), or
                    "highway": y = t ∘ f(x) + (1 − t) ∘ x, t = σ(W x + b)
    below           the size of a layer under this stack, if it stands on one: `forward` and `advance` are then given
                    that layer's output, which the skip connection of the first layer and the mix begin with
    dropout         between layers; locked: one mask for all steps of a row
    engine          "auto": the fastest that supports the cell; or one by name
    recompute       in training, keep only every so-many-th state and compute the rest again on the way back:
                    less memory for long sequences, about a third more time; 0 keeps all
    """

    def __init__(
        self,
        cell: Spec,
        input_size: int,
        hidden_size: int | Sequence[int],
        *,
        layers: int | None = None,
        bidirectional: bool = False,
        direction: Literal["forward", "backward"] = "forward",
        merge: str = "concat",
        mix: Literal["last", "concat", "mean", "learned"] = "last",
        skip: Literal["none", "residual", "highway"] = "none",
        dropout: float = 0.0,
        locked: bool = False,
        engine: str = "auto",
        recompute: int = 0,
        below: int = 0,
    ) -> None:
        super().__init__()
        widths = _widths(hidden_size, layers)
        self.input_size = input_size = check_size(input_size, "input_size")
        self.bidirectional = check_flag(bidirectional, "bidirectional")
        self.direction = choose_name(("forward", "backward"), direction, "direction")
        if bidirectional and self.direction == "backward":
            raise ConfigError("a bidirectional stack has no single direction: remove direction = 'backward'.")
        self.mix = choose_name(("last", "concat", "mean", "learned"), mix, "mix")
        self.skip = choose_name(("none", "residual", "highway"), skip, "skip")
        self.dropout = check_rate(dropout, "dropout")
        self.locked = check_flag(locked, "locked")
        self.engine = engine
        with about("engine"):
            engine_named(engine)
        self.recompute = check_size(recompute, "recompute") if recompute != 0 else 0

        self.cells = nn.ModuleList()  # per layer, per direction
        self.merges = nn.ModuleList()
        sizes = [input_size]
        for width in widths:
            with about("cell"):
                self.cells.append(nn.ModuleList(build(cell, sizes[-1], width) for _ in range(1 + bidirectional)))
            with about("merge"):
                merged = merges.build(merge, width)
                cell = above(cell)
            if bidirectional:
                self.merges.append(merged)
            sizes.append(int(self.merges[-1].output_size) if bidirectional else width)  # type: ignore[arg-type]
        self.stands_on = below if below == 0 else check_size(below, "below")
        sizes = [below, *sizes[1:]] if below else sizes[1:]
        if self.skip != "none":
            with about("skip"):
                _check_equal(sizes, f"skip = '{skip}' adds a layer's input to its output")
        if self.mix in ("mean", "learned"):
            with about("mix"):
                _check_equal(sizes, f"mix = '{mix}' averages the layers")
        between = sizes[:-1] if self.skip == "highway" else []
        self.transforms = nn.ModuleList(nn.Linear(size, size) for size in between)
        for transform in self.transforms:
            nn.init.constant_(transform.bias, -1.0)  # type: ignore[arg-type]  # at first, mostly carry
        self.mix_weights = nn.Parameter(torch.zeros(len(sizes))) if mix == "learned" else None
        self.mix_scale = nn.Parameter(torch.ones(())) if mix == "learned" else None
        self.output_size = sum(sizes) if self.mix == "concat" else sizes[-1]

    def forward(
        self,
        x: Padded,
        states: States | None = None,
        *,
        fixed: Fixed | None = None,
        every: bool = False,
        resets: Tensor | None = None,
        below: Tensor | None = None,
    ) -> tuple[Padded, States]:
        """Outputs (B, T, output_size), zero on padding, and the states after each row's last real step.

        `states` are the initial states, as returned by another call; None: the cell's start state. every=True returns
        the state after each step instead, fields (B, T, n). `fixed` is for callers that prepare it themselves.
        resets, (B, T) and bool, is True where a new sequence begins within a row: all states start anew before that
        step is read; a backward direction starts anew at the same boundary, before it reads the step before.
        below, (B, T, n), is the output of the layer under this stack, if it stands on one.

        >>> rnn = Recurrent("gru", 2, 3)
        >>> x = torch.randn(1, 4, 2)
        >>> cut, _ = rnn(Padded.full(x), resets=torch.tensor([[False, False, True, False]]))
        >>> alone, _ = rnn(Padded.full(x[:, 2:]))
        >>> torch.allclose(cut.values[:, 2:], alone.values, atol=1e-6)
        True
        """
        x = self._checked(x)
        resets = None if resets is None else self._checked_resets(resets, x)
        if states is None and fixed is None and resets is None and not every and self._is_plain():
            whole = read_stack(self.engine, self._layers(), x, self._ways())
            if whole is not None:
                return Padded(whole[0], x.lengths), whole[1]
        x, states, fixed = self._prepared(x, states, fixed)
        anew = None if resets is None else self.start(x.lengths.shape[0], x.values)
        found: list[tuple[AnyState, ...]] = []

        def read(number: int, y: Tensor) -> list[Tensor]:
            layer = self._readers(number, states, fixed)
            if resets is not None and anew is not None:
                pairs = zip(layer, anew[number], strict=True)
                layer = [reader._replace(resets=Resets(resets, state)) for reader, state in pairs]
            readings = read_layer(self.engine, layer, Padded(y, x.lengths), every, self.recompute)
            found.append(tuple(reading.states for reading in readings))
            return [reading.outputs for reading in readings]

        outputs = self._through(x.values, x.lengths, read, below)
        return Padded(self.mixed(outputs), x.lengths), tuple(found)

    def looks_up(self) -> bool:
        """Whether `look_up` can be used here and now: one plain layer of LSTM or GRU on the CPU, without a gradient.

        Hooks see what `forward` is given, so a stack that has some is called.
        """
        if (
            torch.compiler.is_compiling()
            or is_replaced()
            or self.engine != "auto"
            or self._forward_hooks
            or self._forward_pre_hooks
        ):
            return False
        return len(self.cells) == 1 and self._is_plain() and can_look_up(self._layers()[0])

    def project(self, table: Tensor) -> tuple[Tensor, ...]:
        """Rows (N, I) that can be read, prepared for `look_up`: W x + b of each direction."""
        return project(self._layers()[0], table)

    def look_up(
        self, projected: Sequence[Tensor], rows: Padded, *, outputs: bool = True
    ) -> tuple[Padded | None, States]:
        """What `forward` finds for Padded(table[rows]), if `projected` is what `project` made of the table.

        >>> rnn = Recurrent("lstm", 3, 5, bidirectional=True).eval()
        >>> table, rows = torch.randn(4, 3), Padded(torch.tensor([[3, 0, 0], [1, 2, 0]]), torch.tensor([3, 2]))
        >>> with torch.no_grad():
        ...     there, _ = rnn(Padded(table[rows.values], rows.lengths))
        ...     here = rnn.look_up(rnn.project(table), rows)[0] if rnn.looks_up() else there
        >>> torch.allclose(there.values, here.values, atol=1e-5)
        True
        """
        found = read_looked_up(self._layers()[0], self._ways(), projected, rows.values, rows.lengths, outputs=outputs)
        return None if found.outputs is None else Padded(found.outputs, rows.lengths), (found.states,)

    def step(self, x: Tensor, states: States | None = None, *, fixed: Fixed | None = None) -> tuple[Tensor, States]:
        """One element of each row: (B, I) and states in, (B, output_size) and states out.

        The results are the same as for the whole sequence. To use one dropout mask for a sequence in training, or to
        avoid preparing weights at every step, pass the same `fixed` to every step: rnn.fixed(rows, x).
        """
        self._check_steps()
        if not isinstance(x, Tensor) or x.dim() != 2:
            found_shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise DataError(
                f"step needs one element per row, of shape (rows, {self.input_size}), but got {found_shape}."
            )
        batch, states, fixed = self._prepared(self._checked(Padded.full(x.unsqueeze(1))), states, fixed)
        return self.advance(batch.values.squeeze(1), states, fixed)

    def advance(
        self,
        x: Tensor,
        states: States,
        fixed: Fixed,
        *,
        below: Tensor | None = None,
        masks: Sequence[Tensor | None] = (),
    ) -> tuple[Tensor, States]:
        """`step` without checks of x and the states: for callers whose states came from `start` or an earlier step.

        `masks` are those of locked dropout, the same for all steps of a sequence: rnn.masks(rows).
        """
        self._check_steps(locks=not masks)
        found: list[tuple[AnyState, ...]] = []

        def read(number: int, y: Tensor) -> list[Tensor]:
            cell: Any = self.cells[number][0]  # type: ignore[index]  # a ModuleList for each layer
            state, own = states[number][0], fixed[number][0]
            if any(field.dtype != x.dtype for field in state):  # autocast has lowered it
                state = type(state)(*(field.to(x.dtype) for field in state))
            state = stepped(cell, y, state, own)
            found.append((state,))
            return [state[0]]

        return self.mixed(self._through(x, None, read, below, masks)), tuple(found)

    def start(self, rows: int, like: Tensor | None = None) -> States:
        """The states before the first step, for so many rows."""
        like = self._like() if like is None else like
        return tuple(tuple(cell.start(rows, like) for cell in layer) for layer in self._layers())

    def fixed(self, rows: int, like: Tensor | None = None) -> Fixed:
        """Values of all cells that are constant over a sequence: recurrent weights, newly drawn dropout masks."""
        like = self._like() if like is None else like
        return tuple(tuple(cell.fixed(rows, like) for cell in layer) for layer in self._layers())

    def masks(self, rows: int, like: Tensor | None = None) -> tuple[Tensor | None, ...]:
        """What locked dropout takes of the input of each layer, drawn once for a sequence; None: nothing."""
        like = self._like() if like is None else like
        is_dropped = self.training and self.dropout and self.locked
        sizes = [layer[0].input_size for layer in self._layers()]
        return tuple(
            functional.dropout(like.new_ones(rows, size), self.dropout) if number and is_dropped else None
            for number, size in enumerate(sizes)
        )

    def parts(
        self,
        x: Padded,
        states: States | None = None,
        *,
        fixed: Fixed | None = None,
        below: Tensor | None = None,
    ) -> tuple[tuple[Any, ...], ...]:
        """Every named value of every step, per layer and direction: gates, candidates, states, each (B, T, n).

        >>> rnn = Recurrent("lstm", 2, 3)
        >>> [[parts]] = rnn.parts(Padded.full(torch.randn(1, 4, 2)))
        >>> parts._fields, parts.f.shape
        (('h', 'c', 'i', 'f', 'candidate', 'o'), torch.Size([1, 4, 3]))
        """
        x, states, fixed = self._prepared(self._checked(x), states, fixed)
        found: list[tuple[Any, ...]] = []

        def read(number: int, y: Tensor) -> list[Tensor]:
            readers = self._readers(number, states, fixed)
            found.append(tuple(parts_of(reader, Padded(y, x.lengths)) for reader in readers))
            first = fields(readers[0].cell.State)[0]
            return [getattr(parts, first) for parts in found[-1]]

        self._through(x.values, x.lengths, read, below)
        return tuple(found)

    def engine_report(self, x: Padded | None = None, *, every: bool = False, slower_ones: bool = True) -> EngineReport:
        """Which engine runs each layer, and why not another; for a batch like x, if given.

        Without `slower_ones`, engines with a higher estimated cost than the selected one are left out, because
        planning takes a while.

        >>> print(Recurrent("peephole_lstm", 3, 4).engine_report())
        layer 1, peephole_lstm: planned
            not single: it runs only 'lstm', but this is 'peephole_lstm'
            not vendor: torch has no kernel for 'peephole_lstm'
            not graph: it runs on a GPU, but the batch is on cpu
            not scan: the step of 'peephole_lstm' is not known to be linear in its state
            not loop: estimated 16.0 times the time of planned
        """
        like = self._like() if x is None else self._checked(x).values
        x = Padded.full(like.new_zeros(1, TYPICAL_STEPS, self.input_size)) if x is None else x
        with unnoticed(like.device):  # a report draws masks, but the next batch must not notice
            states, fixed = self.start(x.lengths.shape[0], like), self.fixed(x.lengths.shape[0], like)
        rows = []
        for number in range(len(self.cells)):
            layer = self._readers(number, states, fixed)
            size = layer[0].cell.input_size
            inputs = x if number == 0 else Padded(like.new_zeros(*x.values.shape[:2], size), x.lengths)
            rows.append(report_layer(self.engine, layer, inputs, every, slower_ones=slower_ones))
        return EngineReport(tuple(rows))

    def _layers(self) -> list[list[AnyCell]]:
        return [list(layer) for layer in self.cells]  # type: ignore[call-overload]  # ModuleLists of cells

    def _ways(self) -> tuple[bool, ...]:
        """Of each direction of a layer, whether it reads backward."""
        return (False, True) if self.bidirectional else (self.direction == "backward",)

    def _readers(self, number: int, states: States, fixed: Fixed) -> list[DirectedCell]:
        cells: Any = self.cells[number]
        return [DirectedCell(*each) for each in zip(cells, states[number], fixed[number], self._ways(), strict=True)]

    def _is_plain(self) -> bool:
        """Whether each layer just reads the one before it, both directions side by side, and the last one answers."""
        return (
            type(self) is Recurrent
            and self.skip == "none"
            and self.mix == "last"
            and not (self.training and self.dropout)
            and all(type(merge) is merges.Concat for merge in self.merges)
        )

    def _prepared(self, x: Padded, states: States | None, fixed: Fixed | None) -> tuple[Padded, States, Fixed]:
        """A checked batch with zeros for padding, and the states and `fixed` to read it with."""
        x = x.zeroed()
        rows = x.lengths.shape[0]
        states = self.start(rows, x.values) if states is None else self._checked_states(states, x)
        return x, states, self.fixed(rows, x.values) if fixed is None else fixed

    def _through(
        self,
        y: Tensor,
        lengths: Tensor | None,
        read: Callable[[int, Tensor], list[Tensor]],
        below: Tensor | None,
        masks: Sequence[Tensor | None] = (),
    ) -> list[Tensor]:
        """Every layer's output; `read` gives what the directions of a layer make of its input.

        The first output is that of the layer under the stack, if there is one.
        """
        if (below is None) == bool(self.stands_on):
            wanted = f"the output of a layer of size {self.stands_on} as below" if self.stands_on else "no below"
            raise DataError(f"this Recurrent needs {wanted}, as it was made with below = {self.stands_on}.")
        under, outputs = below, [] if below is None else [below]
        for number in range(len(self.cells)):
            mask = masks[number] if masks else None
            y = self._joined(number, under, read(number, self._dropped(number, y) if mask is None else y * mask))
            if lengths is not None and self.bidirectional and not self.merges[number].keeps_zeros:
                y = Padded(y, lengths).zeroed().values
            outputs.append(y)
            under = y
        return outputs

    def _like(self) -> Tensor:
        """Something of the type and on the device of the weights."""
        return next(self.parameters(), torch.zeros(()))

    def _dropped(self, number: int, y: Tensor) -> Tensor:
        """Dropout on what goes from one layer to the next."""
        if number == 0 or not self.training or not self.dropout:
            return y
        if self.locked:
            return y * functional.dropout(torch.ones_like(y[:, :1]), self.dropout)
        return functional.dropout(y, self.dropout)

    def _joined(self, number: int, x: Tensor | None, directions: list[Tensor]) -> Tensor:
        """Merge of the directions, then the way past the layer for x, the output of the layer under it."""
        y: Tensor = self.merges[number](*directions) if self.bidirectional else directions[0]
        if x is None or self.skip == "none":
            return y
        if self.skip == "residual":
            return x + y
        t = self.transforms[number if self.stands_on else number - 1](x).sigmoid()
        return t * y + (1 - t) * x

    def mixed(self, outputs: list[Tensor]) -> Tensor:
        """The output of the stack out of those of its layers, and of the one under it, if there is one."""
        if self.mix == "last":
            return outputs[-1]
        if self.mix == "concat":
            return torch.cat(outputs, dim=-1)
        stacked = torch.stack(outputs, dim=-1)
        if self.mix_weights is None or self.mix_scale is None:
            return stacked.mean(-1)
        return self.mix_scale * (stacked @ self.mix_weights.softmax(0))

    def _check_steps(self, *, locks: bool = True) -> None:
        """A ConfigError where this stack cannot run one step at a time."""
        if self.bidirectional or self.direction == "backward":
            raise ConfigError(
                "a backward or bidirectional stack cannot run one step at a time: its first output needs the last "
                "input. Use bidirectional = false and direction = 'forward', or pass the whole sequence."
            )
        if locks and self.training and self.dropout and self.locked:
            raise ConfigError(
                "locked dropout uses one mask for all steps of a row, so it cannot train one step at a time. Pass "
                "the whole sequence, or call eval() first."
            )

    def _checked(self, x: Padded) -> Padded:
        x = inputs_of(x, self.input_size, "Recurrent")
        own = next(self.parameters(), x.values)
        if x.values.dtype != own.dtype and not torch.is_autocast_enabled(x.values.device.type):
            raise DataError(
                f"the batch has dtype {x.values.dtype}, but the weights have {own.dtype}. Convert one of them."
            )
        return x

    def _checked_resets(self, resets: Tensor, x: Padded) -> Tensor | None:
        """Where the rows are cut, without what lies on padding; None where they are not."""
        shape = tuple(x.values.shape[:2])
        if not isinstance(resets, Tensor) or resets.dtype != torch.bool or tuple(resets.shape) != shape:
            found = f"{resets.dtype} of shape {tuple(resets.shape)}" if isinstance(resets, Tensor) else repr(resets)
            raise DataError(f"resets must be a tensor of torch.bool of shape {shape} (rows, steps), but is {found}.")
        resets = resets.to(x.values.device) & x.mask
        return resets if bool(resets.any()) else None

    def _checked_states(self, states: States, x: Padded) -> States:
        start = self.start(0, x.values)
        shape = [len(layer) for layer in start]
        if not _is_nested(states) or [len(layer) for layer in states] != shape:
            raise DataError(
                f"states must hold {len(start)} layers with {len(start[0])} direction(s) each, as this Recurrent "
                f"returns them, but hold {[len(layer) for layer in states] if _is_nested(states) else states!r}."
            )
        return tuple(
            tuple(_fitted(state, known, x, number) for state, known in zip(given, expected, strict=True))
            for number, (given, expected) in enumerate(zip(states, start, strict=True), 1)
        )


def _is_nested(states: object) -> bool:
    return isinstance(states, tuple | list) and all(isinstance(layer, tuple | list) for layer in states)


def _fitted(state: AnyState, known: AnyState, x: Padded, number: int) -> AnyState:
    """A start state of the right kind, shape and type."""
    sizes = [(x.lengths.shape[0], field.shape[-1]) for field in known]
    are_tensors = isinstance(state, tuple | list) and all(isinstance(field, Tensor) for field in state)
    found = [tuple(field.shape) for field in state] if are_tensors else type(state).__name__
    if found != sizes:
        names = ", ".join(fields(known))
        raise DataError(f"layer {number} needs the start state ({names}) of shapes {sizes}, but got {found}.")
    for field in state:
        # What autocast has lowered may be raised again; any other difference is a mistake.
        if field.dtype != x.values.dtype and field.dtype not in (torch.float16, torch.bfloat16):
            raise DataError(
                f"layer {number} got a start state of {field.dtype}, but the batch has dtype {x.values.dtype}."
            )
    return type(known)(*(field.to(x.values.dtype) for field in state))


def detached(states: States) -> States:
    """The states detached from the autograd graph, for truncated back-propagation through time.

    >>> rnn = Recurrent("lstm", 2, 3)
    >>> _, states = rnn(Padded.full(torch.randn(1, 4, 2)))
    >>> states[0][0].h.requires_grad, detached(states)[0][0].h.requires_grad
    (True, False)
    """
    return tuple(tuple(type(state)(*(field.detach() for field in state)) for state in layer) for layer in states)


def _widths(hidden_size: int | Sequence[int], layers: int | None) -> list[int]:
    count = None if layers is None else check_size(layers, "layers")
    if not isinstance(hidden_size, Sequence):
        return [check_size(hidden_size, "hidden_size")] * (count or 1)
    widths = [check_size(width, "hidden_size") for width in hidden_size]
    if not widths or (count is not None and count != len(widths)):
        raise ConfigError(f"hidden_size = {widths} gives {len(widths)} widths, but there are {count or 'no'} layers.")
    return widths


def _check_equal(sizes: Sequence[int], why: str) -> None:
    if len(set(sizes)) > 1:
        raise ConfigError(
            f"{why}, so all layers must have the same size, but they have the sizes {', '.join(map(str, sizes))}."
        )
