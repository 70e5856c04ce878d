"""recurra --print-completion: what a shell offers in place of half a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recurra.cli import main
from recurra.commands.completion import TASKS, settings_of
from recurra.named import catalogue
from recurra.tasks.task import Task

OFFERED = """
source ./script
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_recurra recurra "${COMP_WORDS[$COMP_CWORD]}" ""
echo "${COMPREPLY[*]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash, in a folder with a file and a folder."""
    pytest.importorskip("shtab")
    folder = tmp_path_factory.mktemp("completion")
    (folder / "pairs.tsv").touch()
    (folder / "runs").mkdir()
    command = [sys.executable, "-c", "import sys; from recurra.cli import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    text = subprocess.run(
        [*command, "--print-completion", "bash"], check=True, capture_output=True, text=True, env=environment
    ).stdout
    (folder / "script").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("tr", "train"),
        ("train ta", "tagging"),
        ("train tagging --dr", "--dry-run"),
        ("train tagging --set model.hid", "model.hidden="),
        ("train tagging --train pai", "pairs.tsv"),
        ("evaluate run", "runs"),
        ("predict runs --set decoding.temp", "decoding.temperature="),
        ("export runs out --to o", "onnx"),
        ("config lang", "language_model"),
        ("sw", "sweep"),
        ("sweep pai", "pairs.tsv"),
        ("sweep sweep.toml --set training.learning_r", "training.learning_rate="),
        ("pack run", "runs"),
        ("unpack pai", "pairs.tsv"),
        ("pull owner/name run", "runs"),
    ],
)
def test_bash_offers(script: Path, typed: str, offered: str) -> None:
    found = subprocess.run(
        ["bash", "-c", OFFERED, "bash", "recurra", *typed.split()], cwd=script, capture_output=True, text=True
    )
    assert found.stdout.strip() == offered, found.stderr


def test_every_task_of_the_house_is_offered() -> None:
    assert sorted(TASKS) == catalogue(Task)


def test_settings_of_all_tasks_are_offered_where_models_are_trained() -> None:
    found = settings_of("train")
    assert {"model.hidden=", "training.learning_rate=", "data.columns=", "decoding.horizon="} <= set(found)
    assert all(name.startswith("evaluation.") for name in settings_of("evaluate"))


def test_a_shell_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-completion", "csh"]) == 2
    assert "--print-completion knows bash, zsh, fish, but not 'csh'." in capsys.readouterr().err


def test_without_shtab_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 2
    assert "needs shtab, which is not installed: pip install 'recurra[completion]'." in capsys.readouterr().err
