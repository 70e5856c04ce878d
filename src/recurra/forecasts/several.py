"""What the network of a run, or those of several runs that answer together, say of series that are known.

Of several, each reads a series by the conventions of its own run, and goes on from what it said itself, as it does when
they forecast together. Then what they said becomes one: distributions are mixed, expected values are means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config.forecasting import POINTS
from recurra.data.store import Encoded
from recurra.errors import ConfigError
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.reviews import in_batches, origins_in, reviews
from recurra.reading.series import Steps
from recurra.settings import name_of

if TYPE_CHECKING:
    from recurra.analysis.exposure import Exposed, Exposure
    from recurra.models.forecast import Followed, Observed, Review


class Member(NamedTuple):
    """A network, and how the series of its run are read."""

    conventions: Conventions
    model: Any


def combined(conventions: Conventions, row: Encoded, found: Sequence[Review]) -> Review:
    """One review of an encoded series out of those of several networks."""
    from recurra.models.forecast import combined_review

    values, known = row["values"].astype(np.float64), row["known"]
    is_squared = name_of(conventions.output) in POINTS
    return combined_review(found, values, known, has_density=conventions.has_density, is_squared=is_squared)


def reviewed(
    members: Sequence[Member], examples: Sequence[Steps], origins: Sequence[NDArray[np.int64]], *, paths: int
) -> list[Review]:
    """What is said of each series, and of the steps after each of some origins of it. (torch)"""
    rows = [[conventions.encode(example) for example in examples] for conventions, _ in members]
    each = [
        reviews(conventions, model, own, origins, paths=paths)
        for (conventions, model), own in zip(members, rows, strict=True)
    ]
    if len(members) == 1:
        return each[0]
    parts = zip(*each, strict=True)
    return [combined(members[0].conventions, row, found) for row, found in zip(rows[0], parts, strict=True)]


def observed(members: Sequence[Member], examples: Sequence[Steps]) -> list[Observed]:
    """How each series looked step by step. (torch)"""
    from recurra.models import reviewing
    from recurra.models.forecast import combined_observed

    each: list[list[Observed]] = []
    for conventions, model in members:
        rows = [conventions.encode(example) for example in examples]
        each.append(in_batches(rows, model, lambda batch, _, own=model: reviewing.observed(own, batch)))  # type: ignore[misc]
    return [combined_observed(found) for found in zip(*each, strict=True)]


def free_running(members: Sequence[Member], examples: Sequence[Steps]) -> Exposure:
    """From each origin that is scored on, as far as the horizon; of frames, from each horizon to the next. (torch)

    The cost is the mean absolute error of what is expected, in units of the scaled values; of values that are 0 or 1,
    −log p of the step.
    """
    for conventions, _ in members:
        if conventions.is_direct:
            raise ConfigError(
                "--free-running compares forecasts that are fed back with right values, but model.ahead = "
                f"'{conventions.settings.model.ahead}' predicts all steps of the horizon at once and feeds nothing "
                "back. Leave it out."
            )
    from recurra.analysis.exposure import Exposure

    coins = members[0].conventions.gives_coins
    followed = zip(*(_followed(member, examples) for member in members), strict=True)
    return Exposure.of([exposed(found, coins=coins) for found in followed], "nll" if coins else "error")


def _followed(member: Member, examples: Sequence[Steps]) -> list[Followed]:
    """What one network expects of the steps after the origins of each series. (torch)"""
    from recurra.models.reviewing import run_free

    conventions, model = member
    horizon = conventions.horizon
    stride = horizon if conventions.gives_coins else conventions.settings.evaluation.stride
    rows = [conventions.encode(example) for example in examples]
    origins = [origins_in(conventions, row, stride) for row in rows]
    return in_batches(
        rows,
        model,
        lambda batch, numbers: run_free(model, batch, [origins[number] for number in numbers], horizon=horizon),
    )


def exposed(followed: Sequence[Followed], *, coins: bool) -> Exposed:
    """What the steps of one series cost where right values are read, and where each network reads its own."""
    from recurra.analysis.exposure import Exposed

    wanted = followed[0].wanted
    is_known = ~np.isnan(wanted)
    if coins:
        costs = -(np.logaddexp.reduce([-each.costs for each in followed], axis=0) - np.log(len(followed)))
    else:
        apart = np.abs(np.mean([each.expected for each in followed], axis=0) - wanted)
        costs = np.where(is_known, apart, 0.0).sum(3) / np.maximum(1, is_known.sum(2))
    forced, free = costs.sum(1)
    return Exposed(forced, free, is_known.any(2).sum(0).astype(np.float64))
