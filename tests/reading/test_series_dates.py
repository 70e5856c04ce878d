"""Dates and numbers as spreadsheets write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.config import ForecastingData
from recurra.errors import DataError
from recurra.reading.series import sequences, with_columns


def read(tmp_path: Path, text: str) -> list[list[float]]:
    file = tmp_path / "a.csv"
    file.write_text(text)
    data = with_columns(ForecastingData(train=str(file)), file)
    return next(sequences([file], data)).values.tolist()


def test_dates_with_the_day_or_the_month_first_are_understood_where_one_of_them_tells(tmp_path: Path) -> None:
    assert read(tmp_path, "date,x\n31/01/2023,1\n01/02/2023,2\n") == [[1], [2]]
    assert read(tmp_path, "date,x\n01/31/2023,1\n02/01/2023,2\n") == [[1], [2]]
    assert read(tmp_path, "date,x\n03.02.2023 10:00,1\n04.02.2023 09:00,2\n") == [[1], [2]]


def test_dates_whose_order_nothing_tells_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.csv:2: 'date' is '01/02/2023': the day and .*2026-11-15"):
        read(tmp_path, "date,x\n01/02/2023,1\n01/03/2023,2\n")


def test_a_decimal_comma_is_understood_and_one_of_thousands_is_named(tmp_path: Path) -> None:
    assert read(tmp_path, "time;x\n1;2,5\n2;0,125\n") == [[2.5], [0.125]]
    with pytest.raises(DataError, match=r"a\.csv:2: 'x' is '1,234': the comma could be a decimal point or a thousands"):
        read(tmp_path, "time;x\n1;1,234\n2;1,250\n")


def test_an_id_is_no_value(tmp_path: Path) -> None:
    assert read(tmp_path, "id,date,x\n7,2023-01-01,1\n8,2023-01-02,2\n") == [[1], [2]]
