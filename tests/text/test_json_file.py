"""JSON that every reader takes: NaN and infinity are null, whatever prints them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import recurra
from recurra.errors import DataError
from recurra.text.json_file import json_text, read_json, write_json


class Pair(NamedTuple):
    first: float
    second: object


def strictly(text: str) -> object:
    """What a reader makes of it that keeps to the standard."""

    def refuse(word: str) -> object:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_at_any_depth(odd: float) -> None:
    value = {"a": odd, "b": [1, {"c": (odd, 2.5)}], "d": Pair(odd, "ü"), "e": True, "f": None}
    expected = {"a": None, "b": [1, {"c": [None, 2.5]}], "d": [None, "ü"], "e": True, "f": None}
    assert strictly(json_text(value)) == expected
    assert strictly(json_text(value, indent=1, separators=(",", ":"))) == expected


def test_what_stands_for_an_array_is_null_where_it_is_not_finite() -> None:
    value = {"odd": np.array([1.0, np.nan]), "even": np.array([2])}
    assert strictly(json_text(value, default=lambda array: array.tolist())) == {"odd": [1.0, None], "even": [2]}
    with pytest.raises(TypeError):
        json_text({"odd": math.nan, "array": np.array([1.0])})


def test_files_hold_null_too(tmp_path: Path) -> None:
    write_json(tmp_path / "numbers.json", {"score": math.nan})
    assert strictly((tmp_path / "numbers.json").read_text()) == {"score": None}
    assert read_json(tmp_path / "numbers.json") == {"score": None}


def test_commands_and_the_server_write_json_in_this_way_alone() -> None:
    package = Path(recurra.__file__).parent
    files = [*(package / "commands").glob("*.py"), package / "runtime" / "server.py", package / "runs.py"]
    others = {"cells.py": 1}  # a default of an option, in a sentence
    assert len(files) > 5
    for file in files:
        assert file.read_text("utf-8").count("json.dumps(") == others.get(file.name, 0), file


def test_a_file_larger_than_any_of_its_kind_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('["' + "a" * 100 + '"]')
    with pytest.raises(DataError, match=r"a\.json cannot be read: it is larger than 100 bytes\."):
        read_json(path, most=100)
    path.write_text("[" + "[]," * 1_000_000 + "[]]")
    with pytest.raises(DataError, match=r"a\.json cannot be read: it has more than 1,000,000 lists and objects\."):
        read_json(path)


def test_brackets_in_words_are_not_counted_as_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    words = ['[{"\\'] * 600_000
    path.write_text(json.dumps(words))
    assert read_json(path) == words
