"""Refusal of what was never taught, against a loop over every threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError, RecurraError
from recurra.metrics.confidence import recall_at_false_alarms

confidences = st.lists(st.sampled_from([k / 8 for k in range(9)]), min_size=1, max_size=20)


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
    ("arguments", "kind", "message"),
    [
        (([0.5], [], 0.05), DataError, "outside must have one value per item"),
        (([math.nan], [0.5], 0.05), DataError, "inside holds NaN at item 1."),
        (([0.5], [0.5], 5), ConfigError, "rate must be between 0 and 1, such as 0.05"),
    ],
)
def test_what_cannot_be_judged_is_refused(arguments: Any, kind: type[RecurraError], message: str) -> None:
    with pytest.raises(kind) as refusal:
        recall_at_false_alarms(*arguments)
    assert message in str(refusal.value)
