"""Costs in pieces: the values and every gradient of the definition, in any number of pieces."""

from __future__ import annotations

import os
from typing import TypeAlias

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recurra.heads import UNLABELLED
from recurra.outputs.softmax import Softmax
from recurra.products import cross_entropy, cross_entropy_kernel
from recurra.products.cross_entropy import Options, cost, cost_in_pieces
from recurra.products.triton_here import has_triton

OPTIONS = [
    Options(),
    Options(ignored=UNLABELLED),
    Options(smoothing=0.1),
    Options(smoothing=0.3, ignored=UNLABELLED),
    Options(r_drop=2.0),
    Options(smoothing=0.1, r_drop=3.0, ignored=UNLABELLED),
]
SHAPES = [(2, 1, 1), (6, 5, 7), (14, 3, 24), (22, 8, 13)]


Given: TypeAlias = tuple[Tensor, Tensor, Tensor]


def drawn(rows: int, size: int, tokens: int, options: Options) -> tuple[Given, Tensor]:
    """Features, weight and bias in float64, and targets; two passes have the same ones."""
    torch.manual_seed(rows)
    h, W, b = (torch.randn(*shape, dtype=torch.float64) for shape in ((rows, size), (tokens, size), (tokens,)))
    targets = torch.randint(tokens, (rows,))
    if options.ignored is not None:
        targets[torch.rand(rows) < 0.4] = options.ignored
    if options.r_drop:
        targets[rows // 2 :] = targets[: rows // 2]
    return (h.requires_grad_(), W.requires_grad_(), b.requires_grad_()), targets


def plain(given: Given, targets: Tensor, options: Options) -> Tensor:
    return cost(functional.linear(*given).log_softmax(1), targets, options)


@pytest.mark.parametrize("padding", [1, 8])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", OPTIONS)
def test_pieces_have_the_cost_and_every_gradient_of_the_whole(
    shape: tuple[int, int, int], options: Options, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "padded_size", lambda size, _: -(-size // padding) * padding)
    given, targets = drawn(*shape, options)
    expected = plain(given, targets, options)
    wanted = torch.autograd.grad(3 * expected, given)
    for scores in (1, 2 * shape[2], 5 * shape[2], 10**6):
        found = cost_in_pieces(*given, targets, options, scores=scores)
        assert_close(found, expected, rtol=1e-11, atol=1e-11)
        for name, one, other in zip(("h", "W", "b"), torch.autograd.grad(3 * found, given), wanted, strict=True):
            assert_close(one, other, rtol=1e-10, atol=1e-11, msg=f"the gradient of {name} differs")


@pytest.mark.parametrize("options", [Options(), OPTIONS[-1]])
def test_second_derivatives_are_those_of_the_definition(options: Options) -> None:
    given, targets = drawn(6, 3, 5, options)

    def curvature(total: Tensor) -> tuple[Tensor, ...]:
        slopes = torch.autograd.grad(total, given, create_graph=True)
        return torch.autograd.grad(torch.stack([slope.square().sum() for slope in slopes]).sum(), given)

    found = curvature(cost_in_pieces(*given, targets, options, scores=10))
    for one, other in zip(found, curvature(plain(given, targets, options)), strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_the_definition_is_torchs_cross_entropy() -> None:
    given, targets = drawn(9, 4, 6, Options(ignored=UNLABELLED))
    expected = functional.cross_entropy(
        functional.linear(*given), targets, ignore_index=UNLABELLED, label_smoothing=0.2, reduction="sum"
    )
    assert_close(cost_in_pieces(*given, targets, Options(0.2, ignored=UNLABELLED), scores=12), expected)


def test_what_is_ignored_may_be_no_number() -> None:
    (h, W, b), targets = drawn(4, 3, 5, Options())
    targets[1] = UNLABELLED
    spoilt = h.detach().clone()
    spoilt[1] = torch.nan
    spoilt.requires_grad_()
    total = cost_in_pieces(spoilt, W, b, targets, Options(ignored=UNLABELLED))
    total.backward()
    assert total.isfinite()
    assert spoilt.grad is not None
    assert spoilt.grad.isfinite().all()


def test_only_wanted_gradients_are_given_and_none_without_any() -> None:
    (h, W, b), targets = drawn(6, 3, 5, Options())
    cost_in_pieces(h, W.detach(), b.detach(), targets, Options()).backward()
    assert h.grad is not None
    assert not cost_in_pieces(h.detach(), W.detach(), b.detach(), targets, Options()).requires_grad


def test_a_tied_matrix_has_the_gradients_of_both_its_uses() -> None:
    torch.manual_seed(0)
    slopes = []
    embedding = torch.nn.Embedding(7, 4).double()
    output = Softmax(4, 7, embedding.weight).double()
    tokens, targets = torch.tensor([1, 5, 3, 3]), torch.tensor([5, 3, 3, 0])
    for in_pieces in (False, True):
        output.zero_grad()
        h = embedding(tokens).tanh()
        if in_pieces:
            cost_in_pieces(h, output.readout.weight, output.readout.bias, targets, Options(), scores=9).backward()
        else:
            output.loss(h, targets).sum().backward()
        slopes.append([each.grad.clone() for each in (embedding.weight, output.readout.bias) if each.grad is not None])
    for one, other in zip(*slopes, strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")  # of NumPy, in Triton's interpreter
def test_under_autocast_the_cost_is_close_to_that_of_all_scores() -> None:
    torch.manual_seed(1)
    h, W, b = (torch.randn(*shape, requires_grad=True) for shape in ((20, 16), (11, 16), (11,)))
    targets = torch.randint(11, (20,))
    with torch.autocast("cpu", torch.bfloat16):
        expected = functional.linear(h, W, b).float().log_softmax(1).gather(1, targets.unsqueeze(1)).neg().sum()
        found = cost_in_pieces(h, W, b, targets, Options(), scores=55)
    assert found.dtype == torch.float32
    assert_close(found, expected, rtol=1e-3, atol=1e-3)
    slopes = torch.autograd.grad(found, [h, W, b])
    for one, other in zip(slopes, torch.autograd.grad(expected, [h, W, b]), strict=True):
        assert one.dtype == torch.float32
        assert_close(one, other, rtol=3e-2, atol=3e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("options", OPTIONS)
def test_on_a_gpu_costs_are_those_of_the_cpu(options: Options) -> None:
    given, targets = drawn(22, 8, 13, options)
    wanted = torch.autograd.grad(expected := plain(given, targets, options), given)
    h, W, b = (each.detach().cuda().requires_grad_() for each in given)
    found = cost_in_pieces(h, W, b, targets.cuda(), options, scores=64)
    assert_close(found.cpu(), expected, rtol=1e-10, atol=1e-10)
    for one, other in zip(torch.autograd.grad(found, [h, W, b]), wanted, strict=True):
        assert_close(one.cpu(), other, rtol=1e-9, atol=1e-10)


WHERE = "cuda" if torch.cuda.is_available() else "cpu"
CAN = has_triton() and (WHERE == "cuda" or os.environ.get("TRITON_INTERPRET") == "1")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the interpreter
@pytest.mark.skipif(not CAN, reason="there is neither a GPU with triton nor TRITON_INTERPRET=1 here")
@pytest.mark.parametrize("block", [8, 4096])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", OPTIONS)
def test_the_kernel_finds_the_costs_and_gradients_of_the_definition(
    shape: tuple[int, int, int], options: Options, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy_kernel, "LARGEST_BLOCK", block)
    (h, W, b), targets = drawn(*shape, options)
    scores = functional.linear(h, W, b).detach().requires_grad_()
    expected = cost(scores.log_softmax(1), targets, options)
    [wanted] = torch.autograd.grad(expected, scores)
    padded = functional.pad(scores.detach().float(), (0, 3), value=-torch.inf).to(WHERE)
    passes = list(padded.chunk(2)) if options.r_drop else [padded]
    of_passes = list(targets.to(WHERE).chunk(2)) if options.r_drop else [targets.to(WHERE)]
    costs = cross_entropy_kernel.overwrite(passes, of_passes, size=shape[2], **options._asdict())
    assert_close(costs.sum().cpu().double(), expected.detach(), rtol=1e-5, atol=1e-5)
    assert_close(padded[:, : shape[2]].cpu().double(), wanted, rtol=1e-5, atol=1e-5)
    assert (padded[:, shape[2] :] == 0).all()
