"""What tokens = "auto" comes to."""

from __future__ import annotations

import dataclasses

import pytest

from recurra.config import Seq2SeqData, Text
from recurra.reading.pair_tokens import ENOUGH, with_tokens

WORDS = ["cat", "dog", "cow", "horse", "a"]
PHONES = ["K AE T", "D AO G", "K AW", "HH AO R S", "AH"]
FORMS = ["cats", "dogs", "cows", "horses", "an"]
NAMES = ["San José", "a còng", "New York", "Rio", "Bad Ems"]
SYLLABLES = ["s a n x o s e", "ʔ aː ˧˧ k a w ŋ͡m ˨˩", "n j u j o k", "r i o", "b a t e m s"]
ENGLISH = ["a cat sleeps", "it is so", "we go to it", "he is here now", "yes"]
GERMAN = ["eine Katze schläft", "es ist so", "wir gehen hin", "er ist nun da", "ja"]
COMMANDS = ["jump twice", "walk left", "run", "look around right", "jump"]
ACTIONS = ["I_JUMP I_JUMP", "I_TURN_LEFT I_WALK", "I_RUN", "I_TURN_RIGHT I_LOOK I_TURN_RIGHT I_LOOK", "I_JUMP"]


@pytest.mark.parametrize(
    ("sources", "targets", "count", "read", "written"),
    [
        (WORDS, PHONES, 5, "characters", "symbols"),
        (PHONES, WORDS, 5, "symbols", "characters"),
        (NAMES, SYLLABLES, 5, "characters", "symbols"),
        (WORDS, FORMS, 100_000, "characters", "characters"),
        (ENGLISH, GERMAN, 4999, "words", "words"),
        (ENGLISH, GERMAN, 5000, "subwords", "subwords"),
        (COMMANDS, ACTIONS, 5, "words", "words"),
        (WORDS, GERMAN, 5, "characters", "words"),
        (["x" * 31], ["y" * 31], 5, "words", "words"),
        ([], PHONES, 5, "words", "words"),
    ],
)
def test_what_texts_look_like_decides(
    sources: list[str], targets: list[str], count: int, read: str, written: str
) -> None:
    found = with_tokens(Seq2SeqData(train="a.tsv"), sources, targets, count)
    assert (found.source.tokens, found.target.tokens) == (read, written)


def test_what_is_given_stays() -> None:
    data = Seq2SeqData(train="a.tsv", source=Text(tokens="words"))
    assert with_tokens(data, WORDS, PHONES, 5).source.tokens == "words"
    assert with_tokens(data, WORDS, PHONES, 5).target.tokens == "symbols"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (Text(tokens="auto"), Text(tokens="auto"), "words"),
        (Text(tokens="auto"), Text(tokens="characters"), "characters"),
        (Text(tokens={"name": "subwords", "size": 9}), Text(tokens="auto"), {"name": "subwords", "size": 9}),
    ],
)
def test_with_one_vocabulary_both_sides_are_cut_alike(source: Text, target: Text, expected: object) -> None:
    found = with_tokens(Seq2SeqData(train="a.tsv", joint=True, source=source, target=target), WORDS, PHONES, 5)
    assert found.source.tokens == found.target.tokens == expected


def test_with_one_vocabulary_words_on_both_sides_are_characters() -> None:
    data = Seq2SeqData(train="a.tsv", joint=True)
    assert with_tokens(data, WORDS, FORMS, 5).target.tokens == "characters"
    assert with_tokens(data, ENGLISH, GERMAN, ENOUGH).target.tokens == "subwords"
    limited = dataclasses.replace(data, target=Text(tokens="auto", min_count=2, max_size=50))
    found = with_tokens(limited, ENGLISH, GERMAN, 5)
    assert (found.source.min_count, found.source.max_size) == (2, 50)


def test_of_frames_there_is_nothing_to_cut() -> None:
    found = with_tokens(Seq2SeqData(train="a.jsonl", frames="frames"), [], GERMAN, 5)
    assert (found.source.tokens, found.target.tokens) == ("auto", "words")
