"""A summary.json that holds something else is refused in one sentence, whatever it holds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recurra.cli import main
from recurra.errors import RecurraError
from recurra.reports.report import write_card, write_report
from recurra.runs import told

OLD = Path(__file__).parent / "old_runs" / "0.1" / "tagging" / "run"  # without a manifest, which would tell of damage
ODD: tuple[Any, ...] = (None, True, 3, -1.5, float("nan"), 10**400, "x", [], [1], {}, {"a": None})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(OLD, tmp_path / "run")


def changed(value: Any, depth: int) -> Iterator[Any]:
    """The same with one part replaced or left out."""
    yield from ODD
    if isinstance(value, dict) and depth:
        for key in value:
            yield {name: each for name, each in value.items() if name != key}
            for other in changed(value[key], depth - 1):
                yield {**value, key: other}


def refusal(write: Callable[[Path], object], run: Path) -> str | None:
    """The sentence that it is refused with; None where it is not."""
    try:
        write(run)
    except RecurraError as error:
        return str(error)
    return None


def test_info_says_what_a_summary_lacks_whatever_it_holds(run: Path) -> None:
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    for key in ("engines", "tables", "purpose"):  # of no interest to info
        summary.pop(key, None)
    found = []
    for value in changed(summary, 3):
        path.write_text(json.dumps(value))
        found.append(refusal(told, run))
    refused = [text for text in found if text is not None]
    assert len(found) > 300
    assert len(refused) > len(found) // 3
    assert all(str(path) in text for text in refused)


NO_SUMMARY = ("", "{", "[]", "3", "null", '"x"', "[" * 100_000, "1" * 5000, "\udcff")


@pytest.mark.parametrize("text", NO_SUMMARY)
def test_what_is_no_summary_is_refused_in_one_sentence(
    text: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "summary.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    for options in ([], ["--json"]):
        assert main(["info", str(run), *options]) == 2
        assert f"{run / 'summary.json'}" in capsys.readouterr().err
    for write in (write_report, write_card):
        assert f"{run / 'summary.json'} is not a valid summary" in str(refusal(write, run))


def test_a_report_and_a_card_are_written_or_refused_whatever_the_summary_holds(run: Path) -> None:
    path = run / "summary.json"
    for value in changed(json.loads(path.read_text()), 1):
        path.write_text(json.dumps(value))
        assert str(path) in (refusal(write_report, run) or str(path))
        assert str(path) in (refusal(write_card, run) or str(path))
