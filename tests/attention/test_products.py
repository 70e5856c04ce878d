"""Products with a memory, small and large: torch's own values, gradients and second gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.attention.products import LARGE, averaged, compared


def plainly_compared(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.transpose(-1, -2)


def plainly_averaged(weights: Tensor, values: Tensor) -> Tensor:
    return weights @ values


PRODUCTS = [
    pytest.param(compared, plainly_compared, 1024, id="compared"),
    pytest.param(averaged, plainly_averaged, 11, id="averaged"),
]
large = pytest.mark.parametrize(("product", "plain", "width"), PRODUCTS)


def drawn(queries: int, width: int, heads: tuple[int, ...] = ()) -> list[Tensor]:
    memory = torch.randn(6, *heads, 11, 1024, dtype=torch.float64, requires_grad=True)
    assert memory.numel() >= LARGE
    return [torch.randn(6, *heads, queries, width, dtype=torch.float64, requires_grad=True), memory]


@large
@pytest.mark.parametrize("queries", [0, 1, 3])
@pytest.mark.parametrize("heads", [(), (2,)])
def test_a_large_memory_has_the_same_products_and_gradients(product, plain, width, queries, heads) -> None:  # type: ignore[no-untyped-def]
    inputs = drawn(queries, width, heads)
    ours, theirs = product(*inputs), plain(*inputs)
    assert_close(ours, theirs, rtol=0, atol=1e-11)
    weight = torch.randn_like(theirs)
    assert_close(
        torch.autograd.grad(ours, inputs, weight), torch.autograd.grad(theirs, inputs, weight), rtol=0, atol=1e-11
    )


@large
@pytest.mark.parametrize("queries", [1, 2])
def test_its_gradients_can_be_derived_again(product, plain, width, queries) -> None:  # type: ignore[no-untyped-def]
    inputs = drawn(queries, width)
    weight = torch.randn_like(plain(*inputs))
    again = []
    for function in (product, plain):
        gradients = torch.autograd.grad(function(*inputs), inputs, weight, create_graph=True)
        again.append(torch.autograd.grad([g.square().sum() for g in gradients], inputs))
    assert_close(again[0], again[1], rtol=1e-10, atol=1e-10)


@large
def test_only_what_is_asked_for_is_derived(product, plain, width) -> None:  # type: ignore[no-untyped-def]
    left, memory = drawn(1, width)
    product(left.detach(), memory).sum().backward()
    assert left.grad is None
    assert_close(memory.grad, torch.autograd.grad(plain(left, memory).sum(), memory)[0])


@large
def test_in_half_precision_the_product_is_torchs_own(product, plain, width) -> None:  # type: ignore[no-untyped-def]
    left, memory = (each.detach().float().requires_grad_() for each in drawn(1, width))
    with torch.autocast("cpu", torch.bfloat16):
        found = product(left, memory)
        assert found.dtype == torch.bfloat16
        assert_close(found, plain(left, memory))
    found.sum().backward()
    assert memory.grad is not None
    assert memory.grad.isfinite().all()
