"""Code points: every character as the vocabulary has it, however strange, and long words cut in the middle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recurra.text.code_points import LONGEST_WORD, CodePoints
from recurra.text.vocabulary import Vocabulary

ANY = st.text(st.characters(codec=None), max_size=20)


@given(known=st.sets(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20), text=ANY)
def test_characters_have_the_ids_of_the_vocabulary(known: set[str], text: str) -> None:
    vocabulary = Vocabulary(sorted(known), specials=("<unk>", "\n"))
    expected = [1 if character == "\n" else vocabulary.get(character, 0) for character in text]
    assert CodePoints(vocabulary).ids(text).tolist() == expected


def test_the_middle_of_a_long_word_is_left_out() -> None:
    of = CodePoints(Vocabulary("abc"))
    characters, widths = of.spelt(["a" * 30 + "b" * 30, "", "c"])
    assert widths.tolist() == [LONGEST_WORD, 0, 1]
    assert characters.tolist() == [*[1] * 20, *[2] * 20, 3]


def test_a_vocabulary_without_characters_knows_none() -> None:
    assert CodePoints(Vocabulary("")).ids("a\0").tolist() == [0, 0]
