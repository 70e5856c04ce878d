"""The page of named systems: each row names a recipe, a command and a test that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_recipes_of_systems import SMALL

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "systems.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| system |")]


def test_every_system_that_the_lectures_name_has_a_row() -> None:
    first = " ".join(row.split("|")[1].lower() for row in ROWS)
    named = """char-rnn; lstm pos tagger; cnn + bilstm; rr intervals; fasttext; cho's gru; chung's comparison;
    peepholes; unitary rnn; non-local; transformer; lambada; wmt and iwslt; sutskever; bahdanau; luong; captions by
    first input;
    show, attend and tell; image to markup; summarisation; code; dialogue; question answering; pointer networks;
    grammar; listen, attend and spell; chorowski; attentive reader; entailment; decomposable attention; memn2n; ntm;
    dnc; ctc"""
    assert [name for name in named.split(";") if " ".join(name.split()) not in first] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_what_is_there(row: str) -> None:
    _, _, _, _, figure, command, test, _ = row.split("|")
    recipes = re.findall(r"\(\.\./recipes/(\w+\.toml)\)", command)
    assert recipes
    assert all((ROOT / "recipes" / recipe).is_file() for recipe in recipes)
    assert re.search(r"\d", figure)
    for script in re.findall(r"python (benchmarks/\w+\.py)", command):
        assert (ROOT / script).is_file()
    path, name = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", test)[0]
    assert f"def {name}(" in (ROOT / path).read_text("utf-8")


def test_every_recipe_is_named() -> None:
    assert [path.name for path in (ROOT / "recipes").glob("*.toml") if f"recipes/{path.name})" not in PAGE] == []


ELSEWHERE = {
    "attention_based_summary": "tasks/test_turns_and_headlines.py::test_a_small_one_learns",
    "bahdanau": "test_recipes_of_decoders.py::test_words_are_learned_by_heart",
    "char_rnn": "test_recipes_of_sequences.py::test_char_rnn_learns_a_rhyme_by_heart",
    "dialogue": "tasks/test_turns_and_headlines.py::test_a_small_one_learns",
    "dnc": "test_memory_recipes.py::test_a_tagger_with_an_external_memory_learns",
    "gru_d": "tasks/test_gaps.py::test_the_recipe_loads_and_learns",
    "luong": "test_recipes_of_decoders.py::test_words_are_learned_by_heart",
    "memn2n": "test_memory_recipes.py::test_the_recipe_of_memory_networks_learns",
    "ntm": "test_memory_recipes.py::test_a_tagger_with_an_external_memory_learns",
    "show_attend_tell": "test_recipes_of_decoders.py::test_what_is_marked_in_a_scene_is_told",
    "show_attend_tell_hard": "test_recipes_of_decoders.py::test_what_is_marked_in_a_scene_is_told",
    "sutskever": "test_recipes_of_sequences.py::test_a_reversed_source_is_learned_faster_than_one_as_it_is",
}
"""Tests that a recipe learns, of those that tests/test_recipes_of_systems.py leaves out."""


def test_every_recipe_has_a_test_that_it_learns() -> None:
    names = {path.stem for path in (ROOT / "recipes").glob("*.toml")}
    assert names == {*SMALL, *ELSEWHERE}
    for name, where in ELSEWHERE.items():
        file, _, test = where.partition("::")
        text = (ROOT / "tests" / file).read_text("utf-8")
        assert f"def {test}(" in text
        assert f'"{name}"' in text or f"{name}.toml" in text


def without_brackets(text: str) -> str:
    """A text without what stands in brackets: published figures, which no command printed here.

    >>> without_brackets("61.0 % (86.3 (all) there), 78.8")
    '61.0 % , 78.8'
    """
    before = ""
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)", "", text)
    return text


def printed_by(script: str) -> list[float]:
    """The numbers in the output that is kept of a script, and what they are as a share in percent, or of the rest."""
    path = ROOT / "benchmarks" / "results" / f"{script}.txt"
    found = [
        float(number.replace(",", ""))
        for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", path.read_text("utf-8"))
    ]
    return [way for number in found for way in (number, 100 * number, 100 * (1 - number), 100 - number)]


def unprinted(row: str) -> list[str]:
    """The measured figures of a row, those with a point, that none of the scripts it names has printed."""
    _, _, _, _, figure, command, _, _ = row.split("|")
    scripts = {"systems", *re.findall(r"benchmarks/(\w+)\.py", figure + command)}
    known = [number for script in scripts for number in printed_by(script)]
    said = re.findall(r"(?<![\w.-])\d+\.\d+", without_brackets(figure))
    return [
        each
        for each in said
        if not any(abs(number - float(each)) <= 0.5001 * 10.0 ** -len(each.split(".")[1]) for number in known)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_the_figures_of_a_row_were_printed_by_its_commands(row: str) -> None:
    assert unprinted(row) == []


def test_a_figure_that_was_not_printed_is_found() -> None:
    [row] = [row for row in ROWS if row.startswith("| Cho's GRU")]
    assert unprinted(row.replace("BLEU 21.6", "BLEU 23.4567")) == ["23.4567"]
