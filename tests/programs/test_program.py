"""Programs as data: what is written is read again, and what is no program is refused before it is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recurra.errors import CheckpointError, DataError
from recurra.programs.in_numpy import InNumpy
from recurra.programs.program import Function, Named, Number, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.solving import NotExportable, Sizes

B, T = Size.named("B"), Size.named("T")


def doubled() -> Program:
    """y = 2 x W, of rows x."""
    x, y = Value("float32", (B, Size.of(3))), Value("float32", (B, Size.of(2)))
    operations = (Operation("matmul", (0, "W"), (y,)), Operation("mul", (1, Number(2.0)), (y,)))
    return Program({"double": Function((Named("x", x),), operations, (("y", 2),))}, {"W": ("float32", (3, 2))})


def test_a_program_is_read_as_it_was_written() -> None:
    program = doubled()
    assert Program.from_json(program.to_json()) == program


def test_numpy_computes_what_the_operations_say() -> None:
    W, x = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((4, 3), np.float32)
    [y] = InNumpy(doubled(), {"W": W}).run("double", [x])
    assert y.tolist() == [[12.0, 18.0]] * 4


def test_inputs_of_other_shapes_and_ids_out_of_range_are_refused_in_words() -> None:
    running = InNumpy(doubled(), {"W": np.zeros((3, 2), np.float32)})
    with pytest.raises(DataError, match=r"x has the shape \(4, 5\), but \(4, 3\) is needed"):
        running.run("double", [np.ones((4, 5), np.float32)])
    with pytest.raises(DataError, match="takes 1 inputs, but there are 2"):
        running.run("double", [np.ones((4, 3), np.float32)] * 2)
    ids = Function((Named("ids", Value("int64", (B,)), below=5),), (), (("same", 0),))
    with pytest.raises(DataError, match="ids must be between 0 and 4, but has 0 to 5"):
        InNumpy(Program({"same": ids}, {}), {}).run("same", [np.array([0, 5])])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.update(format=99), "was written by a later recurra"),
        (lambda table: table.pop("format"), "it has no format"),
        (lambda table: table["functions"]["double"]["operations"][0].__setitem__(0, "exec"), "no operation 'exec'"),
        (lambda table: table["functions"]["double"]["operations"][0][1].__setitem__(0, 7), "before it is there"),
        (lambda table: table["functions"]["double"]["operations"][0][1].pop(), "1 operands, not 2"),
        (lambda table: table["functions"]["double"]["operations"][0][2][0].__setitem__(2, 9), "shapes that do not fit"),
        (lambda table: table["functions"]["double"]["operations"][0][2][0].__setitem__(1, "Q"), "no input tells"),
        (lambda table: table["functions"]["double"]["operations"][0][2][0].__setitem__(1, "B(B"), "is not a size"),
        (lambda table: table["weights"].update(W=["float32", [4, 2]]), "shapes that do not fit"),
        (lambda table: table["weights"].update(W=["object", [3, 2]]), "is not a type of numbers"),
        (lambda table: table["weights"].update(W=["float32", [-3, 2]]), "is not a size"),
        (lambda table: table["functions"].update(other=3), "is not a program of recurra"),
    ],
)
def test_what_is_no_program_is_refused(change: Callable[[dict[str, Any]], object], words: str) -> None:
    table = json.loads(doubled().to_json())
    change(table)
    with pytest.raises(CheckpointError, match=words):
        Program.from_json(json.dumps(table))


@pytest.mark.parametrize("text", ["", "B*", "2**B", "B//2", "(B)//0", "__import__('os')", "B" * 300, "(B//2)//2", "-"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a size|divides by 0"):
        Size.read(text)


def test_sizes_are_told_from_recordings_of_different_sizes() -> None:
    sizes = Sizes({"B": [3, 2, 5, 4], "T": [7, 5, 11, 6]})
    assert str(sizes.solved([20, 20, 20, 20])) == "20"
    assert str(sizes.solved([84, 40, 220, 96])) == "4*B*T"
    assert str(sizes.solved([11, 8, 17, 11])) == "B+T+1"
    assert str(sizes.solved([4, 3, 6, 3])) == "(T+1)//2"
    with pytest.raises(NotExportable, match="do not follow from these sizes"):
        sizes.solved([1, 7, 2, 900])


def test_the_number_of_rows_for_each_sentence_follows_from_that_of_all_rows() -> None:
    rows, each = Value("float32", (Size.read("B*K"),)), Value("float32", (B,))
    function = Function((Named("all", rows), Named("sentences", each)), (), (("same", 0),))
    assert function.sizes([(6,), (2,)]) == {"B": 2, "K": 3}
    with pytest.raises(ValueError, match="is needed"):
        function.sizes([(7,), (2,)])
