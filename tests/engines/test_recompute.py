"""Reading in chunks that are computed again: the same numbers, less kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recurra import Cell, ConfigError, EngineError, Padded, Recurrent
from recurra.cells.elman import ElmanState
from tests.engines.comparison import assert_agree, everything
from tests.variants import WRAPPED, batch, model, random_states


@pytest.mark.parametrize("spec", ["lstm", "gru", "layer_norm_lstm", "min_gru", {"name": "orthogonal_elman"}])
def test_chunks_computed_again_give_the_same(spec: Any) -> None:
    rnn = model(spec, 3, 4, layers=2, bidirectional=True)  # to plan takes longer than to run
    x, start = batch([7, 0, 1, 5], extra=1), random_states(rnn, 4)
    for every in (False, True):
        rnn.recompute = 0
        expected = everything(rnn, "auto", x, start, every)
        for steps in (1, 3, 7, 100):
            rnn.recompute = steps
            found = everything(rnn, "auto", x, start, every)
            assert_agree(found, expected, engine=f"chunks of {steps} steps, every={every}")


@pytest.mark.parametrize("variant", [name for name in WRAPPED if "variational" in name or "drop" in name])
@pytest.mark.parametrize("engine", ["auto", "loop"])
def test_masks_of_a_sequence_and_what_is_computed_from_weights_get_their_gradients(variant: str, engine: str) -> None:
    rnn = model(WRAPPED[variant], 3, 4, bidirectional=True)
    x, start = batch([7, 2, 0, 5]), random_states(rnn, 4)
    expected = everything(rnn, "loop", x, start)
    rnn.recompute = 3
    assert_agree(everything(rnn, engine, x, start), expected)


class Tempered(Cell[ElmanState, dict[str, Any]]):
    """h' = tanh(W x + τ ∘ h), with a τ that is computed once per sequence and kept in a dict."""

    State = ElmanState

    def __init__(self, input_size: int, hidden_size: int, *, hide: bool = False) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.tau = nn.Parameter(torch.randn(hidden_size))
        self.unused = nn.Parameter(torch.zeros(1))
        self.hide = hide

    def fixed(self, rows: int, like: Tensor) -> dict[str, Any]:
        tau = self.tau.sigmoid()
        return {"tau": (lambda: tau) if self.hide else tau, "note": "kept", "none": None}

    def project(self, x: Tensor, fixed: dict[str, Any]) -> Tensor:
        projected: Tensor = self.W(x)
        return projected

    def parts(self, inputs: Tensor, state: ElmanState, fixed: dict[str, Any]) -> ElmanState:
        tau = fixed["tau"]() if self.hide else fixed["tau"]
        return ElmanState(h=torch.tanh(inputs + tau * state.h))


def test_a_cell_of_ones_own_gets_its_gradients_and_no_others() -> None:
    rnn = Recurrent(f"{__name__}:Tempered", 3, 4).double()
    x, start = batch([7, 2, 0, 5]), random_states(rnn, 4)
    expected = everything(rnn, "loop", x, start)
    rnn.recompute = 3
    assert_agree(everything(rnn, "loop", x, start), expected)
    rnn.zero_grad()
    rnn(x)[0].values.sum().backward()
    assert [name for name, p in rnn.named_parameters() if p.grad is None] == ["cells.0.0.unused"]


def test_a_gradient_that_cannot_be_followed_is_refused_in_words() -> None:
    rnn = Recurrent({"name": f"{__name__}:Tempered", "hide": True}, 3, 4, engine="loop", recompute=2)
    with pytest.raises(EngineError, match=r"cannot propagate gradients to the function that `fixed` of .*Tempered"):
        rnn(Padded.full(torch.randn(1, 5, 3)))


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    rnn = model("lstm", 3, 4, recompute=2)
    values = torch.randn(2, 5, 3).double()
    _, [[state]] = rnn(Padded.full(values))
    state.c.sum().backward()  # nothing reaches the outputs
    assert values.grad is None
    found = {name: p.grad for name, p in rnn.named_parameters()}
    rnn.recompute, gradients = 0, list(found.values())
    rnn.zero_grad()
    rnn(Padded.full(values))[1][0][0].c.sum().backward()
    for gradient, parameter in zip(gradients, rnn.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_autocast_is_the_same_the_second_time() -> None:
    rnn = Recurrent("peephole_lstm", 8, 16, engine="loop")
    found = []
    for recompute in (0, 3):
        rnn.recompute = recompute
        rnn.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            outputs, _ = rnn(Padded.full(torch.ones(2, 7, 8)))
            again = torch.nn.functional.linear(torch.ones(1, 16), rnn.cells[0][0].from_state)  # type: ignore[index]
        (outputs.values.sum() + again.sum()).backward()
        found.append([outputs.values.detach(), *(p.grad for p in rnn.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("variant", ["lstm zoneout", "gru candidate", "all at once"])
def test_the_same_masks_are_drawn_again(variant: str) -> None:
    rnn = model(WRAPPED[variant], 3, 4, recompute=3)
    values = torch.randn(2, 8, 3).double().requires_grad_()

    def run(values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return rnn(Padded.full(values))[0].values

    assert torch.autograd.gradcheck(run, [values])


def test_less_is_kept_for_the_way_back() -> None:
    kept: dict[int, int] = {}
    for recompute in (0, 10):
        rnn = Recurrent("peephole_lstm", 8, 16, recompute=recompute)
        x = torch.randn(2, 200, 8)
        sizes: dict[int, int] = {}

        def pack(tensor: torch.Tensor, sizes: dict[int, int] = sizes) -> torch.Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            rnn(Padded.full(x))
        kept[recompute] = sum(sizes.values())
    # The batch, the weights, and one state in ten: 20 · 2 · 16 numbers each of h and c.
    assert kept[10] < kept[0] / 5


def test_in_evaluation_nothing_is_computed_twice() -> None:
    rnn = Recurrent("gru", 3, 4, recompute=2).eval()
    with torch.no_grad():
        outputs, _ = rnn(Padded.full(torch.randn(1, 5, 3)))
    assert outputs.values.shape == (1, 5, 4)


@pytest.mark.parametrize("recompute", [-1, 1.5, "some"])
def test_a_number_of_steps_that_cannot_be_is_refused(recompute: Any) -> None:
    with pytest.raises(ConfigError, match="recompute must be a whole number of at least 1"):
        Recurrent("gru", 3, 4, recompute=recompute)
