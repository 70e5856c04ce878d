"""Scheduled sampling: what a model reads in training, the right token or value or its own."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from recurra.config.forcing import Forcing


class Forced(NamedTuple):
    """With chance p a model reads the right token or value, otherwise its own."""

    p: float | Tensor = 1.0  # a tensor on a GPU: one that may be another each time a recorded step is replayed
    unit: Literal["token", "sequence"] = "token"
    replacement: Literal["greedy", "sampled"] = "greedy"

    @classmethod
    def at(cls, forcing: Forcing, step: int, varying: Tensor | None = None) -> Forced:
        """How it is after so many updates; in a step that is replayed, `varying` holds p."""
        p = forcing.probability(step) if varying is None else varying[0]
        return cls(p, forcing.unit, forcing.replacement)

    @property
    def is_always(self) -> bool:
        """Whether only right tokens or values are read, so that all steps can be computed at once."""
        return not isinstance(self.p, Tensor) and self.p >= 1


ALWAYS = Forced()


class Coins:
    """The coins of a batch of so many rows, thrown for each token or once for a whole sequence."""

    def __init__(self, forced: Forced, rows: int, device: torch.device) -> None:
        self.forced, self.rows, self.device = forced, rows, device
        self.whole = self._thrown()

    def throw(self) -> Tensor:
        """(B,): whether each row reads what is right at the next step."""
        return self.whole if self.forced.unit == "sequence" else self._thrown()

    def _thrown(self) -> Tensor:
        return torch.rand(self.rows, device=self.device) < self.forced.p


def own_tokens(log_p: Tensor, forced: Forced) -> Tensor:
    """(N,): the most probable token of each row, or one that is drawn, by log-probabilities (N, V)."""
    return log_p.argmax(1) if forced.replacement == "greedy" else drawn(log_p.exp())


def drawn(p: Tensor) -> Tensor:
    """(N,): one place of each row, drawn by its probabilities (N, V), as torch.multinomial draws it.

    That checks the probabilities, for which a device has to be waited for. The largest of p / e, with e drawn from an
    exponential distribution, is at a place with the probability p.

    >>> drawn(torch.tensor([[0.0, 1.0, 0.0]])).tolist()
    [1]
    """
    return (p / torch.empty_like(p).exponential_()).argmax(1)
