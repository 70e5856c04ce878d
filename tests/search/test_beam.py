"""Beam search against greedy and exhaustive search, against its definition, and against itself in other company."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from torch import Tensor

from recurra import ConfigError, DataError
from recurra.search.beam import beam
from recurra.search.exhaustive import exhaustive
from recurra.search.greedy import greedy
from recurra.search.rules import NONE, Rules
from recurra.search.search import Hypothesis
from tests.search.tiny import Source, State, Tiny, begun, claims, row, tiny, walked, watch

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
        assert (one.watched is None) == (other.watched is None)
        if one.watched is not None:
            torch.testing.assert_close(one.watched, other.watched, atol=tolerance, rtol=0)


def by_definition(
    model: Tiny, first: int, start: State, fixed: Source, *, width: int, length: int, end: int, best: int, alpha: float
) -> list[Hypothesis]:
    """A beam over lists, one hypothesis after the other, that goes on to the full length."""
    live, over = [(0.0, list[int](), start)], list[Hypothesis]()
    for written in range(1, length + 1):
        ways = []
        for parent, (total, tokens, state) in enumerate(live):
            log_p, state = model.step(torch.tensor([(tokens or [first])[-1]]), state, fixed)
            ways += [(total + gain, parent, token, state) for token, gain in enumerate(log_p[0].tolist())]
        ways.sort(key=lambda way: (-way[0], way[1], way[2]))
        before, live = live, []
        for total, parent, token, state in ways[:width]:
            tokens = [*before[parent][1], token]
            if token == end or written == length:
                over.append(Hypothesis(tokens, total, token == end, total / ((5 + written) / 6) ** alpha))
            else:
                live.append((total, tokens, state))
    return sorted(over, key=lambda each: (not each.ended, -each.score))[:best]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_a_beam_of_one_is_greedy(rules: Rules, length_penalty: float) -> None:
    for seed in range(4):
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


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 12), st.integers(1, 6), st.sampled_from([0, 0.5, 1, 3]))
def test_the_early_stop_never_changes_the_n_best(seed: int, width: int, length: int, best: int, alpha: float) -> None:
    model, (moving, fixed) = tiny(seed, 4), begun(seed, 1)
    expected = by_definition(model, 0, moving, fixed, width=width, length=length, end=3, best=best, alpha=alpha)
    [found] = beam(
        model.step, torch.tensor([0]), moving, fixed, width=width, length=length, ends=[3], best=best,
        length_penalty=alpha,
    )  # fmt: skip
    assert_same(found, expected)


def test_a_search_stops_when_nothing_better_can_come() -> None:
    calls = []

    def sure(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        calls.append(len(tokens))
        return torch.tensor([[0.01, 0.09, 0.9]]).log().expand(len(tokens), -1), moving

    def steps(best: int, length_penalty: float) -> int:
        calls.clear()
        start = torch.tensor([0])
        beam(sure, start, (), (), width=2, length=50, ends=[2], best=best, length_penalty=length_penalty)
        return len(calls)

    assert steps(best=1, length_penalty=0.0) == 1
    assert steps(best=2, length_penalty=0.0) == 2
    # At α = 1 a hypothesis with log P = t log 0.09 may still have 50 tokens, for which log P counts 6/55 as much:
    # it can beat log 0.9 as long as t log 0.09 > 55/6 log 0.9 = -0.97, which the first step already breaks.
    assert steps(best=1, length_penalty=1.0) == 1
    assert steps(best=1, length_penalty=2.0) == math.floor((55 / 6) ** 2 * math.log(0.9) / math.log(0.09)) + 1


@examples(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 8)), min_size=1, max_size=5),
    st.integers(1, 7),
    st.sampled_from(RULES),
    st.randoms(use_true_random=False),
)
def test_a_sentence_has_the_same_n_best_alone_and_in_any_company(
    seed: int, given: list[tuple[int, int]], width: int, rules: Rules, chance: Any
) -> None:
    if rules.forced or rules.prefix:
        given = [(first, length + 3) for first, length in given]
    model, (moving, fixed) = tiny(seed, 5), begun(seed, len(given))
    options: dict[str, Any] = {"width": width, "best": width, "ends": [3], "length_penalty": 0.8, "rules": rules}
    options |= {"watch": watch, "coverage_penalty": 0.2}
    order = chance.sample(range(len(given)), len(given))
    together = beam(
        model.step,
        torch.tensor([given[at][0] for at in order]),
        State(*(part[order] for part in moving)),
        Source(*(part[order] for part in fixed)),
        length=[given[at][1] for at in order],
        places=fixed.places[order],
        **options,
    )
    for at, found in zip(order, together, strict=True):
        start, source = row(moving, fixed, at)
        [alone] = beam(
            model.step,
            torch.tensor([given[at][0]]),
            start,
            source,
            length=given[at][1],
            places=source.places,
            **options,
        )
        assert_same(found, alone)


def test_in_single_precision_company_changes_scores_by_less_than_a_hundred_thousandth() -> None:
    for seed in range(8):
        model, (moving, fixed) = tiny(seed, 50, torch.float32), begun(seed, 6, dtype=torch.float32)
        options: dict[str, Any] = {"width": 4, "best": 4, "ends": [3], "length": 12, "length_penalty": 1.0}
        together = beam(model.step, torch.zeros(6, dtype=torch.long), moving, fixed, **options)
        for at, found in enumerate(together):
            [alone] = beam(model.step, torch.tensor([0]), *row(moving, fixed, at), **options)
            assert_same(found, alone, tolerance=1e-5)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 50))
def test_any_width_works_also_wider_than_the_vocabulary(seed: int, width: int, best: int) -> None:
    model, (moving, fixed) = tiny(seed, 3), begun(seed, 2)
    both = beam(model.step, torch.tensor([0, 1]), moving, fixed, width=width, length=3, ends=[2], best=best)
    for found in both:
        assert len({tuple(each.tokens) for each in found}) == len(found) <= best
        assert len(found) == best or len(found) >= min(width, 15) or not all(each.ended for each in found)
        ended = [each.score for each in found if each.ended]
        cut_off = [each.score for each in found if not each.ended]
        assert [each.ended for each in found] == [True] * len(ended) + [False] * len(cut_off)
        assert ended == sorted(ended, reverse=True)
        assert cut_off == sorted(cut_off, reverse=True)


@examples(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0, 0.7]), st.sampled_from([0, 0.4]))
def test_every_number_is_that_of_the_step_walked_again(seed: int, width: int, alpha: float, beta: float) -> None:
    model, (moving, fixed) = tiny(seed, 6), begun(seed, 3)
    first = torch.tensor([0, 1, 2])
    together = beam(
        model.step, first, moving, fixed, width=width, length=7, ends=[5], best=width, length_penalty=alpha,
        watch=watch, coverage_penalty=beta, places=fixed.places,
    )  # fmt: skip
    for at, found in enumerate(together):
        for each in found:
            log_p, weights = walked(model, int(first[at]), *row(moving, fixed, at), each.tokens)
            assert each.log_probability == pytest.approx(log_p, abs=1e-10)
            assert each.watched is not None
            np.testing.assert_allclose(each.watched.numpy(), weights.numpy(), atol=1e-12)
            sums = weights.numpy().sum(0)[fixed.places[at].numpy()]
            coverage = np.log(np.minimum(1, np.maximum(sums, 1e-10))).sum()
            score = log_p / ((5 + len(each.tokens)) / 6) ** alpha + beta * coverage
            assert each.score == pytest.approx(score, abs=1e-10)
            assert each.ended == (each.tokens[-1] == 5)


def test_coverage_prefers_what_looked_at_all_of_the_source() -> None:
    """Two answers of equal probability: 0 looks at the first of two places twice, 1 at both."""

    def step(tokens: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]).log()[tokens]
        return log_p, torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])[tokens]

    options: dict[str, Any] = {"width": 2, "length": 3, "ends": [2], "watch": lambda moving: moving}
    places = torch.tensor([[True, True, False]])
    start, moving = torch.tensor([2]), torch.zeros(1, 3)
    [[plain]] = beam(step, start, moving, moving, **options)
    [[covering]] = beam(step, start, moving, moving, coverage_penalty=0.1, places=places, **options)
    assert (plain.tokens, covering.tokens) == ([0, 2], [1, 2])
    assert covering.score == pytest.approx(math.log(0.5))


def test_rows_come_sentence_by_sentence_and_sentences_that_are_over_leave() -> None:
    model, (moving, fixed) = tiny(1, 7), begun(1, 3)
    calls: list[tuple[int, int]] = []

    def counting(tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        calls.append((len(tokens), len(fixed.places)))
        return model.step(tokens, moving, fixed)

    beam(counting, torch.zeros(3, dtype=torch.long), moving, fixed, width=4, length=[2, 5, 9], ends=[], best=4)
    assert calls == [(3, 3)] + [(12, 3)] + [(8, 2)] * 3 + [(4, 1)] * 4


def test_a_beam_wider_than_the_vocabulary_fills_up() -> None:
    model, (moving, fixed) = tiny(1, 3), begun(1, 2)
    calls: list[int] = []

    def counting(tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        calls.append(len(tokens))
        return model.step(tokens, moving, fixed)

    beam(counting, torch.tensor([0, 0]), moving, fixed, width=20, length=4, ends=[])
    assert calls == [2, 6, 18, 40]


def test_states_are_not_copied_where_every_hypothesis_continues_itself() -> None:
    seen: list[Tensor] = []

    def faithful(tokens: Tensor, moving: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(moving)
        if not moving.any():
            return torch.tensor([[-1.0, -2.0, -3.0, -99.0]]), moving + 1
        return torch.eye(4)[tokens].log().clamp_min(-99), moving

    beam(faithful, torch.tensor([0]), torch.zeros(1, 2), torch.zeros(1), width=3, length=6, ends=[])
    assert len(seen) == 6
    assert all(later is seen[1] for later in seen[1:])


def test_of_equals_the_one_with_the_better_parent_is_kept_then_the_lower_id() -> None:
    def even(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.full((len(tokens), 40), 1 / 40).log(), moving

    [found] = beam(even, torch.tensor([0]), (), (), width=3, length=2, ends=[], best=3)
    assert [each.tokens for each in found] == [[0, 0], [0, 1], [0, 2]]
    [found] = beam(even, torch.tensor([0]), (), (), width=3, length=9, ends=[1], best=3)
    assert [each.tokens for each in found] == [[1], [0, 1], [0, 0, 1]]


@given(st.permutations(range(30)), st.integers(1, 20))
def test_of_equals_at_the_edge_of_a_beam_the_lower_id_is_kept(ids: list[int], width: int) -> None:
    """Two equals: one would be the last that is kept, the other the first that is not."""
    log_p = torch.empty(1, 30)
    for rank, token in enumerate(ids):
        log_p[0, token] = -rank if rank != width else -(width - 1)

    def step(tokens: Tensor, *_: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return log_p.expand(len(tokens), -1), ()

    [found] = beam(step, torch.tensor([0]), (), (), width=width, length=1, ends=[], best=width)
    assert [each.tokens for each in found] == [
        [token] for token in [*ids[: width - 1], min(ids[width - 1 : width + 1])]
    ]


def test_hypotheses_that_have_ended_take_no_rows() -> None:
    calls: list[int] = []

    def step(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        calls.append(len(tokens))
        return torch.tensor([[0.4, 0.35, 0.25]]).log().expand(len(tokens), -1), moving

    beam(step, torch.tensor([0]), (), (), width=3, length=3, ends=[0], best=9)
    assert calls == [1, 2, 1]  # 0 ends, and then 0 after 1 and 0 after 2


def test_what_was_cut_off_comes_after_all_that_ended() -> None:
    def reluctant(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.tensor([[0.6, 0.1, 0.3]]).log().expand(len(tokens), -1), moving

    [found] = beam(reluctant, torch.tensor([0]), (), (), width=2, length=2, ends=[2], best=4)
    assert claims(found) == [([2], True), ([0, 2], True), ([0, 0], False)]
    [found] = beam(reluctant, torch.tensor([0]), (), (), width=1, length=2, ends=[2])
    assert claims(found) == [([0, 0], False)]


def test_no_sentences_give_no_answers() -> None:
    moving, fixed = begun(0, 0)
    assert beam(tiny(0, 4).step, torch.zeros(0, dtype=torch.long), moving, fixed, width=2, length=3, ends=[3]) == []


def test_no_graph_is_kept() -> None:
    model, (moving, fixed) = tiny(0, 4), begun(0, 1)
    model.output.requires_grad_()
    moving.h.requires_grad_()
    [[found]] = beam(model.step, torch.tensor([0]), moving, fixed, width=2, length=3, ends=[3], watch=watch)
    assert found.watched is not None
    assert not found.watched.requires_grad


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width must be a whole number of at least 1, but is 0."),
        ({"best": 0}, "best must be a whole number of at least 1, but is 0."),
        ({"length": 0}, "length must be a whole number of at least 1, but is 0."),
        ({"length": [3, 4]}, "there are 2 lengths for 1 sequences: give one for each, or one for all."),
        ({"length": [2.5]}, "length must be a whole number of at least 1, but is 2.5."),
        ({"length_penalty": -1}, "length_penalty must be a number of at least 0, but is -1."),
        ({"length_penalty": math.nan}, "length_penalty must be a number of at least 0, but is nan."),
        ({"coverage_penalty": -1}, "coverage_penalty must be a number of at least 0, but is -1."),
        (
            {"coverage_penalty": 1},
            "coverage_penalty needs attention weights, but this model has no attention: set it to",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    model, (moving, fixed) = tiny(0, 4), begun(0, 1)
    options: dict[str, Any] = {"width": 2, "length": 3, "ends": [3]} | settings
    with pytest.raises(ConfigError, match=re.escape(message)):
        beam(model.step, torch.tensor([0]), moving, fixed, **options)


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_step_without_probabilities_is_an_error(value: float) -> None:
    def broken(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
        return torch.full((len(tokens), 4), value), moving

    with pytest.raises(DataError, match="the model's probabilities are NaN or out"):
        beam(broken, torch.tensor([0]), (), (), width=2, length=2, ends=[])
    with pytest.raises(DataError, match="the model's probabilities are NaN or out"):
        exhaustive(broken, torch.tensor([0]), (), (), length=2, ends=[])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("rules", RULES)
def test_a_gpu_finds_the_same(rules: Rules) -> None:
    model, (moving, fixed) = tiny(0, 6), begun(0, 3)
    there = Tiny(*(part.cuda() for part in model))
    moved, source = State(*(part.cuda() for part in moving)), Source(*(part.cuda() for part in fixed))
    first = torch.tensor([0, 1, 2])
    options: dict[str, Any] = {"length": [9, 4, 7], "ends": [3], "rules": rules, "watch": watch}
    options |= {"length_penalty": 0.7, "coverage_penalty": 0.3}
    here = beam(model.step, first, moving, fixed, width=4, best=4, places=fixed.places, **options)
    found = beam(there.step, first.cuda(), moved, source, width=4, best=4, places=source.places, **options)
    for one, other in zip(found, here, strict=True):
        assert_same(one, other)
    alone = greedy(model.step, first, moving, fixed, places=fixed.places, **options)
    assert_same(greedy(there.step, first.cuda(), moved, source, places=source.places, **options), alone)
    short = options | {"length": [4, 4, 3]}
    exact = exhaustive(there.step, first.cuda(), moved, source, best=9, places=source.places, **short)
    for one, other in zip(
        exact, exhaustive(model.step, first, moving, fixed, best=9, places=fixed.places, **short), strict=True
    ):
        assert_same(one, other)
