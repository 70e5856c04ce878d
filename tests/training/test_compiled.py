"""A run answers by its program in C where that pays: the answers are torch's, and a sentence says what ran."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from recurra.training import compiled
from recurra.training.answering import RECORDING
from recurra.training.trained import Trained, load
from tests.exporting.exports import OLD, answers_of, assert_alike, inputs_of

pytestmark = pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _impatient(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are made at once, and kept in a cache of these tests alone."""
    monkeypatch.setenv("RECURRA_CACHE", str(cache))
    monkeypatch.setattr(compiled, "PATIENCE", 0.0)
    monkeypatch.setattr(compiled, "PATIENCE_WITH_CACHE", 0.0)


def in_torch(task: str) -> Trained:
    model = load(OLD / task / "run").in_torch()
    assert model.engine_report() == "torch answers: C was not asked for"
    return model


def assert_torch_says_the_same(model: Trained, task: str) -> None:
    for found, right in zip(answers_of(model, task), answers_of(in_torch(task), task), strict=True):
        assert_alike(found._asdict(), right._asdict())


@pytest.mark.parametrize("task", ["tagging", pytest.param("seq2seq", marks=pytest.mark.slow)])
def test_answers_and_scores_are_those_of_torch(task: str) -> None:
    model = load(OLD / task / "run")
    assert_torch_says_the_same(model, task)
    assert "C or torch answers, as measured" in model.engine_report()
    [valid] = (OLD / task / "data").glob("valid.*")
    scores, right = model.evaluate(valid).values, in_torch(task).evaluate(valid).values
    for name in right.keys() - {"seconds"}:
        assert scores[name] == pytest.approx(right[name], rel=1e-5, nan_ok=True), name
    assert model.with_settings({}).engine_report() == model.engine_report(), "it is compiled once for all settings"


def test_a_program_is_taken_from_the_cache_and_made_again_if_it_is_damaged() -> None:
    model = load(OLD / "tagging" / "run")
    answers_of(model, "tagging")
    file = compiled.file_of(model.task, model.model)
    assert file is not None
    whole, written = file.read_bytes(), file.stat().st_mtime_ns
    assert_torch_says_the_same(load(OLD / "tagging" / "run"), "tagging")
    assert file.stat().st_mtime_ns == written
    for content in (b"", whole[: len(whole) // 2], whole[:-9] + b"damaged!!"):
        file.write_bytes(content)
        assert_torch_says_the_same(load(OLD / "tagging" / "run"), "tagging")
        assert file.read_bytes() == whole


def test_weights_that_are_changed_are_those_of_the_next_answer() -> None:
    model, right = load(OLD / "tagging" / "run"), in_torch("tagging")
    answers_of(model, "tagging")
    for each in (model, right):
        with torch.no_grad():
            for weight in each.model.parameters():
                weight.mul_(-1.5)
    for found, other in zip(answers_of(model, "tagging"), answers_of(right, "tagging"), strict=True):
        assert_alike(found._asdict(), other._asdict())


def test_what_is_faster_answers_after_a_few_trials() -> None:
    found = compiled.Compiled(torch.nn.Linear(1, 1))
    asked = []
    for seconds in {"C": [2.0, 1.0, 3.0], "torch": [4.0, 1.05, 5.0]}.values():
        for each in seconds:
            asked.append(found.faster(5))
            found._note(asked[-1], 5, each)
    assert asked == ["C"] * 3 + ["torch"] * 3
    assert found.faster(7) == "torch", "C is hardly faster"
    assert found.faster(8) == "C", "of other sizes, nothing is known yet"


def test_torch_answers_where_c_cannot_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    line = [line for line in inputs_of("tagging")[1] if line][:1]
    model = load(OLD / "tagging" / "run")
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    model.predict(line)
    assert model.engine_report() == "torch answers: no C compiler was found"
    monkeypatch.undo()
    monkeypatch.setattr(compiled, "PATIENCE", 5.0)
    model = load(OLD / "tagging" / "run")
    model.predict(line)
    assert model.engine_report().startswith("torch answers: C is compiled after 5 s of its work, so far 0.0 s")
    assert compiled.why_torch(model.task, model.model.double()) == "its weights are not float32"


def test_an_engine_that_was_asked_for_is_not_replaced() -> None:
    model = load(OLD / "tagging" / "run")
    asked = replace(model.task.settings, model=replace(model.task.settings.model, engine="loop"))
    task = model.task.with_settings(asked, model.folder)
    assert compiled.why_torch(task, model.model) == "model.engine = 'loop' was asked for"


def test_a_model_that_cannot_be_recorded_answers_by_torch() -> None:
    model = load(OLD / "question_answering" / "run")
    assert_torch_says_the_same(model, "question_answering")
    assert "N is at most 2" in model.engine_report()


def test_a_server_s_model_is_compiled_beside_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, makes = threading.Event(), compiled.made

    def slowly(*given: Any) -> Any:
        assert may_go_on.wait(30)
        return makes(*given)

    monkeypatch.setattr(compiled, "made", slowly)
    monkeypatch.setattr(compiled, "loaded", lambda *_: None)
    model = load(OLD / "tagging" / "run")
    model.record_beside()
    answers_of(model, "tagging")  # which would wait for ever
    assert "torch answers: C is compiled after" in model.engine_report()
    may_go_on.set()
    [recording] = [each for each in threading.enumerate() if each.name == RECORDING]
    recording.join(30)
    assert_torch_says_the_same(model, "tagging")
    assert "C or torch answers" in model.engine_report()


def test_a_model_is_prepared_and_measured_before_anyone_asks() -> None:
    model = load(OLD / "tagging" / "run")
    model.record_beside()
    model.prepare()
    examples = list(model.task.questions(None, inputs_of("tagging")[1][:2]))
    assert not model._compiled.knows(2)
    model.measure(examples)
    assert model._compiled.knows(2)
    assert not model._compiled.knows(8)
