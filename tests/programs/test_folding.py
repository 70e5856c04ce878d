"""Embeddings that are multiplied when a program is written compute what the product did, by NumPy and by C."""

from __future__ import annotations

import numpy as np
import pytest

from recurra.engines.c_library import compiler
from recurra.errors import DataError
from recurra.programs.folding import folded
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.program import Function, Named, Number, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.weights import weights_content

B, T = Size.named("B"), Size.named("T")


def sized(*shape: Size | int) -> tuple[Size, ...]:
    return tuple(Size.of(each) if isinstance(each, int) else each for each in shape)


def reading(tokens: int, inner: int, columns: int, *, is_turned: bool = True) -> tuple[Program, dict[str, np.ndarray]]:
    """tokens (B, T) and lengths -> (B, T, columns): an embedding, zeros behind the lengths, a product and a bias."""
    rows = B * T
    by = (columns, inner) if is_turned else (inner, columns)
    operations = [
        Operation("take", ("E", 0), (Value("float32", sized(B, T, inner)),)),
        Operation("mul", (2, Number(0.5)), (Value("float32", sized(B, T, inner)),)),
        Operation("iota", (), (Value("int64", sized(T)),), {"start": Size.of(0), "step": Size.of(1)}),
        Operation("reshape", (1,), (Value("int64", sized(B, 1)),)),
        Operation("ge", (4, 5), (Value("bool", sized(B, T)),)),
        Operation("reshape", (6,), (Value("bool", sized(B, T, 1)),)),
        Operation("where", (7, Number(0.0), 3), (Value("float32", sized(B, T, inner)),)),
        Operation("reshape", (8,), (Value("float32", sized(rows, inner)),)),
    ]
    right: int | str = "W"
    if is_turned:
        operations.append(Operation("permute", ("W",), (Value("float32", sized(inner, columns)),), {"order": (1, 0)}))
        right = 10
    last = 10 + is_turned
    operations += [
        Operation("matmul", (9, right), (Value("float32", sized(rows, columns)),)),
        Operation("add", (last, "b"), (Value("float32", sized(rows, columns)),)),
        Operation("reshape", (last + 1,), (Value("float32", sized(B, T, columns)),)),
    ]
    inputs = (Named("tokens", Value("int64", (B, T))), Named("lengths", Value("int64", (B,))))
    draw = np.random.default_rng(0)
    weights = {
        "E": draw.normal(size=(tokens, inner)).astype(np.float32),
        "W": draw.normal(size=by).astype(np.float32),
        "b": draw.normal(size=columns).astype(np.float32),
    }
    function = Function(inputs, tuple(operations), (("read", last + 2),))
    program = Program({"read": function}, {name: ("float32", array.shape) for name, array in weights.items()})
    return Program.from_json(program.to_json()), weights


GIVEN = [np.array([[3, 1, 4, 1], [5, 0, 2, 6], [5, 3, 5, 6]]), np.array([4, 2, 1])]


@pytest.mark.parametrize("is_turned", [True, False])
@pytest.mark.parametrize(("inner", "columns"), [(5, 7), (16, 64), (3, 33), (1, 1)])
def test_a_folded_product_is_that_of_the_embedding_and_the_weight(inner: int, columns: int, is_turned: bool) -> None:
    program, weights = reading(7, inner, columns, is_turned=is_turned)
    found, tables = folded(program, weights)
    found = Program.from_json(found.to_json())
    kinds = [op.kind for op in found.functions["read"].operations]
    assert "matmul" not in kinds
    assert {"E", "W"}.isdisjoint(tables)
    [wanted] = InNumpy(program, weights).run("read", GIVEN)
    runs: list[InNumpy | InC] = [InNumpy(found, tables)]
    if compiler() is not None:
        runs += [InC(found, weights_content(found, tables)), InC(program, weights_content(program, weights))]
    for each in runs:
        [array] = each.run("read", GIVEN)
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)


def test_a_table_of_many_words_is_left_as_it_is() -> None:
    program, weights = reading(70_000, 4, 8)
    found, tables = folded(program, weights)
    assert found.to_json() == program.to_json()
    assert tables.keys() == weights.keys()


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_an_id_beyond_a_table_is_refused_by_c_wherever_the_row_is_read() -> None:
    program, weights = reading(7, 4, 8)
    tokens = GIVEN[0].copy()
    tokens[2, 3] = 7  # behind the length of its row
    for each, arrays in ((program, weights), folded(program, weights)):
        with pytest.raises(DataError, match="out of range"):
            InC(each, weights_content(each, arrays)).run("read", [tokens, GIVEN[1]])
