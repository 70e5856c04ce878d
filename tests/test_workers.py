"""Worker processes: results in order, mistakes in words, and no process that outlives its work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from recurra.errors import DataError, WorkerError
from recurra.workers import AHEAD, Crew


def slow_square() -> Callable[[int], int]:
    def square(number: int) -> int:
        time.sleep(0.02 * (number % 3))  # so that later jobs are done first
        return number * number

    return square


def process_number() -> Callable[[Any], int]:
    return lambda _: os.getpid()


def refusing() -> Callable[[str], str]:
    def refuse(job: str) -> str:
        if job == "bad":
            raise DataError("a.tsv:3: this row is bad.")
        if job == "bug":
            raise ZeroDivisionError("a bug")
        print("what is printed is no result")
        return job

    return refuse


def dying() -> Callable[[int], int]:
    def die(job: int) -> int:
        if job == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return job

    return die


def test_results_come_in_the_order_of_their_jobs_whichever_is_done_first() -> None:
    with Crew(2, slow_square) as crew:
        assert list(crew.map(range(12))) == [number * number for number in range(12)]


def test_jobs_are_taken_when_there_will_soon_be_a_worker_for_them() -> None:
    taken = 0

    def jobs() -> Any:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    with Crew(1, slow_square) as crew:
        results = crew.map(jobs())
        next(results)
        assert taken <= AHEAD + 1


def test_what_a_worker_raises_is_raised_here_and_the_worker_goes_on() -> None:
    with Crew(1, refusing) as crew:
        assert list(crew.map(["good"])) == ["good"]
        with pytest.raises(DataError, match=r"^a\.tsv:3: this row is bad\.$"):
            list(crew.map(["bad"]))
        with pytest.raises(RuntimeError, match="ZeroDivisionError: a bug"):
            list(crew.map(["bug"]))
        assert list(crew.map(["good", "again"])) == ["good", "again"]


def test_a_worker_that_is_killed_is_told_of_in_one_sentence() -> None:
    with (
        Crew(1, dying) as crew,
        pytest.raises(WorkerError, match=r"^worker process \d+ ended before its work was done \(killed by the system"),
    ):
        list(crew.map(range(5)))


def test_what_cannot_be_made_in_a_worker_is_raised_with_the_first_job() -> None:
    with Crew(1, partial(_refused, "no model")) as crew, pytest.raises(DataError, match="no model"):
        list(crew.map([1]))


def _refused(why: str) -> Callable[[int], int]:
    raise DataError(why)


def test_a_crew_ends_its_processes_whatever_they_are_doing() -> None:
    with Crew(2, process_number) as crew:
        numbers = set(crew.map(range(20)))
    assert len(numbers) <= 2
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to see what a killed process has left")
def test_workers_end_when_the_process_that_asked_them_is_killed() -> None:
    script = (
        "import time; from functools import partial; from recurra.workers import Crew; "
        "crew = Crew(1, partial(partial, max)); pid = crew._workers[0].process.pid; "
        "print(pid, list(crew.map([[1]])), flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        worker = int(asking.stdout.readline().split()[0])
        assert os.path.isdir(f"/proc/{worker}")
        asking.kill()
    until = time.monotonic() + 15
    while os.path.isdir(f"/proc/{worker}") and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.isdir(f"/proc/{worker}")
