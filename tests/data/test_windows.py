"""Windows: every step is in one, none is too long, and neighbours overlap."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.windows import Windows


@given(rows=st.lists(st.integers(0, 40), max_size=5), size=st.integers(1, 12), data=st.data())
def test_windows_cover_every_row_and_overlap_as_asked(rows: list[int], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    windows = Windows(np.array(rows, np.int64), size=size, overlap=overlap)
    every = np.stack(windows.at(np.arange(len(windows))), axis=1).reshape(-1, 3)
    found = every.tolist()
    assert windows.lengths.tolist() == [end - start for _, start, end in found]
    for row, length in enumerate(rows):
        own = [window for window in found if window[0] == row]
        assert {step for _, start, end in own for step in range(start, end)} == set(range(length))
        assert all(end - start == min(size, length) for _, start, end in own)
        for before, after in itertools.pairwise(own):
            assert before[1] < after[1] <= before[2] - overlap
