"""The best label of each step by a linear layer, in C: scores are compared where they were computed, in the cache.

o = W h + b,   best = argmax_k o_k,   log p = o_best - log Σ_k exp(o_k)
"""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from recurra.engines.c_library import NoCompiler, can_read, library
from recurra.engines.c_looked_up import DEEP, HEAD, WIDE, block
from recurra.engines.c_prelude import prelude
from recurra.engines.c_products import VECTORS
from recurra.engines.c_run import team

TILE = 24
"""Steps whose scores are computed together: of a thousand labels, they lie in the second cache."""

BODY = """\
static void multiply_block(long rows, const real *h, long depth, const real *panel, const real **from, long at,
                           real *out, long width) {{
    switch (rows) {{
{cases}
    }}
}}

/* W (L, D) in panels of columns, filled up with zeros. */
void lay_out(const real *W, long L, long D, real *panels) {{
    for (long n = 0; n < L; n += PANEL)
        for (long k = 0; k < D; k++)
            for (long j = 0; j < PANEL; j++) panels[n * D + k * PANEL + j] = n + j < L ? W[(n + j) * D + k] : 0;
}}

static long best_of(const real *o, long L, real *largest) {{
    real most = -(real)INFINITY;
#pragma omp simd reduction(max : most)
    for (long k = 0; k < L; k++) most = o[k] > most ? o[k] : most;
    *largest = most;
    long k = 0;
    while (k < L - 1 && o[k] != most) k++;
    return o[k] == most ? k : 0;
}}

/* h (N, D); panels as lay_out makes them, and b, filled up with zeros to `width`; for each thread room for TILE rows of
   scores. log_p may be null. */
typedef struct {{
    const real *h, *panels, *b;
    real *room, *log_p;
    int64_t *labels;
    int64_t N, D, L, width;
    int (*number)(void), (*members)(void);
}} steps;

static void work(void *given) {{
    const steps *s = given;
    const long member = s->number ? s->number() : 0, members = s->members ? s->members() : 1, width = s->width;
    real *room = s->room + member * TILE * width;
    const real *from[DEEP];
    for (long i = 0; i < DEEP; i++) from[i] = s->b;
    for (long first = member * TILE; first < s->N; first += members * TILE) {{
        const long count = s->N - first < TILE ? s->N - first : TILE;
        for (long n = 0; n < width; n += PANEL)
            for (long i = 0; i < count; i += DEEP)
                multiply_block(count - i < DEEP ? count - i : DEEP, s->h + (first + i) * s->D, s->D,
                               s->panels + n * s->D, from, n, room + i * width + n, width);
        for (long i = 0; i < count; i++) {{
            const real *o = room + i * width;
            real most;
            s->labels[first + i] = best_of(o, s->L, &most);
            if (!s->log_p) continue;
            real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long k = 0; k < s->L; k++) sum += r_exp(o[k] - most);
            s->log_p[first + i] = -r_log(sum);
        }}
    }}
}}

typedef void parallel_region(void (*)(void *), void *, unsigned, unsigned);

void best(steps *s, parallel_region *parallel, long parts) {{
    if (parallel)
        parallel(work, s, (unsigned)parts, 0);
    else
        work(s);
}}

long panel_width(void) {{ return PANEL; }}
"""


class Steps(ctypes.Structure):
    """`steps` of the text."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("h", "panels", "b", "room", "log_p", "labels")),
        *((name, ctypes.c_int64) for name in ("N", "D", "L", "width")),
        *((name, ctypes.c_void_p) for name in ("number", "members")),
    )


@functools.cache
def compiled(is_double: bool) -> ctypes.CDLL | None:
    cases = "\n".join(
        f"        case {rows}: block_{rows}(h, depth, panel, from, at, out, width); break;"
        for rows in range(1, DEEP + 1)
    )
    head = HEAD.format(wide=WIDE, deep=DEEP, shallow=2, tile=TILE)
    blocks = (block(rows) for rows in range(1, DEEP + 1))
    parts = [prelude(is_double), VECTORS.format(is_double=int(is_double)), head, *blocks, BODY.format(cases=cases)]
    try:
        found = library("\n".join(parts))
    except NoCompiler:
        return None
    P, n = ctypes.c_void_p, ctypes.c_long
    found.lay_out.argtypes, found.lay_out.restype = [P, n, n, P], None
    found.best.argtypes, found.best.restype = [P, P, n], None
    found.panel_width.restype = ctypes.c_long
    return found


def best_labels(h: Tensor, W: Tensor, b: Tensor, *, scored: bool = True) -> tuple[Tensor, Tensor] | None:
    """The best label (N,) of each of h (N, D), and its log p (zeros where it is not wanted); None where C cannot.

    Of labels that are equally good, the first.

    >>> W = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> found = best_labels(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), W, torch.zeros(3))
    >>> found is None or found[0].tolist() == [0, 1]
    True
    """
    if h.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return None
    W, b = W.detach().contiguous(), b.detach().contiguous()
    if not can_read(h.dtype, h, W, b) or (code := compiled(h.dtype == torch.float64)) is None:
        return None
    (N, D), L = h.shape, len(W)
    panel = code.panel_width()
    width = -(-L // panel) * panel
    panels, bias = h.new_empty(width * D), h.new_zeros(width)
    bias[:L] = b
    parts = max(1, min(torch.get_num_threads() if team() is not None else 1, N // TILE))
    crew = team() if parts > 1 else None
    room = h.new_empty(parts * TILE * width)
    labels, log_p = torch.zeros(N, dtype=torch.long), h.new_zeros(N)
    code.lay_out(W.data_ptr(), L, D, panels.data_ptr())
    given = Steps(
        *(tensor.data_ptr() for tensor in (h, panels, bias, room)),
        log_p.data_ptr() if scored else None,
        labels.data_ptr(),
        *(N, D, L, width),
        *(crew and crew.number, crew and crew.members),
    )
    code.best(ctypes.addressof(given), crew and crew.parallel, parts)
    return labels, log_p
