"""A run that is killed or stopped, whenever that is, and gone on with ends with the bits of one that never was."""

from __future__ import annotations

import random
import signal

import pytest

from tests.faults.conftest import SmallRuns
from tests.faults.programme import (
    STOPS,
    killed_after_a_commit,
    killed_in_operations,
    many_kills,
    many_signals,
    mistakes,
    stopped,
)
from tests.faults.small_runs import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_is_killed_while_it_saves_goes_on_to_the_same_bits(task: str, small_runs: SmallRuns) -> None:
    assert mistakes(killed_in_operations(small_runs(task), random.Random(task), kills=1)) == []


@pytest.mark.parametrize("which", [0.0, 1.0])
def test_a_run_that_is_killed_just_after_a_commit_goes_on_to_the_same_bits(which: float, small_runs: SmallRuns) -> None:
    assert mistakes([killed_after_a_commit(small_runs("tagging"), which)]) == []


@pytest.mark.parametrize(("number", "again"), [STOPS[0], STOPS[-1]])
def test_a_run_that_is_stopped_while_it_saves_goes_on_to_the_same_bits(
    number: signal.Signals, again: int, small_runs: SmallRuns
) -> None:
    small = small_runs("tagging")
    assert mistakes([stopped(small, len(small.changes()) // 2, number, again)]) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_no_kill_is_noticed_in_the_end(task: str, small_runs: SmallRuns) -> None:
    outcomes = list(many_kills(small_runs(task), random.Random(f"{task} is killed"), 36))
    assert mistakes(outcomes) == []
    assert sum(outcome.came for outcome in outcomes) >= 34  # of each of six tasks: more than 200
    assert sum(outcome.in_save for outcome in outcomes) >= 7  # more than 40


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_no_signal_is_noticed_in_the_end(task: str, small_runs: SmallRuns) -> None:
    assert mistakes(many_signals(small_runs(task), random.Random(f"{task} is stopped"), 9)) == []
