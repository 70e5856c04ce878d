"""One row of an LSTM without a way back: a sentence to be tagged, a stream. Both directions are one call of C.

A step of a single row multiplies every number of U once, so what it costs is the way of U from the cache, and nothing
gains by laying U out anew: torch's kernels do that at every call. Here U is read as it lies, and so is W, with which
all inputs are multiplied first. Threads take a direction each, or share out the units of a large one and meet after
every step.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from recurra.cells import LSTM, AnyCell, Product
from recurra.cells.lstm import LSTMState
from recurra.cells.weights import leaves
from recurra.engines.c_library import NoCompiler, library
from recurra.engines.c_products import many_rows, room_size
from recurra.engines.c_run import WORTH_SHARING, team
from recurra.engines.c_source import prelude
from recurra.engines.c_steps import MEETING
from recurra.engines.engine import Layer, Reader, Reading, only_looped
from recurra.engines.vendor import unwrapped
from recurra.padding import Padded

WORTH_A_THREAD = 1 << 20
"""Numbers multiplied in a call; with fewer, one thread is done before another has begun. Not measured more closely."""

TEXT = """\
/* h and c are those before the first step, and then after the last. `inputs` is room for W x + b of every step, and
   for U h of one. The outputs of the steps lie in the order of x, so far apart, and so do their c where they are
   wanted. */
typedef struct {
    const real *W, *b, *U;
    real *h, *c, *outputs, *every_c, *inputs;
    int64_t apart, is_backward;
    atomic_long arrived, round;
} direction;

/* `room` is for a copy of x, where multiply_rows needs one. */
typedef struct {
    direction *directions;
    const real *x;
    real *room;
    int64_t count, input_size, size, steps;
    int (*number)(void), (*members)(void);
} layer;

static void read_row(const layer *l, direction *d, long member, long members) {
    const long H = l->size, from = share(H, member, members), to = share(H, member + 1, members);
    for (long gate = 0; gate < 4; gate++)
        multiply_rows(l->x, l->steps, d->W, l->input_size, d->b, gate * H + from, gate * H + to, d->inputs, 4 * H);
    const real *before = d->h;
    for (long step = 0; step < l->steps; step++) {
        const long t = d->is_backward ? l->steps - 1 - step : step;
        const real *x = d->inputs + t * 4 * H;
        real *h = d->outputs + t * d->apart, *a = d->inputs + l->steps * 4 * H, *c = d->c;
        for (long n = 0; n < 4; n++) {
            const long gate = step & 1 ? 3 - n : n;
            multiply_row(before, d->U, H, H, gate * H + from, gate * H + to, a, step & 1);
        }
#pragma omp simd
        for (long j = from; j < to; j++) {
            const real i = r_sigmoid(x[j] + a[j]), f = r_sigmoid(x[H + j] + a[H + j]);
            const real candidate = r_tanh(x[2 * H + j] + a[2 * H + j]), o = r_sigmoid(x[3 * H + j] + a[3 * H + j]);
            c[j] = f * c[j] + i * candidate;
            h[j] = o * r_tanh(c[j]);
        }
        if (d->every_c) memcpy(d->every_c + t * d->apart + from, c + from, (to - from) * sizeof(real));
        before = h;
        meet(&d->arrived, &d->round, members);
    }
    if (l->steps) memcpy(d->h + from, before + from, (to - from) * sizeof(real));
}

static void work(void *given) {
    const layer *l = given;
    const long member = l->number ? l->number() : 0, members = l->members ? l->members() : 1;
    const long each = members / l->count;
    if (!each) {
        for (long n = member; n < l->count; n += members) read_row(l, l->directions + n, 0, 1);
    } else if (member < each * l->count) {
        read_row(l, l->directions + member / each, member % each, each);
    }
}

typedef void parallel_region(void (*)(void *), void *, unsigned, unsigned);

void run(layer *l, parallel_region *parallel, long parts) {
    l->x = in_vectors(l->x, l->steps, l->input_size, l->room);
    if (parallel)
        parallel(work, l, (unsigned)parts, 0);
    else
        work(l);
}
"""


class Direction(ctypes.Structure):
    """`direction` of TEXT."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("W", "b", "U", "h", "c", "outputs", "every_c", "inputs")),
        *((name, ctypes.c_int64) for name in ("apart", "is_backward")),
        *((name, ctypes.c_long) for name in ("arrived", "round")),
    )


class Directions(ctypes.Structure):
    """`layer` of TEXT."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("directions", "x", "room")),
        *((name, ctypes.c_int64) for name in ("count", "input_size", "size", "steps")),
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
        if (reason := only_looped(x)) is not None:
            return reason
        if len(x.values) != 1:
            return f"it runs a single row, the batch has {len(x.values)}"
        for reader in layer:
            if (reason := mismatch(reader.cell, reader.fixed)) is not None:
                return reason
        return obstacle(x.values)

    def slower(self, layer: Layer, x: Padded) -> str | None:
        return None

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        values, [steps] = x.values.contiguous(), x.lengths.tolist()
        found = [Row(reader, values, steps, every) for reader in layer]
        cell = layer[0].cell
        call([row.direction for row in found], values, cell.input_size, cell.hidden_size, steps)
        return [row.reading for row in found]


class Row:
    """What one reader works on: its tensors, and where they lie."""

    def __init__(self, reader: Reader, values: Tensor, steps: int, every: bool) -> None:
        cell, fixed = unwrapped(reader.cell, reader.fixed)
        assert isinstance(cell, LSTM)
        H = cell.hidden_size
        total = values.shape[1]
        self.W, b = cell.from_input.weight.contiguous(), cell.from_input.bias
        self.U = fixed.U.weight.contiguous()
        h, c = (field.clone(memory_format=torch.contiguous_format) for field in reader.state)
        make = values.new_empty if steps == total else values.new_zeros
        outputs = make(1, total, H)
        all_c = make(1, total, H) if every else None
        self.inputs = values.new_empty((steps + 1) * 4 * H)
        self.direction = Direction(
            self.W.data_ptr(),
            None if b is None else b.data_ptr(),
            self.U.data_ptr(),
            h.data_ptr(),
            c.data_ptr(),
            outputs.data_ptr(),
            None if all_c is None else all_c.data_ptr(),
            self.inputs.data_ptr(),
            H,
            reader.backward,
        )
        State = reader.cell.State
        self.last = State(h, c)  # held here, for it is written to whether it is wanted or not
        self.reading = Reading(outputs, self.last if all_c is None else State(outputs, all_c))


def call(directions: Sequence[Direction], values: Tensor, input_size: int, size: int, steps: int) -> None:
    """Read one row by each of them."""
    array = (Direction * len(directions))(*directions)
    room = values.new_empty(room_size(steps, input_size))
    parts = threads(len(directions), size, steps)
    crew = team() if parts > 1 else None
    given = Directions(
        ctypes.addressof(array),
        values.data_ptr(),
        room.data_ptr(),
        len(directions),
        input_size,
        size,
        steps,
        crew and crew.number,
        crew and crew.members,
    )
    code = compiled(values.dtype == torch.float64)
    assert not isinstance(code, str)
    code.run(ctypes.addressof(given), crew and crew.parallel, parts)


def can_go_through(layers: Sequence[Sequence[AnyCell]], x: Padded) -> bool:
    """Whether `through` can read this batch."""
    return (
        len(x.values) == 1
        and all(type(cell) is LSTM and cell.candidate == "tanh" for layer in layers for cell in layer)
        and x.is_full
        and only_looped(x) is None
        and obstacle(x.values) is None
    )


def through(
    layers: Sequence[Sequence[AnyCell]], values: Tensor, backward: Sequence[bool]
) -> tuple[Tensor, tuple[tuple[LSTMState, ...], ...]]:
    """A row through all layers of a stack, the directions of each side by side: the last outputs, and all states.

    What the engine does layer by layer, with less around it, which for a short sentence is a third of the time.
    """
    steps, values = values.shape[1], values.contiguous()
    states = []
    for layer in layers:
        H, count, number = layer[0].hidden_size, len(layer), values.element_size()
        outputs, inputs = values.new_empty(1, steps, count * H), values.new_empty(count, (steps + 1) * 4 * H)
        last = values.new_zeros(2 * count, 1, H)
        weights = [[each.contiguous() for each in matrices(cell)] for cell in layer]
        directions = [
            Direction(
                W.data_ptr(),
                b[0].data_ptr() if b else None,
                U.data_ptr(),
                last.data_ptr() + 2 * n * H * number,
                last.data_ptr() + (2 * n + 1) * H * number,
                outputs.data_ptr() + n * H * number,
                None,
                inputs.data_ptr() + n * (steps + 1) * 4 * H * number,
                count * H,
                backward[n],
            )
            for n, (W, U, *b) in enumerate(weights)
        ]
        call(directions, values, layer[0].input_size, H, steps)
        fields = last.unbind()
        states.append(tuple(LSTMState(*fields[2 * n : 2 * n + 2]) for n in range(count)))
        values = outputs
    return values, tuple(states)


def matrices(cell: AnyCell) -> list[Tensor]:
    """W, U and, where there is one, b of an LSTM."""
    assert isinstance(cell, LSTM)
    W, b = cell.from_input.weight, cell.from_input.bias
    return [W, cell.from_state] if b is None else [W, cell.from_state, b]


def mismatch(cell: AnyCell, fixed: object) -> str | None:
    """Why these are not the equations that it knows; None where they are."""
    cell, fixed = unwrapped(cell, fixed)
    if type(cell) is not LSTM:
        return f"it runs an 'lstm', this is '{cell.name}'"
    if cell.candidate != "tanh":
        return f"its candidate is tanh, that of this one '{cell.candidate}'"
    if any(U.mask is not None for U in leaves(fixed, Product)):
        return "it knows no mask on h before U"
    return None


def obstacle(values: Tensor) -> str | None:
    """Why its steps cannot run on these numbers; None where they can."""
    if torch.is_grad_enabled():
        return "it has no way back, and gradients are recorded (torch.no_grad() would not)"
    if values.device.type != "cpu":
        return f"its steps run on the CPU, the batch is on {values.device.type}"
    if values.dtype not in (torch.float32, torch.float64):
        return f"its steps compute in float32 and float64, the batch holds {values.dtype}"
    if torch.is_autocast_enabled("cpu"):
        return "its steps know one type of number, and autocast mixes two"
    code = compiled(values.dtype == torch.float64)
    return f"it has no compiled steps: {code}" if isinstance(code, str) else None


def threads(directions: int, size: int, steps: int) -> int:
    """How many threads are of use."""
    most = torch.get_num_threads()
    if most == 1 or team() is None or 4 * size * size * steps < WORTH_A_THREAD:
        return 1
    each = most // directions
    return max(each, 1) * directions if 4 * size * size >= WORTH_SHARING else min(most, directions)
