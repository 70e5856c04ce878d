"""The best path of each row in C: what lattice.best_path does, without a call of NumPy for every step."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
from numpy.typing import NDArray

TEXT = """\
#include <math.h>
#include <stdint.h>

/* log Σ_a exp(alpha[a] + A[a, b]), the largest taken out. */
static double log_sum(long L, const double *alpha, const double *A, long b) {
    double largest = -INFINITY, sum = 0;
    for (long a = 0; a < L; a++) largest = fmax(largest, alpha[a] + A[a * L + b]);
    if (largest == -INFINITY) return largest;
    for (long a = 0; a < L; a++) sum += exp(alpha[a] + A[a * L + b] - largest);
    return log(sum) + largest;
}

/* scratch: v (T, L), then alpha, relative and next (L each). expA is exp(A - high). */
static void one_row(long T, long L, const double *e, const double *A, const double *expA, double high,
                    const double *start, const double *end, int64_t *labels, double *log_p, double *scratch) {
    double *v = scratch, *alpha = v + T * L, *relative = alpha + L, *next = relative + L;
    for (long b = 0; b < L; b++) alpha[b] = v[b] = start[b] + e[b];
    for (long t = 1; t < T; t++) {
        const double *before = v + (t - 1) * L, *e_t = e + t * L;
        double *now = v + t * L, largest = -INFINITY;
        for (long b = 0; b < L; b++) now[b] = -INFINITY, next[b] = 0;
        for (long a = 0; a < L; a++) largest = fmax(largest, alpha[a]);
        for (long a = 0; a < L; a++) relative[a] = largest == -INFINITY ? 0 : exp(alpha[a] - largest);
        for (long a = 0; a < L; a++) {
            const double from = before[a], share = relative[a];
            for (long b = 0; b < L; b++) {
                const double to = from + A[a * L + b];
                now[b] = now[b] > to ? now[b] : to;
                next[b] += share * expA[a * L + b];
            }
        }
        /* Where the sum is so small that numbers were lost, it is taken once more as it is written. */
        for (long b = 0; b < L; b++)
            next[b] = (next[b] > 1e-200 ? log(next[b]) + largest + high : log_sum(L, alpha, A, b)) + e_t[b];
        for (long b = 0; b < L; b++) alpha[b] = next[b], now[b] += e_t[b];
    }
    double best = -INFINITY, largest = -INFINITY, sum = 0;
    long y = 0;
    for (long b = 0; b < L; b++) {
        const double score = v[(T - 1) * L + b] + end[b];
        if (score > best) best = score, y = b;
        largest = fmax(largest, alpha[b] + end[b]);
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
}

void best_path(long rows, long steps, long L, const double *e, const int64_t *lengths, const double *A,
               const double *expA, double high, const double *start, const double *end, int64_t *labels,
               double *log_p, double *scratch) {
    for (long row = 0; row < rows; row++)
        if (lengths[row] > 0)
            one_row(lengths[row], L, e + row * steps * L, A, expA, high, start, end, labels + row * steps,
                    log_p + row, scratch);
}
"""


@functools.cache
def compiled() -> ctypes.CDLL | None:
    """None where nothing can be compiled."""
    from recurra.engines.c_library import NoCompiler, library

    try:
        return library(TEXT)
    except NoCompiler:
        return None


def best_path(
    A: NDArray[np.float64],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    emissions: NDArray[np.float64],
    lengths: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Labels (B, T) and log-probabilities (B,), as lattice.best_path gives them; None where nothing can be compiled."""
    code = compiled()
    if code is None:
        return None
    rows, steps, size = emissions.shape
    A, start, end = (np.ascontiguousarray(scores, np.float64) for scores in (A, start, end))
    emissions, lengths = np.ascontiguousarray(emissions, np.float64), np.ascontiguousarray(lengths, np.int64)
    finite = A[np.isfinite(A)]
    high = float(finite.max()) if finite.size else 0.0
    relative = np.exp(A - high)
    labels, log_p = np.zeros((rows, steps), np.int64), np.zeros(rows)
    scratch = np.empty(steps * size + 3 * size)
    sizes = (ctypes.c_long(rows), ctypes.c_long(steps), ctypes.c_long(size))
    places = [ctypes.c_void_p(array.ctypes.data) for array in (emissions, lengths, A, relative)]
    others = [ctypes.c_void_p(array.ctypes.data) for array in (start, end, labels, log_p, scratch)]
    code.best_path(*sizes, *places, ctypes.c_double(high), *others)
    return labels, log_p
