"""Mean and spread, example by example, against numpy on the whole."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from recurra.data.normal import Normal
from recurra.errors import CheckpointError, DataError


def counted(examples: list[NDArray[Any]]) -> Normal:
    counter = Normal.counted()
    for number, example in enumerate(examples):
        counter.add(example, f"data.jsonl:{number + 1}")
    return counter.finished()


NUMBERS = st.floats(-1e6, 1e6, width=32) | st.just(np.nan)
BLOCKS = st.integers(1, 3).flatmap(
    lambda width: st.lists(arrays.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(width)), elements=NUMBERS))
)


@given(BLOCKS.filter(lambda blocks: sum(map(len, blocks)) > 0))
def test_mean_and_spread_are_those_of_the_whole_without_missing_numbers(blocks: list[NDArray[np.float64]]) -> None:
    normal = counted(blocks)
    whole = np.concatenate(blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns of a column of NaNs
        mean, spread = np.nan_to_num(np.nanmean(whole, axis=0)), np.nan_to_num(np.nanstd(whole, axis=0))
    assert_allclose(normal.mean, mean, rtol=1e-9, atol=1e-9)
    varied = spread > 1e-9 * np.abs(mean)
    assert_allclose(normal.spread[varied], spread[varied], rtol=1e-6)
    assert_allclose(normal.unscaled(normal.scaled(whole)), whole, rtol=1e-9, atol=1e-6)


def test_numbers_far_from_zero_keep_their_spread() -> None:
    values = 1e9 + np.random.default_rng(0).normal(size=(4000, 2))
    normal = counted(np.split(values, 50))
    assert_allclose(normal.spread, values.std(0), rtol=1e-6)
    assert_allclose(normal.scaled(values).std(0), 1, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e9 + 0.1, 1e-20])
def test_a_constant_column_has_spread_one(value: float) -> None:
    normal = counted([np.full((length, 1), value) for length in (1, 7, 3, 10)])
    assert normal.spread.tolist() == [1.0]
    assert_allclose(normal.scaled(np.array([[value]])), 0, atol=1e-6)


def test_a_column_of_very_small_numbers_is_not_constant() -> None:
    values = np.random.default_rng(0).normal(size=(100, 1)) * 1e-15
    assert_allclose(counted([values]).scaled(values).std(), 1)


def test_a_column_that_is_always_missing_is_left_as_it_is() -> None:
    normal = counted([np.array([[np.nan, 1.0], [np.nan, 3.0]])])
    assert normal.mean.tolist() == [0.0, 2.0]
    assert normal.spread.tolist() == [1.0, 1.0]


def test_another_number_of_columns_is_refused_with_its_place() -> None:
    message = r"data\.jsonl:3: found 3 numbers per step, but the first example has 2\."
    with pytest.raises(DataError, match=message):
        counted([np.ones((4, 2)), np.ones((1, 2)), np.ones((2, 3))])


def test_an_example_without_steps_says_nothing_of_the_columns() -> None:
    for empty in (np.zeros((0, 0)), np.zeros((0, 5))):
        assert counted([empty, np.array([[1.0, 2.0], [3.0, 2.0]]), empty]).mean.tolist() == [2.0, 2.0]


def test_no_numbers_at_all_are_refused() -> None:
    for nothing in ([], [np.zeros((0, 3))]):
        with pytest.raises(DataError, match=r"there are no numbers in the training data\."):
            counted(nothing)


def test_scales_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    normal = counted([np.random.default_rng(0).normal(size=(9, 3))])
    (tmp_path / "scales.json").write_text(json.dumps({"frames": normal.to_json()}))
    [(name, found)] = Normal.load_all(tmp_path / "scales.json").items()
    assert name == "frames"
    assert found.mean.tolist() == normal.mean.tolist()
    assert found.spread.tolist() == normal.spread.tolist()


@pytest.mark.parametrize(
    "content",
    [
        None, b"", b"{", b"\xff", b"[]", b"3", b'{"frames": 3}', b'{"frames": {"mean": [1]}}', b"[" * 100_000,
        b'{"frames": {"mean": ["x"], "spread": [1]}}', b'{"frames": {"mean": [1, 2], "spread": [1]}}',
        b'{"frames": {"mean": [1], "spread": [0]}}', b'{"frames": {"mean": 1, "spread": 1}}',
    ],
)  # fmt: skip
def test_scales_that_cannot_be_read_are_a_broken_run(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "scales.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"scales\.json cannot be read \(.*\): the run folder is incomplete\."):
        Normal.load_all(path)
