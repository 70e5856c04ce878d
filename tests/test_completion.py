"""recurra --print-completion: what a shell offers in place of half a word."""

from __future__ import annotations

import functools
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


STARTED = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--private", "-i"],
}
PLACE = {
    "bash": "completions/recurra",
    "zsh": "functions/_recurra",
    "fish": ".config/fish/completions/recurra.fish",
}
"""Where each shell looks for the script."""

BEFORE = {
    "bash": "bind 'set bell-style none'; source completions/recurra",
    "zsh": "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; unsetopt BEEP; "
    "zstyle ':completion:*' insert-tab false",
    "fish": "set -g fish_greeting; function fish_prompt; end; set -g fish_autosuggestion_enabled 0",
}
"""What a shell does first: no bells, and in zsh tabs complete also where more was typed behind them already."""

SHOWS = "recurra() { printf 'given'; printf '<%s>' \"$@\"; printf '\\n'; }"
SHOWS_IN_FISH = "function recurra; printf 'given'; printf '<%s>' $argv; printf '\\n'; end"
"""A command of this name that shows what it was given."""


class Typed:
    """A shell at a terminal of its own, in which somebody types."""

    def __init__(self, shell: str, folder: Path) -> None:
        # On macOS and Windows there may be neither; there the fixture has skipped before.
        import fcntl
        import pty
        import termios

        self.terminal, inside = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        ends: Any = {"stdin": inside, "stdout": inside, "stderr": inside}
        self.process = subprocess.Popen(
            STARTED[shell],
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # without a terminal of its own, fish ends
            **ends,
        )
        os.close(inside)
        self.type(f"{SHOWS_IN_FISH if shell == 'fish' else SHOWS}\n")
        self.type(f"{BEFORE[shell]}\nprintf 'rea''dy\\n'\n")
        self.until("ready\\r?\\n")

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def until(self, pattern: str, seconds: float = 20) -> str:
        """What the terminal shows, once it shows a pattern."""
        shown, end = "", time.monotonic() + seconds
        while re.search(pattern, shown) is None:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{pattern!r} was never shown, but: {shown!r}"
            shown += os.read(self.terminal, 65536).decode("utf-8", "replace")
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@functools.cache
def printed(shell: str) -> str:
    """What `recurra --print-completion SHELL` prints."""
    command = [sys.executable, "-c", "import sys; from recurra.cli import main; sys.exit(main())"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [*command, "--print-completion", shell], check=True, capture_output=True, text=True, env=environment
    ).stdout


@pytest.fixture(scope="module", params=list(STARTED))
def typed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    pytest.importorskip("shtab")
    pytest.importorskip("pty", reason="there are no terminals to type in")
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "pairs.tsv").touch()
    (folder / "runs").mkdir()
    script = folder / PLACE[request.param]
    script.parent.mkdir(parents=True)
    script.write_text(printed(request.param))
    shell = Typed(request.param, folder)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("keys", "given"),
    [
        ("recurra train tagging --set model.hid\t32 --dr\t\n", "<train><tagging><--set><model.hidden=32><--dry-run>"),
        ("recurra predict runs --set decoding.temp\t0.5\n", "<predict><runs><--set><decoding.temperature=0.5>"),
        ("recurra train tagging --set model.hid\t8 --train pai\t\n",
         "<train><tagging><--set><model.hidden=8><--train><pairs.tsv>"),
        ("recurra unpa\tpai\t\n", "<unpack><pairs.tsv>"),
        ("recurra train tagg\t--dr\t\n", "<train><tagging><--dry-run>"),
        ("recurra train pai\t--dr\t\n", "<train><pairs.tsv><--dry-run>"),
        ("recurra evaluate runs pai\t\n", "<evaluate><runs><pairs.tsv>"),
    ],
)  # fmt: skip
def test_a_value_is_typed_right_after_a_setting_and_a_blank_follows_anything_else(
    typed: Typed, keys: str, given: str
) -> None:
    typed.type(keys)
    assert f"given{given}\r" in typed.until("given<.*>\r?\n")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script for bash, in a folder with a file and a folder."""
    pytest.importorskip("shtab")
    folder = tmp_path_factory.mktemp("completion")
    (folder / "pairs.tsv").touch()
    (folder / "runs").mkdir()
    (folder / "script").write_text(printed("bash"))
    return folder


OFFERS = [
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
]


@pytest.mark.parametrize(("typed", "offered"), OFFERS)
def test_bash_offers(script: Path, typed: str, offered: str) -> None:
    found = subprocess.run(
        ["bash", "-c", OFFERED, "bash", "recurra", *typed.split()], cwd=script, capture_output=True, text=True
    )
    assert found.stdout.strip() == offered, found.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("typed", "offered"), [*OFFERS, ("train pai", "pairs.tsv")])
def test_fish_offers(script: Path, typed: str, offered: str) -> None:
    (script / "recurra.fish").write_text(printed("fish"))
    offers = f"source recurra.fish; complete -C 'recurra {typed}'"
    found = subprocess.run(["fish", "--no-config", "-c", offers], cwd=script, capture_output=True, text=True)
    words = [line.partition("\t")[0].removesuffix("/") for line in found.stdout.splitlines()]
    assert words == [offered], found.stderr


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
