"""Many lives of `recurra`, each forked from a process that has imported all: one costs no start of Python and torch."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.faults.fault import Fault

REPOSITORY = Path(__file__).parents[2]


class Ended(NamedTuple):
    """How a life of `recurra` ended."""

    code: int  # the exit code, or minus the signal that killed it
    said: str  # on stderr
    seconds: float
    hit: str  # the operation and path that the fault hit; "" if none

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Life:
    """A process of `recurra` that is running."""

    pid: int
    server: ForkServer
    said: Path
    told: Path
    began: float

    def wait(self) -> Ended:
        code = self.server.answer()["code"]
        hit = self.told.read_text("utf-8").strip() if self.told.exists() else ""
        return Ended(code, self.said.read_text("utf-8"), time.monotonic() - self.began, hit)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # no other process can have this pid yet: the server still keeps its end


class ForkServer:
    """The process that forks. One life at a time: with one torch thread each, more would only wait."""

    def __init__(self, shim: Path, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            **{"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "RECURRA_CACHE": str(folder / "cache")},
            "TMPDIR": str(folder / "tmp"),  # what killed processes leave behind goes with it
            "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(shim)],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, arguments: Sequence[str], fault: Fault | None = None) -> Life:
        """`recurra` with these arguments; the fault begins with it."""
        said, told = self.folder / "said.txt", self.folder / "told.txt"
        told.unlink(missing_ok=True)
        table = None if fault is None else {**fault.table(), "told": str(told)}
        assert self._process.stdin is not None
        print(json.dumps([list(arguments), str(said), table]), file=self._process.stdin, flush=True)
        return Life(self.answer()["pid"], self, said, told, time.monotonic())

    def run(self, arguments: Sequence[str], fault: Fault | None = None) -> Ended:
        return self.start(arguments, fault).wait()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the fork server has ended: see its stderr"
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(shim: ctypes.CDLL) -> None:
    """Read commands from stdin until it ends; fork for each."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ended_before: int | None = None
    for line in sys.stdin:
        if ended_before is not None:
            os.waitpid(ended_before, 0)
        arguments, said, table = json.loads(line)
        pid = os.fork()
        if pid == 0:
            live(arguments, Path(said), None if table is None else Fault.of(table), shim)
        print(json.dumps({"pid": pid}), file=answers, flush=True)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        print(json.dumps({"code": code}), file=answers, flush=True)
        ended_before = pid


def live(arguments: Sequence[str], said: Path, fault: Fault | None, shim: ctypes.CDLL) -> None:
    """What the forked process does; it does not return."""
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        from recurra.cli import main

        if fault is not None:
            fault.begin(shim)
        code = main(arguments)
    except SystemExit as stop:  # argparse
        code = stop.code if isinstance(stop.code, int) else 2
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm() -> None:
    """Import what a training imports as it goes, and start no thread: a fork takes along the one that forks alone."""
    import recurra

    # No training imports the estimators, whose scikit-learn imports pyarrow, which starts a thread.
    for module in pkgutil.walk_packages(recurra.__path__, "recurra."):
        if module.name not in ("recurra.__main__", "recurra.sklearn"):
            importlib.import_module(module.name)
    tensorboard = ("compat.proto.event_pb2", "compat.proto.summary_pb2", "summary.writer.record_writer")
    others = ("torch._dynamo", "safetensors.torch", "numpy.ma", "sacrebleu", *map("tensorboard.{}".format, tensorboard))
    for name in others:
        with contextlib.suppress(Exception):  # training does without them too, whatever is wrong with them
            importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a module that was imported has started a thread"


if __name__ == "__main__":
    warm()
    serve(ctypes.CDLL(sys.argv[1]))
