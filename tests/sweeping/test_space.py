"""The space of a sweep: what a table says, and where it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.cli import main
from recurra.config.given import Given
from recurra.errors import ConfigError
from recurra.runs import setup_of
from recurra.sweeping.space import Choices, Range, check_fits, space_of, table_of_space, without_space

HEAD = 'task = "tagging"\n\n[data]\ntrain = "a.conll"\nvalid = "b.conll"\n\n[sweep]\n'


def space(path: Path, lines: str) -> dict[str, Any]:
    """What the lines of a table [sweep] mean."""
    path.write_text(HEAD + lines, "utf-8")
    given, spaces = without_space(Given.of(path))
    this = setup_of(given)
    found = space_of(spaces, this.kind.Settings)
    check_fits(given, found, this.kind.Settings)
    return {varied.name: varied.values for varied in found}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sweep.toml"


def test_settings_are_named_with_dots_in_sections_or_in_quotes(path: Path) -> None:
    wanted = {"model.hidden": Choices([8, 16]), "training.learning_rate": Range(1e-3, 0.1, log=True)}
    rate = "{from = 1e-3, to = 0.1, log = true}"
    for lines in (
        f"model.hidden = [8, 16]\ntraining.learning_rate = {rate}\n",
        f'"model.hidden" = [8, 16]\n"training.learning_rate" = {rate}\n',
        f"[sweep.model]\nhidden = [8, 16]\n[sweep.training]\nlearning_rate = {rate}\n",
    ):
        assert space(path, lines) == wanted


def test_a_range_is_of_whole_numbers_where_the_setting_is_one(path: Path) -> None:
    found = space(
        path,
        "model.hidden = {from = 32, to = 100, step = 32}\nmodel.dropout = {from = 0, to = 0.5}\n"
        "training.learning_rate = {from = 0.001, to = 0.005, step = 0.002}\n"
        "training.batch_tokens = {from = 100, to = 4000, log = true}\n",
    )
    assert found == {
        "model.hidden": Range(32, 96, 32, whole=True),  # 100 is not reached by steps of 32
        "model.dropout": Range(0.0, 0.5),
        "training.learning_rate": Range(0.001, 0.005, 0.002),
        "training.batch_tokens": Range(100, 4000, log=True, whole=True),
    }
    assert [found["model.hidden"].has(value) for value in (32, 64, 96, 33, 128, 64.0, True)] == [True] * 3 + [False] * 4


def test_choices_may_be_parts_with_options_and_lists(path: Path) -> None:
    found = space(path, 'model.cell = ["lstm", {name = "gru", reset = "after"}]\nmodel.hidden = [16, [16, 8]]\n')
    assert found["model.cell"].labels == ["lstm", '{name = "gru", reset = "after"}']
    assert found["model.cell"].value('{name = "gru", reset = "after"}') == {"name": "gru", "reset": "after"}
    assert found["model.hidden"].value("[16, 8]") == [16, 8]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("model.hiden = [8, 16]", "there is no setting 'model.hiden'. Did you mean 'hidden'?"),
        ("modle.hidden = [8, 16]", "there is no setting 'modle'. Did you mean 'model'?"),
        ("model.hidden = [8]", "model.hidden has 1 choice: give at least two, or leave it out."),
        ("model.hidden = []", "model.hidden has no choice: give at least two"),
        ("model.hidden = [8, 8]", "model.hidden has the choice 8 twice."),
        ("model.hidden = 8", "must be a list of choices, [16, 32], or a range, {from = 16, to = 64}, but is 8."),
        ("model.hidden = [8, 'many']", "must be a whole number or a list of whole numbers, but is 'many'."),
        ("model.hidden = {from = 8}", "the range has no 'to': write {from = …, to = …}."),
        ("model.hidden = {from = 8, to = 16, stpe = 4}", "a range has no 'stpe'. Did you mean 'step'?"),
        ("model.hidden = {from = 16, to = 8}", "the range must go upwards, but goes from 16 to 8."),
        ("model.hidden = {from = 8, to = 16, step = 9}", "the step of 9 does not lead from 8 to 16."),
        ("model.hidden = {from = 8.5, to = 16}", "is a whole number: the range must be of whole numbers."),
        ("model.hidden = {from = 8, to = 'x'}", "'to' must be a number, but is 'x'."),
        ("model.hidden = {from = 0, to = 16}", "model.hidden must be"),
        ("model.hidden = {from = 8, to = 16, log = 1}", "'log' must be true or false, but is 1."),
        ("model.hidden = {from = 8, to = 16, step = 2, log = true}", "a range with 'log' has no step"),
        ("model.dropout = {from = 0, to = 0.5, log = true}", "a range with 'log' begins above 0, but this one at 0."),
        ("model.dropout = {from = 0.1, to = 1.5}", "model.dropout must be at least 0 and below 1, but is 1.5."),
        ("model.cell = {from = 1, to = 3}", "model.cell is no number, so it has no range: give a list of choices."),
        ("training.schedule = ['cosin', 'linear']", "cosin"),
        ("data.valid = ['b.conll', 'c.conll']", "data.valid decides what is measured, so trials that differ in it"),
        ("evaluation.x = [1, 2]", "evaluation.x decides what is measured"),
    ],
)  # fmt: skip
def test_what_cannot_be_varied_is_refused_with_file_and_line(path: Path, line: str, said: str) -> None:
    if "schedule" in line:  # a name that only the schedule knows is refused when a trial has it
        assert space(path, line)
        return
    with pytest.raises(ConfigError) as caught:
        space(path, f"model.layers = [1, 2]\n{line}\n")
    assert str(caught.value).startswith(f"{path}:9: ")
    assert said in str(caught.value)


def test_without_a_space_the_command_says_how_one_is_written(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(HEAD.removesuffix("[sweep]\n"), "utf-8")
    assert main(["sweep", str(path), "--trials", "3"]) == 2
    assert "there is nothing to vary" in capsys.readouterr().err
    path.write_text(HEAD, "utf-8")
    assert main(["sweep", str(path), "--trials", "3"]) == 2
    assert 'model.cell = ["gru", "lstm"]' in capsys.readouterr().err
    path.write_text("sweep = 3\n" + HEAD.removesuffix("[sweep]\n"), "utf-8")
    assert main(["sweep", str(path), "--trials", "3"]) == 2
    assert "[sweep] must be a table of settings that vary, but is 3" in capsys.readouterr().err


def test_other_commands_refuse_a_config_with_a_space(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(HEAD + "model.hidden = [8, 16]\n", "utf-8")
    for command in (["train", str(path)], ["config", str(path)]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"{path}:7: [sweep] is the space of a sweep" in said
        assert "recurra sweep CONFIG" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "a sweep needs an end: give a number of trials (--trials 50), or a time (--minutes 60)."),
        (["--trials", "0"], "--trials must be above 0, but is 0."),
        (["--minutes", "-1"], "--minutes must be above 0, but is -1"),
        (["--trials", "3", "--set", "data.valid=none"], "a sweep compares scores on validation data, but none is"),
    ],
)  # fmt: skip
def test_a_sweep_without_an_end_or_without_validation_data_is_refused(
    path: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(HEAD + "model.hidden = [8, 16]\n", "utf-8")
    assert main(["sweep", str(path), "--out", str(path.parent / "out"), *more]) == 2
    assert said in capsys.readouterr().err
    assert not (path.parent / "out").exists()


def test_a_space_in_python_is_refused_with_its_key() -> None:
    common: dict[str, Any] = {"out": "new", "train": "a.conll", "valid": "b.conll", "trials": 3}
    with pytest.raises(ConfigError, match=r"^space\['model.hiden'\]: there is no setting 'model.hiden'"):
        recurra.sweep("tagging", {"model.hiden": [8, 16]}, **common)
    with pytest.raises(ConfigError, match=r"^space\['model'\]\['hidden'\]: model.hidden has 1 choice"):
        recurra.sweep("tagging", {"model": {"hidden": [8]}}, **common)
    with pytest.raises(ConfigError, match="space must be a table"):
        recurra.sweep("tagging", ["model.hidden"], **common)  # type: ignore[arg-type]


def test_the_space_is_written_down_as_it_could_be_read_again(path: Path) -> None:
    lines = "model.hidden = {from = 32, to = 96, step = 32}\nmodel.dropout = {from = 0.1, to = 0.5, log = true}\n"
    path.write_text(HEAD + lines + 'model.cell = ["gru", "lstm"]\n', "utf-8")
    given, spaces = without_space(Given.of(path))
    assert table_of_space(space_of(spaces, setup_of(given).kind.Settings)) == {
        "model.hidden": {"from": 32, "to": 96, "step": 32},
        "model.dropout": {"from": 0.1, "to": 0.5, "log": True},
        "model.cell": ["gru", "lstm"],
    }
