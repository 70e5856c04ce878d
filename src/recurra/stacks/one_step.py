"""One step of a cell, by torch's own kernel where there is one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells import LSTM, AnyCell, AnyState
from recurra.cells.lstm import LSTMState
from recurra.engines.vendor import mismatch, unwrapped


def stepped(cell: AnyCell, x: Tensor, state: AnyState, fixed: Any) -> AnyState:
    """The state after one more element (B, I) of each row.

    On a GPU an LSTM's gates take one kernel where no gradient is wanted, and eleven where they are written out.
    """
    if x.is_cuda and not torch.is_grad_enabled() and (found := lstm_step(cell, x, state, fixed)) is not None:
        return found
    after: AnyState = cell.step(cell.project(x, fixed), state, fixed)
    return after


def lstm_step(cell: AnyCell, x: Tensor, state: AnyState, fixed: Any) -> LSTMState | None:
    """The same for an LSTM on a GPU; None where torch's kernel computes something else."""
    bare, own = unwrapped(cell, fixed)
    if type(bare) is not LSTM or mismatch(bare, own) is not None or own.drop.mask is not None:
        return None
    h, c = state
    gates, from_state = bare.from_input(x), functional.linear(h, own.U.weight)
    if not gates.dtype == from_state.dtype == c.dtype:  # under autocast
        return None
    h, c, _ = torch.ops.aten._thnn_fused_lstm_cell(gates, from_state, c)  # its gates lie in the order of ours
    return LSTMState(h, c)
