"""C that reads one row by an LSTM, both directions in one call, alone or with several threads.

This file is the text; single.py fills in what it works on.
"""

from __future__ import annotations

TEXT = """\
/* How many steps of a block of units are done: in a line of the cache of its own, for others look at it. */
typedef struct { _Alignas(64) atomic_long steps; } progress;

/* h and c are those before the first step, and then after the last. `room` is for W x + b of every step, for U h of one
   step, for each thread, and for the c of every step. The outputs of the steps lie in the order of x, so far apart, and
   so do their c where they are wanted. `resets`, null where there are none, says of each step in the order of reading
   whether the state before it is anew_h and anew_c. */
typedef struct {
    const real *W, *b, *U;
    real *h, *c, *outputs, *every_c, *room;
    int64_t apart, is_backward, together;
    progress *done;
    atomic_long arrived, round;
    const unsigned char *resets;
    const real *anew_h, *anew_c;
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

static inline int starts_anew(const direction *d, long step) { return d->resets && d->resets[step]; }

/* The units `first` to `last` of a step; a is room for U h. */
static inline void step_units(const layer *l, const direction *d, long step, real *a, const real *c_before, real *c,
                              long first, long last) {
    const long H = l->size, t = time_of(l, d, step);
    const real *x = d->room + t * 4 * H, *before = step ? d->outputs + time_of(l, d, step - 1) * d->apart : d->h;
    if (starts_anew(d, step)) before = d->anew_h, c_before = d->anew_c;
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
