"""Batches: every row once, under the budget, with little padding, drawn from seed and epoch alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.data.batches import POOL, Batches, in_order_of_length

LENGTHS = st.lists(st.integers(0, 30), max_size=80).map(lambda lengths: np.array(lengths, np.int64))


def rows_of(batches: Iterable[NDArray[np.int64]]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


def cost(batch: list[int], lengths: NDArray[np.int64]) -> int:
    """Elements of a batch, padding included; an empty row counts as one."""
    return len(batch) * max(max(int(lengths[row]), 1) for row in batch)


@given(LENGTHS, st.integers(1, 60), st.integers(0, 9), st.integers(0, 9))
def test_every_row_comes_once_and_the_budget_is_kept(
    lengths: NDArray[np.int64], tokens: int, seed: int, epoch: int
) -> None:
    for batches in (
        rows_of(Batches(lengths, tokens=tokens, seed=seed, epoch=epoch)),
        rows_of(in_order_of_length(lengths, tokens=tokens)),
    ):
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        assert all(cost(batch, lengths) <= tokens or len(batch) == 1 for batch in batches)


@given(LENGTHS, st.integers(1, 60))
def test_in_order_of_length_is_the_greedy_filling(lengths: NDArray[np.int64], tokens: int) -> None:
    expected: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: int(lengths[row])):
        if expected and cost([*expected[-1], row], lengths) <= tokens:
            expected[-1].append(row)
        else:
            expected.append([row])
    assert rows_of(in_order_of_length(lengths, tokens=tokens)) == expected


@given(LENGTHS, st.integers(1, 9), st.integers(0, 9))
def test_a_number_of_rows_bounds_a_batch_in_place_of_elements(
    lengths: NDArray[np.int64], rows: int, epoch: int
) -> None:
    batches = rows_of(Batches(lengths, rows=rows, seed=1, epoch=epoch))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    sizes = sorted(map(len, batches))
    assert sizes[1:] == [rows] * (len(sizes) - 1)
    assert len(batches) == -(-len(lengths) // rows)


@given(LENGTHS, st.integers(1, 60), st.integers(0, 2**63 - 1), st.integers(0, 9))
def test_seed_and_epoch_alone_decide(lengths: NDArray[np.int64], tokens: int, seed: int, epoch: int) -> None:
    np.random.seed(len(lengths))  # what others draw changes nothing
    one, other = (Batches(lengths, tokens=tokens, seed=seed, epoch=epoch) for _ in range(2))
    assert rows_of(one) == rows_of(other)


def test_every_epoch_and_every_seed_have_an_order_of_their_own() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, 500)
    orders = {str(rows_of(Batches(lengths, tokens=200, seed=s, epoch=e))) for s in range(4) for e in range(4)}
    assert len(orders) == 16


def test_rows_meet_others_in_other_epochs() -> None:
    lengths = np.full(400, 5)
    partners = {
        frozenset(batch) for epoch in range(3) for batch in rows_of(Batches(lengths, tokens=20, seed=1, epoch=epoch))
    }
    assert len(partners) > 290  # of 300 batches


@pytest.mark.parametrize("mode", [{"tokens": 1000}, {"rows": 32}])
def test_little_is_padding_where_lengths_are_mixed(mode: dict[str, Any]) -> None:
    lengths = np.random.default_rng(0).geometric(1 / 20, 5000)
    batches = rows_of(Batches(lengths, seed=1, epoch=0, **mode))
    padded = sum(cost(batch, lengths) for batch in batches)
    assert 1 - lengths.sum() / padded < 0.1
    # Unsorted batches of as many rows would be mostly padding.
    at_random = np.array_split(np.random.default_rng(1).permutation(len(lengths)), len(batches))
    assert 1 - lengths.sum() / sum(cost(batch.tolist(), lengths) for batch in at_random) > 0.5


def test_the_budget_is_used() -> None:
    lengths = np.random.default_rng(0).geometric(1 / 20, 20 * POOL)
    batches = rows_of(Batches(lengths, tokens=1000, seed=1, epoch=0))
    assert np.mean([cost(batch, lengths) for batch in batches]) > 900


def test_long_and_short_batches_are_mixed() -> None:
    lengths = np.repeat([1, 100], 500)
    longest = [int(lengths[batch].max()) for batch in Batches(lengths, tokens=1000, seed=1, epoch=0)]
    changes = sum(a != b for a, b in itertools.pairwise(longest))
    assert changes > 1


def test_no_rows_make_no_batches() -> None:
    none = np.zeros(0, np.int64)
    assert rows_of(Batches(none, tokens=10, seed=1, epoch=0)) == []
    assert rows_of(Batches(none, rows=10, seed=1, epoch=0)) == []
    assert in_order_of_length(none, tokens=10) == []


def test_rows_without_elements_count_as_one_each() -> None:
    empty = np.zeros(10, np.int64)
    assert sorted(map(len, Batches(empty, tokens=4, seed=1, epoch=0))) == [2, 4, 4]
    assert list(map(len, in_order_of_length(empty, tokens=4))) == [4, 4, 2]


def test_batches_are_counted_from_either_end_and_in_parts() -> None:
    batches = Batches(np.arange(1, 30), tokens=40, seed=1, epoch=0)
    whole = rows_of(batches)
    assert len(batches) == len(whole) > 5
    assert batches[-1].tolist() == whole[-1]
    assert rows_of(batches[2:5]) == whole[2:5]
    with pytest.raises(IndexError):
        batches[len(whole)]


@given(LENGTHS, st.integers(1, 60), st.integers(1, 9))
def test_rows_go_together_by_another_order_and_the_budget_is_still_kept(
    lengths: NDArray[np.int64], tokens: int, rows: int
) -> None:
    order = -lengths % 7
    batches = rows_of(Batches(lengths, tokens=tokens, seed=1, epoch=0, order=order))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(cost(batch, lengths) <= tokens or len(batch) == 1 for batch in batches)
    spans = [
        (min(order[batch]), max(order[batch])) for batch in Batches(lengths, rows=rows, seed=1, epoch=0, order=order)
    ]
    assert all(one <= other for (_, one), (other, _) in itertools.pairwise(sorted(spans)))
    batches_of_rows = Batches(lengths, rows=rows, seed=1, epoch=0, order=order)
    for number, batch in enumerate(batches_of_rows):
        assert batches_of_rows.shape(number) == (len(batch), int(lengths[batch].max()))
