"""How the gradient of a loss flows back through time, which gates are shut, and which inputs a state depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from recurra.analysis.watching import Seen, Watch
from recurra.cells.cell import fields
from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent

SHUT, OPEN, FLAT = 0.1, 0.9, 0.95
"""Below the first and above the second a gate hardly moves; beyond ± the third a tanh hardly does."""


class Flow(NamedTuple):
    """∂L of one cell that read a batch."""

    seen: Seen
    states: dict[str, Tensor]  # (T, B, n) for each field of the state, in the order of reading: ∂L / ∂h_t, ∂L / ∂c_t
    left: list[tuple[Tensor, ...]]  # of each step, ∂L / ∂ each field of the state that it left, apart from the others

    def norms(self) -> dict[str, Tensor]:
        """(B, T): ‖∂L/∂h_t‖, and so for each field, by T − t from a row's last step on; NaN where there is none."""
        return {name: self.seen.by_lag(values.norm(dim=2)) for name, values in self.states.items()}

    def weights(self, k: int) -> dict[str, Tensor]:
        """∇_{W(k)} of every parameter: what step k, in the order of reading, adds to its gradient ∇_W = Σ_k ∇_{W(k)}.

        The graph of a step is its own, so that each costs one step, not a pass through all.
        """
        step = self.seen.steps[k]
        found = torch.autograd.grad(
            step.after,
            list(step.weights.values()),
            self.left[k],
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        return dict(zip(step.weights, found, strict=True))

    def weight_norms(self) -> dict[str, Tensor]:
        """(T,): ‖∇_{W(k)}‖ of every parameter, in the order of reading."""
        each = [{name: value.norm() for name, value in self.weights(k).items()} for k in range(len(self.seen.steps))]
        return {name: torch.stack([norms[name] for norms in each]) for name in each[0]}


def flows(loss: Tensor, seen: Sequence[Seen]) -> list[Flow]:
    """How a loss depends on each state of the cells that were watched while it was computed.

    >>> rnn = Recurrent("lstm", 2, 3)
    >>> watch = Watch(rnn)
    >>> outputs, _ = watch.model(Padded.full(torch.randn(1, 4, 2).double()))
    >>> [flow] = flows(outputs.values[:, -1].sum(), watch.seen())
    >>> {name: norm.shape for name, norm in flow.norms().items()}
    {'h': torch.Size([1, 4]), 'c': torch.Size([1, 4])}
    >>> sum(flow.weights(k)["from_state"] for k in range(4)).shape    # their sum is ∇_U
    torch.Size([12, 3])
    """
    wanted: list[Tensor] = []
    for each in seen:
        for step in each.steps:
            wanted += [getattr(step.parts, name) for name in fields(each.cell.State)]
            wanted += step.after
    found = iter(torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True, materialize_grads=True))
    result = []
    for each in seen:
        names = fields(each.cell.State)
        steps = [([next(found) for _ in names], tuple(next(found) for _ in names)) for _ in each.steps]
        states = {name: torch.stack([whole[number] for whole, _ in steps]) for number, name in enumerate(names)}
        result.append(Flow(each, states, [left for _, left in steps]))
    return result


class Saturation(NamedTuple):
    """How much of a gate, or of what a tanh gave, lies where it hardly moves any more."""

    name: str
    kind: Literal["gate", "tanh"]
    low: float  # share below 0.1; of a tanh below −0.95
    high: float  # share above 0.9; of a tanh above 0.95
    mean: float


def saturation(seen: Seen) -> list[Saturation]:
    """Of every gate and candidate of a cell; of a cell without any, of h itself. What has no such range is left out.

    >>> from recurra.analysis.jacobian import stack_seen
    >>> [seen] = stack_seen(Recurrent("gru", 2, 3), Padded.full(torch.zeros(1, 4, 2)))
    >>> [(found.name, found.kind, found.low, found.mean) for found in saturation(seen)]
    [('r', 'gate', 0.0, 0.5), ('z', 'gate', 0.0, 0.5), ('candidate', 'tanh', 0.0, 0.0)]
    """
    state = fields(seen.cell.State)
    names = [name for name in fields(seen.steps[0].parts) if name not in state] or [state[0]]
    found = []
    for name in names:
        values = torch.stack([getattr(step.parts, name).detach() for step in seen.steps])[seen.real]
        least, most = float(values.min()), float(values.max())
        is_gate = least >= 0 and most <= 1 and not (least == most == 0)
        if not is_gate and (least < -1 or most > 1):
            continue
        low, high = (SHUT, OPEN) if is_gate else (-FLAT, FLAT)
        below, above = (float(each.double().mean()) for each in (values < low, values > high))
        found.append(Saturation(name, "gate" if is_gate else "tanh", below, above, float(values.mean())))
    return found


def forgotten(seen: Seen) -> Tensor | None:
    """(B, T, H): Π_{k = t+1}^{T} f_k by T − t, where the cell has a forget gate f: what is left of c_t in c_T.

    Where a second cell changes the same state in turn with it, its gates are factors too.
    """
    if "f" not in fields(seen.steps[0].parts):
        return None
    each = []
    for k, step in enumerate(seen.steps):
        turn = seen.turn_before(k)
        f = step.parts.f.detach()  # type: ignore[attr-defined]  # a cell with a forget gate
        each.append(f if turn is None else f * turn[1].parts.f.detach())  # type: ignore[attr-defined]
    gates = seen.by_lag(torch.stack(each))
    return torch.cat([torch.where(gates[:, :1].isnan(), torch.nan, 1.0), gates[:, :-1]], 1).cumprod(1) + 0 * gates


def receptive_field(rnn: Recurrent, x: Padded, *, step: int = -1) -> Tensor:
    """(B, T): ‖∂y_step / ∂x_t‖ for every t, y what the whole stack gives: which inputs it depends on, and how far.

    `step` counts from a row's end where it is below 0. Exact: each row is read once for each number of the output.

    >>> one_way = receptive_field(Recurrent("gru", 2, 3), Padded.full(torch.randn(1, 4, 2)), step=1)
    >>> (one_way[0] > 0).tolist()
    [True, True, False, False]
    """
    watch = Watch(rnn)
    found = x.values.new_zeros(x.values.shape[:2], dtype=torch.float64)
    for row, length in enumerate(x.lengths.tolist()):
        at = step if step >= 0 else length + step
        if not 0 <= at < length:
            continue  # a row that is too short depends on nothing
        values = x.values[row : row + 1, :length].detach().double()
        repeated = values.repeat(rnn.output_size, 1, 1).requires_grad_()
        outputs, _ = watch.model(Padded.full(repeated))
        [gradient] = torch.autograd.grad(outputs.values[:, at].diagonal().sum(), repeated)
        found[row, :length] = gradient.square().sum((0, 2)).sqrt()
        watch.forget()
    return found
