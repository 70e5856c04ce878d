"""Texts and series out of files: which columns hold what, and everything that can be wrong with a row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recurra.config import ClassificationData, ClassificationSettings
from recurra.config.given import Given
from recurra.errors import DataError
from recurra.reading.labelled import LabelledSequence, labelled, with_columns
from recurra.tasks.classification import Classification


def settings(file: Path, *overrides: str) -> ClassificationSettings:
    return Given().files({"train": file}, "{}=").options(overrides).settings(ClassificationSettings)


def found(file: Path, text: str, *overrides: str) -> list[LabelledSequence]:
    file.write_text(text, "utf-8")
    data = with_columns(settings(file, *overrides).data)
    return list(labelled([str(file)], data))


def test_a_table_without_a_header_is_text_and_label(tmp_path: Path) -> None:
    [first, second] = found(tmp_path / "a.tsv", "how are you\tgreeting\nbye\t parting \n")
    assert (first.text, first.labels, first.line) == ("how are you", ("greeting",), 1)
    assert second.labels == ("parting",)


@pytest.mark.parametrize(
    ("row", "label", "labels", "targets", "frames"),
    [
        ({"text": "a", "label": "x"}, "label", None, None, None),
        ({"text": "a", "category": "x"}, "category", None, None, None),
        ({"text": "a", "labels": ["x"]}, None, "labels", None, None),
        ({"text": "a", "target": 1.5}, None, None, ["target"], None),
        ({"text": "a", "score": 1}, None, None, ["score"], None),
        ({"frames": [1, 2], "label": "x"}, "label", None, None, "frames"),
        ({"values": "1 2", "label": "x"}, "label", None, None, "values"),
        ({"pulse": [[1], [2]], "label": "x", "id": 3}, "label", None, None, "pulse"),
    ],
)
def test_columns_are_found_by_their_names_and_what_they_hold(
    tmp_path: Path,
    row: dict[str, object],
    label: str | None,
    labels: str | None,
    targets: list[str] | None,
    frames: str | None,
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row) + "\n")
    data = with_columns(ClassificationData(train=str(file)))
    assert (data.label, data.labels, data.targets, data.frames) == (label, labels, targets, frames)
    assert data.text.column == (None if frames else "text")


def test_the_only_other_column_is_the_text(tmp_path: Path) -> None:
    [one] = found(tmp_path / "a.jsonl", '{"utterance": "hello", "label": "greeting"}\n')
    assert one.text == "hello"


def test_fasttexts_format_has_one_class_or_several(tmp_path: Path) -> None:
    one = found(tmp_path / "a.ft", "__label__good a fine film\n__label__bad dull\n")
    assert [(each.text, each.labels) for each in one] == [("a fine film", ("good",)), ("dull", ("bad",))]
    several = found(tmp_path / "b.ft", "__label__good __label__long a film\n__label__bad dull\n")
    assert [each.labels for each in several] == [("good", "long"), ("bad",)]


def test_series_come_out_of_an_archive_of_arrays(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x=np.arange(6.0), x_lengths=np.array([4, 2]), label=np.array([0, 1]))
    first, second = labelled([file], with_columns(settings(file).data))
    assert first.frames is not None
    assert second.frames is not None
    assert (first.frames.tolist(), first.labels) == ([[0.0], [1.0], [2.0], [3.0]], ("0",))
    assert (second.frames.tolist(), second.labels) == ([[4.0], [5.0]], ("1",))


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ('"a, b c,"', ("a", "b c")),
        ('"a b"', ("a", "b")),
        ('""', ()),
        ("null", ()),
        ("[]", ()),
        ('["a", "b", "a"]', ("a", "b")),
        ("[1, 2]", ("1", "2")),
        ("3", ("3",)),
    ],
)
def test_several_classes_are_a_list_or_separated(tmp_path: Path, value: str, labels: tuple[str, ...]) -> None:
    [one] = found(tmp_path / "a.jsonl", f'{{"text": "x", "labels": {value}}}\n')
    assert one.labels == labels


MALFORMED: list[tuple[str, str, list[str], str]] = [
    ("a.tsv", "a\tb\tc\n", [], r"a.tsv:1: classification reads a text from a column 'text'.*data.text = "),
    ("a.tsv", "a\tb\n", ['data.columns=["text", "_"]'], r"a.tsv:1: classification needs a column 'label'"),
    ("a.jsonl", '{"text": "a", "label": "x"}\n', ["data.label=lable"], r"no column 'lable'. Did you mean 'label'"),
    ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}\n', [], r"a.jsonl:2: there is no column 'label'"),
    ("a.tsv", "a\tx\nb\t \n", [], r"a.tsv:2: the class in 'label' is missing. Fill it in, or remove the row"),
    ("a.jsonl", '{"text": "a", "label": null}\n', [], r"a.jsonl:1: the class in 'label' is missing"),
    (
        "a.jsonl",
        '{"text": "a", "label": 1.5}\n',
        [],
        r"which is a number, not a class name. .*data.targets = \[\"label\"\]",
    ),
    ("a.jsonl", '{"text": "a", "label": ["x"]}\n', [], r"must be a word, but is \['x'\]. .*data.labels = \"label\""),
    ("a.jsonl", '{"text": [1, 2], "label": "x"}\n', [], r"'text' must hold a text.*data.frames = \"text\""),
    ("a.jsonl", '{"text": 3, "label": "x"}\n', [], r"a.jsonl:1: 'text' must hold a text, but is 3"),
    ("a.jsonl", '{"text": "", "label": "x"}\n', [], r"a.jsonl:1: the text is empty. .*data.empty = \"keep\""),
    ("a.jsonl", '{"text": null, "label": "x"}\n', [], r"a.jsonl:1: the text is empty"),
    ("a.jsonl", '{"text": ["a", ""], "label": "x"}\n', [], r"word 2 of 'text' is empty"),
    ("a.jsonl", '{"frames": [], "label": "x"}\n', [], r"a.jsonl:1: the series has no step. .*data.empty"),
    (
        "a.jsonl",
        '{"frames": [1, null], "label": "x"}\n',
        [],
        r"a.jsonl:1: 'frames' .*at step 2.*missing, infinite or NaN",
    ),
    ("a.jsonl", '{"frames": [[1], [1, 2]], "label": "x"}\n', [], r"steps of 1 and of 2 numbers"),
    ("a.csv", "frames,label\n1 nan,x\n", [], r"a.csv:2: 'frames' .*at step 2.*missing, infinite or NaN"),
    ("a.csv", "frames,label\ninf 1,x\n", [], r"a.csv:2: 'frames' .*at step 1.*missing, infinite or NaN"),
    ("a.csv", "frames,label\n1 two,x\n", [], r"a.csv:2: 'frames' must contain only numbers, but has 'two'"),
    (
        "a.jsonl",
        '{"text": "a", "target": null}\n',
        [],
        r"a.jsonl:1: the number in 'target' is missing, infinite or NaN:",
    ),
    ("a.csv", "text,score\na,\n", [], r"a.csv:2: the number in 'score' is missing"),
    ("a.csv", "text,score\na,good\n", [], r"a.csv:2: 'score' must hold a number.*data.label = \"score\""),
]


@pytest.mark.parametrize(("name", "text", "options", "said"), MALFORMED)
def test_a_row_that_does_not_fit_is_said_with_its_line(
    tmp_path: Path, name: str, text: str, options: list[str], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        found(tmp_path / name, text, *options)


def test_columns_that_look_swapped_are_said(tmp_path: Path) -> None:
    rows = "".join(f"{'yes' if k % 2 else 'no'}\twhat is this number {k}\n" for k in range(30))
    said = r"text and label look swapped: 'label' has 30 different values in 30 rows, such as 'what is this number 0', "
    with pytest.raises(DataError, match=said + r"and 'text' only 2.*data.columns = \[\"label\", \"text\"\]"):
        found(tmp_path / "a.tsv", rows)
    swapped = found(tmp_path / "a.tsv", rows, 'data.columns=["label", "text"]')
    assert swapped[1].labels == ("yes",)
    few = "".join(f"yes\twhat is this number {k}\n" for k in range(5))
    assert len(found(tmp_path / "a.tsv", few)) == 5  # too few to say


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("sentence,intent", []),
        ("sentence,intent", ['data.columns=["text", "label"]']),
        ("sentence,intent", ['data.format={name="csv", header=true}']),
        ("Review,Sentiment", ["data.label=Sentiment"]),
        ("text,class", []),
    ],
)
def test_a_header_is_never_an_example_or_a_class(tmp_path: Path, header: str, options: list[str]) -> None:
    rows = found(tmp_path / "a.csv", f"{header}\n" + "a good film,pos\na bad film,neg\n" * 3, *options)
    assert [(row.text, row.labels) for row in rows[:2]] == [("a good film", ("pos",)), ("a bad film", ("neg",))]
    assert len(rows) == 6


def test_a_header_decides_which_column_is_the_text(tmp_path: Path) -> None:
    rows = found(tmp_path / "a.csv", "intent,sentence\n" + "pos,a good film\nneg,a bad film\n" * 3)
    assert (rows[0].text, rows[0].labels) == ("a good film", ("pos",))


def test_columns_that_are_left_out_may_stand_below_a_header(tmp_path: Path) -> None:
    text = "id\tsentence\tintent\tdate\n" + "7\ta good film\tpos\t2023-01-01\n8\ta bad film\tneg\t2023-01-02\n"
    rows = found(tmp_path / "a.tsv", text, 'data.columns=["_", "text", "label", "_"]')
    assert [row.labels for row in rows] == [("pos",), ("neg",)]


def test_two_columns_that_could_both_be_the_text_or_the_label_are_refused(tmp_path: Path) -> None:
    text = "title,body,intent\n" + "a good film,I liked it,pos\na bad film,I left,neg\n" * 3
    with pytest.raises(DataError, match=r"reads one text, but 'title' and 'body' could both be it.*data.text = "):
        found(tmp_path / "a.csv", text)
    text = "sentence,topic,intent\n" + "a good film,film,pos\na bad film,film,neg\n" * 3
    with pytest.raises(DataError, match=r"one label, but 'topic' and 'intent' could both be it.*data.label"):
        found(tmp_path / "a.csv", text)
    assert found(tmp_path / "a.csv", text, "data.label=topic")[0].labels == ("film",)


def test_a_first_line_that_could_be_a_header_or_a_row_is_refused(tmp_path: Path) -> None:
    text = "satz,absicht\n" + "ein guter Film,gut\nein schlechter Film,schlecht\n" * 3
    with pytest.raises(
        DataError, match=r'a.csv:1: "satz", "absicht" could be a header or the first row.*header = true'
    ):
        found(tmp_path / "a.csv", text)
    assert len(found(tmp_path / "a.csv", text, 'data.format={name="csv", header=true}')) == 6
    assert len(found(tmp_path / "a.csv", text, 'data.format={name="csv", header=false}')) == 7


def test_rows_of_single_words_are_not_taken_for_a_header(tmp_path: Path) -> None:
    rows = found(tmp_path / "b.csv", "Abe,English\nAda,English\nIvo,Czech\nEva,Czech\nZoe,Greek\n")
    assert len(rows) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"text": "a", "label": "x"}\n{"text": "b", "label": "x"}\n',
            r"every row of \S*a\.jsonl \(2\) has the class 'x'",
        ),
        ('{"text": "a", "labels": []}\n', r"the column 'labels' of .* is empty: there are no classes to learn"),
        (
            '{"frames": [[1, 2]], "label": "x"}\n{"frames": [[1]], "label": "y"}\n',
            r"a.jsonl:2: found 1 number per step, but the first example has 2",
        ),
        (
            '{"text": "a", "target": [1, 2]}\n{"text": "b", "target": 1}\n',
            r"a.jsonl:2: found 1 number per step",
        ),
    ],
)
def test_a_file_with_nothing_to_learn_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text)
    with pytest.raises(DataError, match=said):
        Classification.prepared(Classification.resolved(settings(file)))
