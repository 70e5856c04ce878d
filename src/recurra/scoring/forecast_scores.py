"""Counts of forecasts, series by series: of real values beside the baselines, of binary frames by their probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.metrics.forecasts import came_true, last_value, seasonal
from recurra.reading.series import Steps, compared
from recurra.scoring.class_scores import scale_of
from recurra.scoring.counted import Counted
from recurra.scoring.formulas import Formula, found_and_right, ratio, root, share, total
from recurra.views.table import Table

if TYPE_CHECKING:
    from recurra.models.forecaster import Review

Floats = NDArray[np.float64]


def frame_scores(examples: Sequence[Steps], reviews: Sequence[Review], *, settings: ForecastingSettings) -> Counted:
    """Binary frames: nats per frame over all that are scored, and the notes that were found.

    accuracy = right / (right + too many + left out),   the notes above a half being those that were said
    f1       = 2 right / (2 right + too many + left out)
    """
    names = ("nats", "frames", "later_nats", "later", "right", "gold", "said")
    counts = np.zeros((len(examples), len(names)))
    for row, (example, review) in enumerate(zip(examples, reviews, strict=True)):
        if not len(example):
            continue
        is_scored, is_known = _scored(example, review, settings)
        is_known = is_known & is_scored[:, None]
        gold, said = example.values[is_known] > 0.5, review.next[is_known] > 0.5
        later = review.losses[1:][is_scored[1:]]
        frames = [review.losses[is_scored].sum(), is_scored.sum(), later.sum(), len(later)]
        counts[row] = [*frames, (gold & said).sum(), gold.sum(), said.sum()]
    columns = dict(zip(names, counts.T, strict=True))
    if not columns["frames"].any():
        raise DataError("there are no frames to score.")
    scores: dict[str, Formula] = {
        "nll": ratio("nats", "frames"),
        "nll_after_first": ratio("later_nats", "later"),
        "accuracy": lambda sums: share(sums["right"], sums["gold"] + sums["said"] - sums["right"]),
        **found_and_right(of_nothing=float("nan")),
    }
    return Counted.of(
        _items(examples),
        columns,
        scores,
        first="nll",
        lengths=[len(example) for example in examples],
        sizes={"count": total("frames")},
        loss=scores["nll"],
    )


def value_scores(
    examples: Sequence[Steps],
    reviews: Sequence[Review],
    *,
    in_units: Callable[[Floats, Floats, Normal | None], Floats],
    spread: Floats,
    scales: Sequence[Normal] | None = None,
    has_density: bool,
    settings: ForecastingSettings,
) -> Counted:
    """Real values: errors over the horizon from every origin, beside those of the last value and the last season.

    spread   of each column over all series; scales: of each series, where they have their own
    """
    season, horizon, width = settings.evaluation.season, settings.decoding.horizon, len(spread)
    methods = ["model", "last_value", *(["seasonal"] if season else [])]
    # (N, h, d): errors of all origins, for each step of the horizon and each column, and how many are known.
    errors = {name: np.zeros((len(examples), horizon, width)) for name in methods}
    known = np.zeros((len(examples), horizon, width))
    squares: list[Floats] = [np.zeros((0, width))] * len(examples)
    names = ("nats", "loss", "steps", "inside", "values")
    counts = np.zeros((len(examples), len(names)))
    for row, (example, review) in enumerate(zip(examples, reviews, strict=True)):
        if not len(example):
            continue
        origins, whole = review.origins, example.values
        own = None if scales is None else scales[row]
        gold = came_true(np.where(example.known, whole, np.nan), origins, horizon)
        ahead = in_units(review.ahead, whole[origins - 1], own)
        found = {"model": ahead, "last_value": last_value(whole, origins, horizon)}
        if season:
            found["seasonal"] = seasonal(whole, origins, horizon, season)
        known[row] = (~np.isnan(gold)).sum(0)
        for name, said in found.items():
            errors[name][row] = np.nansum(np.abs(said - gold), axis=0)
        apart = found["model"] - gold
        squares[row] = apart[~np.isnan(gold)]
        is_scored, is_compared = _scored(example, review, settings)
        losses = review.losses[is_scored]
        # log p of a value in its own unit is that of the scaled one less the logarithm of its spread.
        nats = losses + (is_compared * np.log(spread if own is None else own.spread)).sum(1)[is_scored]
        inside = np.zeros(0) if review.inside is None else review.inside[is_scored][is_compared[is_scored]]
        counts[row] = nats.sum(), losses.sum(), is_scored.sum(), inside.sum(), len(inside)
    if not known.any():
        context, longest = settings.evaluation.context, max(map(len, examples), default=0)
        raise DataError(
            f"there is nothing to score: the longest series has {longest} steps, and forecasts begin after the first "
            f"{max(context, season)} (evaluation.context = {context}, evaluation.season = {season})."
        )
    scale = scale_of(np.concatenate([each.ravel() for each in squares]))
    columns = dict(zip(names, counts.T, strict=True))
    columns |= {"numbers": known.sum((1, 2)), "known_by_step": known.sum(2), "known_by_column": known.sum(1)}
    columns["square"] = np.array([np.square(each / scale).sum() for each in squares])
    columns["scaled"] = (errors["model"] / spread).sum((1, 2))
    for name, each in errors.items():
        columns |= {name: each.sum((1, 2)), f"{name}_by_step": each.sum(2), f"{name}_by_column": each.sum(1)}
    scores: dict[str, Formula] = {"mae": ratio("model", "numbers"), "rmse": root("square", "numbers", scale=scale)}
    if width > 1:
        # Columns may differ in their units, so each error is measured by the spread of its column in training.
        scores["scaled_mae"] = ratio("scaled", "numbers")
    scores |= {f"{name}_mae": ratio(name, "numbers") for name in methods[1:]}
    scores |= {f"mae_to_{name}": ratio("model", name) for name in methods[1:]}
    scores |= {"nll": ratio("nats", "steps"), "coverage": ratio("inside", "values")} if has_density else {}
    tables: dict[str, Callable[[Counted], Table]] = {
        "by step of the horizon": lambda counted: _by_step(counted, methods)
    }
    if width > 1:
        headings = settings.data.values or [str(number) for number in range(1, width + 1)]
        tables["by column"] = lambda counted: _by_column(counted, methods, headings)
    return Counted.of(
        _items(examples),
        columns,
        scores,
        first="scaled_mae" if width > 1 else "mae",
        lengths=[len(example) for example in examples],
        sizes={"count": total("steps")},
        loss=ratio("loss", "steps"),
        tables=tables,
    )


def _items(examples: Sequence[Steps]) -> list[object]:
    return [(example.name, example.file, example.line) for example in examples]


def _scored(
    example: Steps, review: Review, settings: ForecastingSettings
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Steps, (T,), whose prediction from those before is scored, and of all steps the values, (T, d), that can be."""
    is_known = compared(example.known, difference=settings.data.difference)
    first = settings.evaluation.context if settings.data.frames is None else 0
    is_late = np.arange(len(example)) >= first
    return is_late & ~np.isnan(review.next).all(1) & is_known.any(1), is_known


def _by_step(counted: Counted, methods: Sequence[str]) -> Table:
    """The mean absolute error of each step ahead."""
    sums = counted.sums()
    known = sums["known_by_step"]
    means = np.stack([share(sums[f"{name}_by_step"], known) for name in methods], axis=1)
    rows = [[str(step + 1), *means[step].tolist(), int(known[step])] for step in np.flatnonzero(known)]
    return Table(["step", *_headings(methods), "count"], rows)


def _by_column(counted: Counted, methods: Sequence[str], names: Sequence[str]) -> Table:
    """The mean absolute error of each column of the data."""
    sums = counted.sums()
    means = np.stack([share(sums[f"{name}_by_column"], sums["known_by_column"]) for name in methods], axis=1)
    rows = [[name, *row] for name, row in zip(names, means.tolist(), strict=True)]
    return Table(["column", *_headings(methods)], rows)


def _headings(methods: Sequence[str]) -> list[str]:
    return ["mae", *(f"{name}_mae" for name in methods[1:])]
