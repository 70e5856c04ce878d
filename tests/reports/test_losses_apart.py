"""The sentence under the learning curves of real runs whose training loss ends above the validation loss."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

import recurra
from recurra.training.curves import losses_apart
from recurra.training.log import Line, TrainLine, ValidLine

BARE = {
    "model.embedding": 8,
    "model.hidden": 8,
    "model.dropout": 0.0,
    "model.word_dropout": 0.0,
    "model.characters.cell": "none",
    "training.steps": 60,
    "training.average": "none",
    "training.validate": 20,
    "training.learning_rate": 0.03,
    "training.threads": 1,
    "data.cache": False,
}
WORSE = "the training curve averages over steps at which the weights were still worse"


@pytest.fixture(autouse=True)
def every_step_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.training.trainer.LOG_SECONDS", 0.0)


def report_of(folder: Path, *, valid: str, **settings: object) -> str:
    rows = [
        f"{word} day\t{label}\n" for word, label in (("good", "yes"), ("bad", "no"), ("fine", "yes"), ("ill", "no"))
    ]
    (folder / "train.tsv").write_text("".join(rows * 4))
    (folder / "valid.tsv").write_text(valid or "".join(rows))
    data = {"train": folder / "train.tsv", "valid": folder / "valid.tsv"}
    laid = {**{f"data.{name}": str(path) for name, path in data.items()}, "data.columns": ["text", "label"], **BARE}
    recurra.train("classification", out=folder / "run", settings={**laid, **settings})
    return unescape((folder / "run" / "report.html").read_text("utf-8"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model.label_smoothing": 0.3}, f"label smoothing is on in training only, and {WORSE}."),
        (
            {"model.dropout": 0.6, "training.average": {"name": "ema", "decay": 0.5}},
            f"dropout is on in training only, validation uses an average of the weights, and {WORSE}.",
        ),
    ],
)
def test_a_training_loss_above_the_validation_loss_is_explained(
    tmp_path: Path, settings: dict[str, object], said: str
) -> None:
    text = report_of(tmp_path, valid="", **settings)
    assert "The training loss ends above the validation loss (" in text
    assert said in text


def test_a_training_loss_below_the_validation_loss_needs_no_word(tmp_path: Path) -> None:
    text = report_of(tmp_path, valid="good day\tno\nbad day\tyes\n", **{"model.label_smoothing": 0.1})
    assert "Learning curves" in text
    assert "ends above" not in text


def test_losses_are_compared_at_the_last_validation() -> None:
    lines: list[Line] = [TrainLine(step, 0, loss) for step, loss in ((1, 3.0), (2, 1.0), (3, 9.0))]
    assert losses_apart([*lines, ValidLine(2, 0, {}, 5.0)], []) == ""
    assert losses_apart([*lines, ValidLine(3, 0, {}, 5.0)], []).startswith(
        "The training loss ends above the validation loss (9 and 5): the training curve averages"
    )
    assert losses_apart(lines, []) == ""
    assert losses_apart([ValidLine(3, 0, {}, 5.0)], []) == ""
