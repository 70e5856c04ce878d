"""The sections of a config: what each refuses, and what two of them cannot mean together."""

from __future__ import annotations

import math
from typing import Any

import pytest

from recurra.config import Data, Seq2SeqModel, Seq2SeqSettings, TaggingData, TaggingSettings, Training
from recurra.errors import ConfigError
from recurra.settings import settings_from


def refusal_of(table: dict[str, Any], settings: type = TaggingSettings) -> str:
    with pytest.raises(ConfigError) as refusal:
        settings_from(settings, table)
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
    assert "training has no limit" in refusal_of({"training": endless})
    assert settings_from(TaggingSettings, {"training": endless | end})


def test_a_tagger_reads_words_or_numbers_and_gives_labels_or_numbers() -> None:
    assert "data.tokens and data.frames cannot be used together" in refusal_of({"data": {"tokens": "a", "frames": "b"}})
    assert "data.tags and data.values cannot be used together" in refusal_of({"data": {"tags": ["a"], "values": ["b"]}})
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
    assert "disable both word and character embeddings. Enable one of them" in refusal_of({"model": nothing})
    assert settings_from(TaggingSettings, {"model": nothing, "data": {"frames": "x"}})
    assert settings_from(TaggingSettings, {"model": {"embedding": 0}})


def test_the_settings_of_tagging_are_not_those_of_another_task() -> None:
    assert "task = 'taging', but these are the settings of tagging." in refusal_of({"task": "taging"})
    assert settings_from(TaggingSettings, {"task": "my.lab:MyTagging"}).task == "my.lab:MyTagging"


def test_one_file_or_several_are_a_list() -> None:
    data = Data(train="a.tsv", valid=["b.tsv", "c.tsv"])
    assert [data.files(which) for which in ("train", "valid", "test")] == [["a.tsv"], ["b.tsv", "c.tsv"], []]
    assert TaggingData().files("train") == []


# Sequence to sequence


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"embedding": 0}, "model.embedding must be at least 1, but is 0."),
        ({"hidden": 0}, "model.hidden must be at least 1, but is 0."),
        ({"layers": 0}, "model.layers must be at least 1, but is 0."),
        ({"dropout": 1.0}, "model.dropout must be at least 0 and below 1, but is 1.0."),
        ({"embedding_dropout": -0.1}, "model.embedding_dropout must be at least 0 and below 1, but is -0.1."),
        ({"token_dropout": math.nan}, "model.token_dropout must be at least 0 and below 1, but is nan."),
        ({"label_smoothing": 1.0}, "model.label_smoothing must be at least 0 and below 1, but is 1.0."),
        ({"encoder": {"layers": 0}}, "model.encoder.layers must be at least 1, but is 0."),
        ({"encoder": {"width": 0}}, "model.encoder.width must be at least 1, but is 0."),
        ({"encoder": {"hidden": [3, 0]}}, "model.encoder.hidden must be at least 1, for one layer or each of several"),
        ({"encoder": {"hidden": [3], "layers": 2}}, "model.encoder.hidden = [3] gives 1 layers, but model.encoder.lay"),
        ({"decoder": {"layers": 0}}, "model.decoder.layers must be at least 1, but is 0."),
        ({"decoder": {"hidden": 0}}, "model.decoder.hidden must be at least 1, for one layer or each of several, but"),
        ({"decoder": {"hidden": [3, 4], "layers": 3}}, "model.decoder.hidden = [3, 4] gives 2 layers, but model.decod"),
        ({"conditioning": ["always"]}, 'model.conditioning must name first, every and output, as in ["every", "outp'),
        (
            {"wiring": "insde"},
            "model.wiring = 'insde' is not known. Did you mean 'inside'? Known: outside, between, inside, feeding, "
            "conditional. A wiring of your own is named as 'package.module:Class'.",
        ),
        ({"wiring": {"rate": 1}}, "model.wiring = 'outside' has no options: write its name alone."),
        (
            {"summary": "mean"},
            "model.summary = 'mean' has no effect: model.conditioning is empty. Set that, as in",
        ),
        (
            {"attention": "none", "wiring": "inside"},
            "model.wiring = 'inside' sets where attention enters the decoder,",
        ),
        ({"attention": "none", "copy": True}, "model.copy = true needs attention, but model.attention is none."),
        ({"attention": "none", "query": "current"}, "model.query = 'current' has no effect: there is no attention. Le"),
        (
            {"wiring": "feeding", "query": "previous"},
            "no effect: wiring = 'feeding' has its own query. Leave it out.",
        ),
        (
            {"attention": {"name": "additive", "location": {"dimensions": 2}}},
            "model.attention has a location term with dimensions = 2, which needs a grid such as a picture, ",
        ),
        (
            {"attention": {"name": "dot", "terms": ["coverage", {"name": "location", "dimensions": 2}]}},
            "sequence: set dimensions = 1, or leave it out.",
        ),
        ({"wiring": "between", "decoder": {"layers": 1}}, "model.wiring = 'between' puts attention between two dec"),
        ({"wiring": "between", "decoder": {"hidden": [5]}}, "but there is one: set model.decoder.layers = 2."),
        (
            {"encoder": {"kind": "cnn"}},
            "model.encoder.kind = 'cnn' has no last state to start the decoder from: set mo",
        ),
        (
            {"encoder": {"kind": "cnn", "cell": "gru"}, "start": "mean"},
            "model.encoder.cell = 'gru' has no effect: model.encoder.kind = 'cnn' has no cells. Leave one of them out.",
        ),
        (
            {"encoder": {"kind": "bag"}, "start": "mean", "conditioning": ["first"]},
            "model.summary = 'last' needs a recurrent encoder, but model.encoder.kind = 'bag': set model.sum",
        ),
        (
            {"start": "zeros", "bridge": "map"},
            "model.bridge = 'map' has no effect: with model.start = 'zeros' no state",
        ),
        ({"locked": True, "wiring": "feeding"}, "model.locked = true uses one dropout mask per row, but model.wiring"),
        (
            {"locked": True, "conditioning": ["first"]},
            "but model.conditioning = ['first', …] trains step by step: remov",
        ),
        ({"direction": "backward"}, "from the end only, but model.bidirectional = true reads both ways: set model.bid"),
        (
            {"direction": "backward", "bidirectional": False, "encoder": {"kind": "cnn"}, "start": "mean"},
            "model.direction = 'backward' has no effect: model.encoder.kind = 'cnn' reads all steps at once. Leave it",
        ),
        (
            {"mix": "mean", "encoder": {"kind": "pyramid"}, "decoder": {"kind": "transformer"}},
            "model.mix = 'mean' has no effect: the layers of a pyramid change the sequence length, so they cannot be",
        ),
        (
            {"mix": "mean", "encoder": {"kind": "transformer"}, "decoder": {"kind": "transformer"}},
            "model.mix = 'mean' has no effect: there are no cells. Leave it out.",
        ),
    ],
)
def test_a_network_of_pairs_that_cannot_be_built_is_refused(model: dict[str, Any], message: str) -> None:
    assert message in refusal_of({"model": model}, Seq2SeqSettings)


def test_a_wiring_of_your_own_may_take_options_and_either_query() -> None:
    own: dict[str, Any] = {"wiring": {"name": "my.lab:Mine", "rate": 0.1}, "query": "previous"}
    assert settings_from(Seq2SeqSettings, {"model": own}).model.wiring == own["wiring"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"task": "seq2sec"}, "task = 'seq2sec', but these are the settings of seq2seq."),
        ({"data": {"max_length": 0}}, "data.max_length must be at least 1, but is 0."),
        (
            {"data": {"frames": "x", "source": {"column": "y"}}},
            "data.source and data.frames cannot be used together",
        ),
        (
            {"data": {"frames": "x", "joint": True}},
            "data.joint = true makes one vocabulary for both sides, but with data.fr",
        ),
        (
            {"data": {"frames": "x"}, "model": {"copy": True}},
            "model.copy = true copies tokens of the source, but with data",
        ),
        (
            {"model": {"tied": "all"}},
            "model.tied = 'all' shares one matrix between both embeddings, which needs a joint vocabul",
        ),
        ({"training": {"r_drop": -1}}, "training.r_drop must be at least 0, but is -1."),
        ({"training": {"forcing": 1.5}}, "training.forcing must be at least 0 and at most 1, but is 1.5."),
        ({"training": {"batch_size": 4, "batch_tokens": 9}}, "training.batch_tokens = 9 has no effect beside training"),
        ({"model": {"locked": True}, "training": {"forcing": 0.9}}, "but training.forcing below 1 trains step by step"),
        (
            {"model": {"attention": "none"}, "decoding": {"coverage_penalty": 0.1}},
            "decoding.coverage_penalty uses attention weights, but model.attention is none: remove the penalty.",
        ),
        ({"decoding": {"width": 0}}, "decoding.width must be at least 1, but is 0."),
        ({"decoding": {"best": 0}}, "decoding.best must be at least 1, but is 0."),
        ({"decoding": {"max_length": 0}}, "decoding.max_length must be at least 1, but is 0."),
        ({"decoding": {"top_k": 0}}, "decoding.top_k must be at least 1, but is 0."),
        ({"decoding": {"length_penalty": -1.0}}, "decoding.length_penalty must be at least 0, but is -1.0."),
        ({"decoding": {"coverage_penalty": math.inf}}, "decoding.coverage_penalty must be at least 0, but is inf."),
        ({"decoding": {"min_length": -1}}, "decoding.min_length must be at least 0, but is -1."),
        ({"decoding": {"no_repeat": -1}}, "decoding.no_repeat must be at least 0, but is -1."),
        ({"decoding": {"temperature": -0.1}}, "decoding.temperature must be at least 0, but is -0.1."),
        ({"decoding": {"max_ratio": math.nan}}, "decoding.max_ratio must be at least 0, but is nan."),
        ({"decoding": {"top_p": 0.0}}, "decoding.top_p must be above 0 and at most 1, but is 0.0."),
        ({"decoding": {"min_length": 9, "max_length": 8}}, "decoding.min_length = 9 is above decoding.max_length = 8."),
        (
            {"decoding": {"best": 6}},
            "decoding.best = 6 answers need a beam of at least that width, but decoding.width = 5",
        ),
        (
            {"decoding": {"search": "greedy", "best": 2}},
            "decoding.best = 2 asks for 2 answers, but greedy search finds only one",
        ),
    ],
)
def test_what_the_settings_of_pairs_cannot_mean_is_refused(table: dict[str, Any], message: str) -> None:
    assert message in refusal_of(table, Seq2SeqSettings)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"task": "my.lab:MyPairs"},
        {"data": {"frames": "x"}},
        {"data": {"joint": True}, "model": {"tied": "all", "copy": True}},
        {"model": {"attention": "none", "conditioning": ["first", "every", "output"], "start": "zeros"}},
        {"model": {"attention": {"name": "dot", "terms": ["coverage"]}, "wiring": "between", "query": "previous"}},
        {"model": {"encoder": {"kind": "cnn"}, "start": "max", "conditioning": ["every"], "summary": "mean"}},
        {"model": {"skip": "residual", "layers": 3, "wiring": "outside"}},
        {"model": {"skip": "residual", "layers": 2, "wiring": "inside"}},
        {"model": {"skip": "highway", "mix": "learned", "wiring": "between"}},
        {"model": {"direction": "backward", "bidirectional": False, "encoder": {"kind": "pyramid"}}},
        {"model": {"locked": True, "wiring": "conditional"}, "training": {"forcing": "constant"}},
        {"model": {"locked": True, "dropout": 0.0, "wiring": "feeding"}, "training": {"forcing": 0.5}},
        {"decoding": {"search": "sampling", "best": 9, "top_p": 1.0, "temperature": 0}},
        {"decoding": {"search": "exhaustive", "best": 9}},
    ],
)
def test_what_the_settings_of_pairs_can_mean_is_taken(table: dict[str, Any]) -> None:
    assert settings_from(Seq2SeqSettings, table)


@pytest.mark.parametrize(
    ("model", "encoder", "decoder"),
    [
        ({"hidden": 8}, (4,), (8,)),
        ({"hidden": 8, "layers": 2}, (4, 4), (8, 8)),
        ({"hidden": 7, "bidirectional": False}, (7,), (7,)),
        ({"hidden": 7}, (3,), (7,)),
        ({"hidden": 1}, (1,), (1,)),
        ({"hidden": 8, "merge": "sum"}, (8,), (8,)),
        ({"hidden": 8, "encoder": {"kind": "cnn"}, "start": "mean"}, (8,), (8,)),
        ({"hidden": 8, "encoder": {"hidden": 5, "layers": 3}}, (5, 5, 5), (8,)),
        ({"hidden": 8, "encoder": {"hidden": [5, 2]}, "decoder": {"hidden": [3, 9]}}, (5, 2), (3, 9)),
        ({"hidden": 8, "wiring": "between"}, (4,), (8, 8)),
        ({"hidden": 8, "wiring": "between", "layers": 3}, (4, 4, 4), (8, 8, 8)),
        ({"hidden": 8, "wiring": "between", "decoder": {"hidden": 6, "layers": 2}}, (4,), (6, 6)),
    ],
)
def test_encoder_and_decoder_have_the_sizes_that_they_are_told(
    model: dict[str, Any], encoder: tuple[int, ...], decoder: tuple[int, ...]
) -> None:
    found = settings_from(Seq2SeqModel, model)
    assert (found.encoder_widths, found.decoder_widths) == (encoder, decoder)
