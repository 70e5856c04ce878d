"""The area under the ROC curve, against loops over pairs of items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import area_under_curve, auc

# Few distinct scores, so that ties are many.
scored = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=20)


@given(scored)
def test_the_area_is_the_share_of_pairs_in_the_right_order(items: list[tuple[float, bool]]) -> None:
    hits, misses = [s for s, yes in items if yes], [s for s, yes in items if not yes]
    area = auc([score for score, _ in items], [yes for _, yes in items])
    if hits and misses:
        won = [1.0 if hit > miss else 0.5 if hit == miss else 0.0 for hit in hits for miss in misses]
        assert area == pytest.approx(sum(won) / len(won), abs=1e-12)
    else:
        assert math.isnan(area)


@given(scored)
def test_turning_the_scores_round_turns_the_area_round(items: list[tuple[float, bool]]) -> None:
    scores, flags = np.array([score for score, _ in items]), [yes for _, yes in items]
    assert auc(-scores, flags) == pytest.approx(1 - auc(scores, flags), nan_ok=True)
    assert auc(np.exp(3 * scores), flags) == pytest.approx(auc(scores, flags), nan_ok=True)


@given(scored, st.integers(0, 1000))
def test_an_item_that_counts_twice_is_two_items(items: list[tuple[float, bool]], seed: int) -> None:
    scores, flags = np.array([score for score, _ in items]), np.array([yes for _, yes in items])
    times = np.random.default_rng(seed).integers(0, 3, len(items))
    expected = auc(np.repeat(scores, times), np.repeat(flags, times)) if times.any() else math.nan
    assert area_under_curve(scores, flags)(times) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("scores", "positive", "message"),
    [
        ([0.1, math.nan], [True, False], "scores holds NaN at item 2, which cannot be ranked."),
        ([0.1], [True, False], "scores has 1 items but positive has 2: each item needs both."),
        ([0.1, 0.2], [2, 1], "positive must be true or false for each item, but holds other values."),
        ([], [], "scores must have one value per item, but has shape (0,)."),
        ([0.1], [[True]], "positive must have one value per item, but has shape (1, 1)."),
    ],
)
def test_what_cannot_be_put_in_order_is_refused(scores: Any, positive: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        auc(scores, positive)
    assert message in str(refusal.value)
