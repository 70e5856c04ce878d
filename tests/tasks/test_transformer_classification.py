"""Classification with model.encoder = "transformer": of texts and of series, alone and among others, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recurra.config import ClassificationSettings
from recurra.errors import ConfigError
from recurra.settings import settings_from
from tests.tasks.test_classification import TEXTS, texts, trained, write

TRANSFORMER = ("model.encoder=transformer", "model.transformer.heads=1", "training.learning_rate=0.01")
LONGER = ("training.steps=150", "model.hidden=16")
OPTIONS = [
    (*TRANSFORMER, "model.summary=mean"),
    (*TRANSFORMER, "model.summary=max", "model.bidirectional=false", "model.layers=1"),
    (*TRANSFORMER, 'model.summary={name="attention", queries=2, size=5}', "model.embedding=6"),
    ("model.encoder=ensemble", "model.transformer.heads=1", 'model.members=["transformer", "rnn"]'),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options[-1:]))
def test_eight_texts_are_learned_by_heart_and_predicted_back(tmp_path: Path, options: tuple[str, ...]) -> None:
    model = trained(tmp_path, texts(tmp_path), *options)
    asked = [text for text, _ in TEXTS]
    assert [answer.output for answer in model.predict(asked)] == [label for _, label in TEXTS]
    # Padding and the rows beside it change nothing.
    model.model.double()
    asked += ["", "unseen"]
    together = model.predict(asked, detail=True)
    for answer, text in zip(together, asked, strict=True):
        alone = model.predict([text], detail=True)[0]
        assert alone.output == answer.output
        assert alone.score == pytest.approx(answer.score, abs=1e-9)


def test_series_of_numbers_are_learned_where_their_order_decides(tmp_path: Path) -> None:
    rows = [{"x": [[float(n)] for n in range(1, k)][:: 1 if up else -1], "label": "up" if up else "down"}
            for k in (4, 5, 6, 7) for up in (True, False)]  # fmt: skip
    file = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    model = trained(tmp_path, file, *TRANSFORMER, "data.frames=x", "model.summary=mean", *LONGER)
    assert model.evaluate(file).values["accuracy"] == 1.0
    assert "2-layer Transformer 16 with mean pooling" in model.task.described()
    (tmp_path / "b").mkdir()
    options = ("data.frames=x", "model.bidirectional=false", "training.steps=1")
    ahead = trained(tmp_path / "b", file, *TRANSFORMER, *options)
    assert "2-layer causal Transformer 10 with max pooling" in ahead.task.described()


def test_sizes_may_be_listed_if_they_are_equal() -> None:
    given = {"encoder": "transformer", "hidden": [16, 16, 16]}
    assert settings_from(ClassificationSettings, {"model": given}).model.layers_of("transformer") is None
    assert (
        settings_from(ClassificationSettings, {"model": {"encoder": "transformer"}}).model.layers_of("transformer") == 2
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"summary": "ends"},
            r"model\.summary = 'ends' needs the last state of a recurrent network, .* set model\.summary to",
        ),
        (
            {"cell": "gru"},
            r"model\.cell = 'gru' has no effect: model\.encoder = 'transformer' has no cells\. Leave it out",
        ),
        ({"skip": "residual"}, r"model\.skip = 'residual' has no effect"),
        ({"mix": "mean"}, r"model\.mix = 'mean' has no effect"),
        ({"direction": "backward", "bidirectional": False}, r"model\.direction = 'backward' has no effect"),
        ({"merge": "mean"}, r"model\.merge = 'mean' has no effect"),
        (
            {"hidden": [16, 32]},
            r"model\.hidden = \[16, 32\] sets layers of different sizes, .* give one size, and set model\.l",
        ),
        ({"hidden": 20}, r"model\.hidden = 20 is not a multiple of 8, .* model\.transformer\.heads = 4 .* set 16, or"),
        ({"transformer": {"heads": 0}}, r"model\.transformer\.heads must be at least 1, but is 0"),
        ({"transformer": {"dropout": 1.0}}, r"model\.transformer\.dropout must be at least 0 and below 1, but is 1\.0"),
        (
            {"encoder": "rnn", "transformer": {"heads": 8}},
            r"model\.transformer\.heads has no effect: model\.encoder = 'rnn' has no Transformer\. Leave it out",
        ),
        (
            {"encoder": "ensemble", "members": ["transformer"], "summary": "last"},
            r"model\.summary = 'last' needs the last state of a recurrent network, which a Transformer does not have",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused_with_what_to_do(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(ClassificationSettings, {"model": {"encoder": "transformer", **model}})


def test_a_transformer_is_trained_more_carefully_unless_something_else_is_said() -> None:
    def rate(**given: Any) -> float:
        found: float = settings_from(ClassificationSettings, given).training.learning_rate
        return found

    assert rate() == rate(model={"encoder": "cnn"}) == 3e-3
    assert rate(model={"encoder": "transformer"}) == 1e-3
    assert rate(model={"encoder": "ensemble", "members": ["cnn", "transformer"]}) == 1e-3
    assert rate(model={"encoder": "rnn", "members": ["cnn", "transformer"]}) == 3e-3
    assert rate(model={"encoder": "transformer"}, training={"learning_rate": 2e-3}) == 2e-3
