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
from recurra.engines.c_products import many_rows, room_size
from recurra.engines.c_run import patience, team
from recurra.engines.c_source import prelude
from recurra.engines.c_steps import MEETING
from recurra.engines.engine import Layer, Reader, Reading, only_looped
from recurra.engines.vendor import unwrapped
from recurra.padding import Padded

WORTH_A_THREAD = 1 << 20
"""Numbers multiplied in a call; with fewer, one thread is done before another has begun. Not measured more closely."""

WORTH_SHARING = 1 << 16
"""Numbers multiplied in a step, as 128 units do. From there on two threads took 0.7 to 0.6 of the time of one."""

TEXT = """\
/* How many steps of a block of units are done: in a line of the cache of its own, for others look at it. */
typedef struct { _Alignas(64) atomic_long steps; } progress;

/* h and c are those before the first step, and then after the last. `room` is for W x + b of every step, for U h of one
   step, for each thread, and for the c of every step. The outputs of the steps lie in the order of x, so far apart, and
   so do their c where they are wanted. */
typedef struct {
    const real *W, *b, *U;
    real *h, *c, *outputs, *every_c, *room;
    int64_t apart, is_backward, together;
    progress *done;
    atomic_long arrived, round;
} direction;

/* `room` is for a copy of x, where multiply_rows needs one. */
typedef struct {
    direction *directions;
    const real *x;
    real *room;
    int64_t count, input_size, size, steps, shares_units, patience;
    int (*number)(void), (*members)(void);
} layer;

static inline long time_of(const layer *l, const direction *d, long step) {
    return d->is_backward ? l->steps - 1 - step : step;
}

/* The units `first` to `last` of a step; a is room for U h. */
static inline void step_units(const layer *l, const direction *d, long step, real *a, const real *c_before, real *c,
                              long first, long last) {
    const long H = l->size, t = time_of(l, d, step);
    const real *x = d->room + t * 4 * H, *before = step ? d->outputs + time_of(l, d, step - 1) * d->apart : d->h;
    real *h = d->outputs + t * d->apart;
    for (long n = 0; n < 4; n++) {
        const long gate = step & 1 ? 3 - n : n;
        multiply_row(before, d->U, H, H, gate * H + first, gate * H + last, a, step & 1);
    }
#pragma omp simd
    for (long j = first; j < last; j++) {
        const real i = r_sigmoid(x[j] + a[j]), f = r_sigmoid(x[H + j] + a[H + j]);
        const real candidate = r_tanh(x[2 * H + j] + a[2 * H + j]), o = r_sigmoid(x[3 * H + j] + a[3 * H + j]);
        c[j] = f * c_before[j] + i * candidate;
        h[j] = o * r_tanh(c[j]);
    }
}

#define UNITS 32
#define PATIENCE 4000
#define STEPS_ALONE 16

/* Several threads read a row. Each does its own blocks of units at every step, and looks after the others': a thread
   that was sent away by other work must not be waited for, so whoever misses a block does it too. All write the same
   numbers, and each number has a place of its own, so that it does not matter who was first. */
static void read_together(const layer *l, direction *d, long member, long members) {
    const long H = l->size, blocks = (H + UNITS - 1) / UNITS;
    real *a = d->room + (l->steps + member) * 4 * H, *all_c = d->room + (l->steps + members) * 4 * H;
    long alone = 0;
    for (long step = 0; step < l->steps; step++) {
        const real *c_before = step ? all_c + (step - 1) * H : d->c;
        for (long turn = 0; turn < members; turn++) {
            const long of = (member + turn) % members, first = share(blocks, of, members);
            const long count = share(blocks, of + 1, members) - first;
            for (long n = 0; n < count; n++) {
                /* Its own from where it ended at the last step; others' from their far end. */
                const long block = first + ((step & 1) != (turn > 0) ? count - 1 - n : n);
                atomic_long *done = &d->done[block].steps;
                for (long tries = turn && !alone ? PATIENCE : 0; tries > 0; tries--)
                    if (atomic_load_explicit(done, memory_order_acquire) > step) break;
                if (atomic_load_explicit(done, memory_order_acquire) > step) continue;
                if (turn) alone = STEPS_ALONE;
                const long unit = block * UNITS, end = unit + UNITS < H ? unit + UNITS : H;
                step_units(l, d, step, a, c_before, all_c + step * H, unit, end);
                /* Who comes late says nothing. Were it to, others would only do a block once more. */
                if (atomic_load(done) <= step) atomic_store_explicit(done, step + 1, memory_order_release);
            }
        }
        alone -= alone > 0;
    }
}

static void read_alone(const layer *l, direction *d) {
    real *a = d->room + l->steps * 4 * l->size;
    for (long step = 0; step < l->steps; step++) {
        step_units(l, d, step, a, d->c, d->c, 0, l->size);
        if (d->every_c) memcpy(d->every_c + time_of(l, d, step) * d->apart, d->c, l->size * sizeof(real));
    }
}

static void read_row(const layer *l, direction *d, long member, long members) {
    const long H = l->size, from = share(H, member, members), to = share(H, member + 1, members);
    for (long gate = 0; gate < 4; gate++)
        multiply_rows(l->x, l->steps, d->W, l->input_size, d->b, gate * H + from, gate * H + to, d->room, 4 * H);
    const int together = l->shares_units && members > 1;
    if (!member) d->together = together ? members : 0;
    meet(&d->arrived, &d->round, members, l->patience);
    if (together) {
        read_together(l, d, member, members);
    } else if (!member) { /* the others have helped with the inputs */
        read_alone(l, d);
    }
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
    const long H = l->size, blocks = (H + UNITS - 1) / UNITS, T = l->steps;
    progress done[l->count * blocks];
    for (long n = 0; n < l->count * blocks; n++) atomic_init(&done[n].steps, 0);
    for (long n = 0; n < l->count; n++) l->directions[n].done = done + n * blocks;
    l->x = in_vectors(l->x, T, l->input_size, l->room);
    if (parallel)
        parallel(work, l, (unsigned)parts, 0);
    else
        work(l);
    /* Only now, when nobody can be late any more, is what was before the first step written over. */
    for (long n = 0; T && n < l->count; n++) {
        direction *d = l->directions + n;
        const real *all_c = d->room + (T + d->together) * 4 * H;
        memcpy(d->h, d->outputs + time_of(l, d, T - 1) * d->apart, H * sizeof(real));
        if (!d->together) continue;
        memcpy(d->c, all_c + (T - 1) * H, H * sizeof(real));
        for (long step = 0; d->every_c && step < T; step++)
            memcpy(d->every_c + time_of(l, d, step) * d->apart, all_c + step * H, H * sizeof(real));
    }
}
"""


class Direction(ctypes.Structure):
    """`direction` of TEXT."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("W", "b", "U", "h", "c", "outputs", "every_c", "room")),
        *((name, ctypes.c_int64) for name in ("apart", "is_backward", "together")),
        ("done", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("arrived", "round")),
    )


class Directions(ctypes.Structure):
    """`layer` of TEXT."""

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
        if (reason := only_looped(x)) is not None:
            return reason
        if len(x.values) != 1:
            return f"it runs a single row, the batch has {len(x.values)}"
        for reader in layer:
            if (reason := mismatch(reader.cell, reader.fixed)) is not None:
                return reason
        if (reason := obstacle(x.values)) is not None:
            return reason
        plain = [unwrapped(reader.cell, reader.fixed) for reader in layer]
        reasons = (unlike(cell, fixed.U.weight, x.values) for cell, fixed in plain)
        return next((reason for reason in reasons if reason is not None), None)

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
        H = cell.hidden_size
        total = values.shape[1]
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


def can_go_through(layers: Sequence[Sequence[AnyCell]], x: Padded) -> bool:
    """Whether `through` can read this batch."""
    return (
        len(x.values) == 1
        and all(type(cell) is LSTM and cell.candidate == "tanh" for layer in layers for cell in layer)
        and x.is_full
        and only_looped(x) is None
        and obstacle(x.values) is None
        and all(unlike(cell, cell.from_state, x.values) is None for layer in layers for cell in layer)  # type: ignore[arg-type]
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


def unlike(cell: AnyCell, U: Tensor, values: Tensor) -> str | None:
    """Why C cannot read these weights beside these numbers; None where it can."""
    assert isinstance(cell, LSTM)
    product = cell.from_input
    if not is_bare(product):
        return "it reads W as it lies, and something was hung on the product with it"
    for weight in (product.weight, product.bias, U):
        if weight is not None and (weight.device.type != "cpu" or weight.dtype != values.dtype):
            return f"its numbers are all of one kind, but the batch holds {values.dtype} and a weight {weight.dtype}"
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
