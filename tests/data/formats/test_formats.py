"""What each format means: rows, their names and their lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recurra.data import Reader, Row, Value, rows
from recurra.data.formats import reader
from recurra.errors import ConfigError, DataError
from recurra.named import catalogue


def read(folder: Path, name: str, content: str, **options: Any) -> list[Row]:
    file = folder / name
    file.write_bytes(content.encode())
    return list(rows(file, **options))


def values(found: list[Row]) -> list[dict[str, Value]]:
    return [dict(row.values) for row in found]


def test_the_catalogue_is_the_folder() -> None:
    assert catalogue(Reader) == [
        "babi",
        "brat",
        "conll",
        "conllu",
        "csv",
        "fasttext",
        "jsonl",
        "npz",
        "parallel",
        "parquet",
        "segments",
        "spans",
        "tagged",
        "text",
        "tsv",
    ]


def test_reading_imports_neither_torch_nor_what_an_extra_brings() -> None:
    program = "import sys, recurra.data.formats; print({'torch', 'pyarrow', 'zstandard'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.conllu", "CoNLLU"), ("a.conll", "CoNLL"), ("a.bio", "CoNLL"), ("a.iob", "CoNLL"), ("a.tsv", "TSV"),
        ("a.csv", "CSV"), ("a.jsonl", "JSONL"), ("a.ndjson", "JSONL"), ("a.json", "JSONL"), ("a.parquet", "Parquet"),
        ("a.txt", "Text"), ("a.text", "Text"), ("A.TSV.GZ", "TSV"), ("a.sgm", "Segments"),
        ("a.xml", "Segments"), ("x/a.b.conllu.zst", "CoNLLU"),
    ],
)  # fmt: skip
def test_the_ending_says_the_format(name: str, expected: str) -> None:
    assert type(reader(name)).__name__ == expected


@pytest.mark.parametrize(
    ("path", "format", "columns", "message"),
    [
        (
            "a.xlsx",
            None,
            None,
            "'a.xlsx': cannot detect the format from the ending '.xlsx'. Known: .ann, .babi, .bio, .conll, ",
        ),
        ("notes", None, None, "'notes': cannot detect the format from a name without an ending."),
        ("a.gz", None, None, "cannot detect the format from a name without an ending."),
        (
            "a.doc",
            None,
            None,
            "set data.format = babi | brat | conll | conllu | csv | fasttext | jsonl | npz | parquet | segments | text",
        ),
        ("a.tsv", "conl", None, "there is no reader 'conl'. Did you mean 'conll'?"),
        ("a.tsv", {"name": "tsv", "headr": True}, None, "'tsv' has no option 'headr'. Did you mean 'header'?"),
        ("a.tsv", {"name": "tsv", "header": "yes"}, None, "header must be true or false or nothing, but is 'yes'"),
        ("a.tsv", {"nam": "tsv"}, None, "data.format is a name or a table such as {name = 'conll'}, but found"),
        ("a.tsv", ["tsv"], None, "data.format is a name or a table"),
        ("a.tsv", None, ["_", ""], "columns must name at least one column, but is ['_', '']"),
        ("a.tsv", None, [], "columns must name at least one column, but is []"),
        ("a.tsv", None, {"text": "a"}, "columns must be a list of strings or nothing"),
        ("a.csv", None, "text", "columns must be a list of strings or nothing, but is 'text'"),
        ("a.csv", {"name": "csv", "separator": ",,"}, None, "separator must be a single character such as"),
        ("a.csv", {"name": "csv", "separator": '"'}, None, "separator must be a single character"),
        ("a.conll", {"name": "conll", "separator": ""}, None, "separator must be a tab, a space or other characters"),
        ("a.conll", None, ["tokens"], "columns must be two or more different names,"),
        ("a.conll", None, ["tags", "tags"], "columns must be two or more different names,"),
        ("a.conllu", None, ["tokens"], "the columns of a conllu file are fixed, so data.columns ="),
        ("a.ft", None, ["text"], "the columns of a fasttext file are fixed, so data.columns ="),
        ("a.txt", None, ["text"], "the columns of a text file are fixed, so data.columns ="),
        ("a.tsv", {"name": "tsv", "columns": ["a"]}, ["b"], "columns is given twice"),
        ("a.jsonl", None, ["a", "a"], "columns must name at least one column and none twice"),
        ("a.parquet", None, {}, "columns must name at least one column and none twice"),
    ],
)
def test_a_format_that_cannot_be_is_refused_in_words(
    path: str, format: Any, columns: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(path).touch()
    with pytest.raises((ConfigError, DataError)) as refusal:
        reader(path, format, columns)
    assert message in str(refusal.value)


SENTENCES = (
    "# sent_id = 1\n# text = don't go\n1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tdo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t_\t_\n2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No\n3.1\tgone\t_\t_\t_\t_\t_\t_\t0:x\t_\n\n\n"
    "1\t_\t_\tSYM\t_\t_\t0\troot\t_\t_\n2\t1 000\t_\tNUM\t_\t_\t1\tdep\t_\t_\n"
)


def test_conllu_gives_a_sentence_a_row_without_ranges_and_empty_nodes(tmp_path: Path) -> None:
    first, second = read(tmp_path, "a.conllu", SENTENCES)
    assert first.values == {
        "tokens": ["do", "n't", "go"],
        "lemma": ["do", "not", "go"],
        "upos": ["AUX", "PART", "VERB"],
        "xpos": ["VB", "RB", "VB"],
        "feats": ["Mood=Imp", "_", "_"],
        "head": ["3", "3", "0"],
        "deprel": ["aux", "advmod", "root"],
        "deps": ["_", "_", "_"],
        "misc": ["_", "_", "SpaceAfter=No"],
    }
    assert second.values["tokens"] == ["_", "1 000"]
    assert (first.line, second.line) == (1, 10)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\tX\nb\tY\n\nc\tZ\n", [("a b", "X Y", 1), ("c", "Z", 4)]),
        ("a X\nb   Y \n", [("a b", "X Y", 1)]),
        ("-DOCSTART- -X- O O\n\na X\n-DOCSTART- O\nb Y\n", [("a", "X", 3), ("b", "Y", 5)]),
        ("# id = 1\na\tX\n\n# id = 2\nb\tY\n", [("a", "X", 2), ("b", "Y", 5)]),
        ("# id = 1\na X\n\n# O\nb Y\n", [("a", "X", 2), ("# b", "O Y", 4)]),
        ("#\tO\na\tX\n", [("# a", "O X", 1)]),
        ("a\tX\n#\tO\n# 1\tY\n", [("a # # 1", "X O Y", 1)]),
        ("# O\n", [("#", "O", 1)]),
        ("\n\n \t\na\tX\n\n\n\n", [("a", "X", 4)]),
        ("a\u00a0b\u2028\tX\r\n", [("a\u00a0b\u2028", "X", 1)]),
        ("New York\tX\n", [("New York", "X", 1)]),
    ],
)
def test_conll_gives_a_sentence_a_row(content: str, expected: list[tuple[str, str, int]], tmp_path: Path) -> None:
    found = read(tmp_path, "a.conll", content)
    joined = [(" ".join(row.values["tokens"]), " ".join(row.values["tags"]), row.line) for row in found]  # type: ignore[arg-type]
    assert joined == expected


def test_columns_between_the_first_and_the_last_are_numbered_unless_named(tmp_path: Path) -> None:
    content = "a NN B-NP O\n"
    assert values(read(tmp_path, "a.conll", content)) == [
        {"tokens": ["a"], "column2": ["NN"], "column3": ["B-NP"], "tags": ["O"]}
    ]
    named = read(tmp_path, "a.conll", content, columns=["tokens", "_", "tags", ""])
    assert values(named) == [{"tokens": ["a"], "tags": ["B-NP"]}]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("a\tb\n", {}, [{"column1": "a", "column2": "b"}]),
        ("text\tlabel\na\tb\n", {}, [{"text": "a", "label": "b"}]),
        ("text\tlabel\na\tb\n", {"columns": ["label"]}, [{"label": "b"}]),
        ("id\ttext\tlabel\n1\ta\tb\n", {"columns": ["label", "text"]}, [{"text": "a", "label": "b"}]),
        ("size\tname\n1\ta\n", {"header": True}, [{"size": "1", "name": "a"}]),
        ("\tname\n1\ta\n", {"header": True}, [{"name": "a"}]),
        ("size\tname\n1\ta\n", {"header": True, "columns": ["label", "text"]}, [{"label": "1", "text": "a"}]),
        ("text\tlabel\n", {"header": False}, [{"column1": "text", "column2": "label"}]),
        ("text\tx\n", {"header": False, "columns": ["text", "label"]}, [{"text": "text", "label": "x"}]),
        ("a\tb\tc\n", {"columns": ["source", "target", "source"]}, [{"source": ["a", "c"], "target": "b"}]),
        ("a\tb\tc\n", {"columns": ["_", "text", ""]}, [{"text": "b"}]),
        ("source\tsource\na\tb\n", {}, [{"source": ["a", "b"]}]),
        ("red\t1\t2\n", {"columns": ["target", "vector", "vector"]}, [{"target": "red", "vector": ["1", "2"]}]),
        ("a b\tO O\tx\n", {"columns": ["tokens", "tags", "label"]}, [{"tokens": "a b", "tags": "O O", "label": "x"}]),
        ('"a\t"b"\n', {}, [{"column1": '"a', "column2": '"b"'}]),
        ("\tb\na\t\n", {}, [{"column1": "", "column2": "b"}, {"column1": "a", "column2": ""}]),
        ("a\tb\n\n\n", {}, [{"column1": "a", "column2": "b"}]),
        ("a\n\nb\n", {"columns": ["text"]}, [{"text": "a"}, {"text": ""}, {"text": "b"}]),
        ("a\u2028\x0b\tb\r\n", {}, [{"column1": "a\u2028\x0b", "column2": "b"}]),
    ],
)
def test_tsv_gives_a_line_a_row(
    content: str, options: dict[str, Any], expected: list[dict[str, Value]], tmp_path: Path
) -> None:
    assert values(read(tmp_path, "a.tsv", content, format={"name": "tsv", **options})) == expected


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("text,label\na,b\n", {}, [({"text": "a", "label": "b"}, 2)]),
        ("text;label\na,c;b\n", {}, [({"text": "a,c", "label": "b"}, 2)]),
        ("a|b\n", {"separator": "|"}, [({"column1": "a", "column2": "b"}, 1)]),
        ('"a\n\nb",c\nd,e\n', {}, [({"column1": "a\n\nb", "column2": "c"}, 1), ({"column1": "d", "column2": "e"}, 4)]),
        ('"say ""hi"", you",b\n', {}, [({"column1": 'say "hi", you', "column2": "b"}, 1)]),
        ('a "b",c\n', {}, [({"column1": 'a "b"', "column2": "c"}, 1)]),
        ('""\n', {}, [({"column1": ""}, 1)]),
        ("a,b\n\n\n", {}, [({"column1": "a", "column2": "b"}, 1)]),
        ('"text","label"\r\n"a\r\nb",c\r\n', {"columns": ["text"]}, [({"text": "a\nb"}, 2)]),
    ],
)
def test_csv_gives_a_record_a_row_and_its_first_line(
    content: str, options: dict[str, Any], expected: list[tuple[dict[str, Value], int]], tmp_path: Path
) -> None:
    found = read(tmp_path, "a.csv", content, format={"name": "csv", **options})
    assert [(dict(row.values), row.line) for row in found] == expected


def test_jsonl_gives_an_object_a_row(tmp_path: Path) -> None:
    content = '{"text": "a", "n": 3, "x": 0.5, "ink": [[[1, 2], [3]]], "ok": true, "no": null}\n{"text": "b"}\n\n \n'
    first, second = read(tmp_path, "a.jsonl", content)
    assert first.values == {"text": "a", "n": 3, "x": 0.5, "ink": [[[1, 2], [3]]], "ok": "true", "no": None}
    assert isinstance(first.values["n"], int)
    assert second == Row({"text": "b"}, 2)


def test_columns_choose_and_rename_keys_and_the_others_may_be_anything(tmp_path: Path) -> None:
    content = '{"body": "a", "stars": 4, "author": {"name": "x"}}\n'
    assert values(read(tmp_path, "a.jsonl", content, columns=["stars"])) == [{"stars": 4}]
    renamed = read(tmp_path, "a.jsonl", content, columns={"text": "body", "label": "stars"})
    assert values(renamed) == [{"text": "a", "label": 4}]


def test_text_gives_a_line_a_row_and_keeps_empty_ones(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", "\ufeffone\n\n two \n\n") == [
        Row({"text": "one"}, 1), Row({"text": ""}, 2), Row({"text": " two "}, 3), Row({"text": ""}, 4)
    ]  # fmt: skip


class Shouting(Reader):
    def __init__(self, *, mark: str = "!") -> None:
        self.mark = mark

    def read(self, path: Any) -> Any:
        yield Row({"text": Path(path).name.upper() + self.mark}, 1)


def test_a_users_own_reader_is_named_by_its_place() -> None:
    own = {"name": f"{__name__}:Shouting", "mark": "?"}
    assert values(list(rows("a.xyz", format=own))) == [{"text": "A.XYZ?"}]


LONG = 20_000
STREAMED = {
    "conllu": "1\ta" + "\t_" * 8 + "\n\n",
    "conll": "a\tX\n\n",
    "tsv": "a\tb\n",
    "csv": '"a",b\n',
    "jsonl": '{"a": 1}\n',
    "txt": "a\n",
}


@pytest.mark.parametrize("ending", STREAMED)
def test_a_reader_reads_no_further_than_asked_and_closes_the_file(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{ending}"
    file.write_bytes(STREAMED[ending].encode() * LONG + b"\xff\n")
    before = len(os.listdir("/proc/self/fd"))
    stream = rows(file)
    assert next(stream).line == 1
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del stream
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(DataError, match=rf"a\.{ending}:[0-9]+: byte 1 of the line, 0xff, is not UTF-8"):
        list(rows(file))
    assert len(os.listdir("/proc/self/fd")) == before
