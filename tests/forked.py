"""Programs in processes of their own, forked from one that has imported torch: none waits for that import.

They are not forked from the process of the tests, where torch may have computed gradients already: where there is a
GPU, that starts threads, and autograd refuses to work in a process forked afterwards.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parents[1]


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Forks:
    """Starts programs with an environment of their own; several may run at once."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder

    def start(self, code: str, environment: Mapping[str, str]) -> int:
        """The number of the process that runs this Python text."""
        return int(self._answer({"code": code, "environment": dict(environment)}))

    def wait(self, number: int) -> Ended:
        returncode = int(self._answer({"number": number}))
        out, err = ((self.folder / f"{number}.{name}").read_text("utf-8") for name in ("out", "err"))
        return Ended(returncode, out, err)

    def _answer(self, asked: Mapping[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def forks(
    folder: Path, *, imports: Sequence[str] = ("recurra.stacks.recurrent",), more: Mapping[str, str] | None = None
) -> Iterator[Forks]:
    """What starts processes, as long as the block lasts; what they write is kept in the folder.

    `imports` are the modules that all of them have imported, `more` is what their environment has beside that of here.
    """
    paths = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment |= more or {}
    command = [sys.executable, "-m", __name__, str(folder), *imports]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ) as process:
        yield Forks(process, folder)
        assert process.stdin is not None
        process.stdin.close()


def serve(folder: Path, imports: Sequence[str]) -> None:
    """Forks as it is told on standard input, line by line."""
    for name in imports:
        importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        if "number" in asked:
            _, status = os.waitpid(asked["number"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif (number := os.fork()) == 0:
            live(folder, asked["code"], asked["environment"])
        else:
            print(number, flush=True)


def live(folder: Path, code: str, environment: Mapping[str, str]) -> None:
    """Runs the text as a program, and ends the process."""
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{os.getpid()}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.environ.update(environment)
    status = 0
    try:
        exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
