"""The way along a step, and greedy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from recurra import ConfigError, DataError
from recurra.search.greedy import greedy
from recurra.search.rules import Rules
from recurra.search.sampling import Filter, sample
from recurra.search.search import selected
from tests.search.chains import Memory, V, chain, remembering, start, weights


@given(st.integers(0, V - 1), st.integers(1, 12), st.sets(st.integers(0, V - 1)), st.sets(st.integers(0, V - 1)))
def test_greedy_takes_the_best_of_each_step(first: int, length: int, ends: set[int], banned: set[int]) -> None:
    if len(banned) == V:
        return
    [found] = greedy(chain, torch.tensor([first]), (), (), length=length, ends=ends, rules=Rules(banned=[*banned]))
    scores = weights().numpy()
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    expected: list[int] = []
    total, last, ended = 0.0, first, False
    while len(expected) < length and not ended:
        best = max((w for w in range(V) if w not in banned), key=lambda w: log_p[last, w])
        expected.append(best)
        total += log_p[last, best]
        last, ended = best, best in ends
    assert found.tokens == expected
    assert found.ended == ended
    assert found.log_probability == pytest.approx(total, abs=1e-12)


@given(st.lists(st.integers(0, V - 1), min_size=1, max_size=5), st.integers(1, 10), st.integers(0, V - 1))
def test_rows_beside_it_change_nothing_whenever_they_end(first: list[int], length: int, end: int) -> None:
    tokens, fixed = torch.tensor(first), torch.randn(len(first), V, dtype=torch.float64)
    together = greedy(remembering, tokens, start(len(first)), fixed, length=length, ends=[end])
    for row, found in enumerate(together):
        [alone] = greedy(remembering, tokens[row : row + 1], start(1), fixed[row : row + 1], length=length, ends=[end])
        assert found.tokens == alone.tokens
        assert found.ended == alone.ended
        assert found.log_probability == pytest.approx(alone.log_probability, abs=1e-12)


def test_rows_that_have_ended_are_not_computed() -> None:
    seen: list[int] = []

    def counting(tokens: Tensor, moving: Memory, fixed: Tensor) -> tuple[Tensor, Memory]:
        seen.append(len(tokens))
        assert len(tokens) == len(moving.counts) == len(fixed)
        return remembering(tokens, moving, fixed)

    fixed = torch.randn(20, V, dtype=torch.float64)
    found = greedy(counting, torch.arange(20) % V, start(20), fixed, length=30, ends=[0])
    assert [sum(len(each.tokens) > t for each in found) for t in range(len(seen))] == seen
    assert seen[-1] < 20


def test_of_equals_the_lowest_id_is_taken() -> None:
    def even(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.zeros(len(tokens), 50), moving

    [found] = greedy(even, torch.tensor([3]), (), (), length=3, rules=Rules(banned=[0, 1]))
    assert found.tokens == [2, 2, 2]
    [found] = sample(even, torch.tensor([3]), (), (), length=3, keep=Filter(banned=(0, 1), temperature=0))
    assert found.tokens == [2, 2, 2]


def test_a_name_keeps_its_type_when_rows_are_selected() -> None:
    memory = selected(Memory(torch.eye(3)), torch.tensor([2, 0]))
    assert isinstance(memory, Memory)
    assert memory.counts.tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("length", [0, -1, 2.5, True, None])
def test_a_length_that_is_none_is_refused(length: int) -> None:
    with pytest.raises(
        ConfigError, match=re.escape(f"length must be a whole number of at least 1, but is {length!r}.")
    ):
        greedy(chain, torch.tensor([0]), (), (), length=length)


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_step_without_probabilities_is_an_error(value: float) -> None:
    def broken(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.full((len(tokens), V), value), moving

    for search in (greedy, sample):
        with pytest.raises(DataError, match="the model's probabilities are NaN or out"):
            search(broken, torch.tensor([0]), (), (), length=2)


def test_banning_every_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="every token of the vocabulary is banned"):
        greedy(chain, torch.tensor([0]), (), (), length=2, rules=Rules(banned=range(V)))
