"""torch's own kernels (oneDNN or MKL on the CPU, cuDNN on a GPU), where their equations are the cell's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells import GRU, LSTM, AnyCell, Elman, Product, Wrapper
from recurra.cells.weights import is_bare, leaves
from recurra.engines.cost import Estimate, Rates, in_graph
from recurra.engines.engine import DirectedCell, Layer, Reading, Work, only_looped
from recurra.engines.replay import replayable
from recurra.padding import Padded, beside
from recurra.products.cross_entropy import ALIGNED

# Added to a gate it makes σ exactly 0 or 1. Padded inputs are 0 and |h| ≤ 1, so only a Σ|U| near 10,000 could resist.
HOLD = 1e4


FUSED = Estimate(  # on the CPU, torch runs all steps of an LSTM in one kernel
    training=Rates(call=430e-6, weight=2.5e-10, number=3.2e-9, product=4e-11),
    inference=Rates(call=190e-6, weight=7e-11, number=6e-10, product=1.3e-11),
)
STEP_BY_STEP = Estimate(  # and those of a GRU or RNN one operation after the other
    training=Rates(call=280e-6, gate=25e-6, weight=4e-10, number=8.5e-9, product=3.4e-11),
    inference=Rates(call=130e-6, gate=4e-6, weight=7e-11, number=3.4e-9, product=2.9e-11),
)
ON_GPU = Estimate(training=Rates(call=1.3e-3, gate=3e-6), inference=Rates(call=300e-6, gate=1e-6))
# Of an LSTM in bfloat16 at the seven shapes of benchmarks/results/cells_on_gpu.txt, each within 6 %.
IN_GRAPH = in_graph(Rates(call=20e-6, gate=2.97e-6, weight=6.4e-13, number=2.25e-11))

FLOAT16: dict[tuple[int, int], float] = {
    (1, 512): 1.00,
    (32, 512): 0.545,
    (128, 512): 1.47,
    (64, 1024): 1.03,
    (256, 1024): 1.00,
    (64, 768): 1.03,
    (16, 2048): 1.02,
}
"""Rows and units: the time of an LSTM in float16 over that in bfloat16, of the same measurement. In float16 torch lets
cuDNN choose among more kernels, by rules that no formula of sizes tells; other sizes take what the nearest has."""


class Kernel(NamedTuple):
    """One of torch's recurrent functions, with the cell's weights as it takes them."""

    function: str  # lstm, gru, rnn_tanh or rnn_relu
    W: Tensor  # (G, I)
    U: Tensor  # (G, H)
    b: Tensor | None  # (G,)
    b_state: Tensor | None  # (G,): torch has a second bias beside U


class Vendor:
    """Runs LSTM, GRU (reset after) and Elman (tanh, relu) on torch's kernels, ragged rows included."""

    name = "vendor"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        for reader in layer:
            reason = mismatch(reader.cell, reader.fixed)
            if reason is not None:
                return reason
            if every and len(reader.state) > 1:
                return "torch's LSTM does not return c for every step"
            if reader.resets is not None:
                if kernel(reader.cell, reader.fixed).function == "rnn_tanh":
                    return "torch's tanh RNN cannot reset its state to zeros within a row"
                if not reader.resets.is_zero:
                    return "torch's kernels can only reset the state to zeros, but this cell starts from other values"
        return None

    def cost(self, work: Work) -> float:
        work = work._replace(steps=work.steps + work.resets)  # one more before each
        if work.device != "cpu":
            times = float16_times(work.rows, work.hidden_size) if work.graphed and is_float16(work) else 1.0
            return times * (IN_GRAPH if work.graphed else ON_GPU).seconds(work)
        return (FUSED if work.cell is LSTM else STEP_BY_STEP).seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        readings = [read(reader, x, every) for reader in layer]
        if not (x.values.is_cuda and torch.is_grad_enabled()):
            return readings
        # torch has second derivatives of its kernels on the CPU, but none of cuDNN's.
        return [replayable(reading, reader, x, every) for reading, reader in zip(readings, layer, strict=True)]


def is_float16(work: Work) -> bool:
    return work.cell is LSTM and torch.float16 in (work.dtype, work.lower)


def float16_times(rows: int, units: int) -> float:
    """How many times its time in bfloat16 an LSTM in float16 takes, at the nearest size that was measured.

    >>> float16_times(40, 500), float16_times(100, 512), float16_times(16, 4096)
    (0.545, 1.47, 1.02)
    """
    nearest = min(FLOAT16, key=lambda size: abs(math.log2(max(1, rows) / size[0])) + abs(math.log2(units / size[1])))
    return FLOAT16[nearest]


def mismatch(cell: AnyCell, fixed: Any) -> str | None:
    """Why no kernel of torch computes this cell's equations, in words; None where one does."""
    cell, fixed = unwrapped(cell, fixed)
    if isinstance(cell, Wrapper):
        return f"torch has no kernel for '{cell.name}' around '{cell.cell.name}' in this mode"
    if any(U.mask is not None for U in leaves(fixed, Product)):
        return "torch has no kernel that masks h before U"
    if isinstance(cell, LSTM | GRU | Elman) and not is_bare(cell.from_input):
        return "torch's kernels use W directly, but `from_input` has hooks or a custom `forward`"
    if type(cell) is LSTM:
        return None if cell.candidate == "tanh" else f"torch's LSTM has a tanh candidate, this one '{cell.candidate}'"
    if type(cell) is GRU:
        if cell.reset != "after":
            return "torch's GRU applies the reset gate after the product, this one before it"
        return None if cell.candidate == "tanh" else f"torch's GRU has a tanh candidate, this one '{cell.candidate}'"
    if type(cell) is Elman:
        known = ("tanh", "relu")
        return None if cell.activation in known else f"torch's RNN has tanh or relu, this one '{cell.activation}'"
    return f"torch has no kernel for '{cell.name}'"


def kernel(cell: AnyCell, fixed: Any) -> Kernel:
    """The kernel that computes this cell's equations, which must have no mismatch."""
    cell, fixed = unwrapped(cell, fixed)
    if type(cell) is GRU:
        return gru_kernel(cell, torch.cat([fixed.U_rz.weight, fixed.U_h.weight]))
    assert isinstance(cell, LSTM | Elman)
    b = cell.from_input.bias
    function = "lstm" if isinstance(cell, LSTM) else f"rnn_{cell.activation}"
    return Kernel(function, cell.from_input.weight, fixed.U.weight, b, None if b is None else torch.zeros_like(b))


def gru_kernel(cell: GRU, U: Tensor) -> Kernel:
    W: Tensor = cell.from_input.weight
    b: Tensor | None = cell.from_input.bias
    H = cell.hidden_size
    b_state = None if b is None or cell.after_bias is None else torch.cat([b.new_zeros(2 * H), cell.after_bias])
    if cell.update == "take":
        # torch keeps: h' = z h + (1 − z) ĥ. As 1 − σ(a) = σ(−a), its z is ours with the weights negated.
        sign = W.new_ones(3 * H)
        sign[H : 2 * H] = -1
        W, U, b = W * sign[:, None], U * sign[:, None], None if b is None else b * sign
    return Kernel("gru", W, U, b, b_state)


def unwrapped(cell: AnyCell, fixed: Any) -> tuple[AnyCell, Any]:
    """The cell inside as many wrappers as now change nothing but `fixed`."""
    while isinstance(cell, Wrapper) and (bare := cell.bare(fixed)) is not None:
        cell, fixed = bare
    return cell, fixed


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading:
    """One cell over one batch. A backward reader is a forward one on reversed rows."""
    cell, state, fixed, backward, resets = reader
    found, rows = kernel(cell, fixed), x.reversed() if backward else x
    if resets is None:
        outputs, last = read_rows(found, rows, state)
    else:
        mask = resets.in_reading_order(x.lengths, backward)
        outputs, last = read_rows(*with_pauses(found, rows, state, mask))
        outputs = Padded(without_pauses(outputs, mask), x.lengths).zeroed().values
    outputs = Padded(outputs, x.lengths).reversed().values if backward else outputs
    return Reading(outputs, cell.State(outputs) if every else cell.State(*last))


def read_rows(found: Kernel, x: Padded, state: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    """Outputs (B, T, H), zero on padding, and the state after each row's last real step."""
    if x.is_full:
        return call(found, x.values, state)
    beyond = (~x.mask).unsqueeze(-1)
    # A row without a single real step keeps its state whatever that is; what it computes on the way is not used.
    empty = (beside(x.lengths, x.values) == 0).unsqueeze(1)
    outputs, last = call(*held(found, x.values, beyond), (state[0].masked_fill(empty, 0), *state[1:]))
    outputs = outputs.masked_fill(beyond, 0)
    # Only c is held over padded steps; the last real h stands among the outputs.
    return outputs, [last_real(outputs, x.lengths, state[0]), *last[1:]]


def with_pauses(
    found: Kernel, x: Padded, state: tuple[Tensor, ...], mask: Tensor
) -> tuple[Kernel, Padded, tuple[Tensor, ...]]:
    """Rows with one more step before each reset, which leaves a state of zeros behind; mask in the order of reading.

    Such a step has inputs of zero but for a column of its own, whose weights drive all gates of an LSTM to 0 but the
    candidate's, so that c' = 0 c + 0 ĉ and h' = 0 tanh(c'); those of a GRU likewise, with h' = 0 h + 1 tanh(b − b); and
    a relu far below 0. A reset before the first step needs none: the row just starts from zeros.
    """
    H = found.U.shape[1]
    column = found.W.new_zeros(len(found.W), 1)
    if found.function == "lstm":
        column[: 2 * H], column[3 * H :] = -HOLD, -HOLD
    elif found.function == "gru":
        column[: 2 * H] = -HOLD
        column = column if found.b is None else torch.cat([column[: 2 * H], -found.b[2 * H :].unsqueeze(1)])
    else:
        column.fill_(lowest(x.values, column))
    state = tuple(field.masked_fill(mask[:, :1], 0) for field in state)
    pauses = mask[:, 1:].sum(1)
    B, T, width = *mask.shape, x.values.shape[-1]
    longest = T + int(pauses.max())
    places = places_of(mask, longest)
    more = columns_after(width, x.values)
    values = x.values.new_zeros(B * longest, width + more)
    values[:, :width].index_copy_(0, places.flatten(), x.values.flatten(0, 1))
    values[places[:, 1:][mask[:, 1:]] - 1, width] = 1
    longer = Padded(values.view(B, longest, width + more), x.lengths + pauses.cpu())
    return found._replace(W=with_columns(found.W, column, more)), longer, state


def without_pauses(outputs: Tensor, mask: Tensor) -> Tensor:
    """The outputs of the steps that were there before."""
    places = places_of(mask, outputs.shape[1])
    return outputs.flatten(0, 1).index_select(0, places.flatten()).view(*mask.shape, outputs.shape[-1])


def places_of(mask: Tensor, longest: int) -> Tensor:
    """(B, T): where each step stands among rows of that many steps, pauses included, one row after the other."""
    before = torch.cat([torch.zeros_like(mask[:, :1]), mask[:, 1:]], dim=1)
    rows = torch.arange(len(mask), device=mask.device).unsqueeze(1) * longest
    return before.cumsum(1) + torch.arange(mask.shape[1], device=mask.device) + rows


def kernel_type(device: str, autocast: torch.dtype | None) -> torch.dtype | None:
    """The type to which numbers must be cast before a kernel; None where torch itself does what autocast says.

    On a GPU torch's autocast gives float16 to cuDNN's recurrent kernels whatever type was asked for, and float16 has
    neither the range nor the small numbers of bfloat16, which is therefore used without a loss scaler.

    >>> kernel_type("cuda", torch.bfloat16)
    torch.bfloat16
    >>> kernel_type("cuda", torch.float16), kernel_type("cpu", torch.bfloat16), kernel_type("cuda", None)
    (None, None, None)
    """
    return autocast if device == "cuda" and autocast == torch.bfloat16 else None


def autocast_type(device: str) -> torch.dtype | None:
    """The type to which autocast casts on a device now; None where it is off."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def call(found: Kernel, values: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    """Outputs (B, T, H) and the state after step T."""
    device = values.device.type
    dtype = kernel_type(device, autocast_type(device))
    if dtype is None or values.dtype == torch.float64:  # autocast leaves float64 as it is
        return called(found, values, state)
    return called_in(dtype, found, values, state)


def called_in(
    dtype: torch.dtype, found: Kernel, values: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, list[Tensor]]:
    """The same in a certain type, whatever autocast would do."""
    b, b_state = (None if bias is None else bias.to(dtype) for bias in (found.b, found.b_state))
    cast = Kernel(found.function, found.W.to(dtype), found.U.to(dtype), b, b_state)
    with torch.autocast(values.device.type, enabled=False):
        return called(cast, values.to(dtype), tuple(field.to(dtype) for field in state))


def called(found: Kernel, values: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    weights = [weight for weight in (found.W, found.U, found.b, found.b_state) if weight is not None]
    if values.is_cuda:
        weights = in_one_chunk([*weights, *[found.W.new_zeros(len(found.W))] * (4 - len(weights))])
    start = [field.unsqueeze(0).contiguous() for field in state]
    function: Callable[..., tuple[Tensor, ...]] = getattr(torch, found.function)
    outputs, *last = function(
        values,
        start if found.function == "lstm" else start[0],
        weights,
        has_biases=len(weights) == 4,
        num_layers=1,
        dropout=0.0,
        train=torch.is_grad_enabled(),
        bidirectional=False,
        batch_first=True,
    )
    return outputs, [field.squeeze(0) for field in last]


def in_one_chunk(weights: list[Tensor]) -> list[Tensor]:
    """The same weights as views of one piece of memory, biases among them: else cuDNN copies them itself and warns."""
    chunk = torch.cat([weight.flatten() for weight in weights])
    parts = chunk.split([weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)]


def held(found: Kernel, values: Tensor, beyond: Tensor) -> tuple[Kernel, Tensor]:
    """One more input column, 1 on padded steps, that keeps the state from running on there.

    In an LSTM its weights drive f to 1 and i to 0, so that c stays exactly as it is; in a relu network, whose h could
    grow without bound, they drive h to 0. Others need none. What this costs beside packing the rows: docs/engines.md.
    """
    H = found.U.shape[1]
    column = found.W.new_zeros(len(found.W), 1)
    if found.function == "lstm":
        column[:H], column[H : 2 * H] = -HOLD, HOLD
    elif found.function == "rnn_relu":
        column.fill_(lowest(values, column))
    else:
        return found, values
    more = columns_after(values.shape[-1], values)
    return found._replace(W=with_columns(found.W, column, more)), with_columns(values, beyond.to(values.dtype), more)


def columns_after(width: int, like: Tensor) -> int:
    """How many columns to add where one is needed: on a GPU, products of sizes that are no multiple of 8 are slow.

    >>> columns_after(512, torch.zeros(1))
    1
    """
    return ALIGNED - width % ALIGNED if like.is_cuda else 1


def with_columns(tensor: Tensor, column: Tensor, count: int) -> Tensor:
    """So many columns after those of a tensor (..., n): the one that is given (..., 1), then zeros."""
    return torch.cat([tensor, functional.pad(column, (0, count - 1))], dim=-1)


def lowest(values: Tensor, column: Tensor) -> float:
    """Far below 0, in the type that the kernel computes in: what is finite in float32 need not be so in float16."""
    return -torch.finfo(autocast_type(values.device.type) or column.dtype).max / 4


def last_real(outputs: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
    """h after each row's last real step; a row without any keeps the h it started with."""
    lengths = beside(lengths, outputs)
    last = outputs[torch.arange(len(lengths), device=outputs.device), (lengths - 1).clamp_min(0)]
    return torch.where((lengths == 0).unsqueeze(1), before.to(last.dtype), last)
