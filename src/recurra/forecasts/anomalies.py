"""Anomalies: every observed value, and how improbable it was given those before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recurra.config.forecasting import COUNTS
from recurra.errors import ConfigError
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.several import Member, observed
from recurra.reading.series import Steps, compared
from recurra.settings import name_of
from recurra.views.table import Table


def check_distribution(conventions: Conventions) -> None:
    """Refuse a run that does not say how probable a value is."""
    if not conventions.has_quantiles:
        raise ConfigError(
            f"--anomalies needs a distribution, which model.output = '{name_of(conventions.output)}' does not predict. "
            f"Train with model.output = 'gaussian' or 'student_t'."
        )


def anomalies(members: Sequence[Member], examples: Sequence[Steps]) -> Table:
    """A row for each value that is known and predicted: what was expected, −log p and the tail beyond it. (torch)"""
    conventions = members[0].conventions
    names, difference = conventions.columns, conventions.settings.data.difference
    has_density, has_sizes = conventions.has_density, name_of(conventions.output) not in COUNTS
    rows: list[list[object]] = []
    for example, found in zip(examples, observed(members, examples), strict=True):
        is_scored = compared(example.known, difference=difference) & ~np.isnan(found.tails)
        before = np.concatenate([example.values[:1], example.values[:-1]])
        unit, moments = conventions.unit_of(example), conventions.moments(example)
        said = [unit.ahead(each[:, None], before)[:, 0] for each in (found.expected, *found.bounds)]
        sizes = unit.log_size(example.values) if has_sizes else np.zeros_like(example.values)
        for t, j in np.argwhere(is_scored).tolist():
            expected = [float(each[t, j]) for each in said]
            surprise = [float(found.costs[t, j] + sizes[t, j])] if has_density else []
            moment = [example.name, moments[t], names[j], float(example.values[t, j])]
            rows.append([*moment, *expected, *surprise, float(found.tails[t, j])])
    head = ["series", "time", "column", "value", "expected", "low", "high"]
    return Table([*head, *(["surprise"] if has_density else []), "tail"], rows)
