"""Whether the first line of a table is a header."""

from __future__ import annotations

import pytest

from recurra.data.formats.header import is_header

SENTENCES = [[f"some words of number {k}", "yes" if k % 2 else "no"] for k in range(8)]


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["sentence", "intent"], SENTENCES),
        (["Review Text", "Class"], SENTENCES),
        (["", "text", "label"], [[str(k), *row] for k, row in enumerate(SENTENCES)]),
        (["bemerkung", "label"], SENTENCES),
        (["zeit", "T1 (°C)"], [["00:10", "1.5"], ["00:20", "2"]]),
        (["How old are you?", "name"], [["31", "a"], ["", "b"]]),
        (["bild", "text"], [["a/b.png", "a cat"], ["a/c.png", "a dog"]]),
        (["text"], [["a"], ["b"]]),
    ],
)
def test_names_are_a_header(first: list[str], below: list[list[str]]) -> None:
    assert is_header(first, below) is True


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (SENTENCES[0], SENTENCES[1:]),
        (["walk", "walked", "V;PST"], [["go", "went", "V;PST"], ["see", "seen", "V;PTCP"]]),
        (["2023-01-01", "x"], [["2023-01-02", "y"]]),
        (["text", "T EH K S T"], [["cat", "K AE T"], ["dog", "D AO G"]]),
        (["hello", "question"], [*SENTENCES, ["how are you", "question"]]),
        (["the", "DET"], [["cat", "NOUN"], ["dog", "NOUN"], ["runs", "VERB"], ["sees", "VERB"], ["he", "PRON"]]),
        (["word"], [["other"]]),
    ],
)
def test_values_are_no_header(first: list[str], below: list[list[str]]) -> None:
    assert is_header(first, below) is False


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["satz", "absicht"], SENTENCES),
        (["unknown", "a whole sentence of more words than any name has"], [["31", "a"], ["32", "b"]]),
    ],
)
def test_what_could_be_either_is_not_decided(first: list[str], below: list[list[str]]) -> None:
    assert is_header(first, below) is None
