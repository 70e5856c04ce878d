"""Words of many scripts, and the blanks between them."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recurra.text import Words

TRICKY = st.sampled_from(
    list("ab3_ \t\u3000'’-‐\u200c\u200d\u0301\u093f\ufe0f\"“”«»()[],.;:!?¿/@#$€%…、。「」東京のカー々가ก😀\x00\ud800")
)
TEXT = st.text(TRICKY) | st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n\u3000 ", []),
        ("Hello, world!", ["Hello", ",", "world", "!"]),
        ("don't stop — l’eau", ["don't", "stop", "—", "l’eau"]),
        ("state-of-the-art", ["state-of-the-art"]),
        ("-dash 'quoted' rock-", ["-", "dash", "'", "quoted", "'", "rock", "-"]),
        ("a--b a'-b", ["a", "-", "-", "b", "a", "'", "-", "b"]),
        ("snake_case x2 3.14", ["snake_case", "x2", "3", ".", "14"]),
        ("wait...", ["wait", ".", ".", "."]),
        ("cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("我爱北京。", ["我", "爱", "北", "京", "。"]),
        ("東京タワーへ", ["東", "京", "タワーへ"]),
        ("葛\U000e0100飾", ["葛\U000e0100", "飾"]),
        ("𠀀abc", ["𠀀", "abc"]),
        ("한국어 조선말", ["한국어", "조선말"]),
        ("I ❤\ufe0f 😀😀", ["I", "❤\ufe0f", "😀", "😀"]),
        ("a\u200bb", ["a", "\u200b", "b"]),
    ],
)
def test_a_text_has_these_words(text: str, tokens: list[str]) -> None:
    assert Words().split(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world! How are you?",
        'He said: "Go (now), or don\'t."',
        "It costs $5 / €7 (20%) [net]; ¿sí?".replace(" / ", "/"),
        "“Curly” and «angular» quotes…",
        "我爱北京，你呢？「是」。",
        "東京タワーへ行く。",
        "rock 'n' roll",
        "ask @joe #today",
    ],
)
def test_usual_text_gets_its_blanks_back(text: str) -> None:
    assert Words().join(Words().split(text)) == text


@given(TEXT)
@example("a ' b")
@example("東 の の 京")
@example("( \u0301 a")
def test_splitting_what_was_joined_gives_the_same_tokens(text: str) -> None:
    tokens = Words().split(text)
    assert Words().split(Words().join(tokens)) == tokens


@given(TEXT)
def test_nothing_but_blanks_is_lost(text: str) -> None:
    assert "".join(Words().split(text)) == re.sub(r"\s", "", text)


@given(TEXT)
def test_lower_case_words_are_the_words_of_the_text_in_lower_case(text: str) -> None:
    assert Words(lowercase=True).split(text) == Words().split(text.lower())


def test_every_mark_belongs_to_the_word_before_it() -> None:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith("M")]
    assert len(marks) > 2000
    assert [mark for mark in marks if Words().split(f"a{mark}b") != [f"a{mark}b"]] == []


def test_a_long_line_takes_no_more_than_its_share_of_time() -> None:
    line = "a" * 100_000 + "-'" * 50_000
    assert len(Words().split(line)) == 100_001


@given(st.text(st.characters(codec="ascii")) | st.text("ab 1_'-.\t\x1f"))
def test_ascii_is_split_as_if_it_were_not(text: str) -> None:
    # One letter that is not ASCII, with a blank before it, brings the way for all scripts.
    assert [*Words().split(text), "é"] == Words().split(text + " é")
