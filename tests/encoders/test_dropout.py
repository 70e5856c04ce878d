"""Dropout with one mask for a row."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from recurra.encoders.dropout import LockedDropout
from recurra.padding import Padded


def ones(rows: int, steps: int, size: int) -> Padded:
    return Padded.full(torch.ones(rows, steps, size, dtype=torch.double))


def test_all_steps_of_a_row_share_a_mask_and_rows_do_not() -> None:
    dropped = LockedDropout(0.5)(ones(6, 9, 40)).values
    assert_close(dropped, dropped[:, :1].expand(-1, 9, -1))
    assert len({tuple(row.tolist()) for row in dropped[:, 0]}) == 6


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_mean_is_kept_and_the_rate_is_the_share_of_zeros(rate: float) -> None:
    dropped = LockedDropout(rate)(ones(400, 2, 500)).values
    assert sorted(dropped.unique().tolist()) == pytest.approx([0.0, 1 / (1 - rate)])
    # 200,000 draws: five standard deviations.
    assert float((dropped == 0).double().mean()) == pytest.approx(rate, abs=5 * (rate * (1 - rate) / 200_000) ** 0.5)
    assert float(dropped.mean()) == pytest.approx(1, abs=5 * (rate / (1 - rate) / 200_000) ** 0.5)


def test_each_pass_draws_anew_and_a_seed_repeats_it() -> None:
    drop = LockedDropout(0.5)
    first, second = drop(ones(2, 3, 50)).values, drop(ones(2, 3, 50)).values
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(drop(ones(2, 3, 50)).values, first)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    x = ones(2, 3, 4)
    for drop in (LockedDropout(0.5).eval(), LockedDropout(0.0)):
        state = torch.get_rng_state()
        assert drop(x) is x
        assert torch.equal(torch.get_rng_state(), state)


def test_lengths_and_types_stay() -> None:
    x = Padded(torch.randn(2, 5, 3), torch.tensor([5, 0]))
    dropped = LockedDropout(0.5)(x)
    assert dropped.lengths is x.lengths
    assert dropped.values.dtype == x.values.dtype
    assert LockedDropout(0.5)(Padded(torch.zeros(2, 0, 3), torch.tensor([0, 0]))).values.shape == (2, 0, 3)


def test_the_gradient_passes_where_the_value_does() -> None:
    x = torch.randn(3, 4, 5, dtype=torch.double, requires_grad=True)
    dropped = LockedDropout(0.5)(Padded.full(x)).values
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert_close(gradient * x, dropped)
