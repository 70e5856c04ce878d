"""Rules as tensors: what may not be chosen, without waiting for a device."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.padding import longest
from recurra.search.bracket_table import BracketTable
from recurra.search.rules import Law
from recurra.search.running import Scored


class Prefixes(NamedTuple):
    """What each of N rows begins with."""

    tokens: Tensor  # (N, P), 0 beyond the length
    lengths: Tensor  # (N,)


class Bounds(NamedTuple):
    """How long the answers of N rows must be, and may be."""

    leasts: Tensor  # (N,)
    mosts: Tensor  # (N,)


class Bars:
    """A law without forced tokens, which depends on what was written in each row, its prefix and its bounds only.

    With the divisors of log P of 1, 2, … tokens. Its tensors are made at the first step, when the vocabulary's size is
    known, and stay where they are: steps that were recorded read them again.
    """

    def __init__(self, law: Law, divisors: NDArray[np.float64] | None = None) -> None:
        assert not len(law.forced), "forced tokens are placed by the search on the host"
        self.law = law
        self.needs_past = law.no_repeat > 0 or bool(law.brackets.pairs)
        self.is_end = torch.empty(0, dtype=torch.bool)  # (V,)
        self.banned: Tensor | None = None  # (V,): never chosen; None: anything may be
        self.divisors = torch.tensor([] if divisors is None else divisors, dtype=torch.float64)  # (L,): see `score`
        self.early: Tensor | None = None  # (V,): not chosen while an answer is too short; None: it never is
        self.brackets: BracketTable | None = None

    @property
    def key(self) -> Hashable:
        """What must be equal for recorded steps to obey the same law; prefixes are given to each search anew."""
        law = self.law
        rules = (law.min_length, tuple(law.banned), tuple(law.ends), law.no_repeat, law.brackets)
        return *rules, law.longest_prefix, are_bounded(law)

    def make(self, vocabulary: int, device: torch.device) -> None:
        """Makes the tensors, once."""
        if len(self.is_end):
            return
        self.law.check_vocabulary(vocabulary)
        known = [token for token in self.law.ends if 0 <= token < vocabulary]
        self.is_end = flags(known, vocabulary).to(device)
        self.divisors = self.divisors.to(device, longest(device))
        if self.law.banned:
            self.banned = flags(self.law.banned, vocabulary).to(device)
        if self.law.min_length and known:
            self.early = flags([*self.law.banned, *known], vocabulary).to(device)
        if self.law.brackets.pairs:
            self.brackets = BracketTable(self.law.brackets, known, vocabulary, device)

    def closed(self, steps: Tensor) -> list[Tensor | None]:
        """For each of the steps (c,), (V,): what may not be chosen in any row."""
        if self.early is None:
            return [self.banned] * len(steps)
        otherwise = torch.zeros_like(self.early) if self.banned is None else self.banned
        return list(torch.where((steps < self.law.min_length).unsqueeze(1), self.early, otherwise).unbind())

    def allowed(
        self,
        scored: Scored,
        closed: Tensor | None,
        step: Tensor,
        past: Tensor | None,
        prefixes: Prefixes | None,
        bounds: Bounds | None = None,
    ) -> tuple[Scored, Tensor | None]:
        """log p (N, V) with -inf for what may not be chosen at `step` (1,) after `past` (N, L), real up to there.

        And what is still to be closed in all rows (V,): whoever looks for the largest does that on the way.
        """
        if past is None and prefixes is None and bounds is None:
            return scored, closed
        log_p = scored.log_p()
        out = log_p if closed is None else log_p.masked_fill(closed, -torch.inf)
        if bounds is not None:
            is_short = (step < bounds.leasts).unsqueeze(1)
            out = out.masked_fill(is_short & self.is_end, -torch.inf)
        if past is not None and bounds is not None and self.brackets is not None:
            out = out.masked_fill(self.brackets.barred(past, step, bounds.mosts), -torch.inf)
        if past is not None and 0 < self.law.no_repeat <= past.shape[1]:
            out = out.masked_fill(repeating(past, step, self.law.no_repeat, out.shape[1]), -torch.inf)
        if prefixes is not None:
            tokens = prefixes.tokens.index_select(1, step.clamp_max(prefixes.tokens.shape[1] - 1))
            is_it = torch.arange(out.shape[1], device=out.device) == tokens
            begun = (step < prefixes.lengths).unsqueeze(1)
            out = torch.where(begun, log_p.masked_fill(~is_it, -torch.inf), out)
        return Scored(out), None


def flags(ids: list[int], size: int) -> Tensor:
    """(size,): true at these ids."""
    found = torch.zeros(size, dtype=torch.bool)
    found[torch.tensor(ids, dtype=torch.long)] = True
    return found


def repeating(past: Tensor, step: Tensor, run: int, vocabulary: int) -> Tensor:
    """(N, V): true for what would end a run of that many tokens that the row has written before `step` already.

    >>> found = repeating(torch.tensor([[5, 6, 5, 7, 5, 0]]), torch.tensor([5]), 2, 8)
    >>> found.nonzero()[:, 1].tolist()
    [6, 7]
    """
    device = past.device
    runs = past.unfold(1, run, 1)  # (N, L - run + 1, run)
    last = past.index_select(1, (step - run + 1 + torch.arange(run - 1, device=device)).clamp_min(0))
    is_whole = torch.arange(run - 1, past.shape[1], device=device) < step
    is_same = (runs[:, :, :-1] == last.unsqueeze(1)).all(2) & is_whole
    # One column more than needed takes what is no repetition.
    ids = runs[:, :, -1].masked_fill(~is_same, vocabulary)
    found = torch.zeros(len(past), vocabulary + 1, dtype=torch.bool, device=device)
    return found.scatter(1, ids, True)[:, :vocabulary]


def prefixes_of(law: Law, rows: list[int]) -> Prefixes | None:
    """The prefixes of these sentences; None where there are none at all."""
    if not law.longest_prefix:
        return None
    each = [law.prefixes[row] for row in rows]
    tokens = torch.tensor([[*prefix, *[0] * (law.longest_prefix - len(prefix))] for prefix in each], dtype=torch.long)
    return Prefixes(tokens, torch.tensor([len(prefix) for prefix in each], dtype=torch.long))


def are_bounded(law: Law) -> bool:
    """Whether some rule asks how long an answer of each sentence must or may be."""
    return bool(law.brackets.pairs) or bool((law.leasts != law.min_length).any())


def bounds_of(law: Law, rows: NDArray[np.int64]) -> Bounds | None:
    """The bounds of these sentences; None where no rule asks for them."""
    if not are_bounded(law):
        return None
    return Bounds(torch.from_numpy(law.leasts[rows]), torch.from_numpy(law.lengths[rows]))
