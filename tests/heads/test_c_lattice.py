from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.heads import c_lattice, lattice


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 30.0, 3000.0]), st.booleans(), st.booleans())
def test_c_finds_the_path_that_numpy_finds(seed: int, scale: float, forbids: bool, has_ties: bool) -> None:
    draw = np.random.default_rng(seed)
    B, T, L = draw.integers(1, 6), draw.integers(1, 12), draw.integers(1, 9)
    A, start, end = (scale * draw.normal(size=shape) for shape in ((L, L), L, L))
    e = scale * draw.normal(size=(B, T, L))
    if has_ties:
        A, start, end, e = (np.round(scores / 10) for scores in (A, start, end, e))
    if forbids:
        A[draw.random((L, L)) < 0.4] = -np.inf
        A[np.arange(L), np.arange(L)] = 0  # so that there is a path
    chain = lattice.Chain(A, start, end)
    lengths = draw.integers(0, T + 1, size=B)
    labels, log_p = lattice.best_path(chain, e, lengths)
    same_labels, same_log_p = lattice.best_path_in_numpy(chain, e, lengths)
    np.testing.assert_array_equal(labels, same_labels)
    np.testing.assert_allclose(log_p, same_log_p, rtol=1e-9, atol=1e-9)


def test_a_number_that_is_none_stays_none() -> None:
    chain = lattice.Chain(np.zeros((2, 2)), np.zeros(2), np.zeros(2))
    _, log_p = lattice.best_path(chain, np.full((1, 3, 2), np.nan), np.array([3]))
    assert np.isnan(log_p[0])


@pytest.mark.parametrize("work", [1, 30, 1e9])
def test_a_path_that_is_found_in_many_calls_is_that_of_one(work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(7)
    chain = lattice.Chain(*(draw.normal(size=shape) for shape in ((4, 4), 4, 4)))
    e, lengths = draw.normal(size=(5, 9, 4)), np.array([9, 0, 1, 5, 2])
    labels, log_p = lattice.best_path_in_numpy(chain, e, lengths)
    monkeypatch.setattr(c_lattice, "WORK", work)
    same_labels, same_log_p = lattice.best_path(chain, e, lengths)
    np.testing.assert_array_equal(labels, same_labels)
    np.testing.assert_allclose(log_p, same_log_p, rtol=1e-9, atol=1e-9)
