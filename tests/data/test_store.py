"""Encoded examples on disk: what is written is read back, whole or not at all, in a flat amount of memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from recurra.data import store as module
from recurra.data.store import Encoded, Rows, Store
from recurra.errors import DataError

DTYPES = ["<i4", "<i8", "<f4", "<f8", "|u1", "|b1", ">i2"]
SHAPES = st.fixed_dictionaries(
    {}, optional={name: st.tuples(st.sampled_from(DTYPES), st.none() | st.integers(0, 3)) for name in ("a", "b", "c")}
)


@st.composite
def examples_of_one_shape(draw: st.DrawFn) -> list[dict[str, NDArray[Any]]]:
    shapes = draw(SHAPES)

    def values(dtype: str, width: int | None) -> NDArray[Any]:
        length = draw(st.integers(0, 4))
        return draw(arrays.arrays(dtype, (length,) if width is None else (length, width)))

    return [{name: values(*shape) for name, shape in shapes.items()} for _ in range(draw(st.integers(0, 5)))]


def same(one: Encoded, other: Encoded) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and one[name].tobytes() == other[name].tobytes()  # also where a number is NaN
        for name in one
    )


@given(examples_of_one_shape())
@settings(max_examples=60)
def test_what_is_written_is_read_back(examples: list[dict[str, NDArray[Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = Store.write(Path(folder) / "deep" / "store", iter(examples))
        for store in (written, Store(written.folder)):
            assert len(store) == len(examples)
            assert all(same(row, example) for row, example in zip(store, examples, strict=True))  # type: ignore[call-overload]
            for name in examples[0] if examples else ():
                assert store.lengths(name).tolist() == [len(example[name]) for example in examples]
        assert [path.name for path in written.folder.parent.iterdir()] == ["store"]


def three(folder: Path) -> Store:
    words = [np.arange(length, dtype="int32") for length in (2, 0, 3)]
    return Store.write(folder / "store", [{"words": row, "frames": np.ones((len(row), 2))} for row in words])


def test_rows_are_counted_from_either_end_and_there_are_no_others(tmp_path: Path) -> None:
    store = three(tmp_path)
    assert same(store[-1], store[2])
    for row in (3, -4):
        with pytest.raises(IndexError):
            store[row]


def test_a_store_without_examples_has_none(tmp_path: Path) -> None:
    store = Store.write(tmp_path / "store", [])
    assert len(store) == len(Store(store.folder)) == 0
    assert store.lengths("words").tolist() == []
    assert list(store) == []  # type: ignore[call-overload]


def test_a_row_is_a_copy(tmp_path: Path) -> None:
    store = three(tmp_path)
    store[2]["words"][:] = 99
    assert store[2]["words"].tolist() == [0, 1, 2]


def test_a_few_rows_in_memory_have_the_face_of_a_store(tmp_path: Path) -> None:
    store = three(tmp_path)
    rows = Rows(store[row] for row in range(3))
    assert len(rows) == 3
    assert same(rows[2], store[2])
    assert rows.lengths("words").tolist() == store.lengths("words").tolist()


def test_an_unfinished_store_leaves_nothing_to_open(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Encoded]:
        yield {"words": np.zeros(3, "int32")}
        assert [path.suffix for path in tmp_path.iterdir()] == [".unfinished"]
        raise DataError("line 2 is bad")

    with pytest.raises(DataError, match="line 2 is bad"):
        Store.write(tmp_path / "store", interrupted())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="cannot be used"):
        Store(tmp_path / "store")


def test_who_comes_second_takes_what_the_first_has_written(tmp_path: Path) -> None:
    def overtaken() -> Iterator[Encoded]:
        yield {"words": np.array([1], "int32")}
        Store.write(tmp_path / "store", [{"words": np.array([2], "int32")}])

    assert Store.write(tmp_path / "store", overtaken())[0]["words"].tolist() == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_several_processes_write_the_same_store(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, pathlib; from recurra.data.store import Store\n"
        "store = Store.write(pathlib.Path(sys.argv[1]), ({'words': np.arange(n)} for n in range(2000)))\n"
        "assert all(store[n]['words'].tolist() == list(range(n)) for n in range(0, 2000, 99))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "store")]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert len(Store(tmp_path / "store")) == 2000


FILES = ("meta.json", "offsets", "words.values", "frames.values")


@pytest.mark.parametrize("name", FILES)
def test_a_store_that_lacks_a_file_or_its_end_is_refused(tmp_path: Path, name: str) -> None:
    whole = three(tmp_path).folder
    content = (whole / name).read_bytes()
    for size in range(len(content)):
        (whole / name).write_bytes(content[:size])
        with pytest.raises(DataError, match=r"the encoded examples in .* cannot be used \(.*\). Remove that folder."):
            Store(whole)
    (whole / name).unlink()
    with pytest.raises(DataError, match="cannot be used"):
        Store(whole)


@pytest.mark.parametrize(
    "meta",
    [
        [],
        {},
        3,
        {"rows": 3},
        {"rows": 3, "fields": []},
        {"rows": "3", "fields": {}},
        {"rows": 3, "fields": {"words": 3}},
        {"rows": 3, "fields": {"words": ["<q9", None], "frames": ["<f8", 2]}},
        {"rows": 3, "fields": {"words": ["<i8", None], "frames": ["<f8", 2]}},
        {"rows": 3, "fields": {"words": ["<i4", None], "frames": ["|O", 2]}},
        {"rows": 2, "fields": {"words": ["<i4", None], "frames": ["<f8", 2]}},
    ],
)
def test_a_store_that_is_told_wrong_is_refused(tmp_path: Path, meta: object) -> None:
    folder = three(tmp_path).folder
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match="cannot be used"):
        Store(folder)


@settings(max_examples=60)
@given(st.sampled_from(FILES), st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_however_a_store_is_changed_only_a_data_error_comes_out(name: str, start: int, instead: bytes) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        path = three(folder).folder / name
        content = path.read_bytes()
        start %= len(content)
        path.write_bytes(content[:start] + instead + content[start + len(instead) :])
        try:
            store = Store(path.parent)
            for row in range(len(store)):
                assert store[row].keys() == store.fields.keys()
        except DataError:
            return
    finally:
        shutil.rmtree(folder)


def test_offsets_that_do_not_rise_are_noticed_where_they_are_read(tmp_path: Path) -> None:
    folder = three(tmp_path).folder
    np.array([[0, 0], [6, 6], [2, 2], [5, 5]]).tofile(folder / "offsets")
    store = Store(folder)
    for row in (0, 1):
        with pytest.raises(DataError, match=rf"row {row} in .* is broken \(.*\). Remove that folder."):
            store[row]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written to .*: (Not a directory|File exists)\."):
        Store.write(tmp_path / "file" / "store", [])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("")
    with pytest.raises(DataError, match=r"cannot be written to .*: Directory not empty\."):
        Store.write(tmp_path / "full", [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_memory_stays_flat_while_a_large_store_is_read(tmp_path: Path) -> None:
    code = """
import os, pathlib, sys
import numpy as np
from recurra.data import store as module

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

row = {"words": np.zeros(5000, "int32"), "tags": np.zeros(10, "int32")}
store = module.Store.write(pathlib.Path(sys.argv[1]), (row for _ in range(10_000)))
before, most = megabytes(), 0
for number, at in enumerate(np.random.default_rng(1).permutation(len(store)).tolist()):
    store[at]
    if number % 100 == 0:
        most = max(most, megabytes())
print(most - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 10  # of 200 MB


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
@settings(max_examples=40)
def test_a_span_goes_on_over_the_ends_of_rows(lengths: list[int], data: st.DataObject) -> None:
    edges = np.cumsum([0, *lengths])
    whole = np.arange(edges[-1] * 2, dtype=np.int32).reshape(-1, 2)
    examples = [{"other": np.zeros(1), "a": whole[first:last]} for first, last in pairwise(edges)]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    with tempfile.TemporaryDirectory() as folder:
        for rows in (Store.write(Path(folder) / "store", examples), Rows(examples)):
            assert rows.size("a") == len(whole)
            assert rows.span("a", start, end).tolist() == whole[start:end].tolist()


def test_a_store_whose_values_were_cut_off_since_it_was_opened_is_said_to_be_broken(tmp_path: Path) -> None:
    store = Store.write(tmp_path / "store", [{"a": np.arange(5)}])
    (store.folder / "a.values").write_bytes(b"")
    with pytest.raises(DataError, match=r"a in .*store is broken \(0 of 40 bytes were found\)"):
        store.span("a", 0, 5)


def test_numbers_in_another_byte_order_keep_it(tmp_path: Path) -> None:
    rows = [{"a": np.array([1, 2], ">i2")}, {"a": np.array([3], ">i2")}]
    taken = Store.write(tmp_path / "store", rows).take(np.array([1, 0]))
    for found in (taken.flat("a").values, Rows([rows[1], rows[0]]).flat("a").values):
        assert (found.dtype, found.tolist()) == (np.dtype(">i2"), [3, 1, 2])


@given(examples_of_one_shape(), st.booleans(), st.data())
@settings(max_examples=60)
def test_rows_that_are_taken_together_are_those_read_one_by_one(
    examples: list[dict[str, NDArray[Any]]], held: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "HELD", 1 << 20 if held else -1)
        store = Store.write(Path(folder) / "store", iter(examples))
        some = data.draw(st.lists(st.integers(0, len(examples) - 1), max_size=6)) if examples else []
        taken = store.take(np.array(some, np.int64))
        assert len(taken) == len(some)
        assert all(same(row, store[number]) for row, number in zip(taken, some, strict=True))
        assert [len(part) for part in (taken[1:], taken[:1])] == [max(0, len(some) - 1), min(1, len(some))]
        by_one = Rows(store[number] for number in some)
        for name in examples[0] if some else ():
            for one, other in zip(taken.flat(name), by_one.flat(name), strict=True):
                assert one.tobytes() == other.tobytes()
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert taken.lengths(name).tolist() == by_one.lengths(name).tolist()
            assert taken.size(name) == by_one.size(name)


def test_what_is_taken_is_a_copy(tmp_path: Path) -> None:
    taken = three(tmp_path).take(np.array([2, 2]))
    taken[0]["words"][:] = 99
    taken.flat("words").values[:] = 99
    assert taken[1]["words"].tolist() == [0, 1, 2]


def test_a_store_with_broken_offsets_is_not_taken_from(tmp_path: Path) -> None:
    store = three(tmp_path)
    offsets = np.fromfile(store.folder / "offsets", np.int64)
    offsets[2] = 4  # above the next one
    offsets.tofile(store.folder / "offsets")
    with pytest.raises(DataError, match=r"rows of words in .* are broken. Remove that folder."):
        Store(store.folder).take(np.array([0]))


def test_many_rows_are_written_as_few_are(tmp_path: Path) -> None:
    lengths = [n % 3 for n in range(2 * module.WRITTEN_AT_ONCE + 5)]
    store = Store.write(tmp_path / "store", ({"ids": np.full(length, length, np.int32)} for length in lengths))
    assert store.lengths("ids").tolist() == lengths
    assert all(store[row]["ids"].tolist() == [length] * length for row, length in list(enumerate(lengths))[::97])


@given(
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    width=st.sampled_from([None, 0, 3]),
    fill=st.sampled_from([0, -100]),
)
def test_padded_rows_hold_each_row_from_the_left(lengths: list[int], width: int | None, fill: int) -> None:
    shapes = [(length,) if width is None else (length, width) for length in lengths]
    rows = [np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1 for shape in shapes]
    whole = Rows([{"ids": row} for row in rows]).flat("ids").padded(np.int64, fill)
    assert whole.dtype == np.int64
    assert whole.shape[:2] == (len(rows), max(lengths))
    for padded, row in zip(whole, rows, strict=True):
        assert padded[: len(row)].tolist() == row.tolist()
        assert (padded[len(row) :] == fill).all()


def test_rows_have_a_field_where_each_of_them_has_it(tmp_path: Path) -> None:
    both, one = {"a": np.zeros(1), "b": np.zeros(2)}, {"a": np.zeros(1)}
    assert Rows([both, both]).has("b")
    assert not Rows([both, one]).has("b")
    taken = Store.write(tmp_path / "store", [both, both]).take(np.array([1]))
    assert taken.has("b")
    assert not taken.has("c")
