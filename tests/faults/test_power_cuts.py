"""After a power cut, a run goes on to the bits of an unbroken one; one of which nothing was saved yet begins anew."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from recurra.manifest import finish_change, read_manifest, wrong_files
from tests.faults.conftest import SmallRuns
from tests.faults.power import Disk, lay_out
from tests.faults.programme import commits, many_power_cuts, mistakes, power_cut
from tests.faults.small_runs import TASKS


@pytest.mark.parametrize("seed", [None, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_after_the_first_commit_a_whole_run_is_on_the_disk_at_every_moment(
    seed: int | None, small_runs: SmallRuns, tmp_path: Path
) -> None:
    small = small_runs("tagging")
    changes = small.changes()
    first = commits(changes, small.run)[0]
    disk = Disk(small.watched)
    draw = None if seed is None else random.Random(seed)
    disk.apply(changes[: first - 1])
    for number, change in enumerate(changes[first - 1 :], start=first):
        disk.apply([change])
        lay_out(disk.after_the_cut(draw), tmp_path)
        finish_change(tmp_path / "run")
        assert read_manifest(tmp_path / "run"), f"no run after change {number}, {change.operation.name} {change.path}"
        assert wrong_files(tmp_path / "run") == [], f"after change {number}, {change.operation.name} {change.path}"
        shutil.rmtree(tmp_path / "run")


def test_every_state_that_a_power_cut_leaves_can_be_gone_on_with(small_runs: SmallRuns) -> None:
    small = small_runs("tagging")
    changes = small.changes()
    # Spread over the whole run: before the first checkpoint, while it trains, while it is scored and described.
    outcomes = [power_cut(small, changes, 1 + number * len(changes) // 8, seed=number) for number in range(8)]
    assert mistakes(outcomes) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_no_power_cut_is_noticed_in_the_end(task: str, small_runs: SmallRuns) -> None:
    assert mistakes(many_power_cuts(small_runs(task), random.Random(f"{task} without power"), 20)) == []
