"""Scores of answers that are sequences, against one or several references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics.bleu import bleu_counts, bleu_of
from recurra.metrics.chrf import chrf
from recurra.metrics.cutting import cut
from recurra.metrics.edits import edit_counts, edits, nearest, symbol_error_rate_of
from recurra.metrics.lengths import buckets
from recurra.metrics.meteor import meteor
from recurra.metrics.references import Tokens
from recurra.metrics.resampling import Difference, Statistic, difference, drawn, interval
from recurra.metrics.rouge import rouge_l
from recurra.metrics.ter import has_ter, ter
from recurra.named import choose
from recurra.tasks.task import Scores, Table

LOWER_IS_BETTER = ("ter", "word_error_rate", "symbol_error_rate", "perplexity", "nll")
OF_TEXTS = ("chrf", "ter", "rouge_l", "meteor")
"""Scores that take longer, and are left to the end."""

NAMES = ("bleu", "chrf", "rouge_l", "meteor", "exact_match", *LOWER_IS_BETTER)
"""Scores that training may stop on."""

FREQUENT = 20
"""So many of the most frequent edits are shown."""

NOTHING = "(nothing)"
"""In place of a symbol that is not there."""


class Items(NamedTuple):
    """What was asked, each source once: rows with the same source are several references of one item."""

    sources: list[str]
    references: list[list[str]]  # of each item
    reference_tokens: list[list[Tokens]]
    answers: list[str]
    answer_tokens: list[Tokens]
    lengths: list[int]  # of the sources
    likelihood: NDArray[np.float64] | None  # (N, 2): log p of all references of an item, and their tokens


class PairCounts(NamedTuple):
    """All that scores need to know of each item; sums over items are the counts of any part of the data."""

    sources: list[str]
    bleu: NDArray[np.int64]  # (N, 10), as bleu_counts has them
    edits: NDArray[np.int64]  # (N, 3): right, distance, length of the nearest reference
    likelihood: NDArray[np.float64] | None  # (N, 2)


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

    An item is right where its text, or its tokens, are those of a reference. With quick, only what training looks at.
    """
    choose(NAMES, first, "evaluation.first")
    items = grouped(golds, sources, answers, gold_tokens, answer_tokens, source_lengths, likelihood)
    counts = counted(items, tokenize=tokenize, lowercase=lowercase)
    of_counts = {name: float(score(sums(counts))) for name, score in statistics(counts).items()}
    wanted = [name for name in OF_TEXTS if name == first or not (quick or (name == "ter" and not has_ter()))]
    of_texts = {name: of_text(name, items, tokenize=tokenize, lowercase=lowercase) for name in wanted}
    values = {"bleu": of_counts["bleu"], **of_texts, **of_counts}
    if first not in values:
        raise ConfigError(f"evaluation.first = '{first}' needs log-probabilities, but these answers come without.")
    values["count"] = float(len(items.sources))
    tables = (
        {} if quick else {"by length": by_length(items, counts), "most frequent edits": frequent_edits(items, counts)}
    )
    return Scores(values, first, tables, higher_is_better=first not in LOWER_IS_BETTER, loss=values.get("nll"))


def of_text(name: str, items: Items, *, tokenize: str, lowercase: bool) -> float:
    """One of the scores that are found from texts; ROUGE and METEOR see BLEU's tokens in small letters."""
    if name == "chrf":
        return chrf(items.references, items.answers, lowercase=lowercase)
    if name == "ter":
        return ter(items.references, items.answers)
    into_tokens = cut(tokenize)
    right = [[into_tokens(text.lower()) for text in texts] for texts in items.references]
    written = [into_tokens(text.lower()) for text in items.answers]
    return rouge_l(right, written) if name == "rouge_l" else meteor(right, written)


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
    for name, column in {
        **given,
        "source lengths": source_lengths,
        "likelihoods": golds if likelihood is None else likelihood,
    }.items():
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
        likelihood=None if likelihood is None else summed(likelihood, list(rows.values())),
    )


def summed(likelihood: Sequence[tuple[float, int]], rows: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(N, 2): over the rows of each item."""
    return np.array([np.sum([likelihood[row] for row in numbers], axis=0) for numbers in rows], np.float64)


def counted(items: Items, *, tokenize: str, lowercase: bool) -> PairCounts:
    """The counts of each item."""
    changes = edit_counts(items.reference_tokens, items.answer_tokens)
    # Pieces of words may be cut in another way and still make the same text.
    for row in np.flatnonzero(changes[:, 0] == 0):
        for reference, tokens in zip(items.references[row], items.reference_tokens[row], strict=True):
            if reference.split() == items.answers[row].split():
                changes[row] = 1, 0, len(tokens)
    runs = bleu_counts(items.references, items.answers, tokenize=tokenize, lowercase=lowercase)
    return PairCounts(items.sources, runs, changes, items.likelihood)


def sums(counts: PairCounts) -> NDArray[np.float64]:
    """(K,) counts of all items."""
    return table_of(counts).sum(0)


def table_of(counts: PairCounts) -> NDArray[np.float64]:
    """(N, K): all counts of each item side by side: one, BLEU's, those of edits, then the likelihood if it is known."""
    known = [] if counts.likelihood is None else [counts.likelihood]
    one = np.ones((len(counts.bleu), 1))
    return np.concatenate([one, counts.bleu, counts.edits, *known], axis=1)


def statistics(counts: PairCounts) -> dict[str, Statistic]:
    """The scores that sums of `table_of` give."""
    runs, edited = 1 + counts.bleu.shape[1], 1 + counts.bleu.shape[1] + counts.edits.shape[1]

    def nll(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return -sums[..., edited] / np.maximum(sums[..., edited + 1], 1)

    def perplexity(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.exp(nll(sums))

    found: dict[str, Statistic] = {
        "bleu": lambda sums: bleu_of(sums[..., 1:runs]),
        "exact_match": lambda sums: sums[..., runs] / sums[..., 0],
        "word_error_rate": lambda sums: 1 - sums[..., runs] / sums[..., 0],
        "symbol_error_rate": lambda sums: symbol_error_rate_of(sums[..., runs:edited]),
    }
    return found if counts.likelihood is None else {**found, "perplexity": perplexity, "nll": nll}


def intervals(
    counts: PairCounts, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> dict[str, tuple[float, float]]:
    """The interval of each score, by drawing the items again."""
    samples = drawn(table_of(counts), seed=seed, resamples=resamples)
    return {name: interval(score, samples, level=level) for name, score in statistics(counts).items()}


def differences(
    one: PairCounts, other: PairCounts, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> dict[str, Difference]:
    """How far one system's scores lie above another's on the same items, by drawing the same items for both."""
    if one.sources != other.sources:
        raise DataError("two systems are compared on the same sources in the same order, but theirs differ.")
    if one.likelihood is None or other.likelihood is None:
        one, other = one._replace(likelihood=None), other._replace(likelihood=None)
    first, second = (drawn(table_of(counts), seed=seed, resamples=resamples) for counts in (one, other))
    return {
        name: difference(score, first, second, higher_is_better=name not in LOWER_IS_BETTER, level=level)
        for name, score in statistics(one).items()
    }


def by_length(items: Items, counts: PairCounts) -> Table:
    """Scores per bucket of source lengths."""
    shown = {name: score for name, score in statistics(counts).items() if name not in ("word_error_rate", "nll")}
    table = table_of(counts)
    rows = [
        [
            bucket.label,
            len(bucket.items),
            *(round(float(score(table[bucket.items].sum(0))), 4) for score in shown.values()),
        ]
        for bucket in buckets(items.lengths)
    ]
    return Table(["source length", "items", *shown], rows)


def frequent_edits(items: Items, counts: PairCounts) -> Table:
    """What was most often written in place of what, against the nearest references."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in np.flatnonzero(counts.edits[:, 1]):
        answer = items.answer_tokens[row]
        _, reference = nearest(items.reference_tokens[row], answer)
        seen.update((edit.predicted or NOTHING, edit.gold or NOTHING) for edit in edits(reference, answer))
    rows = sorted(seen.items(), key=lambda entry: (-entry[1], entry[0]))[:FREQUENT]
    return Table(["written", "right", "count"], [[written, right, count] for (written, right), count in rows])
