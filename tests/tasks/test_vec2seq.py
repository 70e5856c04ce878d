"""Vector to sequence: what is learned by heart is written back, whatever it was given as, and training is exact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import recurra
from recurra.data.batches import in_order_of_length
from recurra.data.store import Rows
from recurra.models.seq2seq import SequenceToSequence
from recurra.runs import begin, setup
from recurra.tasks.vec2seq import Vec2Seq
from recurra.training.answering import TOKENS
from recurra.training.preparation import prepared
from recurra.training.trained import Trained, load
from recurra.views.pixels import write_png
from tests.tasks.small_givens import (
    COLOURS,
    SHAPES,
    SMALL,
    colours,
    drawings,
    picture,
    pixels,
    places,
    small,
    strokes,
    task_of,
    trained,
    untrained,
)
from tests.tasks.small_pairs import Noted, jsonl, table
from tests.training.breaking import weights, weights_of_a_broken_run

NAMES = [name for name, _ in COLOURS]
SMALL_PICTURES = ("data.image.max_height=32", "data.image.max_width=32")


def files(folder: Path) -> str:
    """Eight pictures as PNG files, in a folder beside their table."""
    (folder / "pictures").mkdir()
    for number in range(8):
        (folder / "pictures" / f"{number}.png").write_bytes(write_png(picture(number)))
    rows = [{"image": f"pictures/{number}.png", "target": name} for number, name in enumerate(SHAPES)]
    return jsonl(folder / "files.jsonl", rows)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ['model.conditioning=["first"]', "model.cell=gru"],
        ['model.conditioning=["every"]', "model.encoder.layers=0"],
        ['model.conditioning=["initial", "first", "every", "output"]', "model.layers=2"],
        ['model.conditioning=["first"]', "model.direct=true", "model.encoder.hidden=8", "training.steps=100"],
    ],
    ids=lambda options: " ".join(options[:2]) or "default",
)
def test_eight_names_are_learned_by_heart_and_written_back(tmp_path: Path, options: list[str]) -> None:
    model = trained(tmp_path, colours(tmp_path), *options)
    found = model.predict([[*rgb] for _, rgb in COLOURS])
    assert [answer.output for answer in found] == NAMES
    assert found[0].input == "255 0 0"
    assert "alignment" not in found[0].detail


@pytest.mark.parametrize(
    ("make", "names", "options"),
    [
        (places, NAMES, []),
        (lambda folder: places(folder, rows=2), NAMES, []),
        (strokes, SHAPES, SMALL_PICTURES),
        (pixels, SHAPES, ["model.attention=none", "data.image.channels=3", "model.image.positions=false"]),
        (pixels, SHAPES, ["model.conditioning=[]", "model.wiring=feeding", "model.attention=additive"]),
    ],
    ids=["places", "grid", "strokes", "mean of pixels", "attention alone"],
)
def test_places_and_pictures_are_learned_by_heart_and_written_back(
    tmp_path: Path, make: object, names: list[str], options: Sequence[str]
) -> None:
    assert callable(make)
    file = make(tmp_path)
    model = trained(tmp_path, file, *options)
    assert [answer.output for answer in model.predict_file(file, [])] == names
    assert model.evaluate(file).values["exact_match"] == 1


def test_pictures_in_files_are_learned_by_heart_and_written_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    file = files(tmp_path)
    model = trained(tmp_path, file)
    assert [answer.output for answer in model.predict_file(file, [])] == SHAPES
    assert [answer.output for answer in model.predict_file(tmp_path / "pictures" / "3.png", [])] == [SHAPES[3]]
    monkeypatch.chdir(tmp_path)
    [from_file] = model.predict(["pictures/5.png"])
    assert (from_file.output, from_file.input) == (SHAPES[5], "pictures/5.png")
    assert model.predict([" pictures/5.png\t"])[0].score == from_file.score
    (tmp_path / "[5].png").write_bytes((tmp_path / "pictures" / "5.png").read_bytes())
    assert model.predict(["[5].png"])[0].score == from_file.score
    assert model.predict([picture(5)])[0].output == SHAPES[5]
    assert model.predict([picture(5).tolist()])[0].score == pytest.approx(from_file.score)


def test_a_picture_that_was_changed_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    file = files(tmp_path)
    settings = small(file, "data.cache=true").settings

    def first() -> np.ndarray:
        return np.array(prepared(Vec2Seq, settings, lambda _: None).store[0]["picture"])

    before = first()
    assert np.array_equal(first(), before)
    (tmp_path / "pictures" / "0.png").write_bytes(write_png(255 - picture(0)))
    assert np.array_equal(first(), 255 - before)


def test_a_question_is_asked_as_text_as_a_list_or_as_an_array(tmp_path: Path) -> None:
    model = untrained(tmp_path, colours(tmp_path))
    one, *others = model.predict(["255 0 0", "255\t0\t0", "[255,0,0]", [255, 0, 0], (255, 0, 0), np.array([255, 0, 0])])  # type: ignore[arg-type]
    assert {(other.output, other.score) for other in others} == {(one.output, one.score)}
    both = model.predict(np.array([[255, 0, 0], [0, 0, 255]]))
    assert [answer.input for answer in both] == ["255 0 0", "0 0 255"]
    grid = untrained(tmp_path, places(tmp_path, rows=2), run="grid")
    [answer] = grid.predict([np.ones((2, 4, 2))])
    assert answer.alignment is not None
    assert answer.alignment.shape[1] == 8
    assert answer.detail["columns"] == 4
    row, mixed = np.arange(8.0).reshape(4, 2), np.arange(8.0).reshape(2, 2, 2)
    alone = [grid.predict([each])[0].score for each in (row, mixed)]
    assert [each.score for each in grid.predict([row, mixed])] == pytest.approx(alone, abs=1e-5)
    drawn = untrained(tmp_path, strokes(tmp_path), *SMALL_PICTURES, run="drawn")
    assert drawn.predict([drawings()[2]])[0].score == drawn.predict([json.dumps(drawings()[2])])[0].score


@pytest.mark.parametrize("make", [colours, places, lambda f: places(f, rows=3), pixels], ids=["v", "s", "g", "p"])
def test_an_answer_is_the_same_alone_and_in_any_batch_and_greedy_is_a_beam_of_one(tmp_path: Path, make: object) -> None:
    assert callable(make)
    file = make(tmp_path)
    settings = ["training.precision=float64", "decoding.max_length=12", "training.steps=8"]
    model = trained(tmp_path, file, *settings)
    task = task_of(model)
    examples = list(task.questions(file, []))
    together = model.answers(examples, detail=True)
    for example, answer in zip(examples, together, strict=True):
        [alone] = model.answers([example], detail=True)
        assert alone.output == answer.output
        assert alone.score == pytest.approx(answer.score, abs=1e-9)
        if answer.alignment is not None:
            assert alone.alignment == pytest.approx(answer.alignment, abs=1e-9)
            assert answer.alignment.sum(1) == pytest.approx(1)
    greedy = model.searching(search="greedy").answers(examples)
    narrow = model.searching(search="beam", width=1).answers(examples)
    assert [each.output for each in greedy] == [each.output for each in narrow]
    assert [each.score for each in greedy] == pytest.approx([each.score for each in narrow])


def test_a_model_of_no_conditioning_says_the_same_of_every_vector(tmp_path: Path) -> None:
    model = trained(tmp_path, colours(tmp_path), "model.conditioning=[]", "training.steps=3")
    found = model.predict(["255 0 0", "0 0 0", "1 2 3"], best=2)
    assert len({(each.output, each.score) for each in found}) == 1


def test_the_same_vector_with_several_names_is_right_with_any_and_judged_by_its_likelihood(tmp_path: Path) -> None:
    model = trained(tmp_path, colours(tmp_path))
    file = table(tmp_path / "two.tsv", [("blood", "255", "0", "0"), ("red", "255", "0", "0"), ("ink", "0", "0", "0")])
    scores = model.evaluate(file)
    assert (scores.first, scores.higher_is_better) == ("perplexity", False)
    assert (scores.values["count"], scores.values["exact_match"]) == (2, 1)
    task = task_of(model)
    batch = task.batch([task.encode(example) for example in task.read([file])])
    assert batch.target is not None
    with torch.no_grad():
        assert isinstance(model.model, SequenceToSequence)
        nll = -float(model.model.token_log_likelihoods(batch).sum()) / int(batch.target.lengths.sum())
    assert scores.values["perplexity"] == pytest.approx(np.exp(nll), rel=1e-5)


BREAKABLE = [
    (colours, ["training.r_drop=1", "training.average=ema", "model.token_dropout=0.1"]),
    (places, ['training.forcing={name="linear", k=0.9, c=0.05, floor=0.2}', "augmentation.noise=0.3"]),
    (pixels, ["augmentation.shift=0.2", "augmentation.rotate=5", "augmentation.noise=0.1", "training.forcing=0.8"]),
]


@pytest.mark.parametrize(("make", "options"), BREAKABLE, ids=["r_drop", "forcing", "augmentation"])
def test_a_run_broken_and_resumed_ends_with_the_same_weights(tmp_path: Path, make: object, options: list[str]) -> None:
    assert callable(make)
    file = make(tmp_path)
    extra = ["training.steps=9", "training.validate=4", "training.batch_size=3", "model.dropout=0.2", *options]
    trained(tmp_path, file, *extra, valid=file, run="whole")
    broken = weights_of_a_broken_run(small(file, *extra, valid=file), tmp_path / "broken", last=6)
    assert broken == weights(tmp_path / "whole")


def test_augmentation_changes_what_is_learned_from_and_nothing_else(tmp_path: Path) -> None:
    file = pixels(tmp_path)
    plain = untrained(tmp_path, file, run="plain")
    changed = untrained(tmp_path, file, "augmentation.shift=0.3", "augmentation.noise=0.2", run="changed")
    assert not torch.equal(*(model.model.state_dict()["output.readout.weight"] for model in (plain, changed)))
    rows = list(task_of(changed).read([file]))
    assert changed.answers(rows) == changed.answers(rows)


def test_pictures_of_like_size_make_a_batch(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    sizes = draw.integers([8, 8], [60, 200], (600, 2))
    task = Vec2Seq.prepared(Vec2Seq.resolved(small(pixels(tmp_path), "training.batch_size=8").settings))
    rows = Rows(
        {
            "picture": np.zeros(0, np.uint8),
            "shape": np.array([*size, 1], np.int32),
            "target": np.zeros(draw.integers(1, 9), np.int32),
        }
        for size in sizes
    )
    batches = list(task.batches(rows, 0))
    assert sorted(row for batch in batches for row in batch) == list(range(600))
    padded = sum(len(batch) * int(sizes[batch].max(0).prod()) for batch in batches)
    assert padded < 1.5 * sizes.prod(1).sum()
    areas = [int(-(-height // 4) * -(-width // 4)) for height, width in sizes]
    assert task.lengths(rows).tolist() == [*map(max, areas, rows.lengths("target").tolist())]
    assert [batch.tolist() for batch in task.batches(rows, 0)] == [batch.tolist() for batch in batches]
    budget = Vec2Seq(
        small(pixels(tmp_path), "training.batch_size=none", "training.batch_tokens=900").settings, task.texts
    )
    assert all(len(b) * task.lengths(rows)[b].max() <= 900 or len(b) == 1 for b in budget.batches(rows, 0))


def test_questions_are_answered_some_at_a_time(tmp_path: Path) -> None:
    task = task_of(untrained(tmp_path, colours(tmp_path)))
    rows = Rows([task.encode(each) for each in task.questions(None, ["1 2 3"] * 600)])
    assert max(map(len, in_order_of_length(task.lengths(rows), tokens=TOKENS))) == 256


def test_targets_that_are_too_long_are_left_out_and_a_very_long_one_is_said(tmp_path: Path) -> None:
    told = Noted()
    begin(small(colours(tmp_path), "data.max_length=3", "training.steps=1"), tmp_path / "run", told)
    assert "left out 6 of 8 examples: a target is longer than data.max_length = 3" in " ".join(told.notes)
    rows = [{"vector": [n], "target": "a"} for n in range(40)] + [{"vector": [0], "target": "ab" * 500}]
    file = jsonl(tmp_path / "long.jsonl", rows)
    told = Noted()
    begin(small(file, "training.batch_size=32", "training.steps=1"), tmp_path / "long", told)
    assert "long.jsonl:41, has 1,001 tokens, and training.batch_size = 32 pads a whole batch" in " ".join(told.notes)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (colours, [], "vectors of 3 numbers, conditioning: initial, no attention, LSTM 16 decoder, 22 characters"),
        (
            places,
            ["model.conditioning=[]"],
            "features of 2 numbers per place, conditioning: none, projected_dot attention (outside), LSTM",
        ),
        (
            pixels,
            ["model.cell=gru"],
            "pictures, CNN 6 + 12, conditioning: initial, projected_dot attention (outside)",
        ),
    ],
)
def test_a_model_is_told_in_a_line(tmp_path: Path, make: object, options: list[str], said: str) -> None:
    assert callable(make)
    assert said in Vec2Seq.prepared(Vec2Seq.resolved(small(make(tmp_path), *options).settings)).described()


def test_several_runs_answer_as_one_and_a_saved_one_as_before(tmp_path: Path) -> None:
    file = colours(tmp_path)
    one, two = (trained(tmp_path, file, "training.steps=9", f"training.seed={n}", run=str(n)) for n in (1, 2))
    both: Trained = load([tmp_path / "1", tmp_path / "2"])
    scores = [model.predict(["255 0 0"])[0].score for model in (one, two, both)]
    assert len({*scores}) == 3
    again = load(one.save(tmp_path / "copy"))
    assert again.predict(["255 0 0"])[0].score == scores[0]


def test_likelihoods_are_not_smoothed_where_they_are_what_counts(tmp_path: Path) -> None:
    usual = [override for override in SMALL if "smoothing" not in override]

    def smoothing(file: str, *overrides: str) -> float | None:
        given = setup("vec2seq", given={"train": file}, overrides=[*usual, *overrides])
        return Vec2Seq.resolved(given.settings).model.label_smoothing

    assert smoothing(colours(tmp_path)) == 0
    assert smoothing(pixels(tmp_path)) == smoothing(places(tmp_path)) == 0.1
    assert smoothing(colours(tmp_path), "model.label_smoothing=0.2") == 0.2


def test_captions_of_few_words_are_not_judged_by_bleu(tmp_path: Path) -> None:
    def first(caption: str, *overrides: str) -> str | None:
        rows = [{"frames": [[1.0, number]], "caption": caption} for number in range(3)]
        given = setup("vec2seq", given={"train": jsonl(tmp_path / "a.jsonl", rows)}, overrides=[*SMALL, *overrides])
        return Vec2Seq.resolved(given.settings).evaluation.first

    assert first("a red square", "data.target.tokens=words") == "symbol_error_rate"
    assert first("a red square", "data.target.tokens=words", "evaluation.first=bleu") == "bleu"
    assert first("a red square") is None, "by its letters, as ever"
    assert first("a red square on a table", "data.target.tokens=words") is None


def test_python_trains_it_by_name(tmp_path: Path) -> None:
    settings = {"model.hidden": 8, "training.steps": 2, "data.cache": False, "training.device": "cpu"}
    model = recurra.train("vec2seq", train=colours(tmp_path), out=tmp_path / "run", settings=settings)
    assert task_of(model).settings.data.columns == ["target", "vector", "vector", "vector"]
    assert set(model.task.axes()) == {"decoder.embedding.weight", "output.readout.weight", "output.readout.bias"}
