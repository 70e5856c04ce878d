"""Copying: the mixture of See et al. in numpy, its logs, its gradients, and what there is nothing of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from recurra.decoding.pointer import Pointer
from recurra.errors import ConfigError, DataError

V, F = 5, 3
SOME = settings().max_examples // 4


class Case(NamedTuple):
    pointer: Pointer
    log_p: Tensor
    weights: Tensor
    features: Tensor
    copied: Tensor
    extra: int


def drawn(lengths: list[int], *, each: int = 1, extra: int = 2, seed: int = 1) -> Case:
    """Sources with tokens that occur twice; what is to be copied on padding is as good as any."""
    torch.manual_seed(seed)
    sources, places, rows = len(lengths), max(lengths), each * len(lengths)
    mask = torch.arange(places) < torch.tensor(lengths).unsqueeze(1)
    scores = torch.randn(rows, places).double().masked_fill(~mask.repeat_interleave(each, dim=0), -torch.inf)
    return Case(
        Pointer(F).double(),
        torch.randn(rows, V).double().log_softmax(1),
        scores.softmax(1).nan_to_num(0.0),
        torch.randn(rows, F).double(),
        torch.randint(0, V + extra, (sources, places)),
        extra,
    )


def probabilities(case: Case) -> NDArray[np.float64]:
    """p(y), row by row and token by token."""
    w = case.pointer.gate.weight.detach().numpy()[0]
    b = float(case.pointer.gate.bias.detach())
    p = np.zeros((len(case.log_p), V + case.extra))
    each = len(case.log_p) // len(case.copied)
    for row in range(len(p)):
        alpha, x = case.weights[row].numpy(), case.copied[row // each].tolist()
        g = 1 / (1 + np.exp(-(w @ case.features[row].numpy() + b))) if alpha.any() else 1.0
        for y in range(V + case.extra):
            in_vocabulary = np.exp(float(case.log_p[row, y])) if y < V else 0.0
            p[row, y] = g * in_vocabulary + (1 - g) * sum(a for a, token in zip(alpha, x, strict=True) if token == y)
    return p


cases = st.builds(
    drawn,
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    each=st.integers(1, 3),
    extra=st.integers(0, 3),
    seed=st.integers(0, 99),
)


@settings(max_examples=SOME)
@given(cases)
def test_the_distribution_is_the_mixture_and_sums_to_one(case: Case) -> None:
    found = case.pointer.log_probabilities(*case[1:]).exp().detach().numpy()
    np.testing.assert_allclose(found, probabilities(case), atol=1e-13)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)


def test_gradients_are_those_of_differences() -> None:
    case = drawn([4, 4], each=2)
    pointer, log_p, weights, features, _, extra = case
    copied = torch.tensor([[1, V, 1, V + 1], [2, 2, 2, 0]])  # a token at several places, two that the vocabulary lacks

    targets = torch.tensor([[1], [V], [2], [3]])

    def likelihood(log_p: Tensor, weights: Tensor, features: Tensor, *_: Tensor) -> Tensor:
        return pointer.log_probabilities(log_p, weights, features, copied, extra).gather(1, targets)

    def distribution(log_p: Tensor, weights: Tensor, features: Tensor, *_: Tensor) -> Tensor:
        return pointer.log_probabilities(log_p, weights, features, copied, extra).exp()

    inputs = [each.requires_grad_() for each in (log_p, weights, features)]
    assert torch.autograd.gradcheck(likelihood, (*inputs, *pointer.parameters()))
    assert torch.autograd.gradcheck(distribution, (*inputs, *pointer.parameters()))


def test_where_nothing_can_be_copied_gradients_are_finite_and_none_reaches_the_gate() -> None:
    pointer, log_p, weights, features, copied, extra = drawn([3, 0])
    inputs = [each.requires_grad_() for each in (log_p, weights, features)]
    found = pointer.log_probabilities(log_p, weights, features, copied, extra).clamp_min(-100).sum()
    gradients = torch.autograd.grad(found, inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[2][1] == 0).all()


def test_the_distribution_alone_and_several_rows_of_a_source_at_once_are_the_same() -> None:
    pointer, log_p, weights, features, copied, extra = drawn([4, 2], each=3)
    together = pointer.log_probabilities(log_p, weights, features, copied, extra)
    for row in range(6):
        alone = pointer.log_probabilities(
            log_p[row : row + 1],
            weights[row : row + 1],
            features[row : row + 1],
            copied[row // 3 : row // 3 + 1],
            extra,
        )
        assert_close(together[row], alone[0])


def test_small_probabilities_are_not_lost() -> None:
    pointer = Pointer(1)
    torch.nn.init.constant_(pointer.gate.weight, 1.0)
    log_p = torch.tensor([[0.0, -300.0, -torch.inf]])
    weights, copied = torch.tensor([[1.0, 1e-30]]), torch.tensor([[0, 2]])
    for score in (-200.0, 0.0, 200.0):
        found = pointer.log_probabilities(log_p, weights, torch.tensor([[score]]), copied, 0)[0]
        log_g, log_rest = -np.logaddexp(0, -score), -np.logaddexp(0, score)
        expected = [0.0, log_g - 300, log_rest + np.log(1e-30)]
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-5, atol=1e-5)


def test_half_precision_sums_in_single() -> None:
    pointer, log_p, weights, features, copied, extra = drawn([3, 2])
    pointer, log_p, weights, features = pointer.float(), log_p.float(), weights.float(), features.float()
    exact = pointer.log_probabilities(log_p, weights, features, copied, extra)
    with torch.autocast("cpu", torch.bfloat16):
        found = pointer.log_probabilities(log_p, weights, features, copied, extra)
    assert found.dtype == torch.float32
    assert_close(found.exp(), exact.exp(), rtol=0.05, atol=0.05)


def test_where_there_are_no_rows_or_no_places_there_is_the_vocabulary_alone() -> None:
    pointer = Pointer(F)
    empty = torch.zeros(0, 4, dtype=torch.long)
    assert pointer.log_probabilities(torch.zeros(0, V), torch.zeros(0, 4), torch.zeros(0, F), empty, 1).shape == (0, 6)
    log_p = torch.randn(2, V).log_softmax(1)
    nowhere = torch.zeros(2, 0, dtype=torch.long)
    found = pointer.log_probabilities(log_p, torch.zeros(2, 0), torch.randn(2, F), nowhere, 1)
    assert_close(found, torch.cat([log_p, torch.full((2, 1), -torch.inf)], 1))


def test_what_does_not_fit_is_refused() -> None:
    pointer, log_p, weights, features, copied, extra = drawn([3, 2])
    with pytest.raises(DataError, match=r"N a multiple of B, but got \(2, 5\), \(2, 2\), \(2, 3\) and \(2, 3\)"):
        pointer.log_probabilities(log_p, weights[:, :2], features, copied, extra)
    with pytest.raises(DataError, match=r"features \(N, 3\)"):
        pointer.log_probabilities(log_p, weights, features[:, :2], copied, extra)
    with pytest.raises(
        DataError, match=r"a token to copy has id 9, but ids must be between 0 and 6 .*5 tokens .* and 2 of the source"
    ):
        pointer.log_probabilities(log_p, weights, features, copied.clone().fill_(9), extra)
    with pytest.raises(ConfigError, match="features must be a whole number"):
        Pointer(0)
