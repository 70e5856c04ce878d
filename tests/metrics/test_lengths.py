"""Items by length."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import buckets


@given(st.lists(st.integers(0, 60), min_size=1, max_size=200))
def test_each_item_is_in_the_one_bucket_that_its_length_fits(lengths: list[int]) -> None:
    found = buckets(lengths)
    assert sorted(np.concatenate([bucket.items for bucket in found])) == list(range(len(lengths)))
    for bucket in found:
        assert len(bucket.items)
        assert all(bucket.low <= lengths[item] <= bucket.high for item in bucket.items)
    assert all(one.high < other.low for one, other in pairwise(found))
    assert len(found) <= 6


def test_buckets_hold_about_as_many_items_each() -> None:
    found = buckets(np.random.default_rng(0).integers(1, 1000, size=600))
    assert [len(bucket.items) for bucket in found] == pytest.approx([100] * 6, abs=3)


def test_few_lengths_make_few_buckets() -> None:
    assert [(bucket.label, bucket.items.tolist()) for bucket in buckets([4, 2, 4, 4])] == [
        ("2", [1]),
        ("3-4", [0, 2, 3]),
    ]


def test_buckets_end_where_they_are_told_to() -> None:
    found = buckets([3, 30, 12, 8, 50], ends=[5, 10, 20, 40])
    assert [bucket.label for bucket in found] == ["3-5", "6-10", "11-20", "21-40", "41-50"]
    assert [bucket.label for bucket in buckets([3, 4], ends=[5, 10])] == ["3-5"]


def test_ends_that_fall_and_no_items_are_refused() -> None:
    with pytest.raises(DataError, match=r"the upper ends of buckets must increase, but are \[5, 3\]"):
        buckets([1], ends=[5, 3])
    with pytest.raises(DataError, match="length buckets need at least one item"):
        buckets([])
