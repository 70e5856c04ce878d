"""Small runs behind `recurra serve`, and a browser that looks at them; without a browser there is nothing to test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from recurra.runs import begin, setup
from recurra.training.progress import Silent
from tests.once import made_once
from tests.tasks.small_pairs import SMALL, table

IMAGE = "<img/src=x/onerror=alert(1)>"
"""One word for a model, and a picture that runs a script for a page that takes words for markup."""

PAIRS = [
    ("the cat", "le chat"),
    ("the dog", "le chien"),
    ("a cat", "un chat"),
    ("a dog", "un chien"),
    (f"the {IMAGE}", f"le {IMAGE}"),
    (f"a {IMAGE}", f"un {IMAGE}"),
]
FEW = [
    *("model.hidden=6", "model.embedding=4", "model.engine=loop", "data.cache=false"),
    *("training.steps=1", "training.batch_size=2", "training.threads=1", "training.device=cpu"),
]
FEW_NUMBERS = [setting for setting in FEW if not setting.startswith("model.embedding")]
LEVELS = "time,level,note\n" + "".join(f"2024-01-{day:02d},{day % 5},x\n" for day in range(1, 29))
"""What a forecaster has: dates and a remark beside the numbers."""

ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
]


NAMES = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if name and (found := shutil.which(name))), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One mark, since then one line says that none of them ran."""
    if CHROMIUM is None:
        for item in items:
            if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason="there is no chromium here: make page-test installs it"))


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that translate, with attention and without, that tag and that write; and two of tasks of one's own."""
    return made_once(tmp_path_factory, "page-runs", _train) / "served"


def _train(here: Path) -> None:
    pairs = table(here / "pairs.tsv", PAIRS)
    (here / "train.conll").write_text("the\tD\ncat\tN\nsleeps\tV\n\na\tD\ndog\tN\n\n")
    (here / "train.txt").write_text("one two\nthree\n" * 4)
    (here / "speech.jsonl").write_text('{"frames": [[1, 0], [1, 0], [0, 1]], "target": "a b"}\n' * 4)
    (here / "levels.csv").write_text(LEVELS)
    (here / "colours.csv").write_text("red,green,blue,target\n255,0,0,red\n0,255,0,lime\n0,0,255,blue\n")
    (here / "alike.tsv").write_text("the cat\ta cat\t4\nthe dog\tsun\t1\n")
    tokens = ["data.source.tokens=symbols", "data.target.tokens=symbols"]
    scored = [f"data.valid={pairs}", "evaluation.first=exact_match"]
    own = [setting for setting in FEW if not setting.startswith(("model.embedding", "model.engine", "training.steps"))]
    learns = ["training.steps=40", "training.learning_rate=0.1", "training.warmup=0"]
    for name, task, train, overrides in (
        ("translation", "seq2seq", pairs, [*SMALL, *tokens]),
        ("translation-blind", "seq2seq", pairs, [*SMALL, *tokens, "model.attention=none", *scored]),
        ("tags", "tagging", str(here / "train.conll"), [*FEW, "data.min_count=1", "model.characters.cell=none"]),
        ("text", "language_model", str(here / "train.txt"), [*FEW, "reading.steps=4"]),
        ("levels", "forecasting", str(here / "levels.csv"), [*FEW_NUMBERS, "data.values=['level']"]),
        ("colours", "vec2seq", str(here / "colours.csv"), [*FEW_NUMBERS, "model.embedding=4"]),
        ("speech", "tests.outside.ctc:CTC", str(here / "speech.jsonl"), [*own, *learns]),
        ("alike", "tests.outside.similarity:Similarity", str(here / "alike.tsv"), [*own, *learns]),
    ):
        begin(setup(task, given={"train": train}, overrides=overrides), here / "served" / name, Silent())


@pytest.fixture(scope="package")
def address(runs: Path) -> Iterator[str]:
    """Where `recurra serve` answers."""
    command = [sys.executable, "-m", "recurra", "serve", str(runs), "--port", "0"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=alone) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            assert line.startswith("http://127.0.0.1:"), line
            yield line.split()[0]
        finally:
            server.terminate()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all tests of the page; it is closed after them, since its loop would be in the way of others."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def refused() -> list[str]:
    """What the server refused to answer; a test that means it to takes them away."""
    return []


@pytest.fixture
def page(browser: Browser, address: str, refused: list[str]) -> Iterator[Page]:
    """An empty page that must not complain, whatever a test does with it, nor ask anyone but the server."""
    context = browser.new_context(base_url=address, viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(4000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = context.new_page()
    complaints: list[str] = []

    def noted(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said = f"{message.type}: {message.text} ({message.location['url']})"
            (refused if "status of 400" in said and "/api/" in said else complaints).append(said)

    def asked(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(address).netloc:
            complaints.append(f"asked for {request.url}")

    found.on("console", noted)
    found.on("pageerror", lambda error: complaints.append(f"uncaught: {error.stack or error}"))
    found.on("request", asked)
    found.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    yield found
    context.close()
    assert complaints + refused == []
