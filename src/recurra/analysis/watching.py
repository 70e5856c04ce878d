"""A copy of a model whose recurrent layers keep what they do at each step, so that it can be looked at afterwards."""

from __future__ import annotations

import copy
import itertools
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from recurra.cells import AnyCell, AnyState, Wrapper
from recurra.cells.cell import fields
from recurra.decoding.decoder import Decoder
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent
from recurra.wirings import Wiring


class Step(NamedTuple):
    """One step of one cell, rows and all, with its history."""

    x: Tensor  # (B, I): what it read
    before: AnyState  # the state it started from
    parts: AnyState  # every named value
    after: AnyState  # the state it left, each field apart: c' as it goes on, without its way through h'
    weights: dict[str, Tensor]  # the parameters, for this step alone


class Seen(NamedTuple):
    """One cell that read a batch in one direction, its steps in the order in which it read them."""

    name: str  # of the Recurrent in its model, "" where it is the model
    layer: int
    backward: bool
    cell: AnyCell
    lengths: Tensor  # (B,)
    steps: list[Step]
    is_led: bool = False  # whether the first step read a vector of the whole source, before any token
    is_looped: bool = False  # whether each step read what depends on the one before it: attention, what is fed back
    other: Seen | None = None  # a second cell that changes the same state, in turn with this one
    comes_second: bool = False  # whether the other one's k-th step comes before this one's

    @property
    def title(self) -> str:
        """Where it stands, in words."""
        way = ", backward" if self.backward else ""
        return f"{self.name or 'the stack'}, layer {self.layer + 1}{way}"

    @property
    def real(self) -> Tensor:
        """(T, B): which steps, in the order of reading, are no padding."""
        steps = torch.arange(len(self.steps)).unsqueeze(1)
        return steps >= len(self.steps) - self.lengths if self.backward else steps < self.lengths

    def by_lag(self, values: Tensor) -> Tensor:
        """(B, T, …) out of (T, B, …): first what belongs to a row's last step, then to the one before, …; then NaN."""
        steps, rows = values.shape[:2]
        last = torch.full((rows,), steps) if self.backward else self.lengths
        at = last.unsqueeze(1) - 1 - torch.arange(steps)
        found = values[at.clamp_min(0), torch.arange(rows).unsqueeze(1)]
        beyond = torch.arange(steps) >= self.lengths.unsqueeze(1)
        return found.masked_fill(beyond[(...,) + (None,) * (found.dim() - 2)], torch.nan)

    def rows(self, at_most: int) -> Seen:
        """The same for so many of the longest rows; without weights, which are those of all."""
        chosen = self.lengths.argsort(descending=True, stable=True)[:at_most].sort().values
        if len(chosen) == len(self.lengths):
            return self

        def some(state: Any) -> Any:
            return type(state)(*(field[chosen] for field in state))

        steps = [Step(s.x[chosen], some(s.before), some(s.parts), some(s.after), {}) for s in self.steps]
        other = None if self.other is None else self.other.rows(at_most)
        return self._replace(lengths=self.lengths[chosen], steps=steps, other=other)

    def turn_before(self, k: int) -> tuple[AnyCell, Step] | None:
        """The step of the other cell that led to the state from which the k-th step began; None without any."""
        at = k if self.comes_second else k - 1
        return None if self.other is None or at < 0 else (self.other.cell, self.other.steps[at])


@final
class Watched(Wrapper):
    """A cell that keeps each of its steps. Everything is computed anew in a step, from weights of its own:

    W(t) = W for all t,    ∇_W = Σ_t ∇_{W(t)}
    """

    def __init__(self, cell: AnyCell) -> None:
        super().__init__(cell)
        self.tapes: list[list[Step]] = []

    def fixed(self, rows: int, like: Tensor) -> Any:
        return []

    def project(self, x: Tensor, fixed: list[Step]) -> Tensor:
        if not fixed:  # a whole sequence, or the first of steps that are made one at a time
            self.tapes.append(fixed)
        return x

    def parts(self, inputs: Tensor, state: Any, fixed: list[Step]) -> AnyState:
        # A state that nothing learned has touched, such as a count of steps, has a gradient too.
        state = self.State(*(field if field.requires_grad else field.detach().requires_grad_() for field in state))
        weights = {name: parameter.view_as(parameter) for name, parameter in self.named_parameters()}
        parts: Any = functional_call(self, weights, (inputs, state))
        after = {name: getattr(parts, name).view_as(getattr(parts, name)) for name in fields(self.State)}
        own = {name.removeprefix("cell."): weight for name, weight in weights.items()}
        fixed.append(Step(inputs, state, parts, self.State(**after), own))
        return parts._replace(**after)

    def forward(self, x: Tensor, state: AnyState) -> AnyState:
        """All that the cell does in one step, alone."""
        fixed = self.cell.fixed(len(x), x)
        return self.cell.parts(self.cell.project(x, fixed), state, fixed)


class Call(NamedTuple):
    """A stack that read a batch."""

    lengths: Tensor  # (B,)
    tape: int  # of each of its cells, which of the tapes
    is_led: bool = False  # whether the tape before it holds the step that read a vector of the whole source
    is_looped: bool = False


class Watch:
    """A copy of a model in float64, in evaluation mode, whose recurrent layers are watched.

    Steps that are made one at a time count where a decoder is given a target to read; those of a search do not follow
    on each other.

    >>> watch = Watch(Recurrent("lstm", 2, 3, bidirectional=True))
    >>> _ = watch.model(Padded(torch.randn(2, 5, 2).double(), torch.tensor([5, 4])))
    >>> [(seen.title, len(seen.steps)) for seen in watch.seen()]
    [('the stack, layer 1', 5), ('the stack, layer 1, backward', 5)]
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model).cpu().double().eval()
        self._stacks = {name: part for name, part in self.model.named_modules() if isinstance(part, Recurrent)}
        self._calls: dict[str, list[Call]] = {name: [] for name in self._stacks}
        self._led: set[str] = set()  # the stacks whose last step read a vector of the whole source
        self._turns: dict[str, tuple[str, bool]] = {}  # to a stack, the one in turn with it, and whether it is second
        for name, stack in self._stacks.items():
            stack.engine, stack.recompute = "loop", 0
            for number, cells in enumerate(_cells(stack)):
                stack.cells[number] = nn.ModuleList(Watched(cell) for cell in cells)
            stack.register_forward_pre_hook(self._noting(name), with_kwargs=True)
        for name, part in self.model.named_modules():
            if isinstance(wiring := getattr(part, "wiring", None), Wiring):
                self._follow(f"{name}.wiring", wiring, part.first if isinstance(part, Decoder) else None)

    def _follow(self, name: str, wiring: Wiring, first_read: nn.Module | None) -> None:
        """Note the steps of a decoder that reads a target, also where it makes them one at a time."""
        within = self._from_below(name, wiring)
        before: dict[str, int] = {}
        if wiring.in_turn:
            first, second = (f"{name}.{each}" for each in wiring.in_turn)
            self._turns |= {first: (second, False), second: (first, True)}

        def lead(*_: object) -> None:
            self._led.update(within)

        def begin(*_: object) -> None:
            before.update({each: self._tapes(each) for each in within})

        def end(_wiring: nn.Module, given: tuple[Any, ...], _features: object) -> None:
            x: Padded = given[0]
            for each in within:
                called = self._calls[each]
                is_noted = bool(called) and called[-1].tape >= before[each]
                if not is_noted and self._tapes(each) > before[each]:
                    called.append(Call(x.lengths, before[each], each in self._led, is_looped=True))
            self._led.difference_update(within)

        if first_read is not None:
            first_read.register_forward_hook(lead)
        wiring.register_forward_pre_hook(begin)
        wiring.register_forward_hook(end)

    def _from_below(self, name: str, wiring: Wiring) -> list[str]:
        """The stacks of a wiring, which are seen in this order: as its layers lie, then a cell in turn with one."""
        within = [each for each in self._stacks if each.startswith(f"{name}.")]
        layers = [id(cell) for cell in wiring.layers]
        lowest = {each: id(_cells(self._stacks[each])[0][0]) for each in within}
        places = {each: layers.index(cell) for each, cell in lowest.items() if cell in layers}
        for first, second in itertools.pairwise(f"{name}.{each}" for each in wiring.in_turn):
            places[second] = places[first]
        within.sort(key=lambda each: places.get(each, len(layers)))
        for each in within:
            self._stacks[each] = self._stacks.pop(each)
        return within

    def _tapes(self, name: str) -> int:
        return len(_cells(self._stacks[name])[0][0].tapes)

    def _noting(self, name: str) -> Any:
        def note(_stack: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            x = given[0] if given else named["x"]
            lengths = x.lengths if isinstance(x, Padded) else torch.zeros(0, dtype=torch.long)
            self._calls[name].append(Call(lengths, self._tapes(name), name in self._led))

        return note

    def seen(self) -> list[Seen]:
        """Every cell that read whole sequences; where it read several batches, the longest."""
        found = {name: self._seen(name) for name in self._stacks}
        for name, (other, is_second) in self._turns.items():
            pairs = zip(found[name], found[other], strict=True)
            found[name] = [one._replace(other=two, comes_second=is_second) for one, two in pairs]
        return [seen for each in found.values() for seen in each]

    def _seen(self, name: str) -> list[Seen]:
        stack, calls = self._stacks[name], self._calls[name]
        if not calls or not max(int(call.lengths.sum()) for call in calls):
            return []
        call = max(calls, key=lambda each: max(each.lengths.tolist(), default=0))
        found = []
        for layer, cells in enumerate(_cells(stack)):
            for way, cell in enumerate(cells):
                backward = way == 1 or stack.direction == "backward"
                led = cell.tapes[call.tape - 1] if call.is_led else []
                steps, lengths = [*led, *cell.tapes[call.tape]], call.lengths + len(led)
                found.append(Seen(name, layer, backward, cell.cell, lengths, steps, call.is_led, call.is_looped))
        return found

    def forget(self) -> None:
        """Let go of all that was seen."""
        for calls in self._calls.values():
            calls.clear()
        for stack in self._stacks.values():
            for cells in _cells(stack):
                for cell in cells:
                    cell.tapes.clear()


def _cells(stack: Recurrent) -> list[list[Any]]:
    """The cells of each layer, one for each direction."""
    return [list(layer) for layer in stack.cells]  # type: ignore[call-overload]  # ModuleLists of cells
