"""What the settings of a Transformer that reads or writes can mean, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from recurra.config import Seq2SeqModel, Seq2SeqSettings, Vec2SeqSettings
from recurra.config.given import Given
from recurra.errors import ConfigError
from recurra.settings import settings_from

BOTH: dict[str, Any] = {"encoder": "transformer", "decoder": "transformer"}
WRITES = {"decoder": "transformer"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"encoder": {"heads": 8}},
            "model.encoder.heads = 8 has no effect: model.encoder.kind = 'rnn' is not a Transfor",
        ),
        (
            {"decoder": {"feed_forward": 8}},
            "model.decoder.feed_forward = 8 has no effect: model.decoder.kind = 'rnn' i",
        ),
        ({"decoder": {"kind": "transformer", "heads": 0}}, "model.decoder.heads must be at least 1, but is 0."),
        ({"encoder": {"kind": "transformer", "feed_forward": 0}, **WRITES}, "model.encoder.feed_forward must be at le"),
        (
            {**BOTH, "hidden": 100},
            "model.hidden = 100 is not a multiple of 8, which a Transformer with model.decoder.head",
        ),
        ({**WRITES, "encoder": {"kind": "transformer", "hidden": 12}}, "model.encoder.hidden = 12 is not a multiple o"),
        (
            {"decoder": {"kind": "transformer", "hidden": [8, 16]}},
            "model.decoder.hidden = [8, 16] sets layers of different",
        ),
        ({"decoder": {"kind": "transformer", "cell": "gru"}}, "model.decoder.cell = 'gru' has no effect: model.decode"),
        ({**WRITES, "encoder": {"kind": "transformer", "cell": "gru"}}, "model.encoder.cell = 'gru' has no effect: mo"),
        (
            {**WRITES, "attention": "dot"},
            "model.attention = 'dot' has no effect: a Transformer decoder has its own attention h",
        ),
        (
            {**WRITES, "attention": {"name": "bilinear", "terms": ["monotonic"]}},
            "model.attention = 'bilinear' has no e",
        ),
        ({**WRITES, "wiring": "inside"}, "model.wiring = 'inside' has no effect: a Transformer decoder attends to"),
        ({**WRITES, "query": "previous"}, "model.query = 'previous' has no effect: a Transformer decoder attends to"),
        (
            {**WRITES, "start": "mean"},
            "model.start = 'mean' has no effect: model.decoder.kind = 'transformer' has no s",
        ),
        (
            {**WRITES, "bridge": "map"},
            "model.bridge = 'map' has no effect: model.decoder.kind = 'transformer' has no s",
        ),
        ({**BOTH, "skip": "residual"}, "model.skip = 'residual' has no effect: there are no cells. Leave it out."),
        ({**BOTH, "cell": "gru"}, "model.cell = 'gru' has no effect: there are no cells. Leave it out."),
        ({**WRITES, "encoder": "cnn", "cell": "gru"}, "model.cell = 'gru' has no effect: there are no cells. Leave"),
        ({**BOTH, "engine": "loop"}, "model.engine = 'loop' has no effect: there are no cells. Leave it out."),
        (
            {**BOTH, "merge": "sum"},
            "model.merge = 'sum' has no effect: model.encoder.kind = 'transformer' has no directions to merge.",
        ),
        (
            {**WRITES, "encoder": "pyramid", "skip": "residual"},
            "model.skip = 'residual' has no effect: the layers of a pyramid change the sequence length, so they ",
        ),
        (
            {**WRITES, "encoder": {"kind": "transformer", "width": 5}},
            "model.encoder.width = 5 has no effect: model.encoder.kind = 'transformer' has no convolutions. Leave it",
        ),
        ({"encoder": "transformer"}, "model.encoder.kind = 'transformer' has no last state to start the decoder from"),
        (
            {**BOTH, "conditioning": ["every"]},
            "model.summary = 'last' needs a recurrent encoder, but model.enc",
        ),
        (
            {**BOTH, "attention": "none", "copy": True},
            "model.copy = true needs attention, but model.attention is n",
        ),
        (
            {"decoder": {"kind": "transfomer"}},
            "model.decoder.kind must be 'rnn' or 'transformer' or 'window' or 'ctc', but is 'transfomer'.",
        ),
    ],
)
def test_what_a_transformer_cannot_be_told_is_refused(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_from(Seq2SeqSettings, {"model": model})
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "model",
    [
        BOTH,
        WRITES,
        {"encoder": "transformer", "start": "mean", "bridge": "map"},
        {"encoder": "transformer", "start": "zeros", "wiring": "feeding", "decoder": {"cell": "gru"}},
        {**BOTH, "attention": "none", "conditioning": ["first"], "summary": "mean"},
        {**BOTH, "bidirectional": False, "copy": True, "tied": "output", "layers": 3},
        {**WRITES, "skip": "residual", "encoder": {"layers": 2}},
        {**WRITES, "cell": "gru", "engine": "loop", "merge": "sum"},
        {"encoder": "transformer", "start": "mean", "cell": "gru", "engine": "loop"},
        {**WRITES, "encoder": {"kind": "cnn", "width": 5}},
        {"hidden": 12, "decoder": {"kind": "transformer", "heads": 3, "feed_forward": 5}},
    ],
)
def test_what_a_transformer_can_be_told_is_taken(model: dict[str, Any]) -> None:
    assert settings_from(Seq2SeqSettings, {"model": model})


@pytest.mark.parametrize(
    ("overrides", "kind", "heads"),
    [
        (["model.decoder=rnn"], "rnn", 4),
        (["model.decoder.kind=rnn"], "rnn", 4),
        (["model.decoder.heads=2"], "transformer", 2),
        (["model.decoder.heads=2", "model.decoder.kind=transformer"], "transformer", 2),
        (["model.decoder=rnn", "model.decoder.kind=transformer", "model.decoder.heads=2"], "transformer", 2),
    ],
)
def test_a_decoder_that_was_named_alone_can_be_told_otherwise(overrides: list[str], kind: str, heads: int) -> None:
    decoder = Given().keywords({"model": WRITES}, "settings").options(overrides).settings(Seq2SeqSettings).model.decoder
    assert (decoder.kind, decoder.heads) == (kind, heads)


def test_a_transformer_that_reads_is_as_wide_as_the_model() -> None:
    model = settings_from(Seq2SeqModel, {**BOTH, "hidden": 16, "layers": 3})
    assert (model.encoder_widths, model.decoder_widths) == ((16, 16, 16), (16, 16, 16))


def test_a_transformer_has_two_layers_unless_more_or_fewer_are_asked_for() -> None:
    model = settings_from(Seq2SeqModel, {**BOTH, "hidden": 16})
    assert (model.encoder_widths, model.decoder_widths) == ((16, 16), (16, 16))
    one = {"kind": "transformer", "layers": 1}
    model = settings_from(Seq2SeqModel, {"encoder": one, "decoder": one, "hidden": 16})
    assert (model.encoder_widths, model.decoder_widths) == ((16,), (16,))


def test_a_transformer_cannot_start_from_a_vector_but_reads_it() -> None:
    with pytest.raises(ConfigError, match=r'model.conditioning has "initial", but a Transformer has no state to start'):
        settings_from(Vec2SeqSettings, {"model": WRITES})
    assert settings_from(Vec2SeqSettings, {"model": {**WRITES, "conditioning": ["first"]}})


@pytest.mark.parametrize(("name", "value"), [("cell", "gru"), ("skip", "residual"), ("engine", "loop")])
def test_what_is_about_cells_is_refused_where_a_transformer_writes_of_a_vector(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"model.{name} = '{value}' has no effect: there are no cells"):
        settings_from(Vec2SeqSettings, {"model": {**WRITES, "conditioning": ["first"], name: value}})
