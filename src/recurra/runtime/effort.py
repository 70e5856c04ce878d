"""How much one request may ask for: some seconds, and not minutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from recurra.data.store import Rows
from recurra.errors import ConfigError, DataError
from recurra.tasks.task import Task

MOST = {
    "width": 32,
    "best": 32,
    "max_length": 1000,
    "min_length": 1000,
    "horizon": 1000,
    "paths": 500,
    "alternatives": 1000,
    "banned": 100,
    "forced": 8,
    "prefix": 1000,
    "length": 1000,
    "count": 16,
    "until": 100,
}
"""Numbers, letters or items that are asked for at most."""

MOST_INPUTS = 256
"""So many inputs are answered in one call."""

MOST_PICTURES = 16
"""A few bytes may be many pixels, all of which are in memory together."""

MOST_READ = 20_000
"""Tokens, or steps, of all inputs of one call together."""

MOST_WRITTEN = 500_000
"""Tokens that hypotheses of all answers of one call may have, or steps of all paths; some seconds on one core."""

TOGETHER_WRITTEN = 50_000
"""The same of requests that are computed together: one that asks for much is computed alone."""

MOST_EXPLAINED = 1_000
"""Of an input that is explained."""

MOST_WEIGHED = 60
"""Of an input whose every token is weighed for every token of the answer: that grows with the square and more."""


def check_most(name: str, value: object) -> None:
    """Refuse what would take minutes.

    >>> check_most("width", 4000)
    Traceback (most recent call last):
    recurra.errors.ConfigError: "width" is limited to 32 here, but 4,000 was asked for.
    """
    size = len(value) if isinstance(value, str | list) else value
    most = MOST.get(name)
    if most is not None and isinstance(size, int | float) and size > most:
        what = " characters" if isinstance(value, str) else " items" if isinstance(value, list) else ""
        asked = f"{size:,}" if size < 10**12 else "more"
        raise ConfigError(f'"{name}" is limited to {most:,}{what} here, but {asked} was asked for.')


def lengths_of(task: Task[Any, Any, Any], examples: Sequence[Any]) -> list[int]:
    """Tokens, or steps, of each example; of pictures, other limits hold."""
    if task.schema().kind not in ("text", "frames", "series"):
        return [0] * len(examples)
    found: list[int] = np.asarray(task.lengths(Rows.of(list(task.encode_all(examples))))).tolist()
    return found


def check_read(lengths: Sequence[int], most: int, what: str) -> None:
    """Refuse more than so many tokens, or steps, together."""
    found = sum(lengths)
    if found > most:
        raise DataError(f"at most {most:,} tokens {what}, but the input has {found:,}.")


def check_written(task: Task[Any, Any, Any], lengths: Sequence[int], *, searches: int = 1) -> int:
    """Tokens that are written; refuse what may be computed for minutes: many answers, each long, of a wide beam."""
    found = searches * int(task.most_written(lengths))
    if found > MOST_WRITTEN:
        times = math.ceil(found / MOST_WRITTEN)
        raise DataError(
            f"this request needs about {times} times the work allowed in one call: send fewer or shorter inputs, or "
            f"ask for shorter answers, a narrower beam, fewer paths or fewer views."
        )
    return found
