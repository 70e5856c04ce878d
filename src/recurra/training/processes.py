"""Several processes that train one model: what each computes, what they add up, and who writes.

A batch is shared out by its rows: process r of n computes the rows r, r + n, r + 2n, …. The losses, the numbers of
labels and the gradients are sums over rows, so they are added up over all processes before anything is divided, and all
processes then make the same update of the same weights:

    gradient = Σ_r (gradient of the summed loss of process r) / Σ_r labels of process r

The first process (rank 0) writes: checkpoints, log, report. It alone validates, while the others wait for what it says.
All else is computed by each process from what all of them know.

torchrun, or recurra.training.launching, starts the processes and says in the environment which one each is.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final

from recurra.errors import TrainingError
from recurra.training.launching import Place

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from recurra.tasks.task import Carried

Made = TypeVar("Made")


class LostError(TrainingError):
    """Another process has ended: that one knows why."""


class Sums(NamedTuple):
    """What the batches of a step add up to, in one process or in all."""

    labels: int
    rows: int
    weights: float  # by which the learning rate is multiplied, one of each batch
    batches: int  # that have labels
    elements: int  # read
    first: int  # what the gradients were divided by
    loss: Tensor
    seconds: float  # of the training so far, by the clock of the first process
    is_asked: bool  # to stop


class Processes(ABC):
    """The processes that train one model, of which this is one. One process alone has nobody to ask or to tell."""

    rank: int
    size: int
    local_rank: int  # among those on this machine
    local_size: int

    @property
    def is_writer(self) -> bool:
        """Whether this process writes the run folder, and says on the terminal what there is to say."""
        return self.rank == 0

    @property
    def is_one(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    @property
    def share(self) -> slice:
        """The rows of each batch that this process computes.

        >>> OneProcess().share
        slice(0, None, 1)
        """
        return slice(self.rank, None, self.size)

    @abstractmethod
    def meet(self, device: torch.device, what: Mapping[str, object]) -> None:
        """Begin to train on a device, when all processes are there; they must train the same with the same data."""

    @abstractmethod
    def said_by_writer(self, said: Callable[[], object]) -> Any:
        """What the first process says, as JSON has it; the others wait for that, however long it takes."""

    def after_writer(self, make: Callable[[], Made]) -> Made:
        """What is made by the first process, and then by the others, who find what that one has left in the cache."""
        found = [make()] if self.is_writer else []
        self.said_by_writer(lambda: None)
        return found[0] if found else make()

    @abstractmethod
    def same_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Give tensors the values that they have in the first process."""

    @abstractmethod
    def check_same(self, tensors: Sequence[Tensor]) -> None:
        """Refuse to go on where tensors differ between processes."""

    @abstractmethod
    def summed(self, sums: Sums, parameters: Sequence[Tensor]) -> Sums:
        """The sums of all processes; the gradients of the parameters become those of all."""

    @abstractmethod
    def averaged(self, carried: Carried, rows: int) -> Carried:
        """What the batch as a whole leaves to the next, as a mean over processes that read so many rows each."""

    @abstractmethod
    def together(self, carried: Carried) -> Carried:
        """Tensors with a row for each row of a batch, of the rows of all processes."""

    @abstractmethod
    def first_said(self, said: str | None) -> str | None:
        """What the first of the processes says that says anything."""


@final
class OneProcess(Processes):
    """The usual case: this process alone."""

    rank, size, local_rank, local_size = 0, 1, 0, 1

    def meet(self, device: torch.device, what: Mapping[str, object]) -> None:
        return

    def said_by_writer(self, said: Callable[[], object]) -> Any:
        return said()

    def same_tensors(self, tensors: Sequence[Tensor]) -> None:
        return

    def check_same(self, tensors: Sequence[Tensor]) -> None:
        return

    def summed(self, sums: Sums, parameters: Sequence[Tensor]) -> Sums:
        return sums

    def averaged(self, carried: Carried, rows: int) -> Carried:
        return carried

    def together(self, carried: Carried) -> Carried:
        return carried

    def first_said(self, said: str | None) -> str | None:
        return said


@contextlib.contextmanager
def joined(place: Place | None) -> Iterator[Processes]:
    """The processes that were started together with this one; None: there are no others."""
    if place is None:
        yield OneProcess()
        return
    from recurra.training.several_processes import SeveralProcesses

    processes = SeveralProcesses(place)
    yield processes
    processes.leave()
