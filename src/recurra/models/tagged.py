"""What a tagger says of a sentence, and what several say of it together; torch is not needed for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.heads.lattice import Chain, best_path, marginals


class TaggerOutput(NamedTuple):
    """What was found for one sentence."""

    tags: tuple[NDArray[np.int64], ...]  # per column (T,)
    score: float  # log-probability of all tags and the label
    values: NDArray[np.float64] | None  # (T, k), scaled
    label: int | None
    probabilities: tuple[NDArray[Any], ...] | None  # per column (T,): of the tag that was chosen
    label_probability: float | None
    shares: TagShares | None = None  # where the sentence is to be tagged by several taggers


class TagShares(NamedTuple):
    """All that several taggers need of each other to tag a sentence together."""

    tags: tuple[TagScores, ...]  # per column
    label: NDArray[np.float64] | None  # (L,): the probability of each label of the whole


class TagScores(NamedTuple):
    """How one tagger rates the tags of one column."""

    each: NDArray[np.float64]  # (T, K): the score of each tag at each step; without a chain, its log p
    chain: Chain | None  # the scores of neighbouring tags; None: tags are chosen each by itself


def combined(outputs: Sequence[TaggerOutput]) -> TaggerOutput:
    """How several taggers tag a sentence together.

        softmax                p(y_t = k) = (1/M) Σ_m p_m(y_t = k),              the best tag of each step
        with a CRF among them  score(y)   = (1/M) Σ_m score_m(y),                the best path

    Numbers, and the probabilities of a label of the whole, are means.
    """
    shares = [output.shares for output in outputs if output.shares is not None]
    assert len(shares) == len(outputs), "`to_combine` keeps them"
    tags, certain, score = list[NDArray[np.int64]](), list[NDArray[np.float64]](), 0.0
    for column in zip(*(share.tags for share in shares), strict=True):
        best, p, log_p = best_together(column)
        tags.append(best)
        certain.append(p[np.arange(len(p)), best])
        score += log_p
    of_labels = [share.label for share in shares if share.label is not None]
    label, of_label = None, None
    if of_labels:
        p = np.mean(of_labels, axis=0)
        label, of_label = int(p.argmax()), float(p.max())
        score += float(np.log(of_label))
    numbers = [output.values for output in outputs if output.values is not None]
    values = np.mean(numbers, axis=0) if numbers else None
    return TaggerOutput(tuple(tags), score, values, label, tuple(certain), of_label)


def best_together(column: Sequence[TagScores]) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """The best tags (T,) of a column by several ratings, the probabilities (T, K) of all, and log p of the best."""
    steps, count = column[0].each.shape
    if steps == 0:
        return np.zeros(0, np.int64), np.zeros((0, count)), 0.0
    every = np.stack([rated.each for rated in column])
    if all(rated.chain is None for rated in column):
        p = np.exp(every).mean(0)
        best = p.argmax(1)
        return best, p, float(np.log(p[np.arange(steps), best]).sum())
    free = Chain(np.zeros((count, count)), np.zeros(count), np.zeros(count))
    chain = Chain(*(np.mean(each, axis=0) for each in zip(*(rated.chain or free for rated in column), strict=True)))
    each, lengths = every.mean(0)[None], np.array([steps])
    [path], [log_p] = best_path(chain, each, lengths)
    return path, marginals(chain, each, lengths)[0], float(log_p)
