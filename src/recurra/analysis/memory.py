"""Where a cell with an external memory wrote and read while it read an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.analysis.gates import Gates
from recurra.errors import ConfigError
from recurra.views.heat_map import HeatMap
from recurra.views.several import Several
from recurra.views.view import View
from recurra.views.viewer import REMEMBERED

LEAST = 0.05
"""Rows of the memory whose weight never reaches this share of a head are not shown."""

MOST = 40
"""So many rows are shown at most, those with the largest weights."""


def memory_view(gates: Gates, title: str = REMEMBERED) -> View:
    """Heat maps of the weights of every head: rows of the memory × steps."""
    cell: Any = gates.cell
    heads = weights_of(gates.values, getattr(cell, "rows", 0), getattr(cell, "reads", 0))
    if not heads:
        raise ConfigError(f"'{cell.name}' has no external memory: train with model.cell = 'ntm' or 'dnc' to see one.")
    together = np.max(list(heads.values()), axis=0).max(1)  # the largest weight of each row
    largest = sorted(np.argsort(-together, kind="stable")[:MOST].tolist())
    shown = [row for row in largest if together[row] >= LEAST] or largest[:1]
    maps = [_map(name, weights[shown], shown, gates.tokens) for name, weights in heads.items()]
    return Several(
        maps,
        title=title,
        caption=gates.title,
        about=f"Rows of the memory down, steps across; {len(shown)} of {cell.rows} rows reached a weight of {LEAST:g}.",
    )


def weights_of(values: Mapping[str, NDArray[np.float64]], rows: int, reads: int) -> dict[str, NDArray[np.float64]]:
    """The weights of each head, (rows, T), by its name; {} where there is no memory.

    >>> found = weights_of({"weights": np.arange(8.0).reshape(4, 2)}, rows=2, reads=1)
    >>> {name: weights.tolist() for name, weights in found.items()}
    {'writes': [[4.0, 5.0], [6.0, 7.0]], 'reads': [[0.0, 1.0], [2.0, 3.0]]}
    """
    if "weights" in values:
        heads = np.split(values["weights"], len(values["weights"]) // rows)
        read, written = heads[:reads], heads[reads:]
    elif "read_weights" in values:
        read = np.split(values["read_weights"], reads)
        written = [values["write_weights"]]
    else:
        return {}
    return {**_named("writes", written), **_named("reads", read)}


def _named(does: str, heads: Sequence[NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {does if len(heads) == 1 else f"head {n} {does}": weights for n, weights in enumerate(heads, 1)}


def _map(name: str, weights: NDArray[np.float64], rows: Sequence[int], steps: Sequence[str]) -> HeatMap:
    does = "was written at" if "writes" in name else "was read at"
    return HeatMap(
        [str(row + 1) for row in rows],
        list(steps),
        weights.clip(0, None),
        across="steps",
        down="rows of the memory",
        of_row=does,
        of_column="writes" if "writes" in name else "reads",
        title=name,
        caption=name,
    )
