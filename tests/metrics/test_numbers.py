"""Errors of numbers, against the formulas on plain Python floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import mae, rmse

number = st.floats(-1e6, 1e6)


@given(st.lists(st.lists(st.tuples(number, number), min_size=1, max_size=4), min_size=1, max_size=4))
def test_errors_are_means_over_all_numbers(pairs: list[list[tuple[float, float]]]) -> None:
    gold, said = [[a for a, _ in row] for row in pairs], [[b for _, b in row] for row in pairs]
    gaps = [a - b for row in pairs for a, b in row]
    absolute = math.fsum(abs(gap) for gap in gaps) / len(gaps)
    squared = math.sqrt(math.fsum(gap * gap for gap in gaps) / len(gaps))
    assert mae(gold, said) == pytest.approx(absolute, rel=1e-12)
    assert rmse(gold, said) == pytest.approx(squared, rel=1e-9, abs=1e-150)
    flat = [a for row in gold for a in row], [b for row in said for b in row]
    assert mae(*flat) == pytest.approx(absolute, rel=1e-12)
    assert rmse(*(np.array(side) for side in flat)) == pytest.approx(squared, rel=1e-9, abs=1e-150)


def test_large_errors_do_not_overflow() -> None:
    assert rmse([1e300], [-1e300]) == 2e300


@pytest.mark.parametrize("metric", [mae, rmse])
@pytest.mark.parametrize(
    ("gold", "said", "message"),
    [
        ([1.0], [1.0, 2.0], "gold has 1 items but predicted has 2: each item needs both. Item 2 is the first"),
        ([[1.0], [1.0, 2.0]], [[1.0], [1.0]], "item 2 has 2 gold numbers of shape (2,) but 1 predicted of shape (1,)"),
        ([1.0, math.nan], [1.0, 1.0], "item 2 of gold holds nan"),
        ([[1.0]], [[math.inf]], "item 1 of predicted holds inf"),
        ([1.0], ["one"], "item 1 of predicted must be a number or a sequence of numbers, but is 'one'."),
        ([], [], "an error needs at least one number"),
        ([[]], [[]], "an error needs at least one number"),
    ],
)
def test_numbers_that_cannot_be_compared_are_refused(
    metric: Callable[..., float], gold: Any, said: Any, message: str
) -> None:
    with pytest.raises(DataError) as refusal:
        metric(gold, said)
    assert message in str(refusal.value)
