"""Runs that are killed and go on."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.runs import Setup, begin, resume
from recurra.training.progress import Silent
from tests.training.test_trainer import StopsAt


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def weights_of_a_broken_run(this: Setup, run: Path, *, last: int) -> bytes:
    """Those that a run ends with which is saved after every step, dies at the last and is resumed."""
    often = dataclasses.replace(this.settings, training=dataclasses.replace(this.settings.training, save_minutes=0.0))
    with pytest.raises(MemoryError):
        begin(this._replace(settings=often), run, StopsAt(last))
    resume(run, Silent())
    return weights(run)


def weights_after_a_kill(command: Sequence[str], run: Path) -> bytes:
    """Those that `recurra` with these arguments ends with, killed after its first checkpoint and resumed."""
    process = subprocess.Popen([sys.executable, "-m", "recurra", *command, "--out", str(run)])
    until = time.monotonic() + 60
    while not (run / "last").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it was not at its end
    assert main(["train", str(run), "--resume", "--quiet"]) == 0
    return weights(run)
