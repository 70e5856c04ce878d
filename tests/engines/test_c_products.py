"""Products with a weight as it lies, in C, are those of numpy in float64."""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.engines.c_library import library
from recurra.engines.c_products import many_rows, room_size

WRAPPED = """
void rows(const real *a, long rows, const real *w, long depth, const real *b, long from, long to, real *out,
          long out_row, real *room) {
    multiply_rows(in_vectors(a, rows, depth, room), rows, w, depth, b, from, to, out, out_row);
}
void row(const real *a, const real *w, long stride, long depth, long from, long to, real *out, int down) {
    multiply_row(a, w, stride, depth, from, to, out, down);
}
"""


Number: TypeAlias = type[np.float32] | type[np.float64]

MACHINES = [(16, 16), (16, 32), (32, 16), (64, 32)]  # bytes of a vector, how many registers: SSE, NEON, AVX, AVX-512
KINDS = [(dtype, machine) for dtype in (np.float32, np.float64) for machine in MACHINES]


def code(dtype: Number, machine: tuple[int, int]) -> ctypes.CDLL:
    """The products as for that machine; one that has no such vectors makes do with its own."""
    name = "double" if dtype is np.float64 else "float"
    text = many_rows(dtype is np.float64)
    first, last = text.index("#if defined(__AVX512F__)"), text.index("typedef real vector")
    defined = f"#define BYTES {machine[0]}\n#define REGISTERS {machine[1]}\n"
    return library(f"#include <string.h>\ntypedef {name} real;\n{text[:first]}{defined}{text[last:]}{WRAPPED}")


def at(array: NDArray[Any] | None) -> ctypes.c_void_p | None:
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


SIZES = st.integers(1, 70)


@pytest.mark.parametrize(("dtype", "machine"), KINDS)
@settings(max_examples=settings().max_examples // 2)
@given(rows=st.integers(0, 110), depth=SIZES, width=SIZES, has_bias=st.booleans(), cut=st.data())
def test_some_rows_times_some_of_a_weight(
    dtype: Number, machine: tuple[int, int], rows: int, depth: int, width: int, has_bias: bool, cut: st.DataObject
) -> None:
    first = cut.draw(st.integers(0, width))
    last = cut.draw(st.integers(first, width))
    draw = np.random.default_rng(rows * 1000 + depth)
    a, w, b = (draw.normal(size=shape).astype(dtype) for shape in ((rows, depth), (width, depth), width))
    out = np.full((rows, width + 3), 7, dtype)
    longs = [ctypes.c_long(number) for number in (rows, depth, first, last, width + 3)]
    room = np.empty(room_size(rows, depth), dtype)
    code(dtype, machine).rows(
        at(a), longs[0], at(w), longs[1], at(b if has_bias else None), *longs[2:4], at(out), longs[4], at(room)
    )
    expected = a.astype(np.float64) @ w.T.astype(np.float64) + (b.astype(np.float64) if has_bias else 0)
    np.testing.assert_allclose(out[:, first:last], expected[:, first:last], atol=2e-5 if dtype is np.float32 else 1e-12)
    assert (np.delete(out, np.s_[first:last], 1) == 7).all(), "nothing is written beside what was asked for"


@pytest.mark.parametrize(("dtype", "machine"), KINDS)
@settings(max_examples=settings().max_examples // 2)
@given(depth=SIZES, width=SIZES, extra=st.integers(0, 3), down=st.booleans(), cut=st.data())
def test_one_row_times_some_of_a_weight(
    dtype: Number, machine: tuple[int, int], depth: int, width: int, extra: int, down: bool, cut: st.DataObject
) -> None:
    first = cut.draw(st.integers(0, width - 1))
    last = cut.draw(st.integers(first + 1, width))
    draw = np.random.default_rng(depth * 1000 + width)
    a, w = draw.normal(size=depth).astype(dtype), draw.normal(size=(width, depth + extra)).astype(dtype)
    out = np.full(width, 7, dtype)
    longs = [ctypes.c_long(number) for number in (depth + extra, depth, first, last)]
    code(dtype, machine).row(at(a), at(w), *longs, at(out), ctypes.c_int(down))
    expected = w[:, :depth].astype(np.float64) @ a.astype(np.float64)
    np.testing.assert_allclose(out[first:last], expected[first:last], atol=2e-5 if dtype is np.float32 else 1e-12)
    assert (np.delete(out, np.s_[first:last]) == 7).all(), "nothing is written beside what was asked for"


@pytest.mark.parametrize(("dtype", "machine"), KINDS)
@pytest.mark.parametrize("depth", [20, 40])
def test_what_lies_beside_the_rows_is_not_read(dtype: Number, machine: tuple[int, int], depth: int) -> None:
    """A vector that reaches back meets numbers of its own row alone: NaN around a and w does not come in."""
    a, w = (np.full((3, depth * n), np.nan, dtype) for n in (5, 9))
    a[1], w[1] = 1, 2
    out, room = np.zeros((5, 9), dtype), np.empty(room_size(5, depth), dtype)
    longs = [ctypes.c_long(number) for number in (5, depth, 0, 9, 9)]
    code(dtype, machine).rows(at(a[1]), longs[0], at(w[1]), longs[1], None, *longs[2:4], at(out), longs[4], at(room))
    assert (out == 2 * depth).all()


@pytest.mark.parametrize(("dtype", "machine"), KINDS)
def test_a_weight_without_bound_stays_what_it_is(dtype: Number, machine: tuple[int, int]) -> None:
    a, w = np.ones((7, 37), dtype), np.ones((5, 37), dtype)
    for place in range(37):
        w[1, place] = np.inf
        out, room = np.zeros((7, 5), dtype), np.empty(room_size(7, 37), dtype)
        longs = [ctypes.c_long(number) for number in (7, 37, 0, 5, 5)]
        code(dtype, machine).rows(at(a), longs[0], at(w), longs[1], None, *longs[2:4], at(out), longs[4], at(room))
        assert (out[:, 1] == np.inf).all()
        assert (np.delete(out, 1, 1) == 37).all()
        w[1, place] = 1
