"""Counts of answers that are sequences, against one or several references, and the scores that are made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics.bleu import bleu_counts, bleu_of
from recurra.metrics.brackets import bracket_counts, is_balanced
from recurra.metrics.chrf import chrf_counts, chrf_of
from recurra.metrics.cutting import cut
from recurra.metrics.edits import edit_counts, edits, nearest
from recurra.metrics.lengths import buckets
from recurra.metrics.meteor import meteor_counts, meteor_of
from recurra.metrics.references import Tokens
from recurra.metrics.rouge import rouge_l_each
from recurra.metrics.ter import ter_counts, ter_is_within_reach, ter_of
from recurra.named import choose
from recurra.scoring.counted import ITEMS, Counted
from recurra.scoring.formulas import Formula, found_and_right, perplexity, ratio
from recurra.text import Tokenizer
from recurra.text.tokenizers.words import Words
from recurra.text.visible import shown, without_controls
from recurra.views.table import Table

SLOWER = ("chrf", "ter", "rouge_l", "meteor")
"""Scores that take longer, and are left out of training."""

NAMES = (
    *("bleu", "chrf", "ter", "rouge_l", "meteor", "exact_match", "word_error_rate", "symbol_error_rate"),
    *("perplexity", "nll"),
)
"""Scores that training may stop on, in the order in which they are shown."""

OF_TREES = ("bracket_f1", "bracket_precision", "bracket_recall", "balanced")
"""Scores of answers that are trees, shown before the others."""

BY_LENGTH = ("bleu", "exact_match", "symbol_error_rate", "perplexity")

FREQUENT = 20
"""So many of the most frequent edits are shown."""

SOME, LONGEST = 8, 60
"""So many answers are shown, each text with at most so many characters."""

NOTHING = "(nothing)"
"""In place of a symbol that is not there."""


class PairAnswers(NamedTuple):
    """What scores are made of, row by row; rows with the same source are one item."""

    golds: Sequence[str]
    sources: Sequence[str]
    answers: Sequence[str]
    gold_tokens: Sequence[Tokens]
    answer_tokens: Sequence[Tokens]
    source_lengths: Sequence[int]
    likelihood: Sequence[tuple[float, int]] | None = None  # log p of the right answer, and its tokens with the end
    tokenize: str = "13a"
    lowercase: bool = False
    shown: Sequence[str] | None = None  # what the source of a row is called in tables; None: as it is
    length_of: str = "source"  # whose lengths source_lengths are
    gold_words: Sequence[Tokens] | None = None  # None: an item is one word, as where letters become sounds
    answer_words: Sequence[Tokens] | None = None
    trees: bool = False  # they are brackets, which are scored too


class Items(NamedTuple):
    """What was asked, each source once: rows with the same source are several references of one item."""

    sources: list[str]
    references: list[list[str]]  # of each item
    reference_tokens: list[list[Tokens]]
    answers: list[str]
    answer_tokens: list[Tokens]
    shown: list[str]  # what sources are called
    lengths: list[int]  # of the sources
    likelihood: NDArray[np.float64] | None  # (N, 2): log p of all references of an item, and their tokens
    reference_words: list[list[Tokens]] | None  # None: an item is one word
    answer_words: list[Tokens] | None


def with_words(given: PairAnswers, tokenizer: Tokenizer) -> PairAnswers:
    """Answers with the words that the word error rate counts, where the tokenizer has cut the right ones.

    The tokens of `words` are words. Where subwords are written, or characters and some right answer has a blank, the
    texts are cut as `words` cuts them. Otherwise an item is one word: written in symbols, or a single word in letters.

    >>> from recurra.text import Characters, Symbols
    >>> given = PairAnswers(["a cat"], ["s"], ["a hat"], ["a cat"], ["a hat"], [1])
    >>> with_words(given, Characters()).gold_words, with_words(given, Symbols()).gold_words
    ([['a', 'cat']], None)
    """
    if tokenizer.name == "words":
        return given._replace(gold_words=given.gold_tokens, answer_words=given.answer_tokens)
    has_blanks = any(len(gold.split()) > 1 for gold in given.golds)
    if tokenizer.name == "symbols" or (tokenizer.name != "subwords" and not has_blanks):
        return given._replace(gold_words=None, answer_words=None)
    split = Words().split
    # Joined tokens are the right text as it could be written: without capitals, where the tokenizer drops them.
    golds = [split(tokenizer.join(tokens)) for tokens in given.gold_tokens]
    return given._replace(gold_words=golds, answer_words=[split(answer) for answer in given.answers])


def pair_scores(given: PairAnswers, *, first: str, quick: bool = False) -> Counted:
    """Answers that are sequences; with quick, only what training looks at.

    An item is right where its text, or its tokens, are those of a reference. ROUGE and METEOR see BLEU's tokens in
    small letters.
    """
    names = (*OF_TREES, *NAMES) if given.trees else NAMES
    choose(names, first, "evaluation.first")
    if first in ("perplexity", "nll") and given.likelihood is None:
        raise ConfigError(f"evaluation.first = '{first}' needs log-probabilities, but these predictions have none.")
    items = grouped(given)
    references, answers, lowercase = items.references, items.answers, given.lowercase
    changes = changes_of(items)
    word_edits, words = word_changes_of(items, changes).T
    columns: dict[str, ArrayLike] = {
        "runs": bleu_counts(references, answers, tokenize=given.tokenize, lowercase=lowercase),
        "right": changes[:, 0],
        "symbol_edits": changes[:, 1],
        "symbols": changes[:, 2],
        "word_edits": word_edits,
        "words": words,
    }
    scores: dict[str, Formula] = {
        "bleu": lambda sums: bleu_of(sums["runs"]),
        "exact_match": ratio("right", ITEMS),
        "word_error_rate": lambda sums: sums["word_edits"] / np.maximum(sums["words"], 1),
        "symbol_error_rate": lambda sums: sums["symbol_edits"] / np.maximum(sums["symbols"], 1),
    }
    if items.likelihood is not None:
        columns |= {"nats": -items.likelihood[:, 0], "tokens": items.likelihood[:, 1]}
        scores |= {"perplexity": perplexity("nats", "tokens"), "nll": ratio("nats", "tokens")}
    if given.trees:
        brackets = bracket_counts(items.reference_tokens, items.answer_tokens)
        columns |= {f"bracket_{name}": brackets[:, at] for at, name in enumerate(("right", "gold", "said"))}
        columns["balanced"] = np.array([is_balanced(tokens) for tokens in items.answer_tokens], np.int64)
        f1 = found_and_right("bracket_")
        scores |= {f"bracket_{name}": formula for name, formula in f1.items()}
        scores["balanced"] = ratio("balanced", ITEMS)
    slower = [name for name in SLOWER if name == first or not quick]
    if "chrf" in slower:
        columns["characters"] = chrf_counts(references, answers, lowercase=lowercase)
        scores["chrf"] = lambda sums: chrf_of(sums["characters"])
    if first == "ter" or ("ter" in slower and ter_is_within_reach(references, answers)):
        columns["moves"] = ter_counts(references, answers)
        scores["ter"] = lambda sums: ter_of(sums["moves"])
    if {"rouge_l", "meteor"} & {*slower}:
        into_tokens = cut(given.tokenize)
        right = [[into_tokens(text.lower()) for text in texts] for texts in references]
        written = [into_tokens(text.lower()) for text in answers]
        if "rouge_l" in slower:
            columns["rouge_l"] = rouge_l_each(right, written)
            scores["rouge_l"] = ratio("rouge_l", ITEMS)
        if "meteor" in slower:
            columns["matches"] = meteor_counts(right, written)
            scores["meteor"] = lambda sums: meteor_of(sums["matches"])
    return Counted.of(
        [(source, *texts) for source, texts in zip(items.sources, references, strict=True)],
        columns,
        {name: scores[name] for name in names if name in scores},
        first=first,
        lengths=items.lengths,
        loss=scores.get("nll"),
        tables={}
        if quick
        else {
            "by length": lambda counted: by_length(counted, given.length_of),
            "most frequent edits": lambda _: frequent_edits(items, changes),
            "some answers": lambda _: some_answers(items, changes),
        },
    )


def grouped(given: PairAnswers) -> Items:
    """Rows as items, in the order in which their sources come first; the answer is that of the first row.

    >>> items = grouped(PairAnswers(["A", "B"], ["a", "a"], ["A", "A"], ["A", "B"], ["A", "A"], [1, 1]))
    >>> items.sources, items.references
    (['a'], [['A', 'B']])
    """
    golds, likelihood = given.golds, given.likelihood
    columns: dict[str, Sequence[object]] = {
        "sources": given.sources,
        "answers": given.answers,
        "gold tokens": given.gold_tokens,
        "answer tokens": given.answer_tokens,
        "source lengths": given.source_lengths,
        "likelihoods": golds if likelihood is None else likelihood,
        "names of sources": golds if given.shown is None else given.shown,
        "right answers in words": golds if given.gold_words is None else given.gold_words,
        "answers in words": golds if given.answer_words is None else given.answer_words,
    }
    for name, column in columns.items():
        if len(column) != len(golds):
            raise DataError(
                f"there are {len(golds)} right answers, but {len(column)} {name}: their numbers must be equal."
            )
    rows: dict[str, list[int]] = {}
    for number, source in enumerate(given.sources):
        rows.setdefault(source, []).append(number)
    heads = [numbers[0] for numbers in rows.values()]
    reference_tokens = [[given.gold_tokens[row] for row in numbers] for numbers in rows.values()]
    words = given.gold_words
    if words is None or words is given.gold_tokens:
        reference_words = None if words is None else reference_tokens
    else:
        reference_words = [[words[row] for row in numbers] for numbers in rows.values()]
    return Items(
        sources=list(rows),
        references=[[golds[row] for row in numbers] for numbers in rows.values()],
        reference_tokens=reference_tokens,
        answers=[given.answers[row] for row in heads],
        answer_tokens=[given.answer_tokens[row] for row in heads],
        shown=[(given.shown or given.sources)[row] for row in heads],
        lengths=[given.source_lengths[row] for row in heads],
        likelihood=None if likelihood is None else _summed(likelihood, list(rows.values())),
        reference_words=reference_words,
        answer_words=None if given.answer_words is None else [given.answer_words[row] for row in heads],
    )


def changes_of(items: Items) -> NDArray[np.int64]:
    """(N, 3): whether each item is right, its distance to the nearest reference, and how long that is."""
    changes = edit_counts(items.reference_tokens, items.answer_tokens)
    # Pieces of words may be cut in another way and still make the same text.
    for row in np.flatnonzero(changes[:, 0] == 0):
        for reference, tokens in zip(items.references[row], items.reference_tokens[row], strict=True):
            if reference.split() == items.answers[row].split():
                changes[row] = 1, 0, len(tokens)
    return changes


def word_changes_of(items: Items, changes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, 2): words to add, drop or change that make each item its nearest reference, and the words of that."""
    is_right = changes[:, 0] == 1
    if items.reference_words is None or items.answer_words is None:
        return np.stack([~is_right, np.ones_like(is_right)], axis=1).astype(np.int64)
    if items.reference_words is items.reference_tokens:
        return changes[:, 1:]
    found = edit_counts(items.reference_words, items.answer_words)[:, 1:]
    found[is_right, 0] = 0
    return found


def by_length(counted: Counted, of: str = "source") -> Table:
    """Scores per bucket of lengths."""
    assert counted.lengths is not None, "given by pair_scores"
    names = [name for name in ("bracket_f1", *BY_LENGTH) if name in counted.formulas]
    rows = [
        [bucket.label, len(bucket.items), *(round(counted.value(name, bucket.items), 4) for name in names)]
        for bucket in buckets(counted.lengths)
    ]
    return Table([f"{of} length", "items", *names], rows)


def frequent_edits(items: Items, changes: NDArray[np.int64]) -> Table:
    """What was most often written in place of what, against the nearest references."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in np.flatnonzero(changes[:, 1]):
        answer = items.answer_tokens[row]
        _, reference = nearest(items.reference_tokens[row], answer)
        seen.update((edit.predicted, edit.gold) for edit in edits(reference, answer))
    rows = sorted(seen.items(), key=lambda entry: (-entry[1], entry[0]))[:FREQUENT]
    return Table(["written", "right", "count"], [[*map(_visible, pair), count] for pair, count in rows])


def some_answers(items: Items, changes: NDArray[np.int64]) -> Table:
    """What was written, at equal distances in the data, beside what is right; = where they are the same."""
    count = len(items.sources)
    rows = []
    for row in dict.fromkeys(np.linspace(0, count - 1, min(SOME, count)).astype(int).tolist()):
        written = items.answers[row]
        right = "=" if changes[row, 0] else " | ".join(dict.fromkeys(items.references[row]))
        rows.append([_clipped(items.shown[row]), _clipped(written) or NOTHING, _clipped(right)])
    return Table(["source", "written", "right"], rows)


def _visible(symbol: str) -> str:
    return shown(symbol) if symbol else NOTHING


def _clipped(text: str) -> str:
    """A text on one line, without what moves a cursor, cut where it is long.

    >>> _clipped("a  b\\x1b\\n"), len(_clipped("so " * 40))
    ('a b�', 60)
    """
    line = without_controls(" ".join(text.split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _summed(likelihood: Sequence[tuple[float, int]], rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(N, 2): over the rows of each item."""
    return np.array([np.sum([likelihood[row] for row in numbers], axis=0) for numbers in rows], np.float64)
