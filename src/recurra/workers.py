"""Work that is shared out over processes of this machine: results come in the order of the work, and few wait.

A worker is a fresh interpreter, not a fork: a process whose libraries run threads cannot be forked safely, and a user's
script need not guard its `main`. Jobs and results go through its standard input and output.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, Generic, Self, TypeVar, final

from recurra.errors import RecurraError, WorkerError

Job = TypeVar("Job")
Result = TypeVar("Result")

AHEAD = 2
"""So many jobs for each worker are read, at work or done and not yet taken: memory stays flat."""

START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from recurra.workers import work; work()"

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What tells numerical libraries how many threads to use, where the user has not said so."""


def cores() -> int:
    """The cores that this process may use."""
    with contextlib.suppress(AttributeError):  # where the system does not tell
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@final
class Crew(Generic[Job, Result]):
    """So many worker processes, each with a function that `make` gives it, which turns a job into a result.

    `make`, jobs and results are pickled. As a context manager it ends its processes, whatever they are doing.

    >>> from functools import partial
    >>> with Crew(2, partial(partial, max)) as crew:
    ...     list(crew.map([[3, 1], [2, 5], [4, 4]]))
    [3, 5, 4]
    """

    def __init__(self, processes: int, make: Callable[[], Callable[[Job], Result]]) -> None:
        assert processes > 0, "a crew has workers"
        self._free: queue.Queue[_Worker] = queue.Queue()
        self._workers: list[_Worker] = []
        self._threads = ThreadPoolExecutor(processes, "waiting for a worker")
        threads = str(max(1, cores() // processes))
        environment = {**dict.fromkeys(THREADS, threads), **os.environ}
        try:
            for _ in range(processes):
                self._workers.append(_Worker(environment))
            content = pickle.dumps(make)
            for worker in self._workers:
                worker.send(content)
                self._free.put(worker)
        except BaseException:
            self.close()
            raise

    def map(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """The result of each job, in order; a job is taken when there will soon be a worker for it."""
        waiting: deque[Future[Result]] = deque()
        most = AHEAD * len(self._workers)
        for job in jobs:
            waiting.append(self._threads.submit(self._done, job))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _done(self, job: Job) -> Result:
        worker = self._free.get()
        try:
            found: Result = worker.result(job)
            return found
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.end()
        self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class _Worker:
    """One process, asked by one thread at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        # Ctrl-C reaches all processes of a group: this one decides what becomes of its workers.
        apart: dict[str, Any] = (
            {"creationflags": 0x00000200} if sys.platform == "win32" else {"process_group": 0}
        )  # CREATE_NEW_PROCESS_GROUP
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                **apart,
            )
        except OSError as error:
            raise WorkerError(f"a worker process cannot be started ({error.strerror}): use fewer processes.") from error
        self.is_over = False

    def send(self, content: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(len(content).to_bytes(8))
            self.process.stdin.write(content)
            self.process.stdin.flush()
        except (OSError, ValueError) as error:
            raise self._dead() from error

    def result(self, job: object) -> Any:
        """What the worker makes of a job; what it raises is raised here."""
        self.send(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))
        assert self.process.stdout is not None
        try:
            content = received(self.process.stdout)
        except (OSError, ValueError) as error:
            raise self._dead() from error
        if content is None:
            raise self._dead()
        found, raised = pickle.loads(content)
        if raised is not None:
            raise raised
        return found

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.is_over = True
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _dead(self) -> RecurraError:
        if self.is_over:
            return WorkerError("the workers were ended.")
        with contextlib.suppress(subprocess.TimeoutExpired):  # which has closed its pipes, so it is about to end
            self.process.wait(5)
        code = self.process.returncode
        if code == -getattr(signal, "SIGKILL", 9):
            why = "killed by the system or by somebody: where memory was short, use fewer processes"
        elif code is not None and code < 0:
            why = f"killed by the signal {signal.Signals(-code).name}"
        else:
            why = f"exit status {code}"
        return WorkerError(f"worker process {self.process.pid} ended before its work was done ({why}).")


def received(pipe: IO[bytes]) -> bytes | None:
    """What the other side has sent; None: it is gone."""
    size = pipe.read(8)
    if len(size) < 8:
        return None
    content = pipe.read(length := int.from_bytes(size))
    return content if len(content) == length else None


def work() -> None:
    """What a worker does: it makes its function, and answers jobs until nobody asks any more."""
    jobs, results = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no result
    warnings.simplefilter("ignore")  # whoever sends the jobs has warned already
    waiting: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=[jobs, waiting], daemon=True).start()
    function: Callable[[Any], Any] | None = None
    failure: BaseException | None = None
    try:
        function = pickle.loads(waiting.get())()
    except BaseException as error:
        failure = error
    while True:
        content = waiting.get()
        found: tuple[Any, BaseException | None] = (None, failure)
        if function is not None:
            try:
                found = function(pickle.loads(content)), None
            except BaseException as error:
                found = None, error
        answer = _pickled(*found)
        results.write(len(answer).to_bytes(8))
        results.write(answer)
        results.flush()


def _read(jobs: IO[bytes], waiting: queue.Queue[bytes]) -> None:
    """Take what is sent; once whoever sends is gone, however it ended, the work is of no use."""
    while (content := received(jobs)) is not None:
        waiting.put(content)
    os._exit(0)


def _pickled(found: object, error: BaseException | None) -> bytes:
    """A result, or an error, which some cannot be pickled or made again."""
    if error is None:
        try:
            return pickle.dumps((found, None), pickle.HIGHEST_PROTOCOL)
        except Exception as reason:
            error = reason
    if isinstance(error, RecurraError | MemoryError | ImportError):
        with contextlib.suppress(Exception):
            content = pickle.dumps((None, error), pickle.HIGHEST_PROTOCOL)
            pickle.loads(content)
            return content
    if isinstance(error, RecurraError):
        return pickle.dumps((None, RecurraError(str(error))))
    said = "".join(traceback.format_exception(error))
    return pickle.dumps((None, RuntimeError(f"in a worker process:\n{said}")))
