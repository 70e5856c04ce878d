"""Cells compared on one problem: what is counted, shown and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.reports.lab import as_page, as_text, cells_of, compare_cells, view

QUICK = ["--length", "6", "--hidden", "8", "--updates", "20", "--cells", "elman,gru"]


def test_every_cell_learns_from_the_same_start_for_as_many_updates() -> None:
    found = compare_cells("adding", ["elman", "lstm"], length=6, hidden=8, updates=30, look_every=10)
    assert [[look.updates for look in course.looks] for course in found.courses] == [[0, 10, 20, 30]] * 2
    again = compare_cells("adding", ["lstm"], length=6, hidden=8, updates=30, look_every=10)
    assert [look.loss for look in again.courses[0].looks] == [look.loss for look in found.courses[1].looks]


def test_a_budget_of_seconds_ends_it_too() -> None:
    found = compare_cells("copy", ["min_gru"], length=2, hidden=4, seconds=0.05, look_every=1)
    looks = found.courses[0].looks
    assert looks[-1].seconds >= 0.05
    assert all(look.seconds < 0.05 for look in looks[:-1])


def test_a_gated_cell_solves_a_short_problem() -> None:
    found = compare_cells("adding", ["gru"], length=4, hidden=24, updates=500, look_every=250)
    assert found.courses[0].looks[-1].loss < found.without_memory / 5
    assert "250" in as_text(found).splitlines()[-1]  # half of the loss without memory was passed there


def test_text_picture_and_page_show_every_cell_and_its_options() -> None:
    cells = cells_of('["elman", {name = "gru", reset = "after"}]')
    found = compare_cells("adding", cells, length=4, hidden=4, updates=4, look_every=2)
    for shown in (as_text(found), view(found).svg(), as_page(found)):
        assert "elman" in shown
        assert "gru reset=after" in shown
    assert view(found).svg().count("<path") >= 5


def test_the_command_writes_a_table_json_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lab.svg"
    assert main(["lab", "adding", *QUICK, "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()[-2:]] == ["elman", "gru"]
    assert "elman: 0." in said.err
    assert out.read_text().startswith("<svg")
    assert main(["lab", "copy", *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [course["cell"] for course in found["courses"]] == ["elman", "gru"]
    assert found["courses"][0]["looks"][-1]["updates"] == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["coppy"], "the problem = 'coppy' is not known. Did you mean 'copy'?"),
        (["adding", "--length", "1"], "--length must be at least 2 for 'adding', but is 1."),
        (["adding", "--hidden", "0"], "--hidden must be above 0, but is 0."),
        (["adding", "--updates", "-3"], "--updates must be above 0, but is -3."),
        (["adding", "--seconds", "nan"], "--seconds must be above 0, but is nan."),
        (["adding", "--cells", ","], "name at least one cell, such as elman,gru,lstm."),
        (["adding", "--cells", "lstn"], "there is no cell 'lstn'. Did you mean 'lstm'?"),
        (["adding", "--cells", "[1]"], "--cells [1] must be a list of names, or of tables with a name"),
        (["adding", "--cells", "[gru"], "--cells [gru is not a valid TOML list"),
        (["adding", "--out", "lab.txt"], "--out lab.txt: the file must end in .html, .svg or .png."),
    ],
)
def test_what_cannot_be_compared_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""
