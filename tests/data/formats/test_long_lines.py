"""A line that is longer than any example is refused before it takes much memory."""

from __future__ import annotations

import gzip
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from recurra.data.arriving import Arriving
from recurra.data.files import LONGEST_LINE
from recurra.data.formats import rows
from recurra.errors import DataError

SIZE = 3 * LONGEST_LINE
BEFORE = {
    "a.txt": b"",
    "a.tsv": b"one\ttwo\n",
    "a.csv": b'one,two\n"',
    "a.jsonl": b'{"text": "',
    "a.conllu": b"1\t",
    "a.conll": b"one O\n",
    "a.ft": b"__label__one ",
}


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", BEFORE)
def test_a_line_of_many_megabytes_is_refused_in_little_memory(name: str, ending: str, tmp_path: Path) -> None:
    content = BEFORE[name] + b"x" * SIZE
    if ending == ".gz":
        content = gzip.compress(content, 1)
    elif ending == ".zst":
        content = pytest.importorskip("zstandard").ZstdCompressor().compress(content)
    file = tmp_path / (name + ending)
    file.write_bytes(content)
    del content
    options = {"a.ft": "fasttext"}
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=rf"{name}{ending}:[12]: the line is longer than 8,388,608 bytes"):
            list(rows(file, format=options.get(name)))
        assert tracemalloc.get_traced_memory()[1] < 6 * LONGEST_LINE
    finally:
        tracemalloc.stop()


def test_a_line_of_many_megabytes_is_refused_where_it_arrives() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(b"one\n")
            try:
                file.write(b"x" * SIZE)
                file.flush()
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=write)
    writer.start()
    lines = Arriving(reading)
    assert next(lines) == b"one"
    with pytest.raises(DataError, match=r"standard input:2: the line is longer than 8,388,608 bytes"):
        next(lines)
    while os.read(reading, 1 << 20):
        pass
    writer.join()
    os.close(reading)
