"""Whatever bytes a file holds, rows come out of it or one sentence."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.data import Row, rows
from recurra.errors import DataError

CONLLU = (
    "# text = a b\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n2\tb\tb\tY\t_\t_\t1\tdep\t_\t_\n\n1-2\tc\t_\t_\t_\t_\t_\t_\t_\t_\n"
)
VALID = {
    "conllu": CONLLU.encode() + b"1\tc\tc\tX\t_\t_\t0\troot\t_\t_\n",
    "conll": b"# id = 1\na\tX\nb\tY\n\n-DOCSTART-\tO\n\n#\tZ\n",
    "tsv": "text\tlabel\nün petit\tA\nb\t\n".encode(),
    "csv": b'text,label\n"a ""b"",\nc",A\nd,\n',
    "jsonl": b'{"a": [1, 2.5], "b": "x\\u00e9"}\n{"a": [], "b": null}\n',
    "ft": b"__label__a ein\n\n__label__b __label__c zwei\n",
    "sgm": b'<doc docid="a">\n<src><seg id="1">x &amp; y</seg></src>\n'
    b'<ref><seg id="1">z</seg></ref></doc><doc><seg>w</seg>\n',
    "txt": b"ein\r\n\nzwei\n",
    "txt.gz": gzip.compress(b"one\ntwo\n", mtime=0),
    "txt.zst": bytes.fromhex("28b52ffd200a51000068656c6c6f0a776f720a"),
}

ENDINGS = [*VALID, "parquet", "npz"]


def parquet_file() -> bytes:
    pa = pytest.importorskip("pyarrow")
    written = io.BytesIO()
    table = pa.table({"a": ["x", None, "é"], "b": [[1.0], [], [2.0, 3.0]], "c": [1, 2, 3]})
    pytest.importorskip("pyarrow.parquet").write_table(table, written)
    return written.getvalue()


def npz_file() -> bytes:
    written = io.BytesIO()
    np.savez(written, label=np.array(["up", "down"]), frames=np.arange(12.0).reshape(2, 3, 2))
    return written.getvalue()


def valid_file(ending: str) -> bytes:
    return {"parquet": parquet_file, "npz": npz_file}[ending]() if ending in ENDINGS[-2:] else VALID[ending]


def only_rows_or_a_sentence(file: Path, content: bytes, *, beside: str = "") -> None:
    """`beside` is what stands before the name of the file, where it is read together with another one."""
    file.write_bytes(content)
    message = f"{file} was read."
    try:
        found = list(rows(f"{beside}{file}"))
    except DataError as error:
        found, message = [], str(error)
    assert all(isinstance(row, Row) for row in found)
    assert str(file) in message
    assert message.endswith((".", "?"))


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=settings().max_examples // 2)
@given(content=st.binary(max_size=200))
def test_any_bytes_give_rows_or_a_sentence(
    ending: str, tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    only_rows_or_a_sentence(tmp_path_factory.getbasetemp() / f"bytes.{ending}", content)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=settings().max_examples // 2)
@given(text=st.text(st.sampled_from('abO#_-1234.\t\t\n\n\r ,;"{}[]:\\\ufeffé'), max_size=60))
def test_any_text_of_telling_characters_gives_rows_or_a_sentence(
    ending: str, tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    only_rows_or_a_sentence(tmp_path_factory.getbasetemp() / f"text.{ending}", text.encode())


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_valid_file_with_some_bytes_changed_gives_rows_or_a_sentence(
    ending: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(valid_file(ending))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 3))
        content[start : start + length] = data.draw(st.binary(max_size=3))
    only_rows_or_a_sentence(tmp_path_factory.getbasetemp() / f"changed.{ending}", bytes(content))


@given(
    content=st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b" "]), max_size=30).map(
        b"".join
    )
)
def test_any_text_beside_another_gives_pairs_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "a.en").write_bytes(b"one\ntwo\n")
    only_rows_or_a_sentence(folder / "a.de", content, beside=f"{folder / 'a.en'},")


@pytest.mark.parametrize("ending", [*VALID, "npz"])
def test_the_files_that_are_changed_above_are_valid(ending: str, tmp_path: Path) -> None:
    if ending.endswith("zst"):
        pytest.importorskip("zstandard")
    file = tmp_path / f"a.{ending}"
    file.write_bytes(valid_file(ending))
    assert len(list(rows(file))) >= 2
