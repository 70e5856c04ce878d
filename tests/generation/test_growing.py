"""Text as it grows from tokens, whatever they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.config import LanguageModelSettings
from recurra.generation.growing import Page, overlap, unknown_tokens
from recurra.tasks.language_model import LanguageModel
from recurra.text import Vocabulary, tokenizer

LETTERS = ["a", "b", "Don't", "(", ")", ",", "!", '"', "3", "$"]


def task(kind: str) -> LanguageModel:
    if kind == "characters":
        specials, tokens = ("<unk>", "\n"), [*"abDon't(),!\"3$ "]
    else:
        specials, tokens = ("<unk>", "<eos>"), LETTERS
    return LanguageModel(LanguageModelSettings(), tokenizer(kind), Vocabulary(tokens, specials=specials))


TASKS = {kind: task(kind) for kind in ("characters", "words", "symbols")}
TEXTS = st.lists(st.lists(st.sampled_from(LETTERS), max_size=5), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", list(TASKS))
@given(lines=TEXTS, cut=st.integers(0, 30))
def test_what_is_added_to_a_prompt_completes_the_text(kind: str, lines: list[list[str]], cut: int) -> None:
    model = TASKS[kind]
    text = "\n".join(model.tokenizer.join(line) for line in lines)
    ids = model.ids(text)[:-1].tolist()
    before, after = ids[:cut], ids[cut:]
    words = model.vocabulary.tokens_of(before)
    prompt = "\n".join(map(model.tokenizer.join, split_at_ends(words, model.vocabulary.specials[1])))
    page = Page(model, prompt, is_backward=False)
    pieces = []
    for token in after:
        page.add(token)
        pieces.append(page.last)
    assert page.text() == "".join(pieces)
    assert page.beside(page.text()) == text


@pytest.mark.parametrize("kind", list(TASKS))
@given(lines=TEXTS, cut=st.integers(0, 30))
def test_what_is_written_backward_stands_before_the_prompt(kind: str, lines: list[list[str]], cut: int) -> None:
    model = TASKS[kind]
    text = "\n".join(model.tokenizer.join(line) for line in lines)
    ids = model.ids(text)[:-1].tolist()
    words = model.vocabulary.tokens_of(ids[cut:])
    prompt = "\n".join(map(model.tokenizer.join, split_at_ends(words, model.vocabulary.specials[1])))
    page = Page(model, prompt, is_backward=True)
    for token in reversed(ids[:cut]):
        page.add(token)
    if text.endswith(prompt):  # a quotation mark may stand apart once it is seen where it belongs
        assert page.text() + prompt == text


def split_at_ends(words: list[str], end: str) -> list[list[str]]:
    lines: list[list[str]] = [[]]
    for word in words:
        if word == end:
            lines.append([])
        else:
            lines[-1].append(word)
    return lines


@pytest.mark.parametrize("is_backward", [False, True])
@given(text=st.text("ab\n", max_size=12), wanted=st.text("ab\n", min_size=1, max_size=4))
def test_a_page_holds_a_text_from_the_token_on_that_completes_it(is_backward: bool, text: str, wanted: str) -> None:
    page = Page(TASKS["characters"], "b", is_backward=is_backward)
    grown = ""
    for character in text:
        page.add(TASKS["characters"].vocabulary.id(character))
        had, grown = wanted in grown, character + grown if is_backward else grown + character
        if not had:
            assert page.holds(wanted) == (wanted in grown)


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_overlap_is_the_longest_end_that_begins_the_other(text: str, other: str) -> None:
    sizes = [size for size in range(min(len(text), len(other)) + 1) if text[len(text) - size :] == other[:size]]
    assert overlap(text, other) == max(sizes)


def test_unknown_tokens_are_named_once_in_the_order_of_the_text() -> None:
    assert unknown_tokens(TASKS["characters"], "xa\nyxé") == ["x", "y", "é"]
    assert unknown_tokens(TASKS["words"], "a kettle, b\na kettle pot") == ["kettle", "pot"]
    assert unknown_tokens(TASKS["words"], "a\nb") == []
