"""Spans in tags: B-person I-person O -> one person. What counts as a span, what may follow what, and span F1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics.labels import LabelScores, label_scores, most_frequent_first
from recurra.metrics.parallel import Labelled, check_parallel
from recurra.named import choose

Scheme = Literal["bio", "bioes"]
"""How tags write spans: B begins, I goes on, E ends, S is a span of one, O is outside."""

PREFIXES = {"bio": "BI", "bioes": "BIES"}


class Span(NamedTuple):
    """The steps start, …, end - 1, and what they are.

    >>> Span(0, 2, "person") in spans(["B-person", "I-person", "O"])
    True
    """

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class SpanScores:
    """How well spans were found: a span is right where start, end and type are all right.

    >>> span_scores([["B-x", "O"]], [["B-x", "B-y"]]).per_type[0].f1
    1.0
    """

    precision: float
    recall: float
    f1: float
    count: int
    """How many spans gold has."""
    per_type: list[LabelScores]
    """The same for each type, the most frequent in gold first."""


def spans(tags: Sequence[str]) -> set[Span]:
    """The spans that tags write, by the rules of CoNLL's scorer, which finds a meaning for any order of tags.

    A span begins at B and S, and at an I or E that has no span to go on with: after O, E, S, another type, or at
    the start. It ends where the next begins, at O, or with the tags. B, I, E, S without a type have the type ''.

    >>> sorted(spans(["B-place", "I-place", "O", "I-person", "B-person"]))
    [Span(start=0, end=2, type='place'), Span(start=3, end=4, type='person'), Span(start=4, end=5, type='person')]
    >>> spans(["S-place", "B-person", "E-person"]) == {Span(0, 1, "place"), Span(1, 3, "person")}
    True
    """
    found = set()
    begun: int | None = None
    previous, previous_kind = "O", ""
    for step, tag in enumerate(tags):
        prefix, kind = _parted(tag, step)
        begins = prefix in "BS" or (prefix in "IE" and (previous in "OES" or kind != previous_kind))
        if begun is not None and (begins or prefix == "O"):
            found.add(Span(begun, step, previous_kind))
            begun = None
        if begins:
            begun = step
        previous, previous_kind = prefix, kind
    if begun is not None:
        found.add(Span(begun, len(tags), previous_kind))
    return found


def scheme_of(labels: Iterable[str]) -> Scheme | None:
    """The scheme that labels are written in; None where they are not tags of spans.

    'bio' where every label is O, B-type or I-type and some B-type is there; 'bioes' where E-type or S-type is too.

    >>> scheme_of(["O", "B-person", "I-person"]), scheme_of(["O", "S-person"]), scheme_of(["NOUN", "VERB"])
    ('bio', 'bioes', None)
    """
    labels = set(labels)
    if not all(label == "O" or re.fullmatch(r"[BIES]-.+", label, flags=re.DOTALL) for label in labels):
        return None
    prefixes = {label[0] for label in labels}
    if prefixes & {"E", "S"}:
        return "bioes"
    return "bio" if "B" in prefixes else None


def allowed(labels: Sequence[str], scheme: Scheme) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Which labels a well-formed tagging may have: (L, L) one after another, (L,) at the start, (L,) at the end.

        bio     I-x only after B-x or I-x
        bioes   I-x and E-x after B-x and I-x, and nothing else there; so no end at B-x or I-x

    Where no B-x is among the labels, I-x of bio may begin a span, since x could not be said at all otherwise.

    >>> follows, start, end = allowed(["O", "B-x", "I-x"], "bio")
    >>> follows.tolist()
    [[True, True, False], [True, True, True], [True, True, True]]
    >>> start.tolist(), end.tolist()
    ([True, True, False], [True, True, True])
    """
    choose(PREFIXES, scheme, "scheme")
    tags = [_tag_of(label, scheme) for label in labels]
    beginning = {kind for prefix, kind in tags if prefix == "B"}

    def may_follow(before: tuple[str, str], after: tuple[str, str]) -> bool:
        is_open = before[0] in "BI"
        if after[0] in "IE":
            return (is_open and before[1] == after[1]) or (scheme == "bio" and after[1] not in beginning)
        return scheme == "bio" or not is_open

    outside = ("O", "")
    follows = np.array([[may_follow(before, after) for after in tags] for before in tags], dtype=np.bool_)
    start = np.array([may_follow(outside, tag) for tag in tags], dtype=np.bool_)
    end = np.array([may_follow(tag, outside) for tag in tags], dtype=np.bool_)
    return follows.reshape(len(tags), len(tags)), start, end


def breaches(sentences: Labelled, scheme: Scheme) -> int:
    """How many sentences are not well-formed in a scheme: many, and the data is written in another one.

    >>> breaches([["O", "B-x", "I-x"], ["O", "I-x"], ["I-x"]], "bio")
    2
    """
    labels = sorted({"O", *(tag for tags in sentences for tag in tags)})
    # With B-x among the labels, `allowed` does not take I-x for the beginning of a span.
    labels += [f"B{label[1:]}" for label in labels if label[:2] in ("I", "I-") and f"B{label[1:]}" not in labels]
    follows, start, end = allowed(labels, scheme)
    place = {label: number for number, label in enumerate(labels)}
    rows = [[place[tag] for tag in tags] for tags in sentences]
    return sum(not (start[row[0]] and end[row[-1]] and follows[row[:-1], row[1:]].all()) for row in rows if row)


def span_scores(gold: Labelled, predicted: Labelled) -> SpanScores:
    """Precision, recall and F1 of whole spans, counts summed over all sentences (micro), as CoNLL's scorer has them.

    >>> scores = span_scores([["B-x", "I-x", "O", "B-y"]], [["B-x", "I-x", "B-y", "I-y"]])
    >>> scores.precision, scores.recall, scores.f1, scores.count
    (0.5, 0.5, 0.5, 2)
    """
    check_parallel(gold, predicted)
    right, in_gold, in_predicted = Counter[str](), Counter[str](), Counter[str]()
    for number, (true_tags, said_tags) in enumerate(zip(gold, predicted, strict=True), start=1):
        try:
            true, said = spans(true_tags), spans(said_tags)
        except DataError as error:
            raise DataError(f"sentence {number}: {error}") from error
        in_gold.update(span.type for span in true)
        in_predicted.update(span.type for span in said)
        right.update(span.type for span in true & said)
    per_type = [
        label_scores(kind, right=right[kind], count=in_gold[kind], predicted=in_predicted[kind])
        for kind in most_frequent_first(in_gold, in_predicted)
    ]
    overall = label_scores("", right=right.total(), count=in_gold.total(), predicted=in_predicted.total())
    return SpanScores(overall.precision, overall.recall, overall.f1, overall.count, per_type)


def _parted(tag: str, step: int) -> tuple[str, str]:
    prefix, _, kind = tag.partition("-")
    if tag != "O" and prefix not in ("B", "I", "E", "S"):
        raise DataError(f"the tag {tag!r} of step {step + 1} is not O, B-type, I-type, E-type or S-type.")
    return prefix, kind


def _tag_of(label: str, scheme: Scheme) -> tuple[str, str]:
    prefix, _, kind = label.partition("-")
    if label != "O" and prefix not in (*PREFIXES[scheme],):
        forms = ", ".join(f"{letter}-type" for letter in PREFIXES[scheme])
        raise ConfigError(f"the label {label!r} does not belong to the scheme '{scheme}', whose labels are O, {forms}.")
    return prefix, kind
