"""What is written in a format is read back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recurra.data import Row, rows


def read(folder: Path, name: str, content: str, **options: Any) -> list[Row]:
    file = folder / name
    file.write_bytes(content.encode())
    return list(rows(file, **options))


# What a line of each format may hold: all but the characters that end a line, separate cells, or look binary.
in_a_line = st.characters(codec="utf-8", exclude_characters="\n\r\0")
in_a_cell = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\t"), max_size=6)
a_word = st.text(in_a_line, min_size=1, max_size=6).filter(lambda word: "\t" not in word)


@given(st.lists(st.text(in_a_line, max_size=8), min_size=1))
def test_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    found = read(tmp_path_factory.getbasetemp(), "round.txt", "\ufeff" + "".join(f"{text}\n" for text in texts))
    assert [row.values["text"] for row in found] == texts


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[in_a_cell] * width), min_size=1)))
def test_tsv_is_read_back(tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, ...]]) -> None:
    content = "\ufeff" + "".join("\t".join(cells) + "\n" for cells in table)
    found = read(tmp_path_factory.getbasetemp(), "round.tsv", content, format={"name": "tsv", "header": False})
    assert [tuple(row.values.values()) for row in found] == table


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=6)] * width),
            min_size=1,
        )
    )
)
def test_csv_is_read_back(tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, ...]]) -> None:
    content = io.StringIO()
    csv.writer(content, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    chosen = {"name": "csv", "header": False, "separator": ","}
    found = read(tmp_path_factory.getbasetemp(), "round.csv", content.getvalue(), format=chosen)
    assert [tuple(row.values.values()) for row in found] == table
    lines = [1]
    for cells in table[:-1]:
        lines.append(lines[-1] + 1 + sum(cell.count("\n") for cell in cells))
    assert [row.line for row in found] == lines


@given(st.lists(st.lists(st.tuples(a_word, a_word), min_size=1, max_size=4), min_size=1, max_size=4))
def test_conll_is_read_back(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[tuple[str, str]]]) -> None:
    assume(all(f"{word}{tag}".strip(" ") for sentence in sentences for word, tag in sentence))
    content = "\ufeff" + "\n".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences)
    found = read(tmp_path_factory.getbasetemp(), "round.conll", content)
    assert [list(zip(row.values["tokens"], row.values["tags"], strict=True)) for row in found] == sentences  # type: ignore[arg-type]


@given(st.lists(st.lists(st.tuples(*[a_word] * 9), min_size=1, max_size=3), min_size=1, max_size=3))
def test_conllu_is_read_back(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[tuple[str, ...]]]) -> None:
    content = "\n".join(
        "# a comment\n" + "".join("\t".join([str(k), *cells]) + "\n" for k, cells in enumerate(sentence, 1))
        for sentence in sentences
    )
    found = read(tmp_path_factory.getbasetemp(), "round.conllu", content)
    assert [list(zip(*row.values.values(), strict=True)) for row in found] == sentences


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8"), max_size=5)
strokes = st.lists(st.lists(st.lists(numbers, max_size=2), max_size=2), max_size=2)
any_value = st.none() | words | numbers | st.lists(words, max_size=3) | st.lists(numbers, max_size=3) | strokes


@given(st.lists(st.dictionaries(words, any_value, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans())
def test_jsonl_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, Any]], ascii_only: bool
) -> None:
    content = "".join(json.dumps(one, ensure_ascii=ascii_only) + "\n" for one in objects)
    assert [row.values for row in read(tmp_path_factory.getbasetemp(), "round.jsonl", content)] == objects
