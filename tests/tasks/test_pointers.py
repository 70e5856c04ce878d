"""Pointer networks from files to scores: what they learn, what they refuse, what they show."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.config import Seq2SeqSettings
from recurra.config.given import Given
from recurra.errors import DataError, RecurraError
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.once import made_once
from tests.tasks.small_pairs import SMALL, jsonl

ROOT = Path(__file__).parents[2]
POINTER = [*SMALL, "model.pointer=additive", "decoding.elements=all", "model.bidirectional=true"]


def numbers(path: Path, count: int, seed: int) -> str:
    """Three or four numbers, and their order."""
    chance, rows = np.random.default_rng(seed), []
    for _ in range(count):
        each = chance.random(int(chance.integers(3, 5))).round(3)
        rows.append({"frames": each[:, None].tolist(), "target": " ".join(str(n + 1) for n in np.argsort(each))})
    return jsonl(path, rows)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has learned to sort."""

    def make(here: Path) -> None:
        given = {"train": numbers(here / "train.jsonl", 400, 1), "valid": numbers(here / "valid.jsonl", 60, 2)}
        own = ["training.steps=140", "training.batch_size=64", "training.learning_rate=0.02", "training.validate=140"]
        begin(setup("seq2seq", given=given, overrides=[*POINTER, *own]), here / "run", Silent())

    return made_once(tmp_path_factory, "sorting", make) / "run"


def test_it_learns_to_sort(run: Path) -> None:
    scores = json.loads((run / "summary.json").read_text("utf-8"))["best"]["scores"]
    assert scores["exact_match"] > 0.8  # of 6 or 24 orders, one is right
    assert scores["perplexity"] < 1.3


def test_a_question_is_answered_by_numbers_and_where_it_pointed(run: Path) -> None:
    trained = load(run)
    [answer] = trained.predict([[[0.9], [0.1], [0.5]]], detail=True)
    assert sorted(answer.output.split()) == ["1", "2", "3"]
    assert answer.detail["source_tokens"] == ["1", "2", "3"]
    assert answer.alignment is not None
    weights = np.array(answer.alignment)
    assert weights.shape == (4, 3)
    assert [str(place + 1) for place in weights[:3].argmax(1)] == answer.output.split()


def test_commands_understand_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(run.parent / "valid.jsonl")
    assert main(["evaluate", str(run), file]) == 0
    shown = capsys.readouterr().out
    assert "exact_match" in shown
    assert "bleu" not in shown
    assert main(["predict", str(run), file]) == 0
    assert all(
        sorted(line.split()) == ["1", "2", "3", "4"][: len(line.split())]
        for line in capsys.readouterr().out.splitlines()
    )
    for view in ("attention", "probabilities", "tree", "saliency"):
        assert main(["explain", str(run), "[[0.9], [0.1], [0.5]]", "--show", view]) == 0
    for view in ("saliency", "gates"):  # the row's target, with its end, is longer than its frames
        capsys.readouterr()
        assert main(["explain", str(run), f"{file}:1", "--show", view, "--json"]) == 0
        elements = len(json.loads(Path(file).read_text().splitlines()[0])["frames"])
        assert json.loads(capsys.readouterr().out)["views"][view]["tokens"] == [str(n + 1) for n in range(elements)]
    assert "points at elements (additive)" in (run / "card.md").read_text("utf-8")


def test_check_proposes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = numbers(tmp_path / "a.jsonl", 30, 1)
    assert main(["check", train, "--valid", numbers(tmp_path / "b.jsonl", 10, 2)]) == 0
    [command] = [line for line in capsys.readouterr().out.splitlines() if "recurra train seq2seq" in line]
    assert command.endswith("--set model.pointer=additive")
    short = [part for each in [*SMALL, "training.steps=1"] for part in ("--set", each)]
    assert main([*shlex.split(command)[1:], "--out", str(tmp_path / "run"), *short, "--quiet"]) == 0


@pytest.mark.parametrize("target", ["1 4", "0 1", "1 x", "1 -2", "1 ²"])
def test_a_target_that_is_no_element_is_refused_with_its_place(tmp_path: Path, target: str) -> None:
    rows = [{"frames": [[0.1], [0.2], [0.3]], "target": each} for each in ("1 2 3", target)]
    train = jsonl(tmp_path / "a.jsonl", rows)
    word = next(word for word in target.split() if word not in ("1", "2", "3"))
    message = rf"a\.jsonl:2: the target names the element '{word}', but the source has 3 elements: with model\.pointer"
    with pytest.raises(DataError, match=message):
        begin(setup("seq2seq", given={"train": train}, overrides=POINTER), tmp_path / "run", Silent())


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.copy=true", "leave one of the two settings out"),
        ("model.encoder.kind=pyramid", "merges 4 of them into one"),
        ("model.tied=output", "there is no matrix of the output to share"),
        ("data.target.tokens=words", "a target is the numbers of elements"),
        ("data.joint=true", "with model.pointer the target has none|the source is numbers"),
        ("decoding.forced=['1']", "answers are elements of the source"),
        ("evaluation.shape=hull", "have two numbers each, but 'frames' has 1 per element"),
        ("evaluation.first=bleu", "evaluation.first"),
    ],
)
def test_what_does_not_go_with_a_pointer_is_refused(tmp_path: Path, override: str, message: str) -> None:
    train = numbers(tmp_path / "a.jsonl", 5, 1)
    given = {"train": train, "valid": train}
    with pytest.raises(RecurraError, match=message):
        begin(setup("seq2seq", given=given, overrides=[*POINTER, override]), tmp_path / "run", Silent())


@pytest.mark.parametrize("override", ["decoding.elements=once", "evaluation.shape=tour"])
@pytest.mark.parametrize("task", ["seq2seq", "vec2seq"])
def test_settings_of_elements_need_a_pointer(task: str, override: str) -> None:
    with pytest.raises(RecurraError, match=r"this model writes tokens: set model\.pointer, which only seq2seq has"):
        setup(task, given={"train": "a.tsv"}, overrides=[override])


def test_a_text_can_be_pointed_at_too(tmp_path: Path) -> None:
    rows = [
        {"source": "b a", "features": "UP", "target": "2 1"},
        {"source": "c a b", "features": "UP", "target": "2 3 1"},
    ]
    train = jsonl(tmp_path / "a.jsonl", rows)
    tokens = ["data.source.tokens=words", "training.steps=40"]
    begin(setup("seq2seq", given={"train": train}, overrides=[*POINTER, *tokens]), tmp_path / "run", Silent())
    assert [answer.output for answer in load(tmp_path / "run").predict_file(train, [])] == ["2 1", "2 3 1"]


@pytest.mark.parametrize("name", ["pointer_network"])
def test_the_recipes_load(name: str) -> None:
    settings = Given.of_file(ROOT / "recipes" / f"{name}.toml").settings(Seq2SeqSettings)
    assert settings.model.pointer == "additive"
