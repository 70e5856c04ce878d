"""Tokens drawn by their probability."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from recurra.errors import ConfigError
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


def filtered(log_p: Tensor, keep: Filter) -> Tensor:
    """(B, V): log of the probabilities that tokens are drawn by; -inf for those that are not.

    >>> p = torch.tensor([[0.1, 0.4, 0.2, 0.3]])
    >>> filtered(p.log(), Filter(top_k=2)).exp().round(decimals=4).tolist()
    [[0.0, 0.5714, 0.0, 0.4286]]
    >>> filtered(p.log(), Filter(top_p=0.8)).exp().round(decimals=4).tolist()
    [[0.0, 0.4444, 0.2222, 0.3333]]
    >>> filtered(p.log(), Filter(temperature=0.5)).exp().round(decimals=4).tolist()
    [[0.0333, 0.5333, 0.1333, 0.3]]
    """
    q = without(log_p.double(), keep.banned)
    temperature, top_k = (keep.temperature, keep.top_k) if keep.temperature else (1.0, 1)
    # The largest becomes 0, which no temperature can lift or sink.
    q = (q - q.amax(1, keepdim=True)) / temperature
    if top_k is not None and top_k < q.shape[1]:
        q = q.masked_fill(~are_largest(q, top_k), -torch.inf)
    q = q.log_softmax(1)
    if keep.top_p is not None and keep.top_p < 1:
        q = q.masked_fill(~are_nucleus(q, keep.top_p), -torch.inf).log_softmax(1)
    return q


def are_largest(q: Tensor, k: int) -> Tensor:
    """(B, V): true for the k largest of each row; of equals, for those with lower ids."""
    least = q.topk(k, dim=1).values[:, -1:]
    above, equal = q > least, q == least
    return above | (equal & (equal.cumsum(1) <= k - above.sum(1, keepdim=True)))


def are_nucleus(q: Tensor, mass: float) -> Tensor:
    """(B, V): true for the smallest set of most probable tokens with that mass."""
    largest_first, order = q.sort(dim=1, descending=True, stable=True)
    sums = largest_first.exp().cumsum(1)
    before = torch.cat([torch.zeros_like(sums[:, :1]), sums[:, :-1]], dim=1)
    # Eight times 0.1 is 0.7999… in floats, and means 0.8.
    return torch.zeros_like(q, dtype=torch.bool).scatter(1, order, before < mass * (1 - 1e-9))


class Sampler:
    """Draws a token for each row: row n has a stream of random numbers of its own, made from the seed and first + n.

    So a row is drawn alike whatever rows are beside it, and the first of five texts is the text that one alone is. With
    `numbers`, one for each row, it is also drawn alike wherever it stands: its stream is made from the seed and its
    number.

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

    def __call__(self, log_p: Tensor, rows: list[int]) -> Tensor:
        chances = [[self._stream(row).random()] for row in rows]
        return drawn(log_p, self.keep, torch.tensor(chances, dtype=torch.float64, device=log_p.device))

    def chances(self, rows: Sequence[int], count: int) -> Tensor:
        """(rows, count): the next random numbers of rows, in [0, 1)."""
        found = [self._stream(row).random(count) for row in rows]
        return torch.from_numpy(np.stack(found)) if found else torch.zeros(0, count, dtype=torch.float64)

    def _stream(self, row: int) -> np.random.Generator:
        if row not in self._streams:
            number = self.first + row if self.numbers is None else self.numbers[row]
            key = np.array([self.seed % 2**64, number % 2**64], np.uint64)
            self._streams[row] = np.random.Generator(np.random.Philox(key=key))
        return self._streams[row]


def drawn(log_p: Tensor, keep: Filter, chances: Tensor) -> Tensor:
    """A token for each row (B, V), by a random number from [0, 1) for each, (B, 1) of float64."""
    sums = filtered(log_p, keep).exp().cumsum(1)
    whole = sums[:, -1:]
    # The first token whose sum lies above the chance; it stays below the whole, so that there is one.
    bounds = torch.minimum(chances * whole, whole.nextafter(torch.zeros_like(whole)))
    return torch.searchsorted(sums, bounds, right=True).squeeze(1).clamp_max(sums.shape[1] - 1)


def sample(
    step: Step[Moving, Fixed],
    tokens: Tensor,
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
    places: Tensor | None = None,
) -> list[Hypothesis]:
    """A sequence for each of `tokens` (B,), drawn token by token up to one in `ends` or to `length`.

    What is drawn for a row depends on the seed and its number, which is its place unless `numbers` are given. The
    log-probability of a sequence is what the step gave it, before any filter. Scores, `watch` and `places` are
    those of `beam`.

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
