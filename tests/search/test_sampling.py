"""Filters against brute force; draws against their distribution."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra import ConfigError
from recurra.search.greedy import greedy
from recurra.search.sampling import Filter, Sampler, filtered, sample
from tests.search.chains import V, chain, remembering, start, weights


def brute_force(p: NDArray[np.float64], keep: Filter) -> NDArray[np.float64]:
    """The definition, token by token."""
    left = [w for w in range(len(p)) if w not in keep.banned]
    if keep.temperature == 0:
        left = [max(left, key=lambda w: (p[w], -w))]
        powers = {left[0]: 1.0}
    else:
        powers = {w: p[w] ** (1 / keep.temperature) for w in left}
    left.sort(key=lambda w: (-powers[w], w))
    if keep.top_k is not None:
        left = left[: keep.top_k]
    if keep.top_p is not None:
        mass, whole, nucleus = 0.0, sum(powers[w] for w in left), []
        for w in left:
            nucleus.append(w)
            mass += powers[w] / whole
            # Where a sum meets top_p exactly, rounding decides; that is not what is tested here.
            assume(abs(mass - keep.top_p) > 1e-9 or keep.top_p == 1)
            if mass >= keep.top_p:
                break
        left = nucleus
    q = np.zeros(len(p))
    q[left] = [powers[w] for w in left]
    return q / q.sum()


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=12),
    st.sampled_from([0, 0.3, 1, 2.5]),
    st.none() | st.integers(1, 14),
    st.none() | st.floats(0.01, 1),
    st.sets(st.integers(0, 11)),
)
def test_filters_keep_what_the_definition_says(
    counts: list[int], temperature: float, top_k: int | None, top_p: float | None, banned: set[int]
) -> None:
    banned = {w for w in banned if w < len(counts)}
    assume(len(banned) < len(counts))
    p = np.array(counts) / sum(counts)  # small whole numbers: many are equal
    keep = Filter(tuple(banned), temperature, top_k, top_p)
    found = filtered(torch.from_numpy(p).log().unsqueeze(0), keep).exp()[0].numpy()
    np.testing.assert_allclose(found, brute_force(p, keep), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**31), st.floats(0, 1e6), st.none() | st.integers(1, 9), st.none() | st.floats(1e-300, 1))
def test_something_always_remains_and_sums_to_one(
    seed: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    scores = 1e3 * torch.randn(3, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    q = filtered(scores.log_softmax(1), Filter((2,), temperature, top_k, top_p)).exp()
    torch.testing.assert_close(q.sum(1), torch.ones(3, dtype=torch.float64))
    assert (q[:, 2] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_ten_equal_tokens_eight_have_eight_tenths(dtype: torch.dtype) -> None:
    p = torch.full((1, 10), 0.1, dtype=dtype)
    for count in range(1, 11):
        kept = filtered(p.log(), Filter(top_p=count / 10)).isfinite()[0].tolist()
        assert kept == [True] * count + [False] * (10 - count)


def test_without_filters_nothing_is_changed() -> None:
    log_p = torch.randn(4, 9, dtype=torch.float64).log_softmax(1)
    torch.testing.assert_close(filtered(log_p, Filter()), log_p)
    torch.testing.assert_close(filtered(log_p, Filter(top_k=100, top_p=1.0)), log_p)


@pytest.mark.parametrize(
    "keep", [Filter(temperature=0), Filter(top_k=1), Filter(top_p=1e-9), Filter(temperature=1e-320)]
)
def test_the_narrowest_filter_is_greedy(keep: Filter) -> None:
    first = torch.arange(V)
    fixed = torch.randn(V, V, dtype=torch.float64)
    drawn = sample(remembering, first, start(V), fixed, length=20, ends=[1], keep=keep, seed=5)
    assert drawn == greedy(remembering, first, start(V), fixed, length=20, ends=[1])


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others() -> None:
    def drawn(seed: int) -> list[list[int]]:
        found = sample(remembering, torch.zeros(4, dtype=torch.long), start(4), torch.zeros(4, V), length=30, seed=seed)
        return [each.tokens for each in found]

    assert drawn(3) == drawn(3)
    assert all(one != other for one, other in zip(drawn(3), drawn(4), strict=True))
    assert len({tuple(tokens) for tokens in drawn(3)}) == 4


@given(st.integers(-(2**70), 2**70), st.integers(1, 6), st.integers(0, V - 1))
def test_the_first_rows_are_drawn_alike_however_many_follow(seed: int, rows: int, end: int) -> None:
    def drawn(rows: int) -> list[list[int]]:
        tokens, fixed = torch.zeros(rows, dtype=torch.long), torch.zeros(rows, V)
        return [
            each.tokens for each in sample(remembering, tokens, start(rows), fixed, length=8, ends=[end], seed=seed)
        ]

    assert drawn(7)[:rows] == drawn(rows)


def test_tokens_are_drawn_as_often_as_they_are_probable() -> None:
    """Pearson's χ² of 20,000 first tokens and of the pairs after them, below the 99.9 % quantile."""
    count = 20_000
    found = sample(chain, torch.zeros(count, dtype=torch.long), (), (), length=2, seed=11)
    p = weights().softmax(1).numpy()
    firsts = np.bincount([each.tokens[0] for each in found], minlength=V)
    assert ((firsts - count * p[0]) ** 2 / (count * p[0])).sum() < 20.5  # 5 degrees of freedom
    pairs = Counter(tuple(each.tokens) for each in found)
    expected = count * p[0][:, None] * p
    seen = np.array([[pairs[(a, b)] for b in range(V)] for a in range(V)])
    assert ((seen - expected) ** 2 / expected).sum() < 66.6  # 35 degrees of freedom


def test_filtered_tokens_are_drawn_as_often_as_the_filter_says() -> None:
    log_p = weights().log_softmax(1)[:1]
    keep = Filter(banned=(int(log_p.argmax()),), temperature=0.7, top_k=4, top_p=0.9)
    q = filtered(log_p, keep).exp()[0].numpy()
    sampler = Sampler(keep, seed=2)
    drawn = np.bincount(sampler(log_p.expand(20_000, -1), list(range(20_000))), minlength=V)
    is_kept = q > 0
    assert drawn[~is_kept].sum() == 0
    assert 1 < is_kept.sum() <= 4
    expected = 20_000 * q[is_kept]
    assert ((drawn[is_kept] - expected) ** 2 / expected).sum() < 16.3  # at most 3 degrees of freedom


def test_the_log_probability_is_that_of_the_model_not_of_the_filter() -> None:
    [found] = sample(chain, torch.tensor([0]), (), (), length=9, keep=Filter(temperature=0.2, top_k=3))
    log_p = weights().log_softmax(1)
    places = zip([0, *found.tokens], found.tokens, strict=False)
    assert found.log_probability == pytest.approx(float(sum(log_p[a, b] for a, b in places)), abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature must be a number of at least 0, but is -1."),
        ({"temperature": float("nan")}, "temperature must be a number of at least 0, but is nan."),
        ({"temperature": float("inf")}, "temperature must be a number of at least 0, but is inf."),
        ({"temperature": True}, "temperature must be a number of at least 0, but is True."),
        ({"top_k": 0}, "top_k must be a whole number of at least 1, but is 0."),
        ({"top_k": 1.5}, "top_k must be a whole number of at least 1, but is 1.5."),
        ({"top_p": 0}, "top_p must be a probability above 0 and at most 1, but is 0."),
        ({"top_p": 1.1}, "top_p must be a probability above 0 and at most 1, but is 1.1."),
        ({"top_p": "a"}, "top_p must be a probability above 0 and at most 1, but is 'a'."),
    ],
)
def test_a_filter_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Filter(**settings).checked()


@pytest.mark.parametrize("seed", [1.5, "a", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with pytest.raises(ConfigError, match=f"seed must be a whole number, but is {seed!r}"):
        Sampler(Filter(), seed=seed)
