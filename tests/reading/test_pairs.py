"""Pairs out of files: which columns hold what, what a question may look like, and everything that can be wrong."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.config import Seq2SeqData, Seq2SeqSettings
from recurra.config.given import Given
from recurra.errors import DataError, RecurraError
from recurra.reading.pairs import Pair, asked, pairs, with_columns


def data_of(path: object, *overrides: str) -> Seq2SeqData:
    return Given().files({"train": path}, "{}=").options(overrides).settings(Seq2SeqSettings).data


def found(file: Path, text: str, *overrides: str) -> list[Pair]:
    file.write_bytes(text.encode())
    data = with_columns(data_of(file, *overrides))
    return list(pairs([str(file)], data))


def parallel(folder: Path, source: str | bytes, target: str | bytes) -> str:
    names = []
    for ending, text in (("en", source), ("de", target)):
        file = folder / f"a.{ending}"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        names.append(str(file))
    return ",".join(names)


def test_two_columns_are_a_source_and_a_target(tmp_path: Path) -> None:
    [first, second] = found(tmp_path / "a.tsv", "cat\tK AE T\ndog\tD AO G\n")
    assert first == Pair(("cat",), (), None, "K AE T", 0, 1)
    assert (second.source, second.target, second.line) == (("dog",), "D AO G", 2)


def test_three_columns_are_lemma_form_and_features(tmp_path: Path) -> None:
    [first] = found(tmp_path / "a.tsv", "walk\twalked\tV;PST|3, SG\n")
    assert first == Pair(("walk",), ("V", "PST", "3", "SG"), None, "walked", 0, 1)


@pytest.mark.parametrize(
    ("name", "text", "overrides", "source", "target"),
    [
        ("a.tsv", "source\ttarget\na\tb\n", [], ("a",), "b"),
        ("a.tsv", "target\tsource\nb\ta\n", [], ("a",), "b"),
        ("a.tsv", "b\ta\n", ['data.columns=["target", "source"]'], ("a",), "b"),
        ("a.tsv", "7\ta\tb\n", ['data.columns=["_", "source", "target"]'], ("a",), "b"),
        ("a.tsv", "a\tb\tc\n", ['data.columns=["source", "target", "source"]'], ("a", "c"), "b"),
        ("a.tsv", "en\tde\na\tb\n", ['data.source="en"', 'data.target="de"'], ("a",), "b"),
        ("a.tsv", "en\tde\na\tb\n", ['data.format={name="tsv", header=true}'], ("a",), "b"),
        ("a.tsv", "de\ten\tn\nb\ta\t1\n", ['data.source="en"', 'data.target="de"'], ("a",), "b"),
        ("a.csv", '"a, c",b\n', [], ("a, c",), "b"),
        ("a.csv", "a;b\n", [], ("a",), "b"),
        ("a.jsonl", '{"source": "a", "target": "b"}', [], ("a",), "b"),
        ("a.jsonl", '{"source": ["a", "c"], "target": ["b"]}', [], ("a c",), "b"),
        ("a.jsonl", '{"id": 3, "en": "a", "de": "b"}', ["data.source=en", "data.target=de"], ("a",), "b"),
        ("a.jsonl", '{"en": "a", "target": "b"}', [], ("a",), "b"),
        ("a.jsonl", '{"source": "a", "de": "b"}', [], ("a",), "b"),
        ("a.jsonl", '{"text": "a", "target": "x"}', ["data.target=text"], ("x",), "a"),
        ("a.jsonl", '{"text": "a"}', ["data.target=text", "data.source=text"], ("a",), "a"),
    ],
)
def test_columns_are_found_by_their_names_and_places(
    tmp_path: Path, name: str, text: str, overrides: list[str], source: tuple[str, ...], target: str
) -> None:
    [pair] = found(tmp_path / name, text, *overrides)
    assert (pair.source, pair.target) == (source, target)


def test_resolving_twice_changes_nothing(tmp_path: Path) -> None:
    for name, text in {
        "a.tsv": "walk\twalked\tV;PST\n", "b.tsv": "source\ttarget\na b\tc\n", "c.jsonl": '{"en": "a", "target": "b"}'
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
        once = with_columns(data_of(tmp_path / name))
        assert with_columns(once) == once
        assert "auto" not in (once.source.tokens, once.target.tokens)


@pytest.mark.parametrize(
    ("row", "overrides", "features"),
    [
        ({"source": "a", "target": "b", "language": "de"}, [], ("de",)),
        ({"source": "a", "target": "b", "features": ["V;PST", "3"]}, [], ("V", "PST", "3")),
        ({"source": "a", "target": "b", "language": "de"}, ["data.features=[]"], ()),
        ({"source": "a", "target": "b", "to": "de", "n": 2}, ['data.features=["to", "n"]'], ("de", "2")),
        ({"source": "a", "target": "b", "features": None}, [], ()),
    ],
)
def test_features_stand_in_their_columns(
    tmp_path: Path, row: dict[str, object], overrides: list[str], features: tuple[str, ...]
) -> None:
    [pair] = found(tmp_path / "a.jsonl", json.dumps(row), *overrides)
    assert pair.features == features


def test_frames_take_the_place_of_a_text(tmp_path: Path) -> None:
    for row in ({"frames": [[1, 2], [3, 4]], "target": "b"}, {"source": [[1, 2], [3, 4]], "target": "b"}):
        [pair] = found(tmp_path / "a.jsonl", json.dumps(row))
        assert pair.source == ()
        assert pair.frames is not None
        assert pair.frames.dtype == np.float32
        assert pair.frames.tolist() == [[1, 2], [3, 4]]
    [pair] = found(tmp_path / "a.jsonl", json.dumps({"ink": [1, 2], "target": "b"}), "data.frames=ink")
    assert pair.frames is not None
    assert pair.frames.tolist() == [[1], [2]]


def test_parallel_files_are_pairs_by_line(tmp_path: Path) -> None:
    path = parallel(tmp_path, gzip.compress(b"a cat\na dog\n"), "eine Katze\nein Hund\n")
    (tmp_path / "a.en").rename(tmp_path / "a.en.gz")
    path = path.replace("a.en", "a.en.gz")
    data = with_columns(data_of(path))
    assert [pair[:1] + pair[3:] for pair in pairs([path, path], data)] == [
        (("a cat",), "eine Katze", 0, 1), (("a dog",), "ein Hund", 0, 2),
        (("a cat",), "eine Katze", 1, 1), (("a dog",), "ein Hund", 1, 2),
    ]  # fmt: skip


def test_files_of_different_kinds_serve_one_run(tmp_path: Path) -> None:
    path = parallel(tmp_path, "a cat\n", "eine Katze\n")
    (tmp_path / "b.tsv").write_text("source\ttarget\na dog\tein Hund\n")
    (tmp_path / "c.jsonl").write_text('{"source": "a cow", "target": "eine Kuh"}\n')
    data = with_columns(data_of(path))
    files: list[str | Path] = [path, tmp_path / "b.tsv", tmp_path / "c.jsonl"]
    assert [pair.target for pair in pairs(files, data)] == ["eine Katze", "ein Hund", "eine Kuh"]


def test_a_line_of_ten_thousand_tokens_is_kept(tmp_path: Path) -> None:
    text = " ".join(["word"] * 10_000)
    [pair] = found(tmp_path / "a.tsv", f"{text}\t{text}\n")
    assert pair.source == (text,)
    assert pair.target == text


def test_an_empty_side_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    [first, second] = found(tmp_path / "a.tsv", "a\t\n\tb\n", "data.empty=keep")
    assert (first.target, second.source) == ("", ("",))


@pytest.mark.parametrize(
    ("name", "text", "overrides", "message"),
    [
        ("a.tsv", "a\tb\n\tc\n", [], "a.tsv:2: the source is empty. Remove the row, or set data.empty = \"keep\"."),
        ("a.tsv", "a\tb\nc\t \n", [], "a.tsv:2: the target is empty."),
        ("a.tsv", "a\tb\n \t \n", [], "a.tsv:2: both sides are empty."),
        ("a.tsv", "a\tb\nc\n", [], "a.tsv:2: found one column, but columns (source, target) names 2."),
        ("a.tsv", "a\tb\nc\td\te\n", [], "a.tsv:2: found 3 columns, but columns (source, target) names 2."),
        ("a.tsv", "only\n", [], "a.tsv:1: found one column, but a pair has two, a source and a target, or three"),
        ("a.tsv", "a\tb\tc\td\n", [], "a.tsv:1: found 4 columns, but a pair has two"),
        ("a.csv", "a,b\n\n\nc,d\n", [], "a.csv:2: this line is blank, and more lines follow."),
        ("a.csv", "a,b\nc,\n", [], "a.csv:2: the target is empty."),
        ("a.csv", "a,b\nc\n", [], "a.csv:2: found one column, but columns (source, target) names 2."),
        ("a.csv", "a,b,c,d\n", [], "a.csv:1: found 4 columns, but a pair has two"),
        ("a.csv", "", [], "a.csv' is empty: it has no rows."),
        ("a.csv", "a,b\n", ["data.source=word"], "a.csv:1: there is no column 'word'."),
        ("a.csv", "a;b\nc;d;e\n", [], "a.csv:2: found 3 columns"),
        ("a.tsv", "a\tb\n\nc\td\n", [], "a.tsv:2: this line is blank, and more lines follow."),
        ("a.tsv", "source\ttext\tid\na\tb\tc\n", [], "a.tsv:2: sequence to sequence reads a column 'source' and "),
        ("a.tsv", "a\tb\n", ["data.target=form"], "a.tsv:1: there is no column 'form'."),
        ("a.tsv", "source\tx\na\tb\n", ["data.target=y", "data.source=source"], "a.tsv:2: there is"),
        ("a.tsv", "source\ttarget\na\tb\n", ['data.features=["pos"]'], "a.tsv:2: there is no column 'pos'."),
        ("a.tsv", "source\tx\n", ['data.columns=["source", "target"]'], "a.tsv:1: the header has no column 'target'."),
        ("a.tsv", "a\tb\n", ['data.columns=["source"]'], "a.tsv:1: found 2 columns, but columns (source) names 1."),
        ("a.tsv", "a\tb\n", ['data.columns=["source", "_"]'], "a.tsv:1: sequence to sequence reads a column 'source'"),
        ("a.tsv", "a\tb\n", ['data.frames="column1"'], "a.tsv:1: 'column1' must contain only numbers, but has 'a'."),
        ("a.tsv", "a\tb\nc\0\td\n", [], "a.tsv:2: a NUL character was found"),
        ("a.tsv", "", [], "a.tsv' is empty: it has no rows."),
        ("a.tsv", "\n\n", [], "a.tsv:1: found one column, but a pair has two"),
        ("a.tsv", "source\ttarget\n", [], "a.tsv' is empty: it has no rows."),
        ("a.csv", '"a,b\n', [], "a.csv:1: a double quote is opened on this line and never closed."),
        ("a.csv", 'a,b\n"c"d,e\n', [], "a.csv:2: text follows a closing double quote."),
        ("a.csv", "a,b\nc,d,e\n", [], "a.csv:2: found 3 columns"),
        ("a.csv", "a,b\n,c\n", [], "a.csv:2: the source is empty."),
        ("a.csv", 'a,b\n"c\n\nd",""\n', [], "a.csv:2: the target is empty."),
        ("a.csv", "a b\n", [], "a.csv:1: found one column"),
        ("a.csv", "a,b\nc\rd,e\n", [], "a.csv:2: the line contains a carriage return."),
        ("a.jsonl", '{"source": "a"}', [], "a.jsonl:1: sequence to sequence reads a column 'source' and writes"),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": "a"}', [], "a.jsonl:2: there is no column 'target'."),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"target": "a"}', [], "a.jsonl:2: there is no column 'source'."),
        ("a.jsonl", '{"source": "a", "target": 5}', [], "a.jsonl:1: 'target' must hold a text, but is 5. Write it in"),
        ("a.jsonl", '{"source": 5, "target": "b"}', [], "a.jsonl:1: 'source' must hold a text, but is 5."),
        ("a.jsonl", '{"source": "a", "target": [1]}', [], "a.jsonl:1: 'target' must hold a text, but is [1]."),
        ("a.jsonl", '{"source": "a", "target": null}', [], "a.jsonl:1: the target is empty."),
        ("a.jsonl", '{"source": [], "target": "b"}', [], "a.jsonl:1: the source is empty."),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": [1], "target": "b"}', [], "a.jsonl:2: 'source' must"),
        ("a.jsonl", '{"source": {"a": 1}, "target": "b"}', [], "a.jsonl:1: the value of 'source' is an object"),
        ("a.jsonl", '{"source": "a", "source": "b"}', [], "a.jsonl:1: the key 'source' occurs twice"),
        ("a.jsonl", '["a", "b"]', [], "a.jsonl:1: found an array, but each line must hold one object"),
        ("a.jsonl", '{"source": "a", ', [], "a.jsonl:1: this is not JSON"),
        ("a.jsonl", "a\tb", [], "a.jsonl:1: this is not JSON"),
        ("a.jsonl", "{}", [], "a.jsonl:1: the object is empty."),
        ("a.jsonl", '{"source": "\\ud800", "target": "b"}', [], "a.jsonl:1: the value of 'source' contains half"),
        ("a.jsonl", '{"source": ["a", 1], "target": "b"}', [], "a.jsonl:1: the value of 'source' mixes texts"),
        ("a.jsonl", '{"x": "a", "y": "b", "z": "c"}', [], "a.jsonl:1: sequence to sequence reads"),
        ("a.jsonl", '{"frames": [[1], [2, 3]], "target": "b"}', [], "a.jsonl:1: 'frames' must have the same number of"),
        ("a.jsonl", '{"frames": [1e39], "target": "b"}', [], "a.jsonl:1: 'frames' contains a number that is too large"),
        ("a.jsonl", '{"frames": [], "target": "b"}', [], "a.jsonl:1: the source is empty."),
        ("a.jsonl", '{"frames": [null], "target": "b"}', ["data.frames=frames"], "a.jsonl:1: 'frames' contains a num"),
        ("a.jsonl", '{"source": "a", "target": "b", "language": [[]]}\n{}', [], "a.jsonl:2: the object is empty."),
        ("a.txt", "a b\n", [], "a.txt:1: sequence to sequence reads a column 'source' and writes"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_said_in_a_sentence_with_its_place(
    tmp_path: Path, name: str, text: str, overrides: list[str], message: str
) -> None:
    with pytest.raises(DataError) as refusal:
        found(tmp_path / name, text, *overrides)
    said = str(refusal.value)
    assert message in said
    assert "\n" not in said
    assert said.endswith((".", "?"))
    assert len(said) < 500


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\nb\n", "c\n\n", 'a.de:2: the target is empty. Remove this line of both files, or set data.empty = "keep".'),
        ("a\n\n", "c\nd\n", "a.en:2: the source is empty. Remove this line of both files"),
        ("a\n \n", "c\n\t\n", "a.en:2: both sides are empty."),
        ("a\nb\n", "c\n", "a.en:2: this line has no counterpart: "),
        ("a\n", "c\nd\n", "a.de:2: this line has no counterpart: "),
        ("", "c\n", "a.de:1: this line has no counterpart: "),
        ("a\n", "", "a.en:1: this line has no counterpart: "),
        ("", "", "is empty: it has no rows."),
        (b"a\n\xe9\n", "c\nd\n", "a.en:2: byte 1 of the line, 0xe9, is not UTF-8"),
        ("a\nb\n", b"c\n\xc3(\n", "a.de:2: byte 1 of the line, 0xc3, is not UTF-8"),
        (b"\xff\xfea\0\n\0", "c\n", "a.en:1: "),
        ("a\nb\0\n", "c\nd\n", "a.en:2: a NUL character was found"),
        ("\n\n", "\n\n", "a.en:1: both sides are empty."),
        ("a\n\u2028\n", "c\nd\n", "a.en:2: the source is empty."),
        ("a\n\xa0\n", "c\nd\n", "a.en:2: the source is empty."),
    ],
)
def test_what_is_malformed_in_parallel_files_is_said_with_its_place(
    tmp_path: Path, source: str | bytes, target: str | bytes, message: str
) -> None:
    path = parallel(tmp_path, source, target)
    with pytest.raises(DataError) as refusal:
        list(pairs([path], with_columns(data_of(path))))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (['data.columns=["source", "target", "target"]'], "names target twice, but a pair has one target"),
        (["data.frames=source", "data.source=source"], "cannot be used together"),
        (["data.frames=source", "data.joint=true"], "data.joint = true makes one vocabulary"),
        (
            ["data.joint=true", "data.source.tokens=words", "data.target.tokens=symbols"],
            "data.source.tokens is 'words' and",
        ),
        (["data.joint=true", "data.source.min_count=2", "data.target.min_count=3"], "data.source.min_count is 2 and"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(RecurraError, match=re.escape(message)):
        found(tmp_path / "a.tsv", "a\tb\tc\n", *overrides)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("{0}/a.en,{0}/b.de", "there is no file '{0}/b.de'. Did you mean"),
        ("{0}/a.en,{0}", "'{0}' is a folder; name a file in it."),
        ("{0}/a.en,", "is one file, but the parallel format"),
        ("{0}/a.en,{0}/a.de,{0}/a.de", "names 3 files, but there are 2 columns"),
        ("{0}/a.en,{0}/half.gz", "half.gz: the gzip stream ends too early"),
        ("{0}/a.en", 'For two parallel files, give both names with a comma between them, as in "train.en,train.de".'),
    ],
)
def test_paths_that_name_no_pair_of_files_are_refused(tmp_path: Path, path: str, message: str) -> None:
    parallel(tmp_path, "a\n", "b\n")
    (tmp_path / "half.gz").write_bytes(gzip.compress(b"a line\n" * 100)[:-12])
    path = path.format(tmp_path)
    with pytest.raises(DataError, match=re.escape(message.format(tmp_path))):
        list(pairs([path], with_columns(data_of(path))))


def test_a_parquet_file_is_pairs(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"source": ["a b", "c"], "target": ["d", "e"]}), tmp_path / "a.parquet")
    data = with_columns(data_of(tmp_path / "a.parquet"))
    found_pairs = [(pair.source, pair.target) for pair in pairs(data.files("train"), data)]
    assert found_pairs == [(("a b",), "d"), (("c",), "e")]
    assert [pair.source for pair in asks(data, tmp_path / "a.parquet")] == [("a b",), ("c",)]


def test_features_do_not_stand_before_frames(tmp_path: Path) -> None:
    with pytest.raises(RecurraError, match=r"data\.features needs a text as source,"):
        found(tmp_path / "a.jsonl", '{"frames": [1], "target": "b", "to": "de"}', 'data.features=["to"]')


def asks(data: Seq2SeqData, file: Path | str | None, lines: list[str] | None = None) -> list[Pair]:
    return list(asked(file, lines or [], data))


@pytest.fixture
def inflection(tmp_path: Path) -> Seq2SeqData:
    (tmp_path / "train.tsv").write_text("walk\twalked\tV;PST\nsee\tsees\tV;3;SG\n")
    return with_columns(data_of(tmp_path / "train.tsv"))


@pytest.fixture
def translation(tmp_path: Path) -> Seq2SeqData:
    return with_columns(data_of(parallel(tmp_path, "a cat sleeps\n", "eine Katze schläft\n")))


def test_a_line_is_a_question(translation: Seq2SeqData) -> None:
    assert asks(translation, None, ["a dog", ""]) == [
        Pair(("a dog",), (), None, None, 0, 1), Pair(("",), (), None, None, 0, 2)
    ]  # fmt: skip
    assert [pair.source for pair in asked(None, [["a", "dog"]], translation)] == [("a dog",)]


def test_features_follow_after_a_tab(inflection: Seq2SeqData) -> None:
    [one, two, three] = asks(inflection, None, ["go\tV;PST", "go", "go\twent\tV;PST"])
    assert (one.source, one.features, one.target) == (("go",), ("V", "PST"), None)
    assert (two.source, two.features) == (("go",), ())
    assert (three.source, three.features, three.target) == (("go",), ("V", "PST"), "went")
    with pytest.raises(
        DataError, match=r"input:1: found 4 texts separated by tabs, but this model needs source, features"
    ):
        asks(inflection, None, ["a\tb\tc\td"])


def test_several_sources_follow_after_tabs(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\tc\n")
    data = with_columns(data_of(tmp_path / "train.tsv", 'data.columns=["source", "target", "source"]'))
    [one, two] = asks(data, None, ["x\ty", "x"])
    assert (one.source, two.source) == (("x", "y"), ("x",))


@pytest.mark.parametrize(
    ("name", "text", "target"),
    [
        ("q.tsv", "go\tV;PST\n", None),
        ("q.tsv", "go\twent\tV;PST\n", "went"),
        ("q.tsv", "go\t\tV;PST\n", None),
        ("q.tsv", "source\tfeatures\ngo\tV;PST\n", None),
        ("q.tsv", "features\tsource\ttarget\nV;PST\tgo\twent\n", "went"),
        ("q.csv", "go,V;PST\n", None),
        ("q.csv", "go,went,V;PST\n", "went"),
        ("q.csv", "features,source\nV;PST,go\n", None),
        ("q.jsonl", '{"source": "go", "features": "V;PST"}', None),
        ("q.jsonl", '{"source": "go", "features": "V;PST", "target": "went"}', "went"),
        ("q.jsonl", '{"source": "go", "features": ["V", "PST"], "target": null}', None),
        ("q.txt", "go\tV;PST\n", None),
        ("q", "go\tV;PST\n", None),
        ("q.words", "go\tV;PST\n", None),
    ],
)
def test_a_file_of_questions_may_have_or_lack_its_target(
    inflection: Seq2SeqData, tmp_path: Path, name: str, text: str, target: str | None
) -> None:
    (tmp_path / name).write_text(text)
    assert asks(inflection, tmp_path / name, text.splitlines()) == [
        Pair(("go",), ("V", "PST"), None, target, 0, 2 if text.startswith(("source", "features")) else 1)
    ]


def test_questions_to_a_translator_stand_in_one_file_or_two(translation: Seq2SeqData, tmp_path: Path) -> None:
    for name in ("q.en", "q.de", "q.txt"):
        (tmp_path / name).write_text("a dog\n")
        assert [pair[:1] + pair[3:4] for pair in asks(translation, tmp_path / name, ["a dog"])] == [(("a dog",), None)]
    (tmp_path / "q.de").write_text("ein Hund\n")
    path = f"{tmp_path / 'q.en'},{tmp_path / 'q.de'}"
    assert [pair[:1] + pair[3:4] for pair in asks(translation, path)] == [(("a dog",), "ein Hund")]
    (tmp_path / "q.tsv").write_text("a dog\tein Hund\n")
    assert [pair.target for pair in asks(translation, tmp_path / "q.tsv")] == ["ein Hund"]
    (tmp_path / "r.tsv").write_text("a dog\na cow\n")
    assert [pair.source for pair in asks(translation, tmp_path / "r.tsv")] == [("a dog",), ("a cow",)]


def test_parallel_questions_are_read_by_the_names_of_training(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("en\tde\na\tb\n")
    data = with_columns(data_of(tmp_path / "train.tsv", "data.source=en", "data.target=de"))
    [pair] = asks(data, parallel(tmp_path, "c\n", "d\n"))
    assert (pair.source, pair.target) == (("c",), "d")


def test_a_question_of_numbers_is_a_json_list(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"frames": [[1, 2]], "target": "b"}\n')
    data = with_columns(data_of(tmp_path / "train.jsonl"))
    [one, two] = asks(data, None, ["[[1, 2], [3, 4]]", "[]"])
    assert one.frames is not None
    assert one.frames.tolist() == [[1, 2], [3, 4]]
    assert two.frames is not None
    assert len(two.frames) == 0
    for line, message in (
        ("{}", "but this is an object"),
        ("[1", "is a JSON list of numbers"),
        ("a", "must contain only numbers"),
    ):
        with pytest.raises(DataError, match=f"input:1: .*{message}"):
            asks(data, None, [line])


CELL = st.text(st.sampled_from('ab ;\t,"\n\r{}[]:\\\0é\u2028\ud800'), max_size=12)


@settings(deadline=None, max_examples=60)
@given(content=st.lists(CELL, max_size=6).map("".join), name=st.sampled_from(["a.tsv", "a.csv", "a.jsonl", "a.txt"]))
def test_no_content_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: str, name: str) -> None:
    file = tmp_path_factory.mktemp("fuzz") / name
    file.write_bytes(content.encode("utf-8", "surrogatepass"))
    with suppress(RecurraError):
        data = with_columns(data_of(file))
        for pair in pairs([str(file)], data):
            assert pair.target is not None


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(
        st.dictionaries(
            st.sampled_from(["source", "target", "features", "language", "frames", "x"]), VALUE, max_size=4
        ),
        min_size=1,
        max_size=3,
    )
)
def test_no_value_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with suppress(RecurraError):
        data = with_columns(data_of(file))
        assert len(list(pairs([str(file)], data))) == len(rows)
        assert len(asks(data, file)) == len(rows)


@settings(deadline=None, max_examples=60)
@given(lines=st.lists(CELL, max_size=4), form=st.sampled_from(["inflection", "frames"]))
def test_no_line_breaks_a_question(lines: list[str], form: str) -> None:
    data = Seq2SeqData(train="a.tsv", columns=["source", "target", "features"], features=["features"])
    data = dataclasses.replace(
        data,
        source=dataclasses.replace(data.source, column="source"),
        target=dataclasses.replace(data.target, column="target"),
    )
    if form == "frames":
        data = dataclasses.replace(data, source=dataclasses.replace(data.source, column=None), frames="f", features=[])
    with suppress(RecurraError):
        assert len(asks(data, None, lines)) == len(lines)


def test_a_header_that_names_the_source_twice_makes_several_texts_one_source(tmp_path: Path) -> None:
    [pair] = found(tmp_path / "a.tsv", "source\tid\ttarget\tsource\na\t7\tb\tc\n")
    assert (pair.source, pair.target) == (("a", "c"), "b")


def test_a_header_that_names_the_target_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tsv:1: several columns are called 'target', but a pair has one target"):
        found(tmp_path / "a.tsv", "source\ttarget\ttarget\na\tb\tc\n")


def test_a_name_that_is_nearly_in_the_first_line_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'questoin'\. Did you mean 'question'\? Known: question, reply\."):
        found(tmp_path / "a.tsv", "question\treply\na\tb\n", "data.source=questoin")


@pytest.mark.parametrize(
    ("content", "source", "target", "features"),
    [
        ("Word\tPhones\na\tb\n", ("a",), "b", ()),
        ("answer\tquestion\nb\ta\n", ("a",), "b", ()),
        ("lemma\tform\tmsd\na\tb\tV;PST\n", ("a",), "b", ("V", "PST")),
        ("id\tsource\ttarget\n1\ta\tb\n", ("a",), "b", ()),
        ("context\tquestion\tanswer\nc\ta\tb\n", ("c", "a"), "b", ()),
    ],
)
def test_a_header_of_usual_names_says_what_is_read_and_written(
    tmp_path: Path, content: str, source: tuple[str, ...], target: str, features: tuple[str, ...]
) -> None:
    (tmp_path / "a.tsv").write_text(content)
    data = with_columns(data_of(tmp_path / "a.tsv"))
    (pair,) = pairs(data.files("train"), data)
    assert (pair.source, pair.target, pair.features) == (source, target, features)


def test_several_texts_of_json_lines_are_said_to_need_a_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:1: several texts, context and question, form one source only in a"):
        found(tmp_path / "a.jsonl", '{"context": "c", "question": "a", "answer": "b"}\n')


def test_a_table_without_names_is_read_by_a_model_of_parallel_files(tmp_path: Path) -> None:
    data = with_columns(data_of(parallel(tmp_path, "a b\nc\n", "x y\nz\n")))
    table, header = tmp_path / "b.tsv", tmp_path / "c.tsv"
    table.write_text("c\tz\n")
    assert [(pair.source, pair.target) for pair in pairs([str(table)], data)] == [(("c",), "z")]
    header.write_text("english\tgerman\nc\tz\n")
    with pytest.raises(DataError, match=r"c\.tsv:2: there is no column 'source'\. Known: english, german\."):
        list(pairs([str(header)], data))
    table.write_text("c\tz\t7\n")
    with pytest.raises(DataError, match=r"b\.tsv:1: there is no column 'source'\. Known: column1, column2, column3"):
        list(pairs([str(table)], data))
