"""The runs that are served, the queues of each, and what is measured of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import partial
from typing import TypeAlias

from recurra.errors import RecurraError
from recurra.runtime.batching import Waiting, Worker
from recurra.runtime.hosted import Answered, Hosted, Question, siblings
from recurra.runtime.limits import Limits
from recurra.runtime.metrics import Gauge, Metrics
from recurra.runtime.streams import Stream, Streams
from recurra.runtime.writing import Writing
from recurra.text.json_file import json_text

Asked: TypeAlias = "Question | Writing | Callable[[Hosted], object]"
"""A question or a text to write, which may be answered with others, or anything else that a run computes alone."""

Part: TypeAlias = "list[tuple[int, bytes | RecurraError]]"
"""Numbers of requests, each with its answer as JSON, or with what is wrong with it."""


class Service:
    """Runs by their names. A run can be replaced while it is asked: whoever has asked before is answered by the old."""

    def __init__(self, runs: Mapping[str, Hosted], *, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.runs = dict(runs)
        self.siblings = siblings(self.runs)
        self.metrics = Metrics()
        self.metrics.gauges += [
            Gauge("recurra_ready", "Whether the first runs have been loaded.", lambda: [({}, float(self.is_ready))]),
            Gauge("recurra_queued_requests", "Requests that wait for a run.", self._queued),
        ]
        self.is_ready = True
        self._workers: dict[Hosted, dict[str, Worker[Asked, bytes]]] = {}
        self._streams: dict[Hosted, Streams] = {}
        self._changing = threading.Lock()

    def ask(
        self, name: str, way: str | Callable[[Hosted], str], asked: Asked, *, size: int = 1, seconds: float
    ) -> Waiting[Asked, bytes]:
        """Put what is asked into the queue of one way to use a run.

        The run that has the name at this moment says the way, and answers; one that it has replaced is asked no more,
        so that no two threads use the modules of one.
        """
        with self._changing:
            run = self.runs[name]
            worker = self._worker(run, way if isinstance(way, str) else way(run))
            return worker.ask(asked, size=size, seconds=seconds)

    def stream(self, name: str, asked: Writing, told: Callable[[str], None], *, seconds: float) -> Stream:
        """Write a text whose pieces are told as they come."""
        with self._changing:
            run = self.runs[name]
            streams = self._streams.setdefault(run, Streams(self.limits.streams))
            return streams.ask(partial(run.pieces, asked.prompt, asked.options), told, seconds=seconds)

    def replace(self, name: str, run: Hosted) -> None:
        """Let a run that is ready answer in place of that of the same name, which still answers who has asked it."""
        with self._changing:
            old, self.runs[name] = self.runs[name], run
            self._workers.pop(old, None)
            self._streams.pop(old, None)
        self.siblings = siblings(self.runs)

    def warm(self, run: Hosted) -> None:
        """Make a run ready, while others, and itself, may be asked."""
        with self._changing:
            worker = self._worker(run, "answers")
        run.warm(lambda act: worker.ask(lambda _: act(), size=0, seconds=WARMING).future.result())

    def forget(self, run: Hosted) -> None:
        """Give up a run that was to be made ready."""
        with self._changing:
            self._workers.pop(run, None)

    def _worker(self, run: Hosted, way: str) -> Worker[Asked, bytes]:
        of_run = self._workers.setdefault(run, {})
        if way not in of_run:
            together = min(self.limits.together, run.most_inputs)
            of_run[way] = Worker(partial(computed, run), together=together, queued=self.limits.queued)
        return of_run[way]

    def _queued(self) -> Iterator[tuple[dict[str, str], float]]:
        with self._changing:  # another thread may add a queue
            queues: dict[str, list[Sized]] = {
                name: [*self._workers.get(run, {}).values(), *([self._streams[run]] if run in self._streams else [])]
                for name, run in self.runs.items()
            }
        for name, waiting in queues.items():
            yield {"run": name}, sum(map(len, waiting))


WARMING = 3600.0
"""Seconds: a model may take long to be loaded."""


def computed(run: Hosted, asked: Sequence[Asked]) -> Iterator[Part]:
    """The numbers of requests with their answers as JSON, or the errors that say what is wrong with them."""
    questions = {number: each for number, each in enumerate(asked) if isinstance(each, Question)}
    writings = {number: each for number, each in enumerate(asked) if isinstance(each, Writing)}
    if questions:
        yield from _of(questions, run.predict_several(list(questions.values())))
    if writings:
        yield from _of(writings, run.generate_several(list(writings.values())))
    for number, each in enumerate(asked):
        if not isinstance(each, Question | Writing):
            try:
                yield [(number, rendered(each(run)))]
            except RecurraError as error:
                yield [(number, error)]


def _of(
    asked: Mapping[int, object], parts: Iterable[list[Answered]]
) -> Iterator[list[tuple[int, bytes | RecurraError]]]:
    """Parts of answers as JSON, by the numbers that their requests have among all."""
    numbers = list(asked)
    for part in parts:
        yield [(numbers[place], one if isinstance(one, RecurraError) else rendered(one)) for place, one in part]


def rendered(found: object) -> bytes:
    """JSON; a number that is not finite is null."""
    return json_text(found, separators=(",", ":")).encode("utf-8", "replace")
