"""One row of an LSTM without a way back: a sentence to be tagged, a stream. Both directions are one call of C.

A step of a single row multiplies every number of U once, so what it costs is the way of U from the cache, and nothing
gains by laying U out anew: torch's kernels do that at every call. Here U is read as it lies. Threads take a direction
each, or share out the units of a large one and meet after every step.
"""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from recurra.cells import LSTM, AnyCell, Product
from recurra.cells.weights import leaves
from recurra.engines.c_library import NoCompiler, library
from recurra.engines.c_run import WORTH_SHARING, team
from recurra.engines.c_source import prelude
from recurra.engines.c_steps import MEETING, ROW_PRODUCT, VECTORS
from recurra.engines.engine import Layer, Reader, Reading
from recurra.engines.vendor import unwrapped
from recurra.padding import Padded

WORTH_A_THREAD = 1 << 20
"""Numbers multiplied in a call; with fewer, one thread is done before another has begun. Not measured more closely."""

TEXT = """\
/* h and c are those before the first step, and then after the last. The outputs of the steps, and their c where they
   are wanted, lie `stride` apart, which is negative for a backward reader. */
typedef struct {
    const real *inputs, *U, *first;
    real *h, *c, *outputs, *every_c, *gates;
    int64_t inputs_stride, stride;
    atomic_long arrived, round;
} direction;

typedef struct {
    direction *directions;
    int64_t count, size, steps;
    int (*number)(void), (*members)(void);
} layer;

static void read_row(direction *d, long H, long steps, long member, long members) {
    const long from = share(H, member, members), to = share(H, member + 1, members);
    for (long t = 0; t < steps; t++) {
        const real *x = d->inputs + t * d->inputs_stride, *before = t ? d->outputs + (t - 1) * d->stride : d->first;
        real *h = d->outputs + t * d->stride, *a = d->gates, *c = d->c;
        for (long n = 0; n < 4; n++) {
            const long gate = t & 1 ? 3 - n : n;
            multiply_row(before, d->U, H, H, gate * H + from, gate * H + to, a, t & 1);
        }
#pragma omp simd
        for (long j = from; j < to; j++) {
            const real i = r_sigmoid(x[j] + a[j]), f = r_sigmoid(x[H + j] + a[H + j]);
            const real candidate = r_tanh(x[2 * H + j] + a[2 * H + j]), o = r_sigmoid(x[3 * H + j] + a[3 * H + j]);
            c[j] = f * c[j] + i * candidate;
            h[j] = o * r_tanh(c[j]);
        }
        if (d->every_c) memcpy(d->every_c + t * d->stride + from, c + from, (to - from) * sizeof(real));
        meet(&d->arrived, &d->round, members);
    }
    if (steps) memcpy(d->h + from, d->outputs + (steps - 1) * d->stride + from, (to - from) * sizeof(real));
}

static void work(void *given) {
    const layer *l = given;
    const long member = l->number ? l->number() : 0, members = l->members ? l->members() : 1;
    const long each = members / l->count;
    if (!each) {
        for (long n = member; n < l->count; n += members) read_row(l->directions + n, l->size, l->steps, 0, 1);
    } else if (member < each * l->count) {
        read_row(l->directions + member / each, l->size, l->steps, member % each, each);
    }
}

typedef void parallel_region(void (*)(void *), void *, unsigned, unsigned);

void run(layer *l, parallel_region *parallel, long parts) {
    if (parallel)
        parallel(work, l, (unsigned)parts, 0);
    else
        work(l);
}
"""


class Direction(ctypes.Structure):
    """`direction` of TEXT."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("inputs", "U", "first", "h", "c", "outputs", "every_c", "gates")),
        *((name, ctypes.c_int64) for name in ("inputs_stride", "stride")),
        *((name, ctypes.c_long) for name in ("arrived", "round")),
    )


class Directions(ctypes.Structure):
    """`layer` of TEXT."""

    _fields_ = (
        ("directions", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("count", "size", "steps")),
        *((name, ctypes.c_void_p) for name in ("number", "members")),
    )


@functools.cache
def compiled(is_double: bool) -> ctypes.CDLL | str:
    """The C, or why there is none."""
    try:
        found = library("\n".join([prelude(is_double), VECTORS, ROW_PRODUCT, MEETING, TEXT]))
    except NoCompiler as reason:
        return str(reason)
    found.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    found.run.restype = None
    return found


class Single:
    """Runs a single row of an LSTM on the CPU, where no gradient is wanted."""

    name = "single"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        values = x.values
        if not values.numel():
            return "there is no step to run"
        if len(values) != 1:
            return f"it runs a single row, the batch has {len(values)}"
        for reader in layer:
            reason = mismatch(reader.cell, reader.fixed)
            if reason is not None:
                return reason
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

    def slower(self, layer: Layer, x: Padded) -> str | None:
        return None

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        values, steps = x.values, int(x.lengths[0])
        size = layer[0].cell.hidden_size
        found = [Row(reader, values, steps, every) for reader in layer]
        directions = (Direction * len(layer))(*(row.direction for row in found))
        parts = threads(len(layer), size, steps)
        crew = team() if parts > 1 else None
        given = Directions(
            ctypes.addressof(directions), len(layer), size, steps, crew and crew.number, crew and crew.members
        )
        code = compiled(values.dtype == torch.float64)
        assert not isinstance(code, str)
        code.run(ctypes.addressof(given), crew and crew.parallel, parts)
        return [row.reading for row in found]


class Row:
    """What one reader works on: its tensors, and where they lie."""

    def __init__(self, reader: Reader, values: Tensor, steps: int, every: bool) -> None:
        cell, fixed = unwrapped(reader.cell, reader.fixed)
        assert isinstance(cell, LSTM)
        H = cell.hidden_size
        total = values.shape[1]
        self.inputs = cell.project(values, fixed).contiguous()
        self.U = fixed.U.weight.contiguous()
        self.first = reader.state[0].contiguous()
        h, c = self.first.clone(), reader.state[1].clone(memory_format=torch.contiguous_format)
        make = values.new_empty if steps == total else values.new_zeros
        outputs = make(1, total, H)
        all_c = make(1, total, H) if every else None
        self.gates = values.new_empty(4 * H)
        start, sign = (steps - 1, -1) if reader.backward and steps else (0, 1)
        numbers = values.element_size()
        self.direction = Direction(
            self.inputs.data_ptr() + start * 4 * H * numbers,
            self.U.data_ptr(),
            self.first.data_ptr(),
            h.data_ptr(),
            c.data_ptr(),
            outputs.data_ptr() + start * H * numbers,
            None if all_c is None else all_c.data_ptr() + start * H * numbers,
            self.gates.data_ptr(),
            sign * 4 * H,
            sign * H,
        )
        State = reader.cell.State
        self.last = State(h, c)  # held here, for it is written to whether it is wanted or not
        self.reading = Reading(outputs, self.last if all_c is None else State(outputs, all_c))


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


def threads(directions: int, size: int, steps: int) -> int:
    """How many threads are of use."""
    most = torch.get_num_threads()
    if most == 1 or team() is None or 4 * size * size * steps < WORTH_A_THREAD:
        return 1
    each = most // directions
    return max(each, 1) * directions if 4 * size * size >= WORTH_SHARING else min(most, directions)
