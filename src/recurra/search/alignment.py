"""Where the tokens of a transcription stand: the most probable alignment of CTC (see recurra.decoding.ctc)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recurra.search.search import Hypothesis


def best_alignment(log_p: NDArray[np.floating], tokens: NDArray[np.int64], blank: int) -> NDArray[np.int64]:
    """(S,): the number of the token at each place of the most probable alignment that writes tokens (L,); -1: a blank.

        v_t(s) = p_t(z_s) max(v_{t-1}(s), v_{t-1}(s - 1), v_{t-1}(s - 2))    z = - y_1 - y_2 … y_L -

    Two states back only over a blank between different tokens. Of equals, the one that stays. log_p is (S, V).

    >>> log_p = np.log([[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    >>> best_alignment(log_p, np.array([1, 2]), blank=0).tolist()
    [0, -1, 1]
    """
    places, count = len(log_p), len(tokens)
    states = np.full(2 * count + 1, blank, np.int64)
    states[1::2] = tokens
    jumps = np.zeros(len(states), np.bool_)
    jumps[3::2] = tokens[1:] != tokens[:-1]
    scores = log_p[:, states].astype(np.float64)
    best = np.full(len(states) + 2, -np.inf)  # two more, from which nothing comes
    best[2] = 0.0  # before the first place: at the first blank, from which one may go to the first token
    steps = []
    for t in range(places):
        ways = np.stack([best[2:], best[1:-1], np.where(jumps, best[:-2], -np.inf)])
        value = ways.max(0)
        if t == 0:
            value[2:] = -np.inf
        best[2:] = value + scores[t]
        steps.append(ways.argmax(0))
    path = np.full(places, -1, np.int64)
    if not places or best[-2:].max() == -np.inf:
        return path
    at = len(states) - 1 if not count or best[-1] >= best[-2] else len(states) - 2
    for t in reversed(range(places)):
        path[t] = at // 2 if at % 2 else -1
        at -= int(steps[t][at])
    return path


def aligned(found: Hypothesis, log_p: NDArray[np.floating], *, blank: int, expand: int) -> Hypothesis:
    """A hypothesis with its best alignment, (tokens without </s>, places): p where one stands, else 0. log_p is that of
    the places (S, V), `expand` of which are one."""
    tokens = np.array(found.tokens[:-1] if found.ended else found.tokens, np.int64)
    stands = best_alignment(log_p, tokens, blank) == np.arange(len(tokens))[:, None]  # (L, S)
    p = np.where(stands, np.exp(log_p[:, tokens].T), 0.0)
    return found._replace(watched=p.reshape(len(p), -1, expand).max(2, initial=0.0) if expand > 1 else p)
