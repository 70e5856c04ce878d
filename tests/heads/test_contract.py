"""What holds for every head in the folder."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recurra import ConfigError, DataError, Padded, heads
from recurra.heads import UNLABELLED, Head
from recurra.named import catalogue, check_options, find

EVERY = catalogue(Head)
LABELS = ["O", "B-x", "I-x", "B-y"]
LENGTHS = [6, 3, 0, 1, 5]


def drawn(name: str) -> Head:
    head = find(Head, name)(3, LABELS).double()
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def batch() -> tuple[Padded, Tensor]:
    values = torch.randn(len(LENGTHS), max(LENGTHS), 3, dtype=torch.float64)
    targets = torch.randint(len(LABELS), values.shape[:2])
    return Padded(values, torch.tensor(LENGTHS)), targets.masked_fill(torch.rand(targets.shape) < 0.3, UNLABELLED)


def answers(head: Head, features: Padded, targets: Tensor) -> tuple[Tensor, ...]:
    return head.loss(features, targets), *head.best(features), head.probabilities(features)


def test_the_file_name_is_the_config_name() -> None:
    assert EVERY == ["crf", "softmax"]


@pytest.mark.parametrize("name", EVERY)
def test_a_row_alone_gives_what_it_gives_in_a_batch(name: str) -> None:
    head = drawn(name)
    features, targets = batch()
    together = answers(head, features, targets)
    for row, length in enumerate(LENGTHS):
        alone = answers(head, Padded.full(features.values[row : row + 1, :length]), targets[row : row + 1, :length])
        for one, all_rows in zip(alone, together, strict=True):
            expected = all_rows[row : row + 1, :length] if all_rows.dim() > 1 else all_rows[row : row + 1]
            torch.testing.assert_close(one, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    head = drawn(name)
    features, targets = batch()
    order = torch.tensor([3, 0, 4, 2, 1])
    shuffled = answers(head, Padded(features.values[order], features.lengths[order]), targets[order])
    for ours, other in zip(answers(head, features, targets), shuffled, strict=True):
        torch.testing.assert_close(ours[order], other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_what_lies_on_padding_changes_nothing(name: str) -> None:
    head = drawn(name)
    features, targets = batch()
    values = features.values.masked_fill(~features.mask.unsqueeze(2), torch.nan).requires_grad_()
    filled = Padded(values, features.lengths), targets.masked_fill(~features.mask, 99)
    for ours, other in zip(answers(head, features, targets), answers(head, *filled), strict=True):
        torch.testing.assert_close(ours, other, rtol=0, atol=0)
    gradients = torch.autograd.grad(head.loss(*filled).sum(), [values, *head.parameters()], allow_unused=True)
    assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)


@pytest.mark.parametrize("name", EVERY)
def test_padding_is_answered_with_zeros_and_empty_rows_cost_nothing(name: str) -> None:
    features, targets = batch()
    costs, labels, log_p, p = answers(drawn(name), features, targets)
    assert costs[2] == log_p[2] == 0
    assert (labels[~features.mask] == 0).all()
    assert (p[~features.mask] == 0).all()
    torch.testing.assert_close(p.sum(2), features.mask.double())


@pytest.mark.parametrize("name", EVERY)
def test_rows_without_any_label_cost_nothing(name: str) -> None:
    features, targets = batch()
    costs = drawn(name).loss(features, torch.full_like(targets, UNLABELLED))
    torch.testing.assert_close(costs, torch.zeros_like(costs))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 4, 3)])
def test_a_batch_without_steps_or_rows_is_answered(name: str, shape: tuple[int, int, int]) -> None:
    features = Padded.full(torch.zeros(shape))
    costs, labels, log_p, p = answers(find(Head, name)(3, LABELS), features, torch.zeros(shape[:2], dtype=torch.long))
    assert costs.tolist() == log_p.tolist() == [0.0] * shape[0]
    assert labels.shape == shape[:2]
    assert p.shape == (*shape[:2], len(LABELS))


@pytest.mark.parametrize("name", EVERY)
def test_the_weights_saved_are_the_weights_loaded(name: str) -> None:
    head, other = drawn(name), drawn(name)
    other.load_state_dict(head.state_dict())
    features, targets = batch()
    for ours, theirs in zip(answers(head, features, targets), answers(other, features, targets), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("name", EVERY)
def test_a_gpu_gives_the_answers_of_the_cpu(name: str) -> None:
    head = drawn(name)
    features, targets = batch()
    here = answers(head, features, targets)
    gradients = torch.autograd.grad(here[0].sum(), list(head.parameters()))
    head = head.cuda()
    there = answers(head, Padded(features.values.cuda(), features.lengths), targets.cuda())
    gradients_there = torch.autograd.grad(there[0].sum(), list(head.parameters()))
    for ours, other in zip((*here, *gradients), (*there, *gradients_there), strict=True):
        assert other.is_cuda
        torch.testing.assert_close(ours, other.cpu(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_eight_rows_are_learnt_by_heart(name: str) -> None:
    head = find(Head, name)(16, LABELS)
    features = Padded(torch.randn(8, 4, 16), torch.tensor([4, 3, 4, 1, 2, 4, 4, 3]))
    targets = torch.randint(2, (8, 4)).masked_fill(~features.mask, 0)  # O and B-x, in any order
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(80):
        optimiser.zero_grad()
        head.loss(features, targets).sum().backward()
        optimiser.step()
    assert head.best(features)[0].tolist() == targets.tolist()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, ["a"]), "input_size must be a whole number of at least 1, but is 0"),
        ((3, []), "a head needs at least one label, but the list is empty."),
        ((3, "abc"), "the labels of a head must be a list of strings, but found 'abc'."),
        ((3, ["a", 1]), "the labels of a head must be a list of strings"),
        ((3, ["a", "b", "a"]), "the label 'a' occurs twice:"),
    ],
)
def test_a_head_that_cannot_be_is_refused(name: str, arguments: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        find(Head, name)(*arguments)
    assert message in str(refusal.value)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (
            torch.zeros(2, 3, dtype=torch.long),
            "targets must be a tensor of shape (2, 4) of torch.int64, but found (2, 3)",
        ),
        (torch.zeros(2, 4), "but found (2, 4) of torch.float32."),
        ([[0, 0]], "but found [[0, 0]]."),
        (
            torch.tensor([[0, 0, 0, 0], [0, 4, 0, 0]]),
            "the target of row 1, step 1 is 4, but the head has the labels 0 to 3",
        ),
        (torch.tensor([[-1, 0, 0, 0], [0, 0, 0, 0]]), "the target of row 0, step 0 is -1"),
    ],
)
def test_targets_that_do_not_fit_are_refused(name: str, targets: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        find(Head, name)(3, LABELS).loss(Padded(torch.zeros(2, 4, 3), torch.tensor([4, 2])), targets)
    assert message in str(refusal.value)


@pytest.mark.parametrize("name", EVERY)
def test_features_that_do_not_fit_are_refused(name: str) -> None:
    head = find(Head, name)(3, LABELS)
    for features in (torch.zeros(2, 4, 5), torch.zeros(2, 4)):
        with pytest.raises(DataError, match=r"features must have shape \(rows, steps, 3\), but have"):
            head.best(Padded.full(features))
    with pytest.raises(DataError, match="row 0 has length 5, but the batch has only 4 steps"):
        head.probabilities(Padded(torch.zeros(1, 4, 3), torch.tensor([5])))


def test_options_of_a_head_are_checked_as_those_of_a_cell() -> None:
    check_options(find(Head, "crf"), "crf", {"constraints": "bio"})
    with pytest.raises(ConfigError, match="'softmax' has no option 'constraints'"):
        check_options(find(Head, "softmax"), "softmax", {"constraints": "bio"})
    with pytest.raises(ConfigError, match=r"there is no head 'cfr'\. Did you mean 'crf'\?"):
        find(Head, "cfr")


def test_the_public_names_are_these_and_each_has_an_example() -> None:
    assert dir(heads) == ["CRF", "Head", "Softmax", "UNLABELLED", "Value"]
    assert all(">>> " in (getattr(heads, name).__doc__ or "") for name in dir(heads) if name != "UNLABELLED")
    with pytest.raises(AttributeError, match=r"module 'recurra\.heads' has no attribute 'CFR'"):
        _ = heads.CFR


def test_the_best_path_is_found_without_torch() -> None:
    code = "import sys, recurra.heads.lattice; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", EVERY)
def test_where_every_step_has_a_label_the_loss_need_not_look_for_it(name: str) -> None:
    head = drawn(name)
    features, _ = batch()
    targets = torch.randint(len(LABELS), features.values.shape[:2])
    torch.testing.assert_close(head.loss_of_all(features, targets), head.loss(features, targets), rtol=1e-12, atol=0)
