"""Means of rows of a table and their gradient, in C.

Each walks over what a batch names and nothing else. Several threads take a share of the batch's rows each and their
sums are added in order, so that the same number of threads gives the same weights each time.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.engines.c_library import NoCompiler, library
from recurra.errors import DataError
from recurra.padding import WHOLE

TEXT = """\
#include <stdint.h>
#include <string.h>

/* out[row] = gain / N  sum of table[id] over the N ids of rows first .. last. */
void bag_mean(long first, long last, long size, const float *table, const int32_t *ids, const int64_t *ends,
              float gain, float *out) {
    for (long row = first; row < last; row++) {
        float *y = out + row * size;
        const long start = row ? ends[row - 1] : 0, end = ends[row];
        memset(y, 0, size * sizeof(float));
        for (long at = start; at < end; at++) {
            if (at + 8 < ends[last - 1]) __builtin_prefetch(table + (long)ids[at + 8] * size);
            const float *x = table + (long)ids[at] * size;
            for (long k = 0; k < size; k++) y[k] += x[k];
        }
        const float share = end > start ? gain / (float)(end - start) : 0.0f;
        for (long k = 0; k < size; k++) y[k] *= share;
    }
}

/* The different ids, ascending. bits has a bit for each row of the table, zero at first; before[w] becomes the number
   of ids below 64 w. */
long bag_different(long count, const int32_t *ids, long words, uint64_t *bits, int32_t *before, int64_t *different) {
    for (long at = 0; at < count; at++) bits[ids[at] >> 6] |= 1ull << (ids[at] & 63);
    long found = 0;
    for (long w = 0; w < words; w++) {
        before[w] = (int32_t)found;
        for (uint64_t left = bits[w]; left; left &= left - 1) different[found++] = 64 * w + __builtin_ctzll(left);
    }
    return found;
}

/* sums[place of id] += gain / N  gradient[row]. */
void bag_sums(long first, long last, long size, const float *gradient, const int32_t *ids, const int64_t *ends,
              float gain, const uint64_t *bits, const int32_t *before, float *sums) {
    for (long row = first; row < last; row++) {
        const float *g = gradient + row * size;
        const long start = row ? ends[row - 1] : 0, end = ends[row];
        const float share = end > start ? gain / (float)(end - start) : 0.0f;
        for (long at = start; at < end; at++) {
            const int32_t id = ids[at];
            const uint64_t below = bits[id >> 6] & ((1ull << (id & 63)) - 1);
            float *s = sums + (before[id >> 6] + (long)__builtin_popcountll(below)) * size;
            for (long k = 0; k < size; k++) s[k] += share * g[k];
        }
    }
}
"""

WORTH_A_THREAD = 1 << 18
"""Numbers that are read for a thread to pay for its start."""


@functools.cache
def compiled() -> ctypes.CDLL | None:
    """None where nothing can be compiled."""
    try:
        found = library(TEXT)
    except NoCompiler:
        return None
    at, number, real = ctypes.c_void_p, ctypes.c_long, ctypes.c_float
    found.bag_mean.argtypes = [number, number, number, at, at, at, real, at]
    found.bag_different.argtypes = [number, at, number, at, at, at]
    found.bag_different.restype = number
    found.bag_sums.argtypes = [number, number, number, at, at, at, real, at, at, at]
    return found


def checked(ids: Tensor, ends: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The ids of a table of so many rows, int32, and where each text ends among them, int64; both without gaps."""
    for name, given in (("the features", ids), ("the ends", ends)):
        if given.dim() != 1 or given.dtype not in WHOLE:
            raise DataError(
                f"{name} of a batch of texts must be one row of whole numbers, but their shape is "
                f"{tuple(given.shape)} and they are {given.dtype}."
            )
    if len(ids):
        low, high = (int(bound) for bound in torch.stack(ids.aminmax()).tolist())
        if low < 0 or high >= rows:
            wrong = low if low < 0 else high
            raise DataError(f"a batch of texts has the feature {wrong}, but the table has rows 0 to {rows - 1}.")
    starts = torch.cat([ends.new_zeros(1), ends])
    if (len(ends) == 0 and len(ids)) or starts[-1] != len(ids) or bool((starts[1:] < starts[:-1]).any()):
        raise DataError(
            f"the ends of the texts must not decrease, and the last must be the number of all features, {len(ids)}, "
            f"but they are {ends.tolist() if len(ends) < 9 else ends[:8].tolist()}."
        )
    return ids.to(torch.int32).contiguous(), ends.to(torch.int64).contiguous()


def mean(table: Tensor, ids: Tensor, ends: Tensor, gain: float) -> Tensor:
    """(B, n): gain times the mean of the rows that each of B texts names. `ids` and `ends` must be `checked`."""
    code = compiled()
    assert code is not None
    rows, size = len(ends), table.shape[1]
    out = torch.empty(rows, size, dtype=torch.float32)
    places = (table.data_ptr(), ids.data_ptr(), ends.data_ptr())
    shared(shares(rows, len(ids) * size), lambda _, a, b: code.bag_mean(a, b, size, *places, gain, out.data_ptr()))
    return out


def gradient(of_mean: Tensor, ids: Tensor, ends: Tensor, gain: float, rows: int) -> Tensor:
    """The gradient of a table of so many rows, sparse and coalesced, from that of the means, (B, n) in float32."""
    code = compiled()
    assert code is not None
    assert of_mean.dtype == torch.float32
    assert len(of_mean) == len(ends)
    ids, ends = checked(ids, ends, rows)
    of_mean = of_mean.contiguous()
    size = of_mean.shape[1]
    words = rows // 64 + 1
    bits: NDArray[np.uint64] = np.zeros(words, np.uint64)
    before: NDArray[np.int32] = np.empty(words, np.int32)
    different = torch.empty(1, len(ids), dtype=torch.int64)
    marks = (bits.ctypes.data, before.ctypes.data)
    count = code.bag_different(len(ids), ids.data_ptr(), words, *marks, different.data_ptr())
    edges = shares(len(ends), len(ids) * size)
    sums = torch.zeros(len(edges) - 1, count, size, dtype=torch.float32)
    places = (of_mean.data_ptr(), ids.data_ptr(), ends.data_ptr())
    shared(edges, lambda n, a, b: code.bag_sums(a, b, size, *places, gain, *marks, sums[n].data_ptr()))
    values = sums[0]
    for more in sums[1:]:
        values += more
    return torch.sparse_coo_tensor(
        different[:, :count], values, (rows, size), is_coalesced=True, check_invariants=False
    )


def shares(rows: int, numbers: int) -> list[int]:
    """Where each thread's share of the rows begins, and the end: as many threads as torch has, where there is work."""
    threads = max(1, min(torch.get_num_threads(), numbers // WORTH_A_THREAD, rows))
    return [rows * number // threads for number in range(threads + 1)]


def shared(edges: list[int], work: Callable[[int, int, int], object]) -> None:
    """Do each share, the first one here."""
    parts = list(pairwise(edges))
    waiting = [pool().submit(work, number, *part) for number, part in enumerate(parts) if number]
    work(0, *parts[0])
    for each in waiting:
        each.result()


@functools.cache
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bag")
