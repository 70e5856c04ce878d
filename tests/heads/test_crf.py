"""The CRF against every labelling written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from recurra import ConfigError, Padded
from recurra.heads import CRF, UNLABELLED, Softmax, lattice
from recurra.heads.crf import log_partition_by_halves
from tests.heads.enumeration import every_labelling, log_sum, loss, marginals

LABELS = {
    "none": [["P"], ["P", "Q"], ["P", "Q", "R"], ["P", "Q", "R", "S"]],
    "bio": [["O", "B-x"], ["O", "B-x", "I-x"], ["I-x", "B-y", "B-x"], ["I-x", "B-y", "B-x", "I-y"]],
    # The first of bioes has an E-x that nothing can lead to.
    "bioes": [
        ["O", "E-x", "S-y"],
        ["O", "S-x"],
        ["E-x", "B-x", "O"],
        ["O", "B-x", "E-x", "S-y"],
        ["S-x", "B-x", "I-x", "E-x"],
    ],
}


def drawn_head(labels: list[str], *, scale: float = 1.0) -> CRF:
    head = CRF(2, labels).double()
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=scale)
    return head


def drawn_batch(lengths: list[int]) -> Padded:
    values = torch.randn(len(lengths), max(lengths), 2, dtype=torch.float64)
    return Padded(values, torch.tensor(lengths))


@st.composite
def cases(draw: st.DrawFn) -> tuple[CRF, Padded, Tensor, str]:
    """A head with up to 4 labels, ragged rows of up to 5 steps, targets with gaps, and the scheme of the labels."""
    torch.default_generator.manual_seed(draw(st.integers(0, 2**31)))  # the CPU alone: torch.manual_seed is slow
    scheme = draw(st.sampled_from(["none", "bio", "bioes"]))
    head = drawn_head(draw(st.sampled_from(LABELS[scheme])), scale=draw(st.sampled_from([0.1, 1.0, 5.0])))
    batch = drawn_batch(draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    targets = torch.randint(len(head.labels), batch.values.shape[:2])
    share = draw(st.sampled_from([0.0, 0.4, 1.0]))
    return head, batch, targets.masked_fill(torch.rand(targets.shape) < share, UNLABELLED), scheme


@given(cases())
def test_the_loss_is_that_of_every_labelling(case: tuple[CRF, Padded, Tensor, str]) -> None:
    head, batch, targets, _ = case
    costs = head.loss(batch, targets)
    for row, length in enumerate(batch.lengths.tolist()):
        expected = loss(head, batch.values[row, :length], targets[row, :length].tolist())
        assert costs[row].item() == pytest.approx(expected, rel=1e-10, abs=1e-10)


@given(cases())
def test_the_best_labelling_is_the_best_of_every_labelling(case: tuple[CRF, Padded, Tensor, str]) -> None:
    head, batch, _, scheme = case
    assert head.constraints == scheme
    best, log_p = head.best(batch)
    for row, length in enumerate(batch.lengths.tolist()):
        labels, scores = every_labelling(head, batch.values[row, :length], scheme=scheme)
        assert best[row, :length].tolist() == labels[scores.argmax()].tolist()
        assert best[row, length:].tolist() == [0] * (batch.values.shape[1] - length)
        assert log_p[row].item() == pytest.approx(scores.max() - log_sum(scores), rel=1e-10, abs=1e-10)


@given(cases())
def test_marginals_are_those_of_every_labelling(case: tuple[CRF, Padded, Tensor, str]) -> None:
    head, batch, _, scheme = case
    p = head.probabilities(batch).numpy()
    for row, length in enumerate(batch.lengths.tolist()):
        expected = marginals(head, batch.values[row, :length], scheme=scheme)
        np.testing.assert_allclose(p[row, :length], expected, atol=1e-12)
        assert (p[row, :length][expected == 0] == 0).all()
        assert (p[row, length:] == 0).all()


@pytest.mark.parametrize("labels", [["O", "B-x", "I-x", "B-y"], ["O", "E-x", "B-y", "E-y"]])
def test_sums_of_long_rows_are_those_of_short_ones(labels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    head = drawn_head(labels, scale=3.0)
    batch = drawn_batch([7, 0, 40, 1])
    short = *head.best(batch), head.probabilities(batch)
    monkeypatch.setattr(lattice, "LARGEST_EXPONENT", 1.0)
    for ours, other in zip(short, (*head.best(batch), head.probabilities(batch)), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-12, atol=1e-12)


def test_rows_of_a_thousand_steps_are_labelled() -> None:
    head = drawn_head(["P", "Q", "R", "S"])
    batch = drawn_batch([1000, 3])
    labels, log_p = head.best(batch)
    assert labels[1].tolist() == [*head.best(Padded.full(batch.values[1:, :3]))[0][0].tolist(), *[0] * 997]
    torch.testing.assert_close(head.probabilities(batch).sum(2), batch.mask.double(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(head.loss(batch, labels), -log_p, rtol=1e-10, atol=1e-10)


def test_many_rows_are_the_same_in_one_block_and_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    head = drawn_head(["P", "Q", "R"])
    batch = drawn_batch([3, 9, 0, 5, 9, 1, 2])
    whole = *head.best(batch), head.probabilities(batch)
    monkeypatch.setattr(lattice, "BLOCK", 100)
    for ours, other in zip(whole, (*head.best(batch), head.probabilities(batch)), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_gradient_is_that_of_differences(share: float) -> None:
    head = drawn_head(["P", "Q", "R"])
    batch = drawn_batch([4, 1, 0, 3])
    targets = torch.randint(3, (4, 4)).masked_fill(torch.rand(4, 4) < share, UNLABELLED)
    values = batch.values.requires_grad_()

    def costs(values: Tensor, *_: Tensor) -> Tensor:
        return head.loss(Padded(values, batch.lengths), targets)

    assert torch.autograd.gradcheck(costs, (values, *head.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_apart_transitions_give_the_loss_of_close_ones(dtype: torch.dtype) -> None:
    """Adding c to what leaves a label and taking it from what enters it changes only the ends of a row."""
    head = drawn_head(["P", "Q", "R"]).to(dtype)
    batch = Padded(torch.randn(2, 6, 2, dtype=dtype), torch.tensor([6, 4]))
    targets = torch.randint(3, (2, 6))
    parameters = list(head.parameters())
    near = head.loss(batch, targets)
    near_gradients = torch.autograd.grad(near.sum(), parameters)
    c = torch.tensor([-500.0, 0.0, 500.0], dtype=dtype)
    with torch.no_grad():
        head.transitions.add_(c[:, None] - c)
        head.start.sub_(c)
        head.end.add_(c)
    far = head.loss(batch, targets)
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(near, far, rtol=tolerance, atol=tolerance)
    far_gradients = torch.autograd.grad(far.sum(), parameters)
    for ours, other in zip(near_gradients, far_gradients, strict=True):
        torch.testing.assert_close(ours, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("transitions", [1.0, 1e4])
def test_scores_of_ten_thousand_stay_finite(dtype: torch.dtype, transitions: float) -> None:
    head = drawn_head(["O", "B-x", "I-x", "B-y"])
    with torch.no_grad():
        head.transitions.mul_(transitions)
        head.readout.weight.mul_(1e4)
    batch = drawn_batch([5, 2, 0])
    targets = torch.randint(4, (3, 5))
    expected = [loss(head, batch.values[row, :n], targets[row, :n].tolist()) for row, n in enumerate([5, 2, 0])]
    head = head.to(dtype)
    batch = Padded(batch.values.to(dtype), batch.lengths)
    for labels in (targets, torch.full_like(targets, UNLABELLED), targets.index_fill(1, torch.tensor([1]), UNLABELLED)):
        costs = head.loss(batch, labels)
        gradients = torch.autograd.grad(costs.sum(), list(head.parameters()), retain_graph=True)
        assert all(gradient.isfinite().all() for gradient in (costs, *gradients))
    np.testing.assert_allclose(head.loss(batch, targets).detach(), expected, rtol=1e-4, atol=1e-2)
    assert head.best(batch)[1].isfinite().all()
    torch.testing.assert_close(head.probabilities(batch).sum(2), batch.mask.to(dtype))


def test_a_number_added_to_all_scores_of_a_step_costs_float32_nothing() -> None:
    head = CRF(3, ["P", "Q", "R"])
    nn.init.eye_(head.readout.weight)
    features = Padded.full(torch.randint(-256, 256, (4, 50, 3)) / 64)  # exact in float32, with 1024 added too
    targets = torch.randint(3, (4, 50))
    plain = head.loss(features, targets)
    nn.init.constant_(head.readout.bias, 1024)
    torch.testing.assert_close(head.loss(features, targets), plain, rtol=0, atol=0)


def test_float32_is_close_to_float64() -> None:
    head = drawn_head(["P", "Q", "R"])
    batch = drawn_batch([40, 25])
    targets = torch.randint(3, (2, 40))
    exact, exact_labels = head.loss(batch, targets), head.best(batch)[0]
    head = head.float()
    batch = Padded(batch.values.float(), batch.lengths)
    torch.testing.assert_close(head.loss(batch, targets).double(), exact, rtol=1e-5, atol=1e-4)
    labels, log_p = head.best(batch)
    assert labels.tolist() == exact_labels.tolist()
    assert log_p.dtype == head.probabilities(batch).dtype == torch.float32


def test_under_autocast_the_loss_is_computed_in_full_precision() -> None:
    head = drawn_head(["P", "Q", "R"]).float()
    batch = Padded(torch.randn(2, 30, 2).bfloat16(), torch.tensor([30, 12]))
    targets = torch.randint(3, (2, 30))
    plain = head.loss(Padded(batch.values.float(), batch.lengths), targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        costs = head.loss(batch, targets)
        labels, _ = head.best(batch)
    assert costs.dtype == torch.float32
    torch.testing.assert_close(costs, plain)
    assert labels.tolist() == head.best(Padded(batch.values.float(), batch.lengths))[0].tolist()


def test_of_equally_good_labellings_the_lowest_numbers_are_said() -> None:
    head = CRF(2, ["P", "Q", "R"])
    nn.init.zeros_(head.readout.weight)
    labels, log_p = head.best(Padded.full(torch.randn(2, 4, 2)))
    assert labels.tolist() == [[0] * 4] * 2
    torch.testing.assert_close(log_p.exp(), torch.full((2,), 3.0**-4))


def test_a_new_crf_without_constraints_is_a_softmax() -> None:
    crf, softmax = CRF(3, ["P", "Q", "R"]).double(), Softmax(3, ["P", "Q", "R"]).double()
    crf.readout = softmax.readout
    batch = Padded(torch.randn(2, 5, 3, dtype=torch.float64), torch.tensor([5, 2]))
    targets = torch.randint(3, (2, 5)).masked_fill(torch.rand(2, 5) < 0.3, UNLABELLED)
    torch.testing.assert_close(crf.loss(batch, targets), softmax.loss(batch, targets))
    assert crf.best(batch)[0].tolist() == softmax.best(batch)[0].tolist()
    torch.testing.assert_close(crf.best(batch)[1], softmax.best(batch)[1])
    torch.testing.assert_close(crf.probabilities(batch), softmax.probabilities(batch))


def test_tags_out_of_place_have_a_finite_loss_and_are_never_said() -> None:
    head = drawn_head(["O", "B-x", "I-x"])
    batch = drawn_batch([4, 3])
    targets = torch.full((2, 4), 2)  # I-x from the start
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(50):
        optimiser.zero_grad()
        costs = head.loss(batch, targets).sum()
        assert costs.isfinite()
        costs.backward()
        optimiser.step()
    assert costs < 1
    labels, log_p = head.best(batch)
    assert labels.tolist() == [[1, 2, 2, 2], [1, 2, 2, 0]]
    assert log_p.isfinite().all()
    assert head.probabilities(batch)[:, 0, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("labels", "wanted", "found"),
    [
        (["O", "B-x", "I-x"], "auto", "bio"),
        (["O", "B-x", "I-x"], "none", "none"),
        (["O", "B-x", "I-x"], "bioes", "bioes"),
        (["O", "S-x"], "auto", "bioes"),
        (["NOUN", "VERB"], "auto", "none"),
        (["B-x", "E-x"], "auto", "none"),  # no label for a row of one step would be left
        (["B", "I", "O"], "bio", "bio"),
    ],
)
def test_constraints_are_seen_from_the_labels_or_chosen(labels: list[str], wanted: Any, found: str) -> None:
    head = CRF(2, labels, constraints=wanted)
    assert head.constraints == found
    assert f"constraints='{found}'" in repr(head)
    assert head.best(Padded.full(torch.randn(1, 1, 2)))[1].isfinite().all()


@pytest.mark.parametrize(
    ("labels", "constraints", "message"),
    [
        (["O"], "boi", "constraints = 'boi' is not known. Did you mean 'bio'?"),
        (["NOUN"], "bio", "the label 'NOUN' is not valid in the scheme 'bio'"),
        (
            ["B-x", "E-x"],
            "bioes",
            "constraints = 'bioes' leave no valid label for a sequence of length 1: none of the labels B-x, E-x",
        ),
    ],
)
def test_constraints_that_cannot_be_are_refused(labels: list[str], constraints: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        CRF(2, labels, constraints=constraints)
    assert message in str(refusal.value)


@given(
    rows=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    depth=st.sampled_from([1, 7, 8, 16, 20, 37, 64]),
    is_double=st.booleans(),
    has_bias=st.booleans(),
    is_strided=st.booleans(),
)
def test_the_best_path_from_features_is_that_from_emissions(
    rows: list[int], depth: int, is_double: bool, has_bias: bool, is_strided: bool
) -> None:
    """In C, W h + b is computed too; numpy has it in float64. NaN on padding is never read."""
    torch.default_generator.manual_seed(depth)
    dtype = torch.float64 if is_double else torch.float32
    head = CRF(depth, ["O", "B-x", "I-x", "B-y", "I-y"]).to(dtype)
    head.readout = nn.Linear(depth, 5, bias=has_bias, dtype=dtype)
    nn.init.normal_(head.transitions)
    values = torch.randn(len(rows), max(rows), 2 * depth, dtype=dtype)
    values = values[..., ::2] if is_strided else values[..., :depth].contiguous()
    batch = Padded(values, torch.tensor(rows))
    values.masked_fill_(~batch.mask.unsqueeze(2), torch.nan)
    labels, log_p = head.best(batch)
    wide = CRF(depth, head.labels).double()
    wide.readout = nn.Linear(depth, 5, bias=has_bias, dtype=torch.float64)
    wide.load_state_dict(head.state_dict())
    with torch.no_grad():
        e = wide.readout(Padded(values.double(), batch.lengths).zeroed().values).numpy()
    chain = lattice.Chain(*(scores.numpy() for scores in wide._scores(torch.float64)))
    same, same_p = lattice.best_path_in_numpy(chain, e, np.array(rows))
    assert labels.tolist() == same.tolist()
    np.testing.assert_allclose(log_p.double().numpy(), same_p, atol=1e-10 if is_double else 2e-5)


class Louder(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 5 * super().forward(input)


@pytest.mark.parametrize("manner", ["hook", "class", "bias of another type", "bias in pieces", "autocast"])
def test_a_readout_that_is_more_than_a_product_is_heard(manner: str) -> None:
    torch.manual_seed(1)
    head, batch = CRF(20, ["P", "Q", "R"]), Padded(torch.randn(2, 6, 20), torch.tensor([6, 4]))
    nn.init.normal_(head.readout.bias)
    if manner == "hook":
        head.readout.register_forward_hook(lambda module, given, found: 5 * found)
    elif manner == "class":
        louder = Louder(20, 3)
        louder.load_state_dict(head.readout.state_dict())
        head.readout = louder
    elif manner == "bias in pieces":
        head.readout.bias = nn.Parameter(torch.randn(6)[::2])
    elif manner == "bias of another type":
        head.readout.bias = nn.Parameter(torch.randn(3, dtype=torch.float64))
        with pytest.raises(RuntimeError):
            head.best(batch)
        return
    with torch.autocast("cpu", enabled=manner == "autocast"):
        labels, log_p = head.best(batch)
    torch.testing.assert_close(-head.loss(batch, labels), log_p, rtol=0, atol=1e-4)


def test_a_row_of_less_than_no_steps_is_passed_by() -> None:
    chain = lattice.Chain(np.zeros((2, 2)), np.zeros(2), np.zeros(2))
    labels, log_p = lattice.best_path(chain, np.ones((2, 3, 2)), np.array([2, -1]))
    assert labels[1].tolist() == [0, 0, 0]
    assert log_p[1] == 0


@pytest.mark.parametrize("lengths", [[1], [2, 1], [7, 0, 3, 6], [5, 5, 5]])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_steps_taken_by_halves_give_the_sums_and_gradients_of_steps_taken_one_by_one(
    lengths: list[int], share: float
) -> None:
    torch.manual_seed(len(lengths))
    head = CRF(3, ["A", "B", "C", "D"]).double()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=3.0)
    batch = drawn_batch(lengths)
    mask, e = batch.mask, torch.randn(*batch.values.shape[:2], 4, dtype=torch.float64)
    closed = (torch.rand(e.shape) < share) & ~torch.nn.functional.one_hot(torch.randint(4, e.shape[:2]), 4).bool()
    e = e.masked_fill(closed, -torch.inf).requires_grad_()

    def by_halves() -> Tensor:
        found = log_partition_by_halves(head.start + e[:, 0], head.transitions, e[:, 1:], mask[:, 1:])
        return torch.logsumexp(found + head.end, 1).masked_fill(~mask[:, 0], 0)

    given = [e, head.transitions, head.start, head.end]
    expected, found = head._log_partition(e, mask, min(lengths)), by_halves()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    wanted = torch.autograd.grad(expected.sum(), given, materialize_grads=True)  # one step has no transition
    for one, other in zip(torch.autograd.grad(found.sum(), given, materialize_grads=True), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
