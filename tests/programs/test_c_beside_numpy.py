"""Programs that are written out: C computes the same numbers as NumPy, and refuses what NumPy refuses."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.errors import CheckpointError, DataError
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import Running
from recurra.programs.program import Program
from recurra.programs.sizes import Size
from recurra.programs.weights import read_weights, write_weights

SIZES = ("(T)//1", "(T-7)//3", "(T-7)//U", "100000*(T-999)//1000+100000", "T*U-(2*T-3*U)//4", "(T)//U")


WHOLE = ("add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "minimum")


def function(inputs: list[Any], operations: list[Any], outputs: list[Any]) -> dict[str, Any]:
    return {"inputs": inputs, "operations": operations, "outputs": outputs}


def program(functions: Mapping[str, Any]) -> Program:
    return Program.from_json(json.dumps({"format": 1, "weights": {}, "functions": functions}))


def runners(functions: Mapping[str, Any], folder: Path) -> dict[str, Running]:
    found = program(functions)
    write_weights(folder / "weights.bin", found, {})
    content, arrays = read_weights(folder / "weights.bin", found)
    return {"numpy": InNumpy(found, arrays), "c": InC(found, content)}


def functions() -> dict[str, Any]:
    x, u = ["x", ["uint8", "T"], None], ["u", ["uint8", "U"], None]
    iotas = [["iota", [], [["int64", 1]], {"start": text, "step": 0}] for text in SIZES]
    return {
        "sizes": function([x, u], iotas, [[f"size{number}", 2 + number] for number in range(len(SIZES))]),
        "spread": function(
            [["x", ["float32", "T"], None]],
            [["full", [[1.0]], [["float32", "100000*(T-999)//1000+100000"]]]],
            [["y", 1]],
        ),
        "shorter": function([["x", ["float32", "T"], None]], [["full", [[1.0]], [["float32", "T-4"]]]], [["y", 1]]),
        "whole": function(
            [["a", ["int64", "T"], None], ["b", ["int64", "T"], None]],
            [[kind, [0, 1], [["int64", "T"]]] for kind in WHOLE]
            + [[kind, [0], [["int64", "T"]]] for kind in ("neg", "abs", "sign")]
            + [[kind, [0], [["int64"]], {"dims": [0]}] for kind in ("sum", "prod", "max", "min")]
            + [[kind, [0], [["int64", "T"]], {"dim": 0}] for kind in ("cumsum", "cumprod")],
            [[f"out{number}", 2 + number] for number in range(len(WHOLE) + 9)],
        ),
        "small": function(
            [["a", ["int32", "T"], None], ["b", ["uint8", "T"], None]],
            [["mul", [0, 0], [["int32", "T"]]], ["add", [1, [100]], [["uint8", "T"]]]]
            + [[kind, [0], [["int32"]], {"dims": [0]}] for kind in ("max", "min", "sum")]
            + [[kind, [1], [["uint8"]], {"dims": [0]}] for kind in ("max", "min")],
            [[f"out{number}", 2 + number] for number in range(7)],
        ),
        "constants": function(
            [["x", ["float32", "T"], None], ["i", ["int64", "T"], None]],
            [
                ["full", [[2.0]], [["float32", "T"]]],
                ["full", [[3.0]], [["float32", "T"]]],
                ["add", [0, 2], [["float32", "T"]]],
                ["mul", [4, 3], [["float32", "T"]]],
                ["add", [0, [1.0]], [["float32", "T"]]],
                ["add", [1, [1]], [["int64", "T"]]],
                ["cast", [7], [["float32", "T"]]],
                ["mul", [6, 8], [["float32", "T"]]],
            ],
            [["a", 5], ["b", 9]],
        ),
        "flags": function(
            [["a", ["bool", "T"], None], ["b", ["bool", "T"], None], ["n", ["uint8", "T"], None]],
            [
                *([kind, [0, 1], [["bool", "T"]]] for kind in ("add", "mul", "maximum", "minimum", "and", "or", "ne")),
                ["cast", [3], [["int64", "T"]]],
                ["sum", [0], [["int64"]], {"dims": [0]}],
                ["sum", [2], [["int64"]], {"dims": [0]}],
            ],
            [[f"out{number}", 3 + number] for number in range(10)],
        ),
        "ordered": function(
            [["x", ["float32", "T"], None], ["i", ["int64", "T"], None]],
            [["argsort", [x], [["int64", "T"]], {"dim": 0, "falls": falls}] for x in (0, 1) for falls in (False, True)]
            + [[kind, [0], [["int64"]], {"dims": [0]}] for kind in ("argmax", "argmin")],
            [[f"out{number}", 2 + number] for number in range(6)],
        ),
        "in_place": function(
            [["h", ["float32", "T", 2], None], ["c", ["float32", "T", 2], None]],
            [
                ["add", [0, 1], [["float32", "T", 2]]],
                ["flip", [2], [["float32", "T", 2]], {"dims": [0, 1]}],
                ["permute", [0], [["float32", 2, "T"]], {"order": [1, 0]}],
                ["reshape", [4], [["float32", "T", 2]]],
                ["mul", [1, [2.0]], [["float32", "T", 2]]],
            ],
            [["h", 3], ["c", 5], ["other", 6], ["same", 0]],
        ),
        "longer": function([["x", ["uint8", "T"], None]], [["full", [[1]], [["uint8", "T*T*T*T*T"]]]], [["y", 1]]),
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Running]:
    return runners(functions(), tmp_path_factory.mktemp("program"))


def answers(both: Mapping[str, Running], name: str, *arrays: NDArray[Any]) -> dict[str, list[NDArray[Any]]]:
    return {by: running.run(name, list(arrays)) for by, running in both.items()}


@pytest.mark.parametrize(("T", "U"), [(0, 0), (1, 3), (5, 0), (6, 4), (7, 1), (8, 5), (40, 7)])
def test_sizes_are_rounded_down_in_c_as_in_python(both: dict[str, Running], T: int, U: int) -> None:
    right = [Size.read(text).at({"T": T, "U": U}) for text in SIZES]
    for by, found in answers(both, "sizes", np.zeros(T, np.uint8), np.zeros(U, np.uint8)).items():
        assert [int(each[0]) for each in found] == right, by


def test_outputs_are_as_large_as_c_makes_them(both: dict[str, Running]) -> None:
    """With its quotient rounded toward zero, this one would have 100,000 numbers where there is room for none."""
    for T, size in ((0, 0), (998, 0), (999, 100_000), (1999, 200_000)):
        for by, [found] in answers(both, "spread", np.zeros(T, np.float32)).items():
            assert found.shape == (size,), by
            assert (found == 1).all(), by


def test_sizes_below_zero_or_beyond_all_numbers_are_refused(both: dict[str, Running]) -> None:
    for T in (3, 4):
        for by, running in both.items():
            if T == 4:
                assert running.run("shorter", [np.zeros(4, np.float32)])[0].shape == (0,), by
                continue
            with pytest.raises(DataError, match="cannot compute shorter from these inputs"):
                running.run("shorter", [np.zeros(T, np.float32)])
    with pytest.raises(DataError, match="cannot compute longer from these inputs: their sizes do not fit"):
        both["c"].run("longer", [np.zeros(1 << 20, np.uint8)])


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("18446744073709551616*T", "is not a size"),
        (1 << 41, "is not a size"),
        ("(T)//99999999999999", "divides by"),
        ("Q" * 33, "is not a size"),
    ],
)
def test_sizes_that_c_could_not_count_are_refused_when_they_are_read(size: Any, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        program({"f": function([["x", ["float32", "T"], None]], [["full", [[1.0]], [["float32", size]]]], [["y", 1]])})


def test_an_array_that_no_memory_holds_is_refused_when_it_is_read() -> None:
    with pytest.raises(CheckpointError, match="larger than any memory"):
        program({"f": function([], [["full", [[1.0]], [["float32", 1 << 39, 1 << 39]]]], [["y", 0]])})


def test_a_scan_whose_body_has_sizes_of_its_own_is_refused() -> None:
    state = ["float32", "B", 2]
    body = function([["x", ["float32", "B", "Q"], None], ["h", state, None]], [["tanh", [1], [state]]], [["h", 2]])
    given = [["x", ["float32", "B", "T", 2], None], ["lengths", ["int64", "B"], None], ["h", state, None]]
    details = {"body": body, "states": 1, "backward": False}
    with pytest.raises(CheckpointError, match="names a size that the function around it does not have"):
        program({"f": function(given, [["scan", [0, 1, 2], [["float32", "B", "T", 2], state], details]], [["y", 3]])})


def assert_same(both: Mapping[str, Running], name: str, *arrays: NDArray[Any]) -> None:
    found = answers(both, name, *arrays)
    for number, (one, other) in enumerate(zip(found["c"], found["numpy"], strict=True)):
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), (name, number, one, other)


LEAST, MOST = -(2**63), 2**63 - 1


@given(
    st.lists(
        st.tuples(*[st.sampled_from([LEAST, LEAST + 1, -7, -1, 0, 1, 3, MOST]) | st.integers(LEAST, MOST)] * 2),
        min_size=1,
        max_size=9,
    )
)
def test_whole_numbers_wrap_around_and_are_divided_as_in_numpy(both: dict[str, Running], pairs: list[Any]) -> None:
    """The least number by -1 would end the process: it is no whole number."""
    a, b = np.array(pairs, np.int64).T
    assert_same(both, "whole", a, b)


def test_small_whole_numbers_wrap_around_too(both: dict[str, Running]) -> None:
    assert_same(both, "small", np.array([70000, -5, -(2**31)], np.int32), np.array([200, 5, 255], np.uint8))
    assert_same(both, "small", np.array([-5, -2], np.int32), np.array([0, 3], np.uint8))


def test_numbers_that_are_written_out_are_told_apart_in_one_expression(both: dict[str, Running]) -> None:
    """(x + 2) 3, and 1 that is added to a number of float32 and to one of int64 that float32 cannot hold."""
    x, i = np.array([1, 2, 3], np.float32), np.array([2**24 + 1, 5, 6])
    for by, (a, b) in answers(both, "constants", x, i).items():
        assert a.tolist() == [9, 12, 15], by
        assert b.tolist() == [2 * (2**24 + 2), 18, 28], by


def test_flags_are_added_as_flags(both: dict[str, Running]) -> None:
    a, b = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], bool)
    assert_same(both, "flags", a, b, np.array([200, 200, 0, 7], np.uint8))
    assert answers(both, "flags", a, b, np.zeros(4, np.uint8))["c"][7].tolist() == [0, 1, 1, 1]


def test_what_is_not_a_number_is_the_largest_of_all_and_equals_stay_in_their_order(both: dict[str, Running]) -> None:
    """As torch sorts."""
    x, i = [1.0, np.nan, 5.0, 1.0, -np.inf, np.nan, np.inf], [3, LEAST, 3, MOST, LEAST, 0, -1]
    assert_same(both, "ordered", np.array(x, np.float32), np.array(i))
    found = answers(both, "ordered", np.array(x, np.float32), np.array(i))["numpy"]
    for number, (numbers, falls) in enumerate([(x, False), (x, True), (i, False), (i, True)]):
        right = torch.tensor(numbers).sort(stable=True, descending=falls).indices
        assert found[number].tolist() == right.tolist()


F, N, Q, U = ([kind, "T"] for kind in ("float32", "int64", "bool", "uint8"))


@pytest.mark.parametrize(
    ("inputs", "operation", "words"),
    [
        ([F, N], ["add", [0, 1], [["float64", "T"]]], "add of float32, int64 does not give float64"),
        ([Q, Q], ["add", [0, 1], [N]], "add of bool, bool does not give int64"),
        ([Q], ["neg", [0], [Q]], "neg of bool does not give bool"),
        ([N, N], ["div", [0, 1], [N]], "div of int64, int64 does not give int64"),
        ([N], ["mul", [0, [0.5]], [N]], "mul of int64, float32 does not give int64"),
        ([U], ["add", [0, [256]], [U]], "add of uint8, int64 does not give uint8"),
        ([F, N], ["eq", [0, 1], [Q]], "eq of float32, int64 does not give bool"),
        ([F], ["where", [0, 0, 0], [F]], "where of float32, float32, float32 does not give float32"),
        ([F], ["sum", [0], [["int64"]], {"dims": [0]}], "sum of float32 does not give int64"),
        ([F], ["full", [["size", "T"]], [["bool", "T"]]], "full of int64 does not give bool"),
        ([F, F], ["take", [0, 1], [F]], "take of float32, float32 does not give float32"),
        ([F, N], ["cat", [0, 1], [["float32", "2*T"]], {"dim": 0}], "cat of float32, int64 does not give float32"),
        ([F, N], ["scatter", [0, 1, 1], [F], {"dim": 0, "adds": True}], "scatter of float32, int64, int64"),
        ([F], ["slice", [0], [["float64", 1]], {"dim": 0, "first": 0, "by": 1}], "slice of float32"),
    ],
)
def test_operations_that_would_convert_types_are_refused(inputs: Any, operation: Any, words: str) -> None:
    named = [[f"x{number}", value, None] for number, value in enumerate(inputs)]
    with pytest.raises(CheckpointError, match=re.escape(words)):
        program({"f": function(named, [operation], [["y", len(inputs)]])})


def test_a_scan_that_writes_wider_numbers_than_its_state_has_is_refused() -> None:
    """C would copy eight bytes for every four that there are."""
    state = ["float32", "B", 2]
    body = function([["x", state, None], ["h", state, None]], [["tanh", [1], [state]]], [["h", 2]])
    given = [["x", ["float32", "B", "T", 2], None], ["lengths", ["int64", "B"], None], ["h", state, None]]
    details = {"body": body, "states": 1, "backward": False}
    with pytest.raises(CheckpointError, match="scan of float32, int64, float32 does not give float64"):
        program({"f": function(given, [["scan", [0, 1, 2], [["float64", "B", "T", 2], state], details]], [["y", 3]])})


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_outputs_may_lie_where_inputs_do(both: dict[str, Running], order: tuple[int, ...]) -> None:
    """As in recurra_step(model, 1, token, h, c, log_p, h, c), which steps in place."""
    h, c = np.arange(24, dtype=np.float32).reshape(2, 6, 2)
    right = both["numpy"].run("in_place", [h, c])
    running = both["c"]
    assert isinstance(running, InC)
    arrays = [h.copy(), c.copy(), np.empty_like(h), np.empty_like(h)]
    outputs = [arrays[place] for place in order]
    given = [arrays[0].ctypes.data, arrays[1].ctypes.data, *(each.ctypes.data for each in outputs)]
    assert running.code.recurra_in_place(running.model, 6, *given) == 0
    for found, wanted in zip(outputs, right, strict=True):
        assert np.array_equal(found, wanted)
