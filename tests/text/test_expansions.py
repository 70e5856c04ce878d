"""Tokens that stand for several words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.text.expansions import Expansions

WORDS = st.text("abcAB'", min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=2, max_size=3).map(tuple)), min_size=1, max_size=8)


@given(PAIRS)
def test_known_forms_are_expanded_as_they_were_most_often(pairs: list[tuple[str, tuple[str, ...]]]) -> None:
    known = Expansions.counted(pairs)
    for form, _ in pairs:
        ways: list[Any] = [words for other, words in pairs if other == form]
        assert ways.count(known.words(form)) == max(map(ways.count, ways))


@given(PAIRS, WORDS)
def test_an_expansion_has_several_words(pairs: list[tuple[str, tuple[str, ...]]], form: str) -> None:
    found = Expansions.counted(pairs).words(form)
    assert found is None or len(found) > 1


def test_expansions_survive_a_file(tmp_path: Path) -> None:
    known = Expansions.counted([("du", ("de", "le")), ("evdeki", ("evde", "ki"))])
    known.save(tmp_path / "expansions.json")
    assert Expansions.load(tmp_path / "expansions.json") == known


def test_unknown_forms_follow_the_longest_ending_or_beginning() -> None:
    known = Expansions.counted(
        [("evdeki", ("evde", "ki")), ("wakitab", ("wa", "kitab")), ("dámelo", ("dá", "me", "lo"))]
    )
    assert known.words("masadaki") == ("masada", "ki")
    assert known.words("wabayt") == ("wa", "bayt")
    assert known.words("ponmelo") == ("pon", "me", "lo")
    assert known.words("xyz") is None


def test_capitals_are_kept() -> None:
    known = Expansions.counted([("du", ("de", "le"))])
    assert (known.words("Du"), known.words("DU")) == (("De", "le"), ("DE", "LE"))


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "expansions.json"
    file.write_text('{"forms": []}')
    with pytest.raises(DataError, match="no table of tokens and their words"):
        Expansions.load(file)


def test_the_rule_that_holds_for_most_forms_with_an_ending_is_preferred_to_a_longer_one() -> None:
    often = [(f"{stem}deki", (f"{stem}de", "ki")) for stem in ("ev", "ip", "el", "dil")]
    known = Expansions.counted([*often, ("bendeki", ("bend", "eki"))])
    assert known.words("cebimdeki") == ("cebimde", "ki")
