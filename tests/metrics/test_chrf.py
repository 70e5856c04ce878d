"""chrF and TER, against sacrebleu."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from recurra.errors import DataError
from recurra.metrics import chrf, ter
from tests.metrics.sentences import corpus

texts = st.text("ab c.", max_size=12)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.parametrize("items", [1, 2, 30])
def test_chrf_is_what_sacrebleu_says(lowercase: bool, references: int, items: int) -> None:
    for seed in range(8):
        gold, predicted = corpus(seed, items, references)
        theirs = CHRF(lowercase=lowercase).corpus_score(predicted, list(zip(*gold, strict=True))).score
        assert chrf(gold, predicted, lowercase=lowercase) == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=4))
def test_chrf_is_what_sacrebleu_says_of_any_short_texts(items: list[tuple[str, str, str]]) -> None:
    answers, *references = ([*column] for column in zip(*items, strict=True))
    theirs = CHRF().corpus_score(answers, references).score
    assert chrf([list(pair) for pair in zip(*references, strict=True)], answers) == pytest.approx(theirs, abs=1e-9)


def test_ter_is_that_of_sacrebleu_with_any_number_of_references() -> None:
    gold, predicted = corpus(1, 20, 2)
    theirs = TER().corpus_score(predicted, list(zip(*gold, strict=True))).score
    assert ter(gold, predicted) == theirs
    gold[3:7] = [texts[:1] for texts in gold[3:7]]
    assert 0 < ter(gold, predicted) != theirs


def test_a_phrase_that_moved_is_one_edit_of_six_words() -> None:
    assert ter([["the cat sat on the mat"]], ["on the mat the cat sat"]) == pytest.approx(100 / 6)


def test_without_sacrebleu_ter_says_what_to_install() -> None:
    code = "import sys; sys.modules['sacrebleu'] = None; from recurra.metrics import ter; ter([['a']], ['a'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConfigError: ter needs sacrebleu: pip install 'recurra[metrics]'." in done.stderr


def test_items_without_partners_are_refused() -> None:
    for score in (chrf, ter):
        with pytest.raises(DataError, match="gold has 2 items but predicted has 1"):
            score([["a"], ["b"]], ["a"])
