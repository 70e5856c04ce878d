"""One row of an LSTM without a way back: a sentence to be tagged, a stream. Both directions are one call of C.

A step of a single row multiplies every number of U once, so what it costs is the way of U from the cache, and nothing
gains by laying U out anew: torch's kernels do that at every call. Here U is read as it lies, and so is W, with which
all inputs are multiplied first. Threads take a direction each; more of them share out its units.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from recurra.cells import LSTM, AnyCell, Product
from recurra.cells.lstm import LSTMState
from recurra.cells.weights import is_bare, leaves
from recurra.engines.c_library import NoCompiler, library
from recurra.engines.c_prelude import prelude
from recurra.engines.c_products import many_rows, room_size
from recurra.engines.c_row import TEXT
from recurra.engines.c_run import patience, team
from recurra.engines.c_steps import MEETING
from recurra.engines.cost import Rates
from recurra.engines.engine import DirectedCell, Layer, Reading, Work, only_looped
from recurra.engines.vendor import unwrapped
from recurra.padding import Padded

WORTH_A_THREAD = 1 << 20
"""Numbers multiplied in a call; with fewer, one thread is done before another has begun. Not measured more closely."""

WORTH_SHARING = 1 << 16
"""Numbers multiplied in a step, as 128 units do. From there on two threads took 0.7 to 0.6 of the time of one."""


RATES = Rates(call=60e-6, gate=0.05e-6, weight=2.3e-11, number=6e-10, product=2.3e-11)


class Direction(ctypes.Structure):
    """`direction` of c_row.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("W", "b", "U", "h", "c", "outputs", "every_c", "room")),
        *((name, ctypes.c_int64) for name in ("apart", "is_backward", "together")),
        ("done", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("arrived", "round")),
        *((name, ctypes.c_void_p) for name in ("resets", "anew_h", "anew_c")),
    )


class Directions(ctypes.Structure):
    """`layer` of c_row.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("directions", "x", "room")),
        *((name, ctypes.c_int64) for name in ("count", "input_size", "size", "steps", "shares_units", "patience")),
        *((name, ctypes.c_void_p) for name in ("number", "members")),
    )


@functools.cache
def compiled(is_double: bool) -> ctypes.CDLL | str:
    """The C, or why there is none."""
    try:
        found = library("\n".join([prelude(is_double), many_rows(is_double), MEETING, TEXT]))
    except NoCompiler as reason:
        return str(reason)
    found.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    found.run.restype = None
    return found


class Single:
    """Runs a single row of an LSTM on the CPU, where no gradient is wanted."""

    name = "single"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        if len(x.values) != 1:
            return f"it runs a batch of one row, but this batch has {len(x.values)}"
        for reader in layer:
            if (reason := mismatch(reader.cell, reader.fixed)) is not None:
                return reason
        if (reason := obstacle(x.values)) is not None:
            return reason
        plain = [unwrapped(reader.cell, reader.fixed) for reader in layer]
        reasons = (unlike(cell, fixed.U.weight, x.values) for cell, fixed in plain)
        return next((reason for reason in reasons if reason is not None), None)

    def cost(self, work: Work) -> float:
        return RATES.seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        values, [steps] = x.values.contiguous(), x.lengths.tolist()
        found = [Row(reader, values, x.lengths, every) for reader in layer]
        cell = layer[0].cell
        call([row.direction for row in found], values, cell.input_size, cell.hidden_size, steps)
        return [row.reading for row in found]

    def reads_stack(self, cells: Sequence[Sequence[AnyCell]], x: Padded) -> bool:
        return (
            len(x.values) == 1
            and all(type(cell) is LSTM and cell.candidate == "tanh" for layer in cells for cell in layer)
            and x.is_full
            and only_looped(x) is None
            and obstacle(x.values) is None
            and all(unlike(cell, cell.from_state, x.values) is None for layer in cells for cell in layer)  # type: ignore[arg-type]
        )

    def run_stack(
        self, cells: Sequence[Sequence[AnyCell]], values: Tensor, backward: Sequence[bool]
    ) -> tuple[Tensor, tuple[tuple[LSTMState, ...], ...]]:
        """What `run` does layer by layer, with less around it: 0.90 ms instead of 0.97 for a sentence of 22 words."""
        steps, values = values.shape[1], values.contiguous()
        states = []
        for layer in cells:
            H, count = layer[0].hidden_size, len(layer)
            outputs = values.new_empty(1, steps, count * H)
            last = [LSTMState(values.new_zeros(1, H), values.new_zeros(1, H)) for _ in layer]
            weights = [Weights.of(cell, cell.from_state) for cell in layer]  # type: ignore[arg-type]  # a parameter
            directions = [
                Direction(
                    *weights[n].addresses(),
                    last[n].h.data_ptr(),
                    last[n].c.data_ptr(),
                    outputs.data_ptr() + n * H * values.element_size(),
                    None,
                    None,
                    count * H,
                    backward[n],
                )
                for n in range(count)
            ]
            call(directions, values, layer[0].input_size, H, steps)
            states.append(tuple(last))
            values = outputs
        return values, tuple(states)


class Row:
    """What one reader works on: its tensors, and where they lie."""

    def __init__(self, reader: DirectedCell, values: Tensor, lengths: Tensor, every: bool) -> None:
        cell, fixed = unwrapped(reader.cell, reader.fixed)
        H = cell.hidden_size
        total, steps = values.shape[1], lengths.item()
        self.weights = Weights.of(cell, fixed.U.weight)
        h, c = (field.clone(memory_format=torch.contiguous_format) for field in reader.state)
        make = values.new_empty if steps == total else values.new_zeros
        outputs = make(1, total, H)
        all_c = make(1, total, H) if every else None
        self.direction = Direction(
            *self.weights.addresses(),
            h.data_ptr(),
            c.data_ptr(),
            outputs.data_ptr(),
            None if all_c is None else all_c.data_ptr(),
            None,
            H,
            reader.backward,
        )
        if reader.resets is not None:
            mask = reader.resets.in_reading_order(lengths, reader.backward).contiguous()
            anew = [field.contiguous() for field in reader.resets.state]
            self.resets = mask, *anew  # held for as long as C reads them
            self.direction.resets, self.direction.anew_h, self.direction.anew_c = (t.data_ptr() for t in self.resets)
        State = reader.cell.State
        self.last = State(h, c)  # held here, for it is written to whether it is wanted or not
        self.reading = Reading(outputs, self.last if all_c is None else State(outputs, all_c))


class Weights(NamedTuple):
    """Those of one LSTM, as C reads them; held for as long as it does."""

    W: Tensor
    b: Tensor | None
    U: Tensor

    @classmethod
    def of(cls, cell: AnyCell, U: Tensor) -> Weights:
        assert isinstance(cell, LSTM)
        b = cell.from_input.bias
        return cls(cell.from_input.weight.contiguous(), None if b is None else b.contiguous(), U.contiguous())

    def addresses(self) -> tuple[int, int | None, int]:
        return self.W.data_ptr(), None if self.b is None else self.b.data_ptr(), self.U.data_ptr()


def call(directions: Sequence[Direction], values: Tensor, input_size: int, size: int, steps: int) -> None:
    """Read one row by each of them."""
    count = len(directions)
    parts = threads(count, input_size, size, steps)
    each = (steps + max(parts // count, 1)) * 4 * size + steps * size
    room = values.new_empty(count * each + room_size(steps, input_size))
    array = (Direction * count)(*directions)
    for number, direction in enumerate(array):
        direction.room = room.data_ptr() + number * each * values.element_size()
    crew = team() if parts > 1 else None
    given = Directions(
        ctypes.addressof(array),
        values.data_ptr(),
        room.data_ptr() + count * each * values.element_size(),
        count,
        input_size,
        size,
        steps,
        shares_units(size),
        patience(parts),
        crew and crew.number,
        crew and crew.members,
    )
    code = compiled(values.dtype == torch.float64)
    assert not isinstance(code, str)
    code.run(ctypes.addressof(given), crew and crew.parallel, parts)


def mismatch(cell: AnyCell, fixed: object) -> str | None:
    """Why these are not the equations that it knows; None where they are."""
    cell, fixed = unwrapped(cell, fixed)
    if type(cell) is not LSTM:
        return f"it runs only 'lstm', but this is '{cell.name}'"
    if cell.candidate != "tanh":
        return f"it supports only a tanh candidate, but this cell has '{cell.candidate}'"
    if any(U.mask is not None for U in leaves(fixed, Product)):
        return "it does not support a dropout mask on h before U"
    return None


def unlike(cell: AnyCell, U: Tensor, values: Tensor) -> str | None:
    """Why C cannot read these weights beside these numbers; None where it can."""
    assert isinstance(cell, LSTM)
    product = cell.from_input
    if not is_bare(product):
        return "it uses W directly, but `from_input` has hooks or a custom `forward`"
    for weight in (product.weight, product.bias, U):
        if weight is not None and weight.device.type != "cpu":
            return f"it runs on the CPU, but a weight is on {weight.device.type}"
        if weight is not None and weight.dtype != values.dtype:
            return f"it needs one dtype, but the batch has {values.dtype} and a weight {weight.dtype}"
    H = cell.hidden_size
    shapes = ((product.weight, (4 * H, cell.input_size)), (product.bias, (4 * H,)), (U, (4 * H, H)))
    for weight, shape in shapes:
        if weight is not None and weight.shape != shape:
            return f"it needs a weight of shape {shape}, but this one has {tuple(weight.shape)}"
    return None


def obstacle(values: Tensor) -> str | None:
    """Why its steps cannot run on these numbers; None where they can."""
    if torch.is_grad_enabled():
        return "inference only, but gradients are enabled (use torch.no_grad())"
    if values.device.type != "cpu":
        return f"it runs on the CPU, but the batch is on {values.device.type}"
    if values.dtype not in (torch.float32, torch.float64):
        return f"it supports float32 and float64, but the batch has {values.dtype}"
    if torch.is_autocast_enabled("cpu"):
        return "it needs one dtype, but autocast mixes two"
    code = compiled(values.dtype == torch.float64)
    return f"it has no compiled steps: {code}" if isinstance(code, str) else None


def shares_units(size: int) -> bool:
    """Whether a step is large enough for several threads."""
    return 4 * size * size >= WORTH_SHARING


def threads(directions: int, input_size: int, size: int, steps: int) -> int:
    """How many threads are of use, as many for each direction."""
    most = torch.get_num_threads()
    if most == 1 or team() is None or 4 * size * size * steps < WORTH_A_THREAD:
        return 1
    each = max(most // directions, 1)
    if not shares_units(size):  # they share out the products with the inputs alone
        each = min(each, max(4 * size * input_size * steps // WORTH_A_THREAD, 1))
    return each * directions
