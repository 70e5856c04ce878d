"""A disk that is full, broken or read-only: one sentence, and the run goes on later as if nothing had been."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import SmallRuns
from tests.faults.fault import Action, Fault
from tests.faults.programme import (
    REFUSALS,
    Outcome,
    mistakes,
    places,
    put_back,
    recovery,
    refused,
    refused_at_every_file,
)
from tests.faults.small_runs import TASKS, Bits, SmallRun, is_one_sentence

BY_NAME = {refusal.name: refusal for refusal in REFUSALS}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("disk full", "checkpoint.safetensors"),
        ("I/O error on sync", "model.safetensors"),
        ("read-only disk", "summary.json"),
        ("short write", "config.toml"),
    ],
)
def test_a_refusing_disk_is_said_in_a_sentence_and_costs_nothing(name: str, file: str, small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    found = places(small.changes(), BY_NAME[name], file)
    assert mistakes([refused(small, BY_NAME[name], found[len(found) // 2])]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_every_file_of_a_run_may_be_refused(name: str, small_runs: SmallRuns) -> None:
    outcomes = list(refused_at_every_file(small_runs("tagging"), random.Random(name), [BY_NAME[name]]))
    assert mistakes(outcomes) == []
    assert len(outcomes) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in TASKS if task != "tagging"])
def test_every_task_bears_a_refusing_disk(task: str, small_runs: SmallRuns) -> None:
    draw = random.Random(f"{task} refused")
    assert mistakes(refused_at_every_file(small_runs(task), draw, draw.sample(REFUSALS, 2))) == []


RAISED = "training.steps=8"


def raised(small: SmallRun, fault: Fault | None) -> Outcome:
    """A finished run that is to go on for longer, with a fault: it stays as it was, or goes on when asked to."""
    put_back(small)
    old, config = small.unbroken, (small.run / "config.toml").read_bytes()
    ended = small.server.run(small.resume(RAISED), fault)
    what = f"--set {RAISED} on a finished run: {ended.hit or ended.said}"
    if fault is None or ended.code == 0:
        return Outcome(what, "" if Bits.of(small.run).scores["steps"] == 8 else "it has not gone on")
    if not ended.killed and (ended.code != 2 or not is_one_sentence(ended.said)):
        return Outcome(what, f"it ends with {ended.code} and says: {ended.said}")
    resumed = small.server.run(small.resume())  # puts in order what was cut short
    if resumed.code != 0:
        return Outcome(what, f"afterwards it cannot be resumed: {resumed.said}")
    found = Bits.of(small.run)
    if (small.run / "config.toml").read_bytes() == config:
        return Outcome(what, "" if found == old else "its settings are the old ones, but its bits are not")
    return Outcome(what, "" if found.scores["steps"] == 8 else "its settings are new, but it has not gone on")


def faults_while_raised(small: SmallRun, draw: random.Random, number: int) -> Iterator[Outcome]:
    for _ in range(number):
        yield raised(small, Fault(str(small.watched), Action.KILL, at=draw.randrange(1, 40)))
        yield raised(small, Fault.full_disk(small.watched, at=draw.randrange(1, 20)))


def test_a_limit_that_is_raised_in_vain_leaves_the_finished_run_as_it_was(small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    assert mistakes([raised(small, Fault.full_disk(small.watched, at)) for at in (1, 4)]) == []
    put_back(small)
    before = {path: path.read_bytes() for path in small.run.rglob("*") if path.is_file()}
    ended = small.server.run(small.resume(RAISED), Fault.full_disk(small.watched, 2))
    assert ended.code == 2
    after = {path: path.read_bytes() for path in small.run.rglob("*") if path.is_file()}
    kept = ("config.toml", "model.safetensors", "checkpoint.safetensors", "summary.json", "manifest.json")
    assert {path: after.get(path) for path in before if path.name in kept} == {
        path: content for path, content in before.items() if path.name in kept
    }


@pytest.mark.slow
def test_a_limit_may_be_raised_in_vain_at_any_moment(small_runs: SmallRuns) -> None:
    assert mistakes(faults_while_raised(small_runs("tagging"), random.Random(1), 10)) == []


def mounted(folder: Path, kilobytes: int) -> bool:
    """A small disk there, if one may mount here."""
    options = f"size={kilobytes}k"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("kilobytes", [48, *(pytest.param(size, marks=pytest.mark.slow) for size in range(8, 120, 12))])
def test_a_run_on_a_disk_that_is_really_full_goes_on_when_there_is_room(kilobytes: int, small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    small.clear()
    small.run.parent.mkdir(exist_ok=True)
    if not mounted(small.watched, kilobytes):
        pytest.skip("mounting a small disk (tmpfs) is not allowed here; the shim's full disk is tried instead")
    try:
        ended = small.server.run(small.train())
        assert ended.code == 2, ended
        assert is_one_sentence(ended.said), ended.said
        subprocess.run(["mount", "-o", "remount,size=64m", small.watched], check=True)
        assert recovery(small, small.unbroken) == ""
    finally:
        subprocess.run(["umount", small.watched], check=True)
