"""From which steps forecasts are scored, and what a network says there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.batches import in_order_of_length
from recurra.data.store import Encoded, Rows
from recurra.forecasts.conventions import Conventions
from recurra.metrics.forecasts import origins_of

TOKENS = 8192
"""Steps that are reviewed together."""


def reviews(
    conventions: Conventions, model: Any, rows: Sequence[Encoded], origins: Sequence[NDArray[np.int64]], *, paths: int
) -> list[Any]:
    """What a network says of each row, and of the steps after each of some origins of it. (torch)"""
    from recurra.models.reviewing import review

    return in_batches(
        rows,
        model,
        lambda batch, numbers: review(
            model,
            batch,
            [origins[number] for number in numbers],
            horizon=conventions.horizon,
            quantiles=not conventions.gives_coins and conventions.has_quantiles,
            paths=paths,
            seed=conventions.settings.decoding.seed,
            summed=conventions.settings.data.difference,
        ),
    )


def in_batches(
    rows: Sequence[Encoded], model: Any, review: Callable[[Any, NDArray[np.int64]], Sequence[Any]]
) -> list[Any]:
    """What is found of each row, of which rows of about the same length are looked at together. (torch)"""
    from recurra.models.series_batch import batched
    from recurra.padding import fitted

    found: list[Any] = [None] * len(rows)
    for numbers in in_order_of_length(Rows(rows).lengths("values"), tokens=TOKENS):
        batch = fitted(batched([rows[number] for number in numbers]), model)
        for number, each in zip(numbers, review(batch, numbers), strict=True):
            found[number] = each
    return found


def places(conventions: Conventions, rows: Sequence[Encoded], *, stride: int | None = None) -> list[NDArray[np.int64]]:
    """From where the steps of each row are forecast to be scored: every `stride`-th, that of the settings if none."""
    stride = conventions.settings.evaluation.stride if stride is None else stride
    found = [origins_in(conventions, row, stride) for row in rows]
    return [each[:0] for each in found] if conventions.gives_coins else found


def first_scored(conventions: Conventions) -> int:
    """Steps that must be known before a forecast is scored."""
    evaluation = conventions.settings.evaluation
    return max(evaluation.context, evaluation.season or 0)


def origins_in(conventions: Conventions, row: Encoded, stride: int) -> NDArray[np.int64]:
    """The origins of one row, so many steps apart."""
    # Before the first known step are those that only lead up to what was held out.
    lead = int(row["known"].any(1).argmax()) if len(row["known"]) else 0
    return origins_of(len(row["values"]), first=max(first_scored(conventions), lead), stride=stride)


def origins_before(conventions: Conventions, unseen: int, length: int) -> NDArray[np.int64]:
    """From where forecasts of a series are compared with what came, where intervals adapt to it.

    `unseen` is the first step that training has not seen; −1: none.
    """
    first = max(first_scored(conventions), unseen)
    return np.arange(first, length if unseen >= 0 else 0, conventions.settings.evaluation.stride)


def with_past(conventions: Conventions, model: Any, batch: Any, forecasts: Sequence[Any]) -> list[Any]:
    """Forecasts of the rows of a batch with what was said before, where intervals adapt to it. (torch)"""
    if batch.unseen is None or not bool((batch.unseen >= 0).any()):
        return list(forecasts)
    from recurra.models.forecast import Past
    from recurra.models.reviewing import review

    settings = conventions.settings
    origins = [
        origins_before(conventions, first, length)
        for first, length in zip(batch.unseen.tolist(), batch.values.lengths.tolist(), strict=True)
    ]
    found = review(
        model,
        batch,
        origins,
        horizon=conventions.horizon,
        quantiles=conventions.has_quantiles,
        paths=settings.decoding.paths,
        seed=settings.decoding.seed,
        summed=settings.data.difference,
    )
    return [
        each._replace(past=Past(own.origins, own.ahead, own.fan)) if len(own.origins) else each
        for each, own in zip(forecasts, found, strict=True)
    ]


def stride_of_all_phases(conventions: Conventions, rows: Sequence[Encoded], *, most: int) -> int:
    """Steps between at most so many origins that come upon every phase of a season in turn: none divides both.

    From midnight alone, the first step ahead would always be an hour of the night.
    """
    steps = sum(map(len, places(conventions, rows, stride=1)))
    return least_coprime(max(1, -(-steps // most)), conventions.settings.season)


def least_coprime(least: int, season: int) -> int:
    """The least number from `least` on that has no divisor in common with a season.

    >>> least_coprime(4, 24), least_coprime(4, 1), least_coprime(1, 12)
    (5, 4, 1)
    """
    return next(number for number in itertools.count(least) if math.gcd(number, max(1, season)) == 1)
