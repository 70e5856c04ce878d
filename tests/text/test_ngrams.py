"""N-grams as numbers: against a plain count by hand, the same everywhere, and whatever stands around them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError
from recurra.text import ngrams
from recurra.text.ngrams import Ngrams, fnv1a

TEXTS = st.lists(st.text(min_size=1, max_size=7), max_size=6)


def plain_hash(text: str) -> int:
    """As the inventors write it down: for each octet, hash = hash xor octet; hash = hash × FNV prime."""
    found = 2166136261
    for octet in text.encode("utf-8", "surrogatepass"):
        found = ((found ^ octet) * 16777619) % 2**32
    return found


def plain_features(words: list[str], known: dict[str, int], longest: int, pieces: tuple[int, int] | None) -> list[str]:
    """The features as texts; a word with an id of its own is `=id`."""
    found = []
    for word in words:
        if word in known:
            found.append(f"={known[word]}")
        marked = f"<{word}>"
        if pieces is not None:
            found += [
                marked[start : start + size]
                for start in range(len(marked))
                for size in range(pieces[0], pieces[1] + 1)
                if start + size <= len(marked)
            ]
    for size in range(2, longest + 1):
        found += [" ".join(words[start : start + size]) for start in range(len(words) - size + 1)]
    return found


@pytest.mark.parametrize(
    ("text", "published"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968), ("hello", 0x4F9F2CAB)]
)
def test_the_hash_is_the_published_one(text: str, published: int) -> None:
    assert fnv1a(text) == published == plain_hash(text)


@given(TEXTS, st.integers(1, 4), st.none() | st.tuples(st.integers(1, 4), st.integers(0, 3)))
def test_features_are_those_counted_by_hand(words: list[str], longest: int, pieces: tuple[int, int] | None) -> None:
    known = {word: number + 2 for number, word in enumerate(dict.fromkeys(words[::2]))}
    span = (pieces[0], pieces[0] + pieces[1]) if pieces is not None else None
    of = Ngrams(known, words=longest, characters=span, buckets=53)
    first = max(known.values(), default=-1) + 1
    wanted = [
        int(feature[1:])
        if feature[:1] == "=" and len(feature) > 1 and feature[1:].isascii() and feature[1:].isdigit()
        else first + plain_hash(feature) % 53
        for feature in plain_features(words, known, longest, span)
    ]
    if not any("=" in word for word in words):
        assert of.ids(words).tolist() == wanted
        assert all(0 <= number < of.rows for number in wanted)


@given(st.lists(TEXTS, max_size=5))
def test_a_text_has_the_same_features_whatever_was_read_before(texts: list[list[str]]) -> None:
    options = {"words": 3, "buckets": 1000}
    together = Ngrams({"a": 0}, characters=[2, 3], **options)
    for text in texts:
        alone = Ngrams({"a": 0}, characters=[2, 3], **options)
        assert together.ids(text).tolist() == alone.ids(text).tolist() == together.ids(text).tolist()


def test_what_is_remembered_is_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [[f"w{n}", f"w{n + 1}"] for n in range(50)]
    before = [Ngrams({}, words=2, characters=[3, 4], buckets=99).ids(text).tolist() for text in texts]
    monkeypatch.setattr(ngrams, "REMEMBERED", 8)
    forgetful = Ngrams({}, words=2, characters=[3, 4], buckets=99)
    assert [forgetful.ids(text).tolist() for text in texts] == before
    assert len(forgetful._words) <= 10  # those of one text more
    assert len(forgetful._phrases) <= 10


def test_numbers_do_not_depend_on_the_seed_of_python() -> None:
    code = "from recurra.text.ngrams import Ngrams; print(Ngrams({'b': 0}, words=2, characters=[3, 5], buckets=10**6)"
    code += ".ids(['añb', 'b']).tolist())"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_single_words_need_no_bucket() -> None:
    of = Ngrams({"a": 1, "b": 2}, words=1, characters=None, buckets=1000)
    assert of.rows == 3
    assert of.ids(["b", "c", "a", "b"]).tolist() == [2, 1, 2]
    assert of.ids([]).tolist() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"buckets": 0}, "hashed n-grams need at least 1 bucket, but there are 0."),
        ({"words": 0}, "word n-grams need a length of at least 1, but the longest has 0."),
        ({"characters": [0, 2]}, r"shortest and longest length, as in \[3, 5\], but found \[0, 2\]\."),
        ({"characters": [4, 3]}, r"but found \[4, 3\]."),
        ({"characters": [3]}, r"but found \[3\]."),
    ],
)
def test_options_that_give_no_features_are_refused(options: dict[str, int], said: str) -> None:
    usual = {"words": 2, "characters": [3, 5], "buckets": 10}
    with pytest.raises(ConfigError, match=said):
        Ngrams({}, **{**usual, **options})  # type: ignore[arg-type]
