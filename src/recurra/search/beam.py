"""The best of several hypotheses that are followed side by side."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from recurra.search.answers import Answers, Level, rebuilt
from recurra.search.arrays import Array, array_like, on_host, repeated, without_gradients
from recurra.search.front import candidates, continued, front_of, kept_of
from recurra.search.rules import NONE, Law, Rules
from recurra.search.score import check_penalties, uncovered
from recurra.search.search import Fixed, Hypothesis, Moving, Step, Watch, check_count, lengths_of, no_token, selected
from recurra.search.tree import Recorder, Tree


def beam(
    step: Step[Moving, Fixed],
    tokens: Array,
    moving: Moving,
    fixed: Fixed,
    *,
    width: int,
    length: int | Sequence[int],
    ends: Collection[int],
    best: int = 1,
    length_penalty: float = 0.0,
    rules: Rules = NONE,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Array | None = None,
    record: list[Tree] | None = None,
) -> list[list[Hypothesis]]:
    """The `best` hypotheses for each of `tokens` (B,), best first; fewer where there are fewer.

        score = log P(y) / ((5 + |y|) / 6)^α + β Σ_j log min(1, Σ_i α_ij)

    with α = length_penalty, β = coverage_penalty and |y| the tokens, the end among them; the weights α_ij (N, S) are
    what `watch` sees in each step, and j runs over the source places that are true in `places` (B, S), or all.

    Each step keeps the `width` most probable continuations of all hypotheses of a sentence. Those that ended go no
    further; the others are continued. Of equals, the one with the better parent is kept, then the lower id. A sentence
    is over at its length, or when no hypothesis can still become one of the `best` that have ended: log P only falls
    and its divisor only grows, so that log P / ((5 + length) / 6)^α is the most that one can reach. One that was cut
    off at the length comes after all that ended, however good it is. Where tokens are forced, each step keeps the
    best with none of them, with one, with two, …, with all and an end, before the second best of each (after Post and
    Vilar 2018).

    The step is first called with a row per sentence, then with the same number of rows for each sentence, at most
    `width`, those of a sentence one after the other. A list given as `record` gets the tree of each sentence.

    >>> import torch
    >>> def step(tokens, moving, fixed):            # 1 is likelier, but after 0 the end, 2, is almost sure
    ...     p = torch.tensor([[0.05, 0.05, 0.9], [0.3, 0.3, 0.4], [0.4, 0.6, 0.0]])
    ...     return p[tokens].log(), moving
    >>> for found in beam(step, torch.tensor([2]), (), (), width=2, length=5, ends=[2], best=2)[0]:
    ...     print(found.tokens, round(found.log_probability, 3))
    [0, 2] -1.022
    [1, 2] -1.427
    """
    check_count(width, "width")
    check_count(best, "best")
    check_penalties(length_penalty, coverage_penalty, watch is not None)
    lengths = lengths_of(length, len(tokens))
    law, answers = Law(rules, lengths, ends), Answers(lengths, ends, best, length_penalty)
    front, levels, covered = front_of(len(lengths)), list[Level](), None
    recorder = None if record is None else Recorder(len(lengths), width, length_penalty)
    with without_gradients(tokens):
        while len(front.sentences):
            log_p, moving = step(tokens, moving, fixed)
            watched = None if watch is None else watch(moving)
            lack = None
            if coverage_penalty and watched is not None:
                covered = watched if covered is None else covered + watched
                real = None if places is None else repeated(places, front.totals.shape[1])
                lack = coverage_penalty * uncovered(covered, real)
            if not levels:
                law.check_vocabulary(log_p.shape[1])
            found = candidates(log_p, front, len(levels), width, law, lack)
            if np.isnan(found.log_p).any():
                raise no_token()
            kept = kept_of(front, found, width, law)
            levels.append(Level(front.places[kept.rows].ravel(), kept.tokens.ravel(), kept.rows.ravel(), watched))
            is_live, goes_on = answers.add(front.sentences, kept, len(levels), found.lacks)
            if recorder is not None:
                recorder.add(front, found, kept, is_live)
            for sentence in front.sentences[~goes_on]:
                if not answers.of[sentence]:
                    raise no_token() if law.is_empty else law.dead_end(sentence, len(levels) - 1)
            if not goes_on.any():
                break
            front, chosen, rows = continued(front, kept, is_live, goes_on, law)
            tokens = array_like(chosen, tokens)
            if len(rows) != len(log_p) or (rows[1:] <= rows[:-1]).any():
                moving, covered = selected((moving, covered), array_like(rows, tokens))
            if not goes_on.all():
                fixed, places = selected((fixed, places), array_like(np.nonzero(goes_on)[0], tokens))
    if record is not None and recorder is not None:
        record += recorder.trees(answers.of)
    levels = [level._replace(watched=None if level.watched is None else on_host(level.watched)) for level in levels]
    return [[rebuilt(answer, levels) for answer in of] for of in answers.of]
