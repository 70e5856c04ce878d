"""Cells that are alike have one plan; any difference that a step can see is a difference."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from recurra import Padded, Recurrent
from recurra.cells import AnyCell, build
from recurra.engines.alike import likeness
from recurra.engines.plan import Plan
from recurra.engines.planning import Plans
from tests.variants import EVERY


def plan_of(plans: Plans, cell: AnyCell) -> Plan | str:
    rnn = Recurrent("gru", 4, 4)
    rnn.cells = nn.ModuleList([nn.ModuleList([cell])])
    [reader] = rnn._readers(0, rnn.start(1), rnn.fixed(1))
    return plans.plan(reader, torch.zeros(1, 1, 4))


def test_every_variant_is_like_itself_and_no_other() -> None:
    found = {name: likeness(build(spec, 4, 4)) for name, spec in EVERY.items()}
    assert None not in found.values()
    assert found == {name: likeness(build(spec, 4, 4)) for name, spec in EVERY.items()}
    for (name, one), (other_name, other) in itertools.combinations(found.items(), 2):
        assert one != other, f"{name} and {other_name}"


@pytest.mark.parametrize("name", ["gru", "layer norm per gate", "all at once"])
def test_cells_that_are_alike_have_one_plan_and_others_their_own(name: str) -> None:
    plans, cell = Plans(), build(EVERY[name], 4, 4)
    plan = plan_of(plans, cell)
    assert isinstance(plan, Plan)
    assert plan_of(plans, build(EVERY[name], 4, 4)) is plan
    assert plan_of(plans, build(EVERY[name], 4, 4).eval()) is not plan
    assert plan_of(plans, build({**EVERY[name], "candidate": "sigmoid"}, 4, 4)) is not plan


def test_what_a_user_wrote_is_planned_for_each_cell() -> None:
    own = "tests.own_cells:Matchbox"
    assert likeness(build(own, 4, 4)) is None
    assert likeness(build({"name": own, "wrap": [{"name": "weight_drop", "rate": 0.3}]}, 4, 4)) is None


def test_a_weight_in_two_places_or_a_changed_attribute_makes_a_difference() -> None:
    cell, tied, marked = (build("elman", 4, 4) for _ in range(3))
    assert isinstance(tied.from_input, nn.Linear)
    assert isinstance(tied.from_state, nn.Parameter)
    assert tied.from_input.weight.shape == tied.from_state.shape
    tied.from_input.weight = tied.from_state
    marked.register_buffer("mark", torch.zeros(1))
    assert len({likeness(each) for each in (cell, tied, marked)}) == 3
    cell.own = torch.zeros(1)  # of a tensor that is no parameter and no buffer, the numbers are in the plan
    assert likeness(cell) is None


def test_a_stack_of_like_cells_computes_with_the_weights_of_each() -> None:
    rnn = Recurrent("gru", 4, 4, layers=3, bidirectional=False).double()
    x = Padded(torch.randn(2, 5, 4).double(), torch.tensor([5, 3]))
    rnn.engine = "planned"
    found = rnn(x)[0].values
    rnn.engine = "loop"
    torch.testing.assert_close(found, rnn(x)[0].values, rtol=0, atol=1e-12)
