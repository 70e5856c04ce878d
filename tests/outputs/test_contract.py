"""What holds for every output in the folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recurra import ConfigError, DataError
from recurra.heads import UNLABELLED
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.named import catalogue
from recurra.outputs import Output, build
from tests.outputs.equations import probabilities

EVERY: list[str | dict[str, Any]] = [
    "softmax",
    "adaptive_softmax",
    {"name": "adaptive_softmax", "cutoffs": [3, 4, 12], "div_value": 2.0},
    {"name": "adaptive_softmax", "cutoffs": []},
    "mixture_of_softmaxes",
    {"name": "mixture_of_softmaxes", "components": 1},
]
CAN_BE_TIED = ["softmax", "mixture_of_softmaxes"]
H, V, N = 5, 31, 7


def drawn(spec: str | dict[str, Any], embedding: Tensor | None = None) -> Output:
    output = build(spec, H, V, embedding).double()
    for parameter in output.parameters():
        nn.init.normal_(parameter)
    return output


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(N, H, dtype=torch.float64), torch.tensor([0, 30, 2, 3, 12, 4, 1])


def test_the_file_name_is_the_config_name() -> None:
    assert catalogue(Output) == ["adaptive_softmax", "mixture_of_softmaxes", "softmax"]


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_the_distribution_is_that_of_the_equations(spec: str | dict[str, Any]) -> None:
    output, (features, _) = drawn(spec), batch()
    log_p = output.log_probabilities(features)
    np.testing.assert_allclose(log_p.exp().detach().numpy(), probabilities(output, features), rtol=1e-12)
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(N, dtype=torch.float64), rtol=1e-12, atol=0)


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_the_loss_is_what_the_distribution_says_of_the_targets(spec: str | dict[str, Any]) -> None:
    output, (features, _) = drawn(spec), batch()
    log_p = output.log_probabilities(features)
    for target in range(V):
        loss = output.loss(features, torch.full((N,), target))
        torch.testing.assert_close(loss, -log_p[:, target], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_gradients_are_those_of_differences(spec: str | dict[str, Any]) -> None:
    output, (features, targets) = drawn(spec), batch()
    names = [name for name, _ in output.named_parameters()]

    def loss(features: Tensor, *weights: Tensor) -> Tensor:
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(
            _Costs(output, targets), {f"output.{n}": w for n, w in given.items()}, features
        )

    values = [parameter.detach().requires_grad_() for parameter in output.parameters()]
    assert torch.autograd.gradcheck(loss, (features.requires_grad_(), *values), fast_mode=True)


class _Costs(nn.Module):
    def __init__(self, output: Output, targets: Tensor) -> None:
        super().__init__()
        self.output = output
        self.targets = targets

    def forward(self, features: Tensor) -> Tensor:
        return self.output.loss(features, self.targets)


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_without_weights_every_token_is_equally_probable(spec: str | dict[str, Any]) -> None:
    output, (features, targets) = build(spec, H, V).double(), batch()
    for parameter in output.parameters():
        nn.init.zeros_(parameter)
    torch.testing.assert_close(
        output.loss(features, targets).exp(), torch.full((N,), float(V), dtype=torch.float64), rtol=1e-14, atol=0
    )
    torch.testing.assert_close(
        output.log_probabilities(features), torch.full((N, V), -math.log(V), dtype=torch.float64), rtol=1e-14, atol=0
    )


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_what_is_unlabelled_costs_nothing(spec: str | dict[str, Any]) -> None:
    output, (features, targets) = drawn(spec), batch()
    known = output.loss(features, targets)
    costs = output.loss(features, targets.index_fill(0, torch.tensor([1, 4]), UNLABELLED))
    torch.testing.assert_close(costs, known.index_fill(0, torch.tensor([1, 4]), 0.0), rtol=0, atol=1e-12)
    assert costs[1] == costs[4] == 0


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_no_features_are_answered_with_nothing(spec: str | dict[str, Any]) -> None:
    output = build(spec, H, V)
    assert output.loss(torch.zeros(0, H), torch.zeros(0, dtype=torch.long)).shape == (0,)
    assert output.log_probabilities(torch.zeros(0, H)).shape == (0, V)


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_scores_far_apart_are_summed_without_overflow(spec: str | dict[str, Any]) -> None:
    output, (features, targets) = drawn(spec).float(), batch()
    for scale in (1e3, 1e30):
        loss = output.loss(scale * features.float(), targets)
        assert not loss.isnan().any()
        assert (loss >= 0).all()


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_half_precision_sums_in_single(spec: str | dict[str, Any]) -> None:
    output, (features, targets) = build(spec, H, V), batch()
    with torch.autocast("cpu", torch.bfloat16):
        loss, log_p = output.loss(features.float(), targets), output.log_probabilities(features.float())
    assert loss.dtype == log_p.dtype == torch.float32
    torch.testing.assert_close(loss, output.loss(features.float(), targets), rtol=0.05, atol=0.05)
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(N))


@pytest.mark.parametrize("name", CAN_BE_TIED)
def test_a_tied_weight_is_the_embedding_itself_and_gets_both_gradients(name: str) -> None:
    embedding = nn.Embedding(V, H).double()
    output = drawn(name, embedding.weight)
    assert dict(output.named_parameters())["readout.weight"] is embedding.weight
    targets = batch()[1]

    def losses(read: Tensor, written: Tensor) -> Tensor:
        return torch.func.functional_call(_Costs(output, targets), {"output.readout.weight": written}, read)

    output.loss(embedding(targets), targets).sum().backward()
    read = embedding(targets).detach().requires_grad_()
    written = embedding.weight.detach().clone().requires_grad_()
    of_read, of_written = torch.autograd.grad(losses(read, written).sum(), [read, written])
    expected = of_written.index_add(0, targets, of_read)
    assert embedding.weight.grad is not None
    torch.testing.assert_close(embedding.weight.grad, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CAN_BE_TIED)
def test_tied_weights_are_saved_once_and_tied_again_on_load(name: str, tmp_path: Path) -> None:
    def made() -> nn.ModuleDict:
        embedding = nn.Embedding(V, H)
        return nn.ModuleDict({"embedding": embedding, "output": build(name, H, V, embedding.weight)})

    first, second = made(), made()
    write_tensors(tmp_path / "tied", first.state_dict())
    size = (tmp_path / "tied").stat().st_size
    assert size < 4 * sum(parameter.numel() for parameter in first.parameters()) + 1500
    tensors, _ = read_tensors(tmp_path / "tied")
    put_weights(second, tensors, tmp_path / "tied")
    weights = dict(second.named_parameters(remove_duplicate=False))
    assert weights["output.readout.weight"] is weights["embedding.weight"]
    for ours, theirs in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_mixture_maps_to_the_size_of_a_narrower_embedding() -> None:
    embedding = nn.Embedding(V, 3)
    assert build("mixture_of_softmaxes", H, V, embedding.weight).log_probabilities(torch.zeros(2, H)).shape == (2, V)


def test_a_mixture_has_a_higher_rank_than_a_softmax() -> None:
    features = torch.randn(40, 2, dtype=torch.float64)
    ranks = {}
    for name in CAN_BE_TIED:
        output = build(name, 2, V).double()
        for parameter in output.parameters():
            nn.init.normal_(parameter)
        log_p = output.log_probabilities(features)
        ranks[name] = int(torch.linalg.matrix_rank(log_p.detach(), rtol=1e-6))
    assert ranks["softmax"] <= 2 + 2  # W h, the bias, and the normalisation
    assert ranks["mixture_of_softmaxes"] > 10


def test_rare_clusters_are_narrower() -> None:
    output = build({"name": "adaptive_softmax", "cutoffs": [10, 20], "div_value": 2.0}, 8, V)
    assert [tuple(tail.weight.shape) for tail in output.tails] == [(10, 4), (11, 2)]  # type: ignore[union-attr]
    assert build({"name": "adaptive_softmax", "div_value": 100.0}, 8, V).tails[1].weight.shape[1] == 1  # type: ignore[index, union-attr]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("softmaxx", "there is no output 'softmaxx'. Did you mean 'softmax'?"),
        (3, r"an output is a name or a table with a name, such as \{name = 'adaptive_softmax'\}, but found 3."),
        ({"components": 3}, "an output is a name or a table with a name"),
        ({"name": "softmax", "components": 3}, "'softmax' has no option 'components'"),
        ({"name": "mixture_of_softmaxes", "components": 0}, "components must be a whole number of at least 1"),
        ({"name": "adaptive_softmax", "cutoffs": [4, 4]}, r"cutoffs must be increasing ids between 1 and 30.*\[4, 4\]"),
        ({"name": "adaptive_softmax", "cutoffs": [0]}, "cutoffs must be increasing ids between"),
        ({"name": "adaptive_softmax", "cutoffs": [31]}, "cutoffs must be increasing ids between"),
        ({"name": "adaptive_softmax", "cutoffs": 7}, "cutoffs must be a list of whole numbers or nothing, but is 7"),
        ({"name": "adaptive_softmax", "div_value": 0.5}, "div_value must be a number of at least 1, but is 0.5"),
    ],
)
def test_what_cannot_be_made_is_said(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(spec, H, V)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        (
            "softmax",
            (V, 3),
            "tied to an embedding of size 3, but its features have size 5: make the last layer as wide",
        ),
        (
            "softmax",
            (30, H),
            r"over 31 tokens can be tied only to an embedding of shape \(31, …\), but this one has shape \(30, 5\)",
        ),
        ("adaptive_softmax", (V, H), "an adaptive softmax cannot be tied to the embedding: its clusters are narrower"),
    ],
)
def test_what_cannot_be_tied_is_said(name: str, shape: tuple[int, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(name, H, V, nn.Parameter(torch.zeros(shape)))


@pytest.mark.parametrize("spec", EVERY, ids=str)
@pytest.mark.parametrize(
    ("features", "targets", "message"),
    [
        (torch.zeros(2, 4), torch.zeros(2, dtype=torch.long), r"features must be a tensor of shape \(N, 5\).*\(2, 4\)"),
        ([1.0], torch.zeros(2, dtype=torch.long), "features must be a tensor.*found a list"),
        (torch.zeros(2, H), torch.zeros(2), r"targets must be a tensor of shape \(2,\) of torch.int64.*float32"),
        (torch.zeros(2, H), torch.zeros(3, dtype=torch.long), r"targets must be a tensor of shape \(2,\)"),
        (torch.zeros(2, H), torch.tensor([0, 31]), "target 1 is 31, but the vocabulary has the ids 0 to 30"),
        (torch.zeros(2, H), torch.tensor([-1, 0]), "target 0 is -1, but the vocabulary has the ids 0 to 30"),
    ],
)
def test_features_and_targets_that_do_not_fit_are_refused(
    spec: Any, features: Any, targets: Tensor, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        build(spec, H, V).loss(features, targets)
