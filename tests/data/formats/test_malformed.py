"""Every way to get a file wrong has its sentence, with the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recurra.data import rows
from recurra.errors import DataError

WORD = "1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t0\troot\t_\t_\n"


def word(number: object = 1, form: str = "Dogs", rest: int = 8) -> str:
    return "\t".join([str(number), form, *["_"] * rest]) + "\n"


CONLLU: list[tuple[str | bytes, str]] = [
    ("1 Dogs dog NOUN NNS _ 0 root _ _\n", ":1: CoNLL-U has 10 columns separated by tabs, but this line has no tab"),
    ("Dogs\n", ":1: CoNLL-U has 10 columns separated by tabs, but this line has no tab: 'Dogs'"),
    (WORD + "bark\n", ":2: CoNLL-U has 10 columns separated by tabs, but this line has no tab: 'bark'"),
    (
        "Dogs\tNOUN\n",
        ':1: found 2 columns, but CoNLL-U has 10. Write _ in a column without a value, or set data.format = "conll"',
    ),
    (word(rest=7), ":1: found 9 columns, but CoNLL-U has 10"),
    (word(rest=9), ":1: found 11 columns, but CoNLL-U has 10"),
    (WORD + word(2, rest=3), ":2: found 5 columns, but CoNLL-U has 10"),
    (word("1-2", rest=1), ":1: found 3 columns, but CoNLL-U has 10"),
    (word(1, form=""), ":1: column 2, FORM, is empty. Write _ where there is no value."),
    (WORD.replace("NOUN", ""), ":1: column 4, UPOS, is empty"),
    (WORD.replace("root", ""), ":1: column 8, DEPREL, is empty"),
    (word(""), ":1: column 1, ID, is empty"),
    (word(0), ":1: the ID is '0', but the next word of this sentence is number 1. Number the words 1, 2, 3"),
    (word(2), ":1: the ID is '2', but the next word of this sentence is number 1"),
    (WORD + word(3), ":2: the ID is '3', but the next word of this sentence is number 2"),
    (
        WORD + word(1),
        ":2: the ID is '1', but the next word of this sentence is number 2. Number the words 1, 2, 3 …, and",
    ),
    (WORD + "\n" + word(2), ":3: the ID is '2', but the next word of this sentence is number 1"),
    (word("x"), ":1: the ID is 'x', but"),
    (word("01"), ":1: the ID is '01', but"),
    (word("1-"), ":1: the ID is '1-', but"),
    (word("-1"), ":1: the ID is '-1', but"),
    (word("١"), ":1: the ID is '١', but"),
    ("# sent_id = 1\n\n" + WORD, ":1: this sentence has no words. Remove its comments, or add the words."),
    (WORD + "\n# text = Dogs\n", ":3: this sentence has no words"),
    ("\n" + word("1-2") + word("1.1") + "\n", ":2: this sentence has no words"),
    ("", "is empty: it has no rows."),
    ("\n\n", "is empty: it has no rows."),
    (b"1\tD\xf6gs", ":1: byte 4 of the line, 0xf6, is not UTF-8"),
]

CONLL: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("Dogs\nbark\n", {}, ":1: found one column, 'Dogs', but CoNLL needs a word and its tag"),
    ("Dogs\tN\nbark\n", {}, ":2: found one column, but line 1 has 2. Write each word with its tags on one line"),
    ("Dogs\tN\nbark V\n", {}, ":2: found one column, but line 1 has 2. Write each word with its tags on one line, "
     "and a blank line after each sentence; here spaces are used instead of the separator."),
    ("Dogs N\nbark V x\n", {}, ":2: found 3 columns, but line 1 has 2"),
    ("Dogs N x\n\nbark V\n", {}, ":3: found 2 columns, but line 1 has 3"),
    ("\n\nDogs N\nbark\n", {}, ":4: found one column, but line 3 has 2"),
    ("# id = 1\nDogs\tN\n\n# id = 2\nbark\n", {}, ":5: found one column, but line 2 has 2"),
    ("Dogs\tN\n# a comment inside\n", {}, ":2: found one column, but line 1 has 2"),
    ("Dogs\tN\n\n#hashtag\n", {}, ":3: found one column, but line 1 has 2"),
    ("Dogs\tN\n\n#\n", {}, ":3: found one column, but line 1 has 2"),
    ("Dogs\tN\n\n# a\tb\tc\n", {}, ":3: found 3 columns, but line 1 has 2"),
    ("Dogs\t\n", {}, ":1: column 2 is empty. Every word needs a value in each of its 2 columns: write _ or O"),
    ("\tN\n", {}, ":1: column 1 is empty"),
    ("Dogs\tN\tx\nbark\t\tx\n", {}, ":2: column 2 is empty"),
    ("Dogs N\n", {"separator": "\t"}, ":1: found one column, 'Dogs N', but CoNLL needs"),
    ("Dogs N\nbark  V\n", {"separator": " "}, ":2: found 3 columns, but line 1 has 2. Write each word with its tags "
     "on one line, and a blank line after each sentence; here two spaces follow each other, so leave data"),
    ("Dogs|N\nbark|V|x\n", {"separator": "|"}, ":2: found 3 columns, but line 1 has 2"),
    ("Dogs N\n", {"columns": ["tokens", "pos", "tags"]}, ":1: found 2 columns, but columns names 3 (tokens, pos, tags)."
     ' Name all of them; "_" leaves one out.'),
    ("Dogs N x\n", {"columns": ["tokens", "tags"]}, ":1: found 3 columns, but columns names 2 (tokens, tags)"),
    ("", {}, "is empty: it has no rows."),
    ("\n \n\t\n", {}, "is empty: it has no rows."),
    ("-DOCSTART- -X- O\n\n", {}, "is empty: it has no rows."),
    (b"Dogs\tN\nb\xe4rk\tV\n", {}, ":2: byte 2 of the line, 0xe4, is not UTF-8"),
    (b"Dogs\tN\n\x00\tV\n", {}, ":2: a NUL character was found"),
]  # fmt: skip

BLANK = "this line is blank, and more lines follow. Blank lines are allowed only at the end of the file: remove it."

TSV: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("a\tb\nc\n", {}, ":2: found one column, but line 1 has 2. Cells are separated by one tab; spaces do not separate"),
    ("a\tb\nc  d\n", {}, ":2: found one column, but line 1 has 2. Cells are separated by one tab"),
    ("a\tb\nc\td\te\n", {}, ":2: found 3 columns, but line 1 has 2. Every tab separates two cells: replace tabs"),
    ("a\nb\tc\n", {}, ":2: found 2 columns, but line 1 has 1. Every tab separates"),
    ("a\tb\n\nc\td\n", {}, f":2: {BLANK}"),
    ("a\tb\n\n\n\nc\td\n", {}, f":2: {BLANK}"),
    ("\na\tb\n", {}, ":2: found 2 columns, but line 1 has 1"),
    ("\na\tb\n", {"columns": ["source", "target"]}, f":1: {BLANK}"),
    ("a\n", {"columns": ["source", "target"]}, ":1: found one column, but columns (source, target) names 2. Cells are"),
    ("a\tb\tc\n", {"columns": ["source", "target"]}, ":1: found 3 columns, but columns (source, target) names 2."),
    ("a\tb\nc\td\te\n", {"columns": ["text", "_"]}, ":2: found 3 columns, but columns (text, _) names 2"),
    ("text\tlabel\na\n", {}, ":2: found one column, but line 1 has 2"),
    ("text\tlabel\na\tb\tc\n", {"columns": ["label"]}, ":2: found 3 columns, but line 1 has 2"),
    ("text\tlable\na\tb\n", {"columns": ["text", "label"]}, ":1: the header has no column 'label'. Did you mean"
     " 'lable'? Known: text, lable. If that line is data and not a header, set header = false."),
    ("a\tb\nc\td\n", {"columns": ["text"], "header": True}, ":1: the header has no column 'text'. Known: a, b."),
    ("text\tlabel\n", {"columns": ["txt"], "header": True}, ":1: the header has no column 'txt'. Did you mean 'text'?"),
    ("\t_\na\tb\n", {"header": True}, ":1: the header has no column names. Write them, or set data.columns."),
    ("text\tlabel\n", {}, "is empty: it has no rows."),
    ("", {}, "is empty: it has no rows."),
    ("\n", {"columns": ["source", "target"]}, "is empty: it has no rows."),
    ("a\tb\n   \nc\td\n", {}, ":2: found one column, but line 1 has 2"),
    (b"a\tb\n\xff\tb\n", {}, ":2: byte 1 of the line, 0xff, is not UTF-8"),
    (b"a\tb\n\x00\tb\n", {}, ":2: a NUL character was found"),
]  # fmt: skip

UNCLOSED = "a double quote is opened on this line and never closed. Inside a quoted cell a quote is written"

CSV: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("a,b\nc\n", {}, ":2: found one column, but line 1 has 2. Cells are separated by ','; a missing one still needs"),
    ("a,b\nc,d,e\n", {}, ":2: found 3 columns, but line 1 has 2. A text that holds ',' must stand in double quotes."),
    ("a,b\nwell, yes, no,d\n", {}, ":2: found 4 columns, but line 1 has 2. A text that holds ','"),
    ("a;b\nc;d;e\n", {}, ":2: found 3 columns, but line 1 has 2. A text that holds ';' must"),
    ("a,b\nc;d\n", {}, ":2: found one column, but line 1 has 2"),
    ("a|b\nc|d|e\n", {"separator": "|"}, ":2: found 3 columns, but line 1 has 2. A text that holds '|' must"),
    ('a,"b\nc,d\n', {}, f":1: {UNCLOSED}"),
    ('a,b\nc,"d\ne,f\ng,h\n', {}, f":2: {UNCLOSED}"),
    ('a,b\n"c\nd",e\nf,"g\n', {}, f":4: {UNCLOSED}"),
    ('a,b\n"c"d,e\n', {}, ":2: text follows a closing double quote. Inside a quoted cell a quote is written twice"),
    ('a,b\n"he said "yes"",e\n', {}, ":2: text follows a closing double quote"),
    ('a,b\n"x\ny",c,d\n', {}, ":2: found 3 columns, but line 1 has 2"),
    ('a,b\n"x\ny",c\nd\n', {}, ":4: found one column, but line 1 has 2"),
    ("a,b\nc\rd,e\n", {}, ":2: the line contains a carriage return."),
    ("a,b\n\nc,d\n", {}, f":2: {BLANK}"),
    ("a\n\nb\n", {}, f":2: {BLANK}"),
    ("\na,b\n", {}, f":1: {BLANK}"),
    ('a,b\n"' + "x" * 140_000 + '",c\n', {}, ":2: a cell holds more than 131,072 characters, so a double quote"),
    ("a,b\n", {"columns": ["source", "target", "source"]}, ":1: found 2 columns, but columns (source, target, source)"),
    ("text,lable\na,b\n", {"columns": ["text", "label"]}, ":1: the header has no column 'label'. Did you mean"),
    ("a,b\n", {"columns": ["text"], "header": True}, ":1: the header has no column 'text'"),
    ("text,label\n", {}, "is empty: it has no rows."),
    ("", {}, "is empty: it has no rows."),
    ("\n\n", {}, "is empty: it has no rows."),
    (b"a,b\nc,\xe9\n", {}, ":2: byte 3 of the line, 0xe9, is not UTF-8"),
    (b"a,b\nc,\x00\n", {}, ":2: a NUL character was found"),
]  # fmt: skip

JSONL: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("{text: 1}\n", {}, ":1: this is not JSON (expecting property name enclosed in double quotes at column 2)."),
    ('{"a": 1}\n{"a": }\n', {}, ":2: this is not JSON (expecting value at column 7)"),
    ('{"a": 1\n', {}, ":1: this is not JSON (expecting ',' delimiter at column 8)"),
    ('{"a": "x}\n', {}, ":1: this is not JSON (unterminated string starting at at column 7)"),
    ('{"a": 1} {"b": 2}\n', {}, ":1: this is not JSON (extra data at column 10)"),
    ('{"a": "x\ty"}\n', {}, ":1: this is not JSON (invalid control character at at column 9)"),
    ("plain text\n", {}, ":1: this is not JSON (expecting value at column 1)"),
    ("{'a': 1}\n", {}, ":1: this is not JSON (expecting property name"),
    ("[1, 2]\n", {}, ":1: found an array, but each line must hold one object"),
    ('[{"a": 1}]\n', {}, "If the file is one array of objects, write each on a line of its own."),
    ("3\n", {}, ":1: found 3, but each line must hold one object"),
    ("null\n", {}, ":1: found null, but each line must hold one object"),
    ("{}\n", {}, ":1: the object is empty"),
    ('{"a": NaN}\n', {}, ":1: NaN is not JSON. Write null where a number is missing."),
    ('{"a": [1, -Infinity]}\n', {}, ":1: -Infinity is not JSON"),
    ('{"a": 1, "b": 2, "a": 3}\n', {}, ":1: the key 'a' occurs twice in one object. Keep one of them."),
    ('{"a": [[[[1]]]]}\n', {}, ":1: the value of 'a' is nested deeper than 3 levels."),
    ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n", {}, ":1: the value is nested deeper than 3 levels."),
    ('{"a": 1e999}\n', {}, ":1: the number 1e999 is too large."),
    ('{"a": ' + "9" * 5000 + "}\n", {}, ":1: the number 999999999999… of 5000 digits is too large."),
    ('{"a": ' + "9" * 309 + "}\n", {}, ":1: the value of 'a' is infinite or NaN"),
    ('{"a": {"b": 1}}\n', {}, ":1: the value of 'a' is an object; only texts, numbers and arrays of them"),
    ('{"a": [{"b": 1}]}\n', {}, ":1: the value of 'a' is an object"),
    ('{"a": [1, "x"]}\n', {}, ":1: the value of 'a' mixes texts and numbers in one array."),
    ('{"a": [[1], ["x"]]}\n', {}, ":1: the value of 'a' mixes texts and numbers"),
    ('{"a": [1, [2]]}\n', {}, ":1: the value of 'a' mixes arrays with other values"),
    ('{"a": "\\ud800"}\n', {}, ":1: the value of 'a' contains half of a surrogate pair"),
    ('{"a": 1}\n\n{"a": 2}\n', {}, f":2: {BLANK}"),
    ('{"text": 1}\n{"txt": 2}\n', {"columns": ["text"]}, ":2: there is no column 'text'. Did you mean 'txt'?"),
    ('{"body": "x"}\n', {"columns": {"text": "bodi"}}, ":1: there is no column 'bodi'. Did you mean 'body'?"),
    ("", {}, "is empty: it has no rows."),
    (b'{"a": "\xe9"}\n', {}, ":1: byte 8 of the line, 0xe9, is not UTF-8"),
]  # fmt: skip

TEXT: list[tuple[bytes, str]] = [
    (b"", "is empty: it has no rows."),
    (b"\xef\xbb\xbf", "is empty: it has no rows."),
    (b"caf\xe9\n", ":1: byte 4 of the line, 0xe9, is not UTF-8. Open the file in an editor and save it as UTF-8."),
    (b"one\ntwo\ncaf\xe9\n", ":3: byte 4 of the line, 0xe9, is not UTF-8"),
    (b"one\r\ntwo\r\n\xe9\r\n", ":3: byte 1 of the line, 0xe9, is not UTF-8"),
    (b"\x80\n", ":1: byte 1 of the line, 0x80, is not UTF-8"),
    (b"\xc3\n", ":1: byte 1 of the line, 0xc3, is not UTF-8"),
    (b"a\xc3", ":1: byte 2 of the line, 0xc3, is not UTF-8"),
    (b"\xc0\xaf\n", ":1: byte 1 of the line, 0xc0, is not UTF-8"),
    (b"\xed\xa0\x80\n", ":1: byte 1 of the line, 0xed, is not UTF-8"),
    (b"\xf5\x80\x80\x80\n", ":1: byte 1 of the line, 0xf5, is not UTF-8"),
    (b"\xe2\x82\n", ":1: byte 1 of the line, 0xe2, is not UTF-8"),
    (b"\xf0\x9f\x98\nx", ":1: byte 1 of the line, 0xf0, is not UTF-8"),
    (b"a\nb\xa0c\n", ":2: byte 2 of the line, 0xa0, is not UTF-8"),
    (b"\x93quoted\x94\n", ":1: byte 1 of the line, 0x93, is not UTF-8"),
    (b"\xff\xfea\n", ":1: byte 1 of the line, 0xff, is not UTF-8 (the file begins as UTF-16 does)"),
    (b"\xfe\xffa\n", ":1: byte 1 of the line, 0xfe, is not UTF-8 (the file begins as UTF-16 does)"),
    ("text\n".encode("utf-16"), ":1: a NUL character was found, so this looks like a binary or a UTF-16 file"),
    ("text\n".encode("utf-16-le"), ":1: a NUL character was found"),
    ("text\n".encode("utf-32"), ":1: a NUL character was found"),
    (b"one\nt\x00wo\n", ":2: a NUL character was found"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", ":1: byte 1 of the line, 0x89, is not UTF-8"),
]


def refused(folder: Path, name: str, content: str | bytes, options: dict[str, Any], fragment: str) -> None:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    kind = file.suffix[1:].replace("txt", "text")
    with pytest.raises(DataError) as refusal:
        list(rows(file, format={"name": kind, **options}))
    message = str(refusal.value)
    assert str(file) in message
    assert fragment in message
    if fragment.startswith(":"):
        assert message.startswith(f"{file}{fragment}")


@pytest.mark.parametrize(("content", "fragment"), CONLLU)
def test_a_malformed_conllu_file_is_refused_with_its_line(content: str | bytes, fragment: str, tmp_path: Path) -> None:
    refused(tmp_path, "a.conllu", content, {}, fragment)


@pytest.mark.parametrize(("content", "options", "fragment"), CONLL)
def test_a_malformed_conll_file_is_refused_with_its_line(
    content: str | bytes, options: dict[str, Any], fragment: str, tmp_path: Path
) -> None:
    refused(tmp_path, "a.conll", content, options, fragment)


@pytest.mark.parametrize(("content", "options", "fragment"), TSV)
def test_a_malformed_tsv_file_is_refused_with_its_line(
    content: str | bytes, options: dict[str, Any], fragment: str, tmp_path: Path
) -> None:
    refused(tmp_path, "a.tsv", content, options, fragment)


@pytest.mark.parametrize(("content", "options", "fragment"), CSV)
def test_a_malformed_csv_file_is_refused_with_its_line(
    content: str | bytes, options: dict[str, Any], fragment: str, tmp_path: Path
) -> None:
    refused(tmp_path, "a.csv", content, options, fragment)


@pytest.mark.parametrize(("content", "options", "fragment"), JSONL)
def test_a_malformed_jsonl_file_is_refused_with_its_line(
    content: str | bytes, options: dict[str, Any], fragment: str, tmp_path: Path
) -> None:
    refused(tmp_path, "a.jsonl", content, options, fragment)


@pytest.mark.parametrize(("content", "fragment"), TEXT)
def test_a_malformed_text_file_is_refused_with_its_line(content: bytes, fragment: str, tmp_path: Path) -> None:
    refused(tmp_path, "a.txt", content, {}, fragment)
