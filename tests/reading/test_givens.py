"""What is given is read from every kind of file, with its columns named or found; and from what is typed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from recurra.config import Vec2SeqData
from recurra.config.image import ImageData
from recurra.errors import DataError
from recurra.reading.givens import Given, asked, described_input, givens, key_of, with_columns
from recurra.settings import settings_from
from tests.tasks.small_givens import COLOURS, SHAPES, colours, drawings, picture, pixels, places, strokes
from tests.tasks.small_pairs import jsonl, table


def read(file: str, **settings: object) -> list[Given]:
    return list(givens([file], found(file, **settings)))


def found(file: str, **settings: object) -> Vec2SeqData:
    return with_columns(settings_from(Vec2SeqData, {"train": file, **settings}))


def vectors(rows: Iterable[Given]) -> list[list[float]]:
    return [row.vector.tolist() for row in rows if row.vector is not None]


def are_the_colours(rows: list[Given]) -> bool:
    return list(zip((row.target for row in rows), vectors(rows), strict=True)) == [(n, [*rgb]) for n, rgb in COLOURS]


def test_a_table_without_a_header_has_a_text_and_numbers(tmp_path: Path) -> None:
    file = colours(tmp_path)
    assert found(file).columns == ["target", "vector", "vector", "vector"]
    assert found(file).target.tokens == "characters"
    assert are_the_colours(read(file))
    assert are_the_colours(read(file, columns=["target", "vector", "vector", "vector"]))
    assert [row.place for row in read(file)[:2]] == [f"{file}:1", f"{file}:2"]
    other = table(tmp_path / "last.tsv", [(*map(str, rgb), name) for name, rgb in COLOURS])
    assert found(other).columns == ["vector", "vector", "vector", "target"]
    assert are_the_colours(read(other))


def test_a_name_may_look_like_a_number_where_others_do_not(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("1975", "1", "2"), ("infinity", "3", "4"), ("red", "5", "6")])
    assert [row.target for row in read(file)] == ["1975", "infinity", "red"]


def test_a_number_that_is_missing_somewhere_is_said_with_its_place(tmp_path: Path) -> None:
    rows = [(name, *map(str, rgb)) for name, rgb in COLOURS] * 4
    file = table(tmp_path / "a.tsv", [*rows, ("gap", "1", "", "3")])
    with pytest.raises(DataError, match=r"a\.tsv:33: 'vector' must hold numbers, .*but is \['1', '', '3'\]"):
        read(file)


def test_a_named_column_of_many_leaves_the_only_one_of_words_to_be_written(tmp_path: Path) -> None:
    data = found(table(tmp_path / "a.tsv", [("red", "9", "0"), ("blue", "0", "8")]), vector=["column2"])
    assert (data.vector, data.target.column) == (["column2"], "column1")


def test_one_column_may_hold_all_numbers(tmp_path: Path) -> None:
    for text in ("{} {} {}", "[{}, {}, {}]"):
        rows = [(name, text.format(*rgb)) for name, rgb in COLOURS]
        file = table(tmp_path / "a.tsv", [("target", "vector"), *rows])
        assert are_the_colours(read(file))
    assert are_the_colours(read(table(tmp_path / "b.tsv", [(name, "{} {} {}".format(*rgb)) for name, rgb in COLOURS])))


def test_a_table_with_a_header_is_read_by_its_names(tmp_path: Path) -> None:
    rows = [("name", "r", "g", "b"), *((name, *map(str, rgb)) for name, rgb in COLOURS)]
    file = table(tmp_path / "a.tsv", rows)
    assert are_the_colours(read(file, vector=["r", "g", "b"]))
    assert are_the_colours(read(file))  # numbers below words are below a header
    assert found(file).vector == ["r", "g", "b"]
    assert [row.line for row in read(file)] == [*range(2, 10)]
    assert vectors(read(file, vector=["b", "r"]))[0] == [0, 255]
    comma = tmp_path / "a.csv"
    comma.write_text("".join(",".join(row) + "\n" for row in rows))
    assert are_the_colours(read(str(comma)))


def test_named_columns_of_every_kind_of_file(tmp_path: Path) -> None:
    names, numbers = [name for name, _ in COLOURS], np.array([rgb for _, rgb in COLOURS], np.float32)
    one = jsonl(tmp_path / "a.jsonl", [{"vector": rgb, "target": name} for name, rgb in COLOURS])
    keys = jsonl(tmp_path / "b.jsonl", [{"name": name, **dict(zip("rgb", rgb, strict=True))} for name, rgb in COLOURS])
    parts = jsonl(tmp_path / "c.jsonl", [{"a": list(rgb[:2]), "b": rgb[2], "caption": name} for name, rgb in COLOURS])
    np.savez(tmp_path / "a.npz", vector=numbers, target=np.array(names))
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"vector": numbers.tolist(), "name": names, "id": list(range(8))}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    for file in (one, keys, parts, str(tmp_path / "a.npz"), str(tmp_path / "a.parquet")):
        assert are_the_colours(read(file)), file
    assert found(parts).vector == ["a", "b"]
    assert found(keys).vector == ["r", "g", "b"]


def test_places_pictures_and_strokes_are_found_by_the_names_of_their_columns(tmp_path: Path) -> None:
    shapes = [row.places.shape for row in read(places(tmp_path)) if row.places is not None]
    assert shapes == [(3 + number % 4, 2) for number in range(8)]
    shapes = [row.places.shape for row in read(places(tmp_path, rows=2)) if row.places is not None]
    assert shapes == [(2, 3 + number % 4, 2) for number in range(8)]
    assert [row.picture for row in read(strokes(tmp_path))] == drawings()
    assert found(strokes(tmp_path)).image.strokes == "strokes"
    assert [row.target for row in read(pixels(tmp_path))] == SHAPES
    assert found(pixels(tmp_path)).image.column == "image"
    np.savez(tmp_path / "a.npz", features=np.zeros((2, 3, 4)), text=np.array(["a b", "c"]))
    assert found(str(tmp_path / "a.npz")).frames == "features"
    cells = table(tmp_path / "a.tsv", [("strokes", "target"), (json.dumps(drawings()[0]), "up")])
    assert read(cells)[0].picture == drawings()[0]
    assert read(table(tmp_path / "b.tsv", [("file", "latex"), ("a.png", "x + 1")]))[0].target == "x + 1"


def test_the_path_of_a_picture_starts_from_the_file_that_names_it(tmp_path: Path) -> None:
    file = table(tmp_path / "a.tsv", [("image", "target"), ("pictures/a.png", "a")])
    assert read(file)[0].picture == str(tmp_path / "pictures" / "a.png")
    data = found(file)
    assert [row.picture for row in asked(None, ["b.png"], data)] == ["b.png"]
    (tmp_path / "list.txt").write_text("c.png\n")
    assert [row.picture for row in asked(tmp_path / "list.txt", ["c.png"], data)] == [str(tmp_path / "c.png")]
    assert [row.picture for row in asked(tmp_path / "d.PNG", [], data)] == [str(tmp_path / "d.PNG")]


def test_a_question_is_typed_in_many_ways(tmp_path: Path) -> None:
    for settings in ({}, {"columns": ["target", "vector", "vector", "vector"]}):
        data = found(colours(tmp_path), **settings)
        typed = ["255 0 10", "255\t0\t10", "[255, 0, 10]", "255, 0, 10", "255,0,10", " 255  0 1e1 ", [255, 0, 10]]
        assert vectors(asked(None, typed, data)) == [[255, 0, 10]] * len(typed)
    data = found(jsonl(tmp_path / "c.jsonl", [{"a": [1, 2], "b": 3, "target": "x"}]))
    assert vectors(asked(None, ["255 0 10"], data)) == [[255, 0, 10]]
    data = found(places(tmp_path))
    assert [row.places.tolist() for row in asked(None, ["[[1, 2]]", [[1, 2]]], data) if row.places is not None] == [
        [[1, 2]]
    ] * 2
    data = found(pixels(tmp_path))
    assert [row.picture for row in asked(None, ["[[0, 255]]", [[0, 255]], "a b.png"], data)] == [
        [[0, 255]],
        [[0, 255]],
        "a b.png",
    ]
    data = found(strokes(tmp_path))
    assert [row.picture for row in asked(None, [json.dumps(drawings()[1])], data)] == [drawings()[1]]


def test_questions_of_a_file_may_lack_the_target(tmp_path: Path) -> None:
    rows = [tuple(map(str, rgb)) for _, rgb in COLOURS]
    header = table(tmp_path / "header.tsv", [("name", "r", "g", "b"), *((n, *map(str, c)) for n, c in COLOURS)])
    alone = table(tmp_path / "alone.tsv", rows)
    named = table(tmp_path / "named.tsv", [("r", "g", "b"), *rows])
    lines = jsonl(tmp_path / "lines.jsonl", [{"vector": rgb} for _, rgb in COLOURS])
    asked_for = [[*rgb] for _, rgb in COLOURS]
    bare, full = found(colours(tmp_path)), found(header)
    for file, data in ((alone, bare), (colours(tmp_path), bare), (alone, full), (named, full), (header, full)):
        assert vectors(asked(file, [], data)) == asked_for
    assert vectors(asked(lines, [], bare)) == asked_for
    assert {row.target for row in asked(alone, [], bare)} == {None}
    assert [row.target for row in asked(header, [], full)] == [name for name, _ in COLOURS]


def test_the_tokens_suit_the_targets(tmp_path: Path) -> None:
    def tokens(*targets: str) -> object:
        return found(jsonl(tmp_path / "a.jsonl", [{"vector": [1], "target": each} for each in targets])).target.tokens

    assert tokens("red", "dark green") == "characters"
    assert tokens(r"\frac { a } { b }", "x + 1") == "symbols"
    caption = "a man in a red coat walks his small dog along the beach"
    assert tokens(caption, caption) == "words"


def test_what_is_given_is_told_in_a_few_words_and_told_apart() -> None:
    vector = Given(np.arange(9, dtype=np.float32), None, None, None, "a:1", 0, 1)
    assert described_input(vector) == "0 1 2 3 4 5 6 7 …"
    grid = Given(None, np.zeros((2, 3, 4), np.float32), None, None, "a:1", 0, 1)
    assert described_input(grid) == "features of 2 × 3 places"
    image = Given(None, None, picture(1).tolist(), None, "a.jsonl:7", 0, 7)
    assert described_input(image) == "the picture of a.jsonl:7"
    assert described_input(image._replace(picture="a.png")) == "a.png"
    flat = grid._replace(places=np.zeros((6, 4), np.float32))
    others = [vector._replace(vector=np.zeros(9, np.float32)), image._replace(picture=picture(2).tolist())]
    keys = [key_of(each) for each in (vector, grid, image, flat, *others, image._replace(picture="a.png"))]
    assert len({*keys}) == len(keys)
    assert key_of(image) == key_of(image._replace(line=9))


def test_a_picture_is_given_or_drawn_and_stands_alone() -> None:
    for given in ({"image": {"column": "a"}}, {"image": {"strokes": "a"}}, {"frames": "b"}):
        with pytest.raises(
            Exception, match="cannot be used together: the input is either a vector, a list of feature vectors or a pi"
        ):
            settings_from(Vec2SeqData, {"vector": ["x"], **given})
    assert ImageData(strokes="a").given == "a"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("255 zero 0", "input:1: 'vector' must hold numbers, as .*, but is .*'zero'"),
        ("[255, 0", "input:1: what is given is a JSON list of numbers, but found '.255, 0'"),
        ('{"vector": [1]}', "input:1: what is given is a JSON list of numbers, but this is an object"),
        ("", "input:1: 'vector' has no numbers"),
        ("255 nan 0", "input:1: 'vector' contains a number that is missing, infinite or NaN"),
        ("1e300 0 0", "input:1: 'vector' contains a number that is too large"),
        ([[1, 2, 3]], "input:1: 'vector' must hold numbers"),
        ([1, None, 3], "input:1: 'vector' contains a number that is missing"),
    ],
)
def test_what_is_typed_wrong_is_said(typed: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        list(asked(None, [typed], found(colours(tmp_path))))
