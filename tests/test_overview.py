"""The runs of a folder side by side, and the page that sorts them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.errors import CheckpointError
from recurra.overview import overview
from recurra.reports.overview import differing
from recurra.reports.overview_page import as_page, as_text
from recurra.runs import begin
from recurra.training.progress import Silent
from tests.training.small import small_setup


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of a folder: two that are finished, and one that was damaged."""
    home = tmp_path_factory.mktemp("runs")
    for name, size in (("a", 4), ("more/b", 6)):
        few = ("training.steps=1", f"model.hidden={size}", 'training.optimizer={name="sgd", momentum=0.5}')
        begin(small_setup(home, *few), home / name, Silent())
    shutil.copytree(home / "a", home / "broken")
    (home / "broken" / "summary.json").write_text("{}")
    return home


def test_each_run_has_its_scores_its_size_its_time_and_what_differs(runs: Path) -> None:
    found = {run.name: run for run in overview(runs).runs}
    assert [*found] == ["a", "broken", "more/b"]
    summary = json.loads((runs / "a" / "summary.json").read_text("utf-8"))
    assert found["a"].valid == summary["best"]["scores"]
    assert found["a"].parameters == summary["parameters"]
    assert found["a"].settings == {"model.hidden": 4}
    assert found["more/b"].settings == {"model.hidden": 6}
    assert found["broken"].state.startswith("damaged: ")
    assert found["broken"].valid == {}


def test_settings_differ_where_two_runs_that_have_them_disagree() -> None:
    assert differing([{"x": 1, "y": [1], "z": 0}, {"x": 1, "y": [2]}, {"w": 3}]) == ["y"]


def test_the_command_shows_a_table_and_writes_a_page_or_json(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(runs), "--out", str(tmp_path / "runs.html")]) == 0
    said = capsys.readouterr().out
    assert f"{runs}: 3 runs" in said
    [head] = [line for line in said.splitlines() if line.startswith("run ")]
    assert "valid accuracy" in head
    assert "model.hidden" in head
    assert "broken: damaged: " in said
    page = (tmp_path / "runs.html").read_text("utf-8")
    assert page.count("<tr>") == 4
    assert "training.optimizer" not in page  # it is the same in all runs
    assert main(["compare", str(runs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["settings"].get("model.hidden") for run in found["runs"]] == [4, None, 6]


def test_what_is_shown_is_sorted_by_its_value_and_not_by_how_it_is_written(runs: Path) -> None:
    found = overview(runs)
    rows = [run._replace(seconds=seconds) for run, seconds in zip(found.runs, (7200.0, None, 59.0), strict=True)]
    page = as_page(found._replace(runs=rows))
    assert 'data-value="7200.0">2 h 0 min</td>' in page
    assert 'data-value="59.0">59 s</td>' in page
    assert 'data-value="">–</td>' in page
    assert "1 min 0 s" in as_text(found._replace(runs=[rows[0]._replace(seconds=60.0)]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "is one run. To compare runs on the same data: recurra compare RUN RUN … DATA. To see all runs of a"),
        (["none"], "there is no folder"),
        (["empty"], "there are no runs in"),
        ([".", "--out", "runs.png"], "the table of a folder of runs is a page, so the file must end in .html"),
        ([".", "--set", "evaluation.x=1"], "--set evaluation.x=1: without data nothing is scored. Leave it out"),
    ],
)
def test_what_is_no_folder_of_runs_is_said(
    runs: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    (runs / "empty").mkdir(exist_ok=True)
    assert main(["compare", *words]) != 0
    assert message in capsys.readouterr().err


def test_a_link_is_not_followed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs)
    with pytest.raises(CheckpointError, match="there are no runs in"):
        overview(tmp_path)
