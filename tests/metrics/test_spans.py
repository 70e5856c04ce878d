"""Spans: what CoNLL's scorer counts as one, what may follow what, and F1 over whole spans."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.metrics import Scheme, Span, allowed, breaches, scheme_of, span_scores, spans

ANY_TAG = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in "xy")]
TAGS = {"bio": ["O", "B-x", "I-x", "B-y", "I-y"], "bioes": ANY_TAG}
DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))

any_tags = st.lists(st.sampled_from(ANY_TAG), max_size=8)


def spans_by_definition(tags: Sequence[str]) -> set[Span]:
    """Every stretch within which each step goes on with the one before, and which cannot be made longer."""

    def goes_on(step: int) -> bool:
        if step in (0, len(tags)):
            return False
        before, here = tags[step - 1], tags[step]
        return before[0] in "BI" and here[0] in "IE" and before[2:] == here[2:]

    return {
        Span(start, end, tags[start][2:])
        for start, end in itertools.combinations(range(len(tags) + 1), 2)
        if "O" not in tags[start:end]
        and not goes_on(start)
        and not goes_on(end)
        and all(goes_on(step) for step in range(start + 1, end))
    }


@given(any_tags)
def test_spans_are_those_of_the_definition(tags: list[str]) -> None:
    assert spans(tags) == spans_by_definition(tags)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("", []),
        ("O O", []),
        ("B-x", ["0-1 x"]),
        ("B-x I-x I-x", ["0-3 x"]),
        ("B-x B-x", ["0-1 x", "1-2 x"]),
        ("I-x", ["0-1 x"]),
        ("O I-x I-x O", ["1-3 x"]),
        ("I-x B-x I-x", ["0-1 x", "1-3 x"]),
        ("B-x I-y", ["0-1 x", "1-2 y"]),
        ("I-x I-y I-x", ["0-1 x", "1-2 y", "2-3 x"]),
        ("B-x O I-x", ["0-1 x", "2-3 x"]),
        ("B-x E-x", ["0-2 x"]),
        ("B-x I-x E-x S-x", ["0-3 x", "3-4 x"]),
        ("S-x S-x", ["0-1 x", "1-2 x"]),
        ("E-x E-x", ["0-1 x", "1-2 x"]),
        ("B-x E-x I-x", ["0-2 x", "2-3 x"]),
        ("S-x I-x E-x", ["0-1 x", "1-3 x"]),
        ("B-x S-x", ["0-1 x", "1-2 x"]),
        ("B-creative-work I-creative-work", ["0-2 creative-work"]),
        ("B I O B", ["0-2 ", "3-4 "]),
    ],
)
def test_spans_of_tags_in_any_order_are_those_of_conlls_scorer(tags: str, found: list[str]) -> None:
    assert {f"{span.start}-{span.end} {span.type}" for span in spans(tags.split())} == set(found)


@pytest.mark.parametrize("tag", ["NOUN", "", "X-x", "O-x", "b-x"])
def test_a_label_that_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(DataError, match=f"the tag {tag!r} of step 2 is not O, B-type, I-type, E-type or S-type"):
        spans(["O", tag])
    with pytest.raises(DataError, match="sentence 3: the tag"):
        span_scores([["O"], [], [tag]], [["O"], [], ["O"]])


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-x", "I-x"], "bio"),
        (["B-x"], "bio"),
        (["O", "B-creative-work"], "bio"),
        (["O", "I-x"], None),
        (["O"], None),
        ([], None),
        (["O", "S-x"], "bioes"),
        (["O", "B-x", "E-x"], "bioes"),
        (["O", "B-x", "NOUN"], None),
        (["O", "B-"], None),
        (["O", "B", "I"], None),
        (["NOUN", "VERB"], None),
    ],
)
def test_the_scheme_is_seen_from_the_labels(labels: list[str], scheme: Scheme | None) -> None:
    assert scheme_of(labels) == scheme
    assert scheme_of(iter(labels * 2)) == scheme


def is_well_formed(tags: Sequence[str], scheme: Scheme) -> bool:
    """By a pattern over the whole tagging, one letter per tag: lower case for x, upper for y."""
    letters = "".join({"O": "_"}.get(tag, tag[0].lower() if tag[2:] == "x" else tag[0]) for tag in tags)
    pattern = {"bio": r"(_|bi*|BI*)*", "bioes": r"(_|s|S|bi*e|BI*E)*"}[scheme]
    return re.fullmatch(pattern, letters) is not None


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
def test_what_is_allowed_is_what_is_well_formed(scheme: Scheme, steps: int) -> None:
    labels = TAGS[scheme]
    follows, start, end = allowed(labels, scheme)
    for row in itertools.product(range(len(labels)), repeat=steps):
        passes = not row or (start[row[0]] and end[row[-1]] and all(follows[a, b] for a, b in itertools.pairwise(row)))
        tags = [labels[label] for label in row]
        assert passes == is_well_formed(tags, scheme) == (breaches([tags], scheme) == 0)


def test_a_type_without_a_b_may_begin_with_its_i() -> None:
    follows, start, end = allowed(["O", "I-x", "B-y", "I-y"], "bio")
    assert follows[:, 1].all()
    assert start.tolist() == [True, True, True, False]
    assert end.all()
    assert follows[:, 3].tolist() == [False, False, True, True]
    assert breaches([["O", "I-x"], ["B-y"], []], "bio") == 1


@pytest.mark.parametrize("labels", [[], ["O"]])
@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_what_is_allowed_keeps_its_shape_with_few_labels(labels: list[str], scheme: Scheme) -> None:
    follows, start, end = allowed(labels, scheme)
    assert follows.shape == (len(labels), len(labels))
    assert start.shape == end.shape == (len(labels),)
    assert follows.dtype == start.dtype == np.bool_


def test_labels_of_another_scheme_are_refused() -> None:
    with pytest.raises(ConfigError, match="'E-x' does not belong to the scheme 'bio', whose labels are O, B-type, I-"):
        allowed(["O", "E-x"], "bio")
    with pytest.raises(ConfigError, match=r"scheme = 'boi' is not known\. Did you mean 'bio'\?"):
        allowed(["O"], "boi")  # type: ignore[arg-type]


@given(st.lists(st.tuples(any_tags, any_tags).map(lambda two: (two[0], (two[1] * 8 + ["O"] * 8)[: len(two[0])]))))
def test_scores_count_the_spans_that_both_sides_share(pairs: list[tuple[list[str], list[str]]]) -> None:
    scores = span_scores([gold for gold, _ in pairs], [said for _, said in pairs])
    gold = {(number, span) for number, (tags, _) in enumerate(pairs) for span in spans_by_definition(tags)}
    said = {(number, span) for number, (_, tags) in enumerate(pairs) for span in spans_by_definition(tags)}
    assert scores.count == len(gold)
    assert scores.precision == (len(gold & said) / len(said) if said else 0)
    assert scores.recall == (len(gold & said) / len(gold) if gold else 0)
    if scores.precision + scores.recall:
        assert scores.f1 == pytest.approx(
            2 * scores.precision * scores.recall / (scores.precision + scores.recall), abs=1e-12
        )
    else:
        assert scores.f1 == 0
    assert sum(score.count for score in scores.per_type) == len(gold)
    assert sum(score.predicted for score in scores.per_type) == len(said)
    for score in scores.per_type:
        shared = [span for _, span in gold & said if span.type == score.label]
        assert score.recall * score.count == pytest.approx(len(shared))


def test_scores_per_type_come_most_frequent_first() -> None:
    gold = [["B-y", "B-x", "O", "B-y", "O"]]
    said = [["B-y", "B-x", "I-x", "B-z", "O"]]
    scores = span_scores(gold, said)
    assert [(s.label, s.precision, s.recall, s.count, s.predicted) for s in scores.per_type] == [
        ("y", 1.0, 0.5, 2, 1),
        ("x", 0.0, 0.0, 1, 1),
        ("z", 0.0, 0.0, 0, 1),
    ]
    assert (scores.precision, scores.recall, scores.f1, scores.count) == (1 / 3, 1 / 3, 1 / 3, 3)


def test_no_spans_at_all_score_zero() -> None:
    scores = span_scores([["O"]], [["O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.count, scores.per_type) == (0, 0, 0, 0, [])


def test_sentences_of_other_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="sentence 2 has 1 gold labels but 2 predicted"):
        span_scores([["O"], ["O"]], [["O"], ["O", "O"]])


@pytest.mark.skipif(not (DATA / "wnut17").is_dir(), reason="the WNUT 2017 data is not here")
@pytest.mark.parametrize(
    ("part", "sentences", "entities"), [("train", 3394, 1975), ("valid", 1009, 836), ("test", 1287, 1079)]
)
def test_the_entities_of_wnut17_are_as_many_as_published(part: str, sentences: int, entities: int) -> None:
    blocks = (DATA / "wnut17" / f"{part}.conll").read_text(encoding="utf-8").strip("\n").split("\n\n")
    tags = [[line.rpartition("\t")[2] for line in block.split("\n")] for block in blocks]
    assert len(tags) == sentences
    assert scheme_of(tag for row in tags for tag in row) == "bio"
    assert sum(len(spans(row)) for row in tags) == entities
    assert span_scores(tags, tags).f1 == 1
