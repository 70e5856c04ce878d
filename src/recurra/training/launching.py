"""`recurra train --processes N`: starts the processes of one training on this machine, and looks after them.

Each process runs the same command and finds in the environment which one it is, as torchrun says it too. A process that
is killed takes the others with it, and all start again from the last checkpoint. Ctrl-C goes to all of them; where this
process itself is killed, they end too. Only the first one writes to the terminal.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NamedTuple, NoReturn, final

from recurra.errors import ConfigError
from recurra.interrupts import STATUS, watch_of_this_command

MOST_PROCESSES = 1024
"""More processes than any machine trains with are a typing mistake."""

MOST_RESTARTS = 3
"""So often all processes are started again after one was killed."""

LOOKING_SECONDS = 0.05
"""How often the launcher looks at its processes."""

ENDING_SECONDS = 3.0
"""When one process has failed, so long the others may take to end by themselves."""

LOST = 75
"""The exit status of a process that ends because another one has."""

RENDEZVOUS, RESTARTS = "RECURRA_RENDEZVOUS", "TORCHELASTIC_RESTART_COUNT"
"""Variables of the environment: the file by which the processes find each other, and how often they were restarted."""


class Place(NamedTuple):
    """Which process of a training this is: `rank` of `size`, and of those on this machine."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    url: str  # where they find each other


def place_of_this_process() -> Place | None:
    """What torchrun or this launcher says in the environment; None: the process trains alone."""
    if "RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        return None
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        local_rank = int(os.environ.get("LOCAL_RANK", rank))
        local_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    except ValueError as error:
        raise ConfigError(
            f"the variables of the environment RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE must be numbers "
            f"({error}). torchrun sets them; remove them to train in one process."
        ) from None
    file = os.environ.get(RENDEZVOUS)
    return Place(rank, size, local_rank, local_size, "env://" if file is None else f"file://{file}")


def is_restart() -> bool:
    """Whether this process takes the place of one that has ended."""
    return os.environ.get(RESTARTS, "0") != "0"


def follow_the_launcher() -> None:
    """End this process when the one that has started it ends: nothing trains on that nobody looks after."""
    if RENDEZVOUS in os.environ:
        threading.Thread(target=_wait_for_its_end, name="watching the launcher", daemon=True).start()


def _wait_for_its_end() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):  # whose other end the launcher holds, and writes nothing to
            pass
    os._exit(LOST)


def end_as_lost(said: str) -> NoReturn:
    """End a process that was left by another one. The launcher knows better what there is to say."""
    if RENDEZVOUS not in os.environ:
        print(f"recurra: {said}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(LOST)  # what waits for an answer of the other is not waited for


class Ended(NamedTuple):
    """How the processes of one attempt ended: the first that failed decides."""

    rank: int
    status: int  # as subprocess has it: below 0, the signal that has killed it
    said: str  # to its stderr, where that was not the terminal


def launch(arguments: Sequence[str], processes: int, say: Callable[[str], None]) -> int:
    """Run a command of recurra in several processes; the exit status of the whole."""
    if sys.platform == "win32":
        raise ConfigError("--processes needs Linux or macOS: leave it out, and train in one process.")
    if not 1 <= processes <= MOST_PROCESSES:
        raise ConfigError(f"--processes must be between 1 and {MOST_PROCESSES:,}, but is {processes}.")
    for attempt in range(MOST_RESTARTS + 1):
        with _crew(arguments, processes, attempt) as crew:
            ended = crew.wait()
        if crew.is_asked or ended is None or ended.status >= 0:
            break
        what = f"process {ended.rank} of {processes} was killed by signal {-ended.status} ({_name(-ended.status)})"
        if attempt == MOST_RESTARTS:
            print(
                f"recurra: {what}, after {MOST_RESTARTS} restarts. Continue from the last checkpoint with --resume; if "
                f"the system ran out of memory, with fewer processes or smaller batches.",
                file=sys.stderr,
            )
            return 2
        say(f"{what}: all start again from the last checkpoint (restart {attempt + 1} of {MOST_RESTARTS})")
    if crew.is_asked and (ended is None or ended.status != 0):
        return STATUS
    if ended is None:
        return 0
    if ended.status == LOST:
        print(
            "recurra: the processes have lost each other. Continue from the last checkpoint with --resume.",
            file=sys.stderr,
        )
        return 2
    print(ended.said, end="", file=sys.stderr)
    return ended.status


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


@contextlib.contextmanager
def _crew(arguments: Sequence[str], processes: int, attempt: int) -> Iterator[Crew]:
    """The processes of one attempt, none of which is left at the end."""
    folder = Path(tempfile.mkdtemp(prefix="recurra-processes-"))
    crew = Crew(folder)
    try:
        with crew.signals():
            crew.start(arguments, processes, attempt)
            yield crew
    finally:
        crew.end()
        shutil.rmtree(folder, ignore_errors=True)


@final
class Crew:
    """Processes that were started together."""

    def __init__(self, folder: Path) -> None:
        self.is_asked = False  # to stop, by Ctrl-C or SIGTERM
        self._folder = folder
        self._all: list[subprocess.Popen[bytes]] = []
        self._said: list[IO[bytes] | None] = []

    def start(self, arguments: Sequence[str], processes: int, attempt: int) -> None:
        shared = {
            **os.environ,
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            RENDEZVOUS: str(self._folder / "store"),
            RESTARTS: str(attempt),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        if sys.platform.startswith("linux"):  # they talk on this machine alone, whatever its name stands for
            shared.setdefault("GLOO_SOCKET_IFNAME", "lo")
        for rank in range(processes):
            own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            said = None if rank == 0 else (self._folder / f"{rank}.err").open("w+b")
            self._said.append(said)
            self._all.append(
                subprocess.Popen(
                    [sys.executable, "-m", "recurra", *arguments],
                    stdin=subprocess.PIPE,
                    stdout=None if rank == 0 else subprocess.DEVNULL,
                    stderr=said,
                    env=own,
                    process_group=0,  # Ctrl-C comes by this process, once
                )
            )

    def wait(self) -> Ended | None:
        """Wait until all have ended; the first that failed, or None."""
        first: int | None = None
        until = 0.0
        while True:
            found = [process.poll() for process in self._all]
            # Who ends because another one has knows less than that one.
            failed = [rank for rank, status in enumerate(found) if status not in (None, 0, LOST)]
            if first is None and any(status not in (None, 0) for status in found):
                first = next(rank for rank, status in enumerate(found) if status not in (None, 0))
                # Others hear of it in their next step, and end; the first one has nothing to say that they know.
                until = time.monotonic() + (ENDING_SECONDS if found[first] == LOST or first != 0 else 0.0)
            if first is not None and failed and found[first] == LOST:
                first = failed[0]
            if None not in found:
                break
            if self.is_asked and found[0] is None:  # which may be saving
                until = time.monotonic() + ENDING_SECONDS
            if first is not None and time.monotonic() >= until:
                break
            time.sleep(LOOKING_SECONDS)
        if first is None:
            return None
        own = self._all[0].poll()
        if own is not None and own > 0 and own != LOST:  # it has said on the terminal what the others would say
            first = 0
        status = self._all[first].poll()
        return Ended(first, 2 if status is None else status, self._words_of(first))

    def _words_of(self, rank: int) -> str:
        """What a process that does not write to the terminal has said at its end."""
        said = self._said[rank]
        if said is None:
            return ""
        said.seek(0)
        return said.read().decode("utf-8", "replace")

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Inside, Ctrl-C and SIGTERM go to all processes, which end by themselves."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, _frame: FrameType | None) -> None:
            self.is_asked = True
            for process in self._all:
                with contextlib.suppress(OSError):
                    process.send_signal(number)

        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        watch = watch_of_this_command()
        try:
            with contextlib.nullcontext() if watch is None else watch.saying(lambda: None):
                for number in before:
                    if before[number] is not signal.SIG_IGN:
                        signal.signal(number, ask)
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def end(self) -> None:
        """Kill what still runs: nothing on the disk depends on how a process ends."""
        for process in self._all:
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    process.kill()
        for process in self._all:
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        for said in self._said:
            if said is not None:
                said.close()
