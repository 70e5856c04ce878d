"""Which functions compute each row by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from recurra.programs.program import Function, Named, Number, Operand, Operation, Value
from recurra.programs.rows import has_rows_alone
from recurra.programs.sizes import Size

B, THREE, ONE = Size.named("B"), Size.of(3), Size.of(1)


def value(*shape: Size) -> Value:
    return Value("float32", shape)


@pytest.mark.parametrize(
    ("kind", "operands", "result", "details", "alone"),
    [
        ("add", (0, 0), value(B, THREE), {}, True),
        ("add", (0, "bias"), value(B, THREE), {}, True),
        ("matmul", (0, "W"), value(B, THREE), {}, True),
        ("sum", (0,), value(B), {"dims": (1,)}, True),
        ("cat", (0, 0), value(B, Size.of(6)), {"dim": 1}, True),
        ("sum", (0,), value(THREE), {"dims": (0,)}, False),
        ("cumsum", (0,), value(B, THREE), {"dim": 0}, False),
        ("flip", (0,), value(B, THREE), {"dims": (0,)}, False),
        ("permute", (0,), value(THREE, B), {"order": (1, 0)}, False),
        ("cat", (0, 0), value(Size.read("2*B"), THREE), {"dim": 0}, False),
        ("iota", (), Value("int64", (B,)), {"start": Size.of(0), "step": ONE}, False),
        ("mul", (0, Number(B)), value(B, THREE), {}, False),
    ],
)
def test_rows_are_alone_where_no_operation_goes_along_them(
    kind: str, operands: tuple[Operand, ...], result: Value, details: Mapping[str, Any], alone: bool
) -> None:
    op = Operation(kind, operands, (result,), details)
    function = Function((Named("x", value(B, THREE)),), (op,), (("y", 1),))
    assert has_rows_alone(function, "B") is alone
