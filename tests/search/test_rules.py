"""Rules against a reader that checks every token, for every search."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recurra import ConfigError
from recurra.search.beam import beam
from recurra.search.brackets import Brackets
from recurra.search.exhaustive import exhaustive
from recurra.search.front import Candidates, Front, met_by
from recurra.search.greedy import greedy
from recurra.search.rules import Law, Rules
from recurra.search.sampling import Filter, sample
from recurra.search.search import Hypothesis, Step
from tests.search.tiny import Source, State, Tiny, begun, row, tiny, walked, watch

END, V = 3, 4
PAIRS = [((0, 1),), ((0, 1), (2, 1)), ((2, 0),)]

rules_that_can_be = st.builds(
    Rules,
    min_length=st.integers(0, 3),
    banned=st.sets(st.integers(0, 1)).map(sorted),
    forced=st.lists(st.integers(2, 2) | st.integers(0, 1), max_size=2, unique=True),
    prefix=st.lists(st.integers(0, 2), max_size=2),
    no_repeat=st.integers(0, 3),
    brackets=st.sampled_from([Brackets(), *(Brackets(pairs, tree) for pairs in PAIRS for tree in (False, True))]),
    min_lengths=st.just(()),
).filter(lambda rules: not {*rules.banned} & {*rules.forced} and not (rules.brackets.pairs and rules.forced))


def brackets_allow(token: int, tokens: Sequence[int], brackets: Brackets, length: int) -> bool:
    """Whether a stack of open brackets allows a token, with room to close them all."""
    closes, stack = dict(brackets.pairs), list[int]()
    for each in tokens:
        if each in closes:
            stack.append(closes[each])
        elif each in closes.values() and stack:
            stack.pop()
    if brackets.tree and not tokens and token not in closes:
        return False
    if brackets.tree and tokens and not stack:
        return token == END
    left = length - len(tokens) - 1  # after this token
    if token in closes:
        return left >= len(stack) + 2
    if token in closes.values():
        return stack[-1:] == [token]
    return not stack if token == END else left >= len(stack) + 1


def may_follow(token: int, tokens: Sequence[int], rules: Rules, length: int) -> bool:
    """Whether a token may stand after tokens, word by word as Rules says it."""
    if len(tokens) < len(rules.prefix):
        return token == rules.prefix[len(tokens)]
    missing = {*rules.forced} - {*tokens}
    if token in rules.banned:
        return False
    if token == END and (missing or len(tokens) < rules.min_length):
        return False
    if rules.brackets.pairs and not brackets_allow(token, tokens, rules.brackets, length):
        return False
    if missing and length - len(tokens) - 1 <= len(missing) and token not in missing:
        return False
    whole, size = [*tokens, token], rules.no_repeat
    runs = [tuple(whole[start : start + size]) for start in range(len(whole) - size + 1)]
    return not size or runs[-1:] == [] or runs[-1] not in runs[:-1]


def obeys(found: Hypothesis, rules: Rules, length: int) -> bool:
    each = (may_follow(token, found.tokens[:at], rules, length) for at, token in enumerate(found.tokens))
    has_all = not found.ended or {*rules.forced} <= {*found.tokens}
    return all(each) and has_all and len(found.tokens) <= length


@settings(max_examples=60)
@given(rules_that_can_be)
def test_exhaustive_search_finds_all_that_obeys_and_nothing_else(rules: Rules) -> None:
    model, (moving, fixed) = tiny(0, V), begun(0, 1)
    options: dict[str, Any] = {"length": 4, "ends": [END], "best": 1000, "rules": rules}
    lawful = set()
    for size in range(1, 5):
        for tokens in itertools.product(range(V), repeat=size):
            if END in tokens[:-1] or (tokens[-1] != END and size < 4):
                continue
            if all(may_follow(token, tokens[:at], rules, 4) for at, token in enumerate(tokens)):
                lawful.add(tokens)
    if lawful:
        [found] = exhaustive(model.step, torch.tensor([0]), moving, fixed, **options)
        assert {tuple(each.tokens) for each in found} == lawful
    else:
        with pytest.raises(ConfigError, match="the search rules allow no token"):
            exhaustive(model.step, torch.tensor([0]), moving, fixed, **options)


@settings(max_examples=60)
@given(rules_that_can_be, st.integers(0, 10**6), st.integers(1, 5))
def test_every_search_obeys(rules: Rules, seed: int, width: int) -> None:
    model, (moving, fixed) = tiny(seed, V), begun(seed, 3)
    first, lengths = torch.tensor([0, 1, 2]), [4, 9, 6]
    options: dict[str, Any] = {"length": lengths, "ends": [END], "rules": rules}
    searches: list[Callable[[], list[list[Hypothesis]]]] = [
        lambda: beam(model.step, first, moving, fixed, width=width, best=width, **options),
        lambda: [[each] for each in greedy(model.step, first, moving, fixed, **options)],
        lambda: [[each] for each in sample(model.step, first, moving, fixed, **options)],
    ]
    for search in searches:
        # A run that may not come twice and brackets can leave nothing to choose; nothing else can.
        with contextlib.suppress(*[ConfigError] if rules.no_repeat or rules.brackets.pairs else []):
            for length, found in zip(lengths, search(), strict=True):
                assert found
                assert all(obeys(each, rules, length) for each in found)


def reluctant(tokens: Tensor, moving: tuple[()], _: tuple[()]) -> tuple[Tensor, tuple[()]]:
    """0 follows 0, or the end, 9; anything else is rare, but 3 leads to 4 and that to 5."""
    p = torch.full((10, 10), 1e-4)
    p[:, 0], p[:, 9] = 0.5, 0.3
    p[0, 3] = 0.2
    p[3, 4] = p[4, 5] = p[5, 9] = 4.0
    return (p / p.sum(1, keepdim=True)).log()[tokens], moving


def test_a_beam_finds_a_good_place_for_forced_tokens() -> None:
    options: dict[str, Any] = {"length": 30, "ends": [9], "rules": Rules(forced=[5])}
    [[found]] = beam(reluctant, torch.tensor([0]), (), (), width=4, **options)
    assert found.tokens == [3, 4, 5, 9]
    [late] = greedy(reluctant, torch.tensor([0]), (), (), **options)
    assert late.tokens == [0] * 28 + [5] + [late.tokens[-1]]
    assert found.log_probability > late.log_probability


def test_hypotheses_with_a_forced_token_are_not_crowded_out_by_likelier_ones_without() -> None:
    """7 and 8 are equally improbable everywhere: the best place is at once, before anything else costs more."""
    options: dict[str, Any] = {"length": 30, "ends": [9], "rules": Rules(forced=[7, 8])}
    [[found]] = beam(reluctant, torch.tensor([0]), (), (), width=6, **options)
    assert sorted(found.tokens) == [7, 8, 9]


def test_a_forced_token_counts_once_and_an_end_as_one_more() -> None:
    law = Law(Rules(forced=[2, 4]), [9], ends=[5])
    front = Front(np.array([0]), np.zeros((1, 2)), np.array([0, 1]), np.array([[2, 0], [1, 1]]))
    found = Candidates(np.zeros((2, 3)), np.array([[2, 4, 0], [2, 4, 5]]), np.zeros((2, 0)))
    assert met_by(front, found, law).tolist() == [[1, 2, 1], [1, 1, 1]]


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_all_of_several_forced_tokens_appear(width: int) -> None:
    rules = Rules(forced=[7, 1, 5, 8])
    for length in (5, 6, 20):
        [found] = beam(
            reluctant, torch.tensor([0]), (), (), width=width, length=length, ends=[9], best=width, rules=rules
        )
        assert {1, 5, 7, 8} <= {*found[0].tokens}
        assert all({1, 5, 7, 8} <= {*each.tokens} for each in found)
    [[found_]] = beam(reluctant, torch.tensor([0]), (), (), width=width, length=4, ends=[9], rules=rules)
    assert sorted(found_.tokens) == [1, 5, 7, 8]  # no room for an end
    assert not found_.ended


def test_every_sentence_may_have_a_beginning_of_its_own() -> None:
    model, (moving, fixed) = tiny(0, V), begun(0, 3)
    own = [[2, 2, 1], [], [END, 0]]
    options: dict[str, Any] = {"length": 6, "ends": [END], "rules": Rules(prefix=own, banned=[2])}
    first = torch.tensor([0, 0, 0])
    searches = [
        [best for [best] in beam(model.step, first, moving, fixed, width=3, **options)],
        [best for [best] in exhaustive(model.step, first, moving, fixed, **options)],
        greedy(model.step, first, moving, fixed, **options),
        sample(model.step, first, moving, fixed, keep=Filter(banned=(1,)), **options),
    ]
    for one, two, three in searches:
        assert one.tokens[:3] == [2, 2, 1]  # although 2 is banned, and by the filter 1
        assert 2 not in one.tokens[3:] + two.tokens
        assert (three.tokens, three.ended) == ([END], True)


def test_a_prefix_is_cut_off_at_the_length() -> None:
    model, (moving, fixed) = tiny(0, V), begun(0, 1)
    [[found]] = beam(
        model.step, torch.tensor([0]), moving, fixed, width=2, length=2, ends=[END], rules=Rules(prefix=[0, 1, 2])
    )
    assert (found.tokens, found.ended) == ([0, 1], False)


def test_many_banned_tokens_are_obeyed_as_few_are() -> None:
    model, (moving, fixed) = tiny(0, 200), begun(0, 2)
    for count in (3, 33, 190):
        answers = beam(
            model.step, torch.tensor([0, 1]), moving, fixed, width=5, best=5, length=6, ends=[199],
            rules=Rules(banned=range(count)),
        )  # fmt: skip
        exact = beam(banning(model, count), torch.tensor([0, 1]), moving, fixed, width=5, best=5, length=6, ends=[199])
        for found, expected in zip(answers, exact, strict=True):
            assert [each.tokens for each in found] == [each.tokens for each in expected]


def banning(model: Tiny, count: int) -> Step[State, Source]:
    """A model that gives its first tokens no probability."""

    def step(tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        log_p, moving = model.step(tokens, moving, fixed)
        return log_p.index_fill(1, torch.arange(count), -torch.inf), moving

    return step


def test_where_nothing_is_left_to_choose_the_error_says_where() -> None:
    model, (moving, fixed) = tiny(0, V), begun(0, 2)
    options: dict[str, Any] = {"length": 9, "ends": [END], "rules": Rules(no_repeat=1, min_length=5, prefix=[[0], [1]])}
    message = (
        "the search rules allow no token at position 4 of sequence 1: relax min_length, banned, forced, "
        "prefix, no_repeat or brackets."
    )
    first = torch.tensor([0, 0])
    for search in (greedy, sample):
        with pytest.raises(ConfigError, match=re.escape(message)):
            search(model.step, first, moving, fixed, **options)
    with pytest.raises(ConfigError, match=re.escape(message)):
        beam(model.step, first, moving, fixed, width=9, **options)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Rules(min_length=-1), "min_length must be a whole number of at least 0, but is -1."),
        (Rules(no_repeat=True), "no_repeat must be a whole number of at least 0, but is True."),
        (Rules(banned=[4]), "banned has the token id 4, but ids must be between 0 and 3."),
        (Rules(forced=[-1]), "forced has the token id -1, but ids must be between 0 and 3."),
        (Rules(prefix=[0, 9]), "prefix has the token id 9, but ids must be between 0 and 3."),
        (Rules(banned=range(4)), "every token of the vocabulary is banned, so no token can be chosen."),
        (Rules(banned=[1], forced=[1]), "the token 1 is forced, but it is also banned."),
        (Rules(forced=[END]), "the token 3 is forced, but it is also what ends an answer."),
        (Rules(forced=[0, 1, 2]), "3 tokens are forced after a prefix of 0, but an answer has at most 2."),
        (Rules(forced=[0, 1], prefix=[2]), "2 tokens are forced after a prefix of 1, but an answer has at most 2."),
        (Rules(prefix=[[0], [1]]), "there are 2 prefixes for 1 sequences: give one for each, or one for all."),
    ],
)
def test_rules_that_cannot_be_are_refused_by_every_search(rules: Rules, message: str) -> None:
    model, (moving, fixed) = tiny(0, V), begun(0, 1)
    options: dict[str, Any] = {"length": 2, "ends": [END], "rules": rules}
    for search in (greedy, sample, exhaustive):
        with pytest.raises(ConfigError, match=re.escape(message)):
            search(model.step, torch.tensor([0]), moving, fixed, **options)
    with pytest.raises(ConfigError, match=re.escape(message)):
        beam(model.step, torch.tensor([0]), moving, fixed, width=2, **options)


def test_every_row_has_its_own_length() -> None:
    model, (moving, fixed) = tiny(2, V), begun(2, 3)
    seen: list[int] = []

    def counting(tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        seen.append(len(tokens))
        return model.step(tokens, moving, fixed)

    found = greedy(counting, torch.tensor([0, 1, 2]), moving, fixed, length=[1, 3, 2], length_penalty=1.0)
    assert [len(each.tokens) for each in found] == [1, 3, 2]
    assert seen == [3, 2, 1]
    assert [each.score for each in found] == pytest.approx(
        [each.log_probability / ((5 + length) / 6) for each, length in zip(found, [1, 3, 2], strict=True)]
    )


def test_what_is_drawn_comes_with_its_score_and_what_was_watched() -> None:
    model, (moving, fixed) = tiny(2, V), begun(2, 3)
    drawn = sample(
        model.step, torch.tensor([0, 1, 2]), moving, fixed, length=6, ends=[END], length_penalty=0.5, watch=watch,
        coverage_penalty=0.3, places=fixed.places,
    )  # fmt: skip
    for at, found in enumerate(drawn):
        log_p, weights = walked(model, at, *row(moving, fixed, at), found.tokens)
        torch.testing.assert_close(found.watched, weights)
        coverage = float(weights.sum(0)[fixed.places[at]].clamp(1e-10, 1).log().sum())
        assert found.score == pytest.approx(log_p / ((5 + len(found.tokens)) / 6) ** 0.5 + 0.3 * coverage, abs=1e-10)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=3, max_size=3), st.integers(0, 10**6), st.integers(1, 5))
def test_every_sentence_may_have_a_minimum_length_of_its_own(leasts: list[int], seed: int, width: int) -> None:
    model, (moving, fixed) = tiny(seed, V), begun(seed, 3)
    options: dict[str, Any] = {"length": 9, "ends": [END], "rules": Rules(min_lengths=leasts)}
    first = torch.tensor([0, 1, 2])
    together = beam(model.step, first, moving, fixed, width=width, best=width, **options)
    for at, (least, found) in enumerate(zip(leasts, together, strict=True)):
        own = {**options, "rules": Rules(min_length=least)}
        [alone] = beam(model.step, first[at : at + 1], *row(moving, fixed, at), width=width, best=width, **own)
        assert [each.tokens for each in found] == [each.tokens for each in alone]
        assert all(len(each.tokens) > least for each in found if each.ended)
    for length, answer in zip(leasts, greedy(model.step, first, moving, fixed, **options), strict=True):
        assert len(answer.tokens) > length or not answer.ended


def test_minimum_lengths_for_another_number_of_sentences_are_refused() -> None:
    with pytest.raises(ConfigError, match="there are 2 minimum lengths for 3 sequences: give one for each"):
        Law(Rules(min_lengths=[1, 2]), [5, 5, 5], [END])
