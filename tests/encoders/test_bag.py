"""Bags: the mean by its definition, gradients that name rows, threads that change nothing, C beside torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recurra.encoders import c_bag
from recurra.encoders.bag import Bag, Bags

ROWS = 200
TEXTS = st.lists(st.lists(st.integers(0, ROWS - 1), max_size=9), min_size=1, max_size=7)


@pytest.fixture(params=["C", "torch"])
def computed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By either way."""
    way: str = request.param
    if way == "torch":
        monkeypatch.setattr(c_bag, "compiled", lambda: None)
    return way


def bags(texts: Sequence[Sequence[int]]) -> Bags:
    ids = torch.tensor([number for text in texts for number in text], dtype=torch.int32)
    return Bags(ids, torch.tensor([len(text) for text in texts]).cumsum(0))


def filled(size: int = 5, **options: Any) -> Bag:
    torch.manual_seed(0)
    bag = Bag(ROWS, size, **{"gain": 1.0, **options})
    torch.nn.init.normal_(bag.table.weight)
    return bag


def by_numpy(bag: Bag, texts: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    table = bag.table.weight.detach().double().numpy()
    zero = np.zeros(table.shape[1])
    return np.stack([bag.gain * np.mean([table[n] for n in text], axis=0) if text else zero for text in texts])


@given(TEXTS)
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("gain", [1.0, 3.5])
def test_the_mean_is_that_of_numpy_and_a_text_without_features_is_zero(gain: float, texts: list[list[int]]) -> None:
    for sparse in (True, False):
        bag = filled(gain=gain, sparse=sparse)
        np.testing.assert_allclose(bag(bags(texts)).detach().numpy(), by_numpy(bag, texts), atol=1e-5)


def test_a_text_alone_gives_the_same_vector(computed: str) -> None:
    texts = [[3, 3, 7], [], [5], [199, 0]]
    bag = filled()
    together = bag(bags(texts))
    for row, text in zip(together, texts, strict=True):
        assert torch.equal(row, bag(bags([text]))[0]), computed


def slope(bag: Bag, texts: Sequence[Sequence[int]]) -> Tensor:
    bag.table.weight.grad = None
    out = bag(bags(texts))
    (out * torch.arange(1.0, out.numel() + 1).view_as(out)).sum().backward()
    assert bag.table.weight.grad is not None
    return bag.table.weight.grad


def test_the_gradient_names_the_rows_that_were_met_and_is_that_of_a_dense_table(computed: str) -> None:
    texts = [[3, 3, 7], [], [199, 64, 63, 0], [7]]
    found = slope(filled(gain=2.0), texts).coalesce()
    assert found.indices()[0].tolist() == [0, 3, 7, 63, 64, 199], computed
    torch.testing.assert_close(found.to_dense(), slope(filled(gain=2.0, sparse=False), texts))


def test_several_threads_give_what_one_gives_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_bag, "WORTH_A_THREAD", 64)
    draw = np.random.default_rng(0)
    texts = [draw.integers(0, ROWS, length).tolist() for length in draw.integers(0, 30, 50)]
    bag = filled(size=16)

    def at(threads: int) -> tuple[Tensor, Tensor]:
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        return bag(bags(texts)).detach(), slope(bag, texts).coalesce().to_dense()

    one, three = at(1), at(3)
    for mine, theirs in zip(one, three, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(*pair) for pair in zip(three, at(3), strict=True))


def test_shares_cover_all_rows_and_little_work_is_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert c_bag.shares(10, 3 * c_bag.WORTH_A_THREAD) == [0, 3, 6, 10]
    assert c_bag.shares(10, c_bag.WORTH_A_THREAD) == [0, 10]
    assert c_bag.shares(0, 0) == [0, 0]


def test_in_training_a_share_of_the_features_is_left_out() -> None:
    bag = filled(dropout=0.5)
    text = bags([list(range(ROWS))] * 2)
    assert torch.equal(bag.eval()(text), bag(text))
    torch.manual_seed(1)
    one, other = bag.train()(text)
    assert not torch.equal(one, other)
    met = slope(bag, [list(range(ROWS))]).coalesce().indices().numel()
    assert 60 < met < 140


def test_doubles_are_computed_as_doubles() -> None:
    bag = filled().double()
    assert bag(bags([[1, 2]])).dtype == torch.float64
    np.testing.assert_allclose(bag(bags([[1, 2]])).detach().numpy(), by_numpy(bag, [[1, 2]]), atol=1e-14)


def test_the_type_that_torch_makes_by_default_changes_nothing() -> None:
    bag, texts = filled(), [[1, 2], [2, 7, 9]]
    found, gradient = bag(bags(texts)), slope(bag, texts)
    torch.set_default_dtype(torch.float64)
    try:
        again, gradient_again = bag(bags(texts)), slope(bag, texts)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, again)
    assert torch.equal(gradient.to_dense(), gradient_again.to_dense())
