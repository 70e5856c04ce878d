"""What the page is made of: text alone, of this machine alone, without a step of building."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

from recurra.data.checking.tasks import TASKS
from recurra.views.kinds import KINDS

PAGE = Path(str(resources.files("recurra") / "page"))
FILES = sorted(path.name for path in PAGE.iterdir() if path.is_file())
SCRIPTS = [name for name in FILES if name.endswith(".js")]
VIEWS = {f"view_{kind}.js" for kind in KINDS}

MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc")
CODE_OF_TEXT = re.compile(r"\beval\s*\(|new\s+Function\b|\bset(?:Timeout|Interval)\s*\(\s*[\"'`]|javascript:")
ELSEWHERE = re.compile(r"(?:\bhttps?:|\bwss?:|[\"'(=]\s*)//[\w.]", re.IGNORECASE)
NAMESPACES = re.compile(r"http://www\.w3\.org/(?:2000/svg|1998/Math/MathML)")  # names, which nothing fetches


def source(name: str) -> str:
    return (PAGE / name).read_text("utf-8")


def imported(name: str) -> list[str]:
    """The files that a script names, at its head or later."""
    return re.findall(r"(?:from|import)\s*\(?\s*\"\./([\w.-]+)\"", source(name))


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    assert not MARKUP.search(source(name))
    assert not CODE_OF_TEXT.search(source(name))


@pytest.mark.parametrize("name", FILES)
def test_no_file_names_another_place_than_this_machine(name: str) -> None:
    assert not ELSEWHERE.search(NAMESPACES.sub("", source(name)))


@pytest.mark.parametrize(
    "sentence", ['fetch("https://a.b/c")', 'src="//a.b/c"', "url(//a.b)", 'new WebSocket("ws://a")']
)
def test_other_places_would_be_found(sentence: str) -> None:
    assert ELSEWHERE.search(sentence)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_imports_is_there(name: str) -> None:
    for other in imported(name):
        assert (PAGE / other).is_file(), other


def test_every_script_is_used() -> None:
    named = set(re.findall(r"/page/([\w.-]+)", source("index.html")))
    waiting = list(named)
    while waiting:
        name = waiting.pop()
        found = set(imported(name)) - named if name.endswith(".js") else set()
        named |= found
        waiting += found
    assert [name for name in SCRIPTS if name not in named] == []


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".css")])
def test_no_style_fetches_anything(name: str) -> None:
    assert "@import" not in source(name)
    assert re.findall(r"url\((?!['\"]?data:)", source(name)) == []


def test_every_kind_of_view_has_one_drawer() -> None:
    assert {name for name in SCRIPTS if name.startswith("view_")} == VIEWS
    for name in VIEWS:
        assert len(re.findall(r"^export function draw\(place, ", source(name), re.MULTILINE)) == 1
        assert f'"./{name}"' in source("drawers.js")


def test_no_drawer_knows_tasks_or_names_of_views() -> None:
    for name in [*VIEWS, "drawers.js"]:
        assert not re.search(r"\.task\b|\brun\.|seq2seq|language_model|saliency|probabilities", source(name)), name


DECIDED = re.compile(
    rf"\[[^\]\n]*\.task\]|\.task\s*[!=]==?\s*[\"'`]|switch\s*\([^)]*\.task|\b(?:{'|'.join(TASKS)})\b\s*[\"'`:]"
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_decides_anything_by_the_name_of_a_task(name: str) -> None:
    assert DECIDED.findall(source(name)) == []
    assert "run.task" not in source(name) or name == "heading.js"  # which shows it


@pytest.mark.parametrize(
    "sentence",
    [
        'run.task !== "language_model"',
        "TASKS[context.run.task]",
        "{ tagging: drawTags }",
        "switch (run.task)",
        '"vec2seq"',
    ],
)
def test_a_decision_by_the_name_of_a_task_would_be_found(sentence: str) -> None:
    assert DECIDED.search(sentence)


class _Elements(HTMLParser):
    """The elements of a page, and the texts of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style"):
            self.inline.append(data.strip())


def test_the_page_has_no_script_or_style_in_its_markup_and_names_files_that_are_there() -> None:
    read = _Elements()
    read.feed(source("index.html"))
    assert not any(read.inline)
    for tag, attributes in read.found:
        assert tag != "style"
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
        for name in ("src", "href"):
            value = attributes.get(name) or ""
            if value.startswith("/page/"):
                assert (PAGE / value.removeprefix("/page/")).is_file(), value
    assert next(attributes for tag, attributes in read.found if tag == "html").get("lang") == "en"
