"""A language model with model.decoder = "transformer": learned, resumed, written on from, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.config import LanguageModelSettings
from recurra.errors import ConfigError
from recurra.runs import setup, told
from recurra.settings import settings_from
from recurra.training.writing import generate
from tests.tasks.test_language_model import SMALL, TEXT, TRANSFORMER, task_of, trained, write
from tests.training.breaking import weights, weights_of_a_broken_run

LEARN = (
    "training.steps=150",
    "training.epochs=none",
    "training.learning_rate=0.01",
    "model.hidden=32",
    "reading.steps=20",
)


@pytest.mark.parametrize("options", [("reading.carry=0.5",), ("data.independent=true", "model.decoder.context=none")])
def test_eight_lines_are_learned_by_heart_and_written_on_from(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = write(tmp_path / "a.txt", TEXT * 4)
    model = trained(tmp_path, file, *TRANSFORMER, *LEARN, *options)
    assert model.evaluate(file).values["perplexity"] < 1.5
    together = generate(model, ["the cat", "or is", "a dog, a"], temperature=0, until="\n")
    assert [found.text for found in together] == [" sat", " it?", " log"]
    assert [found.log_probability for found in together] == pytest.approx(
        [generate(model, found.prompt, temperature=0, until="\n")[0].log_probability for found in together], abs=1e-4
    )


@pytest.mark.parametrize("options", [("reading.carry=0.5", "model.dropout=0.2"), ("reading.carry=0",)])
def test_a_run_broken_anywhere_and_resumed_ends_with_the_same_weights(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = write(tmp_path / "a.txt", TEXT * 3)
    trained(tmp_path, file, *TRANSFORMER, *options, valid=file, run="whole")
    for last in (2, 7):
        overrides = [*SMALL, *TRANSFORMER, *options]
        this = setup("language_model", given={"train": file, "valid": file}, overrides=overrides)
        broken = weights_of_a_broken_run(this, tmp_path / f"broken{last}", last=last)
        assert broken == weights(tmp_path / "whole")


def test_nothing_is_carried_where_nothing_goes_on(tmp_path: Path) -> None:
    task, store = task_of(write(tmp_path / "a.txt", TEXT), *TRANSFORMER, "reading.carry=0")
    assert task.loss(task.build(), task.batch(task.chosen(store, task.batches(store, 0)[0]))).carried == ()


def test_a_run_says_what_it_is_and_reads_backward_too(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", TEXT)
    model = trained(tmp_path, file, *TRANSFORMER, "training.epochs=1", "model.direction=backward", valid=file)
    assert "backward Transformer 16 with a context of 20 tokens" in told(tmp_path / "run")
    assert generate(model, "mat", length=5)[0].whole.endswith("mat")
    assert len(recurra.load(tmp_path / "run").predict(["the mat"])) == 1


def test_a_model_of_lines_may_see_all_that_was_before(tmp_path: Path) -> None:
    options = ("data.independent=true", "model.decoder.context=none", "training.epochs=1")
    trained(tmp_path, write(tmp_path / "a.txt", TEXT), *TRANSFORMER, *options)
    assert "Transformer 16 with unlimited context, softmax" in told(tmp_path / "run")


def test_sizes_are_usual_ones_where_nothing_is_said() -> None:
    usual = settings_from(LanguageModelSettings, {"model": {"decoder": "transformer"}}).model
    assert (usual.widths, usual.decoder.context) == ((256,) * 4, 256)
    assert settings_from(LanguageModelSettings, {}).model.widths == (512, 512)
    given = settings_from(LanguageModelSettings, {"model": {"decoder": "transformer", "hidden": [64, 64]}}).model
    assert given.widths == (64, 64)


@pytest.mark.parametrize("usual", [{"cell": "lstm"}, {"weight_drop": 0.2}, {"weight_drop": 0.0}, {"engine": "auto"}])
def test_what_is_as_usual_may_be_said(usual: dict[str, Any]) -> None:
    made = settings_from(LanguageModelSettings, {"model": {"decoder": "transformer", **usual}}).model
    assert made.decoder.kind == "transformer"
    assert {name: getattr(made, name) for name in usual} == usual


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"cell": "gru"},
            r"model\.cell = 'gru' has no effect: model\.decoder\.kind = 'transformer' has no cells\. Leave",
        ),
        ({"weight_drop": 0.5}, r"model\.weight_drop = 0\.5 has no effect: model\.decoder\.kind = 'transformer' has"),
        ({"engine": "loop"}, r"model\.engine = 'loop' has no effect"),
        (
            {"hidden": [32, 64]},
            r"model\.hidden = \[32, 64\] sets layers of different sizes, but .* give one size, and set mod",
        ),
        ({"hidden": 20}, r"model\.hidden = 20 is not a multiple of 8, .* set 16, or change the number of heads"),
        ({"tied": True}, r"the embedding \(128\) and the last layer \(256\) .* Set model\.embedding = 256"),
        ({"decoder": {"kind": "transformer", "context": 0}}, r"model\.decoder\.context must be at least 1, but is 0"),
        (
            {"decoder": {"kind": "transformer", "context": "none"}},
            r"keeps all previous tokens, which needs unlimited memory on continuous text.",
        ),
        (
            {"decoder": {"context": 9}},
            r"model\.decoder\.context = 9 has no effect: model\.decoder\.kind = 'rnn' has a rec",
        ),
        (
            {"decoder": {"heads": 8}},
            r"model\.decoder\.heads = 8 has no effect: model\.decoder\.kind = 'rnn' is not a Tran",
        ),
        ({"decoder": "transfomer"}, r"model\.decoder\.kind must be .* Did you mean 'transformer'"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_what_to_do(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(LanguageModelSettings, {"model": {"decoder": "transformer", **model}})


def test_a_transformer_is_trained_more_carefully_unless_something_else_is_said() -> None:
    def training(model: Any, **given: Any) -> tuple[float, int]:
        found = settings_from(LanguageModelSettings, {"model": {"decoder": model}, "training": given}).training
        return found.learning_rate, found.warmup

    assert training("rnn") == (2e-3, 100)
    assert (
        training("transformer") == training({"kind": "transformer"}) == training({"name": "transformer"}) == (1e-3, 300)
    )
    assert training({"kind": "transformer", "heads": 8}, learning_rate=5e-4) == (5e-4, 300)
    assert settings_from(LanguageModelSettings, {"model": {"decoder": "transformer"}}).training.batch_size == 64
