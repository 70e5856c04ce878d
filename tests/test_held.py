"""A run folder is held by one process at a time, however closely others follow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recurra.errors import CheckpointError
from recurra.runs import held

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")

# The wait before each lock gives others the time to remove the file that was opened.
HAMMER = """
import fcntl, os, random, sys, time
from pathlib import Path
from recurra.errors import CheckpointError
from recurra.runs import held
folder, inside = Path(sys.argv[1], "run"), Path(sys.argv[1], "inside")
lock, until = fcntl.flock, time.monotonic() + 1
def late(*arguments):
    time.sleep(random.random() * 0.002)
    lock(*arguments)
fcntl.flock = late
children = []
for seed in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        random.seed(seed)
        entered = 0
        while time.monotonic() < until:
            try:
                with held(folder):
                    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where another is inside
                    time.sleep(random.random() * 0.002)
                    inside.unlink()
                    entered += 1
            except CheckpointError:
                pass
        os._exit(0 if entered else 2)
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
assert not folder.exists()
"""


def test_of_processes_that_come_and_go_one_is_inside_at_a_time(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", HAMMER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_lock_on_a_file_that_was_removed_keeps_nobody_out_and_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock, first = fcntl.flock, held(tmp_path / "run")
    first.__enter__()

    def after_the_first_has_left(file: object, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        first.__exit__(None, None, None)
        lock(file, operation)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", after_the_first_has_left)
    with held(tmp_path / "run"):
        assert (tmp_path / "run" / ".lock").exists()
        with pytest.raises(CheckpointError, match="another process is training in"), held(tmp_path / "run"):
            pass
    assert not (tmp_path / "run").exists()
