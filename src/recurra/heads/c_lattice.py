"""The best path of each row in C: what lattice.best_path does, without a call of NumPy for every step."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

TEXT = """\
static inline double larger(double a, double b) { return b > a ? b : a; }

/* log Σ_a exp(alpha[a] + A[a, b]), the largest taken out. */
static double log_sum(long L, const double *alpha, const double *A, long b) {
    double largest = -INFINITY, sum = 0;
    for (long a = 0; a < L; a++) largest = larger(largest, alpha[a] + A[a * L + b]);
    if (largest == -INFINITY) return largest;
    for (long a = 0; a < L; a++) sum += exp(alpha[a] + A[a * L + b] - largest);
    return log(sum) + largest;
}

/* scratch: v (T, L), then alpha, relative and next (L each). expA is exp(A - high). Goes on with step *at, and returns
   0 where there is no work left to do in this call. */
static int one_row(long T, long L, const double *e, const double *A, const double *expA, double high,
                   const double *start, const double *end, int64_t *labels, double *log_p, double *scratch,
                   int64_t *at, double *work_left) {
    double *v = scratch, *alpha = v + T * L, *relative = alpha + L, *next = relative + L;
    for (long b = 0; b < L && *at == 0; b++) alpha[b] = v[b] = start[b] + e[b];
    for (long t = *at ? *at : 1; t < T; t++) {
        *at = t;
        if (*work_left <= 0) return 0;
        *work_left -= (double)L * (double)L;
        const double *before = v + (t - 1) * L, *e_t = e + t * L;
        double *now = v + t * L, largest = -INFINITY;
        for (long b = 0; b < L; b++) now[b] = -INFINITY, next[b] = 0;
        for (long a = 0; a < L; a++) largest = larger(largest, alpha[a]);
        largest = largest == -INFINITY ? 0 : largest; /* then exp gives 0 for every label */
#pragma omp simd
        for (long a = 0; a < L; a++) relative[a] = r_exp(alpha[a] - largest);
        for (long a = 0; a < L; a++) {
            const double from = before[a], share = relative[a];
            for (long b = 0; b < L; b++) {
                const double to = from + A[a * L + b];
                now[b] = now[b] > to ? now[b] : to;
                next[b] += share * expA[a * L + b];
            }
        }
        /* Where the sum is so small that numbers were lost, it is taken once more as it is written. */
#pragma omp simd
        for (long b = 0; b < L; b++) relative[b] = r_log(next[b]) + largest + high;
        for (long b = 0; b < L; b++) next[b] = (next[b] > 1e-200 ? relative[b] : log_sum(L, alpha, A, b)) + e_t[b];
        for (long b = 0; b < L; b++) alpha[b] = next[b], now[b] += e_t[b];
    }
    double best = -INFINITY, largest = -INFINITY, sum = 0;
    long y = 0;
    for (long b = 0; b < L; b++) {
        const double score = v[(T - 1) * L + b] + end[b];
        if (score > best) best = score, y = b;
        largest = larger(largest, alpha[b] + end[b]);
    }
    for (long b = 0; b < L; b++) sum += exp(alpha[b] + end[b] - largest);
    const double found = best - (log(sum) + largest);
    *log_p = found > 0 ? 0 : found; /* rounding may put it a little above */
    labels[T - 1] = y;
    for (long t = T - 2; t >= 0; t--) {
        double highest = -INFINITY;
        const long to = y;
        y = 0;
        for (long a = 0; a < L; a++) {
            const double score = v[t * L + a] + A[a * L + to];
            if (score > highest) highest = score, y = a;
        }
        labels[t] = y;
    }
    return 1;
}

static void doubled(long count, const score_t *from, double *to) {
    for (long n = 0; n < count; n++) to[n] = from[n];
}

/* The emissions of a row are W h + b, or given as h where there is no W.
   scratch: A, exp(A - high) (L, L), start, end (L), high, e (T, L), and what one_row needs; room: W h + b (T, L), and
   what in_vectors needs. at: the row, its step, and whether A is doubled; zeros at first. Does no more than some work
   in one call, and returns 0 where it is to be called again. */
int best_path(long rows, long steps, long L, long depth, const score_t *features, const int64_t *lengths,
              const score_t *given_A, const score_t *given_start, const score_t *given_end, const score_t *W,
              const score_t *b, int64_t *labels, double *log_p, double *scratch, score_t *room, int64_t *at,
              double work_left) {
    double *A = scratch, *expA = A + L * L, *start = expA + L * L, *end = start + L, *high = end + L, *e = high + 1;
    if (!at[2]) {
        doubled(L * L, given_A, A), doubled(L, given_start, start), doubled(L, given_end, end);
        *high = -INFINITY;
        for (long n = 0; n < L * L; n++) *high = A[n] < INFINITY ? larger(*high, A[n]) : *high;
        *high = *high == -INFINITY ? 0 : *high;
        for (long n = 0; n < L * L; n++) expA[n] = exp(A[n] - *high);
        at[2] = 1;
    }
    for (; at[0] < rows; at[0]++, at[1] = 0) {
        const long row = at[0], T = lengths[row];
        const score_t *h = features + row * steps * depth;
        if (T <= 0) continue;
        if (!at[1]) {
            if (W) multiply_rows(in_vectors(h, T, depth, room + steps * L), T, W, depth, b, 0, L, room, L);
            doubled(T * L, W ? room : h, e);
        }
        if (!one_row(T, L, e, A, expA, *high, start, end, labels + row * steps, log_p + row, e + steps * L, at + 1,
                     &work_left))
            return 0;
    }
    return 1;
}
"""

WORK = 1e8
"""Pairs of labels that one call of C looks at, about: a fraction of a second, after which Ctrl-C is seen."""


@functools.cache
def compiled(is_double: bool) -> ctypes.CDLL | None:
    """None where nothing can be compiled."""
    from recurra.engines.c_library import NoCompiler, library
    from recurra.engines.c_prelude import prelude
    from recurra.engines.c_products import many_rows

    # Paths are compared in float64 whatever the scores are: after this, `real` is the type of the scores.
    scores = f"typedef {'double' if is_double else 'float'} score_t;\n#define real score_t\n"
    try:
        code = library("\n".join([prelude(True), scores, many_rows(is_double), TEXT]))
    except NoCompiler:
        return None
    code.best_path.argtypes = [*[ctypes.c_long] * 4, *[ctypes.c_void_p] * 12, ctypes.c_double]
    return code


def scratch_size(labels: int, steps: int) -> int:
    return labels * (2 * labels + 2 * steps + 5) + 1


def best_path_at(
    is_double: bool,
    shape: tuple[int, int, int, int],
    given: Sequence[int],
    results: Sequence[int],
    scratch: int,
    *,
    readout: tuple[int | None, int | None] = (None, None),
    room: int | None = None,
) -> bool:
    """The same with the addresses of arrays in C order; False where nothing can be compiled.

    shape    B, T, L and the size of a feature vector
    given    features, lengths (int64), A, start, end: float64 where is_double, else float32
    results  labels (int64) and log-probabilities (float64), which hold zeros
    scratch  scratch_size(L, T) numbers, float64
    readout  W and b, by which emissions are W h + b; None where the features are the emissions
    room     for W h + b (T, L) and for what in_vectors needs, where there is a W
    """
    code = compiled(is_double)
    if code is None:
        return False
    at = (ctypes.c_int64 * 3)()
    while not code.best_path(*shape, *given, *readout, *results, scratch, room, at, WORK):
        pass  # Python sees Ctrl-C between two calls
    return True


def best_path(
    A: NDArray[Any], start: NDArray[Any], end: NDArray[Any], emissions: NDArray[Any], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Labels (B, T) and log-probabilities (B,), as lattice.best_path gives them; None where nothing can be compiled.

    The scores are float32 or float64 as `emissions` are; it computes in float64.
    """
    check(A, start, end, emissions, lengths)
    rows, steps, size = emissions.shape
    given = [np.ascontiguousarray(array, emissions.dtype) for array in (emissions, A, start, end)]
    given.insert(1, np.ascontiguousarray(lengths, np.int64))
    results = np.zeros((rows, steps), np.int64), np.zeros(rows)
    scratch = np.empty(scratch_size(size, steps))
    was_found = best_path_at(
        emissions.dtype == np.float64,
        (rows, steps, size, size),
        [array.ctypes.data for array in given],
        [array.ctypes.data for array in results],
        scratch.ctypes.data,
    )
    return results if was_found else None


def check(
    A: NDArray[Any], start: NDArray[Any], end: NDArray[Any], emissions: NDArray[Any], lengths: NDArray[np.int64]
) -> None:
    """C reads and writes as far as these say: a DataError where they do not fit each other."""
    if emissions.ndim != 3 or emissions.dtype not in (np.float32, np.float64):
        raise DataError(
            f"emissions must be float32 or float64 and have the shape (rows, steps, labels), but are "
            f"{emissions.dtype} of shape {emissions.shape}."
        )
    rows, steps, size = emissions.shape
    if A.shape != (size, size) or start.shape != (size,) or end.shape != (size,):
        raise DataError(
            f"a chain of {size} labels needs scores of the shapes ({size}, {size}), ({size},) and ({size},), but has "
            f"{A.shape}, {start.shape} and {end.shape}."
        )
    if lengths.shape != (rows,) or not np.issubdtype(lengths.dtype, np.integer):
        raise DataError(f"lengths must be {rows} whole numbers, but are {lengths.dtype} of shape {lengths.shape}.")
    if rows and lengths.max() > steps:
        raise DataError(f"lengths must lie between 0 and {steps}, but one is {lengths.max()}.")
