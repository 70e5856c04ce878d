"""Steps of a decoder by few kernels where each token is known only after the step before it, as in a search.

The kernels are those of a loop over a known target (fused.py), but there is memory for one step only. A step reads the
place `before`, where x, what was fed back and the states of its rows lie as products read them, and leaves its results
elsewhere. Then one kernel moves what goes on to `before`: the embedding of each row's next token, and of its states
those of the row that it continues.

    before ← [E[y_n]; fed_{r(n)}; h_{r(n)}], c_{r(n)}       r(n): the row that row n continues; without rows, n itself
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention.stepping import AttentionSteps
from recurra.cells import AnyCell, AnyState
from recurra.engines.stepping import CellSteps
from recurra.engines.triton_kernels import loaded
from recurra.engines.triton_source import power_of_two
from recurra.search.running import Notes, Scored
from recurra.stacks.recurrent import Recurrent
from recurra.wirings.fused import CellPart, Pieces, ReadoutSteps, Unfit, cells_of
from recurra.wirings.querying import memory_of
from recurra.wirings.wiring import Readout, Source, Wiring, WiringState, rows_like

LARGEST_BLOCK = 1024
"""So many numbers of a row are moved at once."""


class Reading(NamedTuple):
    """What a decoder reads of a token."""

    table: Tensor  # E (V, e)
    scale: float  # x = scale E[y]
    summary: Tensor | None  # (B, ·): stands behind x; None: nothing does


class Moved(NamedTuple):
    """What goes on from one step to the next: from (1, N, w) into (1, N, w)."""

    source: Tensor
    target: Tensor


TAKING = """scores, closed, values, chosen_tokens, step, chosen, alive, limits, is_end, V, row_stride, L, at_step,"""
TAKING_SIZES = """CHOICE: tl.constexpr, CLOSED: tl.constexpr, SUMS: tl.constexpr, NOTES: tl.constexpr,"""


@functools.lru_cache(maxsize=64)
def moving_source(widths: tuple[int, ...], *, has_rows: bool, takes: bool = False) -> str:
    """x of each row's token, and so many parts of the row that it continues.

    takes: each row's most probable token is found first, as greedy search does.
    """
    parts = [f"a{n}, a{n}_row, z{n}, z{n}_row" for n in range(len(widths))]
    lines = []
    for n, width in enumerate(widths):
        lines += [
            f"    for first in tl.static_range(0, {width}, BLOCK):",
            "        at = first + tl.arange(0, BLOCK)",
            f"        found = tl.load(a{n} + r * a{n}_row + at, mask=at < {width})",
            f"        tl.store(z{n} + row * z{n}_row + at, found, mask=at < {width})",
        ]
    taken = "    token = taken_of_row(" + " ".join([TAKING, "CHOICE, CLOSED, SUMS, NOTES)"])
    return "\n".join(
        [
            "import triton",
            "import triton.language as tl",
            *(["from recurra.search.triton_kernels import taken_of_row"] if takes else []),
            "",
            "",
            '@triton.jit(do_not_specialize=["at_step"])' if takes else "@triton.jit",
            f"def move({TAKING + ' ' if takes else ''}tokens, rows, table, table_row, x, x_row, scale, "
            f"{', '.join([*parts, ''])}{TAKING_SIZES + ' ' if takes else ''}E: tl.constexpr, BLOCK: tl.constexpr):",
            "    row = tl.program_id(0).to(tl.int64)",
            taken if takes else "    token = tl.load(tokens + row)",
            "    r = tl.load(rows + row)" if has_rows else "    r = row",
            "    for first in tl.static_range(0, E, BLOCK):",
            "        at = first + tl.arange(0, BLOCK)",
            "        found = tl.load(table + token * table_row + at, mask=at < E).to(tl.float32) * scale",
            "        tl.store(x + row * x_row + at, found, mask=at < E)",
            *lines,
        ]
    )


class Advance(Pieces, ABC):
    """A decoder that goes on step by step, N rows at a time; `each` of them look at one source."""

    returns = False

    def __init__(self, wiring: Wiring, reading: Reading, state: WiringState, source: Source) -> None:
        if wiring.shape.engine == "loop":
            raise Unfit("model.engine = 'loop' asks for the definition")
        if wiring.training or torch.is_grad_enabled():
            raise Unfit("a search needs no gradients")
        if torch.is_autocast_enabled(reading.table.device.type):
            raise Unfit("autocast keeps copies of the weights")
        if state.past or source.elements is not None:
            raise Unfit("a step needs more of the past than states")
        rows, sources = len(state.cells[0][0]), len(memory_of(source).mask)
        if not rows or rows % sources:
            raise Unfit("there are no rows")
        self.reading, self.begun, self.source = reading, state, source
        x = reading.table.new_empty(()).expand(rows, 1, wiring.shape.input_size)
        super().__init__(wiring, x, source, rows // sources)
        self.is_ahead = False  # of what lies `before`: a step was made, and not yet gone on from
        self.moves: list[Moved] = []

    # What a wiring says

    @abstractmethod
    def prepare(self) -> None:
        """Make room for a step, begin from the states, and say what goes on."""

    @abstractmethod
    def forward(self) -> None:
        """One step."""

    before_x: Tensor  # (1, N, I): where the next step reads x
    attending: AttentionSteps
    readout: ReadoutSteps
    layers: list[tuple[CellSteps, list[Tensor]]]  # of each layer's state: who reads it before a step, where it is left

    # What a search asks

    def begin(self, tokens: Tensor) -> None:
        """Before the first step, which reads these tokens (N,)."""
        self.names, tensors = self.names_and_tensors()
        self.start(tensors)
        self.prepare()
        self.move(tokens, None, [])
        if self.reading.summary is not None:  # the same for all rows of a source, so that it stays where it is
            self.before_x[0, :, self.reading.table.shape[1] :] = rows_like(self.reading.summary, self.before_x[0])
        self.moves += [
            Moved(after, memory[:1])
            for cell, afters in self.layers
            for after, memory in zip(afters, cell.states, strict=True)
        ]

    def step(self) -> Tensor:
        """Features (N, F) after what lies `before`; they stay until the next step."""
        self.forward()
        self.is_ahead = True
        return self.readout.out[0]

    @property
    def weights(self) -> Tensor:
        """(N, S): where the last step has looked."""
        return self.attending.mean_weights().squeeze(1).to(self.dtype, copy=True)

    def go_on(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """The next step reads these tokens (N,), each after the row that it continues."""
        self.move(tokens, rows, self.moves)
        self.is_ahead = False

    def take(self, scored: Scored, closed: Tensor | None, notes: Notes) -> Tensor:
        """Go on with the most probable token of each row, which is written down where `notes` say: one kernel."""
        from recurra.search.triton_kernels import taking, taking_sizes

        tokens = torch.empty(self.rows, dtype=torch.long, device=self.x.device)
        given = taking(scored, closed, notes.gained, tokens, notes)
        sizes = taking_sizes(scored, closed, notes)
        sizes["CHOICE"] = sizes.pop("BLOCK")
        self.move(tokens, None, self.moves, given, sizes)
        self.is_ahead = False
        return tokens

    def move(
        self,
        tokens: Tensor,
        rows: Tensor | None,
        moves: Sequence[Moved],
        taking: tuple[Any, ...] = (),
        sizes: dict[str, Any] | None = None,
    ) -> None:
        """x of tokens (N,) and parts of the rows that they continue, to where the next step reads them."""
        table, x = self.reading.table, self.before_x
        widths = tuple(each.target.shape[2] for each in moves)
        addresses = [part for a, z in moves for part in (a, a.stride(1), z, z.stride(1))]
        source = moving_source(widths, has_rows=rows is not None, takes=bool(taking))
        loaded(source)["move"][(self.rows,)](
            *taking,
            tokens,
            tokens if rows is None else rows,
            table,
            table.stride(0),
            x,
            x.stride(1),
            self.reading.scale,
            *addresses,
            E=table.shape[1],
            BLOCK=min(LARGEST_BLOCK, power_of_two(max(table.shape[1], *widths, 1))),
            **({"num_warps": 4} if sizes is None else sizes),
        )

    def state(self) -> WiringState:
        """After the last step, and where it looked; after `go_on`, of the rows that go on.

        States that no product reads are float32 from the first step on, whatever they began as.
        """
        cells = []
        for (cell, afters), begun in zip(self.layers, self.begun.cells, strict=True):
            found = afters if self.is_ahead else [memory[:1] for memory in cell.states]
            cells.append(type(begun)(*(each[0] for each in found)))
        return WiringState(tuple(cells), (), self.fed(), self.weights if self.is_ahead else None)

    def fed(self) -> Tensor | None:
        """What the next step takes of the last one besides."""
        return None

    # Its pieces

    def chained(self, parts: Sequence[CellPart], last: Tensor) -> list[CellSteps]:
        """Layers of cells of which each reads the h of the one before; that of the last goes to (1, N, H)."""
        found = [self.cell_steps(part) for part in parts]
        for n, (cell, part) in enumerate(zip(found, parts, strict=True)):
            cell.start(self.states_of(part))
            h = found[n + 1].read[:1] if n + 1 < len(found) else last
            cell.after = [h, *self.room_beside(cell)]
        return found

    def room_beside(self, cell: CellSteps) -> list[Tensor]:
        """Where a cell leaves its states but for h."""
        return [torch.empty_like(memory[:1], memory_format=torch.contiguous_format) for memory in cell.states[1:]]

    def add_layers(self, stack: Recurrent, states: Sequence[AnyState], fixed: Any, size: int) -> list[CellPart]:
        """Take up layers of which the first reads so many numbers."""
        cells: list[AnyCell] = cells_of(stack)
        sizes = [size, *(cell.hidden_size for cell in cells[:-1])]
        return [
            self.add_cell(f"layer {n}", cell, states[n], fixed[n][0], None, sizes[n]) for n, cell in enumerate(cells)
        ]

    def add_readout(self, readout: Readout, size: int) -> None:
        """Take up W [s; context] + b, where s has so many numbers."""
        self.sizes = [size, self.attention.context_size]
        W, bias = readout.mix.weight, readout.mix.bias
        if readout.summarises:
            W, W_summary = W.split([sum(self.sizes), readout.mix.in_features - sum(self.sizes)], dim=1)
            assert self.source.summary is not None, "the decoder was made with a summary"
            base = functional.linear(self.source.summary, W_summary, bias)
            self.given["base"] = base.repeat_interleave(self.each, dim=0)
        else:
            self.given["base"] = bias
        self.given["mix"] = W

    def prepare_readout(self) -> None:
        """Make room for [s; context] and for the features."""
        self.both = self.room.once(sum(self.sizes))
        self.s, self.context = self.both.split(self.sizes, dim=2)
        out = self.room.once(len(self.at["mix"]))
        self.readout = ReadoutSteps(self.room, self.at["mix"], self.at["base"], self.both, out, None, 0.0)


class FeedingAdvance(Advance):
    """s_t = cells([x_t; h̃_{t-1}], s_{t-1});  context_t = attend(s_t);  h̃_t = tanh(W [s_t; context_t]).

    Attention outside of the cells is the same without h̃_{t-1}.
    """

    def __init__(
        self,
        wiring: Wiring,
        reading: Reading,
        state: WiringState,
        source: Source,
        stack: Recurrent,
        readout: Readout,
        *,
        feeds: bool,
    ) -> None:
        super().__init__(wiring, reading, state, source)
        if not feeds and state.fed is not None:
            raise Unfit("the attention looks from the state before")
        self.feeds = feeds
        fed = 0 if state.fed is None else state.fed.shape[1]
        fixed = stack.fixed(self.rows, reading.table)
        self.parts = self.add_layers(stack, state.cells, fixed, wiring.shape.input_size + fed)
        self.add_readout(readout, cells_of(stack)[-1].hidden_size)

    def prepare(self) -> None:
        self.prepare_readout()
        self.cells = self.chained(self.parts, self.s)
        first, last = self.cells[0], self.cells[-1]
        self.before_x = first.read[:1, :, : self.x.shape[2]]
        self.before_fed = first.read[:1, :, self.x.shape[2] :]
        if self.feeds:
            assert self.begun.fed is not None, "`start` gives zeros"
            self.before_fed[0] = self.begun.fed
            self.moves.append(Moved(self.readout.out, self.before_fed))
        self.attending = self.attention_steps(self.s, self.context)
        last.lends = self.attending.is_next_to_query and last.may_lend()
        for cell in self.cells:
            cell.prepare()
        self.attending.prepare(last.forward_lent if last.lends else None)
        self.layers = [(cell, cell.after) for cell in self.cells]

    def forward(self) -> None:
        for cell in self.cells:
            cell.forward(0)
        self.attending.forward(0)
        self.readout.forward(0)

    def fed(self) -> Tensor | None:
        if not self.feeds:
            return None
        return (self.readout.out if self.is_ahead else self.before_fed)[0]


class InsideAdvance(Advance):
    """context_t = attend(s_{t-1});  s_t = cell([x_t; context_t], s_{t-1});  h̃_t = tanh(W [above(s)_t; context_t])."""

    def __init__(
        self,
        wiring: Wiring,
        reading: Reading,
        state: WiringState,
        source: Source,
        stacks: tuple[Recurrent, Recurrent | None],
        readout: Readout,
    ) -> None:
        super().__init__(wiring, reading, state, source)
        first, above = stacks
        [cell] = cells_of(first)
        fixed = first.fixed(self.rows, reading.table)
        size = wiring.shape.input_size + self.attention.context_size
        self.part = self.add_cell("first", cell, state.cells[0], fixed[0][0], None, size)
        self.above = self.add_above(above, state, cell.hidden_size)
        self.add_readout(readout, (cells_of(first) if above is None else cells_of(above))[-1].hidden_size)

    def add_above(self, above: Recurrent | None, state: WiringState, size: int) -> list[CellPart]:
        if above is None:
            return []
        return self.add_layers(above, state.cells[1:], above.fixed(self.rows, self.reading.table), size)

    def prepare(self) -> None:
        self.prepare_readout()
        self.cells = self.chained([self.part, *self.above], self.s)
        first = self.cells[0]
        inputs = self.x.shape[2]
        self.before_x = first.read[:1, :, :inputs]
        targets = [first.read[:1, :, inputs:], self.context]
        self.attending = self.attention_steps(first.states[0][:1], *targets, beside=first)
        self.attending.prepare()
        for cell in self.cells:
            cell.prepare()
        self.layers = [(cell, cell.after) for cell in self.cells]

    def forward(self) -> None:
        self.attending.forward(0)
        for cell in self.cells:
            cell.forward(0)
        self.readout.forward(0)


class ConditionalAdvance(InsideAdvance):
    """s'_t = cell₁(x_t, s_{t-1});  context_t = attend(s'_t);  s_t = cell₂(context_t, s'_t);  h̃_t as above."""

    def __init__(
        self,
        wiring: Wiring,
        reading: Reading,
        state: WiringState,
        source: Source,
        stacks: tuple[Recurrent, Recurrent, Recurrent | None],
        readout: Readout,
    ) -> None:
        Advance.__init__(self, wiring, reading, state, source)
        *both, above = stacks
        [first], [second] = (cells_of(each) for each in both if each is not None)
        fixed = [each.fixed(self.rows, reading.table) for each in both if each is not None]
        sizes = wiring.shape.input_size, self.attention.context_size
        self.first = self.add_cell("first", first, state.cells[0], fixed[0][0][0], None, sizes[0])
        self.part = self.add_cell("second", second, state.cells[0], fixed[1][0][0], None, sizes[1])
        self.above = self.add_above(above, state, second.hidden_size)
        self.add_readout(readout, second.hidden_size if above is None else cells_of(above)[-1].hidden_size)

    def prepare(self) -> None:
        self.prepare_readout()
        first = self.cell_steps(self.first)
        first.start(self.states_of(self.first))
        self.chain = self.chained([self.part, *self.above], self.s)
        second = self.chain[0]
        first.after = [memory[:1] for memory in second.states]
        self.before_x = first.read[:1]
        self.attending = self.attention_steps(second.states[0][:1], second.read[:1], self.context, beside=second)
        first.lends = self.attending.is_next_to_query and first.may_lend()
        for cell in (first, *self.chain):
            cell.prepare()
        self.attending.prepare(first.forward_lent if first.lends else None)
        self.begins = first
        self.layers = [(first, second.after), *((cell, cell.after) for cell in self.chain[1:])]

    def forward(self) -> None:
        self.begins.forward(0)
        self.attending.forward(0)
        for cell in self.chain:
            cell.forward(0)
        self.readout.forward(0)


def advance(make: Callable[[], Advance]) -> Advance | None:
    """A decoder that goes on by few kernels; None where there are none for it."""
    try:
        return make()
    except Unfit:
        return None


def reading_of(embedding: nn.Embedding, scale: float, summary: Tensor | None) -> Reading | None:
    """What a decoder reads of a token; None where the embedding is more than a table."""
    is_plain = type(embedding) is nn.Embedding and embedding.max_norm is None
    if not is_plain or embedding._forward_hooks or embedding._forward_pre_hooks:
        return None
    return Reading(embedding.weight, scale, summary)
