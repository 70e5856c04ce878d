"""Batches of sizes that occur again: the same loss and the same gradients. Replaying itself needs a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.data.store import Rows
from recurra.padding import Padded
from recurra.recording import both, is_recording, recording, twin
from recurra.runs import setup
from recurra.tasks.task import Moment
from recurra.training.preparation import prepared
from recurra.training.replaying import difference, key_of, lengths_of

PAIRS = "\n".join(f"{'abcde'[: 1 + n % 5]}\t{'xyz'[: 1 + n % 3] * (1 + n % 2)}" for n in range(23)) + "\n"
SENTENCES = [[f"{'word'[: 1 + (n + k) % 4]}\tT{k % 3}\n" for k in range(1 + n % 6)] for n in range(19)]
TAGGED = "".join("".join(sentence) + "\n" for sentence in SENTENCES)
LINES = "".join(f"{'hello world'[: 3 + n % 8]}\n" for n in range(40))

WORDS = ["a b c d e f"[: 1 + 2 * (n % 6)] for n in range(23)]
CLASSES = "text\tlabel\n" + "".join(f"{text}\t{'xyz'[n % 3]}\n" for n, text in enumerate(WORDS))
SEVERAL = "text\tlabel\n" + "".join(f"{text}\t{'x y z'[: 1 + 2 * (n % 3)]}\n" for n, text in enumerate(WORDS))
SERIES = "value\n" + "".join(f"{np.sin(n / 3):.3f}\n" for n in range(60))

SMALL = ["model.embedding=6", "model.hidden=8", "training.steps=2", "training.device=cpu"]

CASES: dict[str, tuple[str, str, list[str]]] = {
    "pairs": ("seq2seq", PAIRS, ["model.attention=projected_dot"]),
    "feeding with r_drop": (
        "seq2seq",
        PAIRS,
        ['model.attention={name="additive", terms=["monotonic"]}', "model.wiring=feeding", "training.r_drop=1"],
    ),
    "own tokens now and then": (
        "seq2seq",
        PAIRS,
        ["model.attention=dot", 'training.forcing={name="linear", c=0.01, floor=0.25, replacement="sampled"}'],
    ),
    "copying": ("seq2seq", PAIRS, ["model.attention=dot", "model.copy=true", "data.joint=true"]),
    "a pyramid": ("seq2seq", PAIRS, ["model.encoder.kind=pyramid", "model.encoder.layers=2", "model.attention=dot"]),
    "tags": ("tagging", TAGGED, []),
    "tags by a softmax": ("tagging", TAGGED, ["model.head=softmax"]),
    "classes": ("classification", CLASSES, ["model.encoder=rnn"]),
    "several classes": ("classification", SEVERAL, ["data.labels=label", "model.encoder=rnn"]),
    "a series": ("forecasting", SERIES, ["data.window=9"]),
    "lines": ("language_model", LINES, ["data.independent=true", "model.hidden=8"]),
    "a stream": ("language_model", LINES, ["reading.steps=5", "training.batch_size=3"]),
}


FILES = {"tagging": "tags.conll", "language_model": "text.txt", "forecasting": "table.csv"}


def written(case: str, folder: Path) -> Path:
    """The file of a case."""
    kind, text, _ = CASES[case]
    file = folder / FILES.get(kind, "table.tsv")
    file.write_text(text, "utf-8")
    return file


def of(case: str, folder: Path) -> tuple[Any, Any, Any]:
    """A task, a model without dropout, and a batch of it."""
    kind, _, settings = CASES[case]
    file = written(case, folder)
    own = [each for each in SMALL if kind != "forecasting" or "embedding" not in each]
    this = setup(kind, given={"train": str(file)}, overrides=[*own, *settings])
    task, store = prepared(this.kind, this.settings, lambda _: None)
    torch.manual_seed(3)
    model = task.build().double()
    module: Any
    for module in model.modules():
        if hasattr(module, "rate"):
            module.rate = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
        for name in ("token_dropout", "word_dropout", "embedding_dropout"):
            if hasattr(module, name):
                setattr(module, name, 0.0)
    [numbers, *_] = list(task.batches(store, 0))
    return task, model, task.batch(task.chosen(store, numbers))


@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_a_size_that_occurs_again_has_the_same_loss_and_gradients(case: str, tmp_path: Path) -> None:
    task, model, batch = of(case, tmp_path)
    recurring = task.recurring(batch)
    assert recurring is not None
    parameters = [each for each in model.parameters() if each.requires_grad]
    found = []
    for each in (batch, recurring.batch):
        torch.manual_seed(5)
        loss = task.loss(model, each, Moment())
        gradients = torch.autograd.grad(loss.total, parameters, allow_unused=True)
        found.append((loss, [None if g is None else g for g in gradients]))
    (plain, slopes), (padded, padded_slopes) = found
    assert plain.labels == recurring.labels
    assert plain.weight == recurring.weight
    torch.testing.assert_close(padded.total, plain.total, rtol=1e-10, atol=1e-10)
    for one, other in zip(slopes, padded_slopes, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(other, one, rtol=1e-8, atol=1e-10)


def test_batches_of_like_sizes_have_one_key_and_others_have_others(tmp_path: Path) -> None:
    task, _, _ = of("pairs", tmp_path)

    def key(rows: int, length: int, written: int) -> Any:
        row = {"source": np.full(length, 5), "target": np.full(written, 5)}
        return key_of(task.recurring(task.batch(Rows([row] * rows))).batch, ())

    assert key(17, 5, 3) == key(17, 6, 3)
    assert key(17, 5, 3) != key(21, 5, 3)
    assert key(17, 5, 3) != key(17, 9, 3)
    assert key(18, 8, 4) != key(17, 8, 4)  # the first has no padding at all


def test_the_lengths_of_a_batch_are_found_once_each() -> None:
    one, other = torch.tensor([2, 1]), torch.tensor([1, 1])
    batch = (Padded(torch.zeros(2, 2), one), (Padded(torch.zeros(2, 2), one), None, Padded(torch.zeros(2, 1), other)))
    assert [each.tolist() for each in lengths_of(batch)] == [[2, 1], [1, 1]]


def test_a_twin_is_known_only_inside_and_goes_through_what_is_computed_of_both() -> None:
    lengths, copy = torch.tensor([4, 1]), torch.tensor([7, 2])
    with recording([(lengths, copy)]):
        assert is_recording()
        halves = both(lambda n: n // 2, lengths)
        assert halves.tolist() == [2, 0]
        found = twin(halves)
        assert found is not None
        assert found.tolist() == [3, 1]
    assert not is_recording()
    assert twin(lengths) is None


def test_gradients_that_only_one_step_has_are_infinitely_far_apart() -> None:
    one = torch.ones(2)
    assert difference([one, None], [one, one], [True, False]) == 0.0
    assert difference([one, None], [one, one], [True, True]) == float("inf")
    assert difference([3 * one], [one], [True]) == pytest.approx(2 / 3)
