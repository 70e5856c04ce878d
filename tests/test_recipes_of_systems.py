"""The recipes of named systems: each is a page, and its model learns small data of its kind."""

from __future__ import annotations

import functools
import gzip
import importlib
import json
import random
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from recurra.data.strokes import draw
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.tasks.small_pairs import WORDS, table

ROOT = Path(__file__).parent.parent
RECIPES = sorted((ROOT / "recipes").glob("*.toml"))
BRIEF = ["training.device=cpu", "training.threads=1", "training.epochs=none", "data.cache=false"]
QUICK = [*BRIEF, "training.average=none", "training.warmup=0"]
SPELT = [(" ".join(word), sounds) for word, sounds in WORDS[:4]]


@functools.cache
def made_up() -> ModuleType:
    """examples/data/made_up.py, which imports the examples beside it."""
    before = [*sys.path]
    sys.path[:0] = [str(ROOT / "examples" / "data")]
    try:
        return importlib.import_module("made_up")
    finally:
        sys.path[:] = before


def of_kind(kind: str, ending: str, count: int) -> Callable[[Path], str]:
    """Training data of made_up.py."""

    def make(folder: Path) -> str:
        made_up().KINDS[kind](folder, "train", count, 1)
        return str(folder / f"train.{ending}")

    return make


def pairs(folder: Path) -> str:
    return table(folder / "words.tsv", SPELT)


def questions(folder: Path) -> str:
    rows = [("play some jazz", "music"), ("play bach", "music"), ("will it rain", "weather"), ("is it cold", "weather")]
    return table(folder / "questions.tsv", rows)


def tags(folder: Path) -> str:
    sentences = ["the DET\ncat NOUN\nsleeps VERB\n", "a DET\nbird NOUN\nsees VERB\nthe DET\ncat NOUN\n"]
    (folder / "tags.conllu").write_text("\n".join(map(conllu, sentences)) + "\n", "utf-8")
    return str(folder / "tags.conllu")


def conllu(sentence: str) -> str:
    words = [line.split() for line in sentence.splitlines()]
    return "".join(f"{n}\t{word}\t_\t{tag}" + "\t_" * 6 + "\n" for n, (word, tag) in enumerate(words, 1))


def rhyme(folder: Path) -> str:
    text = "one two buckle my shoe\nthree four knock at the door\nfive six pick up sticks\n" * 20
    with gzip.open(folder / "rhyme.txt.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    return str(folder / "rhyme.txt.gz")


def chords(folder: Path) -> str:
    """Pieces in which two chords alternate."""
    rolls = np.zeros((6, 8, 88), np.uint8)
    rolls[:, ::2, [40, 44, 47]] = 1
    rolls[:, 1::2, [41, 45, 48]] = 1
    lengths = np.full(6, 8)
    np.savez(folder / "chords.npz", frames=rolls.reshape(-1, 88), frames_lengths=lengths)
    return str(folder / "chords.npz")


def signs(folder: Path) -> str:
    """Strokes: a bar, and a bar that is crossed."""
    bar, cross = "[[[0, 20], [10, 10]]]", "[[[0, 20], [10, 10]], [[10, 10], [0, 20]]]"
    (folder / "ink.jsonl").write_text(
        f'{{"ink": {bar}, "latex": "- 1"}}\n{{"ink": {cross}, "latex": "+ 2"}}\n' * 4, "utf-8"
    )
    return str(folder / "ink.jsonl")


def sounds(folder: Path) -> str:
    """Eight frames for each of two digits, loud in another band."""
    draw, rows, digits = np.random.default_rng(1), [], []
    for number in range(12):
        said = [number % 2, number // 2 % 2]
        rows.append(np.repeat(np.eye(2)[said], 8, axis=0) + draw.normal(0, 0.1, (16, 2)))
        digits.append(" ".join(str(digit) for digit in said))
    frames, said_all = np.concatenate(rows).astype(np.float32), np.array(digits)
    np.savez(folder / "sounds.npz", frames=frames, frames_lengths=np.full(12, 16), digits=said_all, target=said_all)
    return str(folder / "sounds.npz")


def corners(folder: Path) -> str:
    """Four points each, whose hull is all of them or leaves the middle one out."""
    lines = [
        '{"frames": [[0, 0], [1, 0], [0.4, 0.3], [0, 1]], "target": "1 2 4"}',
        '{"frames": [[0.4, 0.3], [0, 0], [1, 0], [0, 1]], "target": "2 3 4"}',
        '{"frames": [[0, 0], [1, 0], [1, 1], [0, 1]], "target": "1 2 3 4"}',
    ]
    (folder / "hulls.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return str(folder / "hulls.jsonl")


def trees(folder: Path) -> str:
    rows = [("mary slept", "(S (NP XX )NP (VP XX )VP )S"), ("the dog slept", "(S (NP XX XX )NP (VP XX )VP )S")]
    return table(folder / "trees.tsv", rows)


def texts(folder: Path) -> str:
    """Premises and hypotheses; SICK has a fourth column, which its recipe leaves out."""
    draw, rows = random.Random(1), list[tuple[str, str, str]]()
    for _ in range(24):
        first, second = draw.choice(["dog", "cat"]), draw.choice(["dog", "cat"])
        rows.append((f"a {first} runs", f"a {second} runs", "entailment" if first == second else "contradiction"))
    return table(folder / "texts.tsv", rows)


def scored(folder: Path) -> str:
    rows = [(*line.split("\t"), "3.5") for line in Path(texts(folder)).read_text("utf-8").splitlines()]
    return table(folder / "scored.tsv", rows)


def documents(folder: Path) -> str:
    rows = [("document", "question", "answer")]
    for who in ("entity0", "entity1"):
        other = "entity1" if who == "entity0" else "entity0"
        rows += [(f"{who} lost a coat . {other} found a key .", "placeholder lost a coat", who)]
        rows += [(f"{who} lost a coat . {other} found a key .", "placeholder found a key", other)]
    return table(folder / "documents.tsv", rows * 4)


class Small(NamedTuple):
    """A recipe's data, settings that make it small, and the score that it must reach on what it has learned."""

    data: Callable[[Path], str]
    settings: list[str]
    score: str
    least: float
    most: float = float("inf")


TINY = ["model.hidden=24", "model.embedding=12", "model.dropout=0"]
PAIRS = [*TINY, "model.label_smoothing=0", "training.learning_rate=0.03"]
FEW = ["training.batch_size=8", "training.batch_tokens=1000"]
WORD = ["model.hidden=16", "model.embedding=8", "model.dropout=0", "training.learning_rate=0.02"]
HEADS = [*(f"model.{side}.heads=2" for side in ("encoder", "decoder")), "model.layers=2"]

SMALL = {
    "attentive_reader": Small(documents, [*WORD, "training.steps=60"], "accuracy", 0.9),
    "conditional_reader": Small(scored, [*WORD, "model.word_dropout=0", "training.steps=60"], "accuracy", 0.95),
    "cho": Small(
        pairs, [*PAIRS, *FEW, "data.source.min_count=1", "data.target.min_count=1", "training.steps=60"],
        "exact_match", 0.9,
    ),
    "chung": Small(chords, ["model.hidden=12", "model.embedding=12", "training.steps=120"], "nll", 0.0, 15.0),
    "cnn_bilstm": Small(
        questions,
        ["model.hidden=8", "model.embedding=8", "model.convolution.filters=8", 'model.characters={cell="none"}',
         "training.steps=30", "training.learning_rate=0.03"],
        "accuracy", 1.0,
    ),
    "ctc": Small(
        sounds, ["model.hidden=16", "model.embedding=8", "training.steps=100", "training.learning_rate=0.02"],
        "exact_match", 0.9,
    ),
    "decomposable_attention": Small(
        texts,
        ["model.pairing.size=16", "model.embedding=12", "model.word_dropout=0", "model.dropout=0", "training.steps=60",
         "training.learning_rate=0.02"],
        "accuracy", 0.95,
    ),
    "entailment": Small(texts, [*WORD, "model.word_dropout=0", "training.steps=60"], "accuracy", 0.95),
    "fasttext": Small(questions, ["model.bag.buckets=500", "training.steps=30"], "accuracy", 1.0),
    "grammar": Small(trees, [*PAIRS, "training.steps=60"], "exact_match", 1.0),
    "image_to_markup": Small(
        signs,
        [*TINY, "model.image.widths=[8, 12]", "model.image.layers=1", "model.label_smoothing=0", "training.steps=40",
         "training.learning_rate=0.02", "augmentation.warp=0", "augmentation.rotate=0"],
        "exact_match", 0.9,
    ),
    "lambada": Small(
        rhyme,
        ["model.hidden=24", "model.embedding=24", "model.layers=1", "training.steps=150", "training.batch_size=4",
         "model.input_dropout=0", "model.output_dropout=0", "training.learning_rate=0.02"],
        "perplexity", 1.0, 3.0,
    ),
    "listen_attend_spell": Small(
        sounds, ["model.hidden=16", "model.embedding=8", "training.steps=80", "training.learning_rate=0.02"],
        "exact_match", 0.9,
    ),
    "non_local": Small(
        of_kind("films", "npz", 600),
        ["training.steps=250", "model.convolution={filters=24, widths=[1]}", "training.learning_rate=0.01"],
        "accuracy", 0.8,
    ),
    "peephole": Small(of_kind("counting", "conll", 20), ["training.steps=150"], "accuracy", 0.9),
    "pointer_network": Small(corners, [*PAIRS, "training.steps=60"], "exact_match", 1.0),
    "pos_tagger": Small(
        tags,
        ["model.hidden=8", "model.characters.hidden=4", "model.dropout=0", "training.steps=40",
         "training.learning_rate=0.03"],
        "accuracy", 1.0,
    ),
    "question_answering": Small(
        of_kind("stories", "tsv", 6), [*PAIRS, "training.steps=60"], "exact_match", 0.9
    ),
    "rr_intervals": Small(
        of_kind("rhythms", "npz", 60), ["model.hidden=8", "training.steps=25", "training.learning_rate=0.03"],
        "accuracy", 0.9,
    ),
    "show_and_tell": Small(
        of_kind("scenes", "npz", 6),
        ["model.hidden=24", "model.embedding=24", "model.encoder.hidden=24", "training.steps=120",
         "model.label_smoothing=0", "model.dropout=0", "training.learning_rate=0.02"],
        "exact_match", 0.9,
    ),
    "text_to_code": Small(of_kind("programs", "tsv", 6), [*PAIRS, "training.steps=80"], "exact_match", 0.8),
    "transformer": Small(
        pairs,
        ["model.hidden=16", "model.embedding=16", "model.dropout=0", "model.label_smoothing=0", *FEW, *HEADS,
         "data.source.tokens=words", "training.steps=150", "training.learning_rate=0.01"],
        "exact_match", 0.9,
    ),
    "unitary": Small(
        of_kind("copying", "conll", 6), ["model.hidden=16", "training.steps=40", "training.learning_rate=0.01"],
        "accuracy", 0.9,
    ),
    "wmt": Small(pairs, [*PAIRS, *FEW, "data.source.tokens=words", "training.steps=60"], "exact_match", 0.9),
}  # fmt: skip
"""Tests of the other recipes: test_memory_recipes, test_recipes_of_decoders, test_recipes_of_sequences, and
tasks/test_gaps (gru_d) and tasks/test_turns_and_headlines (dialogue, attention_based_summary)."""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_a_recipe_is_a_page_that_says_what_differs_and_how_it_is_trained(recipe: Path) -> None:
    text = recipe.read_text("utf-8")
    assert setup(recipe).kind.name == tomllib.loads(text)["task"]
    assert f"recurra train recipes/{recipe.name}" in text
    assert "# Different" in text
    assert len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) <= 140


SLOW = {
    *("attentive_reader", "chung", "ctc", "image_to_markup", "lambada", "listen_attend_spell", "non_local", "peephole"),
    *("show_and_tell", "text_to_code", "transformer", "unitary"),
}
"""Those that take a second and more."""


def test_made_up_formulas_are_strokes_and_latex(tmp_path: Path) -> None:
    path = of_kind("formulas", "jsonl", 5)(tmp_path)
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    assert len(rows) == 5
    for row in rows:
        assert draw(row["ink"]).max() == 255
        assert any(sign in row["latex"].split() for sign in "+-=")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SMALL])
def test_a_small_one_learns(name: str, tmp_path: Path) -> None:
    small = SMALL[name]
    train = small.data(tmp_path)
    overrides = [*(BRIEF if name == "transformer" else QUICK), *small.settings]
    this = setup(ROOT / "recipes" / f"{name}.toml", given={"train": train}, overrides=overrides)
    begin(this, tmp_path / "run", Silent())
    found = load(tmp_path / "run").evaluate(train).values[small.score]
    assert small.least <= found <= small.most
