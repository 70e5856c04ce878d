"""The one batch type."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from recurra import DataError, Padded, pad
from recurra.padding import Grid, fitted, gridded

lengths_of_rows = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@given(lengths_of_rows)
def test_pad_keeps_every_row_and_fills_with_zeros(lengths: list[int]) -> None:
    rows = [torch.randn(length, 2) for length in lengths]
    batch = pad(rows)
    assert batch.lengths.tolist() == lengths
    for row, values in zip(rows, batch.values, strict=True):
        assert torch.equal(values[: len(row)], row)
        assert (values[len(row) :] == 0).all()


@given(lengths_of_rows, st.integers(0, 2))
def test_reversed_turns_the_real_part_and_twice_is_the_same(lengths: list[int], extra: int) -> None:
    batch = Padded(torch.randn(len(lengths), max(lengths) + extra, 2), torch.tensor(lengths))
    turned = batch.reversed()
    for row, length in enumerate(lengths):
        assert torch.equal(turned.values[row, :length], batch.values[row, :length].flip(0))
    assert torch.equal(turned.reversed().values, batch.values)


@given(lengths_of_rows, st.integers(0, 2))
def test_the_mask_is_true_on_real_steps_alone(lengths: list[int], extra: int) -> None:
    batch = Padded(torch.full((len(lengths), max(lengths) + extra, 2), torch.nan), torch.tensor(lengths))
    assert batch.mask.sum(1).tolist() == lengths
    assert batch.is_full == bool(batch.mask.all())
    assert torch.equal(batch.zeroed().values.isnan().any(-1), batch.mask)


def test_zeroed_takes_values_of_any_rank() -> None:
    assert Padded(torch.ones(1, 2), torch.tensor([1])).zeroed().values.tolist() == [[1, 0]]
    assert Padded(torch.ones(1, 2, 1, 1), torch.tensor([0])).zeroed().values.sum() == 0


@pytest.mark.parametrize(
    ("values", "lengths", "message"),
    [
        (torch.zeros(2, 3, 1), torch.tensor([3, 4]), "row 1 has length 4, but the batch has only 3 steps"),
        (torch.zeros(2, 3, 1), torch.tensor([-1, 3]), "row 0 has length -1, but lengths must be between 0 and 3"),
        (torch.zeros(2, 3, 1), torch.tensor([3]), r"one number per row, 2 here, but its shape is (1,)"),
        (torch.zeros(2, 3, 1), torch.tensor([3.0, 1.0]), "whole numbers, but found torch.float32"),
        (torch.zeros(2, 3, 1), [3, 1], "whole numbers, but found list"),
        (torch.zeros(2, 3, 1), torch.tensor([3j, 1]), "whole numbers, but found torch.complex64"),
        (torch.zeros(3), torch.tensor([1, 1, 1]), "these have shape (3,)"),
        (torch.zeros(2, 3, 1), torch.zeros(2, dtype=torch.long, device="meta"), "lengths must be on the CPU"),
    ],
)
def test_lengths_that_cannot_be_are_refused_in_words(values: Any, lengths: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        Padded(values, lengths).checked()
    assert message in str(refusal.value)


def test_sequences_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(DataError, match=r"sequence 1 has shape \(2, 3\) of torch.float32, but sequence 0 has \(2, 4\)"):
        pad([torch.zeros(2, 4), torch.zeros(2, 3)])
    with pytest.raises(DataError, match=r"of torch.float64, but sequence 0 has \(2,\) of torch.float32"):
        pad([torch.zeros(2), torch.zeros(3).double()])
    with pytest.raises(DataError, match="the list is empty"):
        pad([])
    with pytest.raises(DataError, match="pad takes a list of sequences, but got a Tensor"):
        pad(torch.zeros(2, 3))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="sequence 1 must be a tensor of shape"):
        pad([torch.zeros(2), 3])  # type: ignore[list-item]
    with pytest.raises(DataError, match="sequence 0 must be a tensor of shape"):
        pad([torch.tensor(3.0)])


def test_values_that_are_no_batch_are_refused() -> None:
    with pytest.raises(DataError, match=r"Padded.full takes a tensor of shape \(rows, steps, ...\), but got a list"):
        Padded.full([[1.0]])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"but got \(3,\)"):
        Padded.full(torch.zeros(3))
    with pytest.raises(DataError, match="the values of a Padded batch must be a tensor, but are a list"):
        Padded([[1.0]], torch.tensor([1])).checked()  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_lengths_may_be_any_whole_numbers(dtype: torch.dtype) -> None:
    batch = Padded(torch.zeros(2, 3, 1), torch.tensor([0, 3], dtype=dtype)).checked()
    assert batch.lengths.dtype == torch.long


def test_a_grid_knows_which_places_are_real_and_clears_the_rest() -> None:
    batch = gridded([torch.rand(2, 3, 5), torch.rand(2, 4, 1), torch.rand(2, 0, 2)])
    assert batch.mask.sum((1, 2)).tolist() == [15, 4, 0]
    dirty = Grid(batch.values.masked_fill(~batch.mask.unsqueeze(1), torch.nan), batch.sizes)
    assert torch.equal(dirty.zeroed().values, batch.values)
    assert gridded([torch.rand(1, 2, 2)]).is_full
    assert not batch.is_full


def test_a_batch_is_fitted_to_the_weights_but_whole_numbers_and_lengths_stay_as_they_are() -> None:
    class Batch(NamedTuple):
        frames: Padded
        ids: Tensor
        names: list[str]

    batch = Batch(pad([torch.ones(3, 2), torch.ones(1, 2)]), torch.tensor([1, 2], dtype=torch.int32), ["a", "b"])
    found = fitted(batch, nn.Linear(2, 2).double())
    assert isinstance(found, Batch)
    assert found.frames.values.dtype == torch.float64
    assert found.frames.lengths is batch.frames.lengths
    assert found.ids is batch.ids
    assert found.names == ["a", "b"]
    assert fitted(batch, nn.Linear(2, 2)).frames.values is batch.frames.values
