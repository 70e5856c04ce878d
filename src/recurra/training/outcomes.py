"""What steps have found: losses and norms on their way from the device, told of when they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, final

import torch
from torch import Tensor

from recurra.tasks.task import Carried
from recurra.training.ahead import Part

MOST_UNSEEN = 8
"""So many steps are computed at most before the first of them is looked at."""


class Attempt(NamedTuple):
    """One batch of a step, with all that its loss depends on: it can be computed again."""

    part: Part
    epoch: int
    step: int  # updates made before it
    number: int  # in its step
    carried: Carried  # what the batch before left
    progress: float  # the share of training that is done


class Copied(Protocol):
    """Whether a copy from the device is done; torch.cuda.Event is one."""

    def query(self) -> bool: ...

    def synchronize(self) -> None: ...


class Arriving(NamedTuple):
    """Numbers on the CPU that a device is still writing."""

    numbers: Tensor
    copied: Copied | None  # None: they are there


Copying: TypeAlias = Callable[[Tensor], Arriving]


def arriving(numbers: Tensor) -> Arriving:
    """Begin to copy numbers to the CPU, without waiting for the device.

    >>> arriving(torch.tensor([1.5])).numbers.tolist()
    [1.5]
    """
    if numbers.device.type != "cuda":
        return Arriving(numbers.cpu(), None)
    found, copied = numbers.to("cpu", non_blocking=True), torch.cuda.Event()
    copied.record()
    return Arriving(found, copied)


class Outcome(NamedTuple):
    """A step that was computed, and what is to be told of it."""

    step: int
    epoch: float
    learning_rate: float
    elements: int  # read
    tokens_per_second: float
    seconds: float
    logged: Mapping[str, float]  # what the task wants in the log
    is_logged: bool
    labels: int
    attempts: Sequence[Attempt]  # () where nothing was labelled
    found: Arriving  # the loss of each attempt, and the norm of the gradient

    @property
    def losses(self) -> list[float]:
        """Of each attempt."""
        losses: list[float] = self.found.numbers[:-1].tolist()
        return losses

    @property
    def loss(self) -> float:
        """Per label."""
        return sum(self.losses) / self.labels if self.labels else float("nan")

    @property
    def norm(self) -> float:
        """Of the gradient."""
        return float(self.found.numbers[-1])


@final
class Outcomes:
    """Steps that were not told of yet, in their order."""

    def __init__(self, copying: Copying = arriving) -> None:
        self.copying = copying
        self._unseen: deque[Outcome] = deque()

    def add(self, outcome: Outcome) -> None:
        self._unseen.append(outcome)

    def seen(self, *, every: bool = False) -> Iterator[Outcome]:
        """Those whose numbers have arrived, once each; those that are late, or with `every` all, are waited for."""
        while self._unseen:
            copied = self._unseen[0].found.copied
            if copied is not None and not copied.query():
                if not every and len(self._unseen) <= MOST_UNSEEN:
                    return
                copied.synchronize()
            yield self._unseen.popleft()
