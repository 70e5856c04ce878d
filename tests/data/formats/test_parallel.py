"""Parallel files: one path names several, and their lines belong together by number."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.files import parallel_files
from recurra.data.formats import Parallel, reader, rows
from recurra.errors import ConfigError, DataError


def written(folder: Path, *texts: str) -> str:
    names = []
    for number, text in enumerate(texts):
        file = folder / f"a.{('en', 'de', 'fr')[number]}"
        file.write_bytes(text.encode())
        names.append(str(file))
    return ",".join(names)


def test_lines_with_one_number_are_a_source_and_a_target(tmp_path: Path) -> None:
    found = list(rows(written(tmp_path, "a cat\na dog\n", "eine Katze\r\nein Hund")))
    assert [(dict(row.values), row.line) for row in found] == [
        ({"source": "a cat", "target": "eine Katze"}, 1),
        ({"source": "a dog", "target": "ein Hund"}, 2),
    ]


def test_compressed_files_and_any_ending_are_read(tmp_path: Path) -> None:
    (tmp_path / "left.gz").write_bytes(gzip.compress(b"one\n"))
    (tmp_path / "right").write_text("eins\n")
    [row] = rows(f"{tmp_path / 'left.gz'}, {tmp_path / 'right'}")
    assert dict(row.values) == {"source": "one", "target": "eins"}


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    [row] = rows(written(tmp_path, "a\u2028b\x85c\n", "d\x0be\n"))
    assert dict(row.values) == {"source": "a\u2028b\x85c", "target": "d\x0be"}


def test_a_file_whose_name_has_a_comma_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "one,two.txt"
    file.write_text("text\n")
    assert parallel_files(file) == (str(file),)
    assert dict(next(rows(file)).values) == {"text": "text"}


def test_more_files_need_names_and_a_name_given_twice_gathers(tmp_path: Path) -> None:
    path = written(tmp_path, "a\n", "b\n", "c\n")
    [row] = rows(path, columns=["source", "target", "source"])
    assert dict(row.values) == {"source": ["a", "c"], "target": "b"}
    [row] = rows(path, columns=["source", "_", "target"])
    assert dict(row.values) == {"source": "a", "target": "c"}
    with pytest.raises(DataError, match=r"names 3 files, but there are 2 columns \(source, target\)"):
        list(rows(path))


def test_different_numbers_of_lines_name_both_files_and_the_first_line_without_a_partner(tmp_path: Path) -> None:
    with pytest.raises(DataError) as refusal:
        list(rows(written(tmp_path, "a\nb\n", "a\nb\nc\nd\n")))
    short, long = str(tmp_path / "a.en"), str(tmp_path / "a.de")
    assert str(refusal.value).startswith(f"{long}:3: this line has no counterpart: {long} has 4 lines, but {short} 2.")
    assert "Find the line where they stop matching; each text must be on" in str(refusal.value)


def test_blank_lines_left_over_are_said_to_be_blank(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.en:2: .* has 3 lines, .* 1\. .* left over are blank: remove them\."):
        list(rows(written(tmp_path, "a\n\n \n", "b\n")))


def test_two_empty_files_have_no_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is empty: it has no rows"):
        list(rows(written(tmp_path, "", "")))


@pytest.mark.parametrize("path", ["a.en,", ",a.de", ",", "a.en,,a.de"])
def test_a_file_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(DataError, match="is one file, but the parallel format"):
        list(rows(path))


def test_one_file_is_not_parallel(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'"train\.en,train\.de"'):
        list(rows(written(tmp_path, "a\n"), format="parallel"))


def test_columns_must_name_one_of_the_files() -> None:
    with pytest.raises(ConfigError, match="must give at least one of the files a column name, such as source"):
        Parallel(columns=["_", "_"])


def test_a_missing_file_is_said_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\n")
    with pytest.raises(DataError, match=r"there is no file '[^,]*a\.dee'\."):
        list(rows(f"{tmp_path / 'a.en'},{tmp_path / 'a.dee'}"))


def test_bytes_that_are_no_text_are_said_by_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, "a\nb\n", "c\nd\n")
    (tmp_path / "a.de").write_bytes(b"c\n\xff\n")
    with pytest.raises(DataError, match=r"a\.de:2: byte 1 of the line, 0xff, is not UTF-8"):
        list(rows(path))


def test_an_unknown_ending_points_to_parallel_files(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\n")
    with pytest.raises(
        DataError,
        match=r'For two parallel files, give both names with a comma between them, as in "train\.en,train\.de"\.',
    ):
        reader(tmp_path / "a.en")


TEXT = st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=20))
def test_every_line_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str]]) -> None:
    sides = ["".join(f"{text}\n" for text in side) for side in zip(*texts, strict=True)]
    if sides[0].startswith("\ufeff") or sides[1].startswith("\ufeff"):
        return  # a byte order mark is no part of a text
    path = written(tmp_path_factory.mktemp("parallel"), *sides)
    assert [(row.values["source"], row.values["target"]) for row in rows(path)] == texts
