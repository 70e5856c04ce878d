"""Under autocast the vendor's kernels compute in the type that was asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.engines import vendor
from recurra.engines.engine import DirectedCell
from tests.variants import flat

SPECS: dict[str, Any] = {"lstm": "lstm", "gru": {"name": "gru", "reset": "after"}, "elman": "elman"}


@pytest.mark.parametrize(
    ("device", "autocast", "expected"),
    [
        ("cuda", torch.bfloat16, torch.bfloat16),  # torch itself would take float16
        ("cuda", torch.float16, None),
        ("cuda", None, None),
        ("cpu", torch.bfloat16, None),
        ("cpu", None, None),
    ],
)
def test_on_a_gpu_bfloat16_is_cast_before_torch_can_make_it_float16(
    device: str, autocast: torch.dtype | None, expected: torch.dtype | None
) -> None:
    assert vendor.kernel_type(device, autocast) == expected


def readers(spec: Any) -> tuple[Recurrent, DirectedCell]:
    rnn = Recurrent(spec, 3, 4)
    [reader] = rnn._readers(0, rnn.start(2), rnn.fixed(2))
    return rnn, reader


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("is_on", [True, False], ids=["autocast", "no autocast"])
def test_a_kernel_called_in_a_type_has_its_numbers_and_its_range(spec: str, is_on: bool) -> None:
    rnn, reader = readers(SPECS[spec])
    values = torch.randn(2, 5, 3)
    kernel = vendor.kernel(reader.cell, reader.fixed)
    with torch.autocast("cpu", torch.float16, enabled=is_on):
        outputs, last = vendor.called_in(torch.bfloat16, kernel, values, reader.state)
        huge, _ = vendor.called_in(torch.bfloat16, kernel, values * 90_000, reader.state)
        assert torch.is_autocast_enabled("cpu") == is_on
    assert {outputs.dtype, *(field.dtype for field in last)} == {torch.bfloat16}
    expected, _ = vendor.called(kernel, values, reader.state)
    torch.testing.assert_close(outputs.float(), expected, rtol=0, atol=0.03)
    assert huge.isfinite().all()
    (outputs.float().sum() * 1e-8).backward()
    for parameter in rnn.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.abs().max() > 0


@pytest.mark.parametrize("rows", [1, 16, 64])
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
def test_under_autocast_auto_takes_torchs_gru(rows: int, training: bool) -> None:
    rnn, x = Recurrent(SPECS["gru"], 64, 64), Padded.full(torch.zeros(rows, 30, 64))
    with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(training):
        assert rnn.engine_report(x).layers[0].engine.name == "vendor"


def on_gpu(engine: str, spec: Any, values: Tensor, scale: float) -> tuple[list[Tensor], list[Tensor]]:
    """Answers and gradients under bfloat16 autocast."""
    torch.manual_seed(0)
    rnn = Recurrent(spec, 3, 4, bidirectional=True, engine=engine).cuda()
    x = Padded(values.cuda(), torch.tensor([6, 3]))
    with torch.autocast("cuda", torch.bfloat16):
        outputs, states = rnn(x)
    (outputs.values.float().sum() * scale).backward()
    return [outputs.values, *flat(states)], [p.grad for p in rnn.parameters() if p.grad is not None]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("spec", SPECS)
def test_on_a_gpu_bfloat16_has_the_type_the_range_and_the_small_gradients_of_bfloat16(spec: str) -> None:
    values = torch.randn(2, 6, 3)
    answers, gradients = on_gpu("vendor", SPECS[spec], values, 1.0)
    assert {answer.dtype for answer in answers} == {torch.bfloat16}
    _, expected = on_gpu("loop", SPECS[spec], values, 1.0)
    for found, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(found, other, rtol=0.05, atol=0.1)
    tiny = on_gpu("vendor", SPECS[spec], values, 1e-8)[1]
    for found, whole in zip(tiny, gradients, strict=True):
        torch.testing.assert_close(found * 1e8, whole, rtol=0.02, atol=0.02)
        assert found.abs().max() > 0
    huge, _ = on_gpu("vendor", SPECS[spec], torch.full((2, 6, 3), 90_000.0), 1.0)
    assert all(answer.isfinite().all() for answer in huge)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("spec", SPECS)
def test_on_a_gpu_second_derivatives_are_those_of_the_loop(spec: str) -> None:
    rnn = Recurrent(SPECS[spec], 3, 4, bidirectional=True).double().cuda()
    values = torch.randn(2, 6, 3).double().cuda().requires_grad_()
    found = []
    for rnn.engine in ("vendor", "loop"):
        outputs, _ = rnn(Padded(values, torch.tensor([6, 3])))
        sources = [values, *rnn.parameters()]
        first = torch.autograd.grad(outputs.values.square().sum(), sources, create_graph=True)
        found.append([*first, *torch.autograd.grad(sum(g.square().sum() for g in first), sources)])  # type: ignore[arg-type]
    for ours, loops in zip(*found, strict=True):
        torch.testing.assert_close(ours, loops, rtol=1e-7, atol=1e-7)
