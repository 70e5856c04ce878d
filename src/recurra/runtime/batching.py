"""Requests to one model: they wait in a bounded queue, and a thread answers as many together as are there.

Nobody waits for company: a request that finds the model free is computed at once. While it is computed, others arrive,
and they are the next batch. Clients that were answered together tend to ask again together, so after a batch of
several the thread waits for them for a moment (`GATHER`), which is short beside the batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from recurra.errors import RecurraError

Asked = TypeVar("Asked")
Found = TypeVar("Found")

COMPUTING = "computing an answer"
"""The name of each thread while it does."""

IDLE = "waiting for a request"

LINGER = 10.0
"""Seconds after which a thread that no one needs ends; the next request starts another."""

GATHER = 0.1
"""The part of a batch's time that is waited for those who were answered by it to ask again."""

PACES = 9
"""Batches of which the middle time for an input is taken."""

MOST_GATHER = 0.02
"""Seconds."""


class Busy(RecurraError):
    """Raised where a request is refused before anything is computed: those before it take all the time there is."""


class Late(RecurraError):
    """Raised where the time of a request is over before it is answered."""


class Waiting(Generic[Asked, Found]):
    """A request in the queue, and what becomes of it."""

    def __init__(self, asked: Asked, size: int, deadline: float) -> None:
        self.asked, self.size, self.deadline = asked, size, deadline
        self.future: Future[Found] = Future()
        self.since = time.monotonic()
        self.waited: float | None = None  # seconds, until it was computed
        self.together = 0  # requests of its batch


class Worker(Generic[Asked, Found]):
    """The queue of one model, and the thread that empties it.

    `compute` takes what some requests ask, and gives parts of it as they are ready, in any order: the numbers of some
    requests with their answers, or with the RecurraErrors that are their answers. Whatever else it raises is that of
    one request: those without an answer are computed again, each alone.

    >>> worker = Worker(lambda asked: [[(number, 2 * each) for number, each in enumerate(asked)]])
    >>> worker.ask(21, seconds=10).future.result()
    42
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Asked]], Iterable[Sequence[tuple[int, Found | RecurraError]]]],
        *,
        together: int = 64,
        queued: int = 256,
    ) -> None:
        self.compute = compute
        self.together = together  # inputs of a batch, but at least one request
        self.queued = queued  # requests
        self._queue: deque[Waiting[Asked, Found]] = deque()
        self._changed = threading.Condition()
        self._is_running = False
        self._last = (0, 0.0)  # requests of the last batch, and its seconds
        self._paces: deque[float] = deque(maxlen=PACES)  # seconds for an input, in batches of late

    def __len__(self) -> int:
        return len(self._queue)

    def ask(self, asked: Asked, *, size: int = 1, seconds: float) -> Waiting[Asked, Found]:
        """Put a request of so many inputs into the queue, to be answered within some seconds; Busy if that is vain.

        What is no request of a client has the size 0, as its time says nothing about theirs.
        """
        with self._changed:
            if len(self._queue) >= self.queued:
                raise Busy("too many requests are waiting for this run: try again later.")
            ahead = sum(each.size for each in self._queue) * self._pace()
            if ahead > seconds:
                raise Busy(
                    f"the requests before this one take about {ahead:.1f} seconds, and it must be answered within "
                    f"{seconds:g}: try again later."
                )
            waiting: Waiting[Asked, Found] = Waiting(asked, size, time.monotonic() + seconds)
            self._queue.append(waiting)
            if self._is_running:
                self._changed.notify()
            else:
                self._is_running = True
                threading.Thread(target=self._work, name=IDLE, daemon=True).start()
        return waiting

    def _pace(self) -> float:
        """Seconds for an input; 0 until it is known. One that took long once does not count."""
        return sorted(self._paces)[PACES // 2] if len(self._paces) == PACES else 0.0

    def _work(self) -> None:
        thread = threading.current_thread()
        while batch := self._next():
            thread.name = COMPUTING
            began, count = time.monotonic(), len(batch)
            for each in batch:
                each.waited, each.together = began - each.since, count
            self._answer(batch)
            taken, size = time.monotonic() - began, sum(each.size for each in batch)
            self._last = (count, taken)
            if size:
                self._paces.append(taken / size)
            thread.name = IDLE
            del batch  # its answers are not kept until the next request

    def _next(self) -> list[Waiting[Asked, Found]]:
        """The requests to compute now; none where no one has asked for long, and the thread is to end."""
        with self._changed:
            self._gather()
            while True:
                batch = self._taken()
                if batch:
                    return batch
                if not self._changed.wait_for(lambda: self._queue, LINGER):
                    self._is_running = False
                    return []

    def _gather(self) -> None:
        count, taken = self._last
        if count > 1 and len(self._queue) < count:
            self._changed.wait_for(lambda: len(self._queue) >= count, min(GATHER * taken, MOST_GATHER))

    def _taken(self) -> list[Waiting[Asked, Found]]:
        batch: list[Waiting[Asked, Found]] = []
        size, now = 0, time.monotonic()
        while self._queue and (not batch or size + self._queue[0].size <= self.together):
            each = self._queue.popleft()
            if not each.future.set_running_or_notify_cancel():  # no one waits for it any longer
                continue
            if each.deadline <= now:
                each.future.set_exception(Late("the request waited too long to be computed: try again later."))
                continue
            batch.append(each)
            size += each.size
        return batch

    def _answer(self, batch: Sequence[Waiting[Asked, Found]]) -> None:
        try:
            for part in self.compute([each.asked for each in batch]):
                for number, found in part:
                    tell(batch[number].future, found)
            if not all(each.future.done() for each in batch):
                raise RuntimeError("a request was not answered")
        except BaseException as error:
            left = [each for each in batch if not each.future.done()]
            if len(batch) > 1:
                for each in left:
                    self._answer([each])
            elif left:
                tell(left[0].future, error)


def tell(future: Future[Any], found: object) -> None:
    """End what is waited for: with an answer, or with what has gone wrong."""
    if isinstance(found, StopIteration):  # which no coroutine can be told
        wrapped = RuntimeError("the computation raised StopIteration")
        wrapped.__cause__ = found
        found = wrapped
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(found)


class Mailbox(Generic[Found]):
    """Answers of worker threads for coroutines: many are handed over at once, as waking a loop takes long."""

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Found], Future[Found]]] = deque()
        self._is_woken = False

    async def received(self, waiting: Waiting[Any, Found]) -> Found:
        """The answer to a request; whoever cancels it cancels the request."""
        loop = asyncio.get_running_loop()
        here: asyncio.Future[Found] = loop.create_future()

        def done(there: Future[Found]) -> None:
            self._done.append((here, there))
            if not self._is_woken:
                self._is_woken = True
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._hand_over)

        waiting.future.add_done_callback(done)
        try:
            return await here
        finally:
            waiting.future.cancel()

    def _hand_over(self) -> None:
        self._is_woken = False
        while self._done:
            here, there = self._done.popleft()
            if here.done():
                continue
            if there.cancelled():
                here.cancel()
            elif error := there.exception():
                here.set_exception(error)
            else:
                here.set_result(there.result())
