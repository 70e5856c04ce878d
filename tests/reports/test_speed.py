"""The timing behind `recurra bench`."""

from __future__ import annotations

import time

import torch

from recurra.padding import Padded
from recurra.reports import speed


def test_a_ratio_is_ours_over_theirs() -> None:
    taken, ratio = speed._turns(lambda: time.sleep(0.03), lambda: time.sleep(0.01), repeats=3, seconds=1)
    assert taken >= 0.03
    assert ratio > 1.5


def test_ragged_rows_are_half_to_full_length() -> None:
    x = speed._ragged(Padded.full(torch.zeros(200, 10, 1)))
    assert sorted(set(x.lengths.tolist())) == [5, 6, 7, 8, 9, 10]
    assert speed._ragged(Padded.full(torch.zeros(1, 10, 1))).lengths.tolist() == [9]


def test_a_cell_named_twice_is_measured_twice() -> None:
    shape = speed.Size(1, 2, 3, 4)
    timings = list(speed.measure(["elman", {"name": "elman"}], [shape], engines=["loop"], seconds=0.001))
    assert len(timings) == 2
    assert all(timing.to_loop == 1 for timing in timings)
