"""The kernels of a beam against torch's operations: on a GPU, or on the CPU where TRITON_INTERPRET=1 is set.

TRITON_INTERPRET=1 pytest tests/search/test_triton_kernels.py        with triton, and numpy below 2.3 for triton 3.6
"""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.products.triton_here import has_triton
from recurra.search.continuing import KERNEL_BLOCK, by_kernels, by_torch, fits_a_kernel

WHERE = "cuda" if torch.cuda.is_available() else "cpu"
CAN = has_triton() and (WHERE == "cuda" or os.environ.get("TRITON_INTERPRET") == "1")
needs_triton = pytest.mark.skipif(not CAN, reason="there is neither a GPU with triton nor TRITON_INTERPRET=1 here")


@needs_triton
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sentences=st.integers(1, 3),
    width=st.integers(1, 6),
    vocabulary=st.sampled_from([1, 2, 5, 40, KERNEL_BLOCK, KERNEL_BLOCK + 1, 2 * KERNEL_BLOCK + 77]),
    levels=st.sampled_from([1, 3, 10**6]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    is_closed=st.booleans(),
)
def test_kernels_choose_what_torch_chooses(
    seed: int, sentences: int, width: int, vocabulary: int, levels: int, dtype: torch.dtype, is_closed: bool
) -> None:
    made = torch.Generator().manual_seed(seed)
    log_p = -torch.randint(0, levels, (sentences * width, vocabulary), generator=made).to(dtype) / 7
    log_p[torch.rand(log_p.shape, generator=made) < 0.2] = -torch.inf
    totals = -torch.randint(0, 3, (sentences, width), generator=made).double()
    totals[torch.rand(totals.shape, generator=made) < 0.3] = -torch.inf
    closed = torch.rand(vocabulary, generator=made) < 0.3 if is_closed else None
    is_end = torch.rand(vocabulary, generator=made) < 0.2
    given = [None if each is None else each.to(WHERE) for each in (log_p, closed, totals, is_end)]
    found, expected = by_kernels(*given), by_torch(*given)  # type: ignore[arg-type]
    assert torch.equal(found.kept, expected.kept)
    is_real = expected.kept > -torch.inf
    for one, other in zip(found[1:3], expected[1:3], strict=True):
        assert torch.equal(one[is_real], other[is_real])
    assert torch.equal(found.live, expected.live)
    # Of those that are absent anything is allowed that can be looked up.
    assert ((found.chosen >= 0) & (found.chosen < vocabulary)).all()
    first = torch.arange(sentences, device=WHERE).unsqueeze(1) * width
    assert torch.equal(found.rows.view(sentences, width) - first, found.parents)
    assert ((found.parents >= 0) & (found.parents < width)).all()


@needs_triton
def test_what_is_no_number_is_kept_first() -> None:
    log_p = torch.zeros(2, 50, device=WHERE)
    log_p[1, 30] = torch.nan
    totals = torch.zeros(1, 2, dtype=torch.float64, device=WHERE)
    found = by_kernels(log_p, None, totals, torch.zeros(50, dtype=torch.bool, device=WHERE))
    assert found.kept[0].isnan().tolist() == [True, False]
    assert (int(found.chosen[0, 0]), int(found.parents[0, 0])) == (30, 1)


def test_beams_that_are_too_wide_for_a_kernel_are_left_to_torch() -> None:
    assert fits_a_kernel(5, 8000) == has_triton()
    assert not fits_a_kernel(17, 100)
    assert not fits_a_kernel(16, 100_000)
