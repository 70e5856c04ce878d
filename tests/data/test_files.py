"""Lines of files: numbered, strict about their encoding, read no further than asked."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data import files
from recurra.data.files import extension, lines
from recurra.errors import DataError


def compressed(content: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(content)
    if ending == ".zst":
        return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(content))
    return content


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.conllu.gz", "conllu"), ("a.conllu.zst", "conllu"), ("a.b.tsv", "tsv"), ("A.CSV.GZ", "csv"), ("a", ""),
        ("a.gz", ""), (".tsv", ""), ("x.y/a", ""), (Path("x") / "a.txt", "txt"), ("a.", ""),
    ],
)  # fmt: skip
def test_the_extension_is_that_of_the_format(path: str, expected: str) -> None:
    assert extension(path) == expected


def oracle(content: bytes) -> list[tuple[int, str]]:
    """Lines by Python's own text layer, which knows no ends but those it is told."""
    with io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="\n") as text:
        return [(k, line.removesuffix("\n").removesuffix("\r")) for k, line in enumerate(text, 1)]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("\r\n\x0b\x85\u2028\ufeff"))
)
def test_lines_are_those_of_the_text_plain_or_compressed(
    ending: str, tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / f"lines.txt{ending}"
    file.write_bytes(compressed(text.encode(), ending))
    assert list(lines(file)) == oracle(text.encode())


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_lines_longer_than_a_piece_of_the_file_are_whole(ending: str, tmp_path: Path) -> None:
    texts = ["é" * 300_000, "", "x" * 65_536, "y" * 65_535]
    file = tmp_path / f"long.txt{ending}"
    file.write_bytes(compressed("\n".join(texts).encode(), ending))
    assert [line for _, line in lines(file)] == texts


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_parts_compressed_one_by_one_are_one_file(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"parts.txt{ending}"
    file.write_bytes(compressed(b"one\ntw", ending) + compressed(b"", ending) + compressed(b"o\nthree", ending))
    assert list(lines(file)) == [(1, "one"), (2, "two"), (3, "three")]


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_an_empty_file_has_no_lines(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"empty.txt{ending}"
    for content in (b"", compressed(b"", ending)):
        file.write_bytes(content)
        assert list(lines(file)) == []


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_reader_that_stops_early_reads_no_further_and_closes_the_file(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"early.txt{ending}"
    # The end is not UTF-8, and of the compressed file it is missing: whoever got there would be told.
    noise = b"".join(b"%x\n" % (k * 0x9E3779B97F4A7C15 % 2**64) for k in range(100_000))
    content = compressed(b"one\n" + noise + b"\xff\n", ending)
    file.write_bytes(content if not ending else content[:-1000])
    before = open_files()
    stream = lines(file)
    assert next(stream) == (1, "one")
    assert open_files() == before + 1
    del stream
    assert open_files() == before
    with pytest.raises(DataError):
        list(lines(file))
    assert open_files() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trian.tsv", r"there is no file '.*trian\.tsv'\. Did you mean '.*/train\.tsv'\?"),
        ("zzzzzzzz", r"there is no file '.*zzzzzzzz'\.$"),
        ("nowhere/train.tsv", r"there is no file .* The folder '.*nowhere' does not exist\."),
        ("folder", r"'.*folder' is a folder; name a file in it\."),
        ("train.tsv/x", r"cannot be opened"),
        ("a\0b", r"cannot be opened \(embedded null byte\)"),
        ("x" * 300, r"cannot be opened \(.*too long"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tb\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=message):
        list(lines(tmp_path / name))


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(DataError, match="the data file must be a path, but is 3"):
        list(lines(3))  # type: ignore[arg-type]


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr("builtins.open", forbidden)
    with pytest.raises(DataError, match=r"cannot be read: permission denied\. Try chmod u\+r on it\."):
        list(lines(tmp_path / "train.tsv"))


@pytest.mark.parametrize(("ending", "name"), [(".gz", "gzip"), (".zst", "zstd")])
def test_a_truncated_file_says_how_far_it_could_be_read(ending: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / f"short.txt{ending}"
    noise = b"".join(b"%x\n" % (k * 0x9E3779B97F4A7C15 % 2**64) for k in range(60_000))
    file.write_bytes(compressed(noise, ending)[:-5])
    with pytest.raises(DataError, match=rf"^{file}: the {name} stream ends too early, after [0-9]+,[0-9]+ lines\."):
        list(lines(file))


@pytest.mark.parametrize(("ending", "name"), [(".gz", "gzip"), (".zst", "zstd")])
@pytest.mark.parametrize(
    "content",
    [b"plain text\n", b"\x1f\x8b\x08\x00garbage-and-more-garbage", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff"],
)
def test_a_corrupt_file_says_so(ending: str, name: str, content: bytes, tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    file = tmp_path / f"corrupt.txt{ending}"
    file.write_bytes(content)
    with pytest.raises(
        DataError, match=rf"^{file}: the {name} stream (is corrupt: .*|ends too early), after 0 lines\."
    ):
        list(lines(file))


def test_rubbish_behind_a_whole_gzip_stream_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"one\ntwo\n") + b"rubbish!")
    with pytest.raises(DataError, match=r"the gzip stream is corrupt: not a gzipped file .*, after 2 lines"):
        list(lines(file))


def test_a_line_beyond_all_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\n" + b"x" * 200_000)
    with pytest.raises(DataError, match=r"a\.txt:2: the line is longer than 1,000 bytes\. Is this a text file\?"):
        list(lines(file))


def test_without_zstandard_the_way_to_get_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    file = tmp_path / "a.txt.zst"
    file.write_bytes(b"x")
    with pytest.raises(DataError, match=r"needs the zstandard package: pip install 'recurra\[data\]'"):
        list(lines(file))


def test_a_disk_that_fails_is_said() -> None:
    with pytest.raises(DataError, match=r"reading stopped after 0 lines \(.*Input/output error"):
        list(lines("/proc/self/mem"))
