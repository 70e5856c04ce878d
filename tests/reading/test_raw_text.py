"""Raw text: whatever a splitter says, nothing of the text is lost, and every word stands where it is said to stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.config import TaggingData
from recurra.data.formats import rows
from recurra.data.formats.conllu import conllu_of
from recurra.reading import raw_text
from recurra.reading.raw_text import RawText, learns_raw_text
from recurra.settings import SettingError
from recurra.text.alphabet import Alphabet
from recurra.text.expansions import Expansions
from recurra.text.written import Token, Written, unescaped

SIGNS = "abé .,!\n\t\r\u00a0\u202f\u2028😀\u0301-'\\|0"

TEXTS = st.text(st.sampled_from(SIGNS), max_size=80)


LETTERS = Alphabet.counted(dict.fromkeys("ab.", 9))
WORDS = Expansions.counted([("ab", ("a", "b")), ("du", ("de", "le"))])


def reader(*, holds_blanks: bool = False) -> Any:
    return RawText(LETTERS, WORDS, holds_blanks=holds_blanks, is_marked=True)


def drawn(seed: int) -> Any:
    """A splitter that says anything at all, but the same of the same place."""
    return lambda ids: np.random.default_rng(seed).integers(0, 5, len(ids)).astype(np.int8)


def restored(conllu: str) -> str:
    """The text of CoNLL-U by SpaceAfter, SpacesAfter and SpacesBefore: a reader of its own."""
    found, within = "", 0
    for line in conllu.split("\n"):
        cells = line.split("\t")
        if len(cells) != 10:
            within = 0
            continue
        first, _, last = cells[0].partition("-")
        if int(first) <= within:
            continue
        within = int(last) if last else 0
        misc = dict(part.split("=", 1) for part in cells[9].split("|") if "=" in part)
        blanks = unescaped(misc["SpacesAfter"]) if "SpacesAfter" in misc else " " * (misc.get("SpaceAfter") != "No")
        found += unescaped(misc.get("SpacesBefore", "")) + cells[1] + blanks
    return found


@given(TEXTS, st.integers(0, 99), st.booleans())
def test_nothing_of_a_text_is_lost_and_offsets_point_at_the_words(text: str, seed: int, holds_blanks: bool) -> None:
    found = list(reader(holds_blanks=holds_blanks).sentences([text], drawn(seed)))
    if not text.strip():
        assert found == []
        return
    assert "".join(each.written.before + each.written.text + each.written.after for each in found) == text
    for each in found:
        assert sum(token.words for token in each.written.tokens) == len(each.tokens)
        for token, form in zip(each.written.tokens, each.written.forms, strict=True):
            start = each.written.start
            assert text[start + token.start : start + token.end] == form
            assert form == form.strip()
            assert not set(form) & {"\n", "\t", "\r"}


@given(TEXTS, st.integers(0, 99))
def test_conllu_restores_the_text(text: str, seed: int) -> None:
    found = list(reader().sentences([text], drawn(seed)))
    written = [conllu_of(each.written, each.tokens, {}, number) for number, each in enumerate(found, 1)]
    assert restored("\n\n".join(written)) == (text if text.strip() else "")


def test_conllu_that_was_written_is_read_back_as_it_was(tmp_path: Path) -> None:
    text = 'du thé, "ab"\n\nUn  titre\nsans fin'
    ends = {3: 1, 6: 1, 7: 1, 9: 1, 11: 2, 12: 3}  # du is not cut from the rest: blanks do that

    def split(ids: Any) -> Any:
        found = np.zeros(len(ids), np.int8)
        for step, label in ends.items():
            found[step - 1] = label
        return found

    sentences = list(reader().sentences([text], split))
    file = tmp_path / "found.conllu"
    written = [conllu_of(each.written, each.tokens, {}, number) for number, each in enumerate(sentences, 1)]
    file.write_text("\n\n".join(written) + "\n\n", "utf-8")
    again: Any = list(rows(file))
    assert [row.values["tokens"] for row in again] == [list(each.tokens) for each in sentences]
    assert [row.written.forms for row in again] == [each.written.forms for each in sentences]
    assert [row.written.after for row in again] == [each.written.after for each in sentences]
    assert [row.written.opens for row in again] == [True, True]


@given(st.lists(st.text(st.sampled_from(SIGNS), max_size=30), max_size=8), st.integers(5, 40))
def test_how_a_text_arrives_changes_nothing(pieces: list[str], block: int) -> None:
    def by_character(ids: Any) -> Any:  # what a step is depends on nothing but itself
        return (ids % 5).astype(np.int8)

    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_text, "BLOCK", block)
        patch.setattr(raw_text, "NEAR", 3)
        one, several = (list(reader().sentences(way, by_character)) for way in ([text], pieces))
        patch.setattr(raw_text, "BLOCK", 1000)
        whole = list(reader().sentences([text], by_character))
    assert one == several
    assert [each.tokens for each in one] == [each.tokens for each in whole]
    assert [each.written for each in one] == [each.written for each in whole]


def test_a_line_of_a_megabyte_without_an_end_is_cut_in_flat_memory() -> None:
    largest = 0

    def never(ids: Any) -> Any:
        nonlocal largest
        largest = max(largest, len(ids))
        return np.zeros(len(ids), np.int8)

    found = [len(each.written.text) for each in reader().sentences(["x" * 2**20], never)]
    assert sum(found) == 2**20
    assert largest <= raw_text.BLOCK + raw_text.MOST_WORDS * raw_text.LONGEST_TOKEN


def test_sentences_end_after_most_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_text, "MOST_WORDS", 3)
    found = list(reader().sentences(["a b a b a"], lambda ids: np.zeros(len(ids), np.int8)))
    assert [each.tokens for each in found] == [("a", "b", "a"), ("b", "a")]


def test_a_token_of_several_words_is_expanded_and_others_are_left_alone() -> None:
    said = np.array([0, 2, 0, 1, 2], np.int8)
    [found] = reader().sentences(["ab b."], lambda ids: said)
    assert found.tokens == ("a", "b", "b", ".")
    assert [token.words for token in found.written.tokens] == [2, 1, 1]


def test_a_token_holds_a_blank_only_where_the_treebank_has_such_tokens() -> None:
    def nowhere(ids: Any) -> Any:
        return np.zeros(len(ids), np.int8)

    assert [each.tokens for each in reader(holds_blanks=True).sentences(["10 000\tb"], nowhere)] == [("10 000", "b")]
    assert [each.tokens for each in reader().sentences(["10 000\tb"], nowhere)] == [("10", "000", "b")]


def test_labels_of_a_treebank_cut_its_text_back_into_itself() -> None:
    written = [
        Written("du thé.", (Token(0, 2, 2), Token(3, 6), Token(6, 7)), opens=True),
        Written("ab", (Token(0, 2),), after=""),
        Written("b b", (Token(0, 1), Token(2, 3)), opens=True),
    ]
    known = reader()
    encoded = [known.encoded(each) for each in written]
    ends = np.concatenate([labels for _, labels in encoded])
    text = "".join(each.in_text for each in written)
    stream = known.alphabet.read(text)
    # A paragraph begins after blanks, which are one step with it.
    ids = np.concatenate([ids for ids, _ in encoded])
    kept = np.append(~((ids[:-1] == 1) & (ids[1:] == 2)), True)
    assert stream.ids.tolist() == ids[kept].tolist()
    found = list(known.sentences([text], lambda _: ends[kept]))
    assert [each.tokens for each in found] == [("de", "le", "thé", "."), ("ab",), ("b", "b")]
    assert [each.written.opens for each in found] == [True, False, True]


def test_raw_text_is_learned_from_conllu_and_refused_from_other_data() -> None:
    assert learns_raw_text(TaggingData(train="a.conllu", tokens="tokens"))
    assert not learns_raw_text(TaggingData(train="a.conllu", tokens="tokens", raw=False))
    assert not learns_raw_text(TaggingData(train="a.conll", tokens="tokens"))
    with pytest.raises(SettingError, match=r"data\.raw = true needs training data in CoNLL-U"):
        learns_raw_text(TaggingData(train="a.conll", tokens="tokens", raw=True))
