"""Cells: what one step of a recurrent network computes. The file name is the config name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from recurra.cells.cell import AnyCell, AnyState, Cell
from recurra.cells.coupled_lstm import CoupledLSTM
from recurra.cells.dnc import DNC
from recurra.cells.elman import Elman
from recurra.cells.gru import GRU
from recurra.cells.gru_d import GRUD
from recurra.cells.ind_rnn import IndRNN
from recurra.cells.layer_norm_lstm import LayerNormLSTM
from recurra.cells.lstm import LSTM
from recurra.cells.min_gru import MinGRU
from recurra.cells.min_lstm import MinLSTM
from recurra.cells.ntm import NTM
from recurra.cells.orthogonal_elman import OrthogonalElman
from recurra.cells.peephole_lstm import PeepholeLSTM
from recurra.cells.slstm import SLSTM
from recurra.cells.weights import Drop, Product
from recurra.cells.wrappers.recurrent_dropout import RecurrentDropout
from recurra.cells.wrappers.weight_drop import WeightDrop
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.cells.wrappers.zoneout import Zoneout
from recurra.errors import ConfigError
from recurra.named import catalogue, check_options, find, made

__all__ = [
    "DNC",
    "GRU",
    "GRUD",
    "LSTM",
    "NTM",
    "SLSTM",
    "AnyCell",
    "AnyState",
    "Cell",
    "CoupledLSTM",
    "Drop",
    "Elman",
    "IndRNN",
    "LayerNormLSTM",
    "MinGRU",
    "MinLSTM",
    "OrthogonalElman",
    "PeepholeLSTM",
    "Product",
    "RecurrentDropout",
    "Spec",
    "WeightDrop",
    "Wrapper",
    "Zoneout",
    "above",
    "build",
    "reads_gaps",
    "with_gaps",
]

Spec: TypeAlias = str | Mapping[str, Any]
"""A cell as a config file writes it: a name, or a table of a name, options and wrappers."""


def build(spec: Spec, input_size: int, hidden_size: int) -> AnyCell:
    """The cell that a config file means.

    >>> build("lstm", 3, 4).name
    'lstm'
    >>> build({"name": "gru", "reset": "after", "wrap": [{"name": "zoneout", "rate": 0.1}]}, 3, 4).name
    'zoneout'
    """
    name, options = _name_and_options(spec, "cell")
    wraps = options.pop("wrap", [])
    if isinstance(wraps, str | Mapping):
        wraps = [wraps]
    if not isinstance(wraps, Sequence):
        raise ConfigError(
            f"wrap must be a list of wrappers such as [{{name = 'zoneout', rate = 0.1}}], but is {wraps!r}."
        )
    if name in catalogue(Wrapper):
        raise ConfigError(f"'{name}' is a wrapper, not a cell: {{name = 'lstm', wrap = [{{name = '{name}', …}}]}}.")
    kind = find(Cell, name)
    check_options(kind, name, options)
    cell: AnyCell = made(kind, name, input_size, hidden_size, **options)
    if not hasattr(cell, "State"):
        raise ConfigError(
            f"'{name}' has no State: a cell needs a NamedTuple of the values it carries from step to step."
        )
    for wrap in wraps:
        name, options = _name_and_options(wrap, "wrapper")
        wrapper = find(Wrapper, name)
        check_options(wrapper, name, options)
        cell = made(wrapper, name, cell, **options)
    return cell


def reads_gaps(spec: Spec) -> bool:
    """Whether a cell reads values, their masks and the elapsed time: [x; m; δ; u].

    >>> reads_gaps("gru_d"), reads_gaps({"name": "gru"})
    (True, False)
    """
    return find(Cell, _name_and_options(spec, "cell")[0]).reads_gaps


def with_gaps(spec: Spec, variables: int) -> dict[str, Any]:
    """The same cell for so many values at a step that may be missing.

    >>> with_gaps("gru_d", 2)
    {'name': 'gru_d', 'variables': 2}
    """
    name, options = _name_and_options(spec, "cell")
    if options.get("variables", variables) != variables:
        raise ConfigError(
            f"'{name}' has variables = {options['variables']}, but a step has {variables} values that may be missing. "
            "Leave variables out."
        )
    return {"name": name, **options, "variables": variables}


def above(spec: Spec) -> Spec:
    """The cell of the layers above the first: their inputs are never missing.

    >>> above({"name": "gru_d", "variables": 2, "bias": False}), above("lstm")
    ({'name': 'gru_d', 'bias': False}, 'lstm')
    """
    name, options = _name_and_options(spec, "cell")
    if "variables" not in options or not reads_gaps(spec):
        return spec
    return {"name": name, **{key: value for key, value in options.items() if key != "variables"}}


def _name_and_options(spec: Spec, what: str) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, Mapping) and "name" in spec:
        return spec["name"], {key: value for key, value in spec.items() if key != "name"}
    raise ConfigError(f"a {what} is a name or a table with a name, such as {{name = '…'}}, but found {spec!r}.")
