"""A tiny run of each task, unbroken, and what a broken one must have in common with it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from recurra.models.saved import read_tensors
from recurra.training.log import ValidLine, read_log
from tests.faults.fault import Change, Fault, read_changes
from tests.faults.fork_server import Ended, ForkServer
from tests.tasks.contracts import CASES

TASKS = ("tagging", "classification", "language_model", "forecasting", "seq2seq", "vec2seq")

OFTEN = ("training.save_minutes=0", "training.steps=6")
"""A checkpoint after every step, and steps enough for three validations."""


class Bits(NamedTuple):
    """What a run ends with: the same whatever has happened on the way."""

    model: str  # SHA-256 of model.safetensors
    checkpoint: str  # of the tensors of the last checkpoint
    scores: dict[str, Any]
    validations: list[tuple[int, dict[str, float]]]

    @classmethod
    def of(cls, run: Path) -> Bits:
        tensors, _ = read_tensors(run / "last" / "checkpoint.safetensors")
        together = hashlib.sha256()
        for name in sorted(tensors):
            together.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        lines = [line for line in read_log(run / "metrics.jsonl") if isinstance(line, ValidLine)]
        return cls(
            hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest(),
            together.hexdigest(),
            {name: summary[name] for name in ("steps", "stopped", "best")},
            [(line.step, {n: x for n, x in line.scores.items() if n != "seconds"}) for line in lines],
        )


class SmallRun(NamedTuple):
    """A task with its data, an unbroken run of it, and a folder for those that are broken."""

    task: str
    folder: Path
    server: ForkServer

    @property
    def watched(self) -> Path:
        """What the faults watch: the folder in which runs lie."""
        return self.folder / "runs"

    @property
    def run(self) -> Path:
        """The run that is broken."""
        return self.watched / "run"

    @property
    def log(self) -> Path:
        """Every change of files that the unbroken run has made."""
        return self.folder / "changes"

    def train(self, *settings: str, out: Path | None = None) -> list[str]:
        case = CASES[self.task]
        data = str(self.folder / case.file)
        sets = [word for each in (*OFTEN, *settings) for word in ("--set", each)]
        given = ["--train", data, "--valid", data, "--quiet", *case.options, *sets]
        return ["train", case.task, *given, "--out", str(out or self.run)]

    def resume(self, *settings: str) -> list[str]:
        sets = [word for each in settings for word in ("--set", each)]
        return ["train", str(self.run), "--resume", "--quiet", *sets]

    def prepare(self) -> None:
        """Write the data and train the unbroken run, in which every change of files is recorded."""
        case = CASES[self.task]
        (self.folder / case.file).write_text(case.content, "utf-8")
        self.clear()
        ended = self.server.run(self.train(), Fault(str(self.watched), log=str(self.log)))
        assert ended.code == 0, ended
        (self.folder / "seconds").write_text(str(ended.seconds))
        shutil.copytree(self.run, self.folder / "unbroken")
        self.clear()

    def clear(self) -> None:
        """No run, as before the first command."""
        shutil.rmtree(self.watched, ignore_errors=True)
        self.watched.mkdir()

    @property
    def unbroken(self) -> Bits:
        return Bits.of(self.folder / "unbroken")

    @property
    def seconds(self) -> float:
        """How long the unbroken run took."""
        return float((self.folder / "seconds").read_text())

    def changes(self) -> list[Change]:
        return list(read_changes(self.log))

    def recovered(self, *settings: str) -> Recovered:
        """Resume the run; where nothing was saved yet, begin it anew. One of both must simply work."""
        resumed = self.server.run(self.resume())
        if resumed.code == 0:
            return Recovered("resumed", resumed, Bits.of(self.run))
        if resumed.code == 2 and is_one_sentence(resumed.said):
            begun = self.server.run(self.train(*settings))
            if begun.code == 0:
                return Recovered("begun anew", resumed, Bits.of(self.run))
            return Recovered("stuck", begun, None, resumed.said)
        return Recovered("stuck", resumed, None)


class Recovered(NamedTuple):
    """How a broken run came to its end after all."""

    way: str  # "resumed", "begun anew" or "stuck": it could be neither
    ended: Ended
    bits: Bits | None
    said_before: str = ""


def is_one_sentence(said: str) -> bool:
    """An error as a user is to see it."""
    lines = said.strip().splitlines()
    return len(lines) == 1 and lines[0].startswith("recurra: ") and lines[0].endswith(".")
