"""What a search knows of a model: a step. And the way along one, token by token."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from recurra.errors import ConfigError, DataError

Moving = TypeVar("Moving")
Fixed = TypeVar("Fixed")

Step: TypeAlias = Callable[[Tensor, Moving, Fixed], tuple[Tensor, Moving]]
"""tokens (B,), moving, fixed -> log p of what comes next (B, V), moving.

Moving and Fixed are tensors, or tuples of them however deep, batch first on every leaf. Moving is what changes from
step to step, such as the states of a network, and has a row per hypothesis; Fixed is what does not, such as a source
that is attended to, and has a row per sentence.
"""

Choose: TypeAlias = Callable[[Tensor, list[int]], Tensor]
"""log p (B, V) and the numbers of the rows -> a token for each row, (B,)."""


class Chosen(NamedTuple):
    """What one step has added, for each row that went on."""

    rows: list[int]
    tokens: list[int]
    log_probabilities: list[float]
    ended: list[bool]


class Hypothesis(NamedTuple):
    """A sequence that was found."""

    tokens: list[int]
    log_probability: float
    ended: bool  # by a token that ends it; false where it was cut off at the length


def followed(
    step: Step[Moving, Fixed],
    choose: Choose,
    tokens: Tensor,
    moving: Moving,
    fixed: Fixed,
    *,
    length: int,
    is_end: Callable[[int, int], bool],
) -> Iterator[Chosen]:
    """One token after the other, `length` at most, beginning after `tokens` (B,); rows that have ended are left out.

    is_end(row, token) says whether a token ends its row; it is asked once for each, in order.
    """
    check_count(length, "length")
    rows = list(range(len(tokens)))
    for _ in range(length):
        with torch.no_grad():  # not around the yield: between two tokens the caller is on its own
            log_p, moving = step(tokens, moving, fixed)
            tokens = choose(log_p, rows)
            gained: list[float] = log_p.gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()
        numbers: list[int] = tokens.tolist()
        if not all(map(math.isfinite, gained)):
            raise DataError("the model gives no next token a probability: its numbers are NaN or out of range.")
        ended = [is_end(row, token) for row, token in zip(rows, numbers, strict=True)]
        yield Chosen(rows, numbers, gained, ended)
        if all(ended):
            return
        if any(ended):
            going = [place for place, is_over in enumerate(ended) if not is_over]
            rows = [rows[place] for place in going]
            tokens, moving, fixed = selected((tokens, moving, fixed), torch.tensor(going, device=tokens.device))


def collected(rows: int, steps: Iterable[Chosen]) -> list[Hypothesis]:
    """The whole sequence of each row."""
    tokens: list[list[int]] = [[] for _ in range(rows)]
    gained: list[list[float]] = [[] for _ in range(rows)]
    ended = [False] * rows
    for chosen in steps:
        for row, token, log_p, is_over in zip(*chosen, strict=True):
            tokens[row].append(token)
            gained[row].append(log_p)
            ended[row] = is_over
    return [Hypothesis(*each) for each in zip(tokens, map(math.fsum, gained), ended, strict=True)]


def selected(tree: Any, rows: Tensor) -> Any:
    """Some rows of every tensor in a tuple of tensors, however deep.

    >>> a, (b, nothing) = selected((torch.tensor([1, 2]), (torch.eye(2), None)), torch.tensor([1, 1, 0]))
    >>> a.tolist(), b.tolist(), nothing
    ([2, 2, 1], [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], None)
    """
    if isinstance(tree, Tensor):
        return tree.index_select(0, rows)
    if not isinstance(tree, tuple):
        return tree
    parts = [selected(part, rows) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def without(log_p: Tensor, banned: Iterable[int]) -> Tensor:
    """log p with -inf for tokens that may not be chosen."""
    ids = sorted(set(banned))
    if not ids:
        return log_p
    if len(ids) >= log_p.shape[1]:
        raise ConfigError("every token of the vocabulary is banned, so that nothing can be chosen.")
    return log_p.index_fill(1, torch.tensor(ids, device=log_p.device), -torch.inf)


def check_count(value: object, what: str) -> int:
    """A whole number of at least 1, or a ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, but is {value!r}.")
    return value
