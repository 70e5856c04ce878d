"""BLEU, against sacrebleu."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from recurra.errors import ConfigError, DataError
from recurra.metrics import bleu, bleu_counts, bleu_of
from recurra.metrics.cutting import OURS, cut
from tests.metrics.sentences import corpus, sentence


def theirs(gold: list[list[str]], predicted: list[str], tokenize: str = "13a", lowercase: bool = False) -> float:
    most = max(map(len, gold))
    streams = [[texts[place] if place < len(texts) else None for texts in gold] for place in range(most)]
    score = BLEU(tokenize=tokenize, lowercase=lowercase, force=True).corpus_score(predicted, streams)  # type: ignore[arg-type]
    return float(score.score)


@pytest.mark.parametrize("tokenize", OURS)
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.parametrize("items", [1, 2, 40])
def test_it_is_what_sacrebleu_says(tokenize: str, lowercase: bool, references: int, items: int) -> None:
    for seed in range(15):
        gold, predicted = corpus(seed, items, references)
        ours = bleu(gold, predicted, tokenize=tokenize, lowercase=lowercase)
        assert ours == pytest.approx(theirs(gold, predicted, tokenize, lowercase), abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.text("ab c.", max_size=8), min_size=1, max_size=3), st.text("ab c.")), min_size=1)
)
def test_it_is_what_sacrebleu_says_of_any_short_texts(items: list[tuple[list[str], str]]) -> None:
    gold, predicted = [references for references, _ in items], [answer for _, answer in items]
    assert bleu(gold, predicted) == pytest.approx(theirs(gold, predicted), abs=1e-9)


@pytest.mark.parametrize("tokenize", OURS)
def test_texts_are_cut_where_sacrebleu_cuts_them(tokenize: str) -> None:
    chance = random.Random(3)
    tokenizer = BLEU(tokenize=tokenize).tokenizer
    for _ in range(300):
        text = sentence(chance)
        assert cut(tokenize)(text) == tokenizer(text).split()
        letters = "".join(chance.choice("a1.,-'&<>\n/ –¿€") for _ in range(12))
        assert cut(tokenize)(letters) == tokenizer(letters).split()


def test_the_papers_example_is_clipped() -> None:
    # Papineni et al. 2002: "the" seven times has a clipped unigram precision of 2/7.
    gold = [["The cat is on the mat", "There is a cat on the mat"]]
    counts = bleu_counts(gold, ["the the the the the the the"], tokenize="none", lowercase=True)
    assert (counts[0, 2], counts[0, 6]) == (2, 7)


def test_a_short_answer_pays_for_its_brevity() -> None:
    perfect = "a b c d e f g h"
    assert bleu([[perfect]], [perfect]) == pytest.approx(100)
    assert bleu([[perfect]], [perfect[:9]]) == pytest.approx(100 * math.exp(1 - 8 / 5))


def test_counts_add_up_over_items() -> None:
    gold, predicted = corpus(1, 30, 2)
    counts = bleu_counts(gold, predicted)
    parts = np.stack([counts[:7].sum(0), counts[7:].sum(0)])
    alone = [bleu(gold[:7], predicted[:7]), bleu(gold[7:], predicted[7:])]
    assert bleu_of(parts).tolist() == alone
    assert float(bleu_of(parts.sum(0))) == bleu(gold, predicted)


def test_other_cuts_are_those_of_sacrebleu() -> None:
    assert cut("zh")("我们a b") == ["我", "们", "a", "b"]


def test_a_cut_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"bleu_tokenize = '13b' is not known\. Did you mean '13a'\? Known: 13a, none"
    ):
        bleu([["a"]], ["a"], tokenize="13b")


def test_a_cut_that_needs_another_library_says_which() -> None:
    with pytest.raises(
        ConfigError, match=r"bleu_tokenize = 'ja-mecab' cannot be used: Japanese .* pip install sacrebleu\[ja\]"
    ):
        cut("ja-mecab")


def test_without_sacrebleu_a_cut_that_is_not_ours_is_refused() -> None:
    code = (
        "import sys; sys.modules['sacrebleu'] = None\n"
        "from recurra.metrics import bleu\n"
        "print(bleu([['a b c d']], ['a b c d'], tokenize='intl'))\n"
        "bleu([['a']], ['a'], tokenize='zh')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("100.0")
    assert "bleu_tokenize = 'zh' needs sacrebleu. Known: 13a, none, char, intl. More" in done.stderr


def test_items_that_cannot_be_scored_are_refused() -> None:
    with pytest.raises(DataError, match=r"gold has 2 items but predicted has 1: .* Item 2 is the first without"):
        bleu([["a"], ["b"]], ["a"])
    with pytest.raises(DataError, match="a score needs at least one item"):
        bleu([], [])
    with pytest.raises(DataError, match=r"item 1 of gold is the text 'a b', but .*: write \['a b'\]"):
        bleu(["a b"], ["a b"])
    with pytest.raises(DataError, match="item 2 has no reference"):
        bleu([["a"], []], ["a", "b"])
