"""CTC's sums, searches and best alignments beside the enumeration of all alignments."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn import functional
from torch.testing import assert_close

from recurra.decoding import ctc
from recurra.search.alignment import best_alignment
from recurra.search.beam import beam
from recurra.search.exhaustive import exhaustive
from recurra.search.greedy import greedy
from recurra.search.search import Step
from recurra.sequences.enough_steps import needed_steps

BLANK, START = 0, 1  # the blank's id is also the end's; START is never said

SOME = settings().max_examples // 8


def written(path: Sequence[int]) -> tuple[int, ...]:
    """Repetitions joined, blanks left out."""
    return tuple(token for token, _ in groupby(path) if token != BLANK)


def enumerated(p: NDArray[np.float64]) -> dict[tuple[int, ...], float]:
    """P of every sequence that the places (S, V) can write: the sum over all V^S alignments."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for path in product(range(p.shape[1]), repeat=len(p)):
        found[written(path)] += math.prod(p[t, token] for t, token in enumerate(path))
    return dict(found)


def places(
    lengths: Sequence[int], tokens: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor, list[NDArray[np.float64]]]:
    """log p (B, S, V) where START is never said, the mask, and p of the real places of each row."""
    generator = torch.Generator().manual_seed(seed)
    log_p = 2 * torch.randn(len(lengths), max(lengths), tokens + 2, generator=generator, dtype=torch.float64)
    log_p[..., START] = -torch.inf
    log_p = log_p.log_softmax(2).masked_fill(torch.arange(tokens + 2) == START, ctc.IMPOSSIBLE)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    real = [row[:length].exp().numpy() for row, length in zip(log_p, lengths, strict=True)]
    return log_p.masked_fill(~mask.unsqueeze(2), torch.nan), mask, real


def stepping(log_p: torch.Tensor, mask: torch.Tensor) -> tuple[Step[ctc.Prefix, ctc.Said], ctc.Prefix, ctc.Said]:
    said = ctc.said_of(log_p, mask, BLANK)

    def step(tokens: torch.Tensor, prefix: ctc.Prefix, of: ctc.Said) -> tuple[torch.Tensor, ctc.Prefix]:
        prefix = ctc.extended(prefix, tokens, of, START, BLANK)
        return ctc.next_tokens(prefix, of, BLANK), prefix

    return step, ctc.empty(said, START, BLANK), said


lengths_of_rows = st.lists(st.integers(0, 5), min_size=1, max_size=3).filter(max)


@settings(max_examples=SOME)
@given(lengths=lengths_of_rows, tokens=st.integers(1, 2), seed=st.integers(0, 999))
def test_an_exhaustive_search_finds_the_sums_over_all_alignments(lengths: list[int], tokens: int, seed: int) -> None:
    log_p, mask, real = places(lengths, tokens, seed)
    step, prefix, said = stepping(log_p, mask)
    found = exhaustive(step, prefix.last, prefix, said, length=max(lengths) + 1, ends=[BLANK], best=400)
    for row, p in zip(found, real, strict=True):
        sums = {tuple(each.tokens[:-1]): each.log_probability for each in row if each.log_probability > -500}
        expected = enumerated(p)
        possible = {y: P for y, P in expected.items() if P > 0 and START not in y}
        assert sums.keys() == possible.keys()
        for y, P in possible.items():
            assert math.exp(sums[y]) == pytest.approx(P, abs=1e-13)
        assert sum(math.exp(each) for each in sums.values()) == pytest.approx(1, abs=1e-12)


@settings(max_examples=SOME)
@given(lengths=lengths_of_rows, seed=st.integers(0, 999))
def test_a_beam_as_wide_as_the_space_finds_the_most_probable_sequences(lengths: list[int], seed: int) -> None:
    log_p, mask, real = places(lengths, 2, seed)
    step, prefix, said = stepping(log_p, mask)
    found = beam(step, prefix.last, prefix, said, width=120, best=3, length=max(lengths) + 1, ends=[BLANK])
    for row, p in zip(found, real, strict=True):
        ordered = sorted(((P, y) for y, P in enumerated(p).items() if P > 0 and START not in y), reverse=True)
        for each, (P, y) in zip(row, ordered[:3], strict=False):
            assert tuple(each.tokens[:-1]) == y
            assert math.exp(each.log_probability) == pytest.approx(P, abs=1e-13)


@settings(max_examples=SOME)
@given(lengths=lengths_of_rows, seed=st.integers(0, 999))
def test_greedy_search_is_a_beam_of_one(lengths: list[int], seed: int) -> None:
    step, prefix, said = stepping(*places(lengths, 3, seed)[:2])
    narrow = beam(step, prefix.last, prefix, said, width=1, length=9, ends=[BLANK])
    for one, [other] in zip(greedy(step, prefix.last, prefix, said, length=9, ends=[BLANK]), narrow, strict=True):
        assert one.tokens == other.tokens
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-12)


@settings(max_examples=SOME)
@given(
    rows=st.lists(st.tuples(st.integers(1, 6), st.lists(st.integers(2, 4), max_size=4)), min_size=1, max_size=3),
    seed=st.integers(0, 999),
)
def test_log_likelihoods_are_those_of_torch_with_their_gradients(rows: list[tuple[int, list[int]]], seed: int) -> None:
    rows = [(max(length, needed_steps(target)), target) for length, target in rows]
    log_p, mask, _ = places([length for length, _ in rows], 3, seed)
    log_p = log_p.masked_fill(~mask.unsqueeze(2), 0.0).requires_grad_()
    longest = max(len(target) for _, target in rows) + 1
    targets = torch.tensor([[*target, *[BLANK] * (longest - len(target))] for _, target in rows])
    each = ctc.log_likelihoods(targets, ctc.said_of(log_p, mask, BLANK), START, BLANK)
    sums = torch.stack([row[: len(target) + 1].sum() for row, (_, target) in zip(each, rows, strict=True)])
    counts = torch.tensor([len(target) for _, target in rows])
    reference = log_p.detach().clone().requires_grad_()
    costs = functional.ctc_loss(
        reference.transpose(0, 1), targets, mask.sum(1), counts, blank=BLANK, reduction="none", zero_infinity=False
    )
    assert_close(sums, -costs, rtol=0, atol=1e-10)
    assert all((row[: len(target) + 1] <= 1e-12).all() for row, (_, target) in zip(each, rows, strict=True))
    [gradient] = torch.autograd.grad(sums.sum(), log_p)
    assert gradient.isfinite().all()
    # torch's gradient is that of the scores before a log-softmax; through one, both are the same.
    [expected] = torch.autograd.grad(-costs.sum(), reference)
    assert_close(through_softmax(log_p, gradient), through_softmax(log_p, expected), rtol=0, atol=1e-10)


def through_softmax(log_p: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    return gradient - log_p.exp() * gradient.sum(2, keepdim=True)


@settings(max_examples=SOME)
@given(length=st.integers(0, 5), tokens=st.lists(st.integers(2, 3), max_size=3), seed=st.integers(0, 999))
def test_the_best_alignment_is_the_most_probable_of_all_that_write_the_tokens(
    length: int, tokens: list[int], seed: int
) -> None:
    length = max(length, needed_steps(tokens))
    log_p = torch.randn(length, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).log_softmax(1)
    path = best_alignment(log_p.numpy(), np.array(tokens, np.int64), BLANK).tolist()
    said = [BLANK if number < 0 else tokens[number] for number in path]
    assert written(said) == tuple(tokens)
    assert [number for number, _ in groupby(path) if number >= 0] == list(range(len(tokens)))
    every = [each for each in product(range(4), repeat=length) if written(each) == tuple(tokens)]
    best = max(sum(float(log_p[t, token]) for t, token in enumerate(each)) for each in every)
    assert sum(float(log_p[t, token]) for t, token in enumerate(said)) == pytest.approx(best, abs=1e-12)


def test_what_does_not_fit_into_the_places_has_no_alignment_and_no_probability() -> None:
    log_p = torch.full((1, 2, 4), 0.25).log()
    assert needed_steps([2, 2]) == 3
    assert best_alignment(log_p[0].numpy(), np.array([2, 2]), BLANK).tolist() == [-1, -1]
    said = ctc.said_of(log_p, torch.ones(1, 2, dtype=torch.bool), BLANK)
    assert ctc.log_likelihoods(torch.tensor([[2, 2, BLANK]]), said, START, BLANK).sum() == -math.inf


def test_hundreds_of_places_lose_no_precision() -> None:
    log_p = (3 * torch.randn(2, 700, 5, dtype=torch.float64)).log_softmax(2)
    target = torch.randint(2, 5, (2, 60))
    target[:, 1:][target[:, 1:] == target[:, :-1]] = 1  # no neighbour is equal, and START serves as a token here
    mask = torch.arange(700) < torch.tensor([[700], [640]])
    said = ctc.said_of(log_p, mask, BLANK)
    found = ctc.log_likelihoods(torch.cat([target, target.new_zeros(2, 1)], 1), said, -1, BLANK).sum(1)
    costs = functional.ctc_loss(
        log_p.transpose(0, 1), target, mask.sum(1), torch.tensor([60, 60]), blank=BLANK, reduction="none"
    )
    assert_close(found, -costs, rtol=1e-12, atol=0)
