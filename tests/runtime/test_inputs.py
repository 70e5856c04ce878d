"""What a model is asked over the network: every kind of input, and each refusal in words."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.reading.schema import vector_schema
from recurra.runtime.inputs import LONGEST, MOST_NUMBERS, MOST_PIXELS, question
from recurra.views.pixels import write_png
from tests.runtime.small_tasks import KINDS, AnyTask, of_every_kind, prepared
from tests.tasks.small_pairs import table


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AnyTask]:
    return of_every_kind(tmp_path_factory.mktemp("data"))


def data_url(picture: Any) -> str:
    return f"data:image/png;base64,{base64.b64encode(write_png(picture)).decode()}"


def claimed(width: int, height: int) -> str:
    """A PNG that says how large it is, and has nothing of it."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = b"IDAT" + zlib.compress(b"\0")
    chunks = [
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (header, pixels)
    ]
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


GOOD: dict[str, object] = {
    "text": "the cat",
    "frames": [[1.0, 2.0], [3.0, 4.0]],
    "series": [1, 2.5, 3],
    "vector": [255, 0, 0],
    "places": [[1.0, 0.0], [2.0, 1.0]],
    "picture": data_url(np.full((9, 12), 7, np.uint8)),
    "strokes": [[[0, 9], [0, 9]], [[0, 9], [9, 0]]],
}


@pytest.mark.parametrize("name", KINDS)
def test_every_task_says_what_it_is_asked_with_and_takes_it(name: str, tasks: dict[str, AnyTask]) -> None:
    task = tasks[name]
    assert task.schema().kind == KINDS[name]
    task.encode(question(task, GOOD[KINDS[name]]))


def test_a_series_may_be_an_object_and_nothing_else_may(tasks: dict[str, AnyTask]) -> None:
    given = {"values": [1, 2.5, 3], "times": [4, 5, 7]}
    steps = question(tasks["forecasting"], given)
    assert steps.values[:, 0].tolist() == [1, 2.5, 2.5, 3], "the sixth step has no row"
    with pytest.raises(DataError, match="the input of this model must be a text, but found"):
        question(tasks["tagging"], given)
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(DataError, match="nested more than"):
        question(tasks["forecasting"], {"values": deep})
    with pytest.raises(DataError, match="too large to compute with"):
        question(tasks["forecasting"], {"values": [10**400]})


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("value", [None, 5, True, {"a": 1}, 0.5, ["a", 1]], ids=str)
def test_what_is_no_input_is_refused_with_what_is_one(name: str, value: object, tasks: dict[str, AnyTask]) -> None:
    with pytest.raises(DataError) as refusal:
        tasks[name].encode(question(tasks[name], value))
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind not in ("text", "picture")])
def test_a_text_is_no_number(name: str, tasks: dict[str, AnyTask]) -> None:
    for value in ("[[1, 2]]", "/etc/passwd", ["1", "2"]):
        with pytest.raises(DataError, match=r"the input of this model must be (a list|features)"):
            question(tasks[name], value)


def test_numbers_are_no_text(tasks: dict[str, AnyTask]) -> None:
    with pytest.raises(DataError, match=r"the input of this model must be a text, but found \[\[1, 2\]\]\."):
        question(tasks["tagging"], [[1, 2]])


@pytest.mark.parametrize("name", ["classification of pictures", "pictures to text"])
def test_a_path_is_never_opened(name: str, tasks: dict[str, AnyTask], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(write_png(np.full((8, 8), 9, np.uint8)))
    for path in (str(tmp_path / "a.png"), f"file://{tmp_path}/a.png", f" {tmp_path}/a.png", ""):
        with pytest.raises(DataError, match=r"data:image/png;base64,.* but found a text that is neither."):
            question(tasks[name], path)
    for nested in ([str(tmp_path / "a.png")], [[str(tmp_path / "a.png")]]):
        with pytest.raises(DataError):
            tasks[name].encode(question(tasks[name], nested))


def test_a_text_that_names_a_file_is_a_text(tasks: dict[str, AnyTask], tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("hidden", "utf-8")
    assert question(tasks["language_model"], str(path)).text == str(path)
    assert question(tasks["tagging"], str(path)).tokens == (str(path),)
    assert question(tasks["seq2seq"], str(path)).source == (str(path),)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("data:image/png;base64,%%%", "the data URL of the picture says base64, but its content is not valid base64."),
        (
            "data:image/png;base64,ärger",
            "the data URL of the picture says base64, but its content is not valid base64.",
        ),
        ("data:image/png;base64,", "is not a PNG or JPEG picture"),
        ("data:image/png;base64,AAAA", "is not a PNG or JPEG picture"),
        ("data:text/plain;base64,AAAA", "but found a text that is neither."),
        ("data:image/png,AAAA", "but found a text that is neither."),
        (claimed(8, 8), "is broken"),
        (claimed(1 << 13, 1 << 12), f"it has more than {MOST_PIXELS:,} pixels. Make it smaller first."),
        (data_url(np.zeros((20_001, 1), np.uint8)), "a side can have at most 20,000 pixels, but one has 20,001."),
        (claimed(1 << 30, 1 << 30), f"it has more than {MOST_PIXELS:,} pixels. Make it smaller first."),
    ],
)
def test_a_picture_that_is_none_is_refused_in_words(url: str, said: str, tasks: dict[str, AnyTask]) -> None:
    for name in ("classification of pictures", "pictures to text"):
        with pytest.raises(DataError) as refusal:
            question(tasks[name], url)
        assert said in str(refusal.value)


def test_a_picture_as_a_data_url_is_the_one_as_pixels(tasks: dict[str, AnyTask]) -> None:
    pixels = np.arange(9 * 12, dtype=np.uint8).reshape(9, 12)
    for name in ("classification of pictures", "pictures to text"):
        task = tasks[name]
        one, other = (task.encode(question(task, value)) for value in (data_url(pixels), pixels.tolist()))
        np.testing.assert_array_equal(one["picture"], other["picture"])


def test_nearly_black_is_black_and_not_black_and_white(tasks: dict[str, AnyTask]) -> None:
    task = tasks["pictures to text"]
    picture = np.zeros((6, 6), np.uint8)
    picture[2, 3] = 1
    assert task.encode(question(task, data_url(picture)))["picture"].max() <= 1


@pytest.mark.parametrize("name", KINDS)
def test_what_is_too_long_is_refused(name: str, tasks: dict[str, AnyTask]) -> None:
    task, kind = tasks[name], KINDS[name]
    if kind == "text":
        with pytest.raises(DataError, match="a text can have at most 20,000 characters, but this one has 20,001"):
            question(task, "a" * (LONGEST + 1))
        return
    for value in ([0.5] * (LONGEST + 1), [[0.0] * (MOST_NUMBERS // 2 + 1)] * 2):
        with pytest.raises(DataError, match="an input can have at most 20,000 steps and 1,048,576 numbers,"):
            question(task, value)


def nested(depth: int) -> list[Any]:
    value: list[Any] = [1.0]
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (nested(100_000), "nested more than 8 levels deep"),
        ([10**400], "too large to compute with"),
        ([[-(10**400)]], "too large to compute with"),
        ("half \ud83d of it", "a lone surrogate"),
        (["half", "\udc00"], "a lone surrogate"),
    ],
    ids=["deep", "large", "small", "half", "half a word"],
)
@pytest.mark.parametrize("name", KINDS)
def test_what_json_can_say_but_no_one_means_is_refused(
    name: str, value: object, said: str, tasks: dict[str, AnyTask]
) -> None:
    if KINDS[name] == "picture" and isinstance(value, str):
        said = "but found a text that is neither."
    with pytest.raises(DataError, match=said):
        question(tasks[name], value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("classification of series", [[1.0, 2.0, 3.0]], "found 3 numbers per step, but training has 2"),
        ("vector to text", [1, 2], "found 2 numbers, but training has 3"),
        ("vector to text", [1, None, 3], "missing, infinite or NaN"),
        ("places to text", [[1.0, 2.0, 3.0]], "found 3 numbers for each place, but training has 2"),
        ("places to text", [[1.0], [1.0, 2.0]], "the same number of values for every place"),
        ("tagging of frames", [[1.0, 2.0], [1.0]], "the same number of values at every step"),
        ("seq2seq of frames", [[[1.0]]], "nested deeper"),
        ("forecasting", [[1.0, 2.0]], "found 2 values per step, but the model expects 1"),
        ("strokes to text", [[[0, 1], [0]]], "stroke 1 has 2 x but 1 y"),
        ("strokes to text", [], "there are no strokes to draw"),
        ("classification of strokes", [[0, 1]], "stroke 1"),
        ("classification of pictures", [[0, 300]], "Pixels must be between"),
    ],
)
def test_numbers_of_another_shape_are_refused(name: str, value: object, said: str, tasks: dict[str, AnyTask]) -> None:
    with pytest.raises(DataError, match=said):
        tasks[name].encode(question(tasks[name], value))


def test_words_in_a_list_are_the_text_of_them(tasks: dict[str, AnyTask]) -> None:
    assert question(tasks["tagging"], ["the", "cat"]).tokens == ("the", "cat")
    assert question(tasks["language_model"], ["the", "cat"]).text == "the cat"
    assert question(tasks["tagging"], []).tokens == ()


def test_the_columns_of_a_question_are_those_that_tabs_separate(tmp_path: Path) -> None:
    rows = [("V;PST", "walked", "walk"), ("V;PRS", "walks", "walk")]
    train = table(tmp_path / "forms.tsv", rows)
    task = prepared("seq2seq", train, 'data.columns=["tags", "target", "source"]', 'data.features=["tags"]')
    assert list(task.schema().columns) == ["tags", "source"]
    found = question(task, "V;PST\twalk")
    assert found.source == ("walk",)
    assert found.features == ("V", "PST")
    with pytest.raises(DataError, match="found 4 texts separated by tabs, but this model needs tags, source"):
        question(task, "a\tb\tc\td")


def scale(mean: list[float], spread: list[float]) -> Normal:
    return Normal(np.array(mean), np.array(spread))


@pytest.mark.parametrize(
    ("columns", "mean", "spread", "colour"),
    [
        (["vector"], [130, 120, 110], [70, 65, 70], 255),
        (["R", "G", "B"], [130, 120, 110], [70, 65, 70], 255),
        (["red", "green", "blue"], [0.5, 0.5, 0.4], [0.3, 0.3, 0.2], 1),
        (["rain", "gust", "base"], [130, 120, 110], [70, 65, 70], None),
        (["x", "y", "z"], [130, 120, 110], [70, 65, 70], None),
        (["vector"], [0.5, 0.5, 0.4], [0.3, 0.3, 0.2], None),
        (["vector"], [1000, 120, 110], [70, 65, 70], None),
        (["r", "g", "b", "a"], [130, 120, 110, 1], [70, 65, 70, 1], None),
    ],
)
def test_a_vector_is_a_colour_by_its_names_or_its_numbers(
    columns: list[str], mean: list[float], spread: list[float], colour: int | None
) -> None:
    found = vector_schema(columns, scale(mean, spread))
    assert found.colour == colour
    assert len(found.columns) == len(found.ranges) == len(mean)
    if colour is not None:
        assert list(found.columns) == ["red", "green", "blue"]
        assert {*found.ranges} == {(0, colour)}


def test_numbers_of_one_column_are_told_apart_by_their_place() -> None:
    found = vector_schema(["size"], scale([10, 20], [1, 2]))
    assert list(found.columns) == ["size 1", "size 2"]
    assert list(found.ranges) == [(7.0, 13.0), (14.0, 26.0)]
