"""Layers of cells printed as ONNX: the same states as in torch, by operators of ONNX's own where there are such."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from recurra.cells import Cell, Spec
from recurra.exporting.joining import program_of, relative_error
from recurra.exporting.recording import record
from recurra.padding import Padded
from recurra.programs.in_onnx import InOnnx
from recurra.programs.inputs import Input, Recordable
from recurra.programs.onnx_file import write_graphs
from recurra.programs.onnx_functions import graphs
from recurra.stacks.recurrent import Recurrent
from tests.variants import EVERY, flat, random_states, restless

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

NATIVE = {
    "RNN": (
        *("elman", "elman sigmoid", "elman relu", "elman identity", "elman without bias", "elman weight drop"),
        *("orthogonal identity", "orthogonal tanh", "orthogonal margin", "orthogonal without bias"),
        "unitary rotations",
    ),
    "GRU": (
        *("gru", "gru keep", "gru sigmoid", "gru after", "gru of torch", "gru of torch sigmoid", "gru without bias"),
        *("gru after without bias", "gru variational", "gru of torch variational", "gru candidate", "gru weight drop"),
    ),
    "LSTM": (
        *("lstm", "lstm sigmoid", "lstm without bias", "coupled", "coupled sigmoid"),
        *("peephole", "peephole on i", "peephole on o", "peephole on none", "peephole sigmoid"),
        *("lstm variational", "lstm candidate", "lstm weight drop"),
    ),
}
"""The cells that ONNX has an operator for; all others are a Scan."""

LEFT_OUT = {"gru d of known values", "dnc", "dnc two heads"}
"""The first reads something else than plain inputs; dnc goes on from the order of numbers that hardly differ."""

SLOW = {"ntm two heads"}
"""It is recorded for seconds; `ntm` has the same operations."""

LENGTHS = ([4, 0, 7, 1], [1], [5, 5])


def read(rnn: Recurrent, *, from_states: bool = False) -> Recordable:
    """Outputs and last states of a stack, which begins with zeros or with states that are given."""
    inputs = [Input("x", ("B", "T", rnn.input_size)), Input("lengths", ("B",), "lengths", along="T")]
    begun = rnn.start(1) if from_states else ()
    inputs += [Input(f"state{number}", ("B", leaf.shape[1])) for number, leaf in enumerate(flat(begun))]

    def call(x: Tensor, lengths: Tensor, *given: Tensor) -> Mapping[str, Tensor]:
        left = iter(given)
        states = tuple(tuple(type(state)(*(next(left) for _ in state)) for state in layer) for layer in begun)
        outputs, after = rnn(Padded(x, lengths), *([states] if from_states else []))
        return {"outputs": outputs.values, **{f"state{number}": leaf for number, leaf in enumerate(flat(after))}}

    return Recordable("read", inputs, call)


def printed(rnn: Recurrent, folder: Path, *, from_states: bool = False) -> tuple[InOnnx, list[str]]:
    """A stack in onnxruntime, and the recurrent operators in it."""
    program, weights = program_of({"read": record(rnn, read(rnn, from_states=from_states))})
    found = graphs(program, weights)
    write_graphs(folder, found)
    kinds = [node.kind for node in found["read"].nodes if node.kind in (*NATIVE, "Scan")]
    return InOnnx(program, folder), kinds


def furthest(rnn: Recurrent, running: InOnnx, *, from_states: bool = False) -> float:
    """How far onnxruntime is from torch, for rows of several lengths."""
    most, function = 0.0, read(rnn, from_states=from_states)
    for lengths in LENGTHS:
        given = [torch.randn(len(lengths), max(lengths), rnn.input_size), torch.tensor(lengths)]
        if from_states:
            given += [leaf.float() for leaf in flat(random_states(rnn, len(lengths)))]
        with torch.no_grad():
            right = [each.numpy() for each in function.call(*given).values()]
        found = running.run("read", [each.numpy() for each in given])
        assert all(not found[0][row, length:].any() for row, length in enumerate(lengths)), "0 on padding"
        most = max(most, *(relative_error(one, other) for one, other in zip(found, right, strict=True)))
    return most


def stack(spec: Spec, **options: Any) -> Recurrent:
    return restless(Recurrent(spec, 3, 4, engine="loop", **options)).float().eval()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EVERY if name not in LEFT_OUT]
)
def test_every_cell_gives_the_states_of_torch(name: str, tmp_path: Path) -> None:
    rnn = stack(EVERY[name], bidirectional=True)
    running, kinds = printed(rnn, tmp_path, from_states=True)
    own = next((operator for operator, names in NATIVE.items() if name in names), None)
    assert kinds == ([own] if own is not None else ["Scan", "Scan"])
    assert furthest(rnn, running, from_states=True) < 1e-5


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", ["lstm", "gru", "elman", "peephole", "coupled", "layer norm"])
def test_one_direction_begins_with_zeros(name: str, direction: Any, tmp_path: Path) -> None:
    rnn = stack(EVERY[name], layers=2, direction=direction)
    running, kinds = printed(rnn, tmp_path)
    assert len(kinds) == 2
    assert furthest(rnn, running) < 1e-5


def test_large_layers_are_recognised_too(tmp_path: Path) -> None:
    """Random numbers that are tried must not be lost in the rounding of long sums."""
    for spec in ("lstm", "gru", "elman"):
        (tmp_path / spec).mkdir()
        rnn = Recurrent(spec, 8, 256, engine="loop").eval()
        with torch.no_grad():
            for parameter in rnn.parameters():
                parameter.mul_(8)
        _, kinds = printed(rnn, tmp_path / spec)
        assert kinds == [{"lstm": "LSTM", "gru": "GRU", "elman": "RNN"}[spec]]


class Own(NamedTuple):
    h: Tensor
    c: Tensor


class OwnLSTM(Cell[Own, Any]):
    """An LSTM as a user may write it: gates in another order, each with a matrix and a bias of its own."""

    State = Own

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, 4 * hidden_size, bias=False)
        self.U = nn.ModuleList([nn.Linear(hidden_size, hidden_size) for _ in range(4)])

    def project(self, x: Tensor, fixed: Any) -> Tensor:
        projected: Tensor = self.W(x)
        return projected

    def parts(self, inputs: Tensor, state: Own, fixed: Any) -> Own:
        o, g, f, i = (x + U(state.h) for x, U in zip(inputs.chunk(4, dim=-1), self.U, strict=True))
        c = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.relu(g)
        return Own(torch.sigmoid(o) * torch.tanh(c), c)


class ClippedLSTM(OwnLSTM):
    """The same, whose cell is cut off: no operator of ONNX."""

    def parts(self, inputs: Tensor, state: Own, fixed: Any) -> Own:
        h, c = super().parts(inputs, state, fixed)
        return Own(h, c.clamp(-3, 3))


@pytest.mark.parametrize(("name", "kind"), [("OwnLSTM", "LSTM"), ("ClippedLSTM", "Scan")])
def test_a_cell_of_ones_own_is_recognised_by_what_it_computes(name: str, kind: str, tmp_path: Path) -> None:
    rnn = Recurrent(f"tests.exporting.test_onnx_cells:{name}", 3, 4, engine="loop").eval()
    running, kinds = printed(rnn, tmp_path)
    assert kinds == [kind]
    assert furthest(rnn, running) < 1e-5
