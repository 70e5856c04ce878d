"""Always the most probable token."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recurra.search.arrays import Array
from recurra.search.rules import NONE, Law, Rules
from recurra.search.search import Fixed, Hypothesis, Moving, Step, Watch, collected, followed, lengths_of


def greedy(
    step: Step[Moving, Fixed],
    tokens: Array,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int | Sequence[int],
    ends: Collection[int] = (),
    rules: Rules = NONE,
    length_penalty: float = 0.0,
    watch: Watch[Moving] | None = None,
    coverage_penalty: float = 0.0,
    places: Array | None = None,
) -> list[Hypothesis]:
    """y_t = argmax_w p(w | y_1 … y_{t-1}), up to a token in `ends` or to `length`; of equals, the lowest id.

    Scores, `watch` and `places` are those of `beam`. A forced token is put off until nothing else is allowed, which
    rarely reads well: a beam looks for a better place.

    >>> import torch
    >>> def count(tokens, moving, fixed):                       # after 1 comes 2, after 2 comes 3, …
    ...     return torch.eye(5)[(tokens + 1) % 5].log_softmax(1), moving
    >>> [found] = greedy(count, torch.tensor([0]), (), (), length=9, ends=[4])
    >>> found.tokens, found.ended
    ([1, 2, 3, 4], True)
    """

    lengths = lengths_of(length, len(tokens))
    steps = followed(
        step,
        lambda log_p, _: log_p.argmax(axis=1),
        tokens,
        moving,
        fixed,
        length=lengths,
        is_end=lambda _, token: token in ends,
        law=Law(rules, lengths, ends),
        watch=watch,
    )
    return collected(
        len(tokens), steps, length_penalty=length_penalty, coverage_penalty=coverage_penalty, places=places
    )
