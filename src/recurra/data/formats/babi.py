"""The format of the bAbI tasks: stories with numbered lines, and questions about the lines above them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError


class Babi(Reader):
    r"""`1 Mary went home.`, then `2 Where is Mary?`, a tab, the answer, and with another tab the lines it follows from.

    The number 1 begins a new story. Each question is a row: `context` holds the sentences above it in its story,
    without the questions; `question`, `answer`, and `supporting`, the numbers of those sentences, counted from 1, that
    the answer follows from. A question without an answer has none in its row.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "qa1_train.txt"
    >>> _ = file.write_text("1 Mary went home.\n2 Where is Mary?\thome\t1\n")
    >>> [row.values for row in Babi().read(file)]
    [{'context': ['Mary went home.'], 'question': 'Where is Mary?', 'answer': 'home', 'supporting': [1.0]}]
    """

    extensions = ("babi",)

    def read(self, path: PathLike) -> Iterator[Row]:
        story: list[str] = []
        places: dict[int, int] = {}  # from the number of a line to that of its sentence
        before = 0
        for line, text in lines(path):
            if not text.strip():
                continue
            place = f"{path}:{line}"
            number, said = _numbered(text, place, before)
            if number == 1:
                story, places = [], {}
            before = number
            sentence, *rest = said.split("\t")
            if not rest and not sentence.rstrip().endswith("?"):
                story.append(sentence.strip())
                places[number] = len(story)
                continue
            if len(rest) > 2:
                raise DataError(
                    f"{place}: a question has at most three parts with tabs between them (question, answer, supporting "
                    f"lines), but this line has {len(rest) + 1}."
                )
            values: dict[str, str | list[str] | list[float] | None] = {
                "context": [*story],
                "question": sentence.strip(),
            }
            if rest and rest[0].strip():
                values["answer"] = rest[0].strip()
            if len(rest) > 1:
                values["supporting"] = [float(places[each]) for each in _supporting(rest[1], places, place)]
            yield Row(values, line)


def _numbered(text: str, place: str, before: int) -> tuple[int, str]:
    """The number of a line within its story, and what it says."""
    number, _, said = text.strip().partition(" ")
    if not number.isascii() or not number.isdigit():
        raise DataError(
            f"{place}: a line of a bAbI file begins with its number in the story, as in '1 Mary went home.', but found "
            f"{text[:40]!r}."
        )
    if int(number) not in (1, before + 1):
        raise DataError(
            f"{place}: this line has the number {number}, but after {before} comes {before + 1}, or 1 where a new "
            f"story begins."
        )
    return int(number), said


def _supporting(text: str, places: dict[int, int], place: str) -> list[int]:
    try:
        found = [int(each) for each in text.split()]
    except ValueError:
        found = [-1]
    if any(each not in places for each in found):
        raise DataError(
            f"{place}: the supporting lines are {text!r}, but must be numbers of sentences above in the same story."
        )
    return found


def is_babi(path: PathLike) -> bool:
    """Whether a text file looks like one: its first line has the number 1 and a text, the next one the number 2."""
    try:
        first = [text for _, text in islice(lines(path), 2)]
    except DataError:  # said when its rows are read
        return False
    return len(first) == 2 and all(text.startswith(f"{number} ") for number, text in enumerate(first, 1))
