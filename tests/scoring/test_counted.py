"""Counts of items: they give the scores of a task on all data, on any part of it and on samples."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.errors import ConfigError, DataError
from recurra.runs import setup
from recurra.scoring.counted import LARGEST, Counted, OfItems, Tally
from recurra.scoring.formulas import Sums, ratio, total
from recurra.sequences.written import Answer, Written
from recurra.tasks.task import Task
from recurra.training.evaluation import outputs_to_score
from recurra.training.preparation import prepared
from recurra.views.table import Table


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))


def jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def words(draw: random.Random, most: int = 8) -> list[str]:
    return [draw.choice("abcdefg") * draw.randint(1, 2) for _ in range(draw.randint(1, most))]


def tagged(folder: Path, *, is_test: bool) -> str:
    """Two columns of tags, one of spans, some of them missing."""
    draw, rows = random.Random(is_test), []
    for _ in range(30):
        tokens = words(draw) + (["new"] if is_test else [])
        slots = [draw.choice(["O", "B-x", "I-x", "B-y"]) for _ in tokens]
        kinds = [draw.choice(["P", "Q", None]) for _ in tokens]
        rows.append({"tokens": tokens, "slots": slots, "kinds": kinds, "label": draw.choice(["yes", "no"])})
    return jsonl(folder / f"tagged{is_test}.jsonl", rows)


def measured(folder: Path, *, is_test: bool) -> str:
    """A number at each step, some of them missing."""
    draw = np.random.default_rng(is_test)
    rows = [{"frames": draw.normal(size=(n, 2)).tolist(), "values": draw.normal(size=n).tolist()} for n in range(1, 20)]
    rows[3]["values"][1] = None
    return jsonl(folder / f"measured{is_test}.jsonl", rows)


def classed(folder: Path, *, is_test: bool) -> str:
    draw = random.Random(is_test)
    labels = ["cat", "dog", "owl", *(["elk"] if is_test else [])]
    rows = [{"text": " ".join(words(draw)), "label": draw.choice(labels)} for _ in range(60)]
    return jsonl(folder / f"classed{is_test}.jsonl", rows)


def two_classed(folder: Path, *, is_test: bool) -> str:
    draw = random.Random(is_test)
    rows = [{"text": " ".join(words(draw)), "label": draw.choice(["ill", "well"])} for _ in range(60)]
    return jsonl(folder / f"two{is_test}.jsonl", rows)


def several_classed(folder: Path, *, is_test: bool) -> str:
    draw = random.Random(is_test)
    known = ["cat", "dog", "owl", *(["elk"] if is_test else [])]
    rows = [{"text": " ".join(words(draw)), "labels": draw.sample(known, draw.randint(0, 3))} for _ in range(40)]
    return jsonl(folder / f"several{is_test}.jsonl", rows)


def numbered(folder: Path, *, is_test: bool) -> str:
    draw = random.Random(is_test)
    rows = [{"text": " ".join(words(draw)), "size": draw.gauss(1000, 3), "age": draw.random()} for _ in range(40)]
    return jsonl(folder / f"numbered{is_test}.jsonl", rows)


def lines(folder: Path, *, is_test: bool) -> str:
    draw = random.Random(is_test)
    path = folder / f"lines{is_test}.txt"
    path.write_text("".join(" ".join(words(draw)) + "\n" for _ in range(30)))
    return str(path)


def series(folder: Path, *, is_test: bool) -> str:
    draw = np.random.default_rng(is_test)
    path = folder / f"series{is_test}.csv"
    rows = [(name, step, *draw.normal(size=2)) for name in "pqr" for step in range(25)]
    path.write_text("series,time,a,b\n" + "".join(f"{n},{t},{a:.4f},{'' if t == 20 else b}\n" for n, t, a, b in rows))
    return str(path)


def frames(folder: Path, *, is_test: bool) -> str:
    draw = np.random.default_rng(is_test)
    rows = [{"frames": (draw.random((n, 4)) < 0.4).astype(int).tolist()} for n in range(2, 12)]
    return jsonl(folder / f"frames{is_test}.jsonl", rows)


SMALL = ("model.hidden=6", "data.cache=false")
CASES: dict[str, tuple[str, Callable[..., str], tuple[str, ...]]] = {
    "tags": ("tagging", tagged, ('data.tags=["slots", "kinds"]', "data.label=label", "model.embedding=4")),
    "values": ("tagging", measured, ("data.values=values",)),
    "classes": ("classification", classed, ("model.embedding=4", "decoding.abstain=0.34")),
    "two classes": ("classification", two_classed, ("model.embedding=4", "data.positive=ill")),
    "several classes": ("classification", several_classed, ("model.embedding=4", "decoding.threshold=0.5")),
    "numbers": ("classification", numbered, ('data.targets=["size", "age"]', "model.embedding=4")),
    "lines": ("language_model", lines, ("data.independent=true", "model.embedding=4", "data.text.tokens=words")),
    "series": (
        "forecasting",
        series,
        ("decoding.horizon=3", "evaluation.season=4", "evaluation.context=6", "data.missing=previous"),
    ),
    "frames": ("forecasting", frames, ()),
}


def asked(case: str, folder: Path) -> tuple[Task[Any, Any, Any], list[Any], list[Any]]:
    """A task with a random model, examples and outputs."""
    import torch

    name, data, options = CASES[case]
    train = data(folder, is_test=False)
    task, _ = prepared(*setup(name, given={"train": train}, overrides=[*SMALL, *options])[:2], lambda _: None)
    torch.manual_seed(0)
    examples = list(task.read([data(folder, is_test=True)]))
    rows = [task.encode(example) for example in examples]
    return task, examples, outputs_to_score(task, task.build(), rows)


@pytest.mark.parametrize("case", CASES)
def test_a_score_on_some_items_is_that_of_counting_them_alone(case: str, tmp_path: Path) -> None:
    task, examples, outputs = asked(case, tmp_path)
    found = task.counted(examples, outputs)
    assert len(found.items) == len({*found.items}) == len(examples)
    half = np.flatnonzero(np.arange(len(examples)) % 3 != 1)
    for part in (None, np.arange(len(examples)), half, np.concatenate([half, half[:5]])):
        chosen = range(len(examples)) if part is None else part
        scores = task.score([examples[n] for n in chosen], [outputs[n] for n in chosen]).values
        assert [*found.formulas, *found.sizes] == [*scores]
        for name in found.formulas:
            assert found.value(name, part) == pytest.approx(scores[name], rel=1e-9, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("case", CASES)
def test_samples_are_scored_like_items_that_are_named_as_often(case: str, tmp_path: Path) -> None:
    task, examples, outputs = asked(case, tmp_path)
    found = task.counted(examples, outputs)
    chance = np.random.default_rng(3)
    samples = [chance.integers(len(examples), size=len(examples)) for _ in range(10)]
    sampled = found.sampled(seed=3, resamples=10)
    assert found.first in sampled
    for name in found.formulas:
        by_hand = np.array([found.value(name, sample) for sample in samples])
        assert (name in sampled) == np.isfinite(by_hand).all()
        if name in sampled:
            np.testing.assert_allclose(sampled[name].samples, by_hand, rtol=1e-9, atol=1e-12)
            assert sampled[name].value == pytest.approx(found.value(name))


def test_a_text_that_is_read_as_a_whole_is_one_item(tmp_path: Path) -> None:
    options = [*SMALL, "model.embedding=4", "data.text.tokens=words"]
    given = {"train": lines(tmp_path, is_test=False)}
    task, _ = prepared(*setup("language_model", given=given, overrides=options)[:2], lambda _: None)
    examples = list(task.read([given["train"]]))
    rows = [task.encode(example) for example in examples]
    found = task.counted(examples, outputs_to_score(task, task.build(), rows))
    assert len(found.items) == 1
    values = found.scores().values
    assert values["count"] == sum(len(row["tokens"]) for row in rows) - 1  # the first token is given
    assert values["perplexity"] == pytest.approx(math.exp(values["nll"]))
    assert values["characters"] == sum(len(example.text) + 1 for example in examples)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ('"words"', (1 + 2) / (4 + 3)),
        ('{name="subwords", size=30}', (1 + 2) / (4 + 3)),
        ('"characters"', (1 + 2) / (4 + 3)),
        ('"symbols"', 1.0),
    ],
)
def test_the_word_error_rate_of_a_task_goes_by_what_its_targets_are_made_of(
    tmp_path: Path, tokens: str, expected: float
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("ein Satz\tthe old cat sleeps\nnoch einer\tdogs run home\n")
    options = [*SMALL, f"data.target.tokens={tokens}", "data.source.tokens=words"]
    task, _ = prepared(*setup("seq2seq", given={"train": str(path)}, overrides=options)[:2], lambda _: None)
    split = task.texts.target.split  # type: ignore[attr-defined]
    outputs = [
        Written((Answer(split(text), text, 0.0, 0.0),), None)
        for text in ("the old dog sleeps", "two dogs run far home")
    ]
    assert task.score(list(task.read([path])), outputs).values["word_error_rate"] == pytest.approx(expected)


def of_two(**options: Any) -> Counted:
    """Two sentences with 3 right words of 4, and 0 of 1."""
    scores = {"accuracy": ratio("right", "words")}
    return Counted.of("ab", {"right": [3, 0], "words": [4, 1]}, scores, first="accuracy", **options)


def test_scores_are_functions_of_sums_and_count_their_items() -> None:
    scores = of_two().scores()
    assert scores.values == {"accuracy": 3 / 5, "count": 2}
    assert (scores.first, scores.higher_is_better, scores.loss) == ("accuracy", True, None)
    assert not scores.tables
    assert of_two(sizes={"words": total("words")}).scores().values == {"accuracy": 3 / 5, "words": 5}
    assert of_two(loss=lambda sums: sums["words"] / sums["items"]).scores().loss == 5 / 2


def test_less_of_a_score_is_better_where_that_is_usual_or_said() -> None:
    usual = Counted.of("a", {"wrong": [1]}, {"mae": total("wrong"), "slips": total("wrong")}, first="slips")
    assert [usual.is_higher_better(name) for name in usual.formulas] == [False, True]
    said = Counted.of("a", {"wrong": [1]}, {"slips": total("wrong")}, first="slips", lower_is_better=["slips"])
    assert not said.scores().higher_is_better


def test_a_table_is_made_once_and_only_when_it_is_asked_for() -> None:
    made = []

    def table(counted: Counted) -> Table:
        made.append(counted)
        return Table(["words"], [[int(counted.sums()["words"])]])

    scores = of_two(tables={"words": table}).scores()
    assert (list(scores.tables), made) == (["words"], [])
    assert scores.tables["words"].rows == scores.tables["words"].rows == [[5]]
    assert len(made) == 1


def test_a_tally_counts_kinds_like_a_column_for_each() -> None:
    chance = np.random.default_rng(0)
    items, kinds, amounts = chance.integers(6, size=20), chance.integers(3, size=20), chance.random(20)
    columns = np.zeros((6, 3))
    np.add.at(columns, (items, kinds), amounts)
    tallied: dict[str, Any] = {"kinds": Tally(kinds, 3, items, amounts), "columns": columns}
    scores = {name: lambda sums, name=name: sums[name][..., 1] for name in tallied}
    found = Counted.of(range(6), tallied, scores, first="kinds")
    for part in (None, np.array([0, 0, 5, 2])):
        np.testing.assert_allclose(found.sums(part)["kinds"], found.sums(part)["columns"])
    sampled = found.sampled(resamples=5)
    np.testing.assert_allclose(sampled["kinds"].samples, sampled["columns"].samples)


def test_a_score_of_single_items_is_drawn_again_too() -> None:
    seconds = np.array([5.0, 1.0, 2.0, 9.0, 4.0])
    median = OfItems(lambda times: float(np.median(np.repeat(seconds, times))), size=5)
    found = Counted.of(range(5), {}, {"median": median}, first="median")
    assert found.value("median") == 4
    chance = np.random.default_rng(1)
    expected = [np.median(seconds[chance.integers(5, size=5)]) for _ in range(30)]
    assert found.sampled(seed=1, resamples=30)["median"].samples.tolist() == expected


def test_a_score_that_looks_at_too_many_numbers_has_no_samples() -> None:
    slow = OfItems(lambda times: float(times.sum()), size=LARGEST + 1)
    found = Counted.of("ab", {}, {"slow": slow, "items": total("items")}, first="slow")
    assert found.scores().values["slow"] == 2
    assert list(found.sampled(resamples=2)) == ["items"]


def test_a_formula_that_takes_plain_numbers_only_is_drawn_again_too() -> None:
    def plain(sums: Sums) -> Any:
        return max(float(sums["right"]), 1) / sums["words"] if sums["words"] > 1 else 0.0

    columns = {"right": [3, 0, 2], "words": [4, 1, 2]}
    found = Counted.of("abc", columns, {"plain": plain, "same": lambda sums: _same(sums)}, first="plain")
    sampled = found.sampled(resamples=20)
    np.testing.assert_array_equal(sampled["plain"].samples, sampled["same"].samples)


def _same(sums: Sums) -> Any:
    return np.where(sums["words"] > 1, np.maximum(sums["right"], 1) / sums["words"], 0.0)


def test_a_share_of_nothing_is_no_number() -> None:
    found = Counted.of("ab", {"part": [0, 1], "whole": [0, 1]}, {"share": ratio("part", "whole")}, first="share")
    assert math.isnan(found.value("share", np.array([0])))
    assert found.value("share") == 1.0


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        DataError, match="the count 'right' needs one number for each of the 2 items, but has 3 numbers"
    ):
        Counted.of("ab", {"right": [1, 2, 3]}, {}, first="")
    with pytest.raises(
        DataError, match="the count 'right' needs one number for each of the 2 items, but has a single one"
    ):
        Counted.of("ab", {"right": 3}, {}, first="")
    with pytest.raises(ConfigError, match="first = 'f1' is not one of the scores: accuracy"):
        Counted.of("ab", {"right": [1, 1]}, {"accuracy": ratio("right", "items")}, first="f1")
