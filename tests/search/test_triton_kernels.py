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
from recurra.search.continuing import (
    GROUP,
    by_kernels,
    by_torch,
    fits_a_kernel,
    most_probable,
    most_probable_by_kernel,
)
from recurra.search.running import Scored

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")  # of the interpreter

WHERE = "cuda" if torch.cuda.is_available() else "cpu"
CAN = has_triton() and (WHERE == "cuda" or os.environ.get("TRITON_INTERPRET") == "1")
needs_triton = pytest.mark.skipif(not CAN, reason="there is neither a GPU with triton nor TRITON_INTERPRET=1 here")


@needs_triton
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sentences=st.integers(1, 3),
    width=st.integers(1, 6),
    vocabulary=st.sampled_from([1, 2, 5, 40, GROUP, GROUP + 1, 70 * GROUP + 7]),
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
    found, expected = by_kernels(Scored(given[0]), *given[1:]), by_torch(Scored(given[0]), *given[1:])  # type: ignore[arg-type]
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
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sentences=st.integers(1, 3),
    width=st.integers(1, 6),
    vocabulary=st.sampled_from([1, 5, 40, GROUP + 1, 5000]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
    is_closed=st.booleans(),
)
def test_kernels_make_log_p_of_scores_as_torch_does(
    seed: int, sentences: int, width: int, vocabulary: int, dtype: torch.dtype, is_closed: bool
) -> None:
    made = torch.Generator().manual_seed(seed)
    more = torch.randn(sentences * width, vocabulary + 3, generator=made) * 4
    scores = more.to(dtype)[:, :vocabulary]  # rows with something behind them
    closed = torch.rand(vocabulary, generator=made) < 0.3 if is_closed and vocabulary > 9 else None
    totals = -torch.rand(sentences, width, generator=made).double()
    is_end = torch.rand(vocabulary, generator=made) < 0.2
    given = [None if each is None else each.to(WHERE) for each in (scores, closed, totals, is_end)]
    scored = Scored(given[0], is_log_p=False)  # type: ignore[arg-type]
    found, expected = by_kernels(scored, *given[1:]), by_torch(scored, *given[1:])  # type: ignore[arg-type]
    torch.testing.assert_close(found.kept, expected.kept, rtol=1e-5, atol=1e-5)
    # Scores of bfloat16 are often equal, and log p may part them in the last digit: what is chosen is as good.
    by_row = scored.log_p().double().view(sentences, width, vocabulary)
    some = torch.arange(sentences, device=WHERE).unsqueeze(1)
    again = given[2].gather(1, found.parents) + by_row[some, found.parents, found.chosen]  # type: ignore[union-attr]
    is_real = found.kept > -torch.inf
    torch.testing.assert_close(again[is_real], found.kept[is_real], rtol=1e-5, atol=1e-5)
    value, token = most_probable_by_kernel(scored, given[1])
    best, _ = most_probable(Scored(scored.log_p()), given[1])
    torch.testing.assert_close(value.double(), best.double(), rtol=1e-5, atol=1e-5)
    raw = scores.to(WHERE) if given[1] is None else scores.to(WHERE).masked_fill(given[1], -torch.inf)
    assert torch.equal(token, raw.max(1).indices)  # the first of equals


@needs_triton
def test_what_is_no_number_is_kept_first() -> None:
    log_p = torch.zeros(2, 50, device=WHERE)
    log_p[1, 30] = torch.nan
    totals = torch.zeros(1, 2, dtype=torch.float64, device=WHERE)
    found = by_kernels(Scored(log_p), None, totals, torch.zeros(50, dtype=torch.bool, device=WHERE))
    assert found.kept[0].isnan().tolist() == [True, False]
    assert (int(found.chosen[0, 0]), int(found.parents[0, 0])) == (30, 1)


def test_beams_that_are_too_wide_for_a_kernel_are_left_to_torch() -> None:
    assert fits_a_kernel(5, 8000) == has_triton()
    assert not fits_a_kernel(17, 100)
    assert not fits_a_kernel(16, 1_000_000)
