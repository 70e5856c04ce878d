"""Grammar as a foreign language: trees are learned, and brackets are balanced whatever a network says."""

from __future__ import annotations

import dataclasses
import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from recurra.config import Seq2SeqSettings
from recurra.config.given import Given
from recurra.errors import RecurraError
from recurra.metrics.brackets import is_balanced, opens
from recurra.models.searching import searched
from recurra.runs import begin, setup
from recurra.tasks.seq2seq import Seq2Seq
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.once import made_once
from tests.tasks.small_pairs import SMALL, table

ROOT = Path(__file__).parents[2]
found = importlib.util.spec_from_file_location("grammar", ROOT / "examples" / "data" / "grammar.py")
assert found is not None
assert found.loader is not None
grammar: Any = importlib.util.module_from_spec(found)
found.loader.exec_module(grammar)

TREES = ["data.source.tokens=words", "data.target.tokens=symbols", "decoding.brackets=tree", "evaluation.shape=tree"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has learned some trees."""

    def make(here: Path) -> None:
        rows = grammar.pairs(440, random.Random(1), 4, set())
        train, valid = table(here / "train.tsv", rows[:400]), table(here / "valid.tsv", rows[400:])
        own = ["training.steps=100", "training.batch_size=32", "training.validate=100", "model.attention=additive"]
        settings = [*SMALL, *TREES, *own]
        begin(setup("seq2seq", given={"train": train, "valid": valid}, overrides=settings), here / "run", Silent())

    return made_once(tmp_path_factory, "grammar", make)


def test_trees_are_learned(here: Path) -> None:
    scores = load(here / "run").evaluate(here / "valid.tsv").values
    assert scores["bracket_f1"] > 0.8
    assert scores["balanced"] == 1.0


@pytest.mark.parametrize("search", ["greedy", "beam", "sampling", "exhaustive"])
@pytest.mark.parametrize("on_device", [False, True])
def test_every_search_closes_what_it_opens_even_untrained(here: Path, search: Any, on_device: bool) -> None:
    task: Any = load(here / "run").task
    assert isinstance(task, Seq2Seq)
    decoding = dataclasses.replace(
        task.settings.decoding,
        search=search,
        best=1 if search == "greedy" else 3,
        temperature=3.0 if search == "sampling" else 1.0,
        max_length=5 if search == "exhaustive" else 9,
    )
    questions = list(task.questions(None, ["the dog slept", "mary left", "a a a a a a"]))
    batch = task.batch([task.encode(question) for question in questions])
    tokens = task.texts.target.vocabulary.tokens
    for answers in searched(task.build().eval(), batch, decoding, task.search_tokens, on_device=on_device):
        for answer in answers:
            written = [tokens[number] for number in answer.tokens]
            assert answer.ended
            assert written.pop() == "</s>"
            assert is_balanced(written)
            depths = [sum(1 if opens(t) else -(t[0] == ")") for t in written[: n + 1]) for n in range(len(written))]
            assert depths[-1] == 0
            assert all(depths[:-1])  # one bracket holds all


def test_a_rule_for_brackets_that_nothing_can_close_is_refused(tmp_path: Path) -> None:
    train = table(tmp_path / "a.tsv", [("a", "( x"), ("b", "y )X")])
    with pytest.raises(RecurraError, match="no token of the targets opens a bracket that another one closes"):
        begin(setup("seq2seq", given={"train": train}, overrides=[*SMALL, *TREES]), tmp_path / "run", Silent())
    with pytest.raises(RecurraError, match=r"needs room for a bracket and the end, but decoding\.max_length = 2"):
        setup("seq2seq", given={"train": train}, overrides=["decoding.brackets=tree", "decoding.max_length=2"])


def test_brackets_without_labels_close_any_and_unmatched_ones_are_never_written(tmp_path: Path) -> None:
    rows = [("a", "(NP x )"), ("b", "[ y ] z )VP"), ("c", "{ z")]
    train = table(tmp_path / "a.tsv", rows)
    settings = [*SMALL, "data.target.tokens=symbols", "decoding.brackets=balanced", "training.steps=1"]
    begin(setup("seq2seq", given={"train": train}, overrides=settings), tmp_path / "run", Silent())
    task: Any = load(tmp_path / "run").task
    vocabulary, words = task.texts.target.vocabulary, task.search_tokens
    named = {tuple(vocabulary.tokens[each] for each in pair) for pair in words.brackets.pairs}
    assert named == {("(NP", ")"), ("[", "]")}
    assert {vocabulary.id("{"), vocabulary.id(")VP")} <= {*words.never}


def test_the_recipe_loads() -> None:
    settings = Given.of_file(ROOT / "recipes" / "grammar.toml").settings(Seq2SeqSettings)
    assert settings.decoding.brackets == "tree"


def test_a_generated_tree_holds_its_sentence() -> None:
    for sentence, tree in grammar.pairs(50, random.Random(3), 12, set()):
        assert is_balanced(tree.split())
        assert tree.split().count("XX") == len(sentence.split())
