"""Rows cut at resets: every step in one piece, in order, and back where it was."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra import Padded
from recurra.engines.pieces import pieces_of


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4), seed=st.integers(0, 2**31))
def test_pieces_hold_each_row_from_reset_to_reset(lengths: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.rand(len(lengths), 6, generator=generator) < 0.4) & (torch.arange(6) < torch.tensor([lengths]).T)
    numbers = torch.arange(len(lengths) * 6.0).view(len(lengths), 6, 1)
    expected, anew, rows, lasts = [], [], [], []
    for row, length in enumerate(lengths):
        begins = [t for t in range(length) if t == 0 or mask[row, t]] or [0]
        for begin, end in zip(begins, [*begins[1:], length], strict=True):
            expected.append(numbers[row, begin:end, 0].tolist())
            anew.append(bool(mask[row, begin]))
            rows.append(row)
        lasts.append(len(expected) - 1)
    found = pieces_of(mask, torch.tensor(lengths))
    pieces = found.cut(numbers)
    assert [piece[:n, 0].tolist() for piece, n in zip(pieces, found.lengths.tolist(), strict=True)] == expected
    assert found.is_anew.flatten().tolist() == anew
    assert found.rows.tolist() == rows
    assert found.lasts.tolist() == lasts
    whole = Padded(numbers, torch.tensor(lengths))
    assert torch.equal(found.joined(pieces, whole.lengths), whole.zeroed().values)
