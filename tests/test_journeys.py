"""benchmarks/journeys.py types the commands of a newcomer, counts what fails, and sees an answer that is wrong."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "journeys.py"))
Step, Journey, walk, shows = SCRIPT["Step"], SCRIPT["Journey"], SCRIPT["walk"], SCRIPT["shows"]


def silent(_: str) -> None:
    """Keeps what a journey prints out of the tests' output."""


def walked(*steps: Any, data: Callable[[Path, Path], None] = lambda folder, checkout: None, **options: Any) -> Any:
    return walk(Journey("somebody", "a test", data, list(steps), **options), ROOT, tell=silent)


def test_a_failed_command_is_recorded_with_its_message_and_the_next_one_is_tried() -> None:
    step = Step(["echo 'recurra: no such thing' >&2; exit 2", "echo 42"], shows(r"\d+"), is_success=True)
    outcome = walked(step)
    assert [(attempt.problem, attempt.seen) for attempt in outcome.attempts] == [
        ("recurra: no such thing", ""),
        ("", "42"),
    ]
    assert outcome.is_complete
    assert outcome.answers == ["42"]
    assert 0 < outcome.successes[0] <= outcome.seconds


def test_a_wrong_answer_without_an_error_is_a_failure() -> None:
    outcome = walked(Step(["echo NOUN VERB"], SCRIPT["lines"]("NOUN NOUN"), is_success=True))
    [attempt] = outcome.failed
    assert attempt.problem == "no error, but the answer is wrong: NOUN VERB"
    assert not outcome.is_complete
    assert "never" in SCRIPT["table"]([outcome])


def test_the_answer_may_be_in_a_file() -> None:
    outcome = walked(
        Step(["echo written > a.txt"], shows("written"), file="a.txt"),
        Step(["true"], shows("written"), file="b.txt"),
    )
    assert [attempt.problem for attempt in outcome.attempts] == [
        "",
        "no error, but the answer is wrong: there is no file b.txt",
    ]


def test_a_command_that_check_did_not_print_is_passed_over() -> None:
    outcome = walked(Step(["@check tagging", "echo by hand"], shows("by hand")))
    assert [attempt.command for attempt in outcome.attempts] == ["echo by hand"]


def test_what_check_printed_is_typed_with_what_is_added_and_another_run_folder() -> None:
    terminal = SCRIPT["Terminal"](ROOT, {})
    terminal.checked = "Tasks\n  tagging: yes\n    recurra train tagging --train a.txt --out runs/tagging\n"
    assert terminal.meant("@check tagging") == "recurra train tagging --train a.txt --out runs/tagging"
    assert terminal.meant("@check tagging --out runs/b") == "recurra train tagging --train a.txt --out runs/b"
    assert terminal.meant("@check seq2seq") == ""


def test_a_laptop_without_a_compiler_finds_none() -> None:
    step = Step(["command -v cc gcc clang c99 || echo none ${CC-unset}"], shows("none unset"))
    assert walked(step, has_compiler=False).failed == []


@pytest.mark.parametrize(
    ("printed", "is_good"),
    [
        ("valid: mae 3.01, last_value_mae 13.3, seasonal_mae 4.4", True),
        ("valid: mae 4.40, last_value_mae 13.3, seasonal_mae 4.4", False),
        ("valid: mae 3.01", False),
    ],
)
def test_a_forecast_must_beat_both_naive_baselines(printed: str, is_good: bool) -> None:
    assert (SCRIPT["beats_naive"](printed) is not None) == is_good


def test_a_forecast_must_know_the_weekend() -> None:
    def seen(sold: Sequence[int]) -> str | None:
        return SCRIPT["weekend_sells_most"](" ".join(f"{number},12.5" for number in sold))

    assert seen([99, 98, 99, 97, 150, 160, 99]) == "sold 99 98 99 97 150 160 99"
    assert seen([150, 160, 99, 98, 99, 97, 99]) is None
    assert seen([99, 98, 99, 97, 150, 160]) is None


@pytest.mark.timeout(300)
def test_a_newcomer_without_a_compiler_trains_her_own_cell() -> None:
    outcome = walk(SCRIPT["LAPTOP"], ROOT, tell=silent)
    assert outcome.failed == []
    assert outcome.answers == [SCRIPT["TAGS"]]
