"""Rows cut at resets into pieces, each of which is read as a row of its own.

Between two resets a row holds a sequence that knows nothing of what came before. So an engine without resets reads the
pieces side by side: more rows, fewer steps, and the same numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.padding import Padded, beside
from recurra.recording import refuse_while_recording


class Pieces(NamedTuple):
    """S pieces of up to L steps, of B rows of T."""

    lengths: Tensor  # (S,) of each piece, on the CPU
    rows: Tensor  # (S,): the row that a piece is of
    is_anew: Tensor  # (S, 1): whether it begins at a reset
    steps: Tensor  # (S, L): where each step lies among all steps of all rows
    places: Tensor  # (B, T): where each step of a row lies among all steps of all pieces
    lasts: Tensor  # (B,): the last piece of each row

    def cut(self, sequence: Tensor) -> Tensor:
        """(B, T, w) as pieces, (S, L, w)."""
        return sequence.flatten(0, 1).index_select(0, self.steps.flatten()).view(*self.steps.shape, -1)

    def joined(self, sequence: Tensor, lengths: Tensor) -> Tensor:
        """(S, L, w) as rows again, (B, T, w), zero on padding."""
        found = sequence.flatten(0, 1).index_select(0, self.places.flatten()).view(*self.places.shape, -1)
        return Padded(found, lengths).zeroed().values

    def start(self, state: Tensor, anew: Tensor) -> Tensor:
        """What each piece starts from, (S, w): the state before a row, or the one to start anew from."""
        return torch.where(self.is_anew, anew.index_select(0, self.rows), state.index_select(0, self.rows))


def pieces_of(mask: Tensor, lengths: Tensor) -> Pieces:
    """Where rows of such lengths are cut; mask (B, T), True before whose steps the state starts anew.

    >>> found = pieces_of(torch.tensor([[False, False, True], [True, False, False]]), torch.tensor([3, 2]))
    >>> found.lengths.tolist(), found.rows.tolist(), found.is_anew.flatten().tolist()
    ([2, 1, 2], [0, 0, 1], [False, True, True])
    """
    refuse_while_recording(mask, "where rows are cut")
    anew = mask.cpu()
    T = anew.shape[1]
    is_first = anew & (torch.arange(T) < lengths.unsqueeze(1))
    is_first[:, 0] = True  # a row without any step is a piece as well
    rows, begins = is_first.nonzero(as_tuple=True)
    is_last = torch.cat([rows[1:] != rows[:-1], torch.ones(1, dtype=torch.bool)])
    ends = torch.where(is_last, lengths[rows], begins.roll(-1))
    sizes = ends - begins
    L = max(1, int(sizes.max()))
    steps = rows.unsqueeze(1) * T + (begins.unsqueeze(1) + torch.arange(L)).clamp_max(T - 1)
    piece = is_first.flatten().cumsum(0).view_as(is_first) - 1
    places = piece * L + (torch.arange(T) - begins[piece]).clamp_max(L - 1)
    lasts = is_last.nonzero().flatten()
    found = (rows, anew[rows, begins].unsqueeze(1), steps, places, lasts)
    return Pieces(sizes, *(beside(each, mask) for each in found))
