"""Spans in tags: B-person I-person O -> one person. What counts as a span, and what may follow what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.named import choose

Labelled: TypeAlias = Sequence[Sequence[str]]
"""One sequence of labels per sentence."""

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


class Spans(NamedTuple):
    """S spans of many sentences, whose steps are numbered through."""

    starts: NDArray[np.int64]  # (S,)
    ends: NDArray[np.int64]  # (S,): the step after the last
    kinds: NDArray[np.int64]  # (S,): numbers of types
    types: list[str]

    def same_as(self, others: Spans) -> NDArray[np.bool_]:
        """(S,): which of these spans are among others, start, end and type; both have the same types."""
        size = len(self.types)
        one, other = ((spans.starts * size + spans.kinds, spans.ends) for spans in (self, others))
        # No two spans of a tagging begin at the same step.
        place = np.searchsorted(other[0], one[0]).clip(max=max(len(other[0]) - 1, 0))
        if not len(other[0]):
            return np.zeros(len(one[0]), bool)
        return (other[0][place] == one[0]) & (other[1][place] == one[1])


def spans_of(tags: NDArray[np.int64], sentences: NDArray[np.int64], labels: Sequence[str]) -> Spans:
    """The spans of all sentences at once: (T,) the label of each step, and the sentence that it is in, both numbers.

    By the rules of CoNLL's scorer, which finds a meaning for any order of tags: a span begins at B and S, and at an I
    or E that has no span to go on with: after O, E, S, another type, or at the start. It ends where the next begins,
    at O, or with the sentence. B, I, E, S without a type have the type ''.

    >>> spans_of(np.array([1, 2, 0, 2]), np.array([0, 0, 0, 1]), ["O", "B-x", "I-x"])[:2]
    (array([0, 3]), array([2, 4]))
    """
    parted = [label.partition("-") for label in labels]
    is_tag = np.array(
        [label == "O" or prefix in ("B", "I", "E", "S") for label, (prefix, _, _) in zip(labels, parted, strict=True)],
        bool,
    )
    if not is_tag.all() and not is_tag[tags].all():
        step = int(is_tag[tags].argmin())
        first = int(np.searchsorted(sentences, sentences[step]))
        raise DataError(
            f"sentence {sentences[step] + 1}: the tag {labels[tags[step]]!r} of step {step - first + 1} is not O, "
            f"B-type, I-type, E-type or S-type."
        )
    types = sorted({kind for _, _, kind in parted})
    number = {kind: place for place, kind in enumerate(types)}
    kinds = np.array([number[kind] for _, _, kind in parted], np.int64)[tags]
    is_outside, may_begin, may_go_on = (
        np.array([prefix in which for prefix, _, _ in parted], bool)[tags] for which in (("O",), ("B", "S"), ("B", "I"))
    )
    is_new = np.ones(len(tags), bool)  # no span goes on from the step before
    if len(tags):
        is_same = (sentences[1:] == sentences[:-1]) & (kinds[1:] == kinds[:-1]) & may_go_on[:-1]
        is_new[1:] = ~is_same | may_begin[1:]
    starts = np.flatnonzero(is_new & ~is_outside)
    cuts = np.append(np.flatnonzero(is_new | is_outside), len(tags))
    return Spans(starts, cuts[np.searchsorted(cuts, starts, side="right")], kinds[starts], types)


def spans(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence.

    >>> sorted(spans(["B-place", "I-place", "O", "I-person", "B-person"]))
    [Span(start=0, end=2, type='place'), Span(start=3, end=4, type='person'), Span(start=4, end=5, type='person')]
    >>> spans(["S-place", "B-person", "E-person"]) == {Span(0, 1, "place"), Span(1, 3, "person")}
    True
    """
    labels = sorted({*tags})
    number = {label: place for place, label in enumerate(labels)}
    found = spans_of(np.array([number[tag] for tag in tags], np.int64), np.zeros(len(tags), np.int64), labels)
    return {
        Span(start, end, found.types[kind])
        for start, end, kind in zip(found.starts.tolist(), found.ends.tolist(), found.kinds.tolist(), strict=True)
    }


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


def found_scheme(sentences: Labelled) -> str | None:
    """The scheme that sentences are written in, IOB1 among them, where B-x only parts neighbours of one type.

    >>> found_scheme([["I-x", "O", "I-x", "B-x"]]), found_scheme([["B-x", "I-x"]]), found_scheme([["NOUN"]])
    ('iob1', 'bio', None)
    """
    labels = {tag for tags in sentences for tag in tags}
    if labels - {"O"} and all(label == "O" or label[:2] == "I-" for label in labels):
        return "iob1"
    scheme = scheme_of(labels)
    if scheme != "bio":
        return scheme
    parts_neighbours = all(
        place > 0 and tags[place - 1][1:] == tag[1:]
        for tags in sentences
        for place, tag in enumerate(tags)
        if tag[0] == "B"
    )
    return "iob1" if parts_neighbours else "bio"


def converted(tags: Sequence[str], scheme: str) -> list[str]:
    """The tags of one sentence in another scheme: bio, bioes or iob1; "" where the tag is not known stays.

    >>> converted(["I-x", "I-x", "O", "I-y", "B-y"], "bioes")
    ['B-x', 'E-x', 'O', 'S-y', 'S-y']
    >>> converted(["S-y", "S-y", "B-x", "E-x"], "iob1")
    ['I-y', 'B-y', 'I-x', 'I-x']
    """
    found = ["O" if tag else "" for tag in tags]
    runs = [0, *(place + 1 for place, tag in enumerate(tags) if not tag), len(tags) + 1]
    for first, after in pairwise(runs):
        before: Span | None = None
        for span in sorted(spans(tags[first : after - 1])):
            last = span.end - 1
            for step in range(span.start, span.end):
                prefix = "B" if step == span.start else "I"
                if scheme == "bioes" and step == last:
                    prefix = "S" if step == span.start else "E"
                if scheme == "iob1" and prefix == "B":
                    is_next = before is not None and before.end == step and before.type == span.type
                    prefix = "B" if is_next else "I"
                found[first + step] = f"{prefix}-{span.type}" if span.type else prefix
            before = span
    return found


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


def _tag_of(label: str, scheme: Scheme) -> tuple[str, str]:
    prefix, _, kind = label.partition("-")
    if label != "O" and prefix not in (*PREFIXES[scheme],):
        forms = ", ".join(f"{letter}-type" for letter in PREFIXES[scheme])
        raise ConfigError(f"the label {label!r} is not valid in the scheme '{scheme}': use O, {forms}.")
    return prefix, kind
