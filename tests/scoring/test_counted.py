"""Counts of items: their sums give the very scores of a task, on all data and on any part of it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.runs import setup
from recurra.scoring.counted import counted, is_higher_better, ratio
from recurra.tasks.task import Task
from recurra.training.evaluation import outputs_to_score
from recurra.training.preparation import prepared


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
WITHOUT = {"auc", "count", "characters", "unknown", "unseen_recall"}
"""Scores that are no function of sums, or no scores."""


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
def test_sums_of_counts_give_the_scores_of_all_examples_and_of_any_part(case: str, tmp_path: Path) -> None:
    task, examples, outputs = asked(case, tmp_path)
    found = task.counted(examples, outputs)
    assert found is not None
    assert len(found.items) == len({*found.items}) == len(examples)
    half = np.flatnonzero(np.arange(len(examples)) % 3 != 1)
    for part in (np.arange(len(examples)), half, np.concatenate([half, half[:5]])):
        scores = task.score([examples[n] for n in part], [outputs[n] for n in part]).values
        assert {*found.statistics} == {*scores} - WITHOUT
        for name in found.statistics:
            assert found.value(name, part) == pytest.approx(scores[name], rel=1e-9, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("case", CASES)
def test_it_is_known_of_each_first_score_whether_more_is_better(case: str, tmp_path: Path) -> None:
    task, examples, outputs = asked(case, tmp_path)
    scores = task.score(examples, outputs)
    assert is_higher_better(scores.first) == scores.higher_is_better


def test_a_text_that_is_read_as_a_whole_has_no_items(tmp_path: Path) -> None:
    options = [*SMALL, "model.embedding=4", "data.text.tokens=words"]
    given = {"train": lines(tmp_path, is_test=False)}
    task, _ = prepared(*setup("language_model", given=given, overrides=options)[:2], lambda _: None)
    assert task.counted([], []) is None


def test_too_many_classes_have_no_macro_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.scoring.class_counts.MOST", 100)
    for case in ("classes", "several classes"):
        task, examples, outputs = asked(case, tmp_path)
        found = task.counted(examples, outputs)
        assert found is not None
        assert not {"f1_macro", "precision"} & {*found.statistics}


def test_a_share_of_nothing_is_no_number() -> None:
    found = counted("ab", [1, 2], {"part": [0, 1], "whole": [0, 1]}, {"share": ratio("part", "whole")})
    assert math.isnan(found.value("share", np.array([0])))
    assert found.value("share") == 1.0
