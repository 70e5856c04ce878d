"""Lines of a pipe: none is waited for that is not asked for, and none is held back."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recurra.data.arriving import CHUNK, Arriving
from recurra.training.trained import load

RUN = Path(__file__).parent.parent / "old_runs" / "0.1" / "tagging" / "run"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe; the one to write to is closed by the test."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_a_line_has_arrived_when_its_end_has(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    lines = Arriving(reading)
    assert not lines.has_arrived()
    os.write(writing, b"on")
    assert not lines.has_arrived()
    os.write(writing, b"e\ntwo\n\nfou")
    assert lines.has_arrived()
    assert [next(lines), next(lines), next(lines)] == [b"one", b"two", b""]
    assert not lines.has_arrived()
    os.close(writing)
    assert lines.has_arrived()  # the end of the file is the end of its last line
    assert list(lines) == [b"fou"]
    assert not lines.has_arrived()


@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"\r\n\n", b"x" * (2 * CHUNK) + b"\ny"])
def test_the_lines_are_those_of_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(content)
    with path.open("rb") as file:
        expected = [line.removesuffix(b"\n") for line in file]
    with path.open("rb") as file:
        assert list(Arriving(file.fileno())) == expected


def test_lines_that_come_in_pieces_are_whole(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    draw = random.Random(3)
    expected = [bytes(draw.choices(b"abc\r", k=draw.randint(0, 9))) for _ in range(300)]
    content = b"".join(line + b"\n" for line in expected)

    def write() -> None:
        start = 0
        while start < len(content):
            start += os.write(writing, content[start : start + draw.randint(1, 40)])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    assert list(Arriving(reading)) == expected
    writer.join()


def test_answers_are_sent_off_before_more_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    waits: list[bytes] = []

    def before_waiting() -> None:  # whoever waited for the answer sends the next line
        waits.append(b"")
        os.write(writing, b"c\n") if len(waits) == 1 else os.close(writing)

    lines = Arriving(reading, before_waiting)
    os.write(writing, b"a\nb\n")
    assert list(lines) == [b"a", b"b", b"c"]
    assert len(waits) == 2


def test_all_that_has_arrived_is_answered_together(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    model, lines = load(RUN), Arriving(reading)
    taken: list[str] = []

    def texts() -> Iterator[str]:
        for line in lines:
            taken.append(line.decode())
            yield taken[-1]

    given = ["they run", "the walk", "Talk"]
    expected = [answer.output for answer in model.predict(given * 10)]
    os.write(writing, "".join(f"{line}\n" for line in given * 10).encode())
    answers = model.predict_file(None, texts(), has_arrived=lines.has_arrived)
    found = [next(answers).output]
    assert len(taken) == 30  # the first answer came when all lines had been read, and the pipe is still open
    found += [next(answers).output for _ in range(29)]
    os.write(writing, b"they walk\n")
    assert next(answers).input == "they walk"  # and this one without another line
    os.close(writing)
    assert list(answers) == []
    assert found == expected
