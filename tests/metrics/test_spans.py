"""Spans: what CoNLL's scorer counts as one, and what may follow what."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.metrics import Scheme, Span, allowed, breaches, scheme_of, spans
from recurra.metrics.spans import converted, found_scheme, spans_of

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
    with pytest.raises(DataError, match=f"sentence 3: the tag {tag!r} of step 1 is not O"):
        spans_of(np.array([0, 1]), np.array([0, 2]), ["O", tag])


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
    with pytest.raises(ConfigError, match="'E-x' is not valid in the scheme 'bio': use O, B-type, I-"):
        allowed(["O", "E-x"], "bio")
    with pytest.raises(ConfigError, match=r"scheme = 'boi' is not known\. Did you mean 'bio'\?"):
        allowed(["O"], "boi")  # type: ignore[arg-type]


@given(st.lists(any_tags), st.lists(any_tags))
def test_the_spans_of_many_sentences_are_those_of_each(one: list[list[str]], other: list[list[str]]) -> None:
    found, expected = [], []
    for sentences in (
        one,
        [(tags * 9 + ["O"] * 9)[: len(row)] for row, tags in zip(one, other * 9 + one, strict=False)],
    ):
        flat = np.array([ANY_TAG.index(tag) for tags in sentences for tag in tags], np.int64)
        numbers = np.repeat(np.arange(len(sentences)), [len(tags) for tags in sentences])
        found.append(spans_of(flat, numbers, ANY_TAG))
        begins = np.cumsum([0, *(len(tags) for tags in sentences)])
        each = zip(begins, map(spans_by_definition, sentences), strict=False)
        expected.append({(start + here, end + here, kind) for here, whole in each for start, end, kind in whole})
    triples = [{*zip(s.starts.tolist(), s.ends.tolist(), (s.types[k] for k in s.kinds), strict=True)} for s in found]
    assert triples == expected
    assert int(found[0].same_as(found[1]).sum()) == len(expected[0] & expected[1])


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


@given(any_tags, st.sampled_from(["bio", "bioes", "iob1"]))
def test_a_scheme_changes_tags_and_no_spans(tags: list[str], scheme: Any) -> None:
    found = converted(tags, scheme)
    assert spans(found) == spans(tags)
    assert converted(found, scheme) == found
    if scheme == "iob1":  # B only where the span before touches and has the same type
        assert all(found[place - 1][1:] == tag[1:] for place, tag in enumerate(found) if tag[0] == "B")
    else:
        assert breaches([found], scheme) == 0


@given(st.lists(any_tags.map(lambda tags: converted(tags, "bio")), max_size=4))
def test_the_scheme_of_well_formed_tags_is_found(sentences: list[list[str]]) -> None:
    assert found_scheme(sentences) in ("bio", "iob1", None)
    assert found_scheme([converted(tags, "bioes") for tags in sentences]) in ("bioes", None)


def test_unknown_tags_part_spans_when_a_scheme_is_changed() -> None:
    assert converted(["I-x", "", "I-x"], "bioes") == ["S-x", "", "S-x"]
