"""Loops of decoders by few kernels on a GPU, against the wiring's own loop in float64. Skipped without a GPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from recurra.products.triton_here import has_triton
from tests.attention.every import PLAIN, title
from tests.wirings.decoding import Decoding, assert_alike

if not (torch.cuda.is_available() and has_triton()):
    pytest.skip("there is no GPU here", allow_module_level=True)

WIRINGS = ["feeding", "inside", "conditional"]
MOST = {torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.float32: 2e-5}
SIZES = (40, 72, 72, 56)


def decoding_of(wiring: str, cell: Any, attention: Any, **options: Any) -> Decoding:
    return Decoding(wiring, cell, attention, sizes=SIZES, steps=9, device="cuda", **options)


def doubled(decoding: Decoding) -> Decoding:
    """The same in float64."""
    other = copy.copy(decoding)
    other.wiring = copy.deepcopy(decoding.wiring).double()
    other.x, other.memory = (each.detach().double().requires_grad_() for each in (decoding.x, decoding.memory))
    other.starts = tuple(
        type(state)(*(field.detach().double().requires_grad_() for field in state)) for state in decoding.starts
    )
    other.random = [each.double() for each in decoding.random]
    return other


def compare(decoding: Decoding, dtype: torch.dtype, *, is_fused: bool = True) -> None:
    assert decoding.is_fused() == is_fused
    exact = doubled(decoding).answers("loop")
    with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        loop = decoding.answers("loop")
        # Where half precision loses more digits, the loop loses them as well.
        most = MOST[dtype]
        for name, expected in exact.items():
            lossy = loop[name]
            if expected is not None and lossy is not None and expected.norm() > 0:
                most = max(most, 2 * ((lossy.double() - expected).norm() / expected.norm()).item())
        for _ in range(3):  # launched, recorded, replayed
            assert_alike(decoding.answers(), exact, most)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("attention", PLAIN, ids=title)
def test_every_score_in_float32(wiring: str, attention: dict[str, Any]) -> None:
    compare(decoding_of(wiring, "gru", attention), torch.float32)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("cell", ["lstm", "gru", "peephole_lstm", "slstm", "elman", "min_gru"])
@pytest.mark.parametrize("dtype", MOST)
def test_cells_in_each_type(wiring: str, cell: str, dtype: torch.dtype) -> None:
    compare(decoding_of(wiring, cell, "additive"), dtype)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("attention", ["additive", "bilinear"])
def test_two_layers_with_half_precision(wiring: str, attention: str) -> None:
    compare(decoding_of(wiring, "lstm", attention, layers=2), torch.bfloat16)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_the_same_batch_gives_the_same_bits(wiring: str) -> None:
    decoding = decoding_of(wiring, "gru", "additive")
    with torch.autocast("cuda", torch.bfloat16):
        decoding.answers()
        decoding.answers()
        first, second = decoding.answers(), decoding.answers()
    for name, each in first.items():
        other = second[name]
        assert (each is None) == (other is None), name
        assert each is None or other is None or torch.equal(each, other), name


@pytest.mark.parametrize("wiring", WIRINGS)
def test_a_loop_within_somebody_elses_graph(wiring: str) -> None:
    decoding = decoding_of(wiring, "lstm", "bilinear")
    expected = decoding.answers("loop")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            decoding.wiring.fused(decoding.x, *decoding.begun())
            decoding.answers()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    fresh = decoding_of(wiring, "lstm", "bilinear")  # its weights belong to no other graph of autograd
    with torch.cuda.graph(graph, stream=stream):
        found = fresh.answers()
    with torch.no_grad():
        fresh.x.mul_(0.5)
    graph.replay()
    graph.replay()
    with torch.no_grad():
        decoding.x.mul_(0.5)
    halved = decoding.answers("loop")
    assert_alike(found, halved, 1e-4)
    values = found["values"], expected["values"]
    assert not torch.allclose(*values)  # type: ignore[arg-type]  # tensors both


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("wiring", ["outside", "feeding"])
def test_graphs_of_other_steps_see_each_batch(wiring: str, dtype: torch.dtype) -> None:
    """Autocast keeps what it has cast: a graph must not read what was cast before it was recorded."""
    attention: Any = "bilinear" if wiring == "outside" else {"name": "dot", "terms": ["coverage"]}
    compare(decoding_of(wiring, "gru", attention), dtype, is_fused=False)
