"""Targets written from their end: the same network as one that learns targets turned round, and answers turned back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

import recurra
from recurra.cli import main
from recurra.errors import ConfigError, RecurraError
from recurra.metrics.brackets import is_balanced
from recurra.models.searching import searched
from recurra.reports.probabilistic_graph import picture as graph
from recurra.reports.unrolled import unrolled
from recurra.runs import begin, setup
from recurra.training.explaining import explain
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.training.writing import generate
from recurra.views.scene import Label
from tests.tasks import small_givens, small_pairs
from tests.tasks.small_givens import COLOURS, SHAPES
from tests.tasks.small_pairs import WORDS, table

PAIRS: dict[str, list[str]] = {
    "attention": ["decoding.best=3", "decoding.width=3"],
    "copied": ["model.copy=true", "data.source.min_count=2", "data.target.min_count=2"],
    "transformer": ["model.decoder.kind=transformer", "model.hidden=16", "model.encoder.hidden=8"],
    "window": ["model.decoder.kind=window"],
}
GIVENS = {"vector": small_givens.colours, "places": small_givens.places, "pictures": small_givens.pixels}


def turned(text: str) -> str:
    """Symbols in the opposite order."""
    return " ".join(text.split()[::-1])


def run_of(task: str, folder: Path, train: str, name: str, *overrides: str) -> Trained:
    few = [*(small_pairs.SMALL if task == "seq2seq" else small_givens.SMALL), "data.target.tokens=symbols"]
    begin(
        setup(task, given={"train": train}, overrides=[*few, "training.steps=5", *overrides]), folder / name, Silent()
    )
    return load(folder / name)


def both(
    task: str, folder: Path, rows: Sequence[Sequence[str]], target: int, *overrides: str
) -> tuple[Trained, Trained]:
    """A run that writes from the end, and one that writes targets which the file itself has turned."""
    usual = table(folder / "usual.tsv", rows)
    round_again = [[turned(cell) if place == target else cell for place, cell in enumerate(row)] for row in rows]
    own = "model.decoder.direction=backward" if task == "seq2seq" else "model.direction=backward"
    overrides = (*overrides, "decoding.min_length=3")
    one = run_of(task, folder, usual, "backward", own, *overrides)
    return one, run_of(task, folder, table(folder / "turned.tsv", round_again), "forward", *overrides)


def same(one: Trained, other: Trained, questions: Sequence[Any]) -> None:
    """Equal weights; answers are those of the other turned round, with their scores and where each token looked."""
    weights = zip(one.model.parameters(), other.model.parameters(), strict=True)
    assert all(torch.equal(own, its) for own, its in weights)
    answers = zip(one.predict(questions, detail=True), other.predict(questions, detail=True), strict=True)
    for answer, expected in answers:
        assert answer.output == turned(expected.output)
        assert answer.score == expected.score
        assert answer.detail["tokens"] == expected.detail["tokens"][::-1]
        found = [each["output"] for each in answer.alternatives]
        assert found == [turned(each["output"]) for each in expected.alternatives]
        looked, twin = answer.alignment, expected.alignment
        assert (looked is None) == (twin is None)
        if looked is not None and twin is not None:
            count = len(answer.detail["tokens"])
            assert np.array_equal(looked, [*twin[:count][::-1], *twin[count:]])
    assert any(len(answer.detail["tokens"]) > 1 for answer in one.predict(questions, detail=True))


@pytest.mark.parametrize(
    "kind", [kind if kind != "window" else pytest.param(kind, marks=pytest.mark.slow) for kind in PAIRS]
)
def test_a_network_that_writes_from_the_end_is_one_that_learns_turned_targets(kind: str, tmp_path: Path) -> None:
    one, other = both("seq2seq", tmp_path, WORDS, 1, *PAIRS[kind])
    same(one, other, [source for source, _ in WORDS[:4]])
    mine, theirs = one.evaluate(str(tmp_path / "usual.tsv")).values, other.evaluate(str(tmp_path / "turned.tsv")).values
    for name in ("nll", "exact_match", "symbol_error_rate", "rouge_l"):  # other scores go by blanks, or by letters
        assert mine[name] == pytest.approx(theirs[name], abs=1e-12)


def test_elements_are_pointed_at_from_the_last(tmp_path: Path) -> None:
    rows = [("c a b", "2 3 1"), ("b c a", "3 1 2"), ("a b", "1 2"), ("c b a", "3 2 1")]
    one, other = both("seq2seq", tmp_path, rows, 1, "model.pointer=additive", "data.source.tokens=symbols")
    same(one, other, [source for source, _ in rows])


def test_names_of_a_vector_are_written_from_the_end(tmp_path: Path) -> None:
    rows = [(" ".join(name), *map(str, rgb)) for name, rgb in COLOURS]
    one, other = both("vec2seq", tmp_path, rows, 0)
    same(one, other, [list(map(float, rgb)) for _, rgb in COLOURS[:4]])
    drawn, twins = (generate(model, "255 0 0", seed=3, count=4) for model in (one, other))
    assert [each.text for each in drawn] == [turned(each.text) for each in twins]


@pytest.mark.parametrize("kind", ["places", "pictures"])
def test_what_is_seen_is_told_from_the_end(kind: str, tmp_path: Path) -> None:
    file = GIVENS[kind](tmp_path)
    model = run_of("vec2seq", tmp_path, file, "run", "data.target.tokens=characters", "model.direction=backward")
    task = small_givens.task_of(model)
    ids = [task.encode(each)["target"] for each in task.read([file])]
    names = [name for name, _ in COLOURS] if kind == "places" else SHAPES
    tokens = task.texts.target.vocabulary.tokens_of
    assert ["".join(tokens(row[:-1])) for row in ids] == [name[::-1] for name in names]
    assert all(tokens(row[-1:]) == ["</s>"] for row in ids)
    asked: list[Any] = [task.sent(next(iter(task.read([file]))))] if kind == "places" else [small_givens.picture(0)]
    [answer] = model.predict(asked)
    assert answer.output == "".join(answer.detail["tokens"])


def test_the_decoder_may_write_forward_all_the_same(tmp_path: Path) -> None:
    """model.decoder says where the decoder differs from [model]."""
    made = small_givens.small(small_givens.colours(tmp_path), "model.decoder.direction=backward")
    assert made.settings.model.writes_backward
    with pytest.raises(ConfigError, match=r"model\.decoder\.direction is the order in which the target is written"):
        small_givens.small(
            small_givens.colours(tmp_path), "model.decoder.direction=forward", "model.direction=backward"
        )


def test_subwords_are_cut_anew_of_the_text_as_it_is_read(tmp_path: Path) -> None:
    cut = 'data.target.tokens={name="subwords", size=30, dropout=0.5}'
    file = table(tmp_path / "a.tsv", [(name, name * 3) for name, _ in WORDS])
    model = run_of("seq2seq", tmp_path, file, "run", "model.decoder.direction=backward", cut)
    task = small_pairs.task_of(model)
    row, texts = task.encode(next(iter(task.read([file])))), task.texts
    cuts = [task._recut(row, 0, seed)["target"] for seed in range(9)]
    assert {small_pairs.spelt(texts, texts.turned(ids)) for ids in cuts} == {WORDS[0][0] * 3}
    assert len({tuple(ids) for ids in cuts}) > 1


TREES = [("x", "(NP a )NP"), ("y", "(VP (NP b )NP c )VP"), ("x y", "(VP c )VP")]


@pytest.mark.parametrize(
    ("search", "brackets"), [("greedy", "balanced"), ("beam", "tree"), ("sampling", "balanced"), ("sampling", "tree")]
)
def test_brackets_are_balanced_from_either_end(search: str, brackets: str, tmp_path: Path) -> None:
    own = ["model.decoder.direction=backward", "training.steps=1", f"decoding.search={search}"]
    file = table(tmp_path / "a.tsv", TREES)
    model = run_of("seq2seq", tmp_path, file, "run", *own, f"decoding.brackets={brackets}", "decoding.max_length=12")
    answers = [answer.detail["tokens"] for answer in model.predict(["x", "y", "x y", "y y"], detail=True)]
    assert all(map(is_balanced, answers))
    assert brackets == "balanced" or all(tokens[0][0] == "(" and tokens[-1][0] == ")" for tokens in answers)


REFUSED = [
    (["model.decoder.kind=ctc"], r"'ctc' writes nothing step by step: its tokens stand in the order of the encoder's"),
    (["decoding.prefix=(NP"], r"decoding.prefix = '\(NP' is written first, but the targets are written from their end"),
]


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_what_the_order_cannot_do_is_said(settings: list[str], said: str, tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", TREES)
    with pytest.raises(RecurraError, match=said):
        run_of("seq2seq", tmp_path, file, "run", "model.decoder.direction=backward", *settings)


def test_a_bracket_that_closes_several_is_refused_from_the_end(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("x", "(NP a )"), ("y", "(VP b )")])
    with pytest.raises(RecurraError, match=r"written from their end, and '\)' closes several: write the label at both"):
        run_of("seq2seq", tmp_path, file, "run", "model.decoder.direction=backward", "decoding.brackets=balanced")


def test_runs_that_write_from_different_ends_are_no_ensemble(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", WORDS)
    for name, way in (("one", "forward"), ("two", "backward")):
        run_of("seq2seq", tmp_path, file, name, f"model.decoder.direction={way}", "training.steps=1")
    with pytest.raises(ConfigError, match=r"some of these runs write from the beginning and others from the end"):
        load([tmp_path / "one", tmp_path / "two"])
    back = load([tmp_path / "two", tmp_path / "two"]).predict(["cat"])[0]
    assert back.output == load(tmp_path / "two").predict(["cat"])[0].output


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("backward")
    file = table(here / "a.tsv", WORDS)
    run_of("seq2seq", here, file, "run", "model.decoder.direction=backward", "training.steps=60")
    return here


def test_views_show_the_text_as_it_is_read(backward: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = load(backward / "run")
    [answer] = model.predict(["tree"], detail=True)
    assert answer.output == "T R IY"
    sure = explain(model, "tree", show="probabilities")
    assert [line.split()[0] for line in sure.text.splitlines()[2:]] == ["T", "R", "IY", "∎"]
    assert "written from the end" in sure.text
    written = explain(model, "tree", show="decoder").text
    assert written.index("IY") < written.index("R")  # as it was written
    assert "attention (outside), LSTM 24 decoder from the end" in repr(model)
    asked = [str(backward / "run"), "tree", "--show", "decoder", "--direction", "forward"]
    assert main(["explain", *asked]) == 2
    assert "--direction forward: a decoder reads from its end only" in capsys.readouterr().err


def test_pictures_of_the_network_begin_with_the_last_token(backward: Path) -> None:
    task = load(backward / "run").task
    for scene in (unrolled(task), graph(task)):
        labels = [shape for shape in scene.shapes if isinstance(shape, Label) and shape.text[:1] == "y"]
        top = min(label.y for label in labels)
        outputs = sorted((label.x, label.text) for label in labels if label.y == top)
        assert [name for _, name in outputs] == ["yₜ", "yₜ₋₁", "yₜ₋₂", "y₁"]
    assert graph(task).label.endswith("p(y | x) = ∏ₜ p(yₜ | yₜ₊₁ … y_T, x)")


def test_an_exported_model_turns_its_answers_too(backward: Path) -> None:
    words = [source for source, _ in WORDS]
    model = load(backward / "run")
    assert main(["export", str(backward / "run"), str(backward / "exported")]) == 0
    exported = recurra.load(backward / "exported")
    assert [each.output for each in exported.predict(words)] == [each.output for each in model.predict(words)]
    with pytest.raises(ConfigError, match=r"a model that writes from the end cannot be exported to a page yet"):
        model.task.offline()


def test_settings_of_old_runs_say_nothing_of_the_order() -> None:
    for name in ("seq2seq", "vec2seq"):
        made = setup(name).settings.model
        assert made.decoder.direction is None
        assert not made.writes_backward
        assert dataclasses.replace(
            made, decoder=dataclasses.replace(made.decoder, direction="backward")
        ).writes_backward


def test_a_search_writes_the_last_token_first(backward: Path) -> None:
    model = load(backward / "run")
    task, network = small_pairs.task_of(model), cast("Any", model.model)
    batch = task.batch([task._question(each) for each in task.questions(None, ["cat", "tree"])])
    with torch.no_grad():
        found = searched(network, batch, task.settings.decoding, task.search_tokens)
    [[cat], [tree]] = found
    assert task.texts.target.vocabulary.tokens_of(tree.tokens) == ["IY", "R", "T", "</s>"]
    assert task._answer(cat, 0, None).text == "K AE T"
