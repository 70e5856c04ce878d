"""What is odd in a text is found with its line, and what people write is not odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recurra.data.check import check
from recurra.data.checking.oddities import Oddity


def oddities(folder: Path, name: str, content: str, **options: Any) -> list[Oddity]:
    file = folder / name
    file.write_bytes(content.encode())
    return check([file], **options).files[0].oddities


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a\u00a0b", "the non-breaking space U+00A0"),
        ("a\u202fb", "the narrow non-breaking space U+202F"),
        ("a\u200bb", "the zero-width space U+200B"),
        ("a\ufffdb", "the replacement character U+FFFD, left where a character could not be decoded"),
        ("a\ufeffb", "the byte order mark U+FEFF inside a text"),
        ("a\x07b", "the control character U+0007"),
        ("a\x85b", "the control character U+0085"),
        ("a\rb", "the control character U+000D"),
        ("a\u2028b", "the line separator U+2028"),
        ("a\u202eb", "the invisible direction mark U+202E"),
        ("a\ue123b", "the private-use character U+E123"),
        ("a\U000f1234b", "the private-use character U+F1234"),
        (" ab", "spaces at the start or end"),
        ("ab ", "spaces at the start or end"),
    ],
)
def test_an_odd_character_is_found_with_its_line(text: str, what: str, tmp_path: Path) -> None:
    found = oddities(tmp_path, "a.txt", f"fine\n{text}\nfine too\n{text}\n")
    assert [(oddity.column, oddity.what, oddity.rows, oddity.lines) for oddity in found] == [("text", what, 2, [2, 4])]


@pytest.mark.parametrize(
    "text", ["naïve", "mixЖed", "می\u200cخواهم", "👩\u200d👩\u200d👧", "日本", "1\u2009000", "tab in json"]
)
def test_what_people_write_is_not_odd(text: str, tmp_path: Path) -> None:
    assert oddities(tmp_path, "a.txt", f"{text}\n") == []


def test_accents_are_odd_only_where_both_ways_to_write_them_are_used(tmp_path: Path) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert oddities(tmp_path, "a.txt", f"{composed}\n{composed}\n") == []
    assert oddities(tmp_path, "a.txt", f"{decomposed}\n{decomposed}\n") == []
    (oddity,) = oddities(tmp_path, "a.txt", f"{composed}\nx\n{decomposed}\n")
    assert (oddity.what, oddity.lines) == (
        "mixed Unicode forms: decomposed accents (NFD) next to composed ones (NFC)", [3]
    )  # fmt: skip


def test_odd_characters_in_tokens_are_found_at_their_sentence(tmp_path: Path) -> None:
    found = oddities(tmp_path, "a.conll", "a\tO\n\nb\tO\nc\u200bd\tO\n\n e\tO\n")
    assert [(oddity.what, oddity.lines) for oddity in found] == [
        ("spaces at the start or end of a token", [6]), ("the zero-width space U+200B", [3])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tags", "is_wrong"),
    [
        ("O I-X", True), ("B-Y I-X", True), ("I-X", True), ("B-X O I-X", True), ("I-Y", True), ("O E-X", True),
        ("B-X I-Y", True), ("B-X I-X I-Y", True),
        ("O B-X I-X O", False), ("B-X B-X", False), ("B-X I-X B-Y", False), ("B-X I-X E-X S-Y", False),
        ("B-X L-X U-Y", False), ("B-a-b I-a-b", False), ("NOUN I-X", False), ("O O", False),
    ],
)  # fmt: skip
def test_an_inside_without_a_beginning_is_odd(tags: str, is_wrong: bool, tmp_path: Path) -> None:
    sentence = "".join(f"w\t{tag}\n" for tag in tags.split())
    found = oddities(tmp_path, "a.conll", f"w\tO\n\n{sentence}")
    assert [oddity.lines for oddity in found] == ([[3]] if is_wrong else [])
    one_a_line = oddities(tmp_path, "a.tsv", f"w\tO\n{'w ' * len(tags.split())}".strip() + f"\t{tags}\n",
                         columns=["tokens", "tags"])  # fmt: skip
    assert [oddity.lines for oddity in one_a_line] == ([[2]] if is_wrong else [])


@pytest.mark.parametrize("begins", ["I-X", "B-X"])
def test_spans_that_begin_with_an_inside_are_named_as_iob1_unless_others_begin_with_b(
    begins: str, tmp_path: Path
) -> None:
    sentences = f"w\tI-X\nw\tB-X\nw\tI-X\n\nw\tO\nw\t{begins}\n"
    [oddity] = oddities(tmp_path, "a.conll", sentences)
    iob1 = "spans begin with I-X (IOB1, as in CoNLL-2003), which is read correctly"
    assert oddity.what == (iob1 if begins == "I-X" else "BIO: I-X after O or after another type")


def test_another_number_of_tags_than_of_tokens_is_odd(tmp_path: Path) -> None:
    found = oddities(tmp_path, "a.tsv", "a b\tX X\na b c\tX X\na\tX\n", columns=["tokens", "tags"])
    (oddity,) = found
    assert (oddity.column, oddity.what, oddity.lines) == ("tags", "different numbers of tags and tokens", [2])
