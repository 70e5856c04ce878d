"""Linear recurrences by a parallel scan: few large operations over blocks of steps in place of many small ones."""

from __future__ import annotations

from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recurra.cells import AnyCell, Cell, Wrapper
from recurra.cells.weights import leaves, replaced
from recurra.engines import scan_on_gpu
from recurra.engines.cost import Estimate, Rates, in_graph
from recurra.engines.engine import DirectedCell, Layer, Reading, Work, only_looped
from recurra.engines.replay import is_differentiated, replayed
from recurra.engines.vendor import last_real
from recurra.padding import Padded

# How many numbers of h are computed at a time. On a CPU that much stays in the cache with all that belongs to it;
# a GPU would rather have few calls.
STRETCH = {"cpu": 2**19, "cuda": 2**26}


ON_CPU = Estimate(
    training=Rates(call=630e-6, gate=1.5e-6, number=3e-9), inference=Rates(call=300e-6, gate=0.8e-6, number=1.3e-9)
)
ON_GPU = Estimate(training=Rates(call=2.3e-3, gate=8e-6), inference=Rates(call=0.8e-3, gate=6e-6))
IN_GRAPH = in_graph(Rates(call=50e-6, number=8e-12))  # of a min_gru at one shape


class Scan:
    """Runs cells with h' = decay ∘ h + inflow, where neither needs h: those that tell their `coefficients`."""

    name = "scan"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        reasons = (obstacle(reader, x) for reader in layer)
        return next((reason for reason in reasons if reason is not None), None)

    def cost(self, work: Work) -> float:
        if work.device == "cpu":
            return ON_CPU.seconds(work)
        return (IN_GRAPH if work.graphed else ON_GPU).seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [read(reader, x, every) for reader in layer]


def obstacle(reader: DirectedCell, x: Padded) -> str | None:
    """Why no scan runs this cell, in words; None where one does."""
    cell, state, fixed, *_ = reader
    inner = cell
    while isinstance(inner, Wrapper):
        inner = inner.cell
    if type(inner).coefficients is Cell.coefficients:
        return not_linear(inner)
    with torch.no_grad():
        # Asked about no steps at all, which costs next to nothing and draws no random numbers.
        nothing = x.values.new_empty(len(x.lengths), 0, cell.input_size)
        found = cell.coefficients(cell.project(nothing, fixed), fixed)
    if found is None:
        return not_linear(inner)
    if len(state) > 1:
        return f"a scan supports one state, but '{cell.name}' has {len(state)}"
    if defines(cell, "parts") < defines(cell, "coefficients"):
        return f"'{cell.name}' changes the step of a cell, but not its coefficients"
    if not is_plain(fixed):
        return f"gradients are enabled, but `fixed` of '{cell.name}' returns more than tuples of tensors"
    return None


def not_linear(cell: AnyCell) -> str:
    return f"the step of '{cell.name}' is not known to be linear in its state"


def defines(cell: AnyCell, method: str) -> int:
    """How far up a cell's class inherits a method from."""
    return next(distance for distance, kind in enumerate(type(cell).__mro__) if method in vars(kind))


def is_plain(fixed: object) -> bool:
    if isinstance(fixed, tuple):
        return all(is_plain(part) for part in fixed)
    return fixed is None or isinstance(fixed, Tensor | int | float | str)


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading:
    """One cell over one batch. A backward reader is a forward one on reversed rows."""
    if (reading := scan_on_gpu.read(reader, x, every)) is not None:
        return reading
    cell, (start,), fixed, backward, resets = reader
    inputs = cell.project(x.values, fixed)
    inputs = Padded(inputs, x.lengths).reversed().values if backward else inputs
    dtype = torch.promote_types(inputs.dtype, start.dtype)
    # Half precision is summed in single: with 8 bits, a state that decays slowly would not see what comes in.
    wide = torch.promote_types(dtype, torch.float32)
    beyond = None if x.is_full else ~x.mask.unsqueeze(-1)
    anew = None if resets is None else resets.in_reading_order(x.lengths, backward)
    first = None if resets is None or resets.is_zero else resets.state[0].detach().to(wide)
    coefficients = Coefficients(cell, fixed, beyond, wide, anew, first)
    h = Course.apply(coefficients, inputs, start.to(wide), *coefficients.sources).to(dtype)  # type: ignore[no-untyped-call]
    outputs = Padded(h, x.lengths).reversed().values if backward else h
    return Reading(outputs, cell.State(outputs if every else last_real(h, x.lengths, start)))


class Coefficients(NamedTuple):
    """A cell's decay and inflow over one batch, some steps at a time."""

    cell: AnyCell
    fixed: Any
    beyond: Tensor | None  # (B, T, 1), True on padding
    dtype: torch.dtype
    anew: Tensor | None = None  # (B, T), True where the state starts anew before a step
    first: Tensor | None = None  # (B, H): the state that it then starts from; None: zeros

    @property
    def sources(self) -> list[Tensor]:
        """All that decay and inflow may depend on beside the inputs: where gradients go."""
        return [*leaves(self.fixed, Tensor), *self.cell.parameters()]  # type: ignore[type-var]

    def __call__(self, inputs: Tensor, steps: slice) -> tuple[Tensor, Tensor]:
        """Both as (B, n, H), for the inputs of n steps."""
        found = self.cell.coefficients(inputs, self.fixed)
        assert found is not None
        shape = (*inputs.shape[:2], self.cell.hidden_size)
        decay, inflow = (each.to(self.dtype).expand(shape) for each in found)
        if self.anew is not None:
            # h' = decay ∘ first + inflow, whatever was before. By place, for there are few: a mask takes far longer.
            rows, at = places = self.anew[:, steps].nonzero(as_tuple=True)
            if self.first is not None:
                inflow = inflow.index_put(places, inflow[rows, at] + decay[rows, at] * self.first[rows])
            decay = decay.index_put(places, decay.new_zeros(()))
        if self.beyond is None:
            return decay, inflow
        # On padding the state falls to 0, which is what outputs hold there, and lets no gradient pass.
        beyond = self.beyond[:, steps]
        return decay.masked_fill(beyond, 0), inflow.masked_fill(beyond, 0)

    def cut_loose(self) -> Coefficients:
        """The same, with a `fixed` that has no history: a gradient ends in it."""

        def without_history(leaf: Tensor) -> Tensor:
            return leaf.detach().requires_grad_(leaf.requires_grad)

        return self._replace(fixed=replaced(self.fixed, Tensor, without_history))  # type: ignore[type-var]


class Course(torch.autograd.Function):
    """h after every step, (B, T, H), and the way back, which is the same recurrence from the end.

        h_t  = decay_t ∘ h_{t-1} + inflow_t
        dh_t = decay_{t+1} ∘ dh_{t+1} + g_t                      g_t: what comes to h_t from outside
        d inflow_t = dh_t,   d decay_t = dh_t ∘ h_{t-1}

    Memory traffic is what this costs. So decay and inflow exist for a stretch of steps alone, while it is in the cache;
    the way back computes them once more, and only the inputs and h are kept.
    """

    @staticmethod
    def forward(ctx: Any, coefficients: Coefficients, inputs: Tensor, start: Tensor, *sources: Tensor) -> Tensor:
        h = start.new_empty(*inputs.shape[:2], start.shape[-1])
        before = start
        for steps in stretches(h):
            decay, inflow = coefficients(inputs[:, steps], steps)
            scan(decay, inflow, before, out=h[:, steps])
            before = h[:, steps.stop - 1]
        ctx.coefficients = coefficients
        ctx.save_for_backward(inputs, start, h, *sources)
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            return Course.recorded(ctx, *gradients)
        with torch.no_grad():
            return Course.fast(ctx, *gradients)

    @staticmethod
    def recorded(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients, in operations that can be differentiated in turn."""
        inputs, start, _, *_ = ctx.saved_tensors
        given: Coefficients = ctx.coefficients

        def results(tensors: list[Tensor], fixed: Any) -> list[Tensor]:
            inputs, h = tensors
            steps = []
            decay, inflow = given._replace(fixed=fixed)(inputs, slice(None))
            for d, b in zip(decay.unbind(1), inflow.unbind(1), strict=True):
                h = d * h + b
                steps.append(h)
            return [torch.stack(steps, dim=1)]

        found = replayed(given.cell, given.fixed, [inputs, start], results, gradients)
        return None, *found.tensors, *found.fixed, *found.parameters

    @staticmethod
    def fast(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g,), (inputs, start, h, *_) = gradients, ctx.saved_tensors
        coefficients = ctx.coefficients.cut_loose()
        sources = coefficients.sources
        d_inputs = torch.empty_like(inputs) if inputs.requires_grad else None
        d_sources: list[Tensor | None] = [None] * len(sources)
        d_before = torch.zeros_like(start)  # decay_{t+1} ∘ dh_{t+1}, the gradient that reaches h_t from later steps
        for steps in reversed(stretches(h)):
            part = inputs[:, steps].detach().requires_grad_(inputs.requires_grad)
            with torch.enable_grad():
                decay, inflow = coefficients(part, steps)
            dh = gradient_of_states(decay.detach(), g[:, steps], d_before)
            d_before = decay.detach()[:, 0] * dh[:, 0]
            h_before = states_before(h, steps, start)
            d_part, *d_more = pulled_back([(decay, dh * h_before), (inflow, dh)], [part, *sources])
            if d_inputs is not None:
                d_inputs[:, steps] = 0 if d_part is None else d_part
            d_sources = [added(*pair) for pair in zip(d_sources, d_more, strict=True)]
        return None, d_inputs, d_before, *d_sources


def stretches(h: Tensor) -> list[slice]:
    """T cut into stretches of so many steps that one of them stays in the cache."""
    B, T, H = h.shape
    n = max(1, STRETCH.get(h.device.type, 2**26) // (B * H))
    return [slice(t, min(t + n, T)) for t in range(0, T, n)]


def gradient_of_states(decay: Tensor, g: Tensor, from_later: Tensor) -> Tensor:
    """dh_t = decay_{t+1} ∘ dh_{t+1} + g_t, with what comes to the last step from later ones."""
    dh = torch.empty_like(g, memory_format=torch.contiguous_format)
    torch.add(g[:, -1], from_later, out=dh[:, -1])
    scan(decay[:, 1:], g[:, :-1], dh[:, -1], out=dh[:, :-1], reverse=True)
    return dh


def states_before(h: Tensor, steps: slice, start: Tensor) -> Tensor:
    """h_{t-1} for each of these steps."""
    if steps.start:
        return h[:, steps.start - 1 : steps.stop - 1]
    return torch.cat([start.unsqueeze(1), h[:, : steps.stop - 1]], dim=1)


def pulled_back(results: list[tuple[Tensor, Tensor]], sources: list[Tensor]) -> list[Tensor | None]:
    """The gradients of the sources from results and theirs; None where nothing reaches one."""
    reached = [(result, gradient) for result, gradient in results if result.requires_grad]
    if not reached:
        return [None] * len(sources)
    matter = [source for source in sources if source.requires_grad]
    values, gradients = zip(*reached, strict=True)
    found = iter(torch.autograd.grad(values, matter, gradients, allow_unused=True))
    return [next(found) if source.requires_grad else None for source in sources]


def added(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


def scan(decay: Tensor, inflow: Tensor, start: Tensor, out: Tensor, reverse: bool = False) -> None:
    """out_t = decay_t ∘ out_{t-1} + inflow_t from out_{-1} = start; in reverse with t+1 for t-1. All (B, T, H).

    T is cut into blocks of L = √T steps. A block turns the state s before it into P ∘ s + e, with P the product of its
    decays and e its end from s = 0. So, each line for all blocks at once:

        P, e    L steps
        s       s' = P ∘ s + e from block to block, √T steps
        out     L steps, each block from its own s

    Every number is a sum of products of the equation's own factors, as in the loop. Nothing is divided by a product of
    decays and nothing is taken to the exponent, so nothing overflows that does not in the loop. A P that underflows
    says that s is forgotten; what came in since is in e all the same. The form of the paper,
    log h_t = A_t + logcumsumexp(log inflow − A), A the running sum of log decay, needs decays and inflows above 0, and
    as A grows with t its rounding does: h is then good to |A| units in the last place, not to a few.
    """
    T = out.shape[1]
    L = isqrt(T)
    if T == 0:
        return
    starts = starts_of_blocks(decay, inflow, start, L, reverse)
    for position in range(L):
        now = at(position, T, L, reverse)
        shift = 1 if reverse else -1
        before = out[:, now.start + shift : now.stop + shift : L] if position else starts
        torch.addcmul(inflow[:, now], decay[:, now], before, out=out[:, now])


def at(position: int, T: int, L: int, reverse: bool) -> slice:
    """The steps at one position, in the order of reading, of every block of L; the block read last may lack it."""
    return slice((T - 1 - position) % L, T - position, L) if reverse else slice(position, T, L)


def starts_of_blocks(decay: Tensor, inflow: Tensor, start: Tensor, L: int, reverse: bool) -> Tensor:
    """The state before each block of L steps, (B, T/L, H)."""
    B, T, H = inflow.shape
    blocks = -(-T // L)
    order = range(blocks)[::-1] if reverse else range(blocks)
    starts = start.new_empty(B, blocks, H)
    starts[:, order[0]] = start
    if blocks == 1:
        return starts
    # The block read last, the only one that may be short, is not carried on.
    carried = (blocks - 1) * L
    decay, inflow = (each[:, T - carried :] if reverse else each[:, :carried] for each in (decay, inflow))
    first = at(0, carried, L, reverse)
    P, e = decay[:, first].clone(), inflow[:, first].clone()
    for position in range(1, L):
        now = at(position, carried, L, reverse)
        torch.addcmul(inflow[:, now], decay[:, now], e, out=e)
        P *= decay[:, now]
    for block, following in pairwise(order):
        through = min(block, following)  # in reverse, the first in time is the one that P and e leave out
        torch.addcmul(e[:, through], P[:, through], starts[:, block], out=starts[:, following])
    return starts
