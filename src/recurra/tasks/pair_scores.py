"""Scores of answers that are sequences, against one or several references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics.bleu import bleu_counts, bleu_of
from recurra.metrics.chrf import chrf_counts, chrf_of
from recurra.metrics.cutting import cut
from recurra.metrics.edits import edit_counts, edits, nearest, symbol_error_rate_of
from recurra.metrics.lengths import buckets
from recurra.metrics.meteor import meteor_counts, meteor_of
from recurra.metrics.references import Tokens
from recurra.metrics.resampling import Numbers
from recurra.metrics.rouge import rouge_l_each
from recurra.metrics.ter import ter, ter_is_within_reach
from recurra.named import choose
from recurra.tasks.counted import Counted, Sums, counted, is_higher_better, ratio
from recurra.tasks.task import Scores, Table

SLOWER = ("chrf", "rouge_l", "meteor")
"""Scores that take longer, and are left out of training."""

NAMES = (
    *("bleu", "chrf", "ter", "rouge_l", "meteor", "exact_match", "word_error_rate", "symbol_error_rate"),
    *("perplexity", "nll"),
)
"""Scores that training may stop on, in the order in which they are shown."""

BY_LENGTH = ("bleu", "exact_match", "symbol_error_rate", "perplexity")

FREQUENT = 20
"""So many of the most frequent edits are shown."""

NOTHING = "(nothing)"
"""In place of a symbol that is not there."""


class PairAnswers(TypedDict):
    """What scores are made of, row by row."""

    golds: Sequence[str]
    sources: Sequence[str]
    answers: Sequence[str]
    gold_tokens: Sequence[Tokens]
    answer_tokens: Sequence[Tokens]
    source_lengths: Sequence[int]
    likelihood: Sequence[tuple[float, int]] | None
    tokenize: str
    lowercase: bool


class Items(NamedTuple):
    """What was asked, each source once: rows with the same source are several references of one item."""

    sources: list[str]
    references: list[list[str]]  # of each item
    reference_tokens: list[list[Tokens]]
    answers: list[str]
    answer_tokens: list[Tokens]
    lengths: list[int]  # of the sources
    likelihood: NDArray[np.float64] | None  # (N, 2): log p of all references of an item, and their tokens


def pair_scores(
    golds: Sequence[str],
    sources: Sequence[str],
    answers: Sequence[str],
    *,
    gold_tokens: Sequence[Tokens],
    answer_tokens: Sequence[Tokens],
    source_lengths: Sequence[int],
    likelihood: Sequence[tuple[float, int]] | None,
    first: str,
    tokenize: str,
    lowercase: bool,
    quick: bool = False,
) -> Scores:
    """Scores of rows with a source, a right answer and a given one; `likelihood` is log p of the right one, and its
    tokens with the end.

    Rows with the same source are one item. It is right where its text, or its tokens, are those of a reference. With
    quick, there is only what training looks at.
    """
    choose(NAMES, first, "evaluation.first")
    items = grouped(golds, sources, answers, gold_tokens, answer_tokens, source_lengths, likelihood)
    changes = changes_of(items)
    slower = [name for name in SLOWER if name == first or not quick]
    counts = counted_of(items, changes, slower, tokenize=tokenize, lowercase=lowercase)
    found = {name: counts.value(name) for name in counts.statistics}
    if first == "ter" or (not quick and ter_is_within_reach(items.references, items.answers)):
        found["ter"] = ter(items.references, items.answers)
    if first not in found:
        raise ConfigError(f"evaluation.first = '{first}' needs log-probabilities, but these answers come without.")
    values = {name: found[name] for name in NAMES if name in found}
    values["count"] = float(len(items.sources))
    tables = {} if quick else {"by length": by_length(counts), "most frequent edits": frequent_edits(items, changes)}
    return Scores(values, first, tables, higher_is_better=is_higher_better(first), loss=values.get("nll"))


def pair_counts(
    golds: Sequence[str],
    sources: Sequence[str],
    answers: Sequence[str],
    *,
    gold_tokens: Sequence[Tokens],
    answer_tokens: Sequence[Tokens],
    source_lengths: Sequence[int],
    likelihood: Sequence[tuple[float, int]] | None,
    tokenize: str,
    lowercase: bool,
) -> Counted:
    """What the scores of `pair_scores` are made of, but for TER, whose counts are sacrebleu's own."""
    items = grouped(golds, sources, answers, gold_tokens, answer_tokens, source_lengths, likelihood)
    return counted_of(items, changes_of(items), SLOWER, tokenize=tokenize, lowercase=lowercase)


def grouped(
    golds: Sequence[str],
    sources: Sequence[str],
    answers: Sequence[str],
    gold_tokens: Sequence[Tokens],
    answer_tokens: Sequence[Tokens],
    source_lengths: Sequence[int],
    likelihood: Sequence[tuple[float, int]] | None = None,
) -> Items:
    """Rows as items, in the order in which their sources come first; the answer is that of the first row.

    >>> items = grouped(["A", "B"], ["a", "a"], ["A", "A"], ["A", "B"], ["A", "A"], [1, 1])
    >>> items.sources, items.references
    (['a'], [['A', 'B']])
    """
    given = {"sources": sources, "answers": answers, "gold tokens": gold_tokens, "answer tokens": answer_tokens}
    likely = golds if likelihood is None else likelihood
    for name, column in {**given, "source lengths": source_lengths, "likelihoods": likely}.items():
        if len(column) != len(golds):
            raise DataError(f"there are {len(golds)} right answers, but {len(column)} {name}: each row needs all.")
    rows: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        rows.setdefault(source, []).append(number)
    heads = [numbers[0] for numbers in rows.values()]
    return Items(
        sources=list(rows),
        references=[[golds[row] for row in numbers] for numbers in rows.values()],
        reference_tokens=[[gold_tokens[row] for row in numbers] for numbers in rows.values()],
        answers=[answers[row] for row in heads],
        answer_tokens=[answer_tokens[row] for row in heads],
        lengths=[source_lengths[row] for row in heads],
        likelihood=None if likelihood is None else _summed(likelihood, list(rows.values())),
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


def counted_of(
    items: Items, changes: NDArray[np.int64], slower: Sequence[str], *, tokenize: str, lowercase: bool
) -> Counted:
    """The counts of each item; ROUGE and METEOR see BLEU's tokens in small letters."""
    runs = bleu_counts(items.references, items.answers, tokenize=tokenize, lowercase=lowercase)
    columns: dict[str, ArrayLike] = {"one": np.ones(len(runs)), "runs": runs, "changes": changes}
    scores: dict[str, Callable[[Sums], Numbers]] = {
        "bleu": lambda sums: bleu_of(sums["runs"]),
        "exact_match": lambda sums: sums["changes"][..., 0] / sums["one"],
        "word_error_rate": lambda sums: 1 - sums["changes"][..., 0] / sums["one"],
        "symbol_error_rate": lambda sums: symbol_error_rate_of(sums["changes"]),
    }
    if items.likelihood is not None:
        columns |= {"nats": -items.likelihood[:, 0], "tokens": items.likelihood[:, 1]}
        scores |= {"perplexity": _perplexity, "nll": ratio("nats", "tokens")}
    if "chrf" in slower:
        columns["characters"] = chrf_counts(items.references, items.answers, lowercase=lowercase)
        scores["chrf"] = lambda sums: chrf_of(sums["characters"])
    if {"rouge_l", "meteor"} & {*slower}:
        into_tokens = cut(tokenize)
        right = [[into_tokens(text.lower()) for text in texts] for texts in items.references]
        written = [into_tokens(text.lower()) for text in items.answers]
        if "rouge_l" in slower:
            columns["rouge_l"] = rouge_l_each(right, written)
            scores["rouge_l"] = ratio("rouge_l", "one")
        if "meteor" in slower:
            columns["matches"] = meteor_counts(right, written)
            scores["meteor"] = lambda sums: meteor_of(sums["matches"])
    asked = [(source, *references) for source, references in zip(items.sources, items.references, strict=True)]
    return counted(asked, items.lengths, columns, scores)


def by_length(counts: Counted) -> Table:
    """Scores per bucket of source lengths."""
    shown = [name for name in BY_LENGTH if name in counts.statistics]
    rows = [
        [bucket.label, len(bucket.items), *(round(counts.value(name, bucket.items), 4) for name in shown)]
        for bucket in buckets(counts.lengths)
    ]
    return Table(["source length", "items", *shown], rows)


def frequent_edits(items: Items, changes: NDArray[np.int64]) -> Table:
    """What was most often written in place of what, against the nearest references."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in np.flatnonzero(changes[:, 1]):
        answer = items.answer_tokens[row]
        _, reference = nearest(items.reference_tokens[row], answer)
        seen.update((edit.predicted or NOTHING, edit.gold or NOTHING) for edit in edits(reference, answer))
    rows = sorted(seen.items(), key=lambda entry: (-entry[1], entry[0]))[:FREQUENT]
    return Table(["written", "right", "count"], [[written, right, count] for (written, right), count in rows])


def _summed(likelihood: Sequence[tuple[float, int]], rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(N, 2): over the rows of each item."""
    return np.array([np.sum([likelihood[row] for row in numbers], axis=0) for numbers in rows], np.float64)


def _perplexity(sums: Sums) -> Numbers:
    with np.errstate(over="ignore"):
        return np.exp(ratio("nats", "tokens")(sums))
