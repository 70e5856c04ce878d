"""What `check` says about pairs: against a plain count, and only where the rows are pairs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.data.check import Report, check
from recurra.data.checking.pairs import PairSurvey
from recurra.data.checking.tasks import Service


def checked(folder: Path, name: str, content: str, **options: Any) -> Report:
    (folder / name).write_bytes(content.encode())
    return check([folder / name], **options)


def parallel(folder: Path, source: str, target: str) -> str:
    (folder / "a.en").write_text(source)
    (folder / "a.de").write_text(target)
    return f"{folder / 'a.en'},{folder / 'a.de'}"


def service(report: Report, task: str) -> Service:
    return next(service for service in report.tasks if service.task == task)


ENGLISH = "a cat\na dog\n\nhello\na cat\na cat\nyes\n"
GERMAN = "eine Katze\nein Hund\nleer\nhello\neine Katze\ndie Katze\n" + "jaja " * 12 + "\n"


def test_parallel_files_are_described_with_places_in_each_of_them(tmp_path: Path) -> None:
    report = check([parallel(tmp_path, ENGLISH, GERMAN)])
    [file] = report.files
    assert (file.format, file.rows) == ("parallel", 7)
    assert file.pairs is not None
    assert file.pairs.several == (1, 2, [6])
    assert file.pairs.source_words == ("words", 0, 2, 2, 2, 1)
    assert (file.pairs.target_words.longest, file.pairs.target_words.longest_line) == (12, 7)
    said = report.text()
    en, de = tmp_path / "a.en", tmp_path / "a.de"
    for line in (
        "  pairs of source and target: 0 to 2 words (median 2) and 1 to 12 words (median 2)",
        f"    several targets: 1 source has 2 different ones, such as at {en}:6",
        "  odd: source: the source is empty, which training refuses: remove such rows, or set data.empty = \"keep\", "
        f"1 row ({en}:3)",
        f"  odd: target: the target is the source itself, 1 row ({de}:4)",
        f"  odd: target: the target is more than 9 times longer than the source, 1 row ({de}:7)",
        f"  repeated rows: 1 (14.3 %): {en}:5 = {en}:1",
    ):  # fmt: skip
        assert line in said.splitlines()
    assert f"the longest is {de}:7" in said
    assert f"empty: 1 row ({en}:3)" in said
    assert service(report, "seq2seq").command == f"recurra train seq2seq --train {en},{de} --out runs/seq2seq"
    assert service(report, "language_model").reason == "these are parallel files: give one of them alone."
    assert json.loads(json.dumps(report.json()))["files"][0]["pairs"]["several"]["sources"] == 1


def test_valid_files_may_be_parallel_too(tmp_path: Path) -> None:
    path = parallel(tmp_path, ENGLISH, GERMAN)
    (tmp_path / "b").mkdir()
    other = parallel(tmp_path / "b", "a cat\n", "eine Katze\n")
    report = check([path], valid=[other])
    assert report.overlaps[0].rows.rows == 1
    assert f"{tmp_path / 'b' / 'a.en'}:1 = {tmp_path / 'a.en'}:1" in report.text()
    assert f"--valid {other}" in str(service(report, "seq2seq").command)


FORMS = [("ed", "PST"), ("s", "3"), ("ing", "V.PTCP")]
LEMMAS = "".join(f"{verb}\t{verb}{end}\tV;{name}\n" for verb in ("walk", "talk", "look") for end, name in FORMS)


def test_the_third_column_of_inflection_is_features(tmp_path: Path) -> None:
    report = checked(tmp_path, "a.tsv", LEMMAS)
    command = str(service(report, "seq2seq").command)
    assert command.endswith("""--set 'data.columns=["source","target","features"]'""")
    assert report.files[0].pairs is not None
    assert report.files[0].pairs.several.sources == 0  # the features tell them apart


def test_a_pronunciation_is_not_too_long_for_its_letter(tmp_path: Path) -> None:
    report = checked(tmp_path, "a.tsv", "w\tD AH B AH L Y UW\ncat\tK AE T\nx\t" + "y" * 10 + "\nab\tc\n")
    assert [(oddity.what, oddity.lines) for oddity in report.files[0].oddities] == [
        ("the target is more than 9 times longer than the source", [3])
    ]


def test_names_of_json_are_given_by_settings(tmp_path: Path) -> None:
    rows = [{"en": f"a cat {k}", "de": f"eine Katze {k}", "language": "de"} for k in range(3)]
    report = checked(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    command = str(service(report, "seq2seq").command)
    assert command.endswith("--set data.source=en --set data.target=de")
    assert report.files[0].pairs is not None
    assert (report.files[0].pairs.source, report.files[0].pairs.target) == ("en", "de")


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.tsv", "good film\tyes\nbad film\tno\n" * 5, {}),
        ("a.tsv", "yes\tgood film\nno\tbad film\nyes\tnice book\nno\tdull book\n", {}),
        ("a.tsv", "good film\tyes\nbad film\tno\n", {"columns": ["text", "label"]}),
        ("a.txt", "a line\nanother\n", {}),
        ("a.jsonl", '{"tokens": ["a"], "tags": ["X"]}\n', {}),
    ],
)
def test_what_is_no_pair_is_not_called_one(tmp_path: Path, name: str, content: str, options: dict[str, Any]) -> None:
    report = checked(tmp_path, name, content, **options)
    assert report.files[0].pairs is None
    assert "pairs of" not in report.text()


SIDE = st.sampled_from(["", " ", "a", "b", "a b", "b " * 12, "abcdefghijklmnopqrst"])


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=12))
def test_the_counts_are_those_of_a_plain_count(rows: list[tuple[str, str]]) -> None:
    survey = PairSurvey()
    for line, (source, target) in enumerate(rows, 1):
        survey.see({"source": source, "target": target}, line)
    targets: dict[str, set[str]] = defaultdict(set)
    again = []
    for line, (source, target) in enumerate(rows, 1):
        if source.strip() and target.strip():
            if targets[source] and target.strip() not in targets[source]:
                again.append(line)
            targets[source].add(target.strip())
    found = survey.found()
    assert found.several.sources == sum(len(known) > 1 for known in targets.values())
    assert found.several.most == max([1, *(len(known) for known in targets.values())])
    assert found.several.lines == again[:3]
    assert found.source_words.longest == max(len(source.split()) for source, _ in rows)
    counts = {(oddity.column, oddity.what.split(",")[0]): oddity.rows for oddity in survey.oddities()}
    assert counts.get(("source", "the source is empty"), 0) == sum(not source.strip() for source, _ in rows)
    assert counts.get(("target", "the target is empty"), 0) == sum(not target.strip() for _, target in rows)
    copies = sum(source.strip() == target.strip() != "" for source, target in rows)
    assert counts.get(("target", "the target is the source itself"), 0) == copies
