"""Word vectors: both formats, odd tokens, and files that are broken."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recurra.errors import DataError
from recurra.text import Coverage, Vectors, Vocabulary, covered, read_vectors


def read(text: str, wanted: set[str] | None = None) -> Vectors:
    return read_vectors(enumerate(text.split("\n"), start=1), "some.vec", wanted=wanted)


TOKEN = st.text(st.characters(exclude_characters=" \t\r\n", exclude_categories=["Cs"]), min_size=1)
VALUES = arrays.arrays(
    np.float32, (4, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
)


@given(st.lists(TOKEN, min_size=4, max_size=4, unique=True), VALUES, st.booleans())
def test_what_was_written_is_read(tokens: list[str], values: np.ndarray, header: bool) -> None:
    rows = [f"{token} {' '.join(map(repr, row))}" for token, row in zip(tokens, values.tolist(), strict=True)]
    vectors = read("\n".join((["4 3"] if header else []) + rows))
    assert vectors.tokens == tokens
    assert vectors.values.dtype == np.float32
    np.testing.assert_array_equal(vectors.values, values)


def test_a_token_may_hold_blanks_even_in_the_first_line() -> None:
    vectors = read(". . . 1 2\nat name@domain.com 3 4\nthe\xa0end 5 6")
    assert vectors.tokens == [". . .", "at name@domain.com", "the\xa0end"]
    assert vectors.values.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_number_may_be_a_token() -> None:
    assert read("1 2 3\n7 1e-3 -4").tokens == ["1", "7"]


def test_blanks_at_the_end_tabs_and_empty_lines_do_no_harm() -> None:
    vectors = read("2 2\r\na\t1 2 \r\n\nb 3  4\n\n")
    assert vectors.tokens == ["a", "b"]
    assert vectors.values.tolist() == [[1, 2], [3, 4]]


def test_only_what_is_wanted_is_read() -> None:
    vectors = read("3 2\na 1 2\nb x y\nc 5 6", wanted={"c", "z"})
    assert vectors.tokens == ["c"]
    assert vectors.values.tolist() == [[5, 6]]
    assert read("a 1 2", wanted=set()).values.shape == (0, 2)


def test_the_first_of_two_lines_for_a_token_counts() -> None:
    assert read("a 1\na 2\nb 3").values.tolist() == [[1], [3]]


def test_more_lines_than_promised_are_read() -> None:
    assert read("1 2\na 1 2\nb 3 4").tokens == ["a", "b"]


def test_nothing_may_be_promised_and_held() -> None:
    assert read("0 5").values.shape == (0, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "some.vec is empty: a file of word vectors has a token and its numbers on each line."),
        ("\n\n", "some.vec is empty"),
        ("2 0\n", "some.vec:1: the first line says that vectors have size 0."),
        (
            "The quick brown fox",
            "some.vec:1: each line must have a token and its numbers, but this line ends",
        ),
        ("word", "this line ends in 'word'."),
        (
            "a 1 2 3\nb 1 2",
            "some.vec:2: found 3 fields, but each line must have 4: a token and 3 numbers, as the first lines have.",
        ),
        ("1 3\nb 1 2", "some.vec:2: found 3 fields"),
        ("a 1 2\nb 1 2 3", "some.vec:2: found 4 fields"),
        (
            "a 1 2\nb 1 x",
            "some.vec:2: a line must have a token and 2 numbers, but could not convert string to float: 'x'.",
        ),
        ("a 1 2\n\nb 1 nan\nc 1 inf", "some.vec:3: the vector of 'b' contains a number that is infinite or NaN."),
        ("a 1 -inf", "some.vec:1: the vector of 'a' contains a number that is infinite or NaN."),
        ("a 1 1e39", "some.vec:1: the vector of 'a' contains a number that is infinite or NaN."),
        ("3 1\na 1\nb 2\n", "some.vec:3: the file ends after 2 vectors, but its first line says 3. The file may be"),
        ("3 1", "some.vec:1: the file ends after 0 vectors, but its first line says 3."),
    ],
)
def test_a_broken_file_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        read(text)
    assert message in str(refusal.value)


@given(st.text(st.sampled_from("ab 1203.-+e\t\n\r\0\ufeff\u2028é"), max_size=60))
def test_any_text_gives_vectors_or_a_sentence_with_the_line(text: str) -> None:
    said = "some.vec is read."
    try:
        vectors = read(text)
        assert np.isfinite(vectors.values).all()
        assert len(vectors.tokens) == len(vectors.values)
    except DataError as refusal:
        said = str(refusal)
    assert re.match(r"some\.vec(:\d+:| is ).*[.?]$", said, re.DOTALL)


def test_coverage_counts_each_token_once_and_no_special() -> None:
    vectors = Vectors(["tea", "Tea", "<unk>", "paris"], np.zeros((4, 1), np.float32))
    coverage = covered(Vocabulary(["tea", "Tea", "TEA", "Paris", "cup"]), vectors)
    assert coverage == Coverage(exact=2, lowered=2, total=5)
    assert coverage.found == 4
