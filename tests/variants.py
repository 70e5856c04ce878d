"""Every cell with every option and every wrapper, and models and batches made of them for the tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.cells import AnyState, Spec
from recurra.cells.cell import fields
from recurra.stacks.recurrent import States

CELLS: dict[str, dict[str, Any]] = {
    "elman": {"name": "elman"},
    "elman sigmoid": {"name": "elman", "activation": "sigmoid"},
    "elman relu": {"name": "elman", "activation": "relu"},
    "elman identity": {"name": "elman", "activation": "identity"},
    "elman without bias": {"name": "elman", "bias": False},
    "lstm": {"name": "lstm"},
    "lstm sigmoid": {"name": "lstm", "candidate": "sigmoid"},
    "lstm without bias": {"name": "lstm", "bias": False},
    "peephole": {"name": "peephole_lstm"},
    "peephole previous": {"name": "peephole_lstm", "output_sees": "previous"},
    "peephole full": {"name": "peephole_lstm", "peephole": "full"},
    "peephole of the lecture": {"name": "peephole_lstm", "peephole": "full", "output_sees": "previous"},
    "peephole on i": {"name": "peephole_lstm", "gates": ["i"]},
    "peephole on f": {"name": "peephole_lstm", "gates": ["f"], "peephole": "full"},
    "peephole on o": {"name": "peephole_lstm", "gates": ["o"]},
    "peephole on none": {"name": "peephole_lstm", "gates": []},
    "peephole sigmoid": {"name": "peephole_lstm", "candidate": "sigmoid", "bias": False},
    "coupled": {"name": "coupled_lstm"},
    "coupled sigmoid": {"name": "coupled_lstm", "candidate": "sigmoid", "bias": False},
    "gru": {"name": "gru"},
    "gru keep": {"name": "gru", "update": "keep"},
    "gru sigmoid": {"name": "gru", "candidate": "sigmoid"},
    "gru after": {"name": "gru", "reset": "after"},
    "gru of torch": {"name": "gru", "reset": "after", "update": "keep"},
    "gru of torch sigmoid": {"name": "gru", "reset": "after", "update": "keep", "candidate": "sigmoid"},
    "gru without bias": {"name": "gru", "bias": False},
    "gru after without bias": {"name": "gru", "reset": "after", "bias": False},
    "gru d": {"name": "gru_d", "variables": 1},
    "gru d without bias": {"name": "gru_d", "variables": 1, "bias": False},
    "gru d of known values": {"name": "gru_d"},
    "layer norm": {"name": "layer_norm_lstm"},
    "layer norm per gate": {"name": "layer_norm_lstm", "per_gate": True},
    "layer norm sigmoid": {"name": "layer_norm_lstm", "candidate": "sigmoid", "bias": False},
    "min gru": {"name": "min_gru"},
    "min gru positive": {"name": "min_gru", "candidate": "positive", "bias": False},
    "min lstm": {"name": "min_lstm"},
    "min lstm positive": {"name": "min_lstm", "candidate": "positive", "bias": False},
    "ind rnn": {"name": "ind_rnn"},
    "ind rnn identity": {"name": "ind_rnn", "activation": "identity"},
    "ind rnn tanh": {"name": "ind_rnn", "activation": "tanh", "horizon": 2, "bias": False},
    "slstm": {"name": "slstm"},
    "slstm exponential": {"name": "slstm", "forget": "exponential", "bias": False},
    "slstm two heads": {"name": "slstm", "heads": 2},
    "orthogonal": {"name": "orthogonal_elman"},
    "orthogonal identity": {"name": "orthogonal_elman", "activation": "identity"},
    "orthogonal tanh": {"name": "orthogonal_elman", "activation": "tanh", "state_init": "rotations"},
    "orthogonal margin": {"name": "orthogonal_elman", "activation": "tanh", "margin": 0.3},
    "orthogonal without bias": {"name": "orthogonal_elman", "bias": False, "state_init": "identity"},
    "unitary": {"name": "orthogonal_elman", "unitary": True, "margin": 0.2},
    "unitary rotations": {"name": "orthogonal_elman", "unitary": True, "state_init": "rotations", "bias": False},
    "ntm": {"name": "ntm", "rows": 5, "width": 3},
    "ntm two heads": {
        "name": "ntm",
        "rows": 6,
        "width": 2,
        "reads": 2,
        "writes": 2,
        "shifts": 2,
        "controller": "elman",
    },
    "dnc": {"name": "dnc", "rows": 5, "width": 3},
    "dnc two heads": {"name": "dnc", "rows": 4, "width": 2, "reads": 2, "controller": "gru"},
}

ZONEOUT = {"name": "zoneout", "rate": 0.3}
ZONEOUT_EACH = {"name": "zoneout", "rate": {"h": 0.05, "c": 0.5}}
VARIATIONAL = {"name": "recurrent_dropout", "rate": 0.4, "input_rate": 0.2}
CANDIDATE = {"name": "recurrent_dropout", "rate": 0.4, "mode": "candidate"}
WEIGHT_DROP = {"name": "weight_drop", "rate": 0.5}
# u / (1 − rate) stays within 1, so that a linear unit does not grow.
LITTLE_VARIATIONAL = {"name": "recurrent_dropout", "rate": 0.1}
LITTLE_WEIGHT_DROP = {"name": "weight_drop", "rate": 0.1}

WRAPPED: dict[str, dict[str, Any]] = {
    "lstm zoneout": {"name": "lstm", "wrap": [ZONEOUT]},
    "lstm zoneout each": {"name": "lstm", "wrap": [ZONEOUT_EACH]},
    "slstm zoneout": {"name": "slstm", "wrap": [{"name": "zoneout", "rate": {"h": 0.3}}]},
    "lstm variational": {"name": "lstm", "wrap": [VARIATIONAL]},
    "gru variational": {"name": "gru", "wrap": [VARIATIONAL]},
    "gru of torch variational": {"name": "gru", "reset": "after", "update": "keep", "wrap": [VARIATIONAL]},
    "ind rnn variational": {"name": "ind_rnn", "wrap": [VARIATIONAL]},
    "ind rnn identity variational": {"name": "ind_rnn", "activation": "identity", "wrap": [LITTLE_VARIATIONAL]},
    "ind rnn identity weight drop": {"name": "ind_rnn", "activation": "identity", "wrap": [LITTLE_WEIGHT_DROP]},
    "lstm candidate": {"name": "lstm", "wrap": [CANDIDATE]},
    "gru d all at once": {
        "name": "gru_d",
        "variables": 1,
        "wrap": [WEIGHT_DROP, VARIATIONAL, CANDIDATE, {"name": "zoneout", "rate": {"h": 0.3}}],
    },
    "gru candidate": {"name": "gru", "wrap": [CANDIDATE]},
    "min gru candidate": {"name": "min_gru", "wrap": [CANDIDATE]},
    "min gru zoneout": {"name": "min_gru", "wrap": [ZONEOUT]},
    "min lstm all at once": {"name": "min_lstm", "wrap": [CANDIDATE, ZONEOUT, CANDIDATE]},
    "lstm weight drop": {"name": "lstm", "wrap": [WEIGHT_DROP]},
    "gru weight drop": {"name": "gru", "reset": "after", "wrap": [WEIGHT_DROP]},
    "elman weight drop": {"name": "elman", "activation": "relu", "wrap": [WEIGHT_DROP]},
    "all at once": {"name": "peephole_lstm", "wrap": [WEIGHT_DROP, VARIATIONAL, CANDIDATE, ZONEOUT]},
}

EVERY: dict[str, dict[str, Any]] = {**CELLS, **WRAPPED}


def restless(rnn: Recurrent) -> Recurrent:
    """Every parameter moved from where it starts, in float64: zeros and ones would hide a missing term."""
    rnn = rnn.double()
    with torch.no_grad():
        for name, parameter in rnn.named_parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
            if parameter.dim() == 1 and name.endswith("from_state"):
                parameter.clamp_(-0.9, 0.9)  # the u of an IndRNN, inside its bound
    return rnn


def model(spec: Spec, input_size: int = 3, hidden_size: int | list[int] = 4, **options: Any) -> Recurrent:
    """A small stack in float64 whose parameters all matter."""
    return restless(Recurrent(spec, input_size, hidden_size, **options))


def batch(lengths: list[int], input_size: int = 3, extra: int = 0) -> Padded:
    """Random rows of those lengths in float64, noise for padding."""
    return Padded(torch.randn(len(lengths), max(lengths) + extra, input_size).double(), torch.tensor(lengths))


def random_states(rnn: Recurrent, rows: int) -> States:
    """States that are not zero, to start from."""

    def fill(state: AnyState) -> AnyState:
        values = {name: torch.randn_like(getattr(state, name)).mul(0.5) for name in fields(state)}
        if "n" in values:
            values["n"] = values["n"].abs() + 0.5  # the sLSTM divides by it
        if "memory" in values:  # weights of heads are shares, and so is what they are made of
            shares = ("weights", "read_weights", "write_weights", "usage", "precedence", "link")
            values |= {name: values[name].sigmoid() / 4 for name in shares if name in values}
        return type(state)(*values.values())

    return tuple(tuple(fill(state) for state in layer) for layer in rnn.start(rows))


def flat(states: States) -> list[Tensor]:
    """Every field of every state."""
    return [field for layer in states for state in layer for field in state]


def rows_of(states: States, rows: list[int]) -> States:
    """The states of some rows alone."""

    def pick(state: AnyState) -> AnyState:
        return type(state)(*(field[rows] for field in state))

    return tuple(tuple(pick(state) for state in layer) for layer in states)
