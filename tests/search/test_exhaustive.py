"""Exhaustive search against every sequence written down."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
from torch import Tensor

from recurra import ConfigError
from recurra.search.exhaustive import exhaustive
from recurra.search.rules import Rules
from tests.search.tiny import begun, claims, row, tiny, walked, watch


@pytest.mark.parametrize("alpha", [0.0, 1.3])
def test_it_finds_every_sequence_best_first(alpha: float) -> None:
    model, (moving, fixed) = tiny(4, 3), begun(4, 2)
    both = exhaustive(
        model.step, torch.tensor([0, 1]), moving, fixed, length=[3, 2], ends=[2], best=99, length_penalty=alpha,
        watch=watch,
    )  # fmt: skip
    for at, (length, found) in enumerate(zip([3, 2], both, strict=True)):
        expected = []
        for size in range(1, length + 1):
            for tokens in map(list, itertools.product(range(3), repeat=size)):
                if 2 not in tokens[:-1] and (tokens[-1] == 2 or size == length):
                    log_p, weights = walked(model, at, *row(moving, fixed, at), tokens)
                    expected.append((tokens[-1] != 2, -log_p / ((5 + size) / 6) ** alpha, tokens, log_p, weights))
        expected.sort(key=lambda each: each[:2])
        assert claims(found) == [(tokens, not cut_off) for cut_off, _, tokens, _, _ in expected]
        for each, (_, negative, _, log_p, weights) in zip(found, expected, strict=True):
            assert each.score == pytest.approx(-negative, abs=1e-12)
            assert each.log_probability == pytest.approx(log_p, abs=1e-12)
            torch.testing.assert_close(each.watched, weights)


def test_more_beginnings_than_fit_one_step_are_all_tried() -> None:
    largest = 0

    def even(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        nonlocal largest
        largest = max(largest, len(tokens))
        return torch.full((len(tokens), 7), 1 / 7).log(), moving

    [found] = exhaustive(even, torch.tensor([0]), (), (), length=6, ends=[6], best=10**6)
    assert len(found) == sum(6**t for t in range(6)) + 6**6
    assert len({tuple(each.tokens) for each in found}) == len(found)
    assert largest == 4096
    assert found[1].tokens == [0, 6]  # of equals, the lower ids first
    assert found[2].tokens == [1, 6]


def test_too_many_sequences_are_refused() -> None:
    model, (moving, fixed) = tiny(0, 20), begun(0, 1)
    message = "20 tokens make more than 2,000,000 sequences of up to 200, too many to try all of them: use a smaller"
    with pytest.raises(ConfigError, match=re.escape(message)):
        exhaustive(model.step, torch.tensor([0]), moving, fixed, length=200, ends=[3])
    with pytest.raises(ConfigError, match="20 tokens make more than 2,000,000 sequences of up to 5, too many to try"):
        exhaustive(model.step, torch.tensor([0]), moving, fixed, length=5, ends=[])
    few = Rules(banned=[*range(4, 20)])
    assert exhaustive(model.step, torch.tensor([0]), moving, fixed, length=5, ends=[3], rules=few)[0]


def test_a_sequence_without_a_place_to_go_is_given_up_and_none_left_is_an_error() -> None:
    model, (moving, fixed) = tiny(0, 3), begun(0, 1)
    rules = Rules(no_repeat=1, min_length=3)  # two tokens, once each: there is no third
    with pytest.raises(ConfigError, match="the search rules allow no"):
        exhaustive(model.step, torch.tensor([0]), moving, fixed, length=5, ends=[2], rules=rules)
