"""Exposure bias: what a model loses when it reads its own outputs in place of the right ones (Bengio et al. 2015).

A model is trained to predict each step from the right steps before it (teacher forcing). When it is used, it reads what
it said itself (free running), which it has never seen in training. At each position i of a sequence,

    forced_i = cost of y_i given y_1 … y_{i-1}
    free_i   = cost of y_i given ŷ_1 … ŷ_{i-1},     ŷ the model's own, most probable outputs
    bias     = mean of free − mean of forced

At the first position both are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.metrics.resampling import Sampled, draws, interval
from recurra.views.lines import Curve, Lines, Panel
from recurra.views.page import in_notebook

HEIGHT, COUNTS_HEIGHT = 220.0, 80.0
"""Pixels of a panel of curves, and of the number of predictions below them."""

RARE = 0.02
"""Positions that fewer than this share of the sequences reach are not drawn: their means are noise."""

Floats = NDArray[np.float64]


class Exposed(NamedTuple):
    """What one sequence costs at each of n positions, summed over the predictions there."""

    forced: Floats  # (n,): the right outputs being read
    free: Floats  # (n,): its own being read
    counts: Floats  # (n,): predictions
    forced_right: Floats | None = None  # (n,): how many were right
    free_right: Floats | None = None


@dataclass(frozen=True, eq=False)
class Exposure:
    """The means of all sequences at each position, and the bias with its 95 % interval over samples of them.

    >>> item = Exposed(np.array([1.0, 1.0]), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    >>> found = Exposure.of([item, item], "nll")
    >>> found.bias, found.free.tolist(), found.values["teacher_forced_nll"]
    (0.5, [1.0, 2.0], 1.0)
    """

    cost: str  # what it is called: nll, error
    forced: Floats  # (n,)
    free: Floats
    counts: Floats
    values: dict[str, float]  # what was measured of all positions together
    bias: float
    low: float
    high: float
    forced_right: Floats | None = None  # (n,): the share of predictions that were right
    free_right: Floats | None = None

    @classmethod
    def of(cls, items: Sequence[Exposed], cost: str, *, seed: int = 0) -> Exposure:
        """From what each sequence costs."""
        long = max((len(item.counts) for item in items), default=0)

        def every(name: str) -> Floats | None:
            found = [getattr(item, name) for item in items]
            if any(each is None for each in found):
                return None
            return np.stack([np.pad(each, (0, long - len(each))) for each in found])

        forced, free, counts = every("forced"), every("free"), every("counts")
        if forced is None or free is None or counts is None or not counts.any():
            raise DataError("there is nothing to compare: no sequence has a step that follows on another.")
        at = counts.sum(0)
        known = np.flatnonzero(at)
        rights = [None if each is None else each.sum(0)[known] / at[known] for each in map(every, RIGHT)]
        totals = [each.sum(1) for each in (forced, free, counts)]  # of each sequence
        means = [float(total.sum() / totals[2].sum()) for total in totals[:2]]
        samples = [
            float(times @ (totals[1] - totals[0]) / (times @ totals[2]))
            for times in draws(len(items), seed=seed)
            if times @ totals[2]
        ]
        bias = means[1] - means[0]
        low, high = interval(Sampled(bias, np.array(samples), items=len(items), seed=seed))
        values = {f"teacher_forced_{cost}": means[0], f"free_running_{cost}": means[1], "exposure_bias": bias}
        for name, each in zip(("teacher_forced_accuracy", "free_running_accuracy"), map(every, RIGHT), strict=True):
            if each is not None:
                values[name] = float(each.sum() / counts.sum())
        return cls(
            cost,
            forced.sum(0)[known] / at[known],
            free.sum(0)[known] / at[known],
            at[known],
            values,
            bias,
            low,
            high,
            rights[0],
            rights[1],
        )

    def view(self) -> Lines:
        """Both curves over the positions, and below them how many predictions each position has."""
        drawn = slice(0, int((self.counts >= RARE * self.counts.max()).sum()))
        x = list(range(1, len(self.counts[drawn]) + 1))

        def panel(title: str, forced: Floats, free: Floats) -> Panel:
            curves = [Curve("teacher-forced", forced[drawn], x, "one"), Curve("free-running", free[drawn], x, "two")]
            return Panel(title, curves, HEIGHT)

        panels = [panel(self.cost, self.forced, self.free)]
        if self.forced_right is not None and self.free_right is not None:
            panels.append(panel("accuracy", self.forced_right, self.free_right))
        counts = Panel("predictions", [Curve("", self.counts[drawn], x, "soft")], COUNTS_HEIGHT)
        return Lines(
            [*panels, counts],
            "position",
            together=True,
            title="Exposure bias",
            caption=f"exposure bias {self.bias:+.4f} [{self.low:+.4f}, {self.high:+.4f}] {self.cost} per prediction",
            about="Teacher-forced, the model reads the right outputs before each position; free-running, it reads its "
            "own. The distance between the curves is what its own mistakes cost it.",
            numbers=self.json(),
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: what was measured, and both curves."""
        view = self.view()
        return in_notebook(f"<p>{escape(view.caption)}</p>\n{view.html()}")

    def json(self) -> dict[str, Any]:
        """All numbers, for a program."""
        found: dict[str, Any] = {**self.values, "interval": [self.low, self.high]}
        curves = {name: getattr(self, name) for name in ("forced", "free", "counts", *RIGHT)}
        found["positions"] = {name: each.round(6).tolist() for name, each in curves.items() if each is not None}
        return found


RIGHT = ("forced_right", "free_right")
