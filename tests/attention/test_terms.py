"""What each term makes of an attention that has no opinion of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra.attention import Attention, Memory
from recurra.attention.terms.monotonic import Monotonic
from recurra.named import built


def indifferent(*terms: str | dict[str, Any], places: int = 6) -> tuple[Attention, Memory]:
    """All scores are 0 but for what the terms add."""
    attention = built(Attention, {"name": "bilinear", "terms": list(terms)}, 3, 3).double()
    nn.init.zeros_(attention.get_parameter("project.weight"))
    values = torch.randn(1, places, 3, dtype=torch.float64)
    return attention, attention.remember(values, torch.ones(1, places, dtype=torch.bool))


def queries(steps: int) -> torch.Tensor:
    return torch.randn(1, steps, 3, dtype=torch.float64)


def test_a_strong_monotonic_term_reads_on_place_by_place_and_stays_at_the_end() -> None:
    attention, memory = indifferent({"name": "monotonic", "strength": 30.0})
    assert attention(queries(8), memory).weights[0].argmax(1).tolist() == [0, 1, 2, 3, 4, 5, 5, 5]


def test_the_first_monotonic_bell_is_as_wide_as_said() -> None:
    attention, memory = indifferent("monotonic", places=41)
    weights = attention.step(queries(1)[0], memory, (torch.tensor([[19.0]]).double(),)).weights[0]
    places = torch.arange(41, dtype=torch.float64)
    assert (weights @ places).item() == pytest.approx(20)
    assert (weights @ (places - 20).square()).sqrt().item() == pytest.approx(5**0.5, rel=1e-3)


@pytest.mark.parametrize("strength", [1e-3, 0.1, 1.0, 30.0])
def test_the_strength_that_was_asked_for_is_that_of_the_first_step(strength: float) -> None:
    term = Monotonic(strength=strength)
    scores = term.score(term.start(mask := torch.ones(1, 3, dtype=torch.bool)).unsqueeze(1), mask, None)
    assert_close(scores, -strength * torch.tensor([[[0.0, 1.0, 4.0]]]))


@pytest.mark.parametrize(("strength", "then"), [(5.0, "less"), (-5.0, "more")])
def test_coverage_turns_away_from_what_was_looked_at_or_back_to_it(strength: float, then: str) -> None:
    attention, memory = indifferent({"name": "coverage", "strength": strength})
    past = (torch.tensor([[0.0, 0.9, 0.1, 0.0, 0.0, 0.0]]).double(),)
    weights = attention.step(queries(1)[0], memory, past).weights[0]
    assert weights[1] < weights[0] if then == "less" else weights[1] > weights[0]
    assert weights.argsort(stable=True).tolist().index(1) == (0 if then == "less" else 5)


def test_coverage_and_location_leave_the_first_step_alone() -> None:
    for term in ({"name": "coverage", "strength": 2.0}, "location"):
        attention, memory = indifferent(term)
        seen = attention(queries(2), memory).weights[0]
        assert_close(seen[0], torch.full((6,), 1 / 6, dtype=torch.float64))


def test_location_sees_where_the_last_step_looked_and_no_further_than_its_width() -> None:
    attention, memory = indifferent({"name": "location", "width": 3}, places=7)
    last = torch.zeros(1, 7, dtype=torch.float64)
    last[0, 3] = 1.0
    weights = attention.step(queries(1)[0], memory, (last,)).weights[0]
    assert_close(weights[[0, 1, 5, 6]], weights[:1].expand(4))
    assert (weights[2:5] != weights[0]).all()
