"""Runs that die in their midst and go on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

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
