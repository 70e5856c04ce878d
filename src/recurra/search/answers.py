"""The hypotheses of a beam that go no further, and the way back to their tokens."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from recurra.search.arrays import Array, stacked
from recurra.search.front import Kept, Numbers
from recurra.search.rules import Flags, Ids
from recurra.search.score import divisor
from recurra.search.search import Hypothesis


class Level(NamedTuple):
    """What one step kept, a place for each hypothesis of each sentence that was still searched."""

    parents: Ids  # place in the level before
    tokens: Ids
    rows: Ids  # row of the step that it continues
    watched: Array | None  # (rows of the step, S)


class Ending(NamedTuple):
    """A hypothesis that ended, or that was cut off at the length."""

    score: float
    log_probability: float
    level: int
    place: int
    ended: bool


class Answers:
    """The best answers of each sentence so far, and whether a better one can still come."""

    def __init__(self, lengths: Sequence[int], ends: Collection[int], best: int, length_penalty: float) -> None:
        self.best = best
        self.length_penalty = length_penalty
        self.ends = np.array(sorted({*ends}), np.int64)
        self.lengths = np.array(lengths, np.int64)
        self.of: list[list[Ending]] = [[] for _ in lengths]
        self._largest_divisors = np.array([divisor(length, length_penalty) for length in lengths])
        self._to_beat = np.full(len(lengths), -np.inf)

    def add(self, sentences: Ids, kept: Kept, written: int, lacks: Numbers) -> tuple[Flags, Flags]:
        """Takes what has ended; (A, w): which of the others live on, (A,): which sentences go on with them."""
        is_real = kept.totals > -np.inf
        is_end = is_real & np.isin(kept.tokens, self.ends)
        is_last = written >= self.lengths[sentences]
        is_answer = is_end | (is_real & is_last[:, None])
        is_live = is_real & ~is_answer
        if is_answer.any():
            scores = kept.totals / divisor(written, self.length_penalty) + lacks[kept.rows].sum(2)
            width = is_answer.shape[1]
            for at in np.nonzero(is_answer.any(1))[0].tolist():
                self._take(
                    int(sentences[at]),
                    [
                        Ending(
                            score=float(scores[at, slot]),
                            log_probability=float(kept.totals[at, slot]),
                            level=written - 1,
                            place=at * width + slot,
                            ended=bool(is_end[at, slot]),
                        )
                        for slot in np.nonzero(is_answer[at])[0].tolist()
                    ],
                )
        # log P only falls and its divisor only grows, up to that of the length; coverage only takes.
        can_reach = np.where(is_live, kept.totals, -np.inf).max(1) / self._largest_divisors[sentences]
        return is_live, can_reach > self._to_beat[sentences]

    def _take(self, sentence: int, new: list[Ending]) -> None:
        # The sort is stable: of equals, the one that was reached first.
        self.of[sentence] = sorted(self.of[sentence] + new, key=lambda each: (not each.ended, -each.score))[: self.best]
        if len(self.of[sentence]) == self.best:
            self._to_beat[sentence] = self.of[sentence][-1].score


def rebuilt(answer: Ending, levels: Sequence[Level]) -> Hypothesis:
    """The hypothesis that lies behind an answer, from its last token back to its first."""
    tokens: list[int] = []
    watched: list[Array] = []
    place = answer.place
    for level in reversed(levels[: answer.level + 1]):
        tokens.append(int(level.tokens[place]))
        if level.watched is not None:
            watched.append(level.watched[int(level.rows[place])])
        place = int(level.parents[place])
    seen = stacked(watched[::-1]) if watched else None
    return Hypothesis(tokens[::-1], answer.log_probability, answer.ended, answer.score, seen)
