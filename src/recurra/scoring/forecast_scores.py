"""What forecasts are worth: of real values beside the baselines, of binary frames by their probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.errors import DataError
from recurra.metrics.forecasts import by_step, came_true, last_value, seasonal
from recurra.metrics.numbers import mae, rmse
from recurra.reading.series import Steps, compared
from recurra.scoring.counted import Counted, counted, found_and_right, ratio, root, share
from recurra.scoring.scores import Scores
from recurra.views.table import Table

if TYPE_CHECKING:
    from recurra.models.forecaster import Review

Floats = NDArray[np.float64]


def frame_scores(examples: Sequence[Steps], reviews: Sequence[Review], *, settings: ForecastingSettings) -> Scores:
    """Binary frames: nats per frame over all that are scored, and the notes that were found.

    accuracy = right / (right + too many + left out),   the notes above a half being those that were said
    f1       = 2 right / (2 right + too many + left out)
    """
    each: list[Floats] = [np.zeros(0)]
    later: list[Floats] = [np.zeros(0)]
    right = extra = left = 0
    for example, review in zip(examples, reviews, strict=True):
        if not len(example):
            continue
        is_scored, is_known = _scored(example, review, settings)
        each.append(review.losses[is_scored])
        later.append(review.losses[1:][is_scored[1:]])
        is_known = is_known & is_scored[:, None]
        gold, said = example.values[is_known] > 0.5, review.next[is_known] > 0.5
        right += int((gold & said).sum())
        extra += int((said & ~gold).sum())
        left += int((gold & ~said).sum())
    losses, after_first = np.concatenate(each), np.concatenate(later)
    if not len(losses):
        raise DataError("there is no frame to score.")
    wrong = extra + left
    values = {
        "nll": float(losses.mean()),
        "nll_after_first": float(after_first.mean()) if len(after_first) else float("nan"),
        "accuracy": right / (right + wrong) if right + wrong else float("nan"),
        "f1": 2 * right / (2 * right + wrong) if right + wrong else float("nan"),
        "precision": right / (right + extra) if right + extra else float("nan"),
        "recall": right / (right + left) if right + left else float("nan"),
        "count": float(len(losses)),
    }
    return Scores(values, "nll", {}, higher_is_better=False, loss=values["nll"])


def value_scores(
    examples: Sequence[Steps],
    reviews: Sequence[Review],
    *,
    in_units: Callable[[Floats, Floats], Floats],
    spread: Floats,
    has_density: bool,
    settings: ForecastingSettings,
) -> Scores:
    """Real values: errors over the horizon from every origin, beside those of the last value and the last season."""
    evaluation, horizon = settings.evaluation, settings.decoding.horizon
    parts: dict[str, list[Floats]] = {"gold": [], "model": [], "last_value": [], "seasonal": []}
    losses: list[Floats] = []
    nats: list[Floats] = []
    inside: list[NDArray[np.bool_]] = []
    for example, review in zip(examples, reviews, strict=True):
        if not len(example):
            continue
        origins, whole = review.origins, example.values
        known = np.where(example.known, whole, np.nan)
        parts["gold"].append(came_true(known, origins, horizon))
        parts["model"].append(in_units(review.ahead, whole[origins - 1]))
        parts["last_value"].append(last_value(whole, origins, horizon))
        if evaluation.season:
            parts["seasonal"].append(seasonal(whole, origins, horizon, evaluation.season))
        is_scored, is_compared = _scored(example, review, settings)
        losses.append(review.losses[is_scored])
        # log p of a value in its own unit is that of the scaled one less the logarithm of its spread.
        nats.append(review.losses[is_scored] + (is_compared * np.log(spread)).sum(1)[is_scored])
        if review.inside is not None:
            inside.append(review.inside[is_scored][is_compared[is_scored]])
    joined = {name: np.concatenate(each) for name, each in parts.items() if each}
    is_known = ~np.isnan(joined["gold"]) if joined else np.zeros(0, bool)
    if not is_known.any():
        longest = max(map(len, examples), default=0)
        raise DataError(
            f"there is nothing to score: the longest series has {longest} steps, and forecasts begin after the first "
            f"{max(evaluation.context, evaluation.season)} (evaluation.context = {evaluation.context}, "
            f"evaluation.season = {evaluation.season})."
        )
    gold, model = joined["gold"], joined["model"]
    values = {"mae": mae(gold[is_known], model[is_known]), "rmse": rmse(gold[is_known], model[is_known])}
    first = "mae"
    baselines = [name for name in ("last_value", "seasonal") if name in joined]
    if gold.shape[2] > 1:
        # Columns may differ in their units, so each error is measured by the spread of its column in training.
        values["scaled_mae"] = float(np.nanmean(np.abs(gold - model) / spread))
        first = "scaled_mae"
    for name in baselines:
        values[f"{name}_mae"] = mae(gold[is_known], joined[name][is_known])
    for name in baselines:
        values[f"mae_to_{name}"] = values["mae"] / values[f"{name}_mae"] if values[f"{name}_mae"] else float("nan")
    lost = np.concatenate(losses)
    if has_density:
        values["nll"] = float(np.concatenate(nats).mean()) if len(lost) else float("nan")
        hits = np.concatenate(inside)
        values["coverage"] = float(hits.mean()) if len(hits) else float("nan")
    values["count"] = float(len(lost))
    tables = {"by step of the horizon": _by_step(joined, baselines)}
    if gold.shape[2] > 1:
        names = settings.data.values or [str(number) for number in range(1, gold.shape[2] + 1)]
        tables["by column"] = _by_column(joined, baselines, names)
    loss = float(lost.mean()) if len(lost) else float("nan")
    return Scores(values, first, tables, higher_is_better=False, loss=loss)


def frame_counts(examples: Sequence[Steps], reviews: Sequence[Review], *, settings: ForecastingSettings) -> Counted:
    """What frame_scores is made of, sequence by sequence."""
    rows = []
    for example, review in zip(examples, reviews, strict=True):
        is_scored, is_known = _scored(example, review, settings)
        is_known = is_known & is_scored[:, None]
        gold, said = example.values[is_known] > 0.5, review.next[is_known] > 0.5
        later = review.losses[1:][is_scored[1:]]
        frames = [review.losses[is_scored].sum(), is_scored.sum(), later.sum(), len(later)]
        rows.append([*frames, (gold & said).sum(), gold.sum(), said.sum()])
    names = ("nats", "frames", "later_nats", "later", "right", "gold", "said")
    columns = dict(zip(names, np.array(rows, np.float64).reshape(-1, len(names)).T, strict=True))
    scores = {
        "nll": ratio("nats", "frames"),
        "nll_after_first": ratio("later_nats", "later"),
        "accuracy": lambda sums: share(sums["right"], sums["gold"] + sums["said"] - sums["right"]),
        **found_and_right(of_nothing=float("nan")),
    }
    return counted(*_items(examples), columns, scores)


def value_counts(
    examples: Sequence[Steps],
    reviews: Sequence[Review],
    *,
    in_units: Callable[[Floats, Floats], Floats],
    spread: Floats,
    has_density: bool,
    settings: ForecastingSettings,
) -> Counted:
    """What value_scores is made of, series by series."""
    season, horizon = settings.evaluation.season, settings.decoding.horizon
    rows = []
    for example, review in zip(examples, reviews, strict=True):
        origins, whole = review.origins, example.values
        gold = came_true(np.where(example.known, whole, np.nan), origins, horizon)
        errors = np.abs(in_units(review.ahead, whole[origins - 1]) - gold)
        others = [last_value(whole, origins, horizon)]
        others += [seasonal(whole, origins, horizon, season)] if season else []
        is_scored, is_compared = _scored(example, review, settings)
        nats = review.losses[is_scored] + (is_compared * np.log(spread)).sum(1)[is_scored]
        inside = np.zeros(0) if review.inside is None else review.inside[is_scored][is_compared[is_scored]]
        sums = [np.nansum(errors), np.nansum(np.square(errors)), np.nansum(errors / spread), (~np.isnan(gold)).sum()]
        sums += [nats.sum(), is_scored.sum(), inside.sum(), len(inside)]
        rows.append([*sums, *(np.nansum(np.abs(other - gold)) for other in others)])
    baselines = ["last_value", *(["seasonal"] if season else [])]
    names = ("error", "square", "scaled", "numbers", "nats", "steps", "inside", "values", *baselines)
    columns = dict(zip(names, np.array(rows, np.float64).reshape(-1, len(names)).T, strict=True))
    scores = {"mae": ratio("error", "numbers"), "rmse": root("square", "numbers")}
    scores |= {"scaled_mae": ratio("scaled", "numbers")} if len(spread) > 1 else {}
    for name in baselines:
        scores |= {f"{name}_mae": ratio(name, "numbers"), f"mae_to_{name}": ratio("error", name)}
    scores |= {"nll": ratio("nats", "steps"), "coverage": ratio("inside", "values")} if has_density else {}
    return counted(*_items(examples), columns, scores)


def _items(examples: Sequence[Steps]) -> tuple[list[object], list[int]]:
    return [(example.name, example.file, example.line) for example in examples], [len(example) for example in examples]


def _scored(
    example: Steps, review: Review, settings: ForecastingSettings
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Steps, (T,), whose prediction from those before is scored, and of all steps the values, (T, d), that can be."""
    is_known = compared(example.known, difference=settings.data.difference)
    first = settings.evaluation.context if settings.data.frames is None else 0
    is_late = np.arange(len(example)) >= first
    return is_late & ~np.isnan(review.next).all(1) & is_known.any(1), is_known


def _by_step(joined: dict[str, Floats], baselines: Sequence[str]) -> Table:
    columns = {name: by_step(joined["gold"], joined[name]) for name in ("model", *baselines)}
    counts = (~np.isnan(joined["gold"])).sum((0, 2))
    rows = [
        [str(step + 1), *(float(column[step]) for column in columns.values()), int(count)]
        for step, count in enumerate(counts)
        if count
    ]
    return Table(["step", "mae", *(f"{name}_mae" for name in baselines), "count"], rows)


def _by_column(joined: dict[str, Floats], baselines: Sequence[str], names: Sequence[str]) -> Table:
    rows = []
    for number, name in enumerate(names):
        errors = [np.abs(joined["gold"][..., number] - joined[each][..., number]) for each in ("model", *baselines)]
        means = [float(np.nanmean(each)) if not np.isnan(each).all() else float("nan") for each in errors]
        rows.append([name, *means])
    return Table(["column", "mae", *(f"{name}_mae" for name in baselines)], rows)
