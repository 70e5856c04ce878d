"""Narrow weights: C rounds as NumPy does, what is kept is what loses little, and programs without any are as before."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.engines.c_library import compiler
from recurra.errors import CheckpointError
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy, widened
from recurra.programs.narrowing import Narrowing, bfloat16, eight_bits, pruned
from recurra.programs.program import Function, Named, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.weights import read_weights, write_weights

SIZES = ((1, 1100), (7, 200), (33, 64), (130, 90), (1030, 70))
B = Size.named("B")


def matrices(*sizes: tuple[int, int]) -> Program:
    """y = x W', and the rows of a table, as a recording has them, for matrices of several sizes."""
    functions = {}
    for K, N in sizes:
        x, y = Value("float32", (B, Size.of(K))), Value("float32", (B, Size.of(N)))
        turned = Operation("permute", (f"W{K}",), (Value("float32", (Size.of(K), Size.of(N))),), {"order": (1, 0)})
        product = Operation("matmul", (0, 1), (y,))
        functions[f"times{K}"] = Function((Named("x", x),), (turned, product), (("y", 2),))
        ids = Named("ids", Value("int64", (B,)), below=N)
        functions[f"taken{K}"] = Function((ids,), (Operation("take", (f"W{K}", 0), (x,)),), (("y", 1),))
    return Program(functions, {f"W{K}": ("float32", (N, K)) for K, N in sizes})


def drawn(*shape: int) -> NDArray[Any]:
    found: NDArray[Any] = np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    return found


@cache
def narrow(width: Any) -> tuple[Program, dict[str, NDArray[Any]]]:
    narrowing = Narrowing(matrices(*SIZES), {f"W{K}": drawn(N, K) for K, N in SIZES})
    return narrowing.narrowed(narrowing.chosen(width))


@cache
def ways(width: Any) -> tuple[InC, InNumpy]:
    return in_c(*narrow(width)), InNumpy(*narrow(width))


def in_c(program: Program, weights: dict[str, NDArray[Any]]) -> InC:
    with TemporaryDirectory() as folder:
        write_weights(Path(folder) / "weights.bin", program, weights)
        content, _ = read_weights(Path(folder) / "weights.bin", program)
    return InC(program, content)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler here")
@pytest.mark.parametrize("width", ["int8", "bf16"])
@pytest.mark.parametrize(("K", "N"), SIZES)
def test_c_computes_with_narrow_weights_what_numpy_does(K: int, N: int, width: str) -> None:
    one, other = ways(width)
    assert one.program.weights[f"W{K}.narrow"][0] == {"int8": "int8", "bf16": "bfloat16"}[width]
    for rows in (0, 1, 2, 5, 6, 8, 250):
        x = drawn(rows, K)
        x[1::4] = 0
        [found], [right] = one.run(f"times{K}", [x]), other.run(f"times{K}", [x])
        if width == "int8":  # whole numbers, so that nothing is lost by the order of sums
            assert np.array_equal(found, right)
        assert np.allclose(found, right, atol=1e-4)
        ids = np.arange(rows) % N
        assert np.array_equal(one.run(f"taken{K}", [ids])[0], other.run(f"taken{K}", [ids])[0])


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler here")
def test_rows_that_are_no_numbers_give_none_and_tiny_ones_zeros_everywhere() -> None:
    x = drawn(5, 33)
    x[0, 3], x[1, 32], x[2], x[3] = np.nan, np.inf, 1e-33, 3.3e38
    for running in ways("int8"):
        [y] = running.run("times33", [x])
        assert np.isnan(y[[0, 1, 3]]).all()
        assert (y[2] == 0).all()
        assert np.isfinite(y[4]).all()


def test_narrow_numbers_are_the_nearest() -> None:
    x = drawn(40, 70)
    whole, scales = eight_bits(x)
    assert np.abs(whole.astype(int)).max(1).tolist() == [127] * 40
    assert (np.abs(whole * scales[:, None] - x) <= scales[:, None] * 0.5001).all()
    halves = widened(bfloat16(x))
    assert (np.abs(halves - x) <= np.abs(x) * 2.0**-8).all()
    assert widened(bfloat16(halves)).tolist() == halves.tolist()


def test_a_matrix_whose_rows_hold_numbers_of_unlike_sizes_stays_wider() -> None:
    """Half of the inputs are a thousandth of the others: 8 bits would leave nothing of their part."""
    W = drawn(90, 130)
    W[:, ::2] *= 1000
    narrowing = Narrowing(matrices((130, 90)), {"W130": W})
    x = drawn(20, 130)
    x[:, ::2] = 0
    narrowing.watching().run("times130", [x])
    chosen = narrowing.chosen("int8")["W130"]
    assert (chosen.width, chosen.errors["int8"] > 0.02) == ("bf16", True)
    assert narrowing.chosen("bf16")["W130"].width == "bf16"


def test_a_small_matrix_stays_as_it_is() -> None:
    narrowing = Narrowing(matrices((5, 6)), {"W5": drawn(6, 5)})
    program, weights = narrowing.narrowed(narrowing.chosen("int8"))
    assert [*weights] == ["W5"]
    assert json.loads(program.to_json())["format"] == 1


def test_what_is_not_used_is_left_out() -> None:
    program, weights = narrow("int8")
    assert [op.kind for op in program.functions["times33"].operations] == ["narrow_matmul"]
    assert "W33" not in weights
    once = pruned(program.functions["times33"])
    assert once == program.functions["times33"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda op: op.__setitem__(0, "matmul"), "has 3 operands"),
        (lambda op: op.__setitem__(1, op[1][:2]), "does not give"),
        (lambda op: op[1].__setitem__(1, 0), "narrow weight is a matrix|does not give"),
        (lambda op: op[1].__setitem__(2, "other"), "shapes that do not fit"),
        (lambda op: op[2][0].__setitem__(2, 63), "shapes that do not fit"),
    ],
)
def test_what_is_no_product_with_a_narrow_weight_is_refused(change: Any, words: str) -> None:
    table = json.loads(narrow("int8")[0].to_json())
    assert table["format"] == 2
    table["weights"]["other"] = ["float32", [33]]
    change(table["functions"]["times33"]["operations"][0])
    with pytest.raises(CheckpointError, match=words):
        Program.from_json(json.dumps(table))


def test_a_narrow_weight_is_used_by_its_own_operations_alone() -> None:
    table = json.loads(narrow("int8")[0].to_json())
    table["functions"]["times33"]["operations"].append(["neg", ["W33.narrow"], [["float32", 64, 33]]])
    with pytest.raises(CheckpointError, match="neg of int8 does not give"):
        Program.from_json(json.dumps(table))
    table = json.loads(narrow("int8")[0].to_json())
    table["functions"]["times33"]["outputs"] = [["y", "W33.narrow"]]
    with pytest.raises(CheckpointError, match="a narrow weight is no output"):
        Program.from_json(json.dumps(table))
