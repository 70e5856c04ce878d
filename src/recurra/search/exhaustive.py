"""Every sequence there is, on tiny vocabularies: what other searches are measured by."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Generic, NamedTuple

import numpy as np
import torch
from torch import Tensor

from recurra.errors import ConfigError
from recurra.padding import longest
from recurra.search.rules import NONE, Law, Rules
from recurra.search.score import check_penalties, divisor, uncovered
from recurra.search.search import Fixed, Hypothesis, Moving, Step, Watch, check_count, lengths_of, no_token, selected

MOST_SEQUENCES = 2_000_000
MOST_ROWS = 4096
"""Rows of a step; more are done one block after the other."""


class Block(NamedTuple, Generic[Moving]):
    """Beginnings of the same length t, one in each row."""

    tokens: Tensor  # (N,)
    moving: Moving
    totals: Tensor  # (N,): log P
    past: Tensor  # (N, t)
    watched: Tensor | None  # (N, t, S)


def exhaustive(
    step: Step[Moving, Fixed],
    tokens: Tensor,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int | Sequence[int],
    ends: Collection[int],
    best: int = 1,
    length_penalty: float = 0.0,
    rules: Rules = NONE,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The `best` of all sequences up to `length` for each of `tokens` (B,), best first, scored as `beam` does.

    Those that ended come before those that were cut off at the length; of equals, the shorter, then the one with the
    lower id at the first difference. Where there are more than two million sequences, it is refused.

    >>> def step(tokens, moving, fixed):
    ...     p = torch.tensor([[0.05, 0.05, 0.9], [0.3, 0.3, 0.4], [0.4, 0.6, 0.0]])
    ...     return p[tokens].log(), moving
    >>> for found in exhaustive(step, torch.tensor([2]), (), (), length=5, ends=[2], best=2)[0]:
    ...     print(found.tokens, round(found.log_probability, 3))
    [0, 2] -1.022
    [1, 2] -1.427
    """
    check_count(best, "best")
    check_penalties(length_penalty, coverage_penalty, watch is not None)
    lengths = lengths_of(length, len(tokens))
    law = Law(rules, lengths, ends)
    found = []
    with torch.no_grad():
        for sentence in range(len(tokens)):
            first, start, source, real = selected((tokens, moving, fixed, places), torch.tensor([sentence]).to(tokens))
            answers: list[Hypothesis] = []
            blocks = [
                Block(first, start, torch.zeros_like(first, dtype=longest(first.device)), first[:, None][:, :0], None)
            ]
            while blocks:
                block = longer(step, blocks.pop(), source, watch, law, sentence)
                is_end = torch.isin(block.tokens, torch.tensor(law.ends).to(tokens))
                is_answer = is_end | (block.past.shape[1] == lengths[sentence])
                ended, cut_off, going = (
                    selected(block, rows.nonzero().squeeze(1)) for rows in (is_end, is_answer & ~is_end, ~is_answer)
                )
                for over, is_over in ((ended, True), (cut_off, False)):
                    answers += scored(over, is_over, best, length_penalty, coverage_penalty, real)
                answers.sort(key=lambda each: (not each.ended, -each.score, len(each.tokens), each.tokens))
                del answers[best:]
                rows = torch.arange(len(going.tokens), device=tokens.device)
                blocks += [selected(going, some) for some in rows.split(MOST_ROWS) if len(some)]
            if not answers:
                raise no_token() if law.is_empty else law.dead_end(sentence, 0)
            found.append(answers)
    return found


def longer(
    step: Step[Moving, Fixed],
    block: Block[Moving],
    fixed: Fixed,
    watch: Watch[Moving] | None,
    law: Law,
    sentence: int,
) -> Block[Moving]:
    """All beginnings of one token more that have a probability."""
    log_p, moving = step(block.tokens, block.moving, fixed)
    count, written = block.past.shape
    if written == 0:
        law.check_vocabulary(log_p.shape[1])
        check_number(log_p.shape[1], law, int(law.lengths[sentence]))
    if not law.is_empty:
        log_p = law.allowed(log_p, block.past.cpu().numpy(), np.full(count, sentence))
    totals = block.totals.unsqueeze(1) + log_p
    if totals.isnan().any():
        raise no_token()
    rows, tokens = (totals > -torch.inf).nonzero(as_tuple=True)
    watched = None
    if watch is not None:
        now = watch(moving).unsqueeze(1)
        watched = (now if block.watched is None else torch.cat([block.watched, now], dim=1)).index_select(0, rows)
    past = torch.cat([block.past.index_select(0, rows), tokens.unsqueeze(1)], dim=1)
    return Block(tokens, selected(moving, rows), totals[rows, tokens], past, watched)


def scored(
    block: Block[Moving], ended: bool, best: int, length_penalty: float, coverage_penalty: float, places: Tensor | None
) -> list[Hypothesis]:
    """The best of what goes no further."""
    scores = block.totals / divisor(block.past.shape[1], length_penalty)
    if coverage_penalty and block.watched is not None:
        scores = scores + coverage_penalty * uncovered(block.watched.sum(1), places)
    rows = scores.argsort(descending=True, stable=True)[:best]
    columns = (each.index_select(0, rows).tolist() for each in (block.past, block.totals, scores))
    watched = [None] * len(rows) if block.watched is None else [*block.watched.index_select(0, rows).cpu()]
    return [
        Hypothesis(past, total, ended, score, seen) for past, total, score, seen in zip(*columns, watched, strict=True)
    ]


def check_number(vocabulary: int, law: Law, length: int) -> None:
    """A ConfigError where there are too many sequences."""
    ends = len({*law.ends} - {*law.banned})
    others = vocabulary - len({*law.ends, *law.banned})
    sequences, beginnings = 0, 1
    for _ in range(length):
        sequences, beginnings = sequences + ends * beginnings, others * beginnings
        if sequences + beginnings > MOST_SEQUENCES:
            raise ConfigError(
                f"{vocabulary} tokens make more than {MOST_SEQUENCES:,} sequences of up to {length}, too many to "
                "try all of them: use a smaller length, or beam search."
            )
