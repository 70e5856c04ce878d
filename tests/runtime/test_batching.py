"""Requests to one model: together where they can be, in time or not at all, and each with its own mistakes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from recurra.errors import DataError, RecurraError
from recurra.runtime.batching import Busy, Late, Mailbox, Worker


class Model:
    """Doubles numbers; the first batch waits until it may end."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.has_begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, asked: Sequence[int]) -> Iterator[list[tuple[int, int | RecurraError]]]:
        self.batches.append(list(asked))
        self.has_begun.set()
        assert self.may_end.wait(10)
        for number, each in enumerate(asked):
            if each == 13:
                raise ZeroDivisionError
            yield [(number, DataError("negative") if each < 0 else 2 * each)]


@pytest.fixture
def model() -> Model:
    return Model()


def test_what_arrives_while_the_model_computes_is_computed_together(model: Model) -> None:
    worker = Worker(model, together=3)
    first = worker.ask(1, seconds=10)
    assert model.has_begun.wait(10)
    rest = [worker.ask(number, seconds=10) for number in range(2, 7)]
    model.may_end.set()
    assert [each.future.result(10) for each in (first, *rest)] == [2, 4, 6, 8, 10, 12]
    assert model.batches == [[1], [2, 3, 4], [5, 6]]
    assert [each.together for each in (first, *rest)] == [1, 3, 3, 3, 2, 2]


def test_inputs_are_counted_and_a_request_of_more_than_fit_is_computed_alone(model: Model) -> None:
    worker = Worker(model, together=4)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    rest = [worker.ask(number, size=size, seconds=10) for number, size in ((1, 3), (2, 2), (3, 2), (4, 100), (5, 1))]
    model.may_end.set()
    assert [each.future.result(10) for each in rest] == [2, 4, 6, 8, 10]
    assert model.batches == [[0], [1], [2, 3], [4], [5]]


def test_a_full_queue_refuses_at_once(model: Model) -> None:
    worker = Worker(model, queued=2)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    waiting = [worker.ask(number, seconds=10) for number in (1, 2)]
    with pytest.raises(Busy, match="too many requests are waiting for this run: try again later"):
        worker.ask(3, seconds=10)
    model.may_end.set()
    assert [each.future.result(10) for each in waiting] == [2, 4]


def test_a_request_is_refused_where_those_before_it_take_longer_than_it_has(model: Model) -> None:
    worker = Worker(model, together=1)
    worker._paces.extend([3.0] * 9)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    worker.ask(1, seconds=10)
    with pytest.raises(Busy, match=r"take about 3\.0 seconds, and it must be answered within 2: try again later"):
        worker.ask(2, seconds=2)
    last = worker.ask(3, seconds=4)
    model.may_end.set()
    assert last.future.result(10) == 6


def test_what_took_long_once_does_not_make_requests_vain(model: Model) -> None:
    worker = Worker(model, together=1)
    worker._paces.extend([*[0.001] * 5, *[60.0] * 4])
    model.may_end.set()
    waiting = [worker.ask(number, seconds=5) for number in range(10)]
    assert [each.future.result(10) for each in waiting] == [2 * number for number in range(10)]


def test_a_request_whose_time_is_over_is_not_computed(model: Model) -> None:
    worker = Worker(model)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    late, other = worker.ask(1, seconds=0.01), worker.ask(2, seconds=10)
    time.sleep(0.02)
    model.may_end.set()
    with pytest.raises(Late):
        late.future.result(10)
    assert other.future.result(10) == 4
    assert model.batches == [[0], [2]]


def test_a_request_that_no_one_waits_for_is_not_computed(model: Model) -> None:
    worker = Worker(model)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    gone, other = worker.ask(1, seconds=10), worker.ask(2, seconds=10)
    assert gone.future.cancel()
    model.may_end.set()
    assert other.future.result(10) == 4
    assert model.batches == [[0], [2]]


def test_a_mistake_is_that_of_one_request_and_others_are_answered(model: Model) -> None:
    worker = Worker(model)
    worker.ask(0, seconds=10)
    assert model.has_begun.wait(10)
    good, refused, broken, last = (worker.ask(number, seconds=10) for number in (1, -1, 13, 2))
    model.may_end.set()
    assert (good.future.result(10), last.future.result(10)) == (2, 4)
    with pytest.raises(DataError, match="negative"):
        refused.future.result(10)
    with pytest.raises(ZeroDivisionError):
        broken.future.result(10)
    assert model.batches == [[0], [1, -1, 13, 2], [13], [2]]


def test_a_request_that_the_model_forgets_is_told_so() -> None:
    def forgets(asked: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
        yield [(number, each) for number, each in enumerate(asked) if each > 0]

    worker = Worker(forgets)
    with pytest.raises(RuntimeError, match="a request was not answered"):
        worker.ask(0, seconds=10).future.result(10)


def test_a_thread_that_no_one_needs_ends_and_another_one_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.runtime.batching.LINGER", 0.01)

    def who(asked: Sequence[int]) -> Iterator[list[tuple[int, threading.Thread]]]:
        yield [(number, threading.current_thread()) for number, _ in enumerate(asked)]

    worker = Worker(who)
    first = worker.ask(0, seconds=10).future.result(10)
    first.join(10)
    assert not first.is_alive()
    assert worker.ask(0, seconds=10).future.result(10) is not first


def test_clients_that_were_answered_together_are_awaited_for_a_moment() -> None:
    """Each asks again when it is answered; without the moment, batches of one and of seven would take turns."""
    batches = []

    def compute(asked: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
        batches.append(len(asked))
        time.sleep(0.05)
        yield list(enumerate(asked))

    worker = Worker(compute)

    def client() -> None:
        for number in range(6):
            worker.ask(number, seconds=10).future.result(10)

    threads = [threading.Thread(target=client) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(batches) == 48
    assert len(batches) <= 9


def test_answers_reach_the_coroutines_that_wait_for_them_and_a_cancelled_one_cancels_its_request(model: Model) -> None:
    worker = Worker(model)

    async def ask() -> list[int | BaseException]:
        box = Mailbox[int]()
        first = worker.ask(1, seconds=10)
        await asyncio.to_thread(model.has_begun.wait, 10)
        every = [first, *(worker.ask(number, seconds=10) for number in (2, -1, 3))]
        tasks = [asyncio.create_task(box.received(each)) for each in every]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        assert every[1].future.cancelled()
        model.may_end.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, cancelled, refused, last = asyncio.run(ask())
    assert (first, last) == (2, 6)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(refused, DataError)
