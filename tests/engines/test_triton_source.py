"""Plans printed as Triton, read as text. test_graph_interpreted.py and test_on_gpu.py run them."""

from __future__ import annotations

import ast

import pytest
import torch

from recurra.cells import build
from recurra.engines.engine import DirectedCell
from recurra.engines.memory import TORCH
from recurra.engines.persistent_source import chunks, persistent
from recurra.engines.plan import Place, Plan
from recurra.engines.planning import PLANS
from recurra.engines.triton_source import FUNCTIONS, PRELUDE, units_of
from recurra.engines.values import NoPlan
from recurra.engines.workspace import kernels_of, parts_of, powers_of_two, products_of
from tests.variants import EVERY

PLANNED = [variant for variant in EVERY if not variant.startswith("dnc")]
"""A dnc multiplies the numbers of a row with each other (prod), which no row pass does."""


def plan_of(variant: str, hidden: int = 8) -> Plan:
    cell, x = build(EVERY[variant], 5, hidden), torch.zeros(1, 1, 5)
    plan = PLANS.plan(DirectedCell(cell, cell.start(1, x), cell.fixed(1, x)), x)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("variant", PLANNED)
def test_every_plan_is_printed_as_python_that_parses(variant: str) -> None:
    plan = plan_of(variant)
    for direction in ("forward", "inference", "backward"):
        kernels = kernels_of(plan, direction, ())
        assert len(kernels) == len(getattr(plan, direction).passes)
        for kernel in kernels:
            [function] = ast.parse(kernel.source).body
            assert isinstance(function, ast.FunctionDef)
            stored = [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.attr == "store"]
            assert len(stored) >= 1


@pytest.mark.parametrize("variant", ["lstm", "gru", "peephole full", "lstm variational", "layer norm"])
def test_buffers_of_one_name_have_one_place_and_width(variant: str) -> None:
    plan = plan_of(variant)
    found: dict[str, set[tuple[Place, int]]] = {}
    for direction in ("forward", "inference", "backward"):
        for kernel in kernels_of(plan, direction, ()):
            for buffer, _ in kernel.arguments:
                found.setdefault(buffer.name, set()).add((buffer.place, buffer.width))
        for product in products_of(getattr(plan, direction)):
            for buffer in (product.operand, product.out):
                found.setdefault(buffer.name, set()).add((buffer.place, buffer.width))
    assert {name for name, uses in found.items() if len(uses) > 1} == set()


def test_every_function_that_torch_evaluates_is_printed() -> None:
    assert FUNCTIONS.keys() == TORCH.keys()
    defined = {node.name for node in ast.parse(PRELUDE).body if isinstance(node, ast.FunctionDef)}
    called = {code.split("(")[0] for code in FUNCTIONS.values() if code.startswith("r_")}
    assert called <= defined


@pytest.mark.parametrize(
    ("variant", "units"), [("lstm", 8), ("peephole", 8), ("gru", 8), ("slstm", 8), ("layer norm", None)]
)
def test_units_are_shared_out_where_none_needs_another(variant: str, units: int | None) -> None:
    assert {units_of(row_pass) for row_pass in plan_of(variant).forward.passes} == {units}


def test_a_gradient_that_nobody_gives_is_not_read() -> None:
    plan = plan_of("lstm")
    [whole], [less] = kernels_of(plan, "backward", ()), kernels_of(plan, "backward", (plan.d_outputs[1],))
    assert [b.name for b, _ in whole.arguments if b not in {a for a, _ in less.arguments}] == ["d_state 1"]


@pytest.mark.parametrize(("variant", "waits"), [("lstm", 1), ("gru", 2), ("coupled", 1), ("gru of torch", 1)])
def test_a_persistent_kernel_waits_once_for_each_round_of_products(variant: str, waits: int) -> None:
    plan = plan_of(variant)
    kernel = persistent(plan, plan.forward, "whole")
    ast.parse(kernel.source)
    assert kernel.source.count("await_others(") == waits
    assert kernel.passes == waits


@pytest.mark.parametrize(
    ("variant", "reason"), [("layer norm", "not computed apart from each other"), ("min gru", "no product")]
)
def test_steps_that_cannot_be_one_kernel_are_refused_in_words(variant: str, reason: str) -> None:
    plan = plan_of(variant)
    with pytest.raises(NoPlan, match=reason):
        persistent(plan, plan.forward, "whole")


def test_the_gradient_of_h_is_split_into_one_partial_sum_for_each_gate() -> None:
    [product] = products_of(plan_of("lstm", 64).backward)
    assert (product.operand.width, product.out.width, parts_of(product)) == (256, 64, 4)
    [small] = products_of(plan_of("lstm", 8).backward)
    assert parts_of(small) == 1


@pytest.mark.parametrize("steps", [1, 7, 50, 64, 1023])
def test_stretches_cover_all_steps_once_and_are_few(steps: int) -> None:
    found = list(powers_of_two(steps))
    assert [t for first, count in found for t in range(first, first + count)] == list(range(steps))
    assert len(found) == steps.bit_count()


@pytest.mark.parametrize("width", [1, 16, 20, 100, 512, 768, 1000, 2048])
def test_tiles_of_a_matrix_cover_its_rows_once(width: int) -> None:
    found = list(chunks(width))
    assert [row for first, _, real in found for row in range(first, first + real)] == list(range(width))
    assert all(size >= 16 and size & (size - 1) == 0 for _, size, _ in found)
