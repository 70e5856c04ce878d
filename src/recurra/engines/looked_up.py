"""Reads rows whose inputs are looked up in a table, without a way back: words and characters to be tagged.

    y = table[index],  W y + b  =  (W table + b)[index]

so W is multiplied once for each row of the table, however often it is read. `project` makes the table, and `read`
reads by it as often as one likes.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells import GRU, LSTM, AnyCell, AnyState
from recurra.cells.cell import fields
from recurra.cells.weights import is_bare
from recurra.engines.c_library import NoCompiler, can_read, library
from recurra.engines.c_looked_up import TILE, room_size, text
from recurra.engines.c_run import team
from recurra.engines.engine import is_transformed


class Direction(ctypes.Structure):
    """`direction` of c_looked_up.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("table", "U", "after", "outputs", "h", "c", "panels")),
        *((name, ctypes.c_int64) for name in ("apart", "row_apart", "is_backward", "takes")),
    )


class Directions(ctypes.Structure):
    """`layer` of c_looked_up.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("directions", "index", "lengths", "order", "room")),
        *((name, ctypes.c_int64) for name in ("count", "rows", "steps", "size", "gates", "width", "room_each")),
        *((name, ctypes.c_void_p) for name in ("number", "members")),
    )


class Looked(NamedTuple):
    """What a layer found."""

    outputs: Tensor | None  # (B, T, directions · H), zero on padding
    states: tuple[AnyState, ...]  # after the last step of each direction


@functools.cache
def compiled(is_double: bool) -> ctypes.CDLL | None:
    try:
        found = library(text(is_double))
    except NoCompiler:
        return None
    found.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    found.run.restype = None
    found.panel_width.restype = ctypes.c_long
    return found


def gates_of(cell: AnyCell) -> int | None:
    """How many gates a cell has whose equations are known here; None where they are not."""
    if type(cell) is LSTM and cell.candidate == "tanh":
        return 4
    if type(cell) is GRU and cell.candidate == "tanh" and cell.reset == "after":
        return 3
    return None


def can_look_up(cells: Sequence[AnyCell]) -> bool:
    """Whether these cells, the directions of one layer, can read by a table here and now."""
    if torch.is_grad_enabled() or is_transformed() or torch.is_autocast_enabled("cpu"):
        return False
    if any(gates_of(cell) is None for cell in cells):
        return False
    for cell in known(cells):
        W, b, U = cell.from_input.weight, cell.from_input.bias, cell.from_state
        given = [U, W] if b is None else [U, W, b]
        is_plain = is_bare(cell.from_input) and isinstance(U, Tensor) and can_read(U.dtype, *given)
        if not is_plain or U.dtype not in (torch.float32, torch.float64) or compiled(U.dtype == torch.float64) is None:
            return False
    return True


def known(cells: Sequence[AnyCell]) -> list[LSTM | GRU]:
    """Cells of which `gates_of` knows the gates."""
    return [cell for cell in cells if isinstance(cell, LSTM | GRU)]


def project(cells: Sequence[AnyCell], table: Tensor) -> tuple[Tensor, ...]:
    """(N, width) for each direction: W x + b of each row (N, I) of a table, filled up to whole panels."""
    found = []
    for cell in known(cells):
        W, b = cell.from_input.weight, cell.from_input.bias
        code = compiled(W.dtype == torch.float64)
        assert code is not None
        missing = -len(W) % code.panel_width()
        bias = None if b is None else functional.pad(b, (0, missing))
        found.append(functional.linear(table, functional.pad(W, (0, 0, 0, missing)), bias).contiguous())
    return tuple(found)


def read(
    cells: Sequence[AnyCell],
    backward: Sequence[bool],
    projected: Sequence[Tensor],
    index: Tensor,
    lengths: Tensor,
    *,
    outputs: bool = True,
) -> Looked:
    """What the directions of a layer make of rows of a projected table, (B, T) of them; called where `can_look_up`."""
    (B, T), H = index.shape, cells[0].hidden_size
    like, width = projected[0], projected[0].shape[1]
    index, lengths = index.long().contiguous(), lengths.long().contiguous()
    if B and T:  # C reads without asking how long a table is, or a row
        low, high = (int(each) for each in index.aminmax())
        if low < 0 or high >= min(map(len, projected)):
            raise IndexError(f"row {low if low < 0 else high} of a table of {min(map(len, projected))}")
        shortest, longest = (int(each) for each in lengths.aminmax())
        if shortest < 0 or longest > T or len(lengths) != B:
            raise IndexError(
                f"{len(lengths)} rows of {shortest} to {longest} steps in a batch of {B} rows and {T} steps"
            )
    order = lengths.argsort(descending=True, stable=True)
    code = compiled(like.dtype == torch.float64)
    assert code is not None
    count, gates = len(cells), gates_of(cells[0])
    found = like.new_empty(B, T, count * H) if outputs else None
    parts = threads(count, B)
    panels = [like.new_empty(width * H) for _ in cells]
    room = like.new_empty(parts * room_size(H, width))
    states = [cell.State(*(like.new_zeros(B, H) for _ in fields(cell.State))) for cell in cells]
    held = [after(cell, width, like) for cell in cells]
    weights = [cell.from_state for cell in known(cells)]
    array = (Direction * count)(
        *(
            Direction(
                projected[n].data_ptr(),
                weights[n].data_ptr(),
                None if (b := held[n]) is None else b.data_ptr(),
                None if found is None else found.data_ptr() + n * H * like.element_size(),
                states[n][0].data_ptr(),
                states[n][1].data_ptr() if len(states[n]) > 1 else None,
                panels[n].data_ptr(),
                count * H,
                count * H * T,
                backward[n],
                getattr(cell, "update", "") == "take",
            )
            for n, cell in enumerate(cells)
        )
    )
    crew = team() if parts > 1 else None
    given = Directions(
        *(ctypes.addressof(array), index.data_ptr(), lengths.data_ptr(), order.data_ptr(), room.data_ptr()),
        *(count, B, T, H, gates, width, room_size(H, width)),
        *(crew and crew.number, crew and crew.members),
    )
    if B and T:  # otherwise there is nothing to write either
        code.run(ctypes.addressof(given), crew and crew.parallel, parts)
    return Looked(found, tuple(states))


def after(cell: AnyCell, width: int, like: Tensor) -> Tensor | None:
    """What a GRU adds U h to: b′ where the candidate is; None for an LSTM, which adds it to its inputs."""
    if type(cell) is not GRU:
        return None
    found = like.new_zeros(width)
    if cell.after_bias is not None:
        found[2 * cell.hidden_size : 3 * cell.hidden_size] = cell.after_bias
    return found


def threads(directions: int, rows: int) -> int:
    """How many threads are of use: each takes some rows through all steps of a direction."""
    return max(1, min(torch.get_num_threads() if team() is not None else 1, directions * -(-rows // TILE)))
