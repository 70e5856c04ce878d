"""The recipes of dialogues and of headlines: they load, and small ones learn."""

from __future__ import annotations

import json
import random
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from recurra.config import Seq2SeqSettings
from recurra.config.given import Given
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from tests.tasks.small_pairs import SMALL, table

ROOT = Path(__file__).parents[2]


def turns(count: int) -> list[Any]:
    made = runpy.run_path(str(ROOT / "examples" / "dialogue.py"), run_name="dialogue")
    chance = random.Random(1)
    return [row for _ in range(count // 3) for row in made["rows"](made["dialogue"](chance), 3)]


def headlines(count: int) -> list[Any]:
    made = runpy.run_path(str(ROOT / "examples" / "data" / "headlines.py"), run_name="headlines")
    chance = random.Random(1)
    return [made["pair"](chance) for _ in range(count)]


@pytest.mark.parametrize("name", ["dialogue", "attention_based_summary"])
def test_the_recipe_loads(name: str) -> None:
    settings = Given.of_file(ROOT / "recipes" / f"{name}.toml").settings(Seq2SeqSettings)
    assert settings.data.source.tokens == settings.data.target.tokens == "words"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), [("dialogue", turns), ("attention_based_summary", headlines)])
def test_a_small_one_learns(name: str, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    rows = made(660)
    given = {"train": table(tmp_path / "train.tsv", rows[60:]), "valid": table(tmp_path / "valid.tsv", rows[:60])}
    decoder = ["model.decoder.hidden=24"] if name == "attention_based_summary" else []
    small = [*(each for each in SMALL if "steps" not in each), *decoder]
    own = ["training.steps=200", "training.batch_size=32", "training.validate=200", "evaluation.first=exact_match"]
    begin(setup(ROOT / "recipes" / f"{name}.toml", given=given, overrides=[*small, *own]), tmp_path / "run", Silent())
    scores = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["best"]["scores"]
    assert scores["exact_match"] > 0.6
    assert scores["perplexity"] < 1.5
