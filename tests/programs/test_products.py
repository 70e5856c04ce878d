"""Products and sums of rows in C: NumPy's numbers at odd sizes, and the same for a row alone and among others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.engines.c_library import compiler
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.program import Function, Named, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.weights import read_weights, write_weights

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler here")

WEIGHTS = {f"W{K}x{N}": (K, N) for K, N in ((1, 1), (7, 17), (33, 64), (64, 130), (5, 300))}
G, M, K, N = map(Size.named, "GMKN")


def value(*shape: Size) -> Value:
    return Value("float32", shape)


def products() -> Program:
    """A product with each of the weights, those of activations however they lie, and sums of rows."""
    functions = {}
    for name, (inner, columns) in WEIGHTS.items():
        y = value(M, Size.of(columns))
        x = Named("x", value(M, Size.of(inner)))
        functions[name] = Function((x,), (Operation("matmul", (0, name), (y,)),), (("y", 1),))
    a, b = Named("a", value(G, M, K)), Named("b", value(G, K, N))
    y = value(G, M, N)
    functions["rows"] = Function((a, b), (Operation("matmul", (0, 1), (y,)),), (("y", 2),))
    turned = {"order": (0, 2, 1)}
    other = Named("b", value(G, N, K))
    moved = Operation("permute", (1,), (value(G, K, N),), turned)
    functions["columns"] = Function((a, other), (moved, Operation("matmul", (0, 2), (y,))), (("y", 3),))
    both = Operation("permute", (0,), (value(G, M, K),), turned)
    aside = Named("a", value(G, K, M))
    functions["both"] = Function((aside, other), (both, moved, Operation("matmul", (2, 3), (y,))), (("y", 4),))
    x = Named("x", value(M, N))
    negative = Operation("neg", (0,), (value(M, N),))
    sums = [Operation(kind, (of,), (value(M),), {"dims": (1,)}) for kind in ("sum", "max") for of in (0, 1)]
    functions["reduced"] = Function((x,), (negative, *sums), tuple((f"y{n}", n) for n in range(2, 6)))
    return Program(functions, {name: ("float32", shape) for name, shape in WEIGHTS.items()})


@cache
def both() -> tuple[InC, InNumpy]:
    program, drawn = products(), np.random.default_rng(0)
    weights = {name: drawn.standard_normal(shape).astype(np.float32) for name, shape in WEIGHTS.items()}
    with TemporaryDirectory() as folder:
        write_weights(Path(folder) / "weights.bin", program, weights)
        content, arrays = read_weights(Path(folder) / "weights.bin", program)
    return InC(program, content), InNumpy(program, arrays)


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def shared_out() -> Iterator[InC]:
    """The products, computed by three threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        in_c = both()[0]
        yield InC(in_c.program, in_c.content)
    finally:
        torch.set_num_threads(before)


def test_products_are_the_same_with_any_number_of_threads_and_from_several_at_once(shared_out: InC) -> None:
    x = numbers(500, 64)
    [alone] = both()[0].run("W64x130", [x])
    assert shared_out.code.recurra_threads(3) == 3
    with ThreadPoolExecutor(4) as several:
        found = [*several.map(lambda _: shared_out.run("W64x130", [x])[0], range(20))]
    shared_out.code.recurra_threads(1)
    assert all(np.array_equal(each, alone) for each in [*found, *shared_out.run("W64x130", [x])])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_that_forked_computes_without_the_threads_that_it_lost(shared_out: InC) -> None:
    x = numbers(500, 64)
    [right] = shared_out.run("W64x130", [x])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(shared_out.run("W64x130", [x])[0], right) else 1)
    assert os.waitpid(child, 0)[1] == 0


def assert_agree(name: str, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
    in_c, in_numpy = both()
    found = in_c.run(name, inputs)
    for one, other in zip(found, in_numpy.run(name, inputs), strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-4), name
    return found


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 32, 241])
def test_a_product_with_weights_is_numpys_and_each_row_is_what_it_is_alone(name: str, rows: int) -> None:
    x = numbers(rows, WEIGHTS[name][0])
    x[1::3] = 0
    [y] = assert_agree(name, x)
    for row in range(min(rows, 12)):
        [alone] = both()[0].run(name, [x[row : row + 1]])
        assert np.array_equal(alone[0], y[row]), row


@given(st.integers(0, 3), st.integers(0, 9), st.integers(0, 70), st.integers(0, 70))
@settings(max_examples=40, deadline=None)
def test_products_of_activations_are_numpys_however_they_lie(g: int, m: int, k: int, n: int) -> None:
    assert_agree("rows", numbers(g, m, k), numbers(g, k, n))
    assert_agree("columns", numbers(g, m, k), numbers(g, n, k))
    assert_agree("both", numbers(g, k, m), numbers(g, n, k))


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 511, 512, 513, 1100])
def test_sums_and_maxima_of_rows_are_numpys(columns: int) -> None:
    assert_agree("reduced", numbers(3, columns))


@pytest.mark.parametrize("place", [0, 31, 40, 513])
def test_a_maximum_of_what_is_not_a_number_is_none(place: int) -> None:
    x = numbers(2, 530)
    x[1, place] = np.nan
    found = both()[0].run("reduced", [x])
    assert all(np.isnan(each).tolist() == [False, True] for each in found)
