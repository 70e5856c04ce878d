"""A disk that is full, broken or read-only: one sentence, and the run goes on later as if nothing had been."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.faults.conftest import SmallRuns
from tests.faults.fault import Action, Fault
from tests.faults.programme import (
    REFUSALS,
    Outcome,
    files_of,
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


def raised(small: SmallRun) -> Bits:
    """What the finished run ends with that has gone on for longer, undisturbed."""
    put_back(small)
    ended = small.server.run(small.resume(RAISED))
    assert ended.code == 0, ended
    return Bits.of(small.run)


def raised_in_vain(small: SmallRun, fault: Fault, longer: Bits) -> Outcome:
    """The same with a fault: the run stays as it was, or goes on to the new limit when it is resumed."""
    put_back(small)
    config = (small.run / "config.toml").read_bytes()
    ended = small.server.run(small.resume(RAISED), fault)
    what = f"--set {RAISED} on a finished run: {ended.hit}"
    if not ended.killed and (ended.code != 2 or not is_one_sentence(ended.said)):
        return Outcome(what, f"it ends with {ended.code} and says: {ended.said}")
    resumed = small.server.run(small.resume())
    if resumed.code != 0:
        return Outcome(what, f"afterwards it cannot be resumed: {resumed.said}")
    is_as_before = (small.run / "config.toml").read_bytes() == config
    is_right = Bits.of(small.run) == (small.unbroken if is_as_before else longer)
    return Outcome(what, "" if is_right else f"its limit is {'old' if is_as_before else 'new'}, but not its bits")


def test_a_limit_that_is_raised_in_vain_leaves_the_finished_run_as_it_was(small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    for at in (2, 4):
        put_back(small)
        files = [small.run / name for name in files_of(small.run) if name != "metrics.jsonl"]
        before = {path: path.read_bytes() for path in files}
        ended = small.server.run(small.resume(RAISED), Fault.full_disk(small.watched, at))
        assert ended.code == 2
        assert is_one_sentence(ended.said)
        assert {path: path.read_bytes() for path in files} == before


@pytest.mark.slow
def test_a_limit_may_be_raised_in_vain_at_any_moment(small_runs: SmallRuns) -> None:
    small, draw = small_runs("tagging"), random.Random(1)
    longer = raised(small)
    assert longer.scores["steps"] == 8
    faults = [Fault(str(small.watched), Action.KILL, at=draw.randrange(1, 60)) for _ in range(10)]
    faults += [Fault.full_disk(small.watched, at=draw.randrange(1, 20)) for _ in range(10)]
    assert mistakes(raised_in_vain(small, fault, longer) for fault in faults) == []


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
