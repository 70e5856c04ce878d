"""Answers of networks that are searched on their device, here the CPU, against those that the host searches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from recurra.config import Seq2SeqDecoding
from recurra.models.searching import Ensemble, Searchable, searched, why_on_host
from recurra.models.seq2seq import PairBatch
from recurra.search.decoding import SearchTokens
from recurra.search.graphs import Graphs, graphs_of
from recurra.search.search import Hypothesis
from recurra.search.tree import Tree
from tests.models.pairs import CONTEXTS, DRAWING, END, START, batch, network

WORDS = SearchTokens(end=END, never=(START,))
ASKED = batch([[3, 4, 5, 6, 3, 4, 5, 6, 3, 4], [6, 3], [5], [4, 4, 4, 4, 4]])  # ten places make sixteen
DECODINGS: list[dict[str, Any]] = [
    {"width": 5, "best": 4},
    {"width": 1, "length_penalty": 0.0, "min_length": 11},
    {"search": "greedy", "no_repeat": 3},
    {"search": "sampling", "best": 2, "top_k": 4, "temperature": 0.8, "top_p": 0.9},
]


def agree(model: Searchable, asked: PairBatch, words: SearchTokens = WORDS, watch: bool = True, **options: Any) -> None:
    """When steps are recorded, and when they are replayed."""
    decoding = Seq2SeqDecoding(**{"max_length": 13, **options})
    with torch.no_grad():
        expected = searched(model, asked, decoding, words, watch=watch)
        graphs = Graphs(from_visit=1)
        for recorded in (graphs, graphs):  # recorded, replayed
            found = searched(model, asked, decoding, words, watch=watch, on_device=True, graphs=recorded)
            for some, others in zip(found, expected, strict=True):
                for one, other in zip(some, others, strict=True):
                    same(one, other)


def same(one: Hypothesis, other: Hypothesis) -> None:
    assert (one.tokens, one.ended) == (other.tokens, other.ended)
    assert one.log_probability == pytest.approx(other.log_probability, abs=1e-9)
    assert one.score == pytest.approx(other.score, abs=1e-9)
    assert (one.watched is None) == (other.watched is None)
    if one.watched is not None and other.watched is not None:
        places = other.watched.shape[1]
        assert_close(one.watched[:, :places], other.watched, rtol=0, atol=1e-9)
        assert (one.watched[:, places:] == 0).all()


@pytest.mark.parametrize("options", [*CONTEXTS, DRAWING], ids=str)
def test_every_network_answers_alike(options: Any) -> None:
    model, attends = network(**options), options.get("attention") != "none"
    for decoding in DECODINGS:
        agree(model, ASKED, watch=attends, **decoding)


@settings(max_examples=15)
@given(
    sources=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=12), min_size=1, max_size=9),
    decoding=st.sampled_from(DECODINGS),
    seed=st.integers(0, 9),
)
def test_sources_of_any_lengths_are_answered_alike(sources: Any, decoding: Any, seed: int) -> None:
    agree(network(seed=seed, wiring="feeding"), batch(sources), **{"coverage_penalty": 0.3, **decoding})


def test_rules_are_obeyed_alike() -> None:
    model = network(wiring="feeding")
    for search in ("beam", "greedy", "sampling"):
        agree(model, ASKED, WORDS._replace(prefix=(5, 4), banned=(3,)), search=search)
        agree(model, ASKED, search=search, no_repeat=2, max_length=5, max_ratio=0.0)


def test_networks_answer_together_alike() -> None:
    members = network(seed=1, wiring="inside", cell="gru"), network(seed=2, attention="none", hidden=6)
    for decoding in DECODINGS:
        agree(Ensemble(members), ASKED, **decoding)


def test_a_network_that_copies_answers_alike() -> None:
    model = network(copy=True)
    with torch.no_grad():
        model.pointer.gate.bias -= 6.0  # type: ignore[union-attr]  # mostly copied
    places = ASKED.source.values.shape[1]
    copied = torch.arange(4 * places).view(4, places) % 6 + 3
    for decoding in DECODINGS:
        agree(model, ASKED._replace(copied=copied, extra=3), **decoding)


def test_a_network_is_recorded_for_each_shape_once() -> None:
    model, graphs = network(wiring="feeding"), Graphs(from_visit=1)
    decoding = Seq2SeqDecoding(search="greedy", max_length=10, max_ratio=None)
    numbers = []
    for lengths in ([9, 10], [16, 3], [17, 9]):
        asked = batch([[3] * length for length in lengths])
        with torch.no_grad():
            searched(model, asked, decoding, WORDS, on_device=True, graphs=graphs)
        numbers.append(graphs.recorded)
    assert numbers == [1, 1, 2]  # sixteen places, sixteen, and twenty-four


def test_on_the_cpu_nothing_is_recorded_unasked() -> None:
    model = network()
    with torch.no_grad():
        searched(model, ASKED, Seq2SeqDecoding(max_length=4), WORDS, on_device=True)
    assert not graphs_of(model).rooms


@pytest.mark.parametrize(
    ("options", "words", "record", "reason"),
    [
        ({"search": "exhaustive"}, WORDS, None, "decoding.search = 'exhaustive' runs on the host"),
        ({}, WORDS._replace(forced=(3,)), None, "decoding.forced divides a beam by how many forced tokens"),
        ({}, WORDS, list[Tree](), "the tree of a beam is recorded on the host"),
        ({}, WORDS, None, None),
    ],
)
def test_what_is_left_to_the_host_is_said_and_answered_all_the_same(
    options: Any, words: SearchTokens, record: Any, reason: str | None
) -> None:
    decoding = Seq2SeqDecoding(**{"max_length": 3, **options})
    found = why_on_host(decoding, words, record)
    assert found is None if reason is None else (found or "").startswith(reason)
    model = network()
    with torch.no_grad():
        expected = searched(model, ASKED, decoding, words)
        for some, others in zip(
            searched(model, ASKED, decoding, words, record=record, on_device=True), expected, strict=True
        ):
            for one, other in zip(some, others, strict=True):
                same(one, other)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("options", [*CONTEXTS, DRAWING], ids=str)
def test_a_gpu_answers_as_the_cpu_does(options: Any) -> None:
    model, attends = network(**options), options.get("attention") != "none"
    there = network(**options).cuda()
    asked = ASKED._replace(source=ASKED.source._replace(values=ASKED.source.values.cuda()))
    for own in DECODINGS:
        decoding = Seq2SeqDecoding(**{"max_length": 13, **own})
        with torch.no_grad():
            expected = searched(model, ASKED, decoding, WORDS, watch=attends)
            for _ in range(4):  # eager, recorded, replayed
                for some, others in zip(searched(there, asked, decoding, WORDS, watch=attends), expected, strict=True):
                    for one, other in zip(some, others, strict=True):
                        same(one, other)
    if options.get("decoder", {}).get("kind") != "transformer":
        assert graphs_of(there).recorded > 0
        assert graphs_of(there).refusals == []
