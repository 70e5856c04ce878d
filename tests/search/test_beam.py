"""Beam search against greedy and exhaustive search, and against itself in other company."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from recurra.search.beam import beam
from recurra.search.exhaustive import exhaustive
from recurra.search.greedy import greedy
from recurra.search.rules import NONE, Rules
from recurra.search.search import Hypothesis
from tests.search.tiny import begun, claims, tiny, watch

RULES = [
    NONE,
    Rules(min_length=2),
    Rules(banned=[1]),
    Rules(forced=[2]),
    Rules(forced=[0, 2]),
    Rules(prefix=[2]),
    Rules(no_repeat=1),
    Rules(no_repeat=2, min_length=1),
    Rules(min_length=1, banned=[1], forced=[2], prefix=[0], no_repeat=2),
]


def assert_same(found: list[Hypothesis], expected: list[Hypothesis], tolerance: float = 1e-10) -> None:
    assert claims(found) == claims(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=tolerance)
        assert one.score == pytest.approx(other.score, abs=tolerance)
        if one.watched is not None and other.watched is not None:
            torch.testing.assert_close(one.watched, other.watched, atol=tolerance, rtol=0)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_a_beam_of_one_is_greedy(rules: Rules, length_penalty: float) -> None:
    for seed in range(8):
        model, (moving, fixed) = tiny(seed, 5), begun(seed, 3)
        first = torch.tensor([0, 1, 2])
        options: dict[str, Any] = {"length": [9, 4, 7], "ends": [3], "rules": rules, "watch": watch}
        options |= {"length_penalty": length_penalty, "coverage_penalty": 0.3, "places": fixed.places}
        one = greedy(model.step, first, moving, fixed, **options)
        for alone, found in zip(one, beam(model.step, first, moving, fixed, width=1, **options), strict=True):
            assert_same(found, [alone])


@pytest.mark.parametrize("seed", range(200))
def test_a_beam_wide_enough_finds_what_exhaustive_search_finds(seed: int) -> None:
    model, (moving, fixed) = tiny(seed, 4), begun(seed, 2)
    options: dict[str, Any] = {"length": [4, 3], "ends": [3] if seed % 7 else [], "best": [1, 3, 50][seed % 3]}
    options |= {"length_penalty": [0.0, 0.7, 1.0, 2.0][seed % 4], "rules": RULES[seed % len(RULES)]}
    if seed % 2:
        options |= {"watch": watch, "coverage_penalty": 0.5, "places": fixed.places}
    first = torch.tensor([seed % 4, 0])
    exact = exhaustive(model.step, first, moving, fixed, **options)
    wide = beam(model.step, first, moving, fixed, width=4**4, **options)
    for found, expected in zip(wide, exact, strict=True):
        assert found
        assert_same(found, expected)
