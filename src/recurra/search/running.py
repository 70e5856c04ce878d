"""Steps of a search on their way: what may come next in each row, and how the rows go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from recurra.search.search import Step, selected


class Scored(NamedTuple):
    """How good each token is as the next of N rows, (N, V)."""

    values: Tensor
    is_log_p: bool = True  # False: scores, whose softmax is p

    def log_p(self) -> Tensor:
        """(N, V)"""
        if self.is_log_p:
            return self.values
        return (self.values.float() if self.values.element_size() < 4 else self.values).log_softmax(1)


class Notes(NamedTuple):
    """Where N rows are written down, token by token: what a step adds, and whether a row goes on."""

    step: Tensor  # (1,): how many steps were done before the first of these
    at: int  # how many of these were done
    chosen: Tensor  # (N, L)
    gained: Tensor  # (N, L), float64: log p
    alive: Tensor  # (N,), which is changed
    limits: Tensor  # (N,): the most tokens of each
    is_end: Tensor  # (V,)


class Run(Protocol):
    """A model that goes on step by step."""

    def scores(self) -> Scored:
        """What may come after the present token of each row. They may be overwritten by the next."""

    def go_on(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """Each row goes on with a token (N,), after the row that it continues, (N,); None: after itself."""

    def take(self, scored: Scored, closed: Tensor | None, notes: Notes) -> Tensor | None:
        """Go on with the most probable token of each row (N,), written down where `notes` say, all at once; None where
        that is left to others. What is `closed` (V,) may not be chosen."""

    def moving(self) -> Any:
        """The state after the last step, or of the rows that went on from it."""


class StepByStep:
    """A step that is called again and again."""

    def __init__(self, step: Step[Any, Any], tokens: Tensor, moving: Any, fixed: Any) -> None:
        self.step, self.tokens, self.state, self.fixed = step, tokens, moving, fixed

    def scores(self) -> Scored:
        log_p, self.state = self.step(self.tokens, self.state, self.fixed)
        return Scored(log_p)

    def go_on(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        self.tokens = tokens
        self.state = self.state if rows is None else selected(self.state, rows)

    def take(self, scored: Scored, closed: Tensor | None, notes: Notes) -> Tensor | None:
        return None

    def moving(self) -> Any:
        return self.state


def begun(step: Step[Any, Any], tokens: Tensor, moving: Any, fixed: Any) -> Run:
    """A run from tokens (N,) on: the step's own, if it has a method `begun` that returns one, or step by step."""
    make: Callable[[Tensor, Any, Any], Run | None] | None = getattr(step, "begun", None)
    found = None if make is None else make(tokens, moving, fixed)
    return StepByStep(step, tokens, moving, fixed) if found is None else found
