"""Loops of decoders by few kernels: a step of `feeding`, `inside` or `conditional` in five to ten of them each way.

A wiring's own loop launches a kernel for each operation of each step. Here a step is made of products by the vendor's
library, the row passes of the cells' plans (engines/stepping.py), one kernel for the attention (attention/stepping.py)
and one for the readout. What only adds up over the steps (gradients of weights, keys and values) is computed after the
last; what does not depend on a step before (W x) before the first.

Where a cell, an attention or a batch has something that these kernels do not know, `Unfit` says what, and the wiring's
own loop runs, which is the definition.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention import Attention, Memory
from recurra.attention.additive import Additive
from recurra.attention.projected_dot import ProjectedDot
from recurra.attention.stepping import AttentionSteps, no_steps
from recurra.cells import AnyCell, AnyState, RecurrentDropout, WeightDrop, Zoneout
from recurra.cells.weights import is_bare
from recurra.engines.engine import DirectedCell, only_looped
from recurra.engines.graph import TYPES
from recurra.engines.plan import Buffer, Place, Plan, RowPass, Write
from recurra.engines.planning import PLANS, split_fixed
from recurra.engines.replay import is_differentiated
from recurra.engines.stepping import (
    CellSteps,
    Copy,
    Kind,
    Part,
    Room,
    backward_passes,
    clear,
    forward_passes,
    masked,
    multiplied,
    summed_product,
    total_of,
)
from recurra.engines.triton_kernels import Address, Launch, functions, launch
from recurra.engines.triton_source import Kernel, kernel
from recurra.engines.values import NoPlan, Value, constant
from recurra.errors import EngineError
from recurra.padding import Padded
from recurra.products.triton_here import KernelsError, kernels_for, say_once, why_no_kernels
from recurra.stacks.recurrent import Recurrent
from recurra.wirings.querying import memory_of
from recurra.wirings.wiring import Readout, Source, Wiring, WiringState

Gradients: TypeAlias = dict[str, Callable[[], Tensor | None]]
"""Of each tensor that a loop was given, computed when asked for."""


class Unfit(Exception):
    """A loop cannot run by these kernels; the message is the reason, in words."""


# One small kernel each: the readout, and dropout between layers on the way back


class Pass:
    """A row pass of its own, on some tensors."""

    def __init__(self, printed: Kernel, tensors: dict[str, Tensor], rows: int) -> None:
        found = [tensors[buffer.name] for buffer, _ in printed.arguments]
        addresses = [
            Address(each, 0, 0) if each.dim() == 1 else Address(each, each.stride(1), each.stride(0)) for each in found
        ]
        call = functions([printed])[printed.name]
        self.launch: Launch = launch(printed, call, addresses, None, addresses[0].first, rows)

    def __call__(self, t: int) -> None:
        self.launch(t)


def summed(leaf: str, kinds: Sequence[Kind], width: int) -> tuple[Value, list[Buffer], dict[Buffer, int]]:
    """A value that is a sum of parts, their buffers, and of how many partial sums each consists."""
    buffers = [kind.buffer(f"{leaf} {n}", width) for n, kind in enumerate(kinds)]
    parts = {buffer: kind.parts for buffer, kind in zip(buffers, kinds, strict=True)}
    return Value("leaf", (), width, leaf), buffers, parts


@functools.lru_cache(maxsize=64)
def readout_kernel(width: int, parts: int, base: Place | None, rate: float) -> Kernel:
    """h̃ = m ∘ tanh(product + base) / (1 - rate), of a product in so many partial sums."""
    product = Buffer("product", Place.ROWS, width)
    a = Value("leaf", (), width, "a")
    reads = {a: [(product, 0)]}
    if base is not None:
        reads[a].append((Buffer("base", base, width), 0))
    h = Value("tanh", (a,), width)
    if rate:
        mask = Value("leaf", (), width, "mask")
        reads[mask] = [(Buffer("mask", Place.SEQUENCE, width), 0)]
        h = masked(h, mask, rate)
    row_pass = RowPass("readout", reads, [Write(h, Buffer("h", Place.SEQUENCE, width))])
    return kernel(row_pass, "readout", {product: parts})


@functools.lru_cache(maxsize=64)
def readout_back_kernel(width: int, gradients: tuple[Kind, ...], rate: float) -> Kernel:
    """da = m ∘ dh̃ / (1 - rate) ∘ (1 - tanh² a); tanh a = (1 - rate) h̃ wherever m is not 0."""
    g, buffers, parts = summed("gradient", gradients, width)
    h = Value("leaf", (), width, "h")
    reads = {g: [(buffer, 0) for buffer in buffers], h: [(Buffer("h", Place.SEQUENCE, width), 0)]}
    tanh = Value("mul", (h, constant(1.0 - rate)), width) if rate else h
    slope = Value("sub", (constant(1.0), Value("mul", (tanh, tanh), width)), width)
    if rate:
        mask = Value("leaf", (), width, "mask")
        reads[mask] = [(Buffer("mask", Place.SEQUENCE, width), 0)]
        g = masked(g, mask, rate)
    da = Value("mul", (g, slope), width)
    return kernel(RowPass("back", reads, [Write(da, Buffer("da", Place.SEQUENCE, width))]), "readout_back", parts)


@functools.lru_cache(maxsize=64)
def masking_kernel(width: int, kind: Kind, rate: float) -> Kernel:
    """m ∘ d / (1 - rate)."""
    d, [buffer], parts = summed("gradient", [kind], width)
    mask = Value("leaf", (), width, "mask")
    reads = {d: [(buffer, 0)], mask: [(Buffer("mask", Place.SEQUENCE, width), 0)]}
    out = Buffer("out", Place.ROWS, width)
    return kernel(RowPass("masking", reads, [Write(masked(d, mask, rate), out)]), "masking", parts)


class ReadoutSteps:
    """h̃_t = m ∘ tanh(W [s_t; context_t] + base) / (1 - rate), in a loop."""

    def __init__(
        self,
        room: Room,
        weight: Tensor,
        base: Tensor | None,
        operand: Tensor,
        out: Tensor,
        mask: Tensor | None,
        rate: float,
    ) -> None:
        """
        base       b (F,), or what a summary adds to each row, (B, F)
        operand    [s; context] (T, B, ·)
        out        h̃ (T, B, F)
        mask       m (T, B, F), of 0 and 1; None without dropout
        """
        self.room, self.operand, self.out, self.mask = room, operand, out, mask
        self.rate = rate if mask is not None else 0.0
        self.weight = weight.to(room.dtype)
        self.product = room.once(len(weight), room.parts(weight.shape[1], len(weight)))
        self.tensors = {"product": self.product, "h": out}
        place = None
        if base is not None:
            place = Place.SHARED if base.dim() == 1 else Place.ROWS
            self.tensors["base"] = base.float() if base.dim() == 1 else base.float().unsqueeze(0)
        if mask is not None:
            self.tensors["mask"] = mask
        self.run = Pass(readout_kernel(len(weight), len(self.product), place, self.rate), self.tensors, room.rows)

    def forward(self, t: int) -> None:
        multiplied(self.operand[t], self.weight.t(), self.product)
        self.run(t)

    def begin_backward(self) -> None:
        self.da = self.room.sequence(len(self.weight))
        width, terms = self.weight.shape[::-1]
        self.d_operand = self.room.once(width, self.room.parts(terms, width))

    def prepare_backward(self, gradients: Sequence[Part]) -> None:
        printed = readout_back_kernel(len(self.weight), tuple(part.kind for part in gradients), self.rate)
        tensors = self.tensors | {f"gradient {n}": part.tensor for n, part in enumerate(gradients)} | {"da": self.da}
        self.run_back = Pass(printed, tensors, self.room.rows)

    def backward(self, t: int) -> None:
        self.run_back(t)
        multiplied(self.da[t], self.weight, self.d_operand)

    def d_parts(self, sizes: Sequence[int]) -> Iterator[Part]:
        """The gradient of each part of [s; context]."""
        return (Part(each, is_sequence=False) for each in self.d_operand.split(list(sizes), dim=2))

    def weight_gradient(self) -> Tensor:
        return summed_product(self.da.flatten(0, 1), self.operand.flatten(0, 1))


# What a loop is given


class Inputs(NamedTuple):
    """What a cell reads: W [x; e] + b, or what its `project` made of x before the loop, and W e."""

    is_linear: bool
    known: int  # numbers of x, which are known before the loop
    extra: int  # numbers of e


class CellPart(NamedTuple):
    """A cell as a loop runs it; its tensors have names that begin with its own."""

    name: str
    plan: Plan
    rows: list[Tensor]
    weights: int
    inputs: Inputs


class Pieces:
    """The tensors that steps of a wiring are given, and the cells and the attention that run them."""

    training = False
    """Whether gradients are recorded."""

    returns = True
    """Whether there may be a way back."""

    def __init__(self, wiring: Wiring, x: Tensor, source: Source, each: int = 1) -> None:
        """
        x       (N, T, I)
        each    so many rows of N look at one source, one after the other
        """
        check(wiring, x, source, each)
        self.kind = type(wiring)
        self.each = each
        self.names: list[str] = []
        self.dtype = dtype_of(wiring, x)
        self.memory: Memory = memory_of(source)
        self.given: dict[str, Tensor] = {}
        self.x = x
        self.rows, self.steps = x.shape[:2]
        self.attention: Attention = wiring.attention  # type: ignore[assignment]
        self.add_attention()

    # What it is given

    def add_attention(self) -> None:
        if (reason := no_steps(self.attention, self.memory)) is not None:
            raise Unfit(reason)
        self.given["keys"] = self.memory.keys.to(self.dtype)
        self.given["values"] = self.memory.values.to(self.dtype)
        attention = self.attention
        if isinstance(attention, Additive):
            self.given["v"] = attention.v
        if isinstance(attention, Additive) or (isinstance(attention, ProjectedDot) and attention.heads > 1):
            self.given["from query"] = attention.from_query.weight

    def add_cell(self, name: str, cell: AnyCell, state: AnyState, fixed: Any, x: Tensor | None, extra: int) -> CellPart:
        """Take up a cell which reads x (B, T, I), or nothing, and besides an extra input of so many numbers."""
        reader = DirectedCell(cell, state, fixed)
        plan = PLANS.plan(reader, self.x)
        if isinstance(plan, str):
            raise Unfit(f"'{cell.name}' has no plan: {plan}")
        rows, weights = split_fixed(plan, reader)
        if torch.is_grad_enabled() and any(row.requires_grad for row in rows):
            raise Unfit(f"'{cell.name}' needs the gradient of a value in `fixed` that differs between rows")
        inputs = self.add_inputs(name, cell, fixed, x, extra)
        self.given |= {f"{name} state {k}": each for k, each in enumerate(state)}
        self.given |= {f"{name} weight {n}": each for n, each in enumerate(weights)}
        part = CellPart(name, plan, rows, len(weights), inputs)
        try:
            kinds = (Kind(True, 1), Kind(True, 1))
            forward_passes(plan, "forward", kinds, ())
            backward_passes(plan, kinds, tuple((Kind(True, 1),) for _ in plan.states))
        except NoPlan as reason:
            raise Unfit(f"'{cell.name}' has no kernels: {reason}") from reason
        return part

    def add_inputs(self, name: str, cell: AnyCell, fixed: Any, x: Tensor | None, extra: int) -> Inputs:
        """Take up what a cell makes of x and the extra input."""
        known = 0 if x is None else x.shape[2]
        linear, is_direct = projection(cell, fixed, self.x, is_needed=extra > 0)
        if linear is not None and is_direct:
            if x is not None:
                self.given["x"] = x
            self.given[f"{name} W"] = linear.weight
            if linear.bias is not None:
                self.given[f"{name} bias"] = linear.bias
            return Inputs(True, known, extra)
        parts = [] if x is None else [x]
        if linear is not None and extra:
            parts.append(self.x.new_zeros(self.rows, self.steps, extra))
            self.given[f"{name} W"] = linear.weight[:, known:]
        self.given[f"{name} inputs"] = cell.project(torch.cat(parts, dim=2), fixed)
        return Inputs(False, known, extra)

    def names_and_tensors(self) -> tuple[list[str], list[Tensor]]:
        """What it was given, which it then forgets."""
        given, self.given = self.given, {}
        return list(given), list(given.values())

    # Its pieces

    def start(self, tensors: Sequence[Tensor]) -> None:
        self.at = dict(zip(self.names, (each.detach() for each in tensors), strict=True))
        self.room = Room(self.rows, self.steps, self.dtype, self.x.device)

    def cell_steps(self, part: CellPart) -> CellSteps:
        at, name = self.at, part.name
        weights = [at[f"{name} weight {n}"] for n in range(part.weights)]
        known, size = part.inputs.known, part.inputs.extra
        W = at[f"{name} W"].to(self.dtype) if f"{name} W" in at else None
        extra = None
        if W is not None and size:
            extra = W[:, known:] if part.inputs.is_linear else W
        steps = CellSteps(part.plan, self.room, weights, part.rows, extra, training=self.training)
        if not part.inputs.is_linear:
            steps.inputs = outside(at[f"{name} inputs"])
            return steps
        bias = at.get(f"{name} bias")
        if known:
            assert W is not None
            projected = functional.linear(self.x_by_step, W[:, :known], None if bias is None else bias.to(self.dtype))
            steps.inputs = [Part(projected, is_sequence=True)]
            self.W_known = W[:, :known]
        elif bias is not None:
            steps.inputs = [Part(bias.expand(self.steps, self.rows, -1), is_sequence=True)]
        return steps

    @functools.cached_property
    def x_by_step(self) -> Tensor:
        """x as products read it, (T, B, I)."""
        return self.room.sequence(self.x.shape[2]).copy_(self.at["x"].transpose(0, 1))

    def attention_steps(self, query: Tensor, *contexts: Tensor, beside: CellSteps | None = None) -> AttentionSteps:
        memory = self.memory._replace(keys=self.at["keys"], values=self.at["values"])
        v, from_query = self.at.get("v"), self.at.get("from query")
        return AttentionSteps(
            self.attention,
            self.room,
            memory,
            v,
            from_query,
            query,
            contexts,
            beside,
            self.each,
            returns=self.returns,
        )

    def states_of(self, part: CellPart) -> list[Tensor]:
        return [self.at[f"{part.name} state {k}"] for k in range(len(part.plan.states))]


class Loop(Pieces, ABC):
    """One call of a wiring's loop: the tensors it is given, and its way there and back."""

    def run(self) -> tuple[Tensor, ...]:
        self.names, given = self.names_and_tensors()
        self.training = torch.is_grad_enabled() and any(each.requires_grad for each in given)
        with torch.autocast(self.x.device.type, enabled=False):
            return tuple(Fused.apply(self, *given))  # type: ignore[no-untyped-call]

    def launching(self) -> AbstractContextManager[None]:
        """Inside, kernels are launched. Where those of the way back fail, a training computes the step again."""
        return kernels_for(self.x.device, self.kind, f"the loop of '{self.kind.__name__}'")

    @abstractmethod
    def forward(self) -> tuple[Tensor, ...]:
        """All steps; what they make, (B, T, ·), and where they looked."""

    @abstractmethod
    def backward(self, *gradients: Tensor | None) -> Gradients:
        """All steps back."""

    def of_cell(self, part: CellPart, steps: CellSteps) -> Gradients:
        """The gradients of what a cell was given, but for its start states."""
        weights = functools.cache(steps.weight_gradients)
        found: Gradients = {f"{part.name} weight {n}": lambda n=n: weights()[n] for n in range(part.weights)}  # type: ignore[misc]
        if not part.inputs.is_linear:
            found[f"{part.name} inputs"] = lambda: steps.d_inputs.transpose(0, 1)
            found[f"{part.name} W"] = steps.extra_gradient
            return found
        by_row = steps.d_inputs.flatten(0, 1)
        found[f"{part.name} bias"] = lambda: total_of(by_row)
        if part.inputs.known:
            found["x"] = lambda: (by_row @ self.W_known).unflatten(0, (self.steps, -1)).transpose(0, 1)

        def of_weight() -> Tensor:
            parts = [summed_product(by_row, self.x_by_step.flatten(0, 1))] if part.inputs.known else []
            parts += [steps.extra_gradient()] if part.inputs.extra else []
            return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

        found[f"{part.name} W"] = of_weight
        return found

    def of_attention(self, steps: AttentionSteps) -> Gradients:
        memory = functools.cache(steps.memory_gradients)
        return {
            "keys": lambda: memory()[0],
            "values": lambda: memory()[1],
            "v": lambda: memory()[2],
            "from query": steps.query_gradient,
        }


class Fused(torch.autograd.Function):
    """All steps of a loop, forward and back."""

    @staticmethod
    def forward(ctx: Any, loop: Loop, *tensors: Tensor) -> tuple[Tensor, ...]:
        with loop.launching():
            loop.start(tensors)
            results = loop.forward()
        ctx.set_materialize_grads(False)
        if loop.training:
            ctx.loop, ctx.dtypes = loop, [each.dtype for each in tensors]
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            raise EngineError(
                "second derivatives of a decoder that runs by kernels of its own are not supported. "
                "Set model.engine = 'loop'."
            )
        loop: Loop = ctx.loop
        with loop.launching(), torch.no_grad(), torch.autocast(loop.x.device.type, enabled=False):
            found = loop.backward(*gradients)
            answers = [
                found[name]() if wanted else None
                for name, wanted in zip(loop.names, ctx.needs_input_grad[1:], strict=True)
            ]
        return None, *(
            None if each is None else each.to(dtype) for each, dtype in zip(answers, ctx.dtypes, strict=True)
        )


def fused(wiring: Wiring, x: Tensor, make: Callable[[], Loop]) -> tuple[Tensor, ...] | None:
    """What a loop of kernels computes; None where there is none for this call: on a GPU, a warning says why, once."""
    try:
        return make().run()
    except Unfit as reason:
        if x.is_cuda:
            say_once(
                f"the loop of '{type(wiring).__name__}' runs without kernels of its own, which is slower: {reason}"
            )
        return None
    except KernelsError:  # a warning has said so
        return None


def check(wiring: Wiring, x: Tensor, source: Source, each: int = 1) -> None:
    """Raise Unfit if no such steps can run, whatever the cells are; `each` rows look at one source."""
    for reason in (why_no_kernels(x.device, type(wiring)), only_looped(Padded.full(x))):
        if reason is not None:
            raise Unfit(reason)
    if wiring.shape.readout != "tanh":
        raise Unfit(f"the readout is '{wiring.shape.readout}'")
    if len(memory_of(source).mask) * each != len(x):
        raise Unfit("a source has several rows")
    if any(module._forward_hooks or module._forward_pre_hooks for module in wiring.modules()):
        raise Unfit("somebody watches a part of the decoder by hooks")


def dtype_of(wiring: Wiring, x: Tensor) -> torch.dtype:
    """In which products are computed."""
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
    if dtype not in TYPES or x.dtype not in TYPES:
        raise Unfit(f"the kernels support float32, bfloat16 and float16, but the batch has {x.dtype}")
    for parameter in wiring.parameters():
        if parameter.dtype != x.dtype and not torch.is_autocast_enabled(device):
            raise Unfit(f"the weights have {parameter.dtype}, but the batch has {x.dtype}")
        if parameter.dtype not in TYPES:
            raise Unfit(f"the kernels support float32, bfloat16 and float16, but the weights have {parameter.dtype}")
    return dtype


def cells_of(stack: nn.Module) -> list[AnyCell]:
    """The cells of a stack whose layers just read each other."""
    if type(stack) is not Recurrent or stack.skip != "none" or stack.mix != "last":
        raise Unfit("its layers do more than read each other")
    found: list[Any] = [layer[0] for layer in stack.cells]  # type: ignore[index]  # a ModuleList for each layer
    return found


def kept(room: tuple[int, int, int], rate: float, like: Tensor) -> Tensor:
    """A mask (T, B, n) of dropout: 0 with probability `rate`, otherwise 1."""
    return torch.empty(room, dtype=torch.uint8, device=like.device).bernoulli_(1.0 - rate)


# The inputs of a cell: W [x; e] + b = (W_x x + b) + W_e e


def projection(cell: AnyCell, fixed: Any, like: Tensor, *, is_needed: bool) -> tuple[nn.Linear | None, bool]:
    """The W x + b that a cell makes of its inputs, and whether that is all that its wrappers read. Where it is not
    needed, None instead of Unfit."""
    try:
        bare, own, is_direct = unwrapped(cell, fixed)
        return linear_of(bare, own, like), is_direct
    except Unfit:
        if is_needed:
            raise
        return None, False


def unwrapped(cell: AnyCell, fixed: Any) -> tuple[AnyCell, Any, bool]:
    """The cell inside all wrappers, its `fixed`, and whether its inputs are all that the wrappers read."""
    is_direct = True
    while True:
        if type(cell) is Zoneout:
            is_direct = is_direct and not cell.training
        elif type(cell) is RecurrentDropout:
            if fixed.input_mask is not None:
                raise Unfit("recurrent dropout masks what the cell reads at each step")
            is_direct = is_direct and not cell.on_candidate
            fixed = fixed.cell
        elif type(cell) is not WeightDrop:
            return cell, fixed, is_direct
        cell = cell.cell


LINEAR: WeakKeyDictionary[AnyCell, nn.Linear | None] = WeakKeyDictionary()
"""By which module each cell projects its inputs; None where it does more than that."""


def linear_of(cell: AnyCell, fixed: Any, like: Tensor) -> nn.Linear:
    """The W x + b that a cell's `project` is."""
    if cell not in LINEAR:
        LINEAR[cell] = found_linear(cell, fixed, like)
    linear = LINEAR[cell]
    if linear is None or not is_bare(linear):
        raise Unfit(f"what '{cell.name}' makes of its inputs is not a product and a bias")
    return linear


def found_linear(cell: AnyCell, fixed: Any, like: Tensor) -> nn.Linear | None:
    """Watch which module `project` hands its input to, and whether it returns what that one answered."""
    seen: list[tuple[nn.Module, Any, Any]] = []
    modules = [each for each in cell.modules() if is_bare(each)]
    handles = [each.register_forward_hook(lambda m, given, out: seen.append((m, given[0], out))) for each in modules]
    try:
        with torch.no_grad():
            x = like.new_zeros(len(like), cell.input_size)
            result = cell.project(x, fixed)
    finally:
        for handle in handles:
            handle.remove()
    if len(seen) != 1 or seen[0][1] is not x or seen[0][2] is not result:
        return None
    [(linear, _, _)] = seen
    assert isinstance(linear, nn.Linear)
    return linear


# The loops


class FeedingLoop(Loop):
    """s_t = cells([x_t; h̃_{t-1}], s_{t-1});  context_t = attend(s_t);  h̃_t = tanh(W [s_t; context_t])."""

    def __init__(
        self,
        wiring: Wiring,
        x: Tensor,
        state: WiringState,
        source: Source,
        stack: Recurrent,
        readout: Readout,
    ) -> None:
        super().__init__(wiring, x, source)
        cells = cells_of(stack)
        assert state.fed is not None, "`start` gives zeros"
        fixed = stack.fixed(len(x), x)
        sizes = [state.fed.shape[1], *(cell.hidden_size for cell in cells[:-1])]
        self.parts = [
            self.add_cell(f"layer {n}", cell, state.cells[n], fixed[n][0], x if n == 0 else None, sizes[n])
            for n, cell in enumerate(cells)
        ]
        self.given["fed"] = state.fed
        self.sizes = [cells[-1].hidden_size, self.attention.context_size]
        W, bias = readout.mix.weight, readout.mix.bias
        if readout.summarises:
            W, W_summary = W.split([sum(self.sizes), readout.mix.in_features - sum(self.sizes)], dim=1)
            assert source.summary is not None, "the decoder was made with a summary"
            self.given["base"] = functional.linear(source.summary, W_summary, bias)
        else:
            self.given["base"] = bias
        self.given["mix"] = W
        B, T, _ = x.shape
        self.between = stack.dropout if stack.training else 0.0
        self.masks = [kept((T, B, size), self.between, x) if self.between else None for size in sizes[1:]]
        self.rate = readout.dropout.rate if readout.dropout.training else 0.0
        self.mask = kept((T, B, len(W)), self.rate, x) if self.rate else None

    def forward(self) -> tuple[Tensor, ...]:
        at, T = self.at, self.steps
        self.cells = cells = [self.cell_steps(part) for part in self.parts]
        both = self.room.sequence(sum(self.sizes))
        s, context = both.split(self.sizes, dim=2)
        for n, (cell, part) in enumerate(zip(cells, self.parts, strict=True)):
            cell.start(self.states_of(part))
            cell.after = [memory[1:] for memory in cell.states]
            if n + 1 < len(cells):
                cell.copies = [Copy(cells[n + 1].read[:T], self.masks[n], self.between)]
            else:
                cell.copies = [Copy(s)]
                self.attending = self.attention_steps(s, context)
                cell.lends = self.attending.is_next_to_query and cell.may_lend()
            cell.prepare()
        cells[0].read[0].copy_(at["fed"])
        self.attending.prepare(cells[-1].forward_lent if cells[-1].lends else None)
        self.readout = ReadoutSteps(self.room, at["mix"], at["base"], both, cells[0].read[1:], self.mask, self.rate)
        for t in range(T):
            for cell in cells:
                cell.forward(t)
            self.attending.forward(t)
            self.readout.forward(t)
        return cells[0].read[1:].transpose(0, 1), self.attending.mean_weights()

    def backward(self, *gradients: Tensor | None) -> Gradients:
        d_features, d_weights = gradients
        cells, attending, readout = self.cells, self.attending, self.readout
        for cell in cells:
            cell.begin_backward()
        attending.begin_backward()
        readout.begin_backward()
        fed = cells[0].d_extra
        assert fed is not None
        assert attending.of_query is not None
        readout.prepare_backward([*outside(d_features), fed])
        d_s, d_context = readout.d_parts(self.sizes)
        masking: list[Pass | None] = []
        for n, cell in enumerate(cells):
            above = [d_s, attending.of_query] if n + 1 == len(cells) else [self.unmasked(n, masking)]
            cell.gradients = [cell.d_previous(k, is_next=True) for k in range(len(cell.states))]
            cell.gradients[0] = [*above, *cell.gradients[0]]
            cell.prepare_backward()
        lent = cells[-1].backward_lent if cells[-1].lends else None
        attending.prepare_backward([d_context], dense(d_weights), lent)
        clear([each for cell in cells for each in cell.left_by_the_last()])
        for t in reversed(range(self.steps)):
            readout.backward(t)
            attending.backward(t)
            for n in reversed(range(len(cells))):
                if n + 1 < len(cells) and (run := masking[n]) is not None:
                    run(t)
                cells[n].backward(t)
        found = self.of_attention(attending)
        for part, cell in zip(self.parts, cells, strict=True):
            found |= self.of_cell(part, cell)
            for k in range(len(cell.states)):
                found[f"{part.name} state {k}"] = functools.partial(cell.start_gradient, k)
        found["fed"] = lambda: fed.total(fed.tensor.shape[2])
        found["mix"] = readout.weight_gradient
        is_bias = self.at["base"].dim() == 1
        found["base"] = lambda: (
            total_of(readout.da.flatten(0, 1)) if is_bias else readout.da.sum(0, dtype=torch.float32)
        )
        return found

    def unmasked(self, n: int, masking: list[Pass | None]) -> Part:
        """The gradient of layer n's h from the layer above, past the dropout between them."""
        above, mask = self.cells[n + 1].d_extra, self.masks[n]
        assert above is not None
        if mask is None:
            masking.append(None)
            return above
        out = self.room.once(mask.shape[2], dtype=torch.float32)
        printed = masking_kernel(mask.shape[2], above.kind, self.between)
        masking.append(Pass(printed, {"gradient 0": above.tensor, "mask": mask, "out": out}, self.rows))
        return Part(out, is_sequence=False)


class InsideLoop(Loop):
    """context_t = attend(s_{t-1});  s_t = cell([x_t; context_t], s_{t-1})."""

    def __init__(
        self, wiring: Wiring, x: Tensor, state: WiringState, source: Source, stack: Recurrent, fixed: Any
    ) -> None:
        super().__init__(wiring, x, source)
        [cell] = cells_of(stack)
        size = self.attention.context_size
        self.part = self.add_cell("cell", cell, state.cells[0], fixed[0][0], x, size)

    def forward(self) -> tuple[Tensor, ...]:
        self.cell = cell = self.cell_steps(self.part)
        cell.start(self.states_of(self.part))
        cell.after = [memory[1:] for memory in cell.states]
        context = cell.read[: self.steps]
        self.attending = self.attention_steps(cell.states[0][: self.steps], context, beside=cell)
        self.attending.prepare()
        cell.prepare()
        for t in range(self.steps):
            self.attending.forward(t)
            cell.forward(t)
        return cell.after[0].transpose(0, 1), context.transpose(0, 1), self.attending.mean_weights()

    def backward(self, *gradients: Tensor | None) -> Gradients:
        d_s, d_context, d_weights = gradients
        cell, attending = self.cell, self.attending
        cell.begin_backward()
        attending.begin_backward()
        of_query = attending.of_query
        assert cell.d_extra is not None
        assert of_query is not None
        attending.prepare_backward([cell.d_extra, *outside(d_context)], dense(d_weights))
        cell.gradients = [cell.d_previous(k, is_next=True) for k in range(len(cell.states))]
        cell.gradients[0] = [*outside(d_s), of_query, *cell.gradients[0]]
        cell.prepare_backward()
        clear([*cell.left_by_the_last(), of_query.tensor])
        for t in reversed(range(self.steps)):
            cell.backward(t)
            attending.backward(t)
        found = self.of_attention(attending) | self.of_cell(self.part, cell)
        for k in range(len(cell.states)):
            found[f"cell state {k}"] = functools.partial(cell.start_gradient, k)
        width = cell.plan.states[0].width
        found["cell state 0"] = lambda: cell.start_gradient(0) + of_query.total(width)
        return found


class ConditionalLoop(Loop):
    """s'_t = cell₁(x_t, s_{t-1});  context_t = attend(s'_t);  s_t = cell₂(context_t, s'_t)."""

    def __init__(
        self,
        wiring: Wiring,
        x: Tensor,
        state: WiringState,
        source: Source,
        stacks: tuple[Recurrent, Recurrent],
        fixed: Any,
    ) -> None:
        super().__init__(wiring, x, source)
        [first], [second] = (cells_of(stack) for stack in stacks)
        size = self.attention.context_size
        self.parts = (
            self.add_cell("first", first, state.cells[0], fixed[0][0][0], x, 0),
            self.add_cell("second", second, state.cells[0], fixed[1][0][0], None, size),
        )

    def forward(self) -> tuple[Tensor, ...]:
        T = self.steps
        self.cells = first, second = [self.cell_steps(part) for part in self.parts]
        first.start(self.states_of(self.parts[0]))
        first.after = [memory[:T] for memory in second.states]
        second.after = [memory[1:] for memory in first.states]
        context = second.read[:T]
        self.attending = self.attention_steps(second.states[0][:T], context, beside=second)
        first.lends = self.attending.is_next_to_query and first.may_lend()
        first.prepare()
        second.prepare()
        self.attending.prepare(first.forward_lent if first.lends else None)
        for t in range(T):
            first.forward(t)
            self.attending.forward(t)
            second.forward(t)
        return second.after[0].transpose(0, 1), context.transpose(0, 1), self.attending.mean_weights()

    def backward(self, *gradients: Tensor | None) -> Gradients:
        d_s, d_context, d_weights = gradients
        first, second = self.cells
        attending = self.attending
        for each in (first, second, attending):
            each.begin_backward()
        assert second.d_extra is not None
        assert attending.of_query is not None
        count = range(len(first.states))
        first.gradients = [second.d_previous(k, is_next=False) for k in count]
        first.gradients[0] = [attending.of_query, *first.gradients[0]]
        second.gradients = [first.d_previous(k, is_next=True) for k in count]
        second.gradients[0] = [*outside(d_s), *second.gradients[0]]
        first.prepare_backward()
        second.prepare_backward()
        lent = first.backward_lent if first.lends else None
        attending.prepare_backward([second.d_extra, *outside(d_context)], dense(d_weights), lent)
        clear([*first.left_by_the_last(), *second.left_by_the_last()])
        for t in reversed(range(self.steps)):
            second.backward(t)
            attending.backward(t)
            first.backward(t)
        found = self.of_attention(attending)
        for part, cell in zip(self.parts, self.cells, strict=True):
            found |= self.of_cell(part, cell)
        for k in count:
            found[f"first state {k}"] = functools.partial(first.start_gradient, k)
            found[f"second state {k}"] = lambda: None  # it begins from what the first one leaves
        return found


def outside(gradient: Tensor | None) -> list[Part]:
    """A gradient (B, T, w) from outside of a loop, as a share of a sum."""
    if gradient is None:
        return []
    return [Part(dense(gradient).transpose(0, 1), is_sequence=True)]  # type: ignore[union-attr]


def dense(gradient: Tensor | None) -> Tensor | None:
    """The same with the numbers of a row side by side."""
    return gradient if gradient is None or gradient.stride(2) == 1 else gradient.contiguous()
