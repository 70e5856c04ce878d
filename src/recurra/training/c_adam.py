"""Adam's step for the rows of a table that a batch has met, in C."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from recurra.engines.c_library import NoCompiler, library
from recurra.errors import TrainingError

TEXT = """\
#include <math.h>
#include <stdint.h>

/* Adam for some rows of w, with the moments m and v of these rows. */
void adam_rows(long count, long size, const int64_t *rows, const float *gradient, float *w, float *m, float *v,
              float beta1, float beta2, float epsilon, float rate, float root) {
    for (long n = 0; n < count; n++) {
        const float *g = gradient + n * size;
        const long at = rows[n] * size;
        if (n + 6 < count) {
            const long soon = rows[n + 6] * size;
            __builtin_prefetch(w + soon, 1), __builtin_prefetch(m + soon, 1), __builtin_prefetch(v + soon, 1);
        }
        float *wr = w + at, *mr = m + at, *vr = v + at;
        for (long k = 0; k < size; k++) {
            mr[k] += (1.0f - beta1) * (g[k] - mr[k]);
            vr[k] += (1.0f - beta2) * (g[k] * g[k] - vr[k]);
            wr[k] -= rate * mr[k] / (sqrtf(vr[k]) / root + epsilon);
        }
    }
}
"""


@functools.cache
def compiled() -> ctypes.CDLL | None:
    """None where nothing can be compiled."""
    try:
        found = library(TEXT)
    except NoCompiler:
        return None
    at, number, real = ctypes.c_void_p, ctypes.c_long, ctypes.c_float
    found.adam_rows.argtypes = [number, number, at, at, at, at, at, real, real, real, real, real]
    return found


def adam(
    rows: Tensor,
    slope: Tensor,
    weight: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    betas: tuple[float, float],
    epsilon: float,
    rate: float,
    root: float,
) -> None:
    """Move the rows: m ← m + (1 − β₁)(g − m), v ← v + (1 − β₂)(g² − v), w ← w − rate m / (√v / root + ε)."""
    code = compiled()
    assert code is not None
    check(rows, slope, weight, first, second)
    places = [tensor.data_ptr() for tensor in (rows, slope, weight, first, second)]
    code.adam_rows(len(rows), weight.shape[1], *places, *betas, epsilon, rate, root)


def check(rows: Tensor, slope: Tensor, weight: Tensor, first: Tensor, second: Tensor) -> None:
    """C writes where it is told to: a gradient or a state of another table must not get there."""
    if not first.shape == second.shape == weight.shape:
        shapes = " and ".join(str(tuple(moment.shape)) for moment in (first, second))
        raise TrainingError(
            f"the embedding has the shape {tuple(weight.shape)}, but its state in the optimiser has {shapes}: the "
            f"state belongs to another model."
        )
    if rows.dtype != torch.int64 or slope.shape != (len(rows), weight.shape[1]):
        raise TrainingError(
            f"the sparse gradient of a table of shape {tuple(weight.shape)} has {len(rows)} row numbers "
            f"({rows.dtype}) and values of shape {tuple(slope.shape)}."
        )
    if len(rows):
        low, high = (int(bound) for bound in torch.stack(rows.aminmax()).tolist())
        if low < 0 or high >= len(weight):
            wrong = low if low < 0 else high
            raise TrainingError(f"a gradient names the row {wrong} of a table of rows 0 to {len(weight) - 1}.")
