"""bAbI's format: a question sees the sentences above it in its story, and none of the questions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data import Row, rows
from recurra.data.formats.babi import is_babi
from recurra.errors import DataError


def read(folder: Path, content: str) -> list[Row]:
    file = folder / "a.babi"
    file.write_text(content, "utf-8")
    return list(rows(file))


def test_a_question_sees_the_sentences_above_it_in_its_story(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "1 Mary went home.\n2 Where is Mary? \thome\t1\n3 John slept.\n4 Who slept?\tJohn\t3\n\n"
        "1 It rained.\n2 Is it dry?\tno\t1\n",
    )
    assert [row.values for row in found] == [
        {"context": ["Mary went home."], "question": "Where is Mary?", "answer": "home", "supporting": [1.0]},
        # The third line is the second sentence: questions are not counted.
        {
            "context": ["Mary went home.", "John slept."],
            "question": "Who slept?",
            "answer": "John",
            "supporting": [2.0],
        },
        {"context": ["It rained."], "question": "Is it dry?", "answer": "no", "supporting": [1.0]},
    ]
    assert [row.line for row in found] == [2, 4, 7]


def test_a_list_as_an_answer_is_one_class_and_supporting_lines_may_be_missing(tmp_path: Path) -> None:
    [row] = read(tmp_path, "1 The office is east of the hall.\n2 How do you go?\ts,e\n")
    assert row.values == {"context": ["The office is east of the hall."], "question": "How do you go?", "answer": "s,e"}


def test_a_question_without_an_answer_has_none(tmp_path: Path) -> None:
    assert [row.values for row in read(tmp_path, "1 A.\n2 Why?\n3 B.\n4 How?\t\n")] == [
        {"context": ["A."], "question": "Why?"},
        {"context": ["A.", "B."], "question": "How?"},
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Mary went home.\n", r"a\.babi:1: a line of a bAbI file begins with its number in the story, .* 'Mary went"),
        ("1 A.\n3 B.\n", r"a\.babi:2: this line has the number 3, but after 1 comes 2, or 1 where a new story begins"),
        ("2 A.\n", r"a\.babi:1: this line has the number 2, but after 0 comes 1"),
        ("1 A.\n2 B?\tb\t1\tc\n", r"a\.babi:2: a question has at most three parts .* but this line has 4"),
        ("1 A.\n2 B?\tb\t2\n", r"a\.babi:2: the supporting lines are '2', but must be numbers of sentences above"),
        ("1 A.\n2 B?\tb\tone\n", r"a\.babi:2: the supporting lines are 'one'"),
        ("1 A.\n", r"a\.babi' is empty"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


def test_a_text_file_with_numbered_lines_is_known(tmp_path: Path) -> None:
    for content, is_known in (
        ("1 A.\n2 B?\tb\n", True),
        ("1 A.\n1 B.\n", False),
        ("A.\nB.\n", False),
        ("1 A.\n", False),
    ):
        file = tmp_path / "a.txt"
        file.write_text(content)
        assert is_babi(file) == is_known
    assert not is_babi(tmp_path / "gone.txt")


WORDS = st.text(st.characters(codec="utf-8", categories=["L"]), min_size=1, max_size=5)


@given(st.lists(st.lists(st.tuples(WORDS, st.booleans()), min_size=1, max_size=6), min_size=1, max_size=4))
def test_stories_written_are_read_again(stories: list[list[tuple[str, bool]]]) -> None:
    lines, expected = [], []
    for story in stories:
        told: list[str] = []
        for number, (word, is_question) in enumerate(story, 1):
            if is_question:
                lines.append(f"{number} {word}?\t{word}")
                expected.append({"context": [*told], "question": f"{word}?", "answer": word})
            else:
                told.append(f"{word}.")
                lines.append(f"{number} {word}.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.babi"
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        if not expected:
            with pytest.raises(DataError, match="is empty"):
                list(rows(file))
        else:
            assert [row.values for row in rows(file)] == expected
