"""Files in pieces: all pieces together give the rows of the file, and mistakes are told of in the same words."""

import gzip
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recurra.data import cutting, files
from recurra.data.cutting import cut, is_bounded
from recurra.data.excerpt import Excerpt
from recurra.data.formats import Row, rows
from recurra.errors import DataError


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "PIECE", 200)
    monkeypatch.setattr(files, "CHUNK", 64)


def words(draw: random.Random, count: int) -> str:
    return " ".join(draw.choice(["tea", "cup", "pöt", "of", "it's"]) for _ in range(count))


def text(draw: random.Random) -> str:
    return "\n".join(words(draw, draw.randint(0, 6)) for _ in range(200))


def table_with_header(draw: random.Random) -> str:
    return "sentence\tintent\r\n" + "".join(f"{words(draw, 3)}\t{draw.choice('AB')}\r\n" for _ in range(600))


def table_without_header(draw: random.Random) -> str:
    return "".join(f"{words(draw, 3)}\t{draw.choice('AB')}\n" for _ in range(600)) + "\n\n"


def json_lines(draw: random.Random) -> str:
    return "".join(f'{{"text": "{words(draw, 1)}", "n": {draw.randint(0, 9)}}}\n' for _ in range(300))


def conll(draw: random.Random) -> str:
    sentences = ("".join(f"{words(draw, 1)}\tX\n" for _ in range(draw.randint(1, 9))) for _ in range(200))
    return "# a comment\n\n" + "\r\n".join(sentences)


def conllu(draw: random.Random) -> str:
    found = []
    for _ in range(200):
        found.append("# text = x\n")
        found += [f"{n}\t{words(draw, 1)}\t_\tX\t_\t_\t0\t_\t_\t_\n" for n in range(1, draw.randint(2, 9))]
        found.append("\n" * draw.randint(1, 2))
    return "".join(found)


def in_pieces(path: str) -> Iterator[Row]:
    for piece in cut(path):
        yield from rows(pickle.loads(pickle.dumps(piece)))  # as another process reads it


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.txt", text),
        ("a.tsv", table_with_header),
        ("b.tsv", table_without_header),
        ("a.jsonl", json_lines),
        ("a.conll", conll),
        ("a.conllu", conllu),
    ],
)
def test_the_rows_of_all_pieces_are_those_of_the_file(
    tmp_path: Path, name: str, write: Callable[[random.Random], str]
) -> None:
    content = write(random.Random(1)).encode()
    (tmp_path / name).write_bytes(content)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    for path in (str(tmp_path / name), str(tmp_path / f"{name}.gz")):
        assert len(list(cut(path))) > 5
        assert list(in_pieces(path)) == list(rows(path))


def test_parallel_files_are_cut_at_the_same_lines(tmp_path: Path) -> None:
    draw = random.Random(1)
    (tmp_path / "a.en").write_text("".join(f"{words(draw, 3)}\n" for _ in range(300)))
    (tmp_path / "a.de").write_text("".join(f"{words(draw, 9)}\n" for _ in range(300)).removesuffix("\n"))
    path = f"{tmp_path}/a.en,{tmp_path}/a.de"
    assert len(list(cut(path))) > 5
    assert list(in_pieces(path)) == list(rows(path))


def test_a_parquet_file_is_cut_between_its_row_groups(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"text": [f"text {number}" for number in range(500)]}), path, row_group_size=60)
    assert len(list(cut(path))) > 3
    assert list(in_pieces(path)) == list(rows(path))


def test_a_small_file_and_one_with_quotes_are_not_cut(tmp_path: Path) -> None:
    (tmp_path / "small.tsv").write_text("a\tb\n")
    (tmp_path / "large.csv").write_text('text,label\n"two\nlines",X\n' * 100)
    for name in ("small.tsv", "large.csv"):
        [piece] = cut(tmp_path / name)
        assert not isinstance(piece, Excerpt)
    assert is_bounded(str(tmp_path / "small.tsv"))
    assert not is_bounded(str(tmp_path / "large.csv"))


def said_of(found: Iterator[Row]) -> str:
    try:
        list(found)
    except DataError as error:
        return str(error)
    return "nothing"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.tsv", "one\tX\n" * 150 + "three\tcells\there\n" + "one\tX\n" * 50, "a.tsv:151"),
        ("a.jsonl", '{"a": 1}\n' * 150 + "\n" + '{"a": 1}\n' * 50, "a.jsonl:151"),
        ("a.tsv", "one\tX\n" * 150 + "\n\n" + "one\tX\n" * 50, "a.tsv:151"),
        ("a.txt", "one\n" * 150 + "\xff" + "one\n" * 50, "a.txt:151"),
        ("a.conll", "one\tX\n\n" * 150 + "one\n", "a.conll:301"),
    ],
)
def test_a_mistake_is_told_of_as_in_the_whole_file(tmp_path: Path, name: str, content: str, place: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    assert place in said_of(rows(path))
    assert said_of(in_pieces(str(path))) == said_of(rows(path))


def test_parallel_files_of_different_length_are_told_of_with_their_lengths(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("tea\n" * 300)
    (tmp_path / "a.de").write_text("tee\n" * 290)
    with pytest.raises(DataError, match=r"a\.en has 300 lines, but .*a\.de 290"):
        list(in_pieces(f"{tmp_path}/a.en,{tmp_path}/a.de"))


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "LONGEST_LINE", 1000)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n' * 50 + "x" * 3000)
    with pytest.raises(DataError, match=r"a\.jsonl:51: the line is longer"):
        list(cut(tmp_path / "a.jsonl"))


def test_a_broken_archive_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(random.Random(1).randbytes(3000))[:-900])
    with pytest.raises(DataError, match=r"a\.txt\.gz: the gzip stream ends too early"):
        list(cut(tmp_path / "a.txt.gz"))
