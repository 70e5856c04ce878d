"""Scores of sequences, with several references for a source."""

from __future__ import annotations

import functools
import math
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from recurra.errors import ConfigError, DataError
from recurra.metrics import bleu, chrf, difference, interval, meteor, rouge_l, ter
from recurra.metrics.cutting import as_13a
from recurra.scoring.counted import Counted
from recurra.scoring.pair_scores import PairAnswers, grouped, pair_scores, with_words
from recurra.scoring.scores import Scores
from recurra.text import Characters, Subwords, Symbols, Tokenizer, Words
from tests.metrics.sentences import corpus

ROWS = [
    # source, gold, answer
    ("a", "k a t", "k a t"),
    ("b", "d o g", "d i g z"),
    ("a", "k æ t", "k a t"),
    ("c c", "k o", "k u"),
]


def scored(rows: list[tuple[str, str, str]], **options: Any) -> Scores:
    how = {name: options.pop(name) for name in ("first", "quick") if name in options}
    return pair_scores(answers_to(rows)._replace(**options), **{"first": "bleu", **how}).scores()


def answers_to(rows: list[tuple[str, str, str]]) -> PairAnswers:
    sources, golds, answers = (list(column) for column in zip(*rows, strict=True))
    return PairAnswers(
        golds,
        sources,
        answers,
        gold_tokens=[text.split() for text in golds],
        answer_tokens=[text.split() for text in answers],
        source_lengths=[len(text.split()) for text in sources],
    )


def translated(seed: int, items: int) -> list[tuple[str, str, str]]:
    gold, predicted = corpus(seed, items)
    return [
        (f"{'x ' * len(text.split())}{n}", text, answer)
        for n, ([text], answer) in enumerate(zip(gold, predicted, strict=True))
    ]


def test_rows_with_the_same_source_are_references_of_one_item() -> None:
    values = scored(ROWS, tokenize="none").values
    assert values["count"] == 3
    assert values["exact_match"] == pytest.approx(1 / 3)
    assert values["word_error_rate"] == pytest.approx(2 / 3)
    assert values["symbol_error_rate"] == (0 + 2 + 1) / (3 + 3 + 2)
    assert values["bleu"] == bleu(
        [["k a t", "k æ t"], ["d o g"], ["k o"]], ["k a t", "d i g z", "k u"], tokenize="none"
    )


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """The edit distance by its definition."""

    @functools.cache
    def rest(i: int, j: int) -> int:
        if i == len(one) or j == len(other):
            return len(one) - i + len(other) - j
        return min(rest(i + 1, j) + 1, rest(i, j + 1) + 1, rest(i + 1, j + 1) + (one[i] != other[j]))

    return rest(0, 0)


TEXTS = [
    # source, gold, answer
    ("a", "the big cat sleeps", "the cat sleeps well"),
    ("b", "yes", "yes"),
    ("c", "two dogs", "two dogs run home"),
    ("c", "two small dogs run", "two dogs run home"),
    ("d", "no", ""),
]


def word_error_rate(rows: list[tuple[str, str, str]], tokenizer: Tokenizer) -> float:
    """The score of rows that are cut into tokens."""
    sources, golds, answers = (list(column) for column in zip(*rows, strict=True))
    gold_tokens, answer_tokens = ([tokenizer.split(text) for text in texts] for texts in (golds, answers))
    texts = [tokenizer.join(tokens) for tokens in answer_tokens]
    given = PairAnswers(golds, sources, texts, gold_tokens, answer_tokens, [1] * len(rows))
    return pair_scores(with_words(given, tokenizer), first="word_error_rate").value("word_error_rate")


@pytest.mark.parametrize(
    "tokenizer",
    [Words(), Characters(), Characters(lowercase=True), Subwords(size=30).trained([row[1] for row in TEXTS])],
    ids=["words", "characters", "small letters", "subwords"],
)
def test_the_word_error_rate_of_texts_is_summed_word_edits_over_summed_gold_words(tokenizer: Tokenizer) -> None:
    references: dict[str, list[list[str]]] = {}
    for source, gold, _ in TEXTS:
        references.setdefault(source, []).append(gold.split())
    answers = {source: answer.split() for source, _, answer in TEXTS}
    best = [min((distance(gold, answers[source]), len(gold)) for gold in golds) for source, golds in references.items()]
    expected = sum(edits for edits, _ in best) / sum(words for _, words in best)
    assert expected == (2 + 0 + 2 + 1) / (4 + 1 + 2 + 1)
    assert word_error_rate(TEXTS, tokenizer) == expected


def test_capitals_that_the_tokenizer_drops_are_no_wrong_words() -> None:
    assert word_error_rate([("a", "The Cat", "the hat")], Characters(lowercase=True)) == 1 / 2


def test_the_word_error_rate_of_symbols_is_the_share_of_items_that_are_not_right() -> None:
    assert word_error_rate(ROWS, Symbols()) == 2 / 3


def test_the_word_error_rate_of_single_words_in_letters_is_the_share_of_items_that_are_not_right() -> None:
    rows = [("walk", "walked", "walked"), ("go", "went", "go ed"), ("go", "goes", "go ed"), ("see", "saw", "saw")]
    assert word_error_rate(rows, Characters()) == pytest.approx(1 / 3)


def test_pieces_cut_in_another_way_are_no_wrong_words() -> None:
    subwords = Subwords(size=30).trained([row[1] for row in TEXTS])
    given = PairAnswers(["two dogs"], ["s"], ["two dogs"], [["▁two", "▁dogs"]], [["▁t", "wo", "▁dog", "s"]], [1])
    assert pair_scores(with_words(given, subwords), first="bleu").value("word_error_rate") == 0


def test_the_scores_of_a_corpus_are_those_of_the_libraries() -> None:
    rows = translated(1, 60)
    values = scored(rows).values
    answers, golds = [row[2] for row in rows], [row[1] for row in rows]
    assert values["bleu"] == pytest.approx(BLEU(force=True).corpus_score(answers, [golds]).score, abs=1e-9)
    edits = sum(Levenshtein.distance(gold.split(), answer.split()) for _, gold, answer in rows)
    assert values["symbol_error_rate"] == edits / sum(len(gold.split()) for gold in golds)


def test_a_whole_evaluation_holds_every_score_of_texts() -> None:
    rows = translated(8, 25)
    values = scored(rows, lowercase=True).values
    answers, golds = [row[2] for row in rows], [row[1] for row in rows]
    assert list(values)[:5] == ["bleu", "chrf", "ter", "rouge_l", "meteor"]
    assert values["chrf"] == pytest.approx(CHRF(lowercase=True).corpus_score(answers, [golds]).score, abs=1e-9)
    assert values["ter"] == TER().corpus_score(answers, [golds]).score
    right = [[as_13a(gold.lower())] for gold in golds]
    written = [as_13a(answer.lower()) for answer in answers]
    expected = rouge_l(right, written), meteor(right, written)
    assert (values["rouge_l"], values["meteor"]) == pytest.approx(expected)


@pytest.mark.parametrize("first", ["chrf", "ter", "rouge_l", "meteor"])
def test_a_slow_score_is_found_in_training_where_it_is_the_first(first: str) -> None:
    rows = translated(9, 10)
    whole, quick = scored(rows, first=first), scored(rows, first=first, quick=True)
    assert quick.values[first] == whole.values[first]
    assert {"chrf", "ter", "rouge_l", "meteor"} & {*quick.values} == {first}
    assert quick.higher_is_better == (first != "ter")


def test_without_sacrebleu_all_but_ter_is_there() -> None:
    code = (
        "import sys; sys.modules['sacrebleu'] = sys.modules['rapidfuzz'] = None\n"
        "from recurra.scoring.pair_scores import PairAnswers, pair_scores\n"
        "given = PairAnswers(['a b'], ['x'], ['a b'], [['a', 'b']], [['a', 'b']], [1])\n"
        "print(*pair_scores(given, first='bleu').scores().values)\n"
        "pair_scores(given, first='ter')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = "bleu chrf rouge_l meteor exact_match word_error_rate symbol_error_rate count"
    assert done.stdout.strip() == expected
    assert "ConfigError: ter needs sacrebleu: pip install 'recurra[metrics]'." in done.stderr


def test_a_text_that_ter_would_take_minutes_for_leaves_it_out() -> None:
    values = scored([("a", "k a t", "k a t"), ("b", "x " * 201, "y z")]).values
    assert "ter" not in values
    assert {"bleu", "chrf", "rouge_l", "meteor"} <= {*values}


def test_a_line_of_thousands_of_words_takes_seconds_at_most() -> None:
    chance = random.Random(1)
    text = [f"w{int(chance.paretovariate(0.7)) % 5000}" for _ in range(4000)]
    start = time.process_time()
    values = scored([("a", " ".join(text), " ".join(text[1500:] + text[:1000]))]).values
    assert time.process_time() - start < 15
    assert values["bleu"] > 50


def test_perplexity_is_that_of_all_rows() -> None:
    likelihood = [(-1.0, 4), (-2.0, 4), (-5.0, 4), (-8.0, 3)]
    scores = scored(ROWS, likelihood=likelihood, first="perplexity")
    assert scores.values["nll"] == pytest.approx(16 / 15)
    assert scores.values["perplexity"] == pytest.approx(math.exp(16 / 15))
    assert scores.loss == scores.values["nll"]
    assert not scores.higher_is_better
    assert scored(ROWS, likelihood=[(-1e6, 4)] * 4).values["perplexity"] == math.inf
    assert scored(ROWS).loss is None


def test_pieces_that_make_the_right_text_are_right() -> None:
    given = PairAnswers(["the cat"], ["s"], ["the cat"], [["the", "cat"]], [["th", "e", "cat"]], [1])
    values = pair_scores(given, first="exact_match").scores().values
    assert (values["exact_match"], values["symbol_error_rate"]) == (1, 0)


@pytest.mark.parametrize(
    ("first", "higher"),
    [("bleu", True), ("exact_match", True), ("word_error_rate", False), ("symbol_error_rate", False)],
)
def test_the_first_score_says_which_way_is_better(first: str, higher: bool) -> None:
    scores = scored(ROWS, first=first)
    assert (scores.first, scores.higher_is_better) == (first, higher)


def test_length_buckets_hold_the_scores_of_their_items_alone() -> None:
    rows = translated(2, 50)
    likelihood = [(-float(n % 7), 3) for n in range(50)]
    table = scored(rows, likelihood=likelihood).tables["by length"]
    assert table.columns == ["source length", "items", "bleu", "exact_match", "symbol_error_rate", "perplexity"]
    assert sum(row[1] for row in table.rows) == 50
    low, high = map(int, table.rows[2][0].split("-")) if "-" in table.rows[2][0] else [int(table.rows[2][0])] * 2
    inside = [n for n, row in enumerate(rows) if low <= len(row[0].split()) <= high]
    alone = scored([rows[n] for n in inside], likelihood=[likelihood[n] for n in inside]).values
    assert table.rows[2][1:] == [len(inside), *(round(alone[name], 4) for name in table.columns[2:])]


def test_the_most_frequent_edits_are_counted_against_the_nearest_reference() -> None:
    rows = [
        ("a", "k a t", "k o t"),
        ("b", "k a n", "k o n"),
        ("c", "s a", "s a n"),
        ("d", "t i m", "t m"),
        ("d", "z", "t m"),
    ]
    table = scored(rows).tables["most frequent edits"]
    assert table.columns == ["written", "right", "count"]
    assert table.rows == [["o", "a", 2], ["(nothing)", "i", 1], ["n", "(nothing)", 1]]


def test_a_blank_that_is_missing_is_seen() -> None:
    given = answers_to([("s", "a b", "ab")])._replace(gold_tokens=["a b"], answer_tokens=["ab"])
    assert pair_scores(given, first="bleu").scores().tables["most frequent edits"].rows == [["(nothing)", "␣", 1]]


def test_tables_call_sources_and_lengths_as_told() -> None:
    scores = scored(ROWS, shown=["one", "two", "three", "four"], length_of="target")
    assert [row[0] for row in scores.tables["some answers"].rows] == ["one", "two", "four"]
    assert scores.tables["by length"].columns[0] == "target length"


def test_some_answers_stand_beside_what_is_right_spread_over_the_data() -> None:
    rows = [("cat", "k a t", "k a t"), ("dog", "d o g", ""), ("dog", "d a g", ""), ("long", "x " * 50, "y\x1b[2J")]
    table = scored(rows).tables["some answers"]
    assert table.columns == ["source", "written", "right"]
    assert table.rows == [
        ["cat", "k a t", "="],
        ["dog", "(nothing)", "d o g | d a g"],
        ["long", "y�[2J", ("x " * 50)[:59] + "…"],
    ]
    many = scored([(f"s{n}", "a", "b") for n in range(100)]).tables["some answers"].rows
    assert [row[0] for row in many] == ["s0", "s14", "s28", "s42", "s56", "s70", "s84", "s99"]


def test_quick_scores_are_the_same_without_tables() -> None:
    rows = translated(3, 20)
    whole, quick = scored(rows), scored(rows, quick=True)
    assert quick.values == {name: whole.values[name] for name in quick.values}
    assert {"bleu", "exact_match", "symbol_error_rate", "count"} <= {*quick.values}
    assert not quick.tables


def test_validation_takes_a_fraction_of_a_second() -> None:
    rows = translated(4, 1014)
    start = time.process_time()
    scored(rows, quick=True)
    assert time.process_time() - start < 1


def counts_of(rows: list[tuple[str, str, str]]) -> Counted:
    return pair_scores(answers_to(rows), first="bleu")


def test_intervals_are_those_of_scoring_samples_of_the_rows() -> None:
    rows = translated(5, 40)
    sampled = counts_of(rows).sampled(seed=2, resamples=50)
    chance = np.random.default_rng(2)
    samples = [[rows[n] for n in chance.integers(40, size=40)] for _ in range(50)]
    for name, metric in (("bleu", bleu), ("chrf", chrf), ("ter", ter)):
        each = [metric([[row[1]] for row in sample], [row[2] for row in sample]) for sample in samples]
        assert interval(sampled[name]) == pytest.approx(tuple(np.quantile(each, [0.025, 0.975])))


def test_a_system_that_is_better_everywhere_beats_the_other_on_every_sample() -> None:
    poor = translated(6, 30)
    good = [(source, gold, gold) for source, gold, _ in poor]
    one, other = counts_of(good), counts_of(poor)
    assert one.items == other.items
    samples = one.sampled(resamples=100), other.sampled(resamples=100)
    values = scored(good).values, scored(poor).values
    assert {*samples[0]} == {*samples[1]} == {*one.formulas}
    for name, first in samples[0].items():
        found = difference(first, samples[1][name], higher_is_better=one.is_higher_better(name))
        assert found.value == pytest.approx(values[0][name] - values[1][name])
        assert found.better == 1


def test_a_first_score_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"evaluation\.first = 'blue' is not known\. Did you mean 'bleu'\?"):
        scored(ROWS, first="blue")
    with pytest.raises(ConfigError, match="'perplexity' needs log-probabilities, but these predictions have none"):
        scored(ROWS, first="perplexity")


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="there are 2 right answers, but 1 answers: their numbers must be equal"):
        grouped(PairAnswers(["a", "b"], ["a", "b"], ["a"], [["a"], ["b"]], [["a"]], [1, 1]))
    with pytest.raises(DataError, match="there are 1 right answers, but 0 likelihoods"):
        grouped(PairAnswers(["a"], ["a"], ["a"], [["a"]], [["a"]], [1], []))


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [*translated(7, 30), *((source, gold + " x", answer) for source, gold, answer in translated(7, 30)[:10])]
    shuffled = random.Random(1).sample(rows, len(rows))
    one, other = scored(rows).values, scored(shuffled).values
    del one["chrf"], other["chrf"]  # of references equally good sacrebleu takes the first, and so do we
    np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-12)
