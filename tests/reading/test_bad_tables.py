"""Fifty tables that are not as they should be: each is refused with its file and line, or read, and said how.

Of every kind the table says which it is, so that nothing is read in silence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from recurra.errors import RecurraError
from recurra.runs import setup
from recurra.training.preparation import prepared

DAYS = [f"2024-01-{day:02}" for day in range(1, 13)]


def days(*changes: tuple[int, str | None], header: str = "date,x", rows: int = 12) -> str:
    """A table of days in which some lines, counted as an editor counts them, are others; None is left out."""
    lines: list[str | None] = [header, *(f"{day},{number % 5}.5" for number, day in enumerate(DAYS[:rows]))]
    for line, text in changes:
        lines[line - 1] = text
    return "\n".join(line for line in lines if line is not None) + "\n"


class Kind(NamedTuple):
    """A table, its settings, and what becomes of it: a refusal, or a notice and what is read."""

    title: str
    text: str | bytes
    refused: str = ""  # what is said, in which {} is the file
    noticed: str = ""
    read: Any = None  # values of the first series, or None: not compared
    options: tuple[str, ...] = ()
    name: str = "a.csv"


KINDS = [
    # Times
    Kind("a time twice", days((5, "2024-01-03,9")), r"{}:5: the time '2024-01-03' is there twice"),
    Kind("times out of order", days((5, "2023-12-01,9")), r"{}:5: the time '2023-12-01' comes after a later one"),
    Kind("a time that is none", days((5, "soon,9")), r"{}:5: 'date' must be a number or a date such as .*'soon'"),
    Kind("an empty time", days((5, ",9")), r"{}:5: the row has no time: 'date' is empty"),
    Kind("a month 13", days((5, "2024-13-01,9")), r"{}:5: 'date' must be a number or a date"),
    Kind("the 30th of February", days((5, "2024-02-30,9")), r"{}:5: 'date' must be a number or a date"),
    Kind(
        "a number among dates", days((5, "45296,9")), r"{}:5: 'date' is '45296', but earlier rows contain another kind"
    ),
    Kind(
        "a date among numbers",
        "t,x\n1,1\n2,2\n3,3\n4,4\n5,5\n2024-01-01,6\n",
        r"{}:7: 't' is '2024-01-01', but earlier",
        options=("data.time=t",),
    ),
    Kind(
        "an offset among plain times",
        "time,x\n2024-01-01T00:00,1\n2024-01-01T01:00+02:00,2\n",
        r"{}:3: 'time' is '2024-01-01T01:00\+02:00', but earlier rows contain another kind",
    ),
    Kind("an infinite time", "time,x\n1,1\ninf,2\n", r"{}:3: 'time' must be a number or a date"),
    Kind(
        "day and month that nothing tells apart",
        "date,x\n01/02/2024,1\n01/03/2024,2\n",
        r"{}:2: 'date' is '01/02/2024': the day and the month cannot be told apart",
    ),
    Kind("two-digit years", "date,x\n01.02.24,1\n02.02.24,2\n", r"{}:2: 'date' must be a number or a date"),
    Kind("a total at the end", days((13, "Total,30")), r"{}:13: 'date' must be a number or a date .*'Total'"),
    Kind("a century too late", days((13, "2204-01-12,1")), r"{}:13: .* steps are missing before the time '2204-01-12'"),
    Kind(
        "a time between the steps",
        days((5, "2024-01-04T07:00,9")),
        noticed="",
        read=None,
        refused=r"{}:5: the time '2024-01-04 07:00' is no whole number of steps after the first one of its series: a "
        r"step is a day",
        options=("data.frequency=1d",),
    ),
    Kind(
        "an hour that does not exist",
        "time,x\n2024-03-31 01:30,1\n2024-03-31 02:30,2\n",
        r"{}:3: the time '2024-03-31 02:30' does not exist in Europe/Berlin",
        options=("data.timezone=Europe/Berlin",),
    ),
    Kind(
        "an hour that comes twice",
        "time,x\n2024-10-27 01:00,1\n2024-10-27 02:00,2\n2024-10-27 02:00,3\n",
        r"{}:4: the time '2024-10-27 02:00' is there twice.* set data.timezone",
    ),
    Kind(
        "a frequency of another kind",
        days(),
        r"{}:2: the times of 'date' are dates, so data.frequency must have a unit",
        options=("data.frequency=2",),
    ),
    Kind(
        "a day left out",
        days((6, None)),
        noticed="1 step without a row is read as missing",
        read=[0.5, 1.5, 2.5, 3.5, 3.5, 0.5],
    ),
    Kind(
        "irregular times",
        "time,x\n" + "".join(f"{t},{t % 4}\n" for t in (1, 4, 5, 11, 13, 20, 26, 27, 35)),
        noticed="times are irregular, so rows are counted; data.elapsed = true reads",
        read=[1, 0, 1, 3],
    ),
    Kind(
        "no time at all", "x\n" + "1\n3\n" * 5, noticed="no column is the time, the rows are in order", read=[1, 3, 1]
    ),
    # Values
    Kind("a word", days((4, "2024-01-03,many")), r"{}:4: 'x' must be a number, but is 'many'"),
    Kind("an infinite value", days((4, "2024-01-03,-inf")), r"{}:4: 'x' must be a finite number, but is '-inf'"),
    Kind("a number out of range", days((4, "2024-01-03,1e999")), r"{}:4: 'x' must be a finite number, but is '1e999'"),
    Kind(
        "thousands",
        'date,x\n2024-01-01,"1,234"\n2024-01-02,"1,250"\n',
        r"{}:2: 'x' is '1,234': the comma could be",
        options=("data.values=x",),
    ),
    Kind("a unit", days((4, "2024-01-03,12 kg")), r"{}:4: 'x' must be a number, but is '12 kg'"),
    Kind("a sign of Excel", days((4, "2024-01-03,#REF!")), r"{}:4: 'x' must be a number, but is '#REF!'"),
    Kind(
        "an empty value",
        days((4, "2024-01-03,")),
        noticed="1 missing value is filled with the one before",
        read=[0.5, 1.5, 1.5],
    ),
    Kind(
        "NA",
        days((4, "2024-01-03,N/A"), (5, "2024-01-04,?")),
        noticed="2 missing values are filled",
        read=[0.5, 1.5, 1.5, 1.5],
    ),
    Kind(
        "an empty value that is refused",
        days((4, "2024-01-03,")),
        r"{}:4: the value of 'x' is missing",
        options=("data.missing=refuse",),
    ),
    Kind("a beginning without values", days((2, "2024-01-01,"), (3, "2024-01-02,")), read=[2.5, 3.5, 4.5]),
    Kind("a constant column", "date,x\n" + "".join(f"{day},5\n" for day in DAYS), r"the column 'x' of {} is constant"),
    Kind(
        "no numbers", "date,x\n" + "".join(f"{day},a\n" for day in DAYS), r"{}:2: forecasting needs a column of numbers"
    ),
    Kind(
        "nothing but missing values",
        "date,x,y\n" + "".join(f"{day},,a\n" for day in DAYS),
        r"{}:2: forecasting needs a column of numbers",
    ),
    # Series
    Kind("no series name", "series,date,x\na,2024-01-01,1\n,2024-01-02,2\n", r"{}:3: the row has no series name"),
    Kind(
        "two series without a column for them",
        days() + "2024-01-01,3\n2024-01-02,4\n",
        r"{}:14: the time '2024-01-01' comes after a later one.*data\.series = \"…\"",
    ),
    Kind(
        "a time of a series twice",
        "series,step,x\na,1,1\nb,1,2\na,2,3\nb,1,4\n",
        r"{}:5: the time '1' of 'b' is there twice",
    ),
    Kind(
        "one step in all",
        "date,x,y\n2024-01-01,3,4\n",
        r"no training examples are left: a series needs at least 2 steps",
    ),
    Kind(
        "one series of one step",
        "series,step,x\n" + "".join(f"a,{t},{t % 3}\n" for t in range(9)) + "b,0,7\n",
        noticed="left out 1 of 2 examples: a series needs at least 2 steps",
        read=[0, 1, 2],
    ),
    Kind(
        "a static column that changes",
        "series,step,x,size\na,1,1,3\na,2,2,4\n",
        r"{}:3: 'size' changes from 3.* to 4.* within the series 'a'",
        options=("data.static=size",),
    ),
    Kind(
        "a covariate with a word in it",
        "step,x,price\n1,1,3\n2,2,cheap\n",
        r"{}:3: 'price' must be a number, but is 'cheap'",
        options=("data.future=price",),
    ),
    Kind(
        "a covariate that is not there",
        "step,x\n1,1\n2,2\n",
        r"{}:2: there is no column 'price'",
        options=("data.future=price",),
    ),
    # Files
    Kind("an empty file", "", r"'{}' is empty"),
    Kind("a header alone", "date,x\n", r"{}"),
    Kind("a row with too few cells", days((4, "2024-01-03")), r"{}:4: found one column, but line 1 has 2"),
    Kind("a row with too many cells", days((4, "2024-01-03,1,2")), r"{}:4: found 3 columns, but line 1 has 2"),
    Kind("a blank line", days((4, "")), r"{}:4: this line is blank, and more lines follow"),
    Kind("an open quote", days((4, '2024-01-03,"1')), r"{}:4: a double quote is opened on this line and never closed"),
    Kind("bytes that are no text", b"date,x\n2024-01-01,1\n2024-01-02,\xff\xfe\n", r"{}:3: "),
    Kind(
        "a key left out",
        '{"t": 1, "x": 1}\n{"x": 2}\n',
        r"{}:2: there is no column 't'",
        name="a.jsonl",
        options=("data.time=t",),
    ),
    Kind(
        "a list as a value",
        '{"t": 1, "x": 1}\n{"t": 2, "x": [2]}\n',
        r"{}:2: 'x' must be a number, but is \[2\]",
        name="a.jsonl",
        options=("data.time=t",),
    ),
    Kind(
        "a null",
        '{"t": 1, "x": 1}\n{"t": 2, "x": null}\n{"t": 3, "x": 5}\n',
        noticed="1 missing value is filled",
        read=[1, 1, 5],
        name="a.jsonl",
        options=("data.time=t",),
    ),
    Kind("no JSON", '{"t": 1, "x": 1}\n{"t": 2,\n', r"{}:2: ", name="a.jsonl", options=("data.time=t",)),
]


def test_there_are_at_least_forty_kinds_and_each_says_what_becomes_of_it() -> None:
    assert len({kind.title for kind in KINDS}) == len(KINDS) >= 40
    assert all(kind.refused or kind.noticed or kind.read for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_a_bad_table_is_refused_with_its_line_or_read_as_it_is_said(tmp_path: Path, kind: Kind) -> None:
    file = tmp_path / kind.name
    file.write_bytes(kind.text if isinstance(kind.text, bytes) else kind.text.encode())
    said: list[str] = []

    def read() -> list[float]:
        this = setup("forecasting", given={"train": str(file)}, overrides=["data.cache=false", *kind.options])
        found = prepared(this.kind, this.settings, said.append)
        first: Any = next(iter(found.task.read([file])))
        return list(np.round(first.values[:, 0], 6))

    if kind.refused:
        with pytest.raises(RecurraError, match=kind.refused.replace("{}", re.escape(str(file)))):
            read()
        return
    values = read()
    assert kind.noticed in " | ".join(said), said
    if kind.read is not None:
        assert values[: len(kind.read)] == kind.read
