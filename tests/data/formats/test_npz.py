"""NPZ: what comes out is what went in, and what cannot is said."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.data import rows
from recurra.data.formats import npz
from recurra.errors import DataError


def written(file: Path, **arrays: Any) -> Path:
    np.savez_compressed(file, **arrays)
    return file


def test_a_row_is_a_place_along_the_first_axis(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.npz",
        label=np.array(["up", "down"]),
        age=np.array([3, 4], np.uint8),
        pulse=np.array([[1.5, 2], [3, 4]], np.float32),
        frames=np.arange(12).reshape(2, 3, 2),
        is_new=np.array([True, False]),
    )
    first, second = rows(file)
    assert first.values == {
        "label": "up",
        "age": 3,
        "pulse": [1.5, 2.0],
        "frames": [[0, 1], [2, 3], [4, 5]],
        "is_new": "true",
    }
    assert (second.line, second.values["label"], second.values["frames"]) == (2, "down", [[6, 7], [8, 9], [10, 11]])


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 4), min_size=1, max_size=6), width=st.integers(1, 3))
def test_rows_of_different_length_lie_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], width: int
) -> None:
    sequences = [np.random.default_rng(n).normal(size=(n, width)) for n in lengths]
    file = tmp_path_factory.mktemp("npz") / "a.npz"
    written(file, frames=np.concatenate(sequences), frames_lengths=np.array(lengths), number=np.arange(len(lengths)))
    found = list(rows(file))
    assert [row.values["frames"] for row in found] == [sequence.tolist() for sequence in sequences]
    assert [set(row.values) for row in found] == [{"frames", "number"}] * len(lengths)


def test_true_and_false_are_words_alone_and_numbers_in_frames(tmp_path: Path) -> None:
    file = written(tmp_path / "a.npz", alone=np.array([True]), frames=np.array([[[True, False]]]))
    assert [dict(row.values) for row in rows(file)] == [{"alone": "true", "frames": [[1, 0]]}]
    file = written(tmp_path / "b.npz", pulse=np.array([True, False, True]), pulse_lengths=np.array([1, 2]))
    assert [row.values["pulse"] for row in rows(file)] == [[1], [0, 1]]


def test_columns_choose_and_rename(tmp_path: Path) -> None:
    file = written(tmp_path / "a.npz", roll=np.zeros((2, 1, 1)), other=np.zeros(3))
    assert [dict(row.values) for row in rows(file, columns={"frames": "roll"})] == [{"frames": [[0.0]]}] * 2
    with pytest.raises(DataError, match=r"a\.npz: there is no column 'rol'\. Did you mean 'roll'\?"):
        list(rows(file, columns=["rol"]))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "objects": (
        {"frames": np.array([[1], [1, 2]], object)},
        "the array 'frames' holds Python objects, which are not read because .*'frames_lengths'",
    ),
    "another number of rows": (
        {"a": np.zeros(2), "b": np.zeros((3, 1))},
        "'b' has 3 rows, but 'a' 2: every array needs one row per example. .*add 'b_lengths'",
    ),
    "a single value": ({"a": np.array(3.0)}, "'a' is a single value"),
    "complex": ({"a": np.zeros(2, complex)}, "the array 'a' is of type complex128, which cannot be read"),
    "lengths that do not add up": (
        {"a": np.zeros((4, 1)), "a_lengths": np.array([1, 2])},
        "'a' has 4 steps, but 'a_lengths' adds up to 3",
    ),
    "lengths that are none": (
        {"a": np.zeros((4, 1)), "a_lengths": np.array([5, -1])},
        "'a_lengths' must contain one whole number per row: its number of steps.",
    ),
    "fractions of lengths": (
        {"a": np.zeros(4), "a_lengths": np.array([4.0])},
        "must contain one whole number per row: its number of steps.",
    ),
    "not finite": ({"a": np.array([1.0, np.nan])}, "row 2: the value of 'a' is infinite or NaN"),
    "deep": ({"a": np.zeros((1, 1, 1, 1, 1))}, "row 1: the value of 'a' is nested deeper than 3 levels"),
    "nothing": ({}, "this archive contains no arrays."),
    "no rows": ({"a": np.zeros((0, 3)), "a_lengths": np.zeros(0, int)}, "is empty: it has no rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str) -> None:
    arrays, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        list(rows(written(tmp_path / "a.npz", **arrays)))


@pytest.mark.parametrize(
    "content", [b"", b"text\n", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 17, pickle.dumps(["x"])], ids=range(5)
)
def test_a_file_that_is_no_archive_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.npz"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz: this is not an \.npz archive"):
        list(rows(file))


def test_one_array_alone_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(DataError, match="this is one array, not an archive"):
        list(rows(tmp_path / "a.npz"))


def test_an_archive_cut_short_or_with_a_broken_byte_is_refused_without_a_traceback(tmp_path: Path) -> None:
    file = written(tmp_path / "a.npz", frames=np.random.default_rng(0).normal(size=(5, 20)))
    whole = file.read_bytes()
    for place in range(0, len(whole), 17):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            file.write_bytes(content)
            try:
                found = list(rows(file))
            except DataError:
                continue
            assert len(found) == 5  # a byte that no one reads, such as a date


def test_an_archive_that_is_compressed_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is compressed, but \.npz files are compressed already"):
        list(rows(tmp_path / "a.npz.gz"))


def test_an_array_that_unpacks_to_hundreds_of_times_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", frames=np.zeros((1000, 1000)))
    np.savez(tmp_path / "plain.npz", frames=np.zeros((1000, 1000)))
    assert len(list(rows(tmp_path / "bomb.npz"))) == 1000  # small enough to do no harm
    monkeypatch.setattr(npz, "LARGEST_SURE", 1 << 20)
    assert len(list(rows(tmp_path / "plain.npz"))) == 1000
    with pytest.raises(DataError, match=r"bomb\.npz: 'frames' would unpack from [\d,]+ to 8,000,128 bytes"):
        list(rows(tmp_path / "bomb.npz"))
