"""Backtests: forecasts of the end of each series from several origins (`analysis.backtests` scores and draws them)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recurra.errors import ConfigError, DataError
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.intervals import USUAL, Intervals
from recurra.forecasts.several import Member, reviewed
from recurra.metrics.forecast_errors import naive_errors
from recurra.metrics.forecasts import came_true, simple_rules
from recurra.metrics.theta import theta_of
from recurra.reading.series import Steps, sequences

if TYPE_CHECKING:
    from recurra.analysis.backtests import Backtest

PATHS_UNASKED, PATHS = 20_000, 100
"""Steps that a backtest forecasts, up to which it draws paths unasked; how many from each origin."""

BEFORE = 60
"""Steps that a picture of a backtest shows before its first origin."""


def origins_back(conventions: Conventions, files: Sequence[str | Path], *, windows: int, step: int) -> list[int]:
    """How many steps before the end of each series its windows begin, if all are long enough."""
    back = [conventions.horizon + (windows - 1 - number) * step for number in range(windows)]
    _examples(conventions, files, back)
    return back


def backtest(
    members: Sequence[Member], intervals: Intervals, files: Sequence[str | Path], back: Sequence[int]
) -> Backtest:
    """Forecasts from the steps that lie so far before the end of each series, beside those of simple rules. (torch)"""
    from recurra.analysis.backtests import MODEL, Backtest, Rolling

    conventions = members[0].conventions
    settings, horizon, season = conventions.settings, conventions.horizon, conventions.settings.season
    examples = _examples(conventions, files, back)
    origins = [len(example) - np.array(back) for example in examples]
    paths = settings.evaluation.paths or settings.decoding.paths
    if not paths and conventions.has_quantiles and len(examples) * len(back) * horizon <= PATHS_UNASKED:
        paths = PATHS
    histories = [
        column[:o] for e, places in zip(examples, origins, strict=True) for o in places for column in e.values.T
    ]
    smooth = iter(theta_of(histories, horizon, max(1, season)).reshape(-1, conventions.size, horizon).swapaxes(1, 2))
    found = []
    for example, review in zip(examples, reviewed(members, examples, origins, paths=paths), strict=True):
        whole, places, unit = example.values, review.origins, conventions.unit_of(example)
        moments = conventions.moments(example)
        gold = came_true(np.where(example.known, whole, np.nan), places, horizon)
        said = {MODEL: unit.ahead(review.ahead, whole[places - 1])} | simple_rules(whole, places, horizon, season)
        scales, squares = (naive_errors(whole, places, season, power=power) for power in (1, 2))
        fan = None if review.fan is None else unit.fan(review.fan, whole[places - 1])
        ends = intervals.of_review(example, review)
        if ends is None and fan is not None:
            ends = fan[:, :, 0], fan[:, :, -1]
        seen = _steps_seen(members, example)
        for number, origin in enumerate(places.tolist()):
            found.append(
                Rolling(
                    example.name,
                    number + 1,
                    origin,
                    moments[origin : origin + horizon],
                    gold[number],
                    {name: each[number] for name, each in said.items()} | {"theta": next(smooth)},
                    scales[number],
                    np.sqrt(squares[number]),
                    None if fan is None else fan[number],
                    None if ends is None else (ends[0][number], ends[1][number]),
                    whole[max(0, origin - BEFORE) : origin],
                    origin < seen,
                )
            )
    coverage = intervals.coverage if intervals.is_corrected else None
    return Backtest(found, conventions.columns, USUAL if coverage is None else coverage)


def _steps_seen(members: Sequence[Member], example: Steps) -> int:
    """How many steps of a series the training data of a run has, as far as their times tell; of several runs, most."""
    moments = example.moments
    found = 0
    for conventions, _ in members:
        end = None if conventions.facts.source is not None else conventions.facts.ends.get(example.name)
        last = None if end is None else end.moments
        if moments is None or last is None or not len(last) or last.dtype.kind != moments.dtype.kind:
            continue
        found = max(found, int(np.searchsorted(moments, last[-1], side="right")))
    return found


def _examples(conventions: Conventions, files: Sequence[str | Path], back: Sequence[int]) -> list[Steps]:
    """The series of files with all their steps, if they are long enough."""
    if conventions.gives_coins or conventions.from_nothing or conventions.is_backward:
        what = "frames" if conventions.from_nothing else "what was before"
        what = "zeros and ones" if conventions.gives_coins else what
        raise ConfigError(
            f"recurra backtest is for series of real values out of a table, but this run predicts {what}."
        )
    examples = list(sequences(files, dataclasses.replace(conventions.data, drop_last=0)))
    before = max(2, conventions.settings.season)
    needed = before + max(back)
    short = [example for example in examples if len(example) < needed]
    if short:
        first = short[0]
        named = f"the series '{first.name}'" if first.name else "the series"
        others = f" ({len(short):,} of {len(examples):,} series are too short)" if len(short) > 1 else ""
        raise DataError(
            f"{first.place}: {named} has {len(first)} steps, but the first of {len(back)} windows begins "
            f"{max(back)} steps before its end and needs at least {before} steps before it: "
            f"{needed - len(first)} steps are missing{others}. Use fewer --windows, or a smaller --step or "
            f"--horizon."
        )
    return examples
