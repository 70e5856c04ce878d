"""Tokens, their numbers, and the files that hold them."""

from __future__ import annotations

import json
import os
import pickle
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.text import END, START, UNKNOWN, Vocabulary

TOKENS = st.lists(st.text().filter(lambda token: token not in (UNKNOWN, START, END)), unique=True)
SPECIALS = st.lists(st.sampled_from([UNKNOWN, START, END]), unique=True)


@given(TOKENS, SPECIALS)
def test_ids_and_tokens_are_inverse(tokens: list[str], specials: list[str]) -> None:
    vocabulary = Vocabulary(tokens, specials=specials)
    assert vocabulary.tokens == (*specials, *tokens)
    assert vocabulary.specials == tuple(specials)
    assert len(vocabulary) == len(specials) + len(tokens)
    ids = vocabulary.ids(tokens)
    assert ids.dtype == np.int32
    assert ids.tolist() == list(range(len(specials), len(vocabulary)))
    assert vocabulary.tokens_of(ids) == tokens
    assert vocabulary.tokens_of(range(len(vocabulary))) == list(vocabulary)
    assert [vocabulary.id(token) for token in vocabulary] == list(range(len(vocabulary)))


@given(TOKENS, SPECIALS)
def test_a_vocabulary_comes_back_from_json_and_from_pickle(tokens: list[str], specials: list[str]) -> None:
    vocabulary = Vocabulary(tokens, specials=specials)
    back = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert back == vocabulary == pickle.loads(pickle.dumps(vocabulary))
    assert hash(back) == hash(vocabulary)


@given(st.lists(st.text(max_size=3)), st.integers(1, 3), st.integers(2, 9))
def test_counted_tokens_stand_by_count_and_then_by_letter(data: list[str], least: int, most: int) -> None:
    data = [*data, *data[::2]]
    vocabulary = Vocabulary.counted(Counter(data), specials=(UNKNOWN, END), min_count=least, max_size=most)
    expected: list[str] = []
    for count in range(len(data), least - 1, -1):
        expected += sorted({token for token in data if data.count(token) == count})
    assert vocabulary.tokens == (UNKNOWN, END, *expected)[:most]
    backwards = Vocabulary.counted(Counter(data[::-1]), specials=(UNKNOWN, END), min_count=least, max_size=most)
    assert backwards == vocabulary


@given(st.lists(st.text(max_size=2)), st.lists(st.text(max_size=2)))
def test_what_was_not_seen_is_unknown(seen: list[str], asked: list[str]) -> None:
    vocabulary = Vocabulary.counted(Counter(seen), specials=(START, UNKNOWN))
    back = vocabulary.tokens_of(vocabulary.ids(asked))
    assert back == [token if token in seen else UNKNOWN for token in asked]


def test_a_token_of_the_data_never_becomes_a_special() -> None:
    data = ["<unk>", "</s>", "<s>", "a"]
    vocabulary = Vocabulary.counted(Counter(data), specials=(UNKNOWN, START, END))
    assert vocabulary.tokens == (UNKNOWN, START, END, "a")
    assert vocabulary.ids(data).tolist() == [0, 0, 0, 3]
    assert [vocabulary.id(special) for special in (UNKNOWN, START, END)] == [0, 1, 2]


def test_where_nothing_is_special_those_spellings_are_ordinary() -> None:
    labels = Vocabulary.counted({"</s>": 1, "<unk>": 2}, specials=())
    assert labels.unknown is None
    assert labels.ids(["</s>", "<unk>"]).tolist() == [1, 0]


def test_what_is_there_can_be_asked() -> None:
    vocabulary = Vocabulary(["a"], specials=(START, UNKNOWN))
    assert vocabulary.unknown == 1
    assert "a" in vocabulary
    assert START in vocabulary
    assert "b" not in vocabulary
    assert vocabulary.get("a", None) == 2
    assert vocabulary.get("b", -1) == -1
    assert repr(vocabulary) == "<Vocabulary of 3 tokens, 2 of them special>"


def test_the_specials_are_part_of_what_is_equal() -> None:
    assert Vocabulary(["a"], specials=(UNKNOWN,)) != Vocabulary([UNKNOWN, "a"], specials=())
    assert Vocabulary(["a"]) != ("<unk>", "a")


def test_a_vocabulary_cannot_be_changed() -> None:
    vocabulary: Any = Vocabulary(["a"])
    for name in ("tokens", "specials", "unknown", "other"):
        with pytest.raises(AttributeError):
            setattr(vocabulary, name, ())


def test_no_tokens_have_no_ids() -> None:
    assert Vocabulary([]).ids([]).shape == (0,)
    assert Vocabulary([]).tokens_of(np.zeros(0, dtype=np.int64)) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vocabulary(["a", "b", "a"]), "the token 'a' occurs twice, as id 1 and as id 3."),
        (lambda: Vocabulary(["</s>"], specials=("</s>",)), "'</s>' is a special, so it cannot be an ordinary token"),
        (lambda: Vocabulary([], specials=("<s>", "<s>")), "the token '<s>' occurs twice, as id 0 and as id 1."),
        (lambda: Vocabulary(["a", 3]), "the tokens of a vocabulary must be strings, but number 1 is 3."),  # type: ignore[list-item]
        (
            lambda: Vocabulary([], specials=[None]),  # type: ignore[list-item]
            "the specials of a vocabulary must be strings, but number 0 is None.",
        ),
        (
            lambda: Vocabulary(["x\ud800"]),
            r"'x\ud800', number 0 of the tokens, is not valid Unicode (a lone surrogate)",
        ),
        (lambda: Vocabulary.counted({"\udfff": 2}), "is not valid Unicode"),
        (lambda: Vocabulary.counted({"a": 1, 2: 1}), "must be strings, but number 1 is 2."),  # type: ignore[dict-item]
        (lambda: Vocabulary(["a"], specials=()).ids(["b"]), "the token 'b' is not in the vocabulary, and this vocab"),
        (lambda: Vocabulary(["a"], specials=(END,)).ids([END]), "the token '</s>' is the name of a special, and this"),
        (lambda: Vocabulary(["a"], specials=()).ids(["\ud800"]), r"the token '\ud800' is not in the vocabulary"),
        (lambda: Vocabulary(["a"]).ids("a text"), "ids takes a list of tokens, but got the text 'a text': split it"),
        (lambda: Vocabulary(["a"]).id("b" * 99), "bbb ... is not in this vocabulary of 2 tokens."),
        (lambda: Vocabulary(["a"]).tokens_of([0, 2]), "no token with id 2: the ids of this vocabulary are 0 to 1."),
        (lambda: Vocabulary(["a"]).tokens_of(np.array([-1])), "there is no token with id -1"),
        (lambda: Vocabulary(["a"]).tokens_of([1.0]), "an id must be a whole number, but is 1.0."),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_is_refused_in_words(make: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        make()
    assert message in str(refusal.value)


def test_bounds_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="min_count must be at least 1, but is 0"):
        Vocabulary.counted({"a": 1}, min_count=0)
    with pytest.raises(ConfigError, match="max_size = 1 is too small for the 2 special tokens"):
        Vocabulary.counted({"a": 1}, specials=(UNKNOWN, END), max_size=1)


def test_a_saved_vocabulary_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    odd = ["\n", "\r\n", "\u2028", "\x00", '"', "\\", "é", "e\u0301", "😀", "", " "]
    vocabulary = Vocabulary(odd, specials=(UNKNOWN, END))
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert "😀".encode() in path.read_bytes()
    Vocabulary(["other"]).save(str(path))
    assert Vocabulary.load(str(path)).tokens == (UNKNOWN, "other")
    assert os.listdir(tmp_path) == ["vocabulary.json"]


def test_others_may_read_a_saved_vocabulary_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    Vocabulary(["a"]).save(tmp_path / "vocabulary.json")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "vocabulary.json")}
    assert len(modes) == 1


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vocabulary.json"
    Vocabulary(["old"]).save(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"vocabulary\.json cannot be written: No space left on device\."):
        Vocabulary(["new"]).save(path)
    assert Vocabulary.load(path).tokens == (UNKNOWN, "old")
    assert os.listdir(tmp_path) == ["vocabulary.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b'{"specials": [],\n "tokens": ["a"',
            ":2: this is not JSON (Expecting ',' delimiter). The file may be cut short.",
        ),
        (b"", ":1: this is not JSON"),
        (b'{"tokens": ["\xff"]}', " is not UTF-8 text: byte 13 cannot be read."),
        (b"[" * 200_000, " is JSON nested too deeply to be read."),
        (b"[1]", ": a vocabulary must be a JSON object, but is [1]."),
        (b'{"tokens": []}', ": a vocabulary needs the key 'specials', which is missing."),
        (b'{"specials": []}', ": a vocabulary needs the key 'tokens', which is missing."),
        (
            b'{"specials": "ab", "tokens": []}',
            ": the specials of a vocabulary must be a list of strings, but are 'ab'.",
        ),
        (b'{"specials": [], "tokens": ["a", 1]}', ": the tokens of a vocabulary must be strings, but number 1 is 1."),
        (b'{"specials": [], "tokens": ["a", "a"]}', ": the token 'a' occurs twice, as id 0 and as id 1."),
        (b'{"specials": [], "tokens": ["\\ud800"]}', "is not valid Unicode (a lone surrogate)."),
    ],
)
def test_a_broken_file_is_refused_in_words(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as refusal:
        Vocabulary.load(path)
    assert str(refusal.value).startswith(str(path))
    assert message in str(refusal.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.json cannot be read: No such file or directory\."):
        Vocabulary.load(tmp_path / "gone.json")
    with pytest.raises(DataError, match=r"v\.json cannot be written: No such file or directory\."):
        Vocabulary([]).save(tmp_path / "gone" / "v.json")
