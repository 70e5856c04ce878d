"""Parquet: what comes out is what went in, and what cannot is said."""

from __future__ import annotations

import datetime
import math
import os
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data import rows
from recurra.errors import DataError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(file: Path, columns: Mapping[str, Any], **options: Any) -> Path:
    parquet.write_table(pa.table(dict(columns)), file, **options)
    return file


UNREADABLE = {
    "struct<b: int64>": pa.array([{"b": 1}]),
    "binary": pa.array([b"x"]),
    "list<element: date32[day]>": pa.array([[0]], pa.list_(pa.date32())),
    "decimal128(3, 2)": pa.array([Decimal("1.25")]),
    "time64[us]": pa.array([0], pa.time64("us")),
    "duration[us]": pa.array([0], pa.duration("us")),
    "fixed_size_binary[2]": pa.array([b"ab"], pa.binary(2)),
    "map<string, int64": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "list<element: binary>": pa.array([[b"x"]]),
    "list<element: struct<b: int64>>": pa.array([[{"b": 1}]]),
    "list<element: list<element: list<element: list<": pa.array([[[[[1]]]]]),
}

REFUSED = {
    "nan": (pa.array([1.0, math.nan]), "row 2: the value of 'a' is infinite or NaN"),
    "infinity": (pa.array([math.inf]), "row 1: the value of 'a' is infinite or NaN"),
    "nan in a list": (pa.array([[1.0], [0.0, math.nan]]), "row 2: the value of 'a' is infinite or NaN"),
    "null among lists": (pa.array([[[1], None]]), "row 1: the value of 'a' mixes arrays with other values"),
}

WHOLE = b"PAR1" + b"\x00" * 40 + b"PAR1"

CORRUPT = {
    "empty": b"",
    "text": b"text,label\n",
    "only the beginning": b"PAR1",
    "only the marks": b"PAR1PAR1",
    "marks around nothing": WHOLE,
    "a footer longer than the file": b"PAR1" + b"\xff\xff\x00\x00" + b"PAR1",
    "gzip": b"\x1f\x8b\x08\x00",
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_column_of_another_type_is_named_with_its_type(kind: str, tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"ok": pa.array(["x"]), "odd": UNREADABLE[kind]})
    with pytest.raises(DataError) as refusal:
        list(rows(file))
    message = str(refusal.value)
    assert message.startswith(f"{file}: the column 'odd' has the type ")
    assert kind in message.replace("child: ", "").replace("item: ", "element: ")
    assert "list only the columns that you need in data.columns." in message
    assert [row.values for row in rows(file, columns=["ok"])] == [{"ok": "x"}]


DATES = {
    "2026-11-15": pa.array(["2026-11-15"]).cast(pa.date32()),
    "2026-11-15 08:30:00": pa.array(["2026-11-15T08:30:00"]).cast(pa.timestamp("s")),
    "2026-11-15 08:30:00.000250": pa.array(["2026-11-15T08:30:00.000250"]).cast(pa.timestamp("us")),
    "2026-11-15 08:30:00.000000250": pa.array(["2026-11-15T08:30:00.000000250"]).cast(pa.timestamp("ns")),
    "2026-11-15 08:30:00Z": pa.array(["2026-11-15T08:30:00Z"]).cast(pa.timestamp("s", "UTC")),
}


@pytest.mark.parametrize("text", DATES)
def test_dates_and_times_are_texts_that_python_reads(text: str, tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"time": pa.concat_arrays([DATES[text], pa.nulls(1, DATES[text].type)])})
    found = [row.values["time"] for row in rows(file)]
    assert found in ([text, None], [f"{text[:-1]}.000Z", None], [f"{text}.000", None])  # Parquet knows no seconds
    assert datetime.datetime.fromisoformat(str(found[0])).year == 2026


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_no_model_can_take_is_refused_with_its_row(name: str, tmp_path: Path) -> None:
    array, message = REFUSED[name]
    file = written(tmp_path / "a.parquet", {"a": array})
    with pytest.raises(DataError) as refusal:
        list(rows(file))
    assert str(refusal.value).startswith(f"{file}: {message}")


@pytest.mark.parametrize("name", CORRUPT)
def test_what_is_not_parquet_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(CORRUPT[name])
    with pytest.raises(DataError) as refusal:
        list(rows(file))
    assert str(refusal.value).startswith(f"{file}: this is not a Parquet file, or it is corrupt; 0 rows were read (")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"a": list(range(1000))})
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match="this is not a Parquet file, or it is corrupt"):
        list(rows(file))


def test_a_table_without_rows_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty: it has no rows"):
        list(rows(written(tmp_path / "a.parquet", {"a": pa.array([], pa.string())})))


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.parquet: the table has no columns\."):
        list(rows(written(tmp_path / "a.parquet", {})))


def test_a_reader_that_stops_early_closes_the_file(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"a": list(range(5000))}, row_group_size=100)
    before = len(os.listdir("/proc/self/fd"))
    stream = rows(file)
    assert next(stream).values == {"a": 0}
    del stream
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"text": ["x"], "lable": ["y"]})
    with pytest.raises(DataError, match=r"there is no column 'label'\. Did you mean 'lable'\? Known: text, lable\."):
        list(rows(file, columns=["text", "label"]))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), file)
    with pytest.raises(DataError, match=r"there are 2 columns called 'a'\. Rename them\."):
        list(rows(file))


def test_a_compressed_parquet_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is compressed, but Parquet files are compressed already\. Unpack it first\."):
        list(rows(tmp_path / "a.parquet.gz"))


def test_a_missing_file_is_said_before_its_content(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", {"a": [1]})
    with pytest.raises(DataError, match=r"there is no file '.*b\.parquet'\. Did you mean '.*a\.parquet'"):
        list(rows(tmp_path / "b.parquet"))


def test_without_pyarrow_the_way_to_get_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"needs the pyarrow package: pip install 'recurra\[data\]'"):
        list(rows(tmp_path / "a.parquet"))


def test_nulls_are_none_and_true_is_a_word_and_dictionaries_are_texts(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.parquet",
        {
            "text": pa.array(["x", None]),
            "flag": pa.array([True, False]),
            "label": pa.array(["p", "n"]).dictionary_encode(),
            "half": pa.array([0.5, 1.5], pa.float16()),
            "nothing": pa.array([None, None]),
            "frames": pa.array([[[1.0, 2.0]], []]),
        },
    )
    first, second = rows(file)
    assert first.values == {
        "text": "x", "flag": "true", "label": "p", "half": 0.5, "nothing": None, "frames": [[1.0, 2.0]]
    }  # fmt: skip
    assert second.values["text"] is None
    assert second.values["frames"] == []
    assert (first.line, second.line) == (1, 2)


def test_columns_may_be_renamed(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"body": ["x"], "stars": [5], "rest": ["z"]})
    assert [row.values for row in rows(file, columns={"text": "body", "label": "stars"})] == [{"text": "x", "label": 5}]


def test_rows_are_numbered_across_batches_and_row_groups(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", {"a": list(range(5000))}, row_group_size=700)
    assert [(row.values["a"], row.line) for row in rows(file)] == [(k, k + 1) for k in range(5000)]


texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "text": texts,
                "number": numbers,
                "whole": st.integers(-(2**62), 2**62),
                "words": st.lists(texts, max_size=3),
                "frames": st.lists(st.lists(numbers, max_size=3), max_size=3),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, examples: list[dict[str, Any]]) -> None:
    schema = pa.schema(
        {
            "text": pa.string(),
            "number": pa.float64(),
            "whole": pa.int64(),
            "words": pa.list_(pa.string()),
            "frames": pa.list_(pa.list_(pa.float64())),
        }
    )
    file = tmp_path_factory.getbasetemp() / "round_trip.parquet"
    parquet.write_table(pa.Table.from_pylist(examples, schema=schema), file)
    assert [dict(row.values) for row in rows(file)] == examples
