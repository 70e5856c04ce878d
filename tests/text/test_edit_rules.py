"""Rules that make a word of another."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.text.edit_rules import applied, folded, rule_of, shortest_edits

WORDS = st.text("abcABCİıßſǅé+-.|=,@0 _", max_size=7)


@given(WORDS, WORDS)
def test_a_rule_makes_its_lemma_of_its_form(form: str, lemma: str) -> None:
    assert applied(rule_of(form, lemma), form) == lemma


@given(WORDS.filter(bool), WORDS.filter(bool))
def test_words_that_share_a_letter_are_edited_and_others_replaced(form: str, lemma: str) -> None:
    shares = bool(set(folded(form)) & set(folded(lemma)))
    is_whole = rule_of(form, lemma) == f"={lemma}"
    assert not is_whole or not shares or any(each in form + lemma for each in "İıßſǅ")
    assert is_whole or shares


@given(st.text("abcd", max_size=6), st.text("abcd", max_size=6))
def test_edits_are_as_few_as_the_longest_common_subsequence_allows(one: str, other: str) -> None:
    def common(a: str, b: str) -> int:
        if not a or not b:
            return 0
        return 1 + common(a[1:], b[1:]) if a[0] == b[0] else max(common(a[1:], b), common(a, b[1:]))

    edits = shortest_edits(one, other)
    assert edits.count("-") + edits.count("+") == len(one) + len(other) - 2 * common(one, other)


@given(st.text("abcd", min_size=1, max_size=8), st.text("abcd", min_size=1, max_size=8))
def test_what_is_kept_whole_is_the_longest_common_string(form: str, lemma: str) -> None:
    longest = difflib.SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match().size
    rule = rule_of(form, lemma)
    if longest == 0:
        assert rule == f"={lemma}"
        return
    _, start, end = rule.split("|")
    assert len(form) - start.count(".") - start.count("-") - end.count(".") - end.count("-") == longest


@pytest.mark.parametrize(
    ("form", "lemma", "rule"),
    [
        ("the", "the", "lower||"),
        ("The", "the", "lower||"),
        ("London", "London", "keep||"),
        ("LONDON", "London", "title||"),
        ("nato", "NATO", "upper||"),
        ("mcdonalds", "McDonald", "@0,2||-"),
        ("studies", "study", "lower||---+y"),
        ("bore", "bear", "lower||--.+a+r"),
        ("ONU", "O.N.U.", "keep||+..+..+."),
        ("was", "be", "=be"),
        ("geldi", "gel", "lower||--"),
    ],
)
def test_known_words_have_known_rules(form: str, lemma: str, rule: str) -> None:
    assert rule_of(form, lemma) == rule
    assert applied(rule, form) == lemma


@pytest.mark.parametrize("rule", ["lower||----", "lower|---|", "lower|--|--", "lower||---"])
def test_a_word_too_short_for_a_rule_or_used_up_by_it_stays(rule: str) -> None:
    assert applied(rule, "İng") == "İng"


def test_a_rule_is_applied_to_characters_that_were_never_seen() -> None:
    assert applied("lower||---", "日本ing") == "日本"
    assert applied("keep||-", "🙂s") == "🙂"
