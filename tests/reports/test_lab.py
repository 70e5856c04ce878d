"""Cells compared on one problem: what is counted, shown and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.reports import cell_runs
from recurra.reports.cell_runs import CellRun, CellRuns
from recurra.reports.lab import about, as_page, as_text, cells_of, compare_cells, view
from recurra.training.log import ValidLine

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
        (["parity", "--automaton", "a.txt"], "--automaton a.txt: the file must end in .svg or .png."),
        (["copy", *QUICK, "--automaton", "a.svg"], "'copy' has no automaton to draw. Problems with one: parity, z60"),
        (["parity", "--train", "a.txt"], "--train is for data, but 'parity' is a problem that draws its own"),
        (
            ["tagging", "--train", "a.conll", "--length", "2"],
            "--length is for the problems of recurra lab; on data use",
        ),
        (["tagging", "--train", "a.conll", "--seeds", "0"], "--seeds must be above 0, but is 0."),
        (["tagging", "--train", "a.conll", "--automaton", "a.svg"], "there is no right automaton to compare with."),
        (["tagging", "--train", "a.conll", "--cells", ","], "name at least one cell, such as elman,gru,lstm."),
        (["parity", "--seeds", "0"], "--seeds must be above 0, but is 0."),
    ],
)
def test_what_cannot_be_compared_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_states_are_followed_and_the_automaton_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recurra.reports.lab.WORDS", 200)
    monkeypatch.setattr("recurra.analysis.extraction.CLUSTERS", (1, 2, 4))
    out, drawn = tmp_path / "lab.html", tmp_path / "automaton.svg"
    size = ["--length", "8", "--hidden", "16", "--cells", "elman,min_gru"]
    quick = [*size, "--updates", "300", "--learning-rate", "0.02"]
    assert main(["lab", "parity", *quick, "--seeds", "2", "--out", str(out), "--automaton", str(drawn)]) == 0
    said = capsys.readouterr()
    elman, min_gru = (line.split() for line in said.out.splitlines() if line.startswith(("elman", "min_gru")))
    assert elman[-4:] == ["100.00%", "2", "(right)", "0.00%"]
    assert float(min_gru[10].rstrip("%")) < 75
    assert said.err.count("seed 1") == 2
    page, picture = out.read_text(), drawn.read_text()
    assert "The automaton in min_gru" in page
    assert "Words by length" in page
    assert "parity, found in elman: 2 states, the right ones" in picture
    assert picture.count(">even</text>") == 1
    assert main(["lab", "tomita1", "--length", "2", "--hidden", "4", "--updates", "2", "--cells", "gru", "--json"]) == 0
    [course] = json.loads(capsys.readouterr().out)["courses"]
    assert course["tracked"]["right"].keys() == {"1", "2", "4", "8", "16"}
    assert course["tracked"]["found"]["automaton"]["symbols"] == ["0", "1"]


def test_problems_too_can_be_compared_at_equal_parameters() -> None:
    found = compare_cells("copy", ["lstm", "elman", "gru"], length=2, hidden=12, updates=1, equal_parameters=True)
    first, *others = (course.parameters for course in found.courses)
    assert all(abs(other - first) < 0.1 * first for other in others)
    assert found.courses[1].hidden > found.courses[2].hidden > 12


def test_a_cell_that_cannot_be_as_small_as_the_first_is_named() -> None:
    found = compare_cells("adding", ["elman", "gru", "ntm"], length=2, hidden=6, updates=1, equal_parameters=True)
    elman, gru, ntm = found.courses
    assert gru.hidden > 1
    assert ntm.hidden == 1
    assert ntm.parameters > 2 * elman.parameters
    said = about(found)
    assert "hidden 6 for the first cell, about as many parameters for the others" in said
    assert f"but ntm with hidden 1 has {ntm.parameters:,} instead of {elman.parameters:,}" in said
    assert "gru with" not in said
    runs = [_scored("elman", 0.5)._replace(parameters=298), _scored("ntm", 0.5)._replace(parameters=736, hidden=1)]
    twice = [run for run in runs for _ in range(2)]
    assert (
        "every cell has about as many parameters as the first, but ntm with hidden 1 has 736 instead of 298, and"
        in cell_runs.about(CellRuns("tagging", "a", "parameters", twice, 2))
    )


CONLL = "the\tD\ncat\tN\nsleeps\tV\n\na\tD\ndog\tN\n\n"


def test_cells_are_compared_on_data_at_equal_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.conll").write_text(CONLL * 2)
    data = ["--train", f"{tmp_path}/a.conll", "--valid", f"{tmp_path}/a.conll", "--test", f"{tmp_path}/a.conll"]
    few = ["model.characters.cell=none", "model.embedding=4", "data.min_count=1", "data.cache=false"]
    sets = [word for each in [*few, "training.threads=1"] for word in ("--set", each)]
    cells = '["lstm", {name = "gru", reset = "after"}]'
    quick = ["--hidden", "16", "--updates", "3", "--device", "cpu", "--cells", cells]
    out, keep = tmp_path / "cells.html", tmp_path / "runs"
    assert main(["lab", "tagging", *data, *sets, *quick, "--out", str(out), "--keep", str(keep)]) == 0
    said = capsys.readouterr().out
    assert "tagging on a.conll: every cell has about as many parameters as the first" in said
    rows = [line.split() for line in said.splitlines()[-2:]]
    assert [rows[0][:2], rows[1][:2]] == [["lstm", "16"], ["gru", "reset=after"]]
    assert int(rows[1][2]) > 16  # three gates in place of four
    sizes = [int(row[-6].replace(",", "")) for row in rows]
    assert abs(sizes[1] - sizes[0]) < 0.1 * sizes[0]
    for run in ("1-lstm", "2-gru_reset_after"):
        assert (keep / run / "model.safetensors").is_file()
    page = out.read_text()
    assert "Learning curves by updates" in page
    assert "Learning curves by seconds" in page
    assert main(["lab", "tagging", *data, *sets, *quick, "--equal", "hidden", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["hidden"] for run in found["runs"]] == [16, 16]
    assert found["runs"][0]["scores"].keys() == {"valid", "test"}
    assert found["runs"][0]["looks"][-1]["updates"] == 3


def test_of_several_seeds_on_data_means_and_deviations_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.conll").write_text(CONLL * 2)
    few = ["model.characters.cell=none", "model.embedding=4", "data.min_count=1", "data.cache=false"]
    sets = [word for each in [*few, "training.threads=1", "model.engine=loop"] for word in ("--set", each)]
    size = ["--hidden", "4", "--layers", "2", "--seed", "5", "--seeds", "2", "--updates", "2", "--device", "cpu"]
    lab = ["lab", "tagging", "--train", f"{tmp_path}/a.conll", "--valid", f"{tmp_path}/a.conll", *sets, *size]
    out, keep = tmp_path / "cells.svg", tmp_path / "runs"
    assert main([*lab, "--cells", "elman,gru", "--json", "--keep", str(keep), "--out", str(out)]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["name"], run["seed"]) for run in runs] == [
        (cell, seed) for cell in ("elman", "gru") for seed in (5, 6)
    ]
    assert runs[0]["looks"][-1]["loss"] != runs[1]["looks"][-1]["loss"]
    assert runs[2]["hidden"] == runs[3]["hidden"]
    assert all("layers = 2" in (keep / run["folder"] / "config.toml").read_text() for run in runs)
    assert (
        out.read_text().count(">gru</text>") == 4
    )  # in both panels of either picture a name for the cell, not for each run
    found = CellRuns(
        "tagging", "a", "hidden", [_scored("gru", 0.5), _scored("gru", 0.7), *[_scored("lstm", 1.0)] * 2], 2
    )
    table = cell_runs.as_table(found)
    assert [row[0] for row in table.rows] == ["gru", "lstm"]
    assert [row[4] for row in table.rows] == ["0.6000 ± 0.1414", "1.0000 ± 0.0000"]
    assert "from 2 seeds (means ± standard deviations)" in cell_runs.about(found)


def _scored(name: str, score: float) -> CellRun:
    return CellRun(name, 4, 10, 100, 1.0, [], {"valid": {"accuracy": score}}, "accuracy", "")


def test_a_model_without_one_width_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a b\tx\nc d\ty\n" * 3)
    lab = ["lab", "classification", "--train", f"{tmp_path}/a.tsv", "--set", "model.hidden=[4, 5]"]
    assert main([*lab, "--set", "model.encoder=rnn"]) == 2
    assert "no model.hidden that is one whole number: give --hidden N." in capsys.readouterr().err


def test_first_scores_that_are_far_from_all_later_ones_are_not_drawn() -> None:
    def run(name: str, *scores: float) -> CellRun:
        lines = [
            ValidLine(10 * number, 1.0, {"nll": score}, seconds=float(number)) for number, score in enumerate(scores, 1)
        ]
        return CellRun(name, 4, 10, 100, 1.0, lines, {}, "nll", "")

    later = [9.0 - 0.1 * number for number in range(19)]
    found = CellRuns("forecasting", "a", "hidden", [run("gru", 60.0, *later), run("lstm", 8.0, *later)])
    [panel] = cell_runs.view(found).views[0].json()["panels"]
    assert [len(curve["y"]) for curve in panel["curves"]] == [19, 20]
    assert max(panel["curves"][0]["y"]) == 9.0
