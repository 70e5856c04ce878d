"""Searches that do not wait for their device, on the CPU, against those that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from recurra import ConfigError, DataError
from recurra.search.beam import beam
from recurra.search.beaming import Beaming, follow_beam
from recurra.search.brackets import Brackets
from recurra.search.following import Following, follow
from recurra.search.graphs import Graphs
from recurra.search.greedy import greedy
from recurra.search.largest import BLOCK, largest
from recurra.search.rules import NONE, Law, Rules
from recurra.search.sampling import Filter, sample
from recurra.search.search import Hypothesis
from recurra.search.walking import STRETCH, first_rows, walked
from tests.search.test_beam import assert_same
from tests.search.tiny import Source, State, Tiny, begun, row, tiny, watch

RULES = [
    NONE,
    Rules(min_length=2),
    Rules(banned=[1]),
    Rules(prefix=[2]),
    Rules(no_repeat=1, banned=[0]),
    Rules(no_repeat=2, min_length=1),
    Rules(min_length=12, banned=[1], no_repeat=3),
    Rules(brackets=Brackets(((0, 1), (2, 1)))),
    Rules(brackets=Brackets(((0, 1), (2, 4)), tree=True), no_repeat=3),
]
FILTERS = [Filter(), Filter(temperature=0.6), Filter(top_k=3), Filter(top_p=0.7), Filter((2,), 1.5, 4, 0.9)]


def always(step: Any) -> Callable[[], Any]:
    return lambda: step


def outcome(search: Any, *start: Any, **options: Any) -> Any:
    """What a search finds, or the error that it raises."""
    try:
        return search(*start, **options)
    except (ConfigError, DataError) as error:
        return f"{type(error).__name__}: {error}"


def agree(found: Any, expected: Any) -> None:
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
    elif expected and isinstance(expected[0], Hypothesis):
        assert_same(found, expected)
    else:
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)


@st.composite
def companies(draw: st.DrawFn) -> tuple[Tiny, Tensor, State, Source, dict[str, Any]]:
    """A network, sentences to begin with, and options that all searches have."""
    seed, sentences = draw(st.integers(0, 10**6)), draw(st.integers(1, 7))
    model, (moving, fixed) = tiny(seed, 5), begun(seed, sentences)
    coverage = draw(st.sampled_from([0.0, 0.3]))
    options = {
        "length": draw(st.lists(st.integers(2, 27), min_size=sentences, max_size=sentences)),
        "ends": draw(st.sampled_from([[3], [3, 4], []])),
        "rules": draw(st.sampled_from(RULES))._replace(
            min_lengths=draw(st.just([]) | st.lists(st.integers(0, 9), min_size=sentences, max_size=sentences))
        ),
        "length_penalty": draw(st.sampled_from([0.0, 0.7, 1.0])),
        "watch": watch if coverage or draw(st.booleans()) else None,
        "coverage_penalty": coverage,
        "places": fixed.places,
    }
    first = torch.tensor([number % 5 for number in range(sentences)])
    return model, first, moving, fixed, options


@examples(max_examples=30)
@given(companies(), st.integers(1, 7), st.integers(1, 7))
def test_a_beam_on_the_device_finds_the_n_best_of_one_on_the_host(company: Any, width: int, best: int) -> None:
    model, *start, options = company
    options |= {"width": width, "best": best}
    expected = outcome(beam, model.step, *start, **options)
    graphs = Graphs(from_visit=1)
    for recorded in (None, graphs, graphs):
        agree(outcome(follow_beam, always(model.step), *start, graphs=recorded, **options), expected)


@examples(max_examples=30)
@given(companies())
def test_greedy_on_the_device_finds_what_it_finds_on_the_host(company: Any) -> None:
    model, *start, options = company
    expected = outcome(greedy, model.step, *start, **options)
    graphs = Graphs(from_visit=1)
    for recorded in (None, graphs, graphs):
        agree(outcome(follow, always(model.step), *start, graphs=recorded, **options), expected)


@examples(max_examples=30)
@given(companies(), st.sampled_from(FILTERS), st.integers(-3, 10**6), st.booleans())
def test_what_is_drawn_on_the_device_is_what_is_drawn_on_the_host(
    company: Any, keep: Filter, seed: int, is_numbered: bool
) -> None:
    model, *start, options = company
    numbers = [7 * number for number in range(len(start[0]))] if is_numbered else None
    options |= {"keep": keep, "seed": seed, "numbers": numbers}
    expected = outcome(sample, model.step, *start, **options)
    graphs = Graphs(from_visit=1)
    for recorded in (None, graphs, graphs):
        agree(outcome(follow, always(model.step), *start, graphs=recorded, **options), expected)


@examples(max_examples=30)
@given(companies(), st.integers(1, 6), st.sampled_from([None, Filter()]))
def test_a_sentence_is_answered_alike_alone_and_in_company(company: Any, width: int, keep: Filter | None) -> None:
    model, first, moving, fixed, options = company
    numbers = [*range(len(first))]
    if options["rules"].no_repeat or options["rules"].brackets.pairs:
        options["rules"] = NONE  # alone, another sentence may be the first that cannot go on
    together = follow_beam(always(model.step), first, moving, fixed, width=width, best=width, **options)
    in_rows = follow(always(model.step), first, moving, fixed, keep=keep, numbers=numbers, **options)
    for at in numbers:
        leasts = options["rules"].min_lengths[at : at + 1]
        own = options | {"length": options["length"][at], "places": fixed.places[at : at + 1]}
        own["rules"] = options["rules"]._replace(min_lengths=leasts)
        start = (first[at : at + 1], *row(moving, fixed, at))
        [alone] = follow_beam(always(model.step), *start, width=width, best=width, **own)
        assert_same(together[at], alone)
        assert_same([in_rows[at]], follow(always(model.step), *start, keep=keep, numbers=[at], **own))


# Equals


@given(st.data())
def test_the_largest_are_in_order_and_of_equals_the_first(data: st.DataObject) -> None:
    size, k = data.draw(st.integers(1, 700)), data.draw(st.integers(1, 6))
    levels = data.draw(st.sampled_from([1, 2, 5, 10**6]))
    chance = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = chance.integers(0, levels, (3, size)).astype(np.float32)
    values[chance.random(values.shape) < data.draw(st.sampled_from([0.0, 0.9, 1.0]))] = -np.inf
    k = min(k, size)
    found, places = largest(torch.from_numpy(values), k)
    for number in range(3):
        expected = sorted(range(size), key=lambda place: (-values[number, place], place))[:k]
        assert places[number].tolist() == expected
        assert found[number].tolist() == values[number, expected].tolist()


def test_the_largest_of_many_are_found_without_sorting_all_of_them() -> None:
    sorted_sizes: list[int] = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if "sort" in str(function):
                sorted_sizes.append(args[0].shape[1])
            return function(*args, **(kwargs or {}))

    values = torch.randn(2, 8001)
    with Watching():  # type: ignore[no-untyped-call]
        largest(values, 5)
    assert max(sorted_sizes) == 5 * BLOCK


def test_a_value_that_is_no_number_comes_first() -> None:
    values = torch.zeros(1, 900)
    values[0, 850] = torch.nan
    found, places = largest(values, 2)
    assert found[0, 0].isnan()
    assert places.tolist() == [[850, 0]]


@examples(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 7), st.sampled_from([6, 300, 1100]))
def test_of_equals_the_same_are_kept_as_on_the_host(seed: int, width: int, vocabulary: int) -> None:
    made = torch.Generator().manual_seed(seed)
    log_p = torch.randint(-4, 0, (vocabulary, vocabulary), generator=made).float()

    def step(tokens: Tensor, moving: Tensor, _: tuple[()]) -> tuple[Tensor, Tensor]:
        return log_p[tokens], moving

    start = (torch.tensor([0, 1, 2]), torch.zeros(3, 1), ())
    options: dict[str, Any] = {"length": [12, 3, 5], "ends": [1, 4], "length_penalty": 0.5}
    expected = beam(step, *start, width=width, best=width, **options)
    for one, other in zip(follow_beam(always(step), *start, width=width, best=width, **options), expected, strict=True):
        assert_same(one, other, tolerance=0)
    assert_same(follow(always(step), *start, **options), greedy(step, *start, **options), tolerance=1e-12)


# Steps


class Unseeing(TorchDispatchMode):
    """Refuses every operation that would make the host wait for values of a device."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal", "repeat_interleave")

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function._schema.name.removeprefix("aten::")
        assert name not in self.WAITING or (name == "repeat_interleave" and isinstance(args[1], int)), name
        return function(*args, **(kwargs or {}))


def plain_step(model: Tiny) -> Any:
    def step(tokens: Tensor, moving: State, fixed: Source) -> tuple[Tensor, State]:
        each = len(tokens) // len(fixed.places)
        vectors, places = (part.unsqueeze(1).expand(-1, each, *[-1] * (part.dim() - 1)).flatten(0, 1) for part in fixed)
        weights = (vectors @ moving.h.unsqueeze(2)).squeeze(2).masked_fill(~places, -torch.inf).softmax(1)
        h = (moving.h @ model.recurrent + model.embedding[tokens]).tanh()
        return (h @ model.output).log_softmax(1), State(h, weights)

    return step


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("keep", [None, *FILTERS[1:4]])
def test_no_step_looks_at_a_value(rules: Rules, keep: Filter | None) -> None:
    model, (moving, fixed) = tiny(1, 5), begun(1, 2)
    law, first, rows = Law(rules, [20, 2], [3]), torch.tensor([0, 1]), np.arange(2)
    step = always(plain_step(model))
    broad: Any = Beaming(step, law, width=3, best=2, length_penalty=1.0, coverage_penalty=0.3, watch=watch, marks=None)
    narrow: Any = Following(step, law, keep=keep, watch=watch, marks=None)
    chances = None if keep is None else torch.rand(2, narrow.columns, dtype=torch.float64)
    for search, state, ways in (
        (broad, broad.start(first, moving, rows), broad.given(fixed, rows, fixed.places, first.device)),
        (
            narrow,
            narrow.start(first, moving, rows),
            narrow.given(fixed, rows, first.device, None)._replace(chances=chances),
        ),
    ):
        state = search.stretch(state, ways)  # makes the tables
        with Unseeing():  # type: ignore[no-untyped-call]
            search.stretch(state, ways)


def test_sentences_that_are_over_leave_when_few_go_on() -> None:
    rows: list[int] = []

    def step(tokens: Tensor, moving: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
        rows.append(len(tokens))
        assert len(tokens) == len(moving) == len(fixed)
        return torch.tensor([0.6, 0.4]).log().expand(len(tokens), -1), moving

    lengths = [35, 5, 5, 5, 25, 5, 5]
    found = follow(always(step), torch.zeros(7, dtype=torch.long), torch.zeros(7, 1), torch.zeros(7, 1), length=lengths)
    assert [len(each.tokens) for each in found] == lengths
    assert rows == [7] * STRETCH + [2] * 2 * STRETCH + [1] * STRETCH


def test_where_no_end_is_allowed_nobody_is_asked_whether_there_was_one() -> None:
    model, (moving, fixed) = tiny(1, 5), begun(1, 3)
    asked: list[int] = []

    class Asked(Following[State, Source]):
        def alive(self, state: Any) -> Tensor:
            asked.append(int(state.step))
            return super().alive(state)

    law, first = Law(Rules(min_length=25), [40] * 3, [3]), torch.tensor([0, 1, 2])
    search = Asked(always(model.step), law, keep=None, watch=None, marks=None)
    numbers = first_rows(3)
    with torch.no_grad():
        ways = search.given(fixed, numbers, first.device, None)
        walked(search, search.start(first, moving, numbers), ways, numbers, None)
    assert asked[0] == 3 * STRETCH


# Errors


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
@pytest.mark.parametrize("rules", [NONE, Rules(banned=[2])])
@pytest.mark.parametrize("at", [0, 1, 12])
def test_a_step_without_probabilities_is_the_same_error(value: float, rules: Rules, at: int) -> None:
    def broken(tokens: Tensor, moving: Tensor, _: tuple[()]) -> tuple[Tensor, Tensor]:
        log_p = torch.tensor([0.3, 0.4, 0.3]).log().expand(len(tokens), -1)
        return torch.where(moving == at, value, log_p), moving + 1

    start = (torch.tensor([0, 1]), torch.zeros(2, 1), ())
    options: dict[str, Any] = {"length": [15, 20], "ends": [], "rules": rules}
    expected = outcome(greedy, broken, *start, **options)
    assert isinstance(expected, str)
    assert outcome(follow, always(broken), *start, **options) == expected
    expected = outcome(beam, broken, *start, width=2, **options)
    assert isinstance(expected, str)
    assert outcome(follow_beam, always(broken), *start, width=2, **options) == expected


@pytest.mark.parametrize(
    "rules", [Rules(no_repeat=1), Rules(banned=[0, 1, 2, 4], min_length=9), Rules(banned=[9]), Rules(banned=range(5))]
)
def test_rules_that_leave_nothing_are_the_same_error(rules: Rules) -> None:
    model, (moving, fixed) = tiny(3, 5), begun(3, 3)
    start = (torch.tensor([0, 1, 2]), moving, fixed)
    options: dict[str, Any] = {"length": [13, 9, 11], "ends": [] if rules.no_repeat else [3], "rules": rules}
    for host, device, own in ((greedy, follow, {}), (beam, follow_beam, {"width": 3, "best": 9})):
        expected = outcome(host, model.step, *start, **own, **options)
        assert outcome(device, always(model.step), *start, **own, **options) == expected
    assert isinstance(expected, str)


def test_no_sentences_have_no_answers() -> None:
    nothing = (torch.zeros(0, dtype=torch.long), torch.zeros(0, 1), ())
    assert follow(always(None), *nothing, length=3) == []
    assert follow_beam(always(None), *nothing, length=3, width=2, ends=[]) == []
