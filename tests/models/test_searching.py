"""Answers that a network finds: each search against another, against teacher forcing, and in other company."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recurra.config import Seq2SeqDecoding
from recurra.errors import ConfigError
from recurra.models.searching import Ensemble, Searchable, searched
from recurra.models.seq2seq import PairBatch, SequenceToSequence, of_rows
from recurra.padding import Padded
from recurra.search.decoding import SearchTokens
from recurra.search.search import Hypothesis
from recurra.wirings import Features
from tests.models.pairs import CONTEXTS, DRAWING, END, PAIRS, SIZES, START, batch, network, row_of

every = pytest.mark.parametrize("options", [*CONTEXTS, DRAWING], ids=str)
WORDS = SearchTokens(end=END, never=(START,))
ASKED = PAIRS._replace(target=None)


def answers(
    model: Searchable, asked: PairBatch = ASKED, words: SearchTokens = WORDS, watch: bool = False, **options: Any
) -> list[list[Hypothesis]]:
    with torch.no_grad():
        return searched(model, asked, Seq2SeqDecoding(**{"max_length": 4, **options}), words, watch=watch)


def same(found: list[Hypothesis], expected: list[Hypothesis], tolerance: float = 1e-10) -> None:
    assert [(each.tokens, each.ended) for each in found] == [(each.tokens, each.ended) for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=tolerance)
        assert one.score == pytest.approx(other.score, abs=tolerance)


def recomputed(
    model: Searchable, asked: PairBatch, row: int, found: list[Hypothesis]
) -> tuple[list[float], list[Tensor]]:
    """log P of the tokens of each hypothesis by teacher forcing, and where it looks at each."""
    seen: list[Features] = []
    handles = []
    if isinstance(model, SequenceToSequence):
        handles.append(model.decoder.register_forward_hook(lambda _, __, features: seen.append(features)))
    alone = row_of(asked, row)
    assert isinstance(alone.source, Padded)
    length = int(alone.source.lengths)
    told = batch([alone.source.values[0].tolist()] * len(found), [each.tokens for each in found])
    copied = None if alone.copied is None else alone.copied.expand(len(found), -1)
    told = told._replace(copied=copied, extra=asked.extra)
    assert told.target is not None
    with torch.no_grad():
        sums = of_rows(model.token_log_likelihoods(told), told.target.lengths)
    for handle in handles:
        handle.remove()
    looks = []
    if seen and seen[0].weights is not None:
        for number, each in enumerate(found):
            looks.append(seen[0].weights[number, : len(each.tokens), :length])
    return sums.tolist(), looks


@every
def test_a_beam_of_one_is_greedy(options: Any) -> None:
    model = network(**options)
    for penalty in (0.0, 1.0):
        one = answers(model, search="beam", width=1, length_penalty=penalty, max_length=9)
        for found, expected in zip(
            one, answers(model, search="greedy", length_penalty=penalty, max_length=9), strict=True
        ):
            same(found, expected)


@every
def test_a_beam_that_is_wide_enough_finds_what_trying_all_finds(options: Any) -> None:
    for seed in (1, 2):
        model = network(seed=seed, **options)
        wide = answers(model, width=100, best=6, max_length=3, length_penalty=0.6)
        for found, expected in zip(
            wide, answers(model, search="exhaustive", best=6, max_length=3, length_penalty=0.6), strict=True
        ):
            same(found, expected)


@pytest.mark.parametrize("search", ["beam", "greedy", "sampling", "exhaustive"])
@every
def test_what_an_answer_is_said_to_be_worth_is_what_teacher_forcing_gives_it(options: Any, search: Any) -> None:
    model = network(**options)
    attends = options.get("attention") != "none"
    best = 1 if search == "greedy" else 3
    for row, found in enumerate(answers(model, search=search, best=best, watch=attends)):
        assert len(found) == best
        assert (
            sorted(found, key=lambda each: (not each.ended, -each.score) if search != "sampling" else -each.score)
            == found
        )
        sums, looks = recomputed(model, ASKED, row, found)
        for number, each in enumerate(found):
            assert each.log_probability == pytest.approx(sums[number], abs=1e-10)
            assert each.score == pytest.approx(sums[number] / ((5 + len(each.tokens)) / 6), abs=1e-10)
            assert each.ended == (each.tokens[-1] == END)
            if not attends:
                assert each.watched is None
                continue
            assert isinstance(ASKED.source, Padded)
            length = int(ASKED.source.lengths[row])
            assert each.watched is not None
            if "local" not in str(options):  # which may see nothing
                assert_close(each.watched.sum(1), torch.ones(len(each.tokens)).double(), rtol=0, atol=1e-12)
            assert_close(each.watched[:, :length], looks[number], rtol=0, atol=1e-10)
            assert (each.watched[:, length:] == 0).all()


@settings(max_examples=25)
@given(
    options=st.sampled_from(CONTEXTS),
    sources=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=2, max_size=4),
    decoding=st.sampled_from(
        [
            {"width": 3, "best": 3},
            {"width": 2, "best": 2, "length_penalty": 0.0, "max_ratio": 1.0, "max_length": 15, "min_length": 14},
            {"search": "greedy"},
            {"search": "exhaustive", "best": 4, "max_length": 3},
            {"width": 4, "best": 4, "coverage_penalty": 0.4, "no_repeat": 2},
        ]
    ),
    seed=st.integers(0, 9),
)
def test_answers_are_the_same_alone_and_in_any_batch(options: Any, sources: Any, decoding: Any, seed: int) -> None:
    if options.get("attention") == "none":
        decoding = {name: value for name, value in decoding.items() if name != "coverage_penalty"}
    model = network(seed=seed, **options)
    together = answers(model, batch(sources), **decoding)
    turned = answers(model, batch(sources[::-1]), **decoding)[::-1]
    for row, source in enumerate(sources):
        [alone] = answers(model, batch([source]), **decoding)
        same(together[row], alone)
        same(turned[row], alone)


@pytest.mark.parametrize("search", ["beam", "greedy", "exhaustive", "sampling"])
def test_places_that_are_not_looked_at_cost_a_penalty(search: Any) -> None:
    model, best = network(), 1 if search == "greedy" else 3
    for row, found in enumerate(answers(model, search=search, best=best, coverage_penalty=0.7, length_penalty=0.5)):
        sums, looks = recomputed(model, ASKED, row, found)
        for each, total, weights in zip(found, sums, looks, strict=True):
            covered = np.minimum(1, weights.numpy().sum(0))
            expected = total / ((5 + len(each.tokens)) / 6) ** 0.5 + 0.7 * np.log(covered).sum()
            assert each.score == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("search", ["beam", "greedy", "sampling", "exhaustive"])
def test_rules_are_obeyed(search: Any) -> None:
    best = 1 if search == "greedy" else 3

    def found(words: SearchTokens = WORDS, **options: Any) -> list[list[int]]:
        rows = answers(model, words=words, search=search, best=best, **options)
        return [each.tokens for row in rows for each in row]

    for seed in range(4):
        model = network(seed=seed)
        assert not any(START in tokens for tokens in found())
        assert not any({3, 4} & {*tokens} for tokens in found(WORDS._replace(banned=(3, 4))))
        assert all({3, 5} <= {*tokens} for tokens in found(WORDS._replace(forced=(3, 5))))
        assert all(tokens[:3] == [5, 4, 4] for tokens in found(WORDS._replace(prefix=(5, 4, 4))))
        assert all(len(tokens) >= 4 and END not in tokens[:3] for tokens in found(min_length=3))
        for tokens in found(no_repeat=2, max_length=5):
            runs = [*itertools.pairwise(tokens)]
            assert len(runs) == len({*runs})


def test_there_is_room_for_all_that_an_answer_must_have() -> None:
    model = network()
    words = WORDS._replace(prefix=(3, 3, 3), forced=(4, 5))
    for found in answers(model, words=words, max_length=1):
        assert found[0].tokens[:3] == [3, 3, 3]
        assert {4, 5} <= {*found[0].tokens}
        assert len(found[0].tokens) <= 6
    for found in answers(model, max_ratio=0.0, min_length=14, max_length=14):
        assert (len(found[0].tokens), found[0].ended) == (14, False)
    with torch.no_grad():
        model.output.readout.bias[END] = 100.0  # it would end at once
    for found in answers(model, max_ratio=0.0, min_length=14, max_length=200):
        assert (len(found[0].tokens), found[0].ended) == (15, True)


def test_answers_are_no_longer_than_allowed() -> None:
    model = network()
    with torch.no_grad():
        model.output.readout.bias[END] = -100.0  # it would never end
    lengths = [len(found[0].tokens) for found in answers(model, max_length=200, max_ratio=2.0, width=2)]
    assert lengths == [18, 14, 12]
    assert [len(found[0].tokens) for found in answers(model, max_length=7, search="greedy")] == [7, 7, 7]


def test_what_is_drawn_depends_on_the_seed_and_on_what_it_is_drawn_from() -> None:
    model = network()
    options: dict[str, Any] = {"search": "sampling", "best": 4, "max_length": 9}
    one, again, other = (answers(model, seed=seed, **options) for seed in (1, 1, 2))
    assert [[each.tokens for each in row] for row in one] == [[each.tokens for each in row] for row in again]
    assert [[each.tokens for each in row] for row in one] != [[each.tokens for each in row] for row in other]
    sure = answers(model, search="greedy", max_length=9)
    for narrow in ({"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-9}):
        for row, found in enumerate(answers(model, **options, **narrow)):
            same(found, sure[row] * 4)


def test_what_is_given_is_not_searched() -> None:
    with pytest.raises(ConfigError, match=r"decoding\.search = 'given' is not a search method"):
        answers(network(), search="given")


def test_a_network_that_copies_writes_words_of_the_source() -> None:
    model = network(copy=True)
    with torch.no_grad():
        model.pointer.gate.bias -= 6.0  # type: ignore[union-attr]  # mostly copied
    asked = ASKED._replace(copied=torch.tensor([[3, 6, 6, 7], [8, 4, 0, 0], [5, 0, 0, 0]]), extra=3)
    together = answers(model, asked, best=3, width=3)
    assert any(token >= SIZES.target for row in together for each in row for token in each.tokens)
    for row, found in enumerate(together):
        [alone] = answers(model, row_of(asked, row), best=3, width=3)
        same(found, alone)
        sums, _ = recomputed(model, asked, row, found)
        assert [each.log_probability for each in found] == pytest.approx(sums, abs=1e-10)
    wide, all_ = (
        answers(model, asked, max_length=2, best=4, search=search, width=200) for search in ("beam", "exhaustive")
    )
    for found, expected in zip(wide, all_, strict=True):
        same(found, expected)


# Several networks


@pytest.mark.parametrize("options", [{"attention": "none"}, {"wiring": "feeding"}, {"copy": True}])
def test_a_network_twice_is_that_network(options: Any) -> None:
    model = network(**options)
    asked = ASKED._replace(copied=ASKED.source.values, extra=1) if options.get("copy") else ASKED
    watch = options.get("attention") != "none"
    twice = answers(Ensemble([model, model]), asked, best=3, watch=watch)
    for found, expected in zip(twice, answers(model, asked, best=3, watch=watch), strict=True):
        same(found, expected)
        if watch:
            assert_close([each.watched for each in found], [each.watched for each in expected], rtol=0, atol=1e-12)


def test_two_networks_write_by_the_mean_of_their_probabilities() -> None:
    members = network(seed=1, wiring="inside", cell="gru"), network(seed=2, attention="none", hidden=6)
    both = Ensemble(members)
    for row, found in enumerate(answers(both, best=3, watch=True)):
        sums, _ = recomputed(both, ASKED, row, found)
        alone = row_of(ASKED, row)
        _, looks = recomputed(members[0], ASKED, row, found)
        for each, total, look in zip(found, sums, looks, strict=True):
            tokens, expected = torch.tensor([START]), 0.0
            states = [member.start(alone)[1:] for member in members]
            for token in each.tokens:
                steps = [m.step(tokens, *s) for m, s in zip(members, states, strict=True)]
                states = [(new, fixed) for (_, new), (_, fixed) in zip(steps, states, strict=True)]
                expected += math.log(np.mean([math.exp(float(log_p[0, token].detach())) for log_p, _ in steps]))
                tokens = torch.tensor([token])
            assert each.log_probability == pytest.approx(expected, abs=1e-10)
            assert total == pytest.approx(expected, abs=1e-10)
            assert each.watched is not None
            assert_close(each.watched[:, : look.shape[1]], look, rtol=0, atol=1e-10)  # of the one that looks


def test_where_both_look_the_mean_of_their_weights_is_shown() -> None:
    members = network(seed=1), network(seed=2, wiring="between")
    for row, found in enumerate(answers(Ensemble(members), watch=True)):
        looks = [recomputed(member, ASKED, row, found)[1][0] for member in members]
        assert found[0].watched is not None
        assert_close(found[0].watched[:, : looks[0].shape[1]], (looks[0] + looks[1]) / 2, rtol=0, atol=1e-10)


def test_an_ensemble_finds_the_best_of_all_sequences_too() -> None:
    both = Ensemble([network(seed=3, wiring="feeding"), network(seed=4)])
    wide, all_ = (answers(both, max_length=3, best=4, search=search, width=100) for search in ("beam", "exhaustive"))
    for found, expected in zip(wide, all_, strict=True):
        same(found, expected)
