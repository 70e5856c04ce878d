"""Calibration and refusal, against loops over items and over every threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError, RecurraError
from recurra.metrics.confidence import calibration, expected_calibration_error, recall_at_false_alarms

items = st.lists(st.tuples(st.integers(0, 100).map(lambda n: n / 100), st.booleans()), min_size=1, max_size=30)
confidences = st.lists(st.sampled_from([k / 8 for k in range(9)]), min_size=1, max_size=20)


@given(items, st.integers(1, 12))
def test_every_item_is_in_the_bin_of_its_confidence(items: list[tuple[float, bool]], bins: int) -> None:
    rows = calibration([sure for sure, _ in items], [right for _, right in items], bins)
    assert sum(row.count for row in rows) == len(items)
    assert [row.low for row in rows] == sorted({row.low for row in rows})
    for row in rows:
        inside = [(s, r) for s, r in items if row.low <= s < row.high or s == row.high == 1]
        assert row.count == len(inside) > 0
        assert row.high - row.low == pytest.approx(1 / bins)
        assert row.confidence == pytest.approx(sum(s for s, _ in inside) / len(inside))
        assert row.accuracy == pytest.approx(sum(r for _, r in inside) / len(inside))


@given(items)
def test_with_one_bin_the_error_is_that_of_the_means(items: list[tuple[float, bool]]) -> None:
    sure, right = [s for s, _ in items], [r for _, r in items]
    gap = abs(sum(sure) - sum(right)) / len(items)
    assert expected_calibration_error(sure, right, 1) == pytest.approx(gap, abs=1e-12)
    assert expected_calibration_error(sure, right) >= gap - 1e-12


def test_a_confidence_on_an_edge_is_in_the_bin_above() -> None:
    for k in range(10):
        assert [row.low for row in calibration([k / 10], [True])] == [k / 10]


@given(confidences, confidences, st.integers(0, 20))
def test_the_threshold_is_the_highest_that_the_rate_allows(
    inside: list[float], outside: list[float], twentieths: int
) -> None:
    rate = Fraction(twentieths, 20)
    refused = [
        sum(sure < threshold for sure in outside)
        for threshold in [*inside, *outside, 2.0]
        if Fraction(sum(sure < threshold for sure in inside), len(inside)) <= rate
    ]
    assert recall_at_false_alarms(inside, outside, twentieths / 20) == pytest.approx(
        max(refused, default=0) / len(outside)
    )


@pytest.mark.parametrize(
    ("metric", "arguments", "kind", "message"),
    [
        (calibration, ([0.5], [True, False]), DataError, "confidence has 1 items but right has 2"),
        (calibration, ([0.5, 1.5], [True, False]), DataError, "lies between 0 and 1, but item 2 has 1.5."),
        (calibration, ([0.5], [True], 0), ConfigError, "bins must be a whole number of at least 1, but is 0."),
        (calibration, ([], []), DataError, "confidence must be a column with a value for each item"),
        (expected_calibration_error, ([math.nan], [True]), DataError, "confidence holds NaN at item 1."),
        (recall_at_false_alarms, ([0.5], [], 0.05), DataError, "outside must be a column with a value for each item"),
        (recall_at_false_alarms, ([0.5], [0.5], 5), ConfigError, "rate must be a share between 0 and 1, such as 0.05"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    metric: Callable[..., object], arguments: Any, kind: type[RecurraError], message: str
) -> None:
    with pytest.raises(kind) as refusal:
        metric(*arguments)
    assert message in str(refusal.value)
