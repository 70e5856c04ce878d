"""Intervals of forecasts, and what corrects them so that they hold as often as they say (`metrics.conformal`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Encoded
from recurra.errors import CheckpointError
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.reviews import places, reviews, stride_of_all_phases
from recurra.metrics.adaptive import tracked
from recurra.metrics.conformal import COVERAGES, Calibration, conformal_scores, drawn_from, evenly
from recurra.metrics.forecast_errors import LEVELS, naive_errors
from recurra.metrics.forecasts import came_true, pieces
from recurra.opening import SMALL, read_file
from recurra.reading.steps import Steps
from recurra.settings import SettingError

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

CALIBRATION = "calibration.json"
"""The file of a run with what corrects its intervals."""

WRITTEN = 32
"""Bytes, at most, of a number in that file, with its share of the brackets."""

POINT, PATHS = "point", "paths"
"""Of forecasts without an interval, and of the 90 % interval of quantiles or sampled paths."""

USUAL = 0.9
"""What an interval holds by the model, where no other coverage is asked for."""

RECENT, SEASONS = 100, 14
"""Steps and seasons before an origin, at least, that tell which errors are usual."""

AT_ONCE = 10
"""Forecasts on their way, of which nothing is known yet; with more, each moves an interval less: all do at once."""

CALIBRATED = 1 << 19
"""Forecast values, about, that correct intervals where other origins than those of the scores are looked at."""

DRAWN = 500
"""Origins, about, from which paths are drawn for that: they take long."""


class Intervals:
    """The intervals of a run: those of its model, corrected where validation data told how often they hold."""

    def __init__(self, conventions: Conventions, calibrations: Mapping[str, Calibration] | None = None) -> None:
        self.conventions = conventions
        self.calibrations = calibrations or {}  # of forecasts without an interval, and of that of sampled paths

    @property
    def coverage(self) -> float | None:
        """The share of values that was asked for."""
        return self.conventions.settings.decoding.coverage

    @property
    def is_corrected(self) -> bool:
        """Whether intervals are asked for, and what corrects them is known."""
        return self.coverage is not None and bool(self.calibrations)

    @property
    def of_model(self) -> float:
        """The share that lies, by the model, within the interval before it is corrected."""
        return USUAL if self.coverage is None or self.calibrations else self.coverage

    @property
    def has_paths(self) -> bool:
        """Whether sampled paths can be shown: what was calibrated without them is shown without them."""
        return self.conventions.has_quantiles and (not self.is_corrected or PATHS in self.calibrations)

    @property
    def steps_remembered(self) -> int:
        """The last steps of a series by which its intervals are measured."""
        season = self.conventions.settings.season
        return max(RECENT, SEASONS * season) + season

    def save(self, folder: Path) -> None:
        """Write what `load` reads, if there is anything."""
        if self.calibrations:
            found = {name: each.to_json() for name, each in self.calibrations.items()}
            (folder / CALIBRATION).write_text(json.dumps(found), "utf-8")

    @classmethod
    def load(cls, conventions: Conventions, folder: Path) -> Intervals:
        """Those of a run; earlier versions wrote none."""
        path = folder / CALIBRATION
        if not path.exists():
            return cls(conventions)
        try:
            known = json.loads(read_file(path, _most_bytes(conventions)))
            return cls(conventions, {str(name): Calibration.from_json(each) for name, each in known.items()})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}): the run folder is damaged.") from error

    def calibrated(
        self, model: Any, examples: Sequence[Steps], rows: Sequence[Encoded], outputs: Sequence[Any]
    ) -> Intervals:
        """Those corrected by the errors of a trained model on examples that it has not seen. (torch)"""
        if self.conventions.gives_coins or not any(len(review.origins) for review in outputs):
            return self
        own, settings = self.conventions, self.conventions.settings
        if math.gcd(settings.evaluation.stride, max(1, settings.season)) > 1:  # scores may leave phases out
            most = max(DRAWN, CALIBRATED // (own.horizon * own.size))
            outputs = self._from_all_phases(model, rows, most=most)
        found = {POINT: self._calibration(examples, outputs, has_fan=False)}
        paths = settings.decoding.paths or settings.evaluation.paths
        if own.has_quantiles and (own.is_direct or paths):
            if outputs[0].fan is None:
                outputs = self._from_all_phases(model, rows, most=DRAWN, paths=paths)
            found[PATHS] = self._calibration(examples, outputs, has_fan=True)
        return Intervals(own, found)

    def _from_all_phases(self, model: Any, rows: Sequence[Encoded], *, most: int, paths: int = 0) -> Sequence[Any]:
        """What a model says from at most so many origins, which do not all lie in the same phase of a season."""
        stride = stride_of_all_phases(self.conventions, rows, most=most)
        return reviews(self.conventions, model, rows, places(self.conventions, rows, stride=stride), paths=paths)

    def _calibration(self, examples: Sequence[Steps], reviews: Sequence[Any], *, has_fan: bool) -> Calibration:
        horizon = self.conventions.horizon
        scores, expected, blocks = list[Floats](), list[Floats](), list[float]()
        for example, review in zip(examples, reviews, strict=True):
            if not len(review.origins):
                continue
            gold = np.where(example.known, example.values, np.nan)
            low, high = self._ends(example, review, has_fan=has_fan)
            came = came_true(gold, review.origins, horizon)
            usual = self._usual_errors(low, high, example.values, review.origins)
            scores.append(conformal_scores(low, high, came, usual))
            if has_fan:
                shares = evenly(sum(map(len, expected)), len(review.fan))
                expected.append(conformal_scores(low, high, self._drawn(example, review, shares), usual))
                blocks.append((len(gold) - int(review.origins[0])) / horizon)
        said = np.concatenate(expected) if has_fan else None
        # Series share their time, and what happens in it: many of them are not more blocks.
        return Calibration.of(np.concatenate(scores), said, float(np.mean(blocks)) if has_fan else math.inf)

    def _ends(self, example: Steps, review: Any, *, has_fan: bool) -> Ends:
        """(O, h, d) each: the ends of the 90 % interval of sampled paths; without them both are the forecast."""
        last, unit = example.values[review.origins - 1], self.conventions.unit_of(example)
        if not has_fan:
            return (said := unit.ahead(review.ahead, last)), said
        fan = unit.fan(review.fan[:, :, [0, -1]], last)
        return fan[:, :, 0], fan[:, :, 1]

    def _drawn(self, example: Steps, review: Any, shares: Floats) -> Floats:
        """(O, h, d): values of the distributions that a model says, one for each origin at its share."""
        unit, found = self.conventions.unit_of(example), np.empty(review.ahead.shape)
        for some in pieces(review.fan):
            fan = unit.fan(review.fan[some], example.values[review.origins[some] - 1])
            found[some] = drawn_from(fan, np.array(LEVELS), shares[some])
        return found

    def _usual_errors(self, low: Floats, high: Floats, values: Floats, origins: NDArray[np.int64]) -> Floats:
        """(O, h, d): in what errors are measured: the width of the interval, or, without one, what was usual lately."""
        width, spread = high - low, self.conventions.scale.spread
        if not len(values):
            return np.where(width > 0, width, spread)
        season = self.conventions.settings.season
        lately = naive_errors(values, origins, season, recent=max(RECENT, SEASONS * season))[:, None]
        return np.where(width > 0, width, np.where(np.isnan(lately), spread, lately))

    @property
    def adapts(self) -> bool:
        """Whether intervals follow the errors of a series as its values become known."""
        return self.is_corrected and self.conventions.settings.decoding.adaptation > 0

    def first_unseen(self, example: Steps) -> int | None:
        """The first step of a series that training has not seen; None where there is none, or that cannot be told."""
        facts = self.conventions.facts
        if example.preceding:
            return example.preceding
        is_known = example.name in facts.names or example.name in facts.ends
        return None if is_known or not (facts.names or facts.ends) else 0

    def of_review(self, example: Steps, review: Any) -> Ends | None:
        """(O, h, d) each: the ends of intervals that hold the coverage that is asked for; None where unknown."""
        if not self.is_corrected:
            return None
        has_fan = review.fan is not None and PATHS in self.calibrations
        low, high = self._ends(example, review, has_fan=has_fan)
        return self._widened(low, high, example, review.origins, PATHS if has_fan else POINT)

    def of_answer(self, example: Steps, said: Floats, ends: Ends | None, past: Any = None) -> Ends | None:
        """(h, d) each: the ends of the interval of an answer, from the forecast and the model's own interval.

        `past` is what the model said before from some origins, by which intervals adapt.
        """
        if not self.is_corrected:
            return ends
        which = PATHS
        if ends is None or PATHS not in self.calibrations:
            ends, which = (said, said), POINT
        low, high = (end[None] for end in ends)
        origins = np.array([len(example)])
        if past is not None and (past.fan is not None) == (which == PATHS):
            before = self._ends(example, past, has_fan=which == PATHS)
            low, high = (np.concatenate(each) for each in zip(before, (low, high), strict=True))
            origins = np.concatenate([past.origins, origins])
        low, high = self._widened(low, high, example, origins, which)
        return low[-1], high[-1]

    def _widened(self, low: Floats, high: Floats, example: Steps, origins: NDArray[np.int64], which: str) -> Ends:
        usual = self._usual_errors(low, high, example.values, origins)
        more = usual * self._corrections(low, high, usual, example, origins, self.calibrations[which])
        low, high = low - more, high + more
        middle = (low + high) / 2  # ends that were drawn in too far meet there
        low, high = np.minimum(low, middle), np.maximum(high, middle)
        return (np.maximum(low, 0.0), np.maximum(high, 0.0)) if self.conventions.is_positive else (low, high)

    def _corrections(
        self,
        low: Floats,
        high: Floats,
        usual: Floats,
        example: Steps,
        origins: NDArray[np.int64],
        calibration: Calibration,
    ) -> Floats:
        """(O, h, d) or (h, d): by how much intervals are wider than those of the model, in their own unit."""
        assert self.coverage is not None
        self.check()
        horizon, rate = self.conventions.horizon, self.conventions.settings.decoding.adaptation
        start = calibration.at(self.coverage)[:horizon]
        unseen = self.first_unseen(example)
        if not rate or unseen is None or len(origins) < 2:
            return start
        gold = came_true(np.where(example.known, example.values, np.nan), origins, horizon)
        scores = conformal_scores(low, high, gold, usual)
        scores[origins < unseen] = np.nan
        late = np.arange(1, horizon + 1)[:, None] / max(1, int(np.diff(origins).min()))  # forecasts on their way
        step = rate * calibration.spread[:horizon] / (1 + late / AT_ONCE)
        return tracked(scores, origins, start, step, self.coverage)

    def check(self) -> None:
        """Refuse a coverage or a horizon for which no interval is known."""
        coverage, decoding = self.coverage, self.conventions.settings.decoding
        if coverage is None or self.conventions.gives_coins:
            return
        if not self.calibrations:
            has_quantiles = self.conventions.is_direct and self.conventions.has_quantiles
            if decoding.paths or (has_quantiles and coverage <= LEVELS[-1] - LEVELS[0]):
                return  # the quantiles of the paths, or of the model, themselves
            raise SettingError(
                f"decoding.coverage = {coverage:g} needs the errors on validation data, but this run was trained "
                f"without any. Train with --valid, or take the interval of sampled paths: decoding.paths = 100.",
                ("decoding", "coverage"),
            )
        known = min(each.horizon for each in self.calibrations.values())
        if decoding.horizon > known:
            raise SettingError(
                f"decoding.coverage = {coverage:g}: intervals are known for {known} steps ahead, but decoding.horizon "
                f"is {decoding.horizon}. Train with this horizon, or leave decoding.coverage out.",
                ("decoding", "coverage"),
            )


def _most_bytes(conventions: Conventions) -> int:
    """Those of the file: for points and for paths a number for each coverage, step and column, and a count."""
    return max(SMALL, 2 * (len(COVERAGES) + 1) * conventions.horizon * conventions.size * WRITTEN)
