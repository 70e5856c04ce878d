"""The recipes of CTC, Luong, Bahdanau and Xu: they load as they are, and their models learn small data."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import WORDS, jsonl, table

FOLDER = Path(__file__).parent.parent / "recipes"
NAMES = ["ctc", "luong", "bahdanau", "show_attend_tell", "show_attend_tell_hard"]
SMALL = [
    *("model.hidden=24", "model.embedding=12", "model.dropout=0", "model.label_smoothing=0", "data.cache=false"),
    *("training.steps=35", "training.learning_rate=0.04", "training.warmup=0", "training.average=none"),
    *("training.epochs=none", "training.device=cpu", "training.threads=1"),
]


def learned(name: str, folder: Path, train: str, *overrides: str) -> Trained:
    begin(setup(FOLDER / f"{name}.toml", given={"train": train}, overrides=[*SMALL, *overrides]), folder, Silent())
    return load(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_loads_and_is_a_page(name: str) -> None:
    text = (FOLDER / f"{name}.toml").read_text("utf-8")
    assert setup(FOLDER / f"{name}.toml").kind.name == tomllib.loads(text)["task"]
    assert "# The paper:" in text or "the paper" in text
    assert "# Different" in text
    assert f"recurra train recipes/{name}.toml" in text
    assert len(text.splitlines()) < 60


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("luong", ["model.layers=1", "model.attention.look.reach=2"]),
        ("bahdanau", ["model.attention.size=12"]),
    ],
)
def test_words_are_learned_by_heart(name: str, own: list[str], tmp_path: Path) -> None:
    spelled = [(" ".join(word), sounds) for word, sounds in WORDS[:4]]
    few = ["training.batch_size=8", "training.batch_tokens=1000"]
    model = learned(name, tmp_path / "run", table(tmp_path / "words.tsv", spelled), *few, *own)
    answers = model.predict([word for word, _ in spelled])
    assert [answer.output for answer in answers] == [sounds for _, sounds in spelled]


def scenes(count: int, seed: int, folder: Path) -> str:
    """Grids of 2 × 3 places: what stands at the one that is marked is told."""
    draw, rows = np.random.default_rng(seed), list[dict[str, Any]]()
    for _ in range(count):
        things, marked = draw.integers(3, size=6), draw.integers(6)
        places = np.concatenate([np.eye(3)[things], np.eye(6)[marked][:, None]], axis=1)
        rows.append(
            {"frames": places.reshape(2, 3, 4).tolist(), "target": f"a {('cat', 'dog', 'fox')[things[marked]]}"}
        )
    return jsonl(folder / f"scenes-{seed}.jsonl", rows)


@pytest.mark.parametrize("name", ["show_attend_tell", "show_attend_tell_hard"])
def test_what_is_marked_in_a_scene_is_told(name: str, tmp_path: Path) -> None:
    own = ["model.conditioning=[]", "training.batch_size=25", "training.steps=60"]
    model = learned(name, tmp_path / "run", scenes(100, 1, tmp_path), *own)
    assert model.evaluate(scenes(60, 2, tmp_path)).values["exact_match"] > 0.9
