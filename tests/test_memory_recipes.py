"""The recipes of memory networks load, and their models learn on tiny data."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import Silent

RECIPES = Path(__file__).parents[1] / "recipes"
SMALL = ["training.device=cpu", "training.threads=1", "data.cache=false", "training.epochs=none"]


def test_the_recipe_of_memory_networks_has_the_settings_of_the_paper() -> None:
    model = setup(str(RECIPES / "memn2n.toml")).settings.model
    assert (model.hops, model.hidden, model.memories, model.noise, model.spread) == (3, 50, 50, 0.1, 0.1)
    assert (model.sentence, model.tying, model.temporal, model.vacant) == ("place", "adjacent", True, True)


def test_the_recipe_of_memory_networks_learns(tmp_path: Path) -> None:
    draw, train = random.Random(1), tmp_path / "train.txt"
    lines = []
    for _ in range(300):
        moves = [(draw.choice(["Ann", "Bob"]), draw.choice(["garden", "kitchen"])) for _ in range(2)]
        who = draw.choice(moves)[0]
        lines += [f"{number} {name} went to the {place}." for number, (name, place) in enumerate(moves, 1)]
        lines.append(f"3 Where is {who}?\t{dict(moves)[who]}\t1")
    train.write_text("".join(f"{line}\n" for line in lines))
    changes = [
        *SMALL, "training.steps=250", "model.hidden=12", "model.linear_start=20", "model.hops=1", "model.memories=4",
    ]  # fmt: skip
    begin(
        setup(str(RECIPES / "memn2n.toml"), given={"train": str(train)}, overrides=changes), tmp_path / "run", Silent()
    )
    assert recurra.load(tmp_path / "run").evaluate(train).values["accuracy"] > 0.95


@pytest.mark.parametrize("name", ["ntm", "dnc"])
def test_a_tagger_with_an_external_memory_learns(name: str, tmp_path: Path) -> None:
    draw, train = random.Random(1), tmp_path / "train.conll"
    sentences = []
    for _ in range(60):
        words = draw.choices("abc", k=4)
        sentences.append("".join(f"{word}\t{tag}\n" for word, tag in zip(words, ["-", *words], strict=False)))
    train.write_text("\n".join(sentences))
    changes = [
        *SMALL, "training.steps=80", "training.learning_rate=0.02", "model.hidden=12", "model.embedding=6",
        f'model.cell={{name="{name}",rows=6,width=4}}', "model.engine=loop", "training.batch_tokens=100",
    ]  # fmt: skip
    begin(
        setup(str(RECIPES / f"{name}.toml"), given={"train": str(train)}, overrides=changes), tmp_path / "run", Silent()
    )
    assert recurra.load(tmp_path / "run").evaluate(train).values["accuracy"] > 0.95


def test_copies_are_due_after_the_mark_and_longer_where_they_are_not_learned(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "examples" / "data" / "made_up.py"
    sizes = ["--train", "60", "--valid", "20", "--test", "5"]
    subprocess.run([sys.executable, str(script), "copies", str(tmp_path), *sizes], check=True)
    for part, least, most in (("train", 1, 10), ("valid", 11, 20), ("test", 20, 20), ("short", 10, 10)):
        blocks = (tmp_path / f"{part}.conll").read_text("utf-8").split("\n\n")
        for block in blocks:
            read, due = zip(*(line.split("\t") for line in block.splitlines()), strict=True)
            count = read.index("?")
            assert least <= count <= most
            assert read == (*read[:count], "?", *["-"] * count)
            assert due == (*["-"] * (count + 1), *read[:count])
    assert len(blocks) == 5
