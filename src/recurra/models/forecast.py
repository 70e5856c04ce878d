"""What a forecaster says of one series, as arrays: how it goes on, and how known steps looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Past(NamedTuple):
    """What was said of a sequence from some earlier steps on."""

    origins: NDArray[np.int64]  # (O,): the number of steps that were known
    ahead: NDArray[np.float64]  # (O, h, d)
    fan: NDArray[np.floating] | None  # (O, h, L, d)


class Forecast(NamedTuple):
    """How one sequence goes on."""

    values: NDArray[np.float64]  # (h, d)
    means: NDArray[np.float64]  # (h, d): what was expected; of values that are 0 or 1, the probability of a 1
    paths: NDArray[np.float64] | None  # (n, h, d), where some were drawn
    score: float  # log p of the values
    fan: NDArray[np.float64] | None = None  # (h, L, d): quantiles at LEVELS, of a direct forecast
    past: Past | None = None  # what was said before, where intervals adapt to it


class Review(NamedTuple):
    """What was predicted for one sequence that is known, from each of some steps on."""

    losses: NDArray[np.float64]  # (T,): the loss of each step given those before; 0 for one that is not predicted
    next: NDArray[np.float64]  # (T, d): what was expected at each step; NaN for one that is not predicted
    inside: NDArray[np.bool_] | None  # (T, d): whether the value lies between its quantiles
    origins: NDArray[np.int64]  # (O,): the number of steps that were known
    ahead: NDArray[np.float64]  # (O, h, d): the steps after each
    bounds: NDArray[np.float64] | None = None  # (2, T, d): the quantiles
    crps: NDArray[np.float64] | None = (
        None  # (T, d): of each step given those before; None where steps are predicted at once
    )
    fan: NDArray[np.floating] | None = None  # (O, h, L, d): quantiles of the steps after each origin, or of their sums
    has_losses: bool = True  # else they are 0: an exported model has no function for them


class Observed(NamedTuple):
    """How one sequence that is known looked step by step, (T, d) each; NaN for a step that is not predicted."""

    expected: NDArray[np.float64]
    bounds: NDArray[np.float64]  # (2, T, d): the quantiles
    costs: NDArray[np.float64]  # −log p of each value, or what stands for it
    sides: NDArray[np.float64]  # (2, T, d): P(X ≤ x) and P(X ≥ x)

    @property
    def tails(self) -> NDArray[np.float64]:
        """(T, d): how probable a value is that lies as far out, on either side."""
        return np.clip(2 * self.sides.min(0), 0.0, 1.0)


class Followed(NamedTuple):
    """The steps after some origins of one sequence that is known: first the right values being read, then its own."""

    expected: NDArray[np.float64]  # (2, O, h, d)
    costs: NDArray[np.float64]  # (2, O, h): the loss of a step
    wanted: NDArray[np.float64]  # (O, h, d): what came; NaN where that is not known


def combined_forecast(forecasts: Sequence[Forecast], *, coins: bool) -> Forecast:
    """How a sequence goes on according to several models: the means of what each says.

    Of values that are 0 or 1 the probabilities are averaged. Quantiles of drawn paths are averaged too: the n-th
    smallest value of each step is the mean of the n-th smallest of each model.
    """
    means = np.mean([each.means for each in forecasts], axis=0)
    values = (means > 0.5).astype(np.float64) if coins else np.mean([each.values for each in forecasts], axis=0)
    drawn = [np.sort(each.paths, axis=0) for each in forecasts if each.paths is not None]
    paths = np.mean(drawn, axis=0) if drawn else None
    fans = [each.fan for each in forecasts if each.fan is not None]
    score = float(np.mean([each.score for each in forecasts]))
    fan = np.mean(fans, axis=0) if fans else None
    return Forecast(values, means, paths, score, fan, _combined_past([each.past for each in forecasts]))


def _combined_past(pasts: Sequence[Past | None]) -> Past | None:
    known = [past for past in pasts if past is not None]
    if len(known) < len(pasts):
        return None
    fans = [past.fan for past in known if past.fan is not None]
    fan = np.asarray(np.mean(fans, axis=0, dtype=np.float64)) if len(fans) == len(known) else None
    return Past(known[0].origins, np.mean([past.ahead for past in known], axis=0), fan)


def combined_observed(observed: Sequence[Observed]) -> Observed:
    """How a sequence looked to several models, whose distributions are mixed.

    p(x_t) = (1/M) Σ_m p_m(x_t),     P(X_t ≤ x_t) = (1/M) Σ_m P_m(X_t ≤ x_t)

    Expected values and the quantiles that nine of ten values should lie between are means, as in `combined_review`.
    """
    first, count = observed[0], len(observed)
    if count == 1:
        return first
    with np.errstate(invalid="ignore"):  # NaN: steps that are not predicted
        costs = -(np.logaddexp.reduce([-each.costs for each in observed], axis=0) - np.log(count))
    expected, bounds, sides = (
        np.mean([getattr(each, name) for each in observed], axis=0) for name in ("expected", "bounds", "sides")
    )
    return Observed(expected, bounds, costs, sides)


def combined_review(
    reviews: Sequence[Review],
    values: NDArray[np.float64],
    known: NDArray[np.bool_],
    *,
    has_density: bool,
    is_squared: bool = True,
) -> Review:
    """What several models predicted for a sequence of values (T, d) that is known.

        density        p(x_t) = (1/M) Σ_m p_m(x_t)
        squared error  |x − ō|² = (1/M) Σ_m |x − o_m|² − (1/M) Σ_m |o_m − ō|²,     ō = (1/M) Σ_m o_m

    Of other losses, such as that of quantiles, the mean is taken. Expected values, steps ahead and the quantiles that
    nine of ten values should lie between are means.
    """
    losses = np.stack([review.losses for review in reviews])
    expected = np.stack([review.next for review in reviews])
    mean = expected.mean(0)
    if has_density:
        lost = -(np.logaddexp.reduce(-losses, axis=0) - np.log(len(reviews)))
    elif not is_squared:
        lost = losses.mean(0)
    else:
        apart = np.where(known & ~np.isnan(mean), np.square(expected - mean), 0.0)
        lost = (losses - apart.sum(2)).mean(0)
    first = reviews[0]
    found = Review(lost, mean, None, first.origins, np.mean([review.ahead for review in reviews], axis=0))
    fans = [review.fan for review in reviews if review.fan is not None]
    distances = [review.crps for review in reviews if review.crps is not None]
    if fans:
        found = found._replace(fan=np.mean(fans, axis=0, dtype=np.float64))
    if distances:  # that of their mean distribution is not larger
        found = found._replace(crps=np.mean(distances, axis=0))
    limits = [review.bounds for review in reviews if review.bounds is not None]
    if not limits:
        return found
    low, high = bounds = np.mean(limits, axis=0)
    is_predicted = ~np.isnan(mean)
    return found._replace(inside=(low <= values) & (values <= high) & is_predicted, bounds=bounds)
