"""Scores of forecasts against plain loops over series, origins and steps."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.config.forecasting import ForecastingDecoding, ForecastingEvaluation
from recurra.data.normal import Normal
from recurra.data.unit import Unit
from recurra.metrics import forecasts
from recurra.metrics.forecast_errors import LEVELS
from recurra.metrics.forecasts import origins_of
from recurra.models.forecast import Review
from recurra.reading.series import Steps
from recurra.scoring.counted import Counted
from recurra.scoring.forecast_scores import Measures, value_scores

Floats = NDArray[np.float64]
HORIZON, SEASON, FIRST = 3, 2, 5


def series(name: str, seed: int, steps: int, level: float, width: int = 1) -> Steps:
    values = level * (10 + np.random.default_rng(seed).normal(size=(steps, width)))
    known = np.ones_like(values, bool)
    known[steps // 2] = False
    return Steps(name, values, known, 0, 1, "a.csv:2")


def review(steps: Steps, seed: int, *, fan: bool = True) -> Review:
    draw = np.random.default_rng(seed)
    origins = origins_of(len(steps), first=FIRST)
    shape = len(origins), HORIZON, steps.values.shape[1]
    ahead = 10 + draw.normal(size=shape)
    quantiles = np.sort(ahead[:, :, None] + draw.normal(size=(len(origins), HORIZON, len(LEVELS), shape[2])), axis=2)
    return Review(
        draw.random(len(steps)),
        10 + draw.normal(size=steps.values.shape),
        draw.random(steps.values.shape) < 0.9,
        origins,
        ahead,
        crps=draw.random(steps.values.shape),
        fan=quantiles if fan else None,
    )


def settings(**evaluation: object) -> ForecastingSettings:
    found = ForecastingEvaluation(**{"season": SEASON, "context": FIRST, **evaluation})  # type: ignore[arg-type]
    return dataclasses.replace(ForecastingSettings(), decoding=ForecastingDecoding(horizon=HORIZON), evaluation=found)


def measures(unit: float = 1.0, width: int = 1) -> Measures:
    """Values are multiples of a unit."""
    units = np.full(width, unit)
    return Measures(
        lambda example: Unit(Normal(np.zeros_like(units), units)),
        units,
        has_sizes=True,
        has_density=True,
        has_quantiles=True,
        calibrated=lambda example, given: (given.ahead * unit - 0.5, given.ahead * unit + 0.5),
    )


def counted(examples: Sequence[Steps], reviews: Sequence[Review], **evaluation: object) -> Counted:
    width = examples[0].values.shape[1]
    return value_scores(examples, reviews, measures=measures(width=width), settings=settings(**evaluation))


def terms(examples: Sequence[Steps], reviews: Sequence[Review]) -> list[list[dict[str, float]]]:
    """Of each series, of each value that was forecast: everything that scores are made of."""
    found = []
    for example, given in zip(examples, reviews, strict=True):
        rows = []
        for place, origin in enumerate(given.origins.tolist()):
            for k in range(HORIZON):
                if origin + k >= len(example) or not example.known[origin + k].all():
                    continue
                for j in range(example.values.shape[1]):
                    x = example.values[:, j]
                    y, f = x[origin + k], given.ahead[place, k, j]
                    history = [abs(x[t] - x[t - SEASON]) for t in range(SEASON, origin)]
                    assert given.fan is not None
                    fan = given.fan[place, k, :, j]
                    losses = [max(u * (y - q), (u - 1) * (y - q)) for q, u in zip(fan, LEVELS, strict=True)]
                    rows.append(
                        {
                            "step": k,
                            "mae": abs(y - f),
                            "mase": abs(y - f) / np.mean(history),
                            "square": (y - f) ** 2 / np.mean(np.square(history)),
                            "smape": 200 * abs(y - f) / (abs(y) + abs(f)),
                            "mape": 100 * abs(y - f) / abs(y),
                            "crps": 2 * np.mean(losses),
                            "held": fan[0] <= y <= fan[-1],
                            "width": fan[-1] - fan[0],
                            "size": abs(y),
                            "near": abs(y - f) <= 0.5,
                        }
                    )
        found.append(rows)
    return found


def mean(rows: Sequence[dict[str, float]], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


EXAMPLES = [series("a", 1, 12, 1.0), series("b", 2, 17, 1.3), series("c", 3, 9, 0.8)]
REVIEWS = [review(example, seed) for seed, example in enumerate(EXAMPLES)]


def test_scores_are_means_over_series_of_means_over_their_forecasts() -> None:
    scores, rows = counted(EXAMPLES, REVIEWS).scores().values, terms(EXAMPLES, REVIEWS)
    for name in ("mase", "smape", "mape"):
        assert scores[name] == pytest.approx(np.mean([mean(each, name) for each in rows]), rel=1e-9)
    assert scores["rmsse"] == pytest.approx(np.mean([math.sqrt(mean(each, "square")) for each in rows]), rel=1e-9)
    every = [row for each in rows for row in each]
    assert scores["mae"] == pytest.approx(mean(every, "mae"))
    assert scores["crps"] == pytest.approx(mean(every, "crps"))
    assert scores["weighted_quantile_loss"] == pytest.approx(mean(every, "crps") / mean(every, "size"))
    assert scores["interval_coverage"] == pytest.approx(mean(every, "held"))
    assert scores["interval_width"] == pytest.approx(mean(every, "width"))
    assert scores["calibrated_coverage"] == pytest.approx(mean(every, "near"))
    assert scores["calibrated_width"] == pytest.approx(1.0)


def test_tables_show_steps_series_and_rules() -> None:
    tables, rows = counted(EXAMPLES, REVIEWS).scores().tables, terms(EXAMPLES, REVIEWS)
    steps = tables["by step of the horizon"]
    assert list(steps.columns) == [
        *("step", "mae", "last_value_mae", "seasonal_mae", "mase", "smape", "crps", "coverage", "width"),
        *("calibrated_coverage", "calibrated_width", "count"),
    ]
    for k, row in enumerate(steps.rows):
        cells = dict(zip(steps.columns, row, strict=True))
        here = [[each for each in some if each["step"] == k] for some in rows]
        assert cells["mase"] == pytest.approx(np.mean([mean(each, "mase") for each in here]))
        assert cells["crps"] == pytest.approx(mean([each for some in here for each in some], "crps"))
        assert cells["count"] == sum(map(len, here))
    names = [row[0] for row in tables["by series"].rows]
    assert names == ["a", "b", "c"]
    assert tables["by series"].rows[1][2] == pytest.approx(mean(rows[1], "mase"))
    methods = tables["beside simple rules"]
    assert [row[0] for row in methods.rows] == ["model", "last value", "seasonal", "drift", "theta"]
    assert list(methods.columns) == ["method", "mae", "mase", "rmsse", "smape", "mape"]


def test_of_very_many_series_those_with_the_largest_errors_are_shown() -> None:
    examples = [series(str(number), number, 9, 1.0) for number in range(130)]
    found = counted(examples, [review(each, 7) for each in examples]).scores()
    shown = found.tables["by series"].rows
    assert len(shown) == 100
    worst = [row[2] for row in shown]
    assert worst == sorted(worst, reverse=True)


def test_intervals_of_scores_resample_series() -> None:
    found = counted(EXAMPLES, REVIEWS)
    alone = [counted([example], [given]).value("mase") for example, given in zip(EXAMPLES, REVIEWS, strict=True)]
    assert found.value("mase", np.array([0, 0, 2])) == pytest.approx((2 * alone[0] + alone[2]) / 3)


def test_the_score_that_training_goes_by_is_asked_for_and_must_be_defined() -> None:
    assert counted(EXAMPLES, REVIEWS).first == "mae"
    assert counted(EXAMPLES, REVIEWS, score="mase").first == "mase"
    wide = [series("a", 1, 12, 1.0, width=2)]
    assert counted(wide, [review(wide[0], 0)]).first == "scaled_mae"
    # A series that repeats itself has no scale, and so no MASE.
    same = dataclasses.replace(EXAMPLES[0], values=np.tile([[1.0], [2.0]], (6, 1)))
    found = counted([same], [REVIEWS[0]], score="mase")
    assert found.first == "mae"
    assert math.isnan(found.scores().values["mase"])


def test_values_of_zero_have_no_percentage_and_a_note_says_so() -> None:
    values = EXAMPLES[0].values.copy()
    values[8:10] = 0
    odd = dataclasses.replace(EXAMPLES[0], values=values)
    scores = counted([odd], [REVIEWS[0]]).scores()
    [note] = scores.notes
    assert note.startswith("mape leaves out 6 of ")
    assert "which are 0 or nearly 0" in note
    [rows] = terms([dataclasses.replace(odd, known=odd.known & (values != 0))], [REVIEWS[0]])
    assert scores.values["mape"] == pytest.approx(mean(rows, "mape"))
    assert counted(EXAMPLES, REVIEWS).scores().notes == ()


def test_without_paths_there_is_no_crps_over_the_horizon() -> None:
    found = counted(EXAMPLES, [review(each, 0, fan=False) for each in EXAMPLES]).scores().values
    assert "crps" not in found
    assert found["next_crps"] > 0


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_the_crps_of_the_next_step_is_in_the_unit_of_the_data(unit: float) -> None:
    example = dataclasses.replace(EXAMPLES[0], values=EXAMPLES[0].values * unit)
    found = value_scores([example], [REVIEWS[0]], measures=measures(unit), settings=settings())
    assert REVIEWS[0].crps is not None
    is_scored = (np.arange(len(example)) >= FIRST) & example.known[:, 0]
    assert found.value("next_crps") == pytest.approx(unit * REVIEWS[0].crps[is_scored].mean())


def test_quantiles_of_a_fan_are_scored_a_piece_at_a_time_and_to_the_same_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    example = series("a", 3, 900, 1.0, width=2)
    given = review(example, 4)
    assert given.fan is not None
    given = given._replace(fan=given.fan.astype(np.float32))
    assert given.fan is not None
    found = []
    for piece in (1 << 40, 1000):
        monkeypatch.setattr(forecasts, "PIECE", piece)
        tracemalloc.start()
        one = counted([example], [given])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        scores = one.scores()
        found.append((most, scores.values, scores.tables["by step of the horizon"]))
    (much, *whole), (little, *pieces) = found
    assert repr(pieces) == repr(whole)
    assert found[0][1]["interval_coverage"] > 0
    in_double = 2 * given.fan.nbytes
    assert little < in_double < 3 * in_double < much
