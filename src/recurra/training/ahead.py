"""Batches of the next steps, built by a thread while the present step is computed."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, final

import torch

from recurra.data.mixed import Mixed, line_of_old
from recurra.data.store import Encoded, Rows
from recurra.errors import TrainingError
from recurra.padding import pinned
from recurra.tasks.task import Recurring, Task

STEPS_AHEAD = 3
"""Steps whose batches are in memory before they are asked for."""

SLOW_SECONDS = 30.0
"""A batch that takes so long to build is told of."""

STUCK_SECONDS = 600.0
"""A batch that takes so long to build will not come."""

CLOSING_SECONDS = 2.0
"""At the end, so long the thread may finish what it is building."""

STEP_OF_WAITING = 0.1
"""Seconds after which a wait looks whether it is still wanted."""


class Part(NamedTuple):
    """One batch: its rows, and the same as tensors where they were built ahead."""

    rows: Sequence[Encoded]
    batch: Any = None
    recurring: Recurring | None = None  # the same batch, of a size that occurs again


class Ready(NamedTuple):
    """What one update reads."""

    epoch: int
    batch: int  # the number of its first batch in the epoch
    batches: Sequence[Any]  # all of the epoch
    parts: Sequence[Part]
    elements: int  # that this process reads


class Failed(NamedTuple):
    """What came instead of a step's batches."""

    error: Exception


@final
class Ahead:
    """The batches of one step after the other, from some place in an epoch on.

    What they hold depends on their place alone: a task that draws when it makes a batch, from torch's one generator,
    which the step uses too, has only its rows read ahead. What cannot be built ahead is left to the step, so that an
    error, or a lack of memory, arises there.

    share: the rows of each batch that are wanted, where other processes compute the others.
    device: for a GPU, the tensors go to memory from which it can copy while it computes.
    replays: also as batches of a size that occurs again, where the task says how.
    """

    def __init__(
        self,
        task: Task[Any, Any, Any],
        store: Any,
        *,
        epoch: int,
        batch: int,
        accumulate: int,
        epochs: int | None,
        device: torch.device,
        share: slice | None = None,
        replays: bool = False,
        say: Callable[[str], None],
    ) -> None:
        self._task, self._store, self._device, self._say = task, store, device, say
        self._share = share
        self._accumulate, self._epochs, self._replays = accumulate, epochs, replays
        self._doing = ""  # what the thread is busy with
        self._built: queue.Queue[Ready | Failed] = queue.Queue(STEPS_AHEAD)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, args=[epoch, batch], name="building batches", daemon=True)
        self._thread.start()

    def step(self, epoch: int, batch: int) -> Ready:
        """The batches of the step at this place, which follows on the one before."""
        found = self._next(f"epoch {epoch + 1}, batch {batch + 1}")
        if isinstance(found, Failed):
            raise found.error
        assert (found.epoch, found.batch) == (epoch, batch), f"{found[:2]} was built, but {epoch, batch} is trained"
        return found

    def close(self) -> None:
        """End the thread; one that is stuck dies with the process."""
        self._is_over.set()
        self._thread.join(CLOSING_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, place: str) -> Ready | Failed:
        began, is_told = time.monotonic(), False
        while True:
            is_alive = self._thread.is_alive()  # asked first: what it has left before its end is found
            with contextlib.suppress(queue.Empty):
                return self._built.get(timeout=STEP_OF_WAITING)
            waited = time.monotonic() - began
            if waited >= SLOW_SECONDS and not is_told:
                self._say(f"still waiting for the data of {place} after {waited:.0f} s ({self._doing})")
                is_told = True
            if waited >= STUCK_SECONDS or not is_alive:
                raise TrainingError(
                    f"no data for {place} after {waited:.0f} s: the thread that builds batches is stuck "
                    f"({self._doing}). Look at the disk the data are on, and at Task.chosen and Task.batch if the "
                    f"task is your own; then resume the run."
                )

    # In the thread

    @property
    def _pins(self) -> bool:
        return self._device.type == "cuda"

    def _work(self, epoch: int, batch: int) -> None:
        try:
            with torch.cuda.device(self._device) if self._pins else contextlib.nullcontext():
                for ready in self._steps(epoch, batch):
                    if not self._put(ready):
                        return
        except Exception as error:
            self._put(Failed(error))

    def _put(self, found: Ready | Failed) -> bool:
        """Whether it was taken; False: nothing more is wanted."""
        self._doing = "waiting"
        while not self._is_over.is_set():
            with contextlib.suppress(queue.Full):
                self._built.put(found, timeout=STEP_OF_WAITING)
                return True
        return False

    def _steps(self, epoch: int, batch: int) -> Iterator[Ready]:
        while self._epochs is None or epoch < self._epochs:
            self._doing = f"ordering the examples of epoch {epoch + 1}"
            rows = rows_of_epoch(self._task, self._store, epoch)
            batches = self._task.batches(rows, epoch)
            for first in range(batch, len(batches), self._accumulate):
                parts = [self._part(rows, each) for each in batches[first : first + self._accumulate]]
                elements = sum(int(self._task.lengths(Rows.of(part.rows)).sum()) for part in parts)
                yield Ready(epoch, first, batches, parts, elements)
            epoch, batch = epoch + 1, 0

    def _part(self, store: Any, numbers: Any) -> Part:
        self._doing = "reading examples"
        task, share = self._task, self._share
        rows = task.chosen(store, numbers) if share is None else task.share(store, numbers, share)
        if may_draw(task) or not len(rows):
            return Part(rows)
        self._doing = f"making a batch of {len(rows):,} examples, the first is {place_of(self._task, rows[0])}"
        try:
            batch = self._task.batch(rows)
            if not self._pins:
                return Part(rows, batch)
            found = self._task.recurring(batch) if self._replays else None
            found = None if found is None else found._replace(batch=pinned(found.batch))
            return Part(rows, pinned(batch), found)
        except Exception:  # the step will see the same, and say it
            return Part(rows)


def rows_of_epoch(task: Task[Any, Any, Any], store: Any, epoch: int) -> Any:
    """What an epoch reads: the store, and of old data what is seen again in this epoch."""
    return task.replayed(store, epoch) if isinstance(store, Mixed) else store


def place_of(task: Task[Any, Any, Any], row: Encoded) -> str:
    """file:line of a row of training, or that it is one of old data."""
    return task.place(row) if (line := line_of_old(row)) is None else f"line {line} of the old data"


def may_draw(task: Task[Any, Any, Any]) -> bool:
    """Whether making a batch may draw from torch's generator: the task says so, or overrides `batch` in silence."""

    def definer(name: str) -> type:
        return next(kind for kind in type(task).__mro__ if name in vars(kind))

    return not issubclass(definer("draws_in_batch"), definer("batch")) or task.draws_in_batch
