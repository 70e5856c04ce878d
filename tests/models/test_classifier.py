"""The classifier's losses and probabilities, against numpy; members of an ensemble vote."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.config import Augmentation, ClassificationModel, ConvolutionModel
from recurra.heads import UNLABELLED
from recurra.models.classifier import Classifier, ClassifierBatch, Kind
from recurra.padding import Padded

ENSEMBLE = ClassificationModel(
    encoder="ensemble", hidden=4, dropout=0.0, convolution=ConvolutionModel(filters=3), engine="loop"
)


def network(
    kind: Kind, settings: ClassificationModel = ENSEMBLE, weights: Any = None, augmentation: Augmentation | None = None
) -> Classifier:
    torch.manual_seed(1)
    return Classifier(
        settings,
        kind,
        3,
        words=1,
        unknown=0,
        characters=None,
        frame_size=2,
        features=None,
        class_weights=weights,
        augmentation=augmentation,
    ).double()


def batch(**wanted: torch.Tensor) -> ClassifierBatch:
    frames = torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([5, 2, 0, 3])
    empty: dict[str, Any] = dict.fromkeys(("words", "spellings", "bags", "label", "labels", "targets"))
    return ClassifierBatch(frames=Padded(frames, lengths), steps=lengths, **{**empty, **wanted})


def members(model: Classifier, given: ClassifierBatch) -> list[NDArray[np.float64]]:
    """What each member gives, (B, L)."""
    return [output.detach().numpy() for output in model(given)[0]]


def log_softmax(o: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(o - np.log(np.exp(o).sum(1, keepdims=True)))


def test_probabilities_are_the_mean_of_the_members() -> None:
    kinds: list[Kind] = ["label", "labels", "targets"]
    for kind in kinds:
        model = network(kind).eval()
        parts = members(model, batch())
        assert len(parts) == 2
        if kind == "label":
            parts = [np.exp(log_softmax(part)) for part in parts]
        elif kind == "labels":
            parts = [1 / (1 + np.exp(-part)) for part in parts]
        assert np.allclose([output.values for output in model.predict(batch())], np.mean(parts, axis=0), atol=1e-12)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_of_one_class_sums_over_members_and_leaves_out_what_is_not_known(
    weights: list[float] | None, smoothing: float
) -> None:
    settings = dataclasses.replace(ENSEMBLE, label_smoothing=smoothing)
    model = network("label", settings, None if weights is None else np.array(weights))
    label = torch.tensor([2, 0, UNLABELLED, 1])
    given = batch(label=label)
    total, count = model.loss(given)
    assert count == 3
    w = np.array(weights or [1.0, 1.0, 1.0])
    expected = 0.0
    for part in members(model, given):
        logs = log_softmax(part)
        for row, y in ((0, 2), (1, 0), (3, 1)):
            expected -= (1 - smoothing) * w[y] * logs[row, y] + smoothing / 3 * float((w * logs[row]).sum())
    assert float(total.detach()) == pytest.approx(expected, abs=1e-9)
    plain = network("label", ENSEMBLE, None if weights is None else np.array(weights)).eval()
    assert torch.allclose(model.eval().loss(given)[0], plain.loss(given)[0], atol=1e-9)


def test_the_loss_of_several_classes_counts_each_yes_and_no() -> None:
    settings = dataclasses.replace(ENSEMBLE, label_smoothing=0.2)
    model = network("labels", settings, np.array([1.0, 3.0, 1.0]))
    labels = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]])
    total, count = model.loss(batch(labels=labels))
    assert count == 4
    y = labels.numpy() * 0.8 + 0.1
    expected = 0.0
    for part in members(model, batch()):
        p = 1 / (1 + np.exp(-part))
        expected -= float((np.array([1, 3, 1]) * y * np.log(p) + (1 - y) * np.log(1 - p)).sum())
    assert float(total.detach()) == pytest.approx(expected, abs=1e-6)


def test_the_loss_of_numbers_is_their_squared_error() -> None:
    model = network("targets")
    targets = torch.arange(12.0).reshape(4, 3)
    total, count = model.loss(batch(targets=targets))
    assert count == 12
    expected = sum(((part - targets.numpy()) ** 2).sum() for part in members(model, batch()))
    assert float(total.detach()) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize(("share", "readers"), [(True, 1), (False, 2)])
def test_members_read_by_vectors_of_their_own_unless_they_share_them(share: bool, readers: int) -> None:
    settings = dataclasses.replace(ENSEMBLE, share=share, embedding=4)
    model = Classifier(
        settings, "label", 3, words=9, unknown=0, characters=None, frame_size=None, features=None, class_weights=None
    ).eval()
    assert len(model.readers) == readers
    words = Padded(torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1]))
    given = batch()._replace(words=words, frames=None)
    outputs, attention = model(given)
    assert [output.shape for output in outputs] == [(2, 3), (2, 3)]
    assert attention is None


def test_the_weights_shown_are_those_of_the_member_that_attends() -> None:
    settings = dataclasses.replace(ENSEMBLE, summary={"name": "attention", "queries": 2, "size": 3})
    model = network("label", settings).eval()
    for output, length in zip(model.predict(batch(), detail=True), [5, 2, 0, 3], strict=True):
        assert output.attention is not None
        assert output.attention.shape == (2, length)
        assert np.allclose(output.attention.sum(1), float(length > 0))
    assert all(output.attention is None for output in model.predict(batch()))


def test_the_weights_of_a_pyramid_are_spread_over_the_steps_that_it_read() -> None:
    settings = dataclasses.replace(ENSEMBLE, encoder="pyramid", summary={"name": "attention", "queries": 2, "size": 3})
    model = network("label", settings).eval()
    for output, length in zip(model.predict(batch(), detail=True), [5, 2, 0, 3], strict=True):
        assert output.attention is not None
        assert output.attention.shape == (2, length)
        assert np.allclose(output.attention.sum(1), float(length > 0))
        assert np.allclose(output.attention[:, :4], output.attention[:, :1])  # three layers: four steps become one
    assert len(network("label", dataclasses.replace(settings, hidden=[2, 3])).encoders[0].recurrent.layers) == 2  # type: ignore


def test_a_series_is_augmented_in_training_alone() -> None:
    model = network("label", ENSEMBLE, augmentation=Augmentation(noise=0.5))
    given = batch()
    assert torch.equal(model.eval()._frames(given).values, given.frames.values.double())  # type: ignore[union-attr]
    torch.manual_seed(1)
    once = model.train()._frames(given)
    assert not torch.equal(once.values, given.frames.values.double())  # type: ignore[union-attr]
    assert torch.equal(once.lengths, given.frames.lengths)  # type: ignore[union-attr]
    torch.manual_seed(1)
    assert torch.equal(once.values, model._frames(given).values)


def test_the_numbers_of_a_series_are_never_dropped() -> None:
    settings = dataclasses.replace(ENSEMBLE, dropout=0.9)
    model = network("label", settings).train()
    dropped, whole = batch(), network("label", ENSEMBLE).train()
    with torch.no_grad():
        for mine, its in zip(model.encoders, whole.encoders, strict=True):
            frames = model._frames(dropped)
            assert torch.equal(mine(frames).vector, its(frames).vector)
