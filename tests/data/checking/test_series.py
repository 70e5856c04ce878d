"""Which columns of a table are taken for a time, for values and for the name of a series."""

from __future__ import annotations

import pytest

from recurra.data.checking.series import SeriesSurvey, SeriesTable


def seen(names: list[str], rows: list[list[object]], format: str = "csv", labels: tuple[str, ...] = ()) -> object:
    survey = SeriesSurvey()
    for row in rows:
        survey.see(dict(zip(names, row, strict=True)))  # type: ignore[arg-type]
    return survey.found(format, labels)


TWO = ["column1", "column2"]


@pytest.mark.parametrize(
    ("names", "rows", "expected"),
    [
        (TWO, [["1", "5"], ["2", "4"], ["3", "9"]], ("column1", ["column2"])),
        (TWO, [["5", "1"], ["4", "2"], ["9", "3"]], None),  # numbers that grow are a time only in the first column
        (TWO, [["5", "2026-01-01"], ["4", "2026-01-02"], ["9", "2026-01-03T08:30"]], ("column2", ["column1"])),
        (TWO, [["t", "x"], ["1", "5"], ["2", "4"], ["3", "9"]], ("t", ["x"])),
        (TWO, [["t", "x"], ["1", "5"], ["2", "4"]], None),  # too short
        (TWO, [["t", "x"], ["1", "5"], ["2", "4"], ["2", "9"]], None),
        (TWO, [["t", "x"], ["1", "5"], ["2", "many"], ["3", "9"]], None),
        (TWO, [["t", "x"], ["1", "5"], ["", "4"], ["3", "9"]], None),
        (["a", "time"], [[3, 9], [4, 10], [5, 11]], ("time", ["a"])),
        (["id", "a"], [[3, 9], [4, 10], [5, 11]], None),
        (["time", "a"], [[3, [1.0]], [4, [1.0]], [5, [2.0]]], None),
    ],
)
def test_a_table_is_a_series_where_a_time_grows_beside_numbers(
    names: list[str], rows: list[list[object]], expected: tuple[str, list[str]] | None
) -> None:
    found = seen(names, rows)
    assert (found if expected is None else (found.time, found.values)) == expected  # type: ignore[attr-defined]


def test_a_time_that_starts_anew_needs_a_column_that_names_the_series() -> None:
    rows: list[list[object]] = [
        ["2026-01", "a", 1.0],
        ["2026-02", "a", 2.0],
        ["2026-01", "b", 1.0],
        ["2026-02", "b", 3],
    ]
    assert seen(["date", "shop", "sold"], rows) is None
    found = seen(["date", "shop", "sold"], rows, labels=("shop",))
    assert found == SeriesTable("date", "shop", ["sold"], [], has_missing=False, left_out=[])
    named = seen(["date", "series", "sold"], rows)
    assert named == SeriesTable("date", "series", ["sold"], [], has_missing=False, left_out=[])


def test_what_is_no_value_is_told_apart() -> None:
    rows: list[list[object]] = [[1, 7, None, "x"], [2, 8, 0.5, "y"], [3, 9, 0.25, "z"]]
    found = seen(["time", "id", "heat", "note"], rows, "jsonl")
    assert found == SeriesTable("time", None, ["heat"], ["id"], has_missing=True, left_out=["note"])
