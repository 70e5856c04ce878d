"""Tokens drawn by their probability."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recurra.errors import ConfigError
from recurra.frozen import NamedTuple
from recurra.search.arrays import (
    Array,
    array_like,
    back_in_place,
    doubled,
    exp,
    falling,
    just_below,
    largest,
    log_softmax,
    most,
    searched_right,
    smaller,
    where,
)
from recurra.search.rules import NONE, Law, Rules
from recurra.search.search import (
    Fixed,
    Hypothesis,
    Moving,
    Step,
    Watch,
    check_count,
    collected,
    followed,
    lengths_of,
    without,
)

if TYPE_CHECKING:
    from torch import Tensor


class Filter(NamedTuple):
    """What is drawn from: p, reshaped by these in the order of the fields.

    banned          ids that are never drawn
    temperature τ   p(w)^(1/τ), rescaled to sum to 1: below 1 bolder, above 1 more even; 0: the most probable alone
    top_k           the k most probable; of equals, the lower ids
    top_p           of what is left, rescaled to sum to 1, the smallest set of most probable tokens whose
                    probabilities sum to at least top_p; of equals, the lower ids

    What remains is rescaled to sum to 1, and is at least one token.
    """

    banned: tuple[int, ...] = ()
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def checked(self) -> Filter:
        """Itself, or a ConfigError that says which setting cannot be."""
        if not is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise ConfigError(f"temperature must be a number of at least 0, but is {self.temperature!r}.")
        if self.top_k is not None:
            check_count(self.top_k, "top_k")
        if self.top_p is not None and (not is_number(self.top_p) or not 0 < self.top_p <= 1):
            raise ConfigError(f"top_p must be a probability above 0 and at most 1, but is {self.top_p!r}.")
        return self


ALL = Filter()
"""p as it is."""


def filtered(log_p: Array, keep: Filter) -> Array:
    """(B, V): log of the probabilities that tokens are drawn by; -inf for those that are not.

    >>> import torch
    >>> p = torch.tensor([[0.1, 0.4, 0.2, 0.3]])
    >>> filtered(p.log(), Filter(top_k=2)).exp().round(decimals=4).tolist()
    [[0.0, 0.5714, 0.0, 0.4286]]
    >>> filtered(p.log(), Filter(top_p=0.8)).exp().round(decimals=4).tolist()
    [[0.0, 0.4444, 0.2222, 0.3333]]
    >>> filtered(p.log(), Filter(temperature=0.5)).exp().round(decimals=4).tolist()
    [[0.0333, 0.5333, 0.1333, 0.3]]
    """
    q = without(doubled(log_p), keep.banned)
    temperature, top_k = (keep.temperature, keep.top_k) if keep.temperature else (1.0, 1)
    # The largest becomes 0, which no temperature can lift or sink.
    q = (q - most(q)) / temperature
    if top_k is not None and top_k < q.shape[1]:
        q = where(are_largest(q, top_k), q, -math.inf)
    q = log_softmax(q)
    if keep.top_p is not None and keep.top_p < 1:
        q = log_softmax(where(are_nucleus(q, keep.top_p), q, -math.inf))
    return q


def are_largest(q: Array, k: int) -> Array:
    """(B, V): true for the k largest of each row; of equals, for those with lower ids."""
    least = largest(q, k)[0][:, -1:]
    above, equal = q > least, q == least
    return above | (equal & (equal.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True)))


def are_nucleus(q: Array, mass: float) -> Array:
    """(B, V): true for the smallest set of most probable tokens with that mass."""
    largest_first, order = falling(q)
    p = exp(largest_first)
    before = p.cumsum(axis=1) - p
    # Eight times 0.1 is 0.7999… in floats, and means 0.8.
    return back_in_place(before < mass * (1 - 1e-9), order)


class Sampler:
    """Draws a token for each row: row n has a stream of random numbers of its own, made from the seed and first + n.

    So a row is drawn alike whatever rows are beside it, and the first of five texts is the text that one alone is. With
    `numbers`, one for each row, it is also drawn alike wherever it stands: its stream is made from the seed and its
    number.

    >>> import torch
    >>> p = torch.full((3, 1000), 0.001)
    >>> together = Sampler(Filter(), seed=7)(p.log(), [0, 1, 2])
    >>> alone = Sampler(Filter(), seed=7)(p[:1].log(), [2])
    >>> together[2] == alone[0], together[1] == alone[0]
    (tensor(True), tensor(False))
    """

    def __init__(self, keep: Filter, *, seed: int, first: int = 0, numbers: Sequence[int] | None = None) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigError(f"seed must be a whole number, but is {seed!r}.")
        self.keep = keep.checked()
        self.seed = seed
        self.first = first
        self.numbers = numbers
        self._streams: dict[int, np.random.Generator] = {}

    def __call__(self, log_p: Array, rows: list[int]) -> Array:
        chances = [[self._stream(row).random()] for row in rows]
        return drawn(log_p, self.keep, array_like(chances, log_p, np.float64))

    def chances(self, rows: Sequence[int], count: int) -> Tensor:
        """(rows, count): the next random numbers of rows, in [0, 1). (torch)"""
        import torch

        found = [self._stream(row).random(count) for row in rows]
        return torch.from_numpy(np.stack(found)) if found else torch.zeros(0, count, dtype=torch.float64)

    def _stream(self, row: int) -> np.random.Generator:
        if row not in self._streams:
            number = self.first + row if self.numbers is None else self.numbers[row]
            key = np.array([self.seed % 2**64, number % 2**64], np.uint64)
            self._streams[row] = np.random.Generator(np.random.Philox(key=key))
        return self._streams[row]


def drawn(log_p: Array, keep: Filter, chances: Array) -> Array:
    """A token for each row (B, V), by a random number from [0, 1) for each, (B, 1) of float64."""
    sums = exp(filtered(log_p, keep)).cumsum(axis=1)
    whole = sums[:, -1:]
    # The first token whose sum lies above the chance; it stays below the whole, so that there is one.
    bounds = smaller(chances * whole, just_below(whole))
    return searched_right(sums, bounds).clip(max=sums.shape[1] - 1)


def sample(
    step: Step[Moving, Fixed],
    tokens: Array,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int | Sequence[int],
    ends: Collection[int] = (),
    keep: Filter = ALL,
    seed: int = 1,
    numbers: Sequence[int] | None = None,
    rules: Rules = NONE,
    length_penalty: float = 0.0,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Array | None = None,
) -> list[Hypothesis]:
    """A sequence for each of `tokens` (B,), drawn token by token up to one in `ends` or to `length`.

    What is drawn for a row depends on the seed and its number, which is its place unless `numbers` are given. The
    log-probability of a sequence is what the step gave it, before any filter. Scores, `watch` and `places` are
    those of `beam`.

    >>> import torch
    >>> def fair(tokens, moving, fixed):
    ...     return torch.full((len(tokens), 2), 0.5).log(), moving
    >>> [found] = sample(fair, torch.tensor([0]), (), (), length=20, seed=3)
    >>> "".join(map(str, found.tokens)), round(found.log_probability, 3)
    ('10011000010010111100', -13.863)
    """
    lengths = lengths_of(length, len(tokens))
    steps = followed(
        step,
        Sampler(keep._replace(banned=()), seed=seed, numbers=numbers),
        tokens,
        moving,
        fixed,
        length=lengths,
        is_end=lambda _, token: token in ends,
        law=Law(rules._replace(banned=(*rules.banned, *keep.banned)), lengths, ends),
        watch=watch,
    )
    return collected(
        len(tokens), steps, length_penalty=length_penalty, coverage_penalty=coverage_penalty, places=places
    )


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
