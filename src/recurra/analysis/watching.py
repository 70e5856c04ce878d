"""A copy of a model whose recurrent layers keep what they do at each step, so that it can be looked at afterwards."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from recurra.cells import AnyCell, AnyState, Wrapper
from recurra.cells.cell import fields
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent


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
        return self._replace(lengths=self.lengths[chosen], steps=steps)


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
        if x.dim() == 3:  # a whole sequence; steps one at a time may not follow on each other
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


class Watch:
    """A copy of a model in float64, in evaluation mode, whose recurrent layers are watched.

    >>> watch = Watch(Recurrent("lstm", 2, 3, bidirectional=True))
    >>> _ = watch.model(Padded(torch.randn(2, 5, 2).double(), torch.tensor([5, 4])))
    >>> [(seen.title, len(seen.steps)) for seen in watch.seen()]
    [('the stack, layer 1', 5), ('the stack, layer 1, backward', 5)]
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model).cpu().double().eval()
        self._stacks = {name: part for name, part in self.model.named_modules() if isinstance(part, Recurrent)}
        self._lengths: dict[str, list[Tensor]] = {name: [] for name in self._stacks}
        for name, stack in self._stacks.items():
            stack.engine, stack.recompute = "loop", 0
            for number, cells in enumerate(_cells(stack)):
                stack.cells[number] = nn.ModuleList(Watched(cell) for cell in cells)
            stack.register_forward_pre_hook(self._noting(name), with_kwargs=True)

    def _noting(self, name: str) -> Any:
        def note(_stack: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            x = given[0] if given else named["x"]
            self._lengths[name].append(x.lengths if isinstance(x, Padded) else torch.zeros(0, dtype=torch.long))

        return note

    def seen(self) -> list[Seen]:
        """Every cell that read whole sequences; where it read several batches, the longest."""
        found = []
        for name, stack in self._stacks.items():
            calls = self._lengths[name]
            if not calls or not max(int(lengths.sum()) for lengths in calls):
                continue
            longest = max(range(len(calls)), key=lambda number: max(calls[number].tolist(), default=0))
            for layer, cells in enumerate(_cells(stack)):
                for way, cell in enumerate(cells):
                    backward = way == 1 or stack.direction == "backward"
                    found.append(Seen(name, layer, backward, cell.cell, calls[longest], cell.tapes[longest]))
        return found

    def forget(self) -> None:
        """Let go of all that was seen."""
        for calls in self._lengths.values():
            calls.clear()
        for stack in self._stacks.values():
            for cells in _cells(stack):
                for cell in cells:
                    cell.tapes.clear()


def _cells(stack: Recurrent) -> list[list[Any]]:
    """The cells of each layer, one for each direction."""
    return [list(layer) for layer in stack.cells]  # type: ignore[call-overload]  # ModuleLists of cells
