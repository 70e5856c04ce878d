"""Newton's method between chunks by Triton's interpreter, against the loop. Run by make triton-test."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import recurra
from recurra import EngineError, Padded
from recurra.engines import newton_on_gpu
from recurra.engines.triton_kernels import is_interpreted
from tests.engines.comparison import assert_agree, everything
from tests.variants import batch, model, random_states

if not is_interpreted():
    pytest.skip("make triton-test runs this with Triton's interpreter", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")

CELLS: list[Any] = [
    {"name": "ind_rnn", "activation": "tanh"},
    {"name": "ind_rnn", "activation": "relu"},
    {"name": "ind_rnn", "activation": "sigmoid", "bias": False},
    "tests.engines.test_newton:Squashed",
]


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 8 steps, the fewest that a kernel takes, and 3 times before the first look."""
    monkeypatch.setattr(newton_on_gpu, "TOGETHER", 3)
    monkeypatch.setattr(newton_on_gpu, "LEAST_STEPS", 8)
    monkeypatch.setattr(newton_on_gpu, "isqrt", lambda steps: 1)


def agree(spec: Any, lengths: list[int], units: int = 5, **settings: Any) -> None:
    """Answers and gradients of all kinds are those of the loop, and the kernels computed them."""
    rnn = model(spec, 3, units, **settings).float()
    x = batch(lengths, 3)
    x = Padded(x.values.float(), x.lengths)
    start = tuple(tuple(type(s)(*(f.float() for f in s)) for s in layer) for layer in random_states(rnn, len(lengths)))
    reader = rnn._readers(0, start, rnn.fixed(len(lengths), x.values))[0]
    assert not isinstance(newton_on_gpu.kernels_for(reader, x.values), str)
    assert_agree(everything(rnn, "newton", x, start), everything(rnn, "loop", x, start), 2e-5)


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("spec", CELLS, ids=str)
def test_every_cell_agrees_with_the_loop_in_ragged_rows(spec: Any) -> None:
    agree(spec, [19, 0, 9])


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("steps", [1, 8, 9])
def test_any_number_of_steps_agrees_with_the_loop(steps: int) -> None:
    agree(CELLS[0], [steps])


@pytest.mark.usefixtures("short_chunks")
def test_more_units_than_a_program_computes_agree_with_the_loop_in_both_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(newton_on_gpu, "BLOCK", 4)
    agree(CELLS[1], [10, 9], bidirectional=True)


def test_a_single_chunk_needs_no_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton_on_gpu, "PROGRAMS", 1)
    agree(CELLS[3], [33, 20])


@pytest.mark.usefixtures("short_chunks")
def test_steps_that_forget_nothing_are_computed_in_turn_and_a_warning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """h' = 3.9 h (1 - h) is chaotic: here guesses are improved 3 times, where 12 chunks need 12."""
    monkeypatch.setattr(newton_on_gpu, "MOST_TIMES", 3)
    x = Padded.full(torch.full((1, 96, 1), 0.3))
    rnn = recurra.Recurrent("tests.engines.test_newton:Chaotic", 1, 2, engine="newton")
    with pytest.warns(RuntimeWarning, match=r"not found the states of .* over 96 steps after going over them 3 times"):
        found = rnn(x)[0].values
    rnn.engine = "loop"
    # What rounding does grows 2 times a step: after 12 steps not all digits are left.
    torch.testing.assert_close(found[:, :12], rnn(x)[0].values[:, :12], rtol=1e-3, atol=1e-3)


def test_second_derivatives_are_left_to_the_loop() -> None:
    rnn = recurra.Recurrent("ind_rnn", 2, 3, engine="newton")
    x = torch.randn(1, 4, 2, requires_grad=True)
    with pytest.raises(EngineError, match="second derivatives are not supported by the engine 'newton'"):
        torch.autograd.grad(rnn(Padded.full(x))[0].values.sum(), x, create_graph=True)


def test_float64_is_left_to_operations_of_torch() -> None:
    rnn = recurra.Recurrent("ind_rnn", 2, 3, engine="newton").double()
    x = Padded.full(torch.randn(1, 9, 2).double())
    reader = rnn._readers(0, rnn.start(1, x.values), rnn.fixed(1, x.values))[0]
    assert (
        newton_on_gpu.kernels_for(reader, x.values)
        == "kernels support float32, bfloat16 and float16, but the batch has torch.float64"
    )
    assert rnn(x)[0].values.isfinite().all()
