"""Every snippet of the README and the docs runs as it is printed, and every picture is what the script draws.

Blocks of `python`, `bash` and `console` run in the order of the page, in an empty folder that holds a small treebank
(train.conllu, dev.conllu, test.conllu) and small files for the other tasks of the README. A block that follows
"`name.ext`:" is the file of that name. In a `console` block, lines after "$ command" are what the command prints; "…"
stands for anything.
"""

from __future__ import annotations

import contextlib
import gc
import io
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recurra.cli import main, parser

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

SMALL = [
    *("model.hidden=16", "model.embedding=16", "model.characters.cell=none", "data.min_count=1"),
    *("training.learning_rate=0.02", "training.average=none", "training.validate=50", "training.threads=1"),
]
"""So taggers are trained here, where the page does not say otherwise."""

SMALL_TOO = {
    "classification": ["model.hidden=8", "model.embedding=8", "model.characters.cell=none"],
    "language_model": ["model.hidden=8", "model.embedding=8"],
    "forecasting": ["model.hidden=8"],
    "question_answering": ["model.hidden=8"],
    "seq2seq": ["model.hidden=8", "model.embedding=8"],
    "vec2seq": ["model.hidden=8", "model.embedding=8", "model.image.widths=[4, 8]", "model.image.layers=0"],
}
"""So are the others, where the page says nothing about the model or training."""

BRIEF = ["training.steps=2"]
"""Where the page says nothing about training."""

ONLY_PARSED = ("demo", "bench")
NEEDS = {"notebooks.md": ("narwhals", "pandas", "sklearn"), "sweeps.md": ("optuna",)}
"""Packages of extras without which a page cannot be tried."""

NOT_OURS = ("make", "pip", "tensorboard", "kill", "git")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package)
        gc.freeze()  # a sweep looks for garbage after each trial, among all that the tests before have left
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    if "recurra train" in text or "recurra.train" in text:
        # What these tests encode is of no use afterwards; what they compile is.
        monkeypatch.setattr("recurra.training.preparation.cache_folder", lambda: tmp_path / "cache")
        monkeypatch.setattr("recurra.runs.cache_folder", lambda: tmp_path / "cache")
        runpy.run_path(str(ROOT / "docs" / "small_files.py"), run_name="__main__")
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```") / 2
    try:
        for number, block in enumerate(blocks, 1):
            file, language, content = block.groups()
            if file is not None:
                Path(file).write_text(content)
            if language == "python":
                exec(compile(content, f"{page.name}, block {number}", "exec"), names)
            elif language in ("bash", "console"):
                for command, expected in commands(content, language):
                    printed = run(command, expected)
                    assert expected is None or agrees(printed, expected), f"{command}\n{printed}"
    finally:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
                del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_every_page_is_linked_from_the_readme_or_where_readers_start_or_from_the_cells() -> None:
    linked = "".join((ROOT / page).read_text() for page in ("README.md", "docs/start.md", "docs/cells/index.md"))
    assert [page.name for page in PAGES[1:] if not re.search(rf"\b{page.name}[)#]", linked)] == []


@pytest.mark.parametrize("script", ["draw.py", "draw_unrolled.py", "write_settings.py"])
def test_what_a_script_makes_is_what_it_would_make_now(script: str) -> None:
    command = [sys.executable, str(ROOT / "docs" / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_settings_shows_what_the_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "tagging"]) == 0
    assert f"```toml\n{capsys.readouterr().out}```" in (ROOT / "docs" / "settings.md").read_text()


def test_the_readme_lists_every_command() -> None:
    known = set(re.findall(r"recurra (\w+)", (ROOT / "README.md").read_text()))
    [choices] = [action.choices for action in parser()._actions if isinstance(action.choices, dict)]
    assert set(choices) - known == set()


def commands(content: str, language: str) -> Iterator[tuple[str, str | None]]:
    """The commands of a block, each with what it must print; None where the page does not say."""
    content = content.replace("\\\n", " ")
    if language == "console":
        for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield command, expected.rstrip("\n")
        return
    for line in content.splitlines():
        if line.strip() and not line.startswith("#"):
            yield line, None


def run(command: str, expected: str | None) -> str:
    """What a command line with pipes prints; recurra runs in this process, anything else in one of its own.

    A command may fail only where the page shows its complaint.
    """
    may_fail = expected is not None and "recurra: " in expected
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words, target = list(lexer), None
    stages: list[list[str]] = [[]]
    while words:
        word = words.pop(0)
        if word == "|":
            stages.append([])
        elif word == ">":
            target = words.pop(0)
        else:
            stages[-1].append(word)
    printed = ""
    for stage in stages:
        if stage[0] == "recurra":
            printed = recurra(stage[1:], printed, may_fail)
        elif stage[0] not in NOT_OURS:
            done = subprocess.run(stage, input=printed, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            printed = done.stdout
    if target is not None:
        Path(target).write_text(printed)
        return ""
    return printed


def recurra(arguments: list[str], standard_input: str, may_fail: bool) -> str:
    options = parser().parse_args(arguments)
    if arguments[0] in ONLY_PARSED:
        return ""
    if arguments[:2] == ["train", "tagging"]:
        extra = SMALL if "training." in str(options.set) else SMALL + BRIEF
        arguments[2:2] = [word for each in extra for word in ("--set", each)]
    elif (
        arguments[0] == "train"
        and arguments[1] in SMALL_TOO
        and not re.search("model.hidden|training.", str(options.set))
    ):
        unused = ["model.embedding", "model.characters"] if "data.frames" in str(options.set) else []
        unused += [] if "data.image" in str(options.set) else ["model.image"]
        extra = [each for each in SMALL_TOO[arguments[1]] + BRIEF if not each.startswith(tuple(unused))]
        arguments[2:2] = [word for each in extra for word in ("--set", each)]
    if arguments[0] == "train":
        arguments.append("--quiet")
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", io.StringIO(standard_input))
        status = main(arguments)
    assert status == (2 if may_fail else 0), printed.getvalue()
    return printed.getvalue()


def agrees(printed: str, expected: str) -> bool:
    parts = [re.escape(part.strip()) for part in " ".join(expected.split()).split("…")]
    return re.fullmatch(".*".join(parts), " ".join(printed.split())) is not None
