"""Counts of forecasts, series by series: of real values beside the baselines, of binary frames by their probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.data.unit import Unit
from recurra.errors import DataError
from recurra.metrics.forecast_errors import (
    LEVELS,
    is_near_zero,
    naive_errors,
    percentage_errors,
    pinball,
    symmetric_percentage_errors,
)
from recurra.metrics.forecasts import came_true, drift, last_value, pieces, seasonal
from recurra.metrics.theta import theta
from recurra.reading.series import Steps, compared
from recurra.scoring.class_scores import scale_of
from recurra.scoring.counted import Counted, Tally
from recurra.scoring.formulas import Formula, found_and_right, ratio, root, share, total
from recurra.views.table import Table

if TYPE_CHECKING:
    from recurra.models.forecast import Review

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


class Measures(NamedTuple):
    """How what a model says becomes values in the unit of the data. O origins, h steps, L levels, d columns."""

    unit: Callable[[Steps], Unit]  # of the values of a series
    spread: Floats  # (d,): of the values in training
    has_sizes: bool  # whether −log p of a value depends on its unit; that of a count does not
    has_density: bool  # whether the loss is −log p
    has_quantiles: bool
    calibrated: Callable[[Steps, Review], tuple[Floats, Floats] | None] = lambda example, review: None
    """The ends of the intervals of `decoding.coverage`, (O, h, d), where they are known."""
    usual_errors: Callable[[Steps], tuple[Floats, Floats] | None] = lambda example: None
    """The mean |y_t − y_{t−m}| and its square, (d,), of the training series that a series goes on with."""


RELATIVE = ("mase", "rmsse", "smape", "mape")
"""Scores of one series, whose mean over series is the score of all."""

SHOWN = 100
"""Series in a table; of more, those with the largest errors."""

THETA = 1_000_000
"""Steps of histories, at most, from which the Theta method forecasts for a table."""


def value_scores(
    examples: Sequence[Steps], reviews: Sequence[Review], *, measures: Measures, settings: ForecastingSettings
) -> Counted:
    """Real values: errors over the horizon from every origin, beside those of simple rules."""
    season, horizon, width = settings.season, settings.decoding.horizon, len(measures.spread)
    methods = ["model", "last_value", *(["seasonal"] if season else []), "drift"]
    count = len(examples)
    # (N, h, d): errors of all origins, for each step of the horizon and each column, and how many are known.
    errors = {name: np.zeros((count, horizon, width)) for name in methods}
    known = np.zeros((count, horizon, width))
    squares: list[Floats] = [np.zeros((0, width))] * count
    relative = {name: np.full((count, len(RELATIVE)), np.nan) for name in methods}
    by_step = {name: np.full((count, horizon), np.nan) for name in ("mase", "smape")}
    names = ("nats", "loss", "steps", "inside", "values", "next_crps", "near_zero")
    counts = np.zeros((count, len(names)))
    fans = {name: np.zeros((count, horizon)) for name in ("crps", "held", "width", "fanned", "size")}
    calibrated = {name: np.zeros((count, horizon)) for name in ("calibrated_held", "calibrated_width", "calibrated")}
    for row, (example, review) in enumerate(zip(examples, reviews, strict=True)):
        if not len(example):
            continue
        origins, whole = review.origins, example.values
        unit = measures.unit(example)
        gold = came_true(np.where(example.known, whole, np.nan), origins, horizon)
        ahead = unit.ahead(review.ahead, whole[origins - 1])
        known[row] = (~np.isnan(gold)).sum(0)
        scales = _scales(whole, origins, season, measures.usual_errors(example))
        for name in methods:  # one after the other: each is as large as all that is known of a series
            found = ahead if name == "model" else _said(name, whole, origins, horizon, season)
            errors[name][row] = np.nansum(np.abs(found - gold), axis=0)
            relative[name][row] = _relative(gold, found, *scales)
        apart = ahead - gold
        squares[row] = apart[~np.isnan(gold)]
        by_step["mase"][row] = _mean(np.abs(apart) / scales[0], axis=(0, 2))
        by_step["smape"][row] = _mean(symmetric_percentage_errors(gold, ahead), axis=(0, 2))
        is_scored, is_compared = _scored(example, review, settings)
        losses = review.losses[is_scored]
        log_size = np.where(is_compared, unit.log_size(whole), 0.0) if measures.has_sizes else 0.0 * is_compared
        nats = losses + log_size.sum(1)[is_scored]
        inside = np.zeros(0) if review.inside is None else review.inside[is_scored][is_compared[is_scored]]
        crps = np.zeros(0)
        if review.crps is not None:
            crps = (review.crps * unit.scale.spread)[is_scored][is_compared[is_scored]]
        near = is_near_zero(gold).sum()
        counts[row] = nats.sum(), losses.sum(), is_scored.sum(), inside.sum(), len(inside), crps.sum(), near
        if review.fan is not None:
            for name, each in _fan_counts(unit, review.fan, whole[origins - 1], gold).items():
                fans[name][row] = each
        if (ends := measures.calibrated(example, review)) is not None:
            held, wide, values = _held(*ends, gold)
            for name, each in zip(calibrated, (held, wide, values), strict=True):
                calibrated[name][row] = each
    if not known.any():
        if settings.data.values and not any(each.known[each.preceding :].any() for each in examples):
            raise DataError(
                f"there is nothing to score: no row has a value in {', '.join(settings.data.values)}. Rows of coming "
                "steps are for recurra predict."
            )
        context, longest = settings.evaluation.context, max(map(len, examples), default=0)
        raise DataError(
            f"there is nothing to score: the longest series has {longest} steps, and forecasts begin after the first "
            f"{max(context, season)} (evaluation.context = {context}, evaluation.season = {season})."
        )
    scale = scale_of(np.concatenate([each.ravel() for each in squares]))
    columns = dict(zip(names, counts.T, strict=True))
    columns |= {"numbers": known.sum((1, 2)), "known_by_step": known.sum(2), "known_by_column": known.sum(1)}
    columns["square"] = np.array([np.square(each / scale).sum() for each in squares])
    columns["scaled"] = (errors["model"] / measures.spread).sum((1, 2))
    for name, each in errors.items():
        columns |= {name: each.sum((1, 2)), f"{name}_by_step": each.sum(2), f"{name}_by_column": each.sum(1)}
        for number, score in enumerate(RELATIVE):
            columns |= _defined(f"{name}_{score}", relative[name][:, number])
    for name, each in by_step.items():
        columns |= _defined(f"{name}_by_step", each)
    for name, each in (fans | calibrated).items():
        columns |= {f"{name}_by_step": each, name: each.sum(1)}
    scores: dict[str, Formula] = {"mae": ratio("model", "numbers"), "rmse": root("square", "numbers", scale=scale)}
    if width > 1:
        # Columns may differ in their units, so each error is measured by the spread of its column in training.
        scores["scaled_mae"] = ratio("scaled", "numbers")
    rules = methods[1:-1]
    scores |= {f"{name}_mae": ratio(name, "numbers") for name in rules}
    scores |= {f"mae_to_{name}": ratio("model", name) for name in rules}
    scores |= {score: _mean_of_series(f"model_{score}") for score in RELATIVE}
    has_losses = all(review.has_losses for review in reviews)
    scores |= {"nll": ratio("nats", "steps")} if measures.has_density and has_losses else {}
    if measures.has_quantiles and any(review.inside is not None for review in reviews):
        scores["coverage"] = ratio("inside", "values")
        if not settings.model.is_at_once:  # which has the crps of the whole horizon
            scores["next_crps"] = ratio("next_crps", "values")
    has_fans, is_calibrated = bool(fans["fanned"].any()), bool(calibrated["calibrated"].any())
    if has_fans:
        scores |= {"crps": ratio("crps", "fanned"), "weighted_quantile_loss": ratio("crps", "size")}
        scores |= {"interval_coverage": ratio("held", "fanned"), "interval_width": ratio("width", "fanned")}
    if is_calibrated:
        scores |= {"calibrated_coverage": ratio("calibrated_held", "calibrated")}
        scores |= {"calibrated_width": ratio("calibrated_width", "calibrated")}
    tables: dict[str, Callable[[Counted], Table]] = {
        "by step of the horizon": lambda counted: _by_step(
            counted, methods[:-1], has_fans=has_fans, is_calibrated=is_calibrated
        ),
        "beside simple rules": lambda counted: _by_method(counted, methods, examples, reviews, measures, settings),
    }
    if width > 1:
        headings = settings.data.values or [str(number) for number in range(1, width + 1)]
        tables["by column"] = lambda counted: _by_column(counted, methods[:-1], headings)
    if count > 1 and any(example.name for example in examples):
        tables["by series"] = lambda counted: _by_series(counted, examples)
    wanted = settings.evaluation.score
    has_wanted = wanted in scores and bool(np.isfinite(scores[wanted](_sums(columns))))
    return Counted.of(
        _items(examples),
        columns,
        scores,
        first=wanted if wanted is not None and has_wanted else "scaled_mae" if width > 1 else "mae",
        lengths=[len(example) for example in examples],
        sizes={"count": total("steps")},
        loss=ratio("loss", "steps") if has_losses else None,
        tables=tables,
        notes=[*_on_percentages(columns["near_zero"].sum(), known.sum()), *_on_lacking(measures, reviews)],
    )


def _said(rule: str, whole: Floats, origins: NDArray[np.int64], horizon: int, season: int) -> Floats:
    """What a simple rule says of the steps after each origin, (O, h, d)."""
    if rule == "seasonal":
        return seasonal(whole, origins, horizon, season)
    return (last_value if rule == "last_value" else drift)(whole, origins, horizon)


def _scales(
    whole: Floats, origins: NDArray[np.int64], season: int, usual: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Floats]:
    """(O, 1, d) each: the mean size of the errors of the seasonal rule in the history, and the root of their square.

    Of a series that goes on with one of training, of whose steps only the last are read, they are `usual` there.
    """
    if usual is not None:
        size, square = (np.broadcast_to(each, (len(origins), 1, whole.shape[1])) for each in usual)
        return size, np.sqrt(square)
    with np.errstate(over="ignore"):
        sizes, squares = (naive_errors(whole, origins, season, power=power)[:, None] for power in (1, 2))
    return sizes, np.sqrt(squares)


def _relative(gold: Floats, said: Floats, scale: Floats, root_scale: Floats) -> list[float]:
    """MASE, RMSSE, sMAPE and MAPE of one series; NaN for one that is not defined."""
    apart = np.abs(said - gold)
    with np.errstate(over="ignore"):
        square = float(_mean(np.square(apart / root_scale)))
    return [
        float(_mean(apart / scale)),
        float(np.sqrt(square)),
        float(_mean(symmetric_percentage_errors(gold, said))),
        float(_mean(percentage_errors(gold, said))),
    ]


def _mean(values: Floats, axis: tuple[int, ...] | None = None) -> Floats:
    """The mean of what is known; NaN where nothing is."""
    is_known = np.isfinite(values)
    return share(np.where(is_known, values, 0.0).sum(axis), is_known.sum(axis).astype(np.float64))


def _defined(name: str, values: Floats) -> dict[str, Floats]:
    """Columns from which the mean over the series comes for which a score is defined."""
    is_defined = np.isfinite(values)
    return {name: np.where(is_defined, values, 0.0), f"has_{name}": is_defined.astype(np.float64)}


def _mean_of_series(name: str) -> Formula:
    return ratio(name, f"has_{name}")


def _sums(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: np.asarray(column.sum(0)) for name, column in columns.items()}


def _fan_counts(unit: Unit, fan: NDArray[np.floating], last: Floats, gold: Floats) -> dict[str, Floats]:
    """(h,) each: sums over origins and columns, of quantiles (O, h, L, d) of scaled values."""
    levels = np.array(LEVELS)
    is_known = ~np.isnan(gold)
    crps, low, high = (np.empty(gold.shape) for _ in range(3))
    for some in pieces(fan):
        quantiles = unit.fan(fan[some], last[some]).swapaxes(2, 3)  # (o, h, d, L)
        crps[some] = 2 * pinball(quantiles, np.where(is_known[some], gold[some], 0.0), levels).mean(-1)
        low[some], high[some] = quantiles[..., 0], quantiles[..., -1]
    held, wide, values = _held(low, high, gold)
    size = np.where(is_known, np.abs(gold), 0.0).sum((0, 2))
    return {"crps": (crps * is_known).sum((0, 2)), "held": held, "width": wide, "fanned": values, "size": size}


def _held(low: Floats, high: Floats, gold: Floats) -> tuple[Floats, Floats, Floats]:
    """(h,) each: values inside their intervals, the widths of these, and how many there are."""
    is_known = ~np.isnan(gold)
    is_inside = is_known & (low <= gold) & (gold <= high)
    wide = np.where(is_known, high - low, 0.0)
    return is_inside.sum((0, 2)).astype(np.float64), wide.sum((0, 2)), is_known.sum((0, 2)).astype(np.float64)


def _on_percentages(near_zero: float, known: float) -> list[str]:
    if not near_zero:
        return []
    return [
        f"mape leaves out {near_zero:,.0f} of {known:,.0f} actual values, which are 0 or nearly 0: a percentage of "
        "them says nothing. Look at mase or smape instead."
    ]


def _on_lacking(measures: Measures, reviews: Sequence[Review]) -> list[str]:
    """What an exported model cannot be scored by, in words."""
    if all(review.has_losses for review in reviews):
        return []
    lacking = ["nll"] if measures.has_density else []
    if measures.has_quantiles and all(review.inside is None for review in reviews):
        lacking += ["coverage", "next_crps"]
    if not lacking:
        return []
    return [f"{', '.join(lacking)}: not of an exported model, which has no density of a value. Evaluate the run."]


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


def _by_step(counted: Counted, methods: Sequence[str], *, has_fans: bool, is_calibrated: bool) -> Table:
    """Errors of each step ahead, and how often its intervals hold."""
    sums = counted.sums()
    known = sums["known_by_step"]
    columns = {
        heading: share(sums[f"{name}_by_step"], known)
        for heading, name in zip(_headings(methods), methods, strict=True)
    }
    columns |= {name: share(sums[f"{name}_by_step"], sums[f"has_{name}_by_step"]) for name in ("mase", "smape")}
    parts = (
        {"crps": ("crps", "fanned"), "coverage": ("held", "fanned"), "width": ("width", "fanned")} if has_fans else {}
    )
    if is_calibrated:
        parts["calibrated_coverage"] = "calibrated_held", "calibrated"
        parts["calibrated_width"] = "calibrated_width", "calibrated"
    columns |= {name: share(sums[f"{part}_by_step"], sums[f"{whole}_by_step"]) for name, (part, whole) in parts.items()}
    shown = {name: column for name, column in columns.items() if not np.isnan(column).all()}
    cells = np.stack(list(shown.values()), axis=1)
    rows = [[str(step + 1), *cells[step].tolist(), int(known[step])] for step in np.flatnonzero(known)]
    return Table(["step", *shown, "count"], rows)


def _by_method(
    counted: Counted,
    methods: Sequence[str],
    examples: Sequence[Steps],
    reviews: Sequence[Review],
    measures: Measures,
    settings: ForecastingSettings,
) -> Table:
    """The model and simple rules by every score; also the Theta method, where that does not take long."""
    sums = counted.sums()
    rows = [
        [
            NAMES.get(name, name),
            float(share(sums[name], sums["numbers"])),
            *(float(_mean_of_series(f"{name}_{score}")(sums)) for score in RELATIVE),
        ]
        for name in methods
    ]
    steps = sum(
        int(review.origins.sum()) * example.values.shape[1] for example, review in zip(examples, reviews, strict=True)
    )
    if steps <= THETA:
        rows.append(["theta", *_theta_scores(examples, reviews, measures, settings)])
    return Table(["method", "mae", *RELATIVE], rows)


NAMES = {"last_value": "last value"}
"""Of simple rules, in words."""


def _theta_scores(
    examples: Sequence[Steps], reviews: Sequence[Review], measures: Measures, settings: ForecastingSettings
) -> list[float]:
    """The mean absolute error and the relative scores of the Theta method."""
    season, horizon = settings.season, settings.decoding.horizon
    apart, count, relative = 0.0, 0, []
    for example, review in zip(examples, reviews, strict=True):
        if not len(review.origins):
            continue
        whole = example.values
        gold = came_true(np.where(example.known, whole, np.nan), review.origins, horizon)
        said = theta(whole, review.origins, horizon, max(1, season))
        apart, count = apart + float(np.nansum(np.abs(said - gold))), count + int((~np.isnan(gold)).sum())
        relative.append(_relative(gold, said, *_scales(whole, review.origins, season, measures.usual_errors(example))))
    return [apart / max(1, count), *_mean(np.array(relative), axis=(0,)).tolist()]


def _by_series(counted: Counted, examples: Sequence[Steps]) -> Table:
    """The scores of each series."""
    columns = {name: np.asarray(column) for name, column in counted.columns.items() if not isinstance(column, Tally)}
    mae = share(columns["model"], columns["numbers"])
    scores = {name: columns[f"model_{name}"] for name in RELATIVE}
    shown = {"mae": mae} | {
        name: np.where(columns[f"has_model_{name}"] > 0, each, np.nan) for name, each in scores.items()
    }
    order = np.flatnonzero(columns["numbers"])
    if len(order) > SHOWN:
        worst = np.nan_to_num(shown["mase"] if np.isfinite(shown["mase"]).any() else mae, nan=-np.inf)
        order = order[np.argsort(-worst[order], kind="stable")[:SHOWN]]
    rows = [
        [examples[row].name, *(float(each[row]) for each in shown.values()), int(columns["numbers"][row])]
        for row in order.tolist()
    ]
    return Table(["series", *shown, "count"], rows)


def _by_column(counted: Counted, methods: Sequence[str], names: Sequence[str]) -> Table:
    """The mean absolute error of each column of the data."""
    sums = counted.sums()
    means = np.stack([share(sums[f"{name}_by_column"], sums["known_by_column"]) for name in methods], axis=1)
    rows = [[name, *row] for name, row in zip(names, means.tolist(), strict=True)]
    return Table(["column", *_headings(methods)], rows)


def _headings(methods: Sequence[str]) -> list[str]:
    return ["mae", *(f"{name}_mae" for name in methods[1:])]
