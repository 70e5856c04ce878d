"""What comes from data is checked before C reads or writes by it: C itself asks nobody."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.encoders import c_bag
from recurra.encoders.bag import Bag, Bags
from recurra.errors import DataError, EngineError, TrainingError
from recurra.heads import CRF, lattice
from recurra.training.lazy_adam import LazyAdam


def ids(*numbers: int) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("wrong", [-1, 10, 2**31 - 1, -(2**31), 2**40])
def test_a_feature_outside_of_the_table_is_refused(wrong: int, dtype: torch.dtype) -> None:
    if wrong == 2**40 and dtype == torch.int32:
        pytest.skip("int32 has no such number")
    features, ends = torch.tensor([3, wrong], dtype=dtype), torch.tensor([2])
    message = rf"a batch of texts has the feature {wrong}, but the table has rows 0 to 9"
    with pytest.raises(DataError, match=message):
        Bag(10, 3, gain=1.0)(Bags(features, ends))
    if c_bag.compiled() is not None:
        with pytest.raises(DataError, match=message):
            c_bag.gradient(torch.ones(1, 3), features, ends, 1.0, 10)


@pytest.mark.parametrize("ends", [[3], [1], [10**9], [2, 0, 2], [-5, 2], []])
def test_ends_that_do_not_fit_the_features_are_refused(ends: list[int]) -> None:
    with pytest.raises(
        DataError, match="must not decrease, and the last must be the number of all features, 2, but they are"
    ):
        Bag(10, 3, gain=1.0)(Bags(ids(1, 2), torch.tensor(ends, dtype=torch.int64)))


def test_features_that_are_no_row_of_whole_numbers_are_refused() -> None:
    for features in (torch.tensor([1.0, 2.0]), ids(1, 2).view(1, 2)):
        with pytest.raises(DataError, match="the features of a batch of texts must be one row of whole numbers"):
            Bag(10, 3, gain=1.0)(Bags(features, torch.tensor([2])))
    with pytest.raises(DataError, match="the ends of a batch of texts must be one row of whole numbers"):
        Bag(10, 3, gain=1.0)(Bags(ids(1, 2), torch.tensor([2.0])))


def test_features_of_another_type_or_with_gaps_give_the_same_means() -> None:
    bag = Bag(10, 3, gain=1.0)
    expected = bag(Bags(ids(1, 2, 3), torch.tensor([2, 2, 3])))
    wide = bag(Bags(torch.tensor([1, 2, 3]), torch.tensor([2, 2, 3], dtype=torch.int32)))
    gaps = bag(Bags(ids(1, 9, 2, 9, 3, 9)[::2], torch.tensor([2, 7, 2, 7, 3, 7])[::2]))
    assert torch.equal(wide, expected)
    assert torch.equal(gaps, expected)
    assert bag(Bags(ids(), torch.tensor([0, 0]))).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("row", [-1, 10, 2**40])
def test_a_gradient_of_a_row_outside_of_the_table_is_refused(row: int) -> None:
    weight = torch.nn.Parameter(torch.zeros(10, 3))
    weight.grad = torch.sparse_coo_tensor(
        torch.tensor([[row]]), torch.ones(1, 3), (10, 3), is_coalesced=True, check_invariants=False
    )
    with pytest.raises((TrainingError, IndexError), match=rf"{row}"):
        LazyAdam([weight]).step()


@pytest.mark.parametrize("shape", [(1, 3), (10, 1), (20, 3)])
def test_the_optimisers_state_of_another_table_is_refused(shape: tuple[int, int]) -> None:
    weight = torch.nn.Parameter(torch.zeros(10, 3))
    weight.grad = torch.sparse_coo_tensor(torch.tensor([[9]]), torch.ones(1, 3), (10, 3), check_invariants=True)
    optimiser = LazyAdam([weight])
    optimiser.state[weight] = {"step": 1, "exp_avg": torch.zeros(shape), "exp_avg_sq": torch.zeros(shape)}
    with pytest.raises(
        TrainingError, match=r"the embedding has the shape \(10, 3\), but its state .*belongs to another model"
    ):
        optimiser.step()


A, start, emissions = np.zeros((3, 3)), np.zeros(3), np.zeros((2, 5, 3))


@pytest.mark.parametrize(
    ("chain", "given", "lengths", "message"),
    [
        ((A, start, start), emissions, np.array([10**7, 3]), "must lie between 0 and 5, but one is 10000000"),
        (
            (A, start, start),
            emissions,
            np.array([5]),
            r"lengths must be 2 whole numbers, but are int64 of shape \(1,\)",
        ),
        ((A, start, start), emissions, np.array([5.5, 3]), "lengths must be 2 whole numbers, but are float64"),
        ((A[:1, :1], start, start), emissions, np.array([5, 3]), r"a chain of 3 labels needs scores of the shapes"),
        ((A, start[:1], start), emissions, np.array([5, 3]), r"a chain of 3 labels needs scores of the shapes"),
        ((A, start, start), emissions[0], np.array([5, 3]), r"must be float32 or float64 and have the shape"),
        ((A, start, start), emissions.astype(np.float16), np.array([5, 3]), r"must be float32 or float64"),
    ],
)
def test_a_chain_that_does_not_fit_its_scores_is_refused(
    chain: tuple[np.ndarray, np.ndarray, np.ndarray], given: np.ndarray, lengths: np.ndarray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        lattice.best_path(lattice.Chain(*chain), given, lengths)


def test_the_best_labels_do_not_depend_on_how_features_lie_in_memory() -> None:
    head, values = CRF(4, ["O", "B-x", "I-x"]), torch.randn(2, 5, 4)
    expected = head.best(Padded(values, torch.tensor([5, 3])))
    turned = values.transpose(1, 2).contiguous().transpose(1, 2)
    for features in (
        Padded(turned, torch.tensor([5, 3], dtype=torch.int8)),
        Padded(values, torch.tensor([5, 9, 3])[::2]),
    ):
        labels, log_p = head.best(features)
        assert torch.equal(labels, expected[0])
        torch.testing.assert_close(log_p, expected[1])
    for lengths in ([10**6, 1], [-1, 1]):
        with pytest.raises(DataError, match="length"):
            head.best(Padded(values, torch.tensor(lengths)))


@pytest.mark.parametrize("other_size", [1, 64])
@pytest.mark.parametrize("engine", ["single", "planned"])
def test_what_belongs_to_a_cell_of_another_size_is_refused(engine: str, other_size: int) -> None:
    rnn, other = Recurrent("lstm", 3, 4, engine=engine), Recurrent("lstm", 3, other_size)
    x = Padded.full(torch.randn(1, 5, 3))
    message = "needs a weight of shape" if engine == "single" else "belongs to a cell of another size"
    with torch.no_grad(), pytest.raises((EngineError, DataError), match=message):
        rnn(x, fixed=other.fixed(1))


@pytest.mark.parametrize(("name", "shape"), [("weight", (1, 3)), ("bias", (1,))])
def test_a_weight_that_was_cut_is_not_read_by_c(name: str, shape: tuple[int, ...]) -> None:
    rnn = Recurrent("lstm", 3, 4, engine="single")
    getattr(rnn.cells[0][0].from_input, name).data = torch.zeros(shape)  # type: ignore[index]
    with torch.no_grad(), pytest.raises(EngineError, match="it needs a weight of shape"):
        rnn(Padded.full(torch.randn(1, 5, 3)))
