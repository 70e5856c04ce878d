"""The report on data files: its counts are those of a plain count, its places and commands can be used."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.check import FileReport, check
from recurra.data.checking.columns import Column
from recurra.errors import ConfigError, DataError


def written(folder: Path, name: str, content: str) -> Path:
    file = folder / name
    file.write_bytes(content.encode())
    return file


def checked(folder: Path, name: str, content: str, **options: Any) -> FileReport:
    return check([written(folder, name, content)], **options).files[0]


def column(file: FileReport, name: str) -> Column:
    return next(column for column in file.columns if column.name == name)


REVIEWS = "good film\tyes\nbad film\tno\n\tyes\ngood film\tyes\nbad film\tyes\na rather good book\tperhaps\n" + (
    "so so\tno\nwell\tno\n"
)


def test_a_file_is_described_by_its_columns(tmp_path: Path) -> None:
    file = checked(tmp_path, "a.tsv", REVIEWS, columns=["text", "label"])
    text, label = file.columns
    assert (file.format, file.rows) == ("tsv", 8)
    assert (text.kind, text.distinct, text.empty, text.empty_lines) == ("text", 6, 1, [3])
    assert text.examples == ["good film", "bad film", "a rather good book"]
    assert text.lengths is not None
    assert text.lengths._asdict() == {
        "unit": "characters", "shortest": 0, "median": 8, "most": 18, "longest": 18, "longest_line": 6
    }  # fmt: skip
    assert label.counts == {"yes": 4, "no": 3, "perhaps": 1}
    assert [(rare.value, rare.times, rare.lines) for rare in label.rare] == [
        ("yes", 4, [1, 3, 4]), ("no", 3, [2, 7, 8]), ("perhaps", 1, [6])
    ]  # fmt: skip


def test_repeated_rows_and_repeated_inputs_are_told_apart(tmp_path: Path) -> None:
    file = checked(tmp_path, "a.tsv", REVIEWS, columns=["text", "label"])
    assert file.repeated == (1, 1 / 8, [(4, 1)])
    assert file.input == "text"
    assert file.repeated_inputs == (2, 2 / 8, [(4, 1), (5, 2)])


def test_the_input_of_a_file_of_series_is_the_series_and_not_its_label(tmp_path: Path) -> None:
    file = checked(tmp_path, "a.jsonl", '{"label": "a", "x": [[1.0], [2.0]]}\n{"label": "a", "x": [[3.0]]}\n')
    assert file.input == "x"
    assert file.repeated_inputs.rows == 0


def test_rows_of_the_validation_file_that_training_sees_are_found(tmp_path: Path) -> None:
    train = written(tmp_path, "train.tsv", REVIEWS)
    valid = written(tmp_path, "valid.tsv", "new film\tno\ngood film\tyes\nwell\tyes\nold\tnever\nolder\tnever\nx\tno\n")
    report = check([train], valid=[valid], columns=["text", "label"])
    (overlap,) = report.overlaps
    assert (overlap.path, overlap.other) == (str(valid), str(train))
    assert overlap.rows == (1, 1 / 6, [(2, 1)])
    assert overlap.inputs == (2, 2 / 6, [(2, 1), (3, 8)])
    assert [tuple(unseen) for unseen in report.unseen] == [(str(valid), "label", ["never"])]
    told = report.text()
    assert f"rows of {valid} that are in {train}: 1 (16.7 %): {valid}:2 = {train}:1" in told
    assert f"with any answer: 2 (33.3 %): {valid}:2 = {train}:1, {valid}:3 = {train}:8" in told
    assert f"{valid} has labels in label that are not in the training data: never" in told


@pytest.mark.parametrize("several", [False, True])
def test_a_class_that_is_only_in_a_short_validation_file_is_said(several: bool, tmp_path: Path) -> None:
    def line(k: int, label: str) -> str:
        return json.dumps({"text": f"t{k}", "labels": [label, "x"]} if several else {"text": f"t{k}", "label": label})

    train = written(tmp_path, "train.jsonl", "".join(f"{line(k, 'ab'[k % 2])}\n" for k in range(20)))
    valid = written(tmp_path, "valid.jsonl", f"{line(21, 'a')}\n{line(22, 'c')}\n")
    [unseen] = check([train], valid=[valid]).unseen
    assert (unseen.column, unseen.labels) == ("labels" if several else "label", ["c"])


def test_later_dates_of_a_validation_file_are_not_new_labels(tmp_path: Path) -> None:
    def table(name: str, month: int) -> Path:
        rows = "".join(f"{day % 4 + 1:02}.{month:02}.2023;text {day};{'ab'[day % 2]}\n" for day in range(12))
        return written(tmp_path, name, "Datum;Text;Label\n" + rows)

    report = check([table("train.csv", 1)], valid=[table("valid.csv", 2)])
    assert column(report.files[1], "Datum").counts
    assert report.unseen == []


def test_dates_and_numbers_of_a_table_are_called_so_and_dates_are_not_counted(tmp_path: Path) -> None:
    rows = "".join(f"{day % 4 + 1:02}.01.2023;{day},5;text {day}\n" for day in range(12))
    told = check([written(tmp_path, "a.csv", "Datum;Betrag;Text\n" + rows)]).text()
    assert "  Datum: date, 4 different values\n    such as '01.01.2023'" in told
    assert "  Betrag: number, 12 different values\n" in told
    assert "  Text: text, 12 different values\n" in told
    assert "01.01.2023 3" not in told


def test_a_text_file_that_fasttext_would_read_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, "a.txt", "__label__a b\n__label__b c\n")
    (oddity,) = check([file]).files[0].oddities
    assert oddity.what == "the first line begins with __label__, as fastText writes labels: set data.format = fasttext"
    told = check([file], format="fasttext")
    assert told.files[0].oddities == []
    assert [column.name for column in told.files[0].columns] == ["text", "labels", "label"]


def test_two_validation_files_are_not_compared_with_each_other(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{name}.txt", "the same\n") for name in "abcd"]
    report = check(files[:2], valid=files[2:])
    pairs = [(Path(overlap.path).stem, Path(overlap.other).stem) for overlap in report.overlaps]
    assert pairs == [("b", "a"), ("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")]
    assert all(overlap.rows.rows == 1 for overlap in report.overlaps)


def test_columns_in_the_wrong_order_are_said(tmp_path: Path) -> None:
    content = "".join(f"{'yes' if k % 3 else 'no'}\ttext number {k}\n" for k in range(300))
    (oddity,) = checked(tmp_path, "a.tsv", content, columns=["text", "label"]).oddities
    assert oddity.what == "text looks like a label and label like a text: swap them in data.columns"
    assert checked(tmp_path, "a.tsv", content, columns=["label", "text"]).oddities == []


def test_a_header_is_read_as_one_and_said(tmp_path: Path) -> None:
    content = "Sentence,Sentiment\ngood,1\nbad,0\n"
    file = checked(tmp_path, "a.csv", content)
    assert (file.header, file.rows, file.oddities) == (["Sentence", "Sentiment"], 2, [])
    said = check([tmp_path / "a.csv"]).text()
    assert "the first line is taken for a header: Sentence, Sentiment" in said
    plain = checked(tmp_path, "a.csv", "a film,fine\na book,bad\n")
    assert (plain.header, plain.rows) == ([], 2)


def test_a_header_that_was_read_as_data_by_request_is_odd(tmp_path: Path) -> None:
    options = {"name": "csv", "header": False}
    (oddity,) = checked(tmp_path, "a.csv", "Sentence,Sentiment\ngood,1\nbad,0\n", format=options).oddities
    assert (oddity.what, oddity.lines) == (
        "the first line looks like a header: set header = true, or name its columns", [1]
    )  # fmt: skip


def test_values_that_are_not_there_are_counted(tmp_path: Path) -> None:
    file = checked(tmp_path, "a.jsonl", '{"a": 1}\n{"a": null, "b": [1, 2]}\n{"b": []}\n{"a": 2, "b": [[1], [2]]}\n')
    a, b = file.columns
    assert (a.kind, a.numeric, a.missing) == ("number", True, 2)
    assert (b.kind, b.missing, b.empty, b.empty_lines) == ("arrays or list of numbers", 1, 1, [3])
    assert b.lengths is not None
    assert b.lengths.unit == "elements"


def test_values_are_labels_while_they_are_few_and_recur(tmp_path: Path) -> None:
    few, many = "".join(f"{k % 200}\n" for k in range(400)), "".join(f"{k % 201}\n" for k in range(402))
    assert len(checked(tmp_path, "a.txt", few).columns[0].counts) == 200
    assert checked(tmp_path, "a.txt", many).columns[0].counts == {}
    assert checked(tmp_path, "a.txt", "a\nb\nc\na\n").columns[0].counts == {}


def test_different_values_are_counted_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.data.checking.columns.MOST_DISTINCT", 50)
    file = written(tmp_path, "a.txt", "".join(f"{k}\n" for k in range(60)))
    report = check([file])
    assert (report.files[0].columns[0].distinct, report.files[0].columns[0].distinct_is_exact) == (50, False)
    assert "text: text, 50 different values or more" in report.text()


def test_very_long_texts_are_measured_to_three_digits_and_the_longest_exactly(tmp_path: Path) -> None:
    file = checked(tmp_path, "a.txt", "".join("x" * length + "\n" for length in (99_999, 70_123, 3)))
    lengths = file.columns[0].lengths
    assert lengths is not None
    assert lengths[1:] == (3, 70_100, 99_999, 99_999, 1)


def test_the_text_names_files_and_lines_and_hides_nothing_from_the_eye(tmp_path: Path) -> None:
    file = written(tmp_path, "a.tsv", REVIEWS + "\x1b[31mred\tyes\n")
    told = check([file], columns=["text", "label"]).text()
    assert f"{file}: tsv, 9 rows" in told
    assert f"0 to 18 characters, median 8, 95 % have at most 18; the longest is {file}:6" in told
    assert f"empty: 1 row ({file}:3)" in told
    assert "counts: yes 5, no 3, perhaps 1" in told
    assert f"rare: perhaps 1 ({file}:6), no 3 ({file}:2, … 2 more)" in told
    assert f"repeated rows: 1 (11.1 %): {file}:4 = {file}:1" in told
    assert f"repeated text, with any other columns: 2 (22.2 %): {file}:4 = {file}:1, {file}:5 = {file}:2" in told
    assert f"odd: text: the control character U+001B, 1 row ({file}:9)" in told
    assert "\x1b" not in told


def test_the_columns_of_a_treebank_that_hold_nothing_are_not_shown(tmp_path: Path) -> None:
    file = written(tmp_path, "a.conllu", "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n2\tb\tb\tX\t_\t_\t1\tdep\t_\t_\n")
    shown = [line.split(":")[0].strip() for line in check([file]).text().splitlines() if "different value" in line]
    assert shown == ["tokens", "lemma", "upos", "deprel"]


def test_the_json_holds_everything_and_nothing_but_json(tmp_path: Path) -> None:
    train, valid = written(tmp_path, "a.tsv", REVIEWS), written(tmp_path, "b.tsv", REVIEWS)
    report = check([train], valid=[valid], columns=["text", "label"])
    read = json.loads(json.dumps(report.json(), allow_nan=False))
    assert read["files"][0]["columns"][1]["counts"] == {"yes": 4, "no": 3, "perhaps": 1}
    assert read["files"][0]["columns"][0]["lengths"]["longest_line"] == 6
    assert read["overlaps"][0]["rows"]["rows"] == 8
    assert [task["task"] for task in read["tasks"]] == [
        "tagging", "classification", "question_answering", "seq2seq", "vec2seq", "language_model", "forecasting"
    ]  # fmt: skip


@pytest.mark.parametrize("paths", [[], "a.tsv", Path("a.tsv")])
def test_check_wants_a_list_of_files(paths: Any) -> None:
    with pytest.raises(DataError, match="check needs a list of at least one file, but got"):
        check(paths)


def test_a_malformed_file_is_refused_as_its_reader_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tsv:2: found one column, but line 1 has 2"):
        check([written(tmp_path, "a.tsv", "a\tb\nc\n")])
    with pytest.raises(ConfigError, match="there is no reader 'tvs'"):
        check([written(tmp_path, "a.tsv", "a\tb\n")], format="tvs")


def test_checking_needs_no_torch() -> None:
    program = "import sys, recurra.data.check; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def peak_of_checking(file: Path) -> int:
    tracemalloc.start()
    check([file])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_what_is_kept_of_a_row_does_not_grow_with_it(tmp_path: Path) -> None:
    short = written(tmp_path, "short.txt", "".join(f"{k:020d}\n" for k in range(5000)))
    long = written(tmp_path, "long.txt", "".join(f"{k:02000d}\n" for k in range(5000)))
    check([short])  # what is imported on the way is not counted
    assert peak_of_checking(long) < peak_of_checking(short) + 2**20 < long.stat().st_size / 3


texts = st.lists(st.text("ab é", max_size=4), min_size=1, max_size=12)


@given(texts, texts)
def test_counts_lengths_and_repetitions_are_those_of_a_plain_count(
    tmp_path_factory: pytest.TempPathFactory, train: list[str], valid: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    first = written(folder, "counted.txt", "".join(f"{text}\n" for text in train))
    second = written(folder, "counted_too.txt", "".join(f"{text}\n" for text in valid))
    report = check([first], valid=[second])
    file = report.files[0]
    found = column(file, "text")
    lengths = sorted(len(text) for text in train)
    assert file.rows == len(train)
    assert found.distinct == len(set(train))
    assert found.counts == (dict(Counter(train)) if len(train) >= 2 * len(set(train)) else {})
    assert found.empty == train.count("")
    assert found.lengths is not None
    assert found.lengths.median == statistics.median_low(lengths)
    assert (found.lengths.shortest, found.lengths.longest) == (lengths[0], lengths[-1])
    assert sum(length <= found.lengths.most for length in lengths) >= 0.95 * len(lengths)
    assert sum(length < found.lengths.most for length in lengths) < 0.95 * len(lengths)
    assert len(train[found.lengths.longest_line - 1]) == lengths[-1]
    assert file.repeated.rows == len(train) - len(set(train))
    for line, earlier in file.repeated.pairs:
        assert line > earlier
        assert train[line - 1] == train[earlier - 1]
    assert report.overlaps[0].rows.rows == sum(text in train for text in valid)
    for line, other in report.overlaps[0].rows.pairs:
        assert valid[line - 1] == train[other - 1]


a_number = st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False)
a_text = st.text(st.characters(codec="utf-8"), max_size=4)
a_value = st.none() | a_text | a_number | st.booleans() | st.lists(a_text, max_size=3) | st.lists(a_number, max_size=3)
a_name = st.sampled_from(["text", "tokens", "tags", "label", "column1", "id"]) | a_text


def test_rows_whose_names_are_those_of_columns_without_names_are_read_as_they_are(tmp_path: Path) -> None:
    report = check([written(tmp_path, "odd.jsonl", '{"column1": null}\n{"text": 0}\n')])
    assert report.text()


@given(st.lists(st.dictionaries(a_name, a_value, min_size=1, max_size=4), min_size=1, max_size=5))
def test_whatever_rows_hold_the_report_can_be_written(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]]
) -> None:
    content = "".join(json.dumps(one) + "\n" for one in objects)
    report = check([written(tmp_path_factory.getbasetemp(), "any.jsonl", content)])
    assert report.files[0].rows == len(objects)
    assert all(line.isprintable() for line in report.text().split("\n"))
    assert json.loads(json.dumps(report.json(), allow_nan=False))["files"][0]["rows"] == len(objects)
