"""What settings say of the stack of a model, whichever task it is for: its mix, its ways past layers, its direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.config import ClassificationModel, ForecastingModel, LanguageModelModel, TaggingModel
from recurra.config.tagging import SpellingModel
from recurra.errors import ConfigError
from recurra.models.classifier import Classifier, ClassifierBatch
from recurra.models.forecaster import Forecaster
from recurra.models.language_model import NextToken
from recurra.models.tagger import Known, Tagger, TaggerBatch
from recurra.padding import Padded
from recurra.settings import SettingError

LENGTH = 5
UNSPELT = SpellingModel(cell="none")


def tagger(**options: Any) -> Tagger:
    settings = TaggingModel(characters=UNSPELT, **{"hidden": 4, "head": "softmax", **options})
    sizes: dict[str, Any] = {"words": 3, "unknown": 0, "characters": 3, "frame_size": 2, "value_size": None}
    return Tagger(settings, tags=[["A", "B"]], heads=[settings.head], loss_weights=[1.0], labels=["x", "y"], **sizes)


def classifier(**options: Any) -> Classifier:
    settings = ClassificationModel(characters=UNSPELT, **{"hidden": 4, **options})
    sizes: dict[str, Any] = {"words": 3, "unknown": 0, "characters": None, "frame_size": 2, "features": None}
    return Classifier(settings, "label", 3, class_weights=None, **sizes)


def next_token(**options: Any) -> NextToken:
    return NextToken(LanguageModelModel(**{"hidden": 4, "embedding": 3, **options}), tokens=7)


def forecaster(**options: Any) -> Forecaster:
    settings = ForecastingModel(**{"hidden": 4, **options})
    return Forecaster(settings, output="gaussian", size=2, from_nothing=False)


def tagged(model: Any, x: Tensor) -> list[Tensor]:
    frames = Padded.full(x)
    features, whole = model._read(TaggerBatch(None, None, frames, (), None, None, Known(0, ())))
    return [features.values, whole]


def classified(model: Any, x: Tensor) -> list[Tensor]:
    frames = Padded.full(x)
    return [model(ClassifierBatch(None, None, None, frames, frames.lengths, None, None, None))[0][0]]


def drawn(build: Callable[..., nn.Module], **options: Any) -> Any:
    torch.manual_seed(1)
    return build(**options).double().eval()


EVERY = [tagger, classifier, next_token, forecaster]


@pytest.mark.parametrize("mix", ["concat", "mean", "learned"])
@pytest.mark.parametrize("build", EVERY)
def test_the_output_sees_what_the_mix_gives(build: Callable[..., nn.Module], mix: str) -> None:
    model = drawn(build, layers=3, mix=mix)
    [stack] = [part for part in model.modules() if hasattr(part, "mix_weights")]
    both = 2 if stack.bidirectional else 1
    assert stack.mix == mix
    assert stack.output_size == 4 * both * (3 if mix == "concat" else 1)
    assert [name for name, _ in model.named_parameters() if "mix_weights" in name] == (
        [] if mix != "learned" else [name for name in model.state_dict() if name.endswith("mix_weights")]
    )


@pytest.mark.parametrize("skip", ["residual", "highway"])
@pytest.mark.parametrize("build", EVERY)
def test_layers_may_be_skipped(build: Callable[..., nn.Module], skip: str) -> None:
    model = drawn(build, layers=2, skip=skip)
    [stack] = [part for part in model.modules() if hasattr(part, "mix_weights")]
    assert stack.skip == skip
    assert len(stack.transforms) == (skip == "highway")


@pytest.mark.parametrize("summary", ["last", "max", "last_cell"])
@pytest.mark.parametrize(("build", "read"), [(tagger, tagged), (classifier, classified)])
def test_a_model_that_reads_backward_reads_the_reversed_sequence(
    build: Callable[..., nn.Module], read: Callable[[Any, Tensor], list[Tensor]], summary: str
) -> None:
    one_way = {"bidirectional": False, "summary": summary, "layers": 2}
    forward, backward = drawn(build, **one_way), drawn(build, **one_way, direction="backward")
    backward.load_state_dict(forward.state_dict())
    x = torch.randn(3, LENGTH, 2, dtype=torch.float64)
    *steps, whole = read(backward, x)
    *expected, expected_whole = read(forward, x.flip(1))
    assert_close([each.flip(1) for each in steps], expected)
    assert_close(whole, expected_whole)
    assert not torch.allclose(whole, read(forward, x)[-1])


def test_tied_weights_have_the_size_of_one_layer() -> None:
    with pytest.raises(SettingError, match=r"model.mix = 'concat' gives the output all layers \(4 \+ 4 units\): set"):
        LanguageModelModel(hidden=4, layers=2, embedding=4, tied=True, mix="concat")
    model = next_token(layers=2, embedding=4, tied=True, mix="mean")
    assert model.stack.output_size == model.embedding.embedding_dim == 4


def test_layers_of_different_sizes_have_no_mean() -> None:
    with pytest.raises(ConfigError, match="mix = 'mean' averages the layers, so all layers must have the same size"):
        next_token(hidden=[4, 5], mix="mean")
