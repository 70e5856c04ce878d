"""A plan is that of the cell as it now is: attributes that change after the first forward count."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from recurra import Cell, Padded, Recurrent
from recurra.cells import GRU, Zoneout
from recurra.cells.elman import ElmanState
from recurra.engines.planning import MOST_CHANGES, Plans
from recurra.engines.snapshot import Snapshot
from tests.engines.comparison import assert_agree, everything
from tests.variants import batch, model, random_states


class Tempered(Cell[ElmanState, tuple[()]]):
    """h' = Σ_s s tanh((U h + W x + b) / τ), with constants kept in every way that Python has."""

    State = ElmanState
    scale = 1.0

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.U = nn.Linear(hidden_size, hidden_size)
        self.temperature = 1.0
        self.table = {"shift": 0.25}
        self.shares = [0.5, 0.25]
        self.options = SimpleNamespace(gain=0.75)
        self.constant = torch.tensor(0.5, dtype=torch.float64)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: tuple[()]) -> ElmanState:
        a = (inputs + self.U(state.h) + self.table["shift"]) / self.temperature
        h = torch.tanh(a * self.options.gain * self.scale + self.constant)
        return ElmanState(h=sum(share * h for share in self.shares))  # type: ignore[arg-type]


def cooler(cell: Any) -> None:
    cell.temperature = 0.5


def shifted(cell: Any) -> None:
    cell.table["shift"] = -0.5


def shared_out(cell: Any) -> None:
    cell.shares.append(0.125)


def reoptioned(cell: Any) -> None:
    cell.options.gain = 0.1


def rescaled(cell: Any) -> None:
    cell.constant.mul_(3)


def replaced(cell: Any) -> None:
    cell.constant = torch.tensor(2.0, dtype=torch.float64)


def hooked(cell: Any) -> None:
    cell.U.register_forward_hook(lambda module, args, output: 2 * output)


def unbiased(cell: Any) -> None:
    cell.U.bias = None


def turned(cell: Any) -> None:
    cell.tanh_of = None  # an attribute that was not there


CHANGES = [cooler, shifted, shared_out, reoptioned, rescaled, replaced, hooked, unbiased, turned]


@pytest.mark.parametrize("change", CHANGES)
def test_a_constant_that_changes_after_the_first_forward_is_seen(change: Callable[[Any], None]) -> None:
    rnn = model(f"{__name__}:Tempered", 3, 4)
    x, start = batch([5, 3, 0]), random_states(rnn, 3)
    before = everything(rnn, "planned", x, start)
    change(rnn.cells[0][0])  # type: ignore[index]
    found = everything(rnn, "planned", x, start)
    assert_agree(found, everything(rnn, "loop", x, start))
    assert torch.equal(found["answer 0"], before["answer 0"]) == (change is turned)


def test_a_constant_of_the_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rnn = model(f"{__name__}:Tempered", 3, 4)
    x, start = batch([5, 3]), random_states(rnn, 2)
    everything(rnn, "planned", x, start)
    monkeypatch.setattr(Tempered, "scale", 0.3)
    assert_agree(everything(rnn, "planned", x, start), everything(rnn, "loop", x, start))


def test_options_of_our_own_cells_are_seen() -> None:
    rnn = model("gru", 3, 4)
    x, start = batch([5, 3]), random_states(rnn, 2)
    everything(rnn, "planned", x, start)
    [[gru]] = rnn._layers()
    assert isinstance(gru, GRU)
    for update, phi in (("keep", torch.tanh), ("keep", torch.sigmoid), ("take", torch.tanh)):
        gru.update, gru.phi = update, phi
        assert_agree(everything(rnn, "planned", x, start), everything(rnn, "loop", x, start))


def test_a_rate_of_zoneout_is_seen() -> None:
    rnn = model({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.3}]}, 3, 4).eval()
    x, start = batch([5, 3]), random_states(rnn, 2)
    everything(rnn, "planned", x, start)
    [[zoneout]] = rnn._layers()
    assert isinstance(zoneout, Zoneout)
    zoneout.rates["h"] = 0.9
    assert_agree(everything(rnn, "planned", x, start), everything(rnn, "loop", x, start))


def plan_of(known: Plans, rnn: Recurrent) -> object:
    [reader] = rnn._readers(0, rnn.start(1), rnn.fixed(1))
    return known.plan(reader, torch.zeros(1, 1, 3, dtype=torch.float64))


def test_values_that_come_back_have_their_plan_already() -> None:
    known, rnn = Plans(), model(f"{__name__}:Tempered", 3, 4)
    cell: Any = rnn.cells[0][0]  # type: ignore[index]
    plans: dict[str, object] = {}
    for temperature in ("1.0", "0.5", "1.0", "0.5"):
        cell.temperature = float(temperature)  # each time another object
        plan = plan_of(known, rnn.train())
        assert plans.setdefault(temperature, plan) is plan
        assert plan_of(known, rnn.eval()) is not plan
        assert plan_of(known, rnn.train()) is plan
    assert plans["1.0"] is not plans["0.5"]


def test_a_number_that_changes_at_every_call_is_left_to_the_loop() -> None:
    rnn = model(f"{__name__}:Tempered", 3, 4, engine="planned")
    x = Padded.full(torch.randn(2, 30, 3, dtype=torch.float64))
    cell: Any = rnn.cells[0][0]  # type: ignore[index]
    for number in range(MOST_CHANGES + 1):
        cell.temperature = 1.0 + number
        [layer] = rnn.engine_report(x).layers
        reason = dict(layer.refusals)["planned"]
        if number < MOST_CHANGES:
            assert reason is None
    assert reason is not None
    assert f"its Python attributes have had more than {MOST_CHANGES} different values" in reason
    rnn.engine = "auto"
    found = rnn(x)[0].values
    rnn.engine = "loop"
    assert torch.equal(found, rnn(x)[0].values)


def test_weights_may_change_in_place_and_be_given_from_outside() -> None:
    rnn = model("gru", 3, 4)
    [[gru]] = rnn._layers()
    before = Snapshot(gru)
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.mul_(2)
    assert before.holds()
    gru.register_parameter("from_state", nn.Parameter(torch.zeros(12, 4, dtype=torch.float64)))
    assert before.holds()
    gru.float()
    assert not before.holds()
