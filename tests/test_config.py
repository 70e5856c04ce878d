"""The sections of a config: what each refuses, and what two of them cannot mean together."""

from __future__ import annotations

import math
from typing import Any

import pytest

from recurra.config import Data, TaggingData, TaggingSettings, Training
from recurra.errors import ConfigError
from recurra.settings import settings_from


def refusal_of(table: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as refusal:
        settings_from(TaggingSettings, table)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("names", "least"),
    [
        (("epochs", "steps", "batch_tokens", "batch_size", "accumulate", "threads", "patience", "validate"), 1),
        (("warmup", "seed", "save_minutes"), 0),
    ],
)
def test_whole_numbers_of_training_have_a_least(names: tuple[str, ...], least: int) -> None:
    for name in names:
        assert getattr(settings_from(TaggingSettings, {"training": {name: least}}).training, name) == least
        shown = f"training.{name} must be at least {least}, but is {least - 1}"
        assert refusal_of({"training": {name: least - 1}}).startswith(shown)


@pytest.mark.parametrize("name", ["learning_rate", "clip", "clip_value", "minutes"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_some_numbers_of_training_are_above_zero(name: str, value: float) -> None:
    assert f"training.{name} must be above 0, but is" in refusal_of({"training": {name: value}})
    assert getattr(settings_from(TaggingSettings, {"training": {name: 1e-9}}).training, name) == 1e-9


@pytest.mark.parametrize("end", [{"epochs": 3}, {"steps": 3}, {"minutes": 0.5}])
def test_training_needs_an_end_and_any_one_will_do(end: dict[str, Any]) -> None:
    assert settings_from(Training, end)
    endless = {"epochs": None, "steps": None, "minutes": None}
    assert "training needs an end" in refusal_of({"training": endless})
    assert settings_from(TaggingSettings, {"training": endless | end})


def test_a_tagger_reads_words_or_numbers_and_gives_labels_or_numbers() -> None:
    assert "data.tokens and data.frames exclude each other" in refusal_of({"data": {"tokens": "a", "frames": "b"}})
    assert "data.tags and data.values exclude each other" in refusal_of({"data": {"tags": ["a"], "values": ["b"]}})
    assert settings_from(TaggingSettings, {"data": {"tags": [], "values": ["b"]}}).data.values == ["b"]


@pytest.mark.parametrize("name", ["min_count", "max_words"])
def test_words_are_counted_from_one(name: str) -> None:
    assert f"data.{name} must be at least 1, but is 0" in refusal_of({"data": {name: 0}})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"hidden": 0}, "model.hidden must be at least 1, for one layer or each of several, but is 0."),
        ({"hidden": -(2**63)}, "model.hidden must be at least 1"),
        ({"hidden": []}, "model.hidden must be at least 1, for one layer or each of several, but is []."),
        ({"hidden": [3, 0]}, "model.hidden must be at least 1, for one layer or each of several, but is [3, 0]."),
        ({"hidden": [3, 4], "layers": 3}, "model.hidden = [3, 4] gives 2 layers, but model.layers is 3. Leave"),
        ({"layers": 0}, "model.layers must be at least 1, but is 0."),
        ({"embedding": -1}, "model.embedding must be at least 0, but is -1."),
        ({"label_weight": -0.5}, "model.label_weight must be at least 0, but is -0.5."),
        ({"label_weight": math.nan}, "model.label_weight must be at least 0, but is nan."),
        ({"dropout": 1.0}, "model.dropout must be at least 0 and below 1, but is 1.0."),
        ({"word_dropout": -0.1}, "model.word_dropout must be at least 0 and below 1, but is -0.1."),
        ({"characters": {"hidden": 0}}, "model.characters.hidden must be at least 1, but is 0."),
        ({"characters": {"embedding": 0}}, "model.characters.embedding must be at least 1, but is 0."),
    ],
)
def test_a_model_that_cannot_be_built_is_refused(model: dict[str, Any], message: str) -> None:
    assert message in refusal_of({"model": model})


def test_the_layers_may_be_told_twice_if_they_agree() -> None:
    assert settings_from(TaggingSettings, {"model": {"hidden": [3, 4], "layers": 2}}).model.hidden == [3, 4]
    assert settings_from(TaggingSettings, {"model": {"hidden": 3, "layers": 2}}).model.layers == 2


def test_words_must_be_read_by_something() -> None:
    nothing = {"embedding": 0, "characters": {"cell": "none"}}
    assert "leave nothing to read words by" in refusal_of({"model": nothing})
    assert settings_from(TaggingSettings, {"model": nothing, "data": {"frames": "x"}})
    assert settings_from(TaggingSettings, {"model": {"embedding": 0}})


def test_the_settings_of_tagging_are_not_those_of_another_task() -> None:
    assert "task = 'taging', but these are the settings of tagging." in refusal_of({"task": "taging"})
    assert settings_from(TaggingSettings, {"task": "my.lab:MyTagging"}).task == "my.lab:MyTagging"


def test_one_file_or_several_are_a_list() -> None:
    data = Data(train="a.tsv", valid=["b.tsv", "c.tsv"])
    assert [data.files(which) for which in ("train", "valid", "test")] == [["a.tsv"], ["b.tsv", "c.tsv"], []]
    assert TaggingData().files("train") == []
