"""The page of named systems: each row names a recipe, a command and a test that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
