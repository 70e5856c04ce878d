"""C that reads rows of an LSTM or GRU whose inputs are looked up in a table, as words and characters are.

The table is multiplied by W before, once for each of its rows, so a step multiplies by U alone: sums begin with the
row of the table that the step reads. A few rows go through all their steps together, the longest first, so that their
states stay in the cache and a row that has ended costs nothing.

This file is the text; looked_up.py fills in what it works on.
"""

from __future__ import annotations

from recurra.engines.c_prelude import prelude
from recurra.engines.c_products import VECTORS
from recurra.engines.c_steps import MEETING

WIDE = 4
"""Vectors side by side in a panel of U."""

DEEP = 6
"""Rows that are multiplied at once, where there are 32 vector registers."""

TILE = 48
"""Rows that go through all steps together: U and their states lie in the second cache."""

HEAD = """\
#define PANEL ({wide} * LANES)
#define DEEP (REGISTERS == 32 ? {deep} : {shallow})
#define TILE {tile}
"""

BODY = """\
static void multiply_block(long rows, const real *h, long H, const real *panel, const real **from, long at, real *out,
                           long width) {{
    switch (rows) {{
{cases}
    }}
}}

/* One direction of a layer. The table has a row of `width` numbers for each thing that can be read: W x + b, gate after
   gate, then zeros. `after` is null for an LSTM; for a GRU with reset = "after" it is what U h is added to: zeros, and
   b' where the candidate is. Outputs, where they are wanted, lie `apart` in the order of the steps. `takes`: z takes
   the candidate, not the state. */
typedef struct {{
    const real *table, *U, *after;
    real *outputs, *h, *c, *panels;
    int64_t apart, row_apart, is_backward, takes;
}} direction;

/* `order` has the rows, the longest first; `index` (rows, steps) says which row of the table each step reads. */
typedef struct {{
    direction *directions;
    const int64_t *index, *lengths, *order;
    real *room;
    int64_t count, rows, steps, size, gates, width, room_each;
    int (*number)(void), (*members)(void);
}} layer;

static void lay_out(const layer *l, direction *d) {{
    const long H = l->size, used = l->gates * H;
    for (long n = 0; n < l->width; n++) {{
        real *out = d->panels + n / PANEL * PANEL * H + n % PANEL;
        for (long k = 0; k < H; k++) out[k * PANEL] = n < used ? d->U[n * H + k] : 0;
    }}
}}

static void lstm_row(const real *a, real *h, real *c, long H) {{
#pragma omp simd
    for (long j = 0; j < H; j++) {{
        const real i = r_sigmoid(a[j]), f = r_sigmoid(a[H + j]), o = r_sigmoid(a[3 * H + j]);
        c[j] = f * c[j] + i * r_tanh(a[2 * H + j]);
        h[j] = o * r_tanh(c[j]);
    }}
}}

static void gru_row(const real *a, const real *x, real *h, long H, int takes) {{
#pragma omp simd
    for (long j = 0; j < H; j++) {{
        const real r = r_sigmoid(x[j] + a[j]), z = r_sigmoid(x[H + j] + a[H + j]);
        const real candidate = r_tanh(x[2 * H + j] + r * a[2 * H + j]);
        const real kept = takes ? 1 - z : z;
        h[j] = kept * h[j] + (1 - kept) * candidate;
    }}
}}

static void read_tile(const layer *l, const direction *d, long first, long count, real *room) {{
    const long H = l->size, width = l->width, T = l->steps;
    real *h = room, *c = h + TILE * H, *a = c + TILE * H;
    const real *from[TILE], *x[TILE];
    memset(h, 0, 2 * TILE * H * sizeof(real));
    for (long i = 0; d->outputs && i < count; i++) {{
        const long row = l->order[first + i];
        for (long t = l->lengths[row]; t < T; t++)
            memset(d->outputs + row * d->row_apart + t * d->apart, 0, H * sizeof(real));
    }}
    for (long step = 0; step < T; step++) {{
        while (count && l->lengths[l->order[first + count - 1]] <= step) {{
            const long row = l->order[first + --count];
            memcpy(d->h + row * H, h + count * H, H * sizeof(real));
            if (d->c) memcpy(d->c + row * H, c + count * H, H * sizeof(real));
        }}
        if (!count) return;
        for (long i = 0; i < count; i++) {{
            const long row = l->order[first + i], t = d->is_backward ? l->lengths[row] - 1 - step : step;
            x[i] = d->table + l->index[row * T + t] * width;
            from[i] = d->after ? d->after : x[i];
        }}
        for (long n = 0; n < width; n += PANEL)
            for (long i = 0; i < count; i += DEEP)
                multiply_block(count - i < DEEP ? count - i : DEEP, h + i * H, H, d->panels + n * H, from + i, n,
                               a + i * width + n, width);
        for (long i = 0; i < count; i++) {{
            const long row = l->order[first + i], t = d->is_backward ? l->lengths[row] - 1 - step : step;
            if (d->after)
                gru_row(a + i * width, x[i], h + i * H, H, d->takes);
            else
                lstm_row(a + i * width, h + i * H, c + i * H, H);
            if (d->outputs) memcpy(d->outputs + row * d->row_apart + t * d->apart, h + i * H, H * sizeof(real));
        }}
    }}
    while (count) {{
        const long row = l->order[first + --count];
        memcpy(d->h + row * H, h + count * H, H * sizeof(real));
        if (d->c) memcpy(d->c + row * H, c + count * H, H * sizeof(real));
    }}
}}

static void work(void *given) {{
    const layer *l = given;
    const long member = l->number ? l->number() : 0, members = l->members ? l->members() : 1;
    const long tiles = (l->rows + TILE - 1) / TILE;
    for (long n = member; n < tiles * l->count; n += members) {{
        const long first = n / l->count * TILE;
        read_tile(l, l->directions + n % l->count, first, l->rows - first < TILE ? l->rows - first : TILE,
                  l->room + member * l->room_each);
    }}
}}

typedef void parallel_region(void (*)(void *), void *, unsigned, unsigned);

void run(layer *l, parallel_region *parallel, long parts) {{
    for (long n = 0; n < l->count; n++) lay_out(l, l->directions + n);
    if (parallel)
        parallel(work, l, (unsigned)parts, 0);
    else
        work(l);
}}

long panel_width(void) {{ return PANEL; }}
"""


def block(rows: int) -> str:
    """C that multiplies so many rows of h with one panel, all sums in registers."""
    sums = [(i, v) for i in range(rows) for v in range(WIDE)]
    lines = [
        f"static void block_{rows}(const real *h, long H, const real *panel, const real **from, long at, real *out,",
        "                    long width) {",
        *(f"    vector c{i}_{v} = *(const vector *)(from[{i}] + at + {v} * LANES);" for i, v in sums),
        "    for (long k = 0; k < H; k++) {",
        *(f"        const vector b{v} = *(const vector *)(panel + k * PANEL + {v} * LANES);" for v in range(WIDE)),
    ]
    for i in range(rows):
        lines.append(f"        const real h{i} = h[{i} * H + k];")
        lines += [f"        c{i}_{v} += h{i} * b{v};" for v in range(WIDE)]
    lines += [
        "    }",
        *(f"    *(vector *)(out + {i} * width + {v} * LANES) = c{i}_{v};" for i, v in sums),
        "}",
        "",
    ]
    return "\n".join(lines)


def text(is_double: bool) -> str:
    """The whole C file."""
    cases = "\n".join(
        f"        case {rows}: block_{rows}(h, H, panel, from, at, out, width); break;" for rows in range(1, DEEP + 1)
    )
    head = HEAD.format(wide=WIDE, deep=DEEP, shallow=2, tile=TILE)
    blocks = (block(rows) for rows in range(1, DEEP + 1))
    vectors = VECTORS.format(is_double=int(is_double))
    return "\n".join([prelude(is_double), vectors, MEETING, head, *blocks, BODY.format(cases=cases)])


def room_size(size: int, width: int) -> int:
    """Numbers that one thread needs room for: h, c and gates of a tile."""
    return TILE * (2 * size + width)
