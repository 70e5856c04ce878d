"""What a search knows of a model: a step. And the way along one, token by token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from recurra.errors import ConfigError, DataError
from recurra.frozen import NamedTuple
from recurra.search.arrays import (
    Array,
    array_like,
    at_least_single,
    lists_of,
    on_host,
    picked,
    selected,
    stacked,
    with_columns,
    without_gradients,
)
from recurra.search.rules import Law
from recurra.search.score import divisor, uncovered

__all__ = [
    "Choose", "Chosen", "Fixed", "Hypothesis", "Moving", "Step", "Watch", "check_count", "collected", "followed",
    "lengths_of", "no_token", "selected", "without",
]  # fmt: skip

Moving = TypeVar("Moving")
Fixed = TypeVar("Fixed")

Step: TypeAlias = Callable[[Array, Moving, Fixed], tuple[Array, Moving]]
"""tokens (B,), moving, fixed -> log p of what comes next (B, V), moving.

All arrays are torch's, or all are NumPy's. Moving and Fixed are arrays, or tuples of them however deep, batch first on
every leaf. Moving is what changes from step to step, such as the states of a network, and has a row per hypothesis;
Fixed is what does not, such as a source that is attended to, and has a row per sentence.
"""

Watch: TypeAlias = Callable[[Moving], Array]
"""moving -> what the step that gave it looked at, (B, S), such as its weights of attention."""

Choose: TypeAlias = Callable[[Array, list[int]], Array]
"""log p (B, V) and the numbers of the rows -> a token for each row, (B,)."""


class Chosen(NamedTuple):
    """What one step has added, for each row that went on."""

    rows: list[int]
    tokens: list[int]
    log_probabilities: list[float]
    ended: list[bool]
    watched: Array | None = None


class Hypothesis(NamedTuple):
    """A sequence that was found: its tokens, the one that ends it among them, and what was watched at each."""

    tokens: list[int]
    log_probability: float
    ended: bool  # by a token that ends it; false where it was cut off at the length
    score: float = math.nan  # what sequences of different lengths are compared by
    watched: Array | None = None  # (len(tokens), S), on the host


def followed(
    step: Step[Moving, Fixed],
    choose: Choose,
    tokens: Array,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int | Sequence[int],
    is_end: Callable[[int, int], bool],
    law: Law | None = None,
    watch: Watch[Moving] | None = None,
) -> Iterator[Chosen]:
    """One token after the other, `length` at most, beginning after `tokens` (B,); rows that have ended are left out.

    is_end(row, token) says whether a token ends its row; it is asked once for each, in order.
    """
    lengths = lengths_of(length, len(tokens))
    rows = list(range(len(tokens)))
    law = None if law is None or law.is_empty else law
    past = np.zeros((len(rows), 0), np.int64)
    for written in range(max(lengths, default=0)):
        with without_gradients(tokens):  # not around the yield: between two tokens the caller is on its own
            log_p, moving = step(tokens, moving, fixed)
            if law is not None:
                if written == 0:
                    law.check_vocabulary(log_p.shape[1])
                log_p = law.allowed(log_p, past, np.array(rows, np.int64))
            tokens = choose(log_p, rows)
            watched = None if watch is None else watch(moving)
            gained, numbers = lists_of(at_least_single(picked(log_p, tokens)), tokens)
        if not all(map(math.isfinite, gained)):
            raise (
                no_token()
                if law is None or -math.inf not in gained
                else law.dead_end(rows[gained.index(-math.inf)], written)
            )
        ended = [is_end(row, token) for row, token in zip(rows, numbers, strict=True)]
        yield Chosen(rows, numbers, gained, ended, watched)
        going = [at for at, row in enumerate(rows) if not ended[at] and written + 1 < lengths[row]]
        if not going:
            return
        if law is not None:
            past = np.concatenate([past, np.array(numbers, np.int64)[:, None]], axis=1)[going]
        if len(going) < len(rows):
            rows = [rows[at] for at in going]
            tokens, moving, fixed = selected((tokens, moving, fixed), array_like(going, tokens))


def collected(
    rows: int,
    steps: Iterable[Chosen],
    *,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    places: Array | None = None,
) -> list[Hypothesis]:
    """The whole sequence of each row."""
    tokens: list[list[int]] = [[] for _ in range(rows)]
    gained: list[list[float]] = [[] for _ in range(rows)]
    watched: list[list[Array]] = [[] for _ in range(rows)]
    ended = [False] * rows
    for chosen in list(steps):  # all of them first: what was watched is fetched when no step waits for it
        views = [None] * len(chosen.rows) if chosen.watched is None else list(on_host(chosen.watched))
        for row, token, log_p, is_over, view in zip(*chosen[:4], views, strict=True):
            tokens[row].append(token)
            gained[row].append(log_p)
            ended[row] = is_over
            if view is not None:
                watched[row].append(view)
    found = []
    for row in range(rows):
        log_probability, seen = math.fsum(gained[row]), stacked(watched[row]) if watched[row] else None
        score = log_probability / divisor(len(tokens[row]), length_penalty)
        if coverage_penalty and seen is not None:
            real = None if places is None else on_host(places[row : row + 1])
            score += coverage_penalty * float(uncovered(seen.sum(axis=0, keepdims=True), real)[0])
        found.append(Hypothesis(tokens[row], log_probability, ended[row], score, seen))
    return found


def lengths_of(length: int | Sequence[int], rows: int) -> list[int]:
    """The most tokens that each row may have."""
    if not isinstance(length, Sequence) or isinstance(length, str):
        return [check_count(length, "length")] * rows
    if len(length) != rows:
        raise ConfigError(f"there are {len(length)} lengths for {rows} sequences: give one for each, or one for all.")
    if {*map(type, length)} == {int} and min(length) > 0:  # of many sequences, the usual case
        return [*length]
    return [check_count(each, "length") for each in length]


def no_token() -> DataError:
    """The error of a model that has failed."""
    return DataError("the model's probabilities are NaN or out of range: it may have diverged in training.")


def without(log_p: Array, banned: Iterable[int]) -> Array:
    """log p with -inf for tokens that may not be chosen."""
    ids = sorted(set(banned))
    if not ids:
        return log_p
    if len(ids) >= log_p.shape[1]:
        raise ConfigError("every token of the vocabulary is banned, so no token can be chosen.")
    return with_columns(log_p, ids, -math.inf)


def check_count(value: object, what: str) -> int:
    """A whole number of at least 1, or a ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, but is {value!r}.")
    return value
