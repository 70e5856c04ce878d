"""C that runs all steps of a sequence in one call: products and row passes in turn, on torch's own threads.

A step's product is small: 32 rows, say, and a weight that is the same at every step. torch's product reads that
weight as it lies, and every call waits for all threads. Here a weight is laid out once per sequence, in panels of a
few vectors' width, and the threads share out the rows: a thread takes its own rows through all steps and never waits.
Where there are too few rows for that (a single one, say) they share out the panels and meet after every product and
pass.

This file is the text; c_run.py fills in what it works on.
"""

from __future__ import annotations

from recurra.engines.c_products import one_row

PANEL = 3
"""Vectors side by side in a panel; with ROWS_AT_ONCE rows each, their sums stay in registers."""

ROWS_AT_ONCE = 8
"""Where there are 32 vector registers; with 16, half as many."""

MEETING = """\
#include <sched.h>
#include <stdatomic.h>

/* Wait until all have come. Whoever has looked often enough lets others have the core. */
static void meet(atomic_long *arrived, atomic_long *round, long members, long patience) {
    if (members == 1) return;
    const long now = atomic_load(round);
    if (atomic_fetch_add(arrived, 1) == members - 1) {
        atomic_store(arrived, 0);
        atomic_store(round, now + 1);
        return;
    }
    for (long tries = 0; atomic_load_explicit(round, memory_order_acquire) == now; tries++)
        if (tries > patience) sched_yield();
}

static inline long share(long total, long part, long parts) { return total * part / parts; }
"""

HEAD = """\
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

typedef {real} real;

{products}
#define AT_ONCE (REGISTERS / {registers})
#define PANEL ({panel} * LANES)

typedef void pass_of_rows(long, long, long, long, const int64_t *, real **, const int64_t *, const int64_t *);

/* A product where `pass` is null: out = operand · weight, the operand being `first` at step 0 where there is one, and
   then what the step before left. Without panels the weight is read as it lies. */
typedef struct {{
    pass_of_rows *pass;
    real **base;
    const int64_t *row, *step;
    const real *operand, *first, *weight;
    real *panels, *out;
    int64_t operand_row, operand_step, first_row, weight_row, weight_column, depth, width;
}} operation;

/* Forward, what a step reads of one state: a copy of what the step before wrote, or the state to start anew from. */
typedef struct {{
    const real *written, *anew;
    real *read;
    int64_t written_row, written_step, anew_row, read_row, read_step, width;
}} restart;

/* Backward, a part of a state's gradient: not for the step before where the state started anew. */
typedef struct {{
    real *base;
    int64_t row, step, width;
}} cut;

/* `resets` says of each row and step whether the state starts anew before it; null where it never does. */
typedef struct {{
    const operation *operations;
    const int64_t *lengths;
    int64_t count, rows, steps, is_backward, parts, shares_panels, patience;
    int (*number)(void), (*members)(void);
    atomic_long arrived, round;
    const unsigned char *resets;
    const restart *restarts;
    const cut *cuts;
    int64_t resets_row, restart_count, cut_count;
}} sequence;
"""

BODY = """\
static void multiply_block(long rows, const real *a, long stride, const real *panel, long depth, real *out, long width,
                           long used) {{
    switch (rows) {{
{cases}
    }}
}}

/* Rows `first` to `last` of a product, panels `from` to `to`. */
static void multiply(const operation *o, long t, long first, long last, long from, long to) {{
    const real *a = o->operand + t * o->operand_step;
    long stride = o->operand_row;
    if (o->first) {{
        a = t ? a - o->operand_step : o->first;
        stride = t ? stride : o->first_row;
    }}
    if (!o->panels) {{
        /* A single row needs none where the weight is a transpose: each column lies in one piece. */
        multiply_row(a, o->weight, o->weight_column, o->depth, from * PANEL,
                     to * PANEL < o->width ? to * PANEL : o->width, o->out, t & 1);
        return;
    }}
    for (long panel = from; panel < to; panel++) {{
        const long used = o->width - panel * PANEL < PANEL ? o->width - panel * PANEL : PANEL;
        for (long row = first; row < last; row += AT_ONCE)
            multiply_block(last - row < AT_ONCE ? last - row : AT_ONCE, a + row * stride, stride,
                           o->panels + panel * PANEL * o->depth, o->depth, o->out + row * o->width + panel * PANEL,
                           o->width, used);
    }}
}}

static inline long panels_of(const operation *o) {{ return (o->width + PANEL - 1) / PANEL; }}

/* The columns of each panel side by side, row after row; the last panel is filled up with zeros. */
static void lay_out(const operation *o, long from, long to) {{
    for (long panel = from; panel < to; panel++) {{
        const long used = o->width - panel * PANEL < PANEL ? o->width - panel * PANEL : PANEL;
        const real *columns = o->weight + panel * PANEL * o->weight_column;
        real *out = o->panels + panel * PANEL * o->depth;
        if (o->weight_column == 1) {{
            for (long k = 0; k < o->depth; k++) {{
                for (long j = 0; j < used; j++) out[k * PANEL + j] = columns[k * o->weight_row + j];
                for (long j = used; j < PANEL; j++) out[k * PANEL + j] = 0;
            }}
        }} else {{
            /* A few rows at a time, so that what is read and what is written both stay in the cache. */
            for (long start = 0; start < o->depth; start += 16) {{
                const long end = start + 16 < o->depth ? start + 16 : o->depth;
                for (long j = 0; j < PANEL; j++)
                    for (long k = start; k < end; k++)
                        out[k * PANEL + j] = j < used ? columns[k * o->weight_row + j * o->weight_column] : 0;
            }}
        }}
    }}
}}

/* Lay out for step t what rows read of the states before it. */
static void start_anew(const sequence *s, long t, long first, long last) {{
    for (long b = first; b < last; b++)
        for (long n = 0; n < s->restart_count; n++) {{
            const restart *r = s->restarts + n;
            const real *from = r->written + b * r->written_row + (t - 1) * r->written_step;
            if (s->resets[b * s->resets_row + t]) from = r->anew + b * r->anew_row;
            memcpy(r->read + b * r->read_row + (t - 1) * r->read_step, from, r->width * sizeof(real));
        }}
}}

/* Drop what step t has left for the gradient of the states before it, in rows where these were not read. */
static void cut_gradients(const sequence *s, long t, long first, long last) {{
    for (long b = first; b < last; b++)
        if (s->resets[b * s->resets_row + t])
            for (long n = 0; n < s->cut_count; n++) {{
                const cut *c = s->cuts + n;
                memset(c->base + b * c->row + (t & 1) * c->step, 0, c->width * sizeof(real));
            }}
}}

static void all_steps(sequence *s, long first, long last, long member, long members) {{
    for (long step = 0; step < s->steps; step++) {{
        const long t = s->is_backward ? s->steps - 1 - step : step;
        if (s->resets && step) {{
            if (s->is_backward) cut_gradients(s, t + 1, first, last);
            else start_anew(s, t, first, last);
            if (s->shares_panels) meet(&s->arrived, &s->round, members, s->patience);
        }}
        for (long n = 0; n < s->count; n++) {{
            const operation *o = s->operations + n;
            if (o->pass) {{
                if (first < last) o->pass(first, last, member, t, s->lengths, o->base, o->row, o->step);
            }} else if (s->shares_panels) {{
                const long panels = panels_of(o);
                multiply(o, t, 0, s->rows, share(panels, member, members), share(panels, member + 1, members));
            }} else {{
                multiply(o, t, first, last, 0, panels_of(o));
            }}
            if (s->shares_panels) meet(&s->arrived, &s->round, members, s->patience);
        }}
    }}
}}

static void work(void *given) {{
    sequence *s = given;
    const long member = s->number ? s->number() : 0, members = s->members ? s->members() : 1;
    const long first = share(s->rows, member, members), last = share(s->rows, member + 1, members);
    long products = 0;
    for (long n = 0; n < s->count; n++) {{
        const operation *o = s->operations + n;
        if (o->pass) continue;
        if (o->panels) lay_out(o, share(panels_of(o), member, members), share(panels_of(o), member + 1, members));
        products++;
    }}
    if (products) {{
        meet(&s->arrived, &s->round, members, s->patience);
        all_steps(s, first, last, member, members);
        return;
    }}
    /* No weight that rows have in common: one row after the other, so that its states stay in the cache. */
    for (long row = first; row < last; row++) all_steps(s, row, row + 1, member, members);
}}

typedef void parallel_region(void (*)(void *), void *, unsigned, unsigned);

void run(sequence *s, parallel_region *parallel) {{
    if (parallel)
        parallel(work, s, (unsigned)s->parts, 0);
    else
        work(s);
}}

long panel_width(void) {{ return PANEL; }}
"""


def block(rows: int) -> str:
    """C that multiplies so many rows with one panel, all sums in registers."""
    sums = [(i, v) for i in range(rows) for v in range(PANEL)]
    lines = [
        f"static void block_{rows}(const real *a, long stride, const real *panel, long depth, real *out, long width,",
        "                    long used) {",
        *(f"    vector c{i}_{v} = {{0}};" for i, v in sums),
        "    for (long k = 0; k < depth; k++) {",
        *(f"        const vector b{v} = *(const vector *)(panel + k * PANEL + {v} * LANES);" for v in range(PANEL)),
    ]
    for i in range(rows):
        lines.append(f"        const real a{i} = a[{i} * stride + k];")
        lines += [f"        c{i}_{v} += a{i} * b{v};" for v in range(PANEL)]
    lines += [
        "    }",
        "    if (used == PANEL) {",
        *(f"        *(vector *)(out + {i} * width + {v} * LANES) = c{i}_{v};" for i, v in sums),
        "        return;",
        "    }",
        f"    real whole[{rows} * PANEL];",
        *(f"    *(vector *)(whole + {i} * PANEL + {v} * LANES) = c{i}_{v};" for i, v in sums),
        f"    for (long i = 0; i < {rows}; i++)",
        "        memcpy(out + i * width, whole + i * PANEL, used * sizeof(real));",
        "}",
        "",
    ]
    return "\n".join(lines)


def text(is_double: bool) -> str:
    """The whole C file."""
    call = "a, stride, panel, depth, out, width, used); break;"
    cases = "\n".join(f"        case {rows}: block_{rows}({call}" for rows in range(1, ROWS_AT_ONCE + 1))
    head = HEAD.format(
        real="double" if is_double else "float",
        products=one_row(is_double),
        registers=32 // ROWS_AT_ONCE,
        panel=PANEL,
    )
    blocks = (block(rows) for rows in range(1, ROWS_AT_ONCE + 1))
    return "\n".join([head, *blocks, MEETING, BODY.format(cases=cases)])
