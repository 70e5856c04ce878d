"""A network that writes by CTC: every search, on the host and on a device, alone and together with a decoder."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import groupby, product
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra.config import Seq2SeqDecoding, Seq2SeqModel
from recurra.errors import ConfigError
from recurra.models.ctc import Transcriber
from recurra.models.searching import Ensemble, Searchable, searched
from recurra.models.seq2seq import PairBatch, SequenceToSequence, of_rows
from recurra.padding import fitted
from recurra.search.decoding import SearchTokens
from recurra.search.graphs import graphs_of
from recurra.search.search import Hypothesis
from recurra.settings import settings_from
from tests.models.pairs import END, SIZES, START, UNKNOWN, batch, network
from tests.models.test_searching_on_device import agree

WORDS = SearchTokens(END, never=(UNKNOWN, START))
ASKED = batch([[3, 4, 5, 6, 3, 4, 5, 6, 3, 4], [6, 3], [5], [4, 4, 4, 4, 4]])
FEW = batch([[3, 4, 5, 6], [6, 3], [5]], [[3, 4, END], [5, 3, END], [END]])
OPTIONS: list[dict[str, Any]] = [{}, {"decoder": {"expand": 2}}, {"encoder": {"kind": "pyramid", "layers": 2}}]


def transcriber(seed: int = 0, **options: Any) -> Transcriber:
    """In float64, with weights as large as those of a trained one."""
    usual = {"embedding": 4, "hidden": 4, "dropout": 0.0, "engine": "loop"}
    torch.manual_seed(seed)
    decoder = {"kind": "ctc", **options.pop("decoder", {})}
    model = Transcriber(settings_from(Seq2SeqModel, {**usual, **options, "decoder": decoder}), SIZES, END).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()


def found_by(model: Searchable, asked: PairBatch, **options: Any) -> list[list[Hypothesis]]:
    with torch.no_grad():
        return searched(model, asked, Seq2SeqDecoding(**options), SearchTokens(END, never=(START,)))


def enumerated(model: Transcriber, asked: PairBatch, row: int) -> dict[tuple[int, ...], float]:
    """P of every sequence that a source may become, summed over all alignments."""
    with torch.no_grad():
        spoken = model.spoken(asked.source)
    p = spoken.log_p[row, spoken.mask[row]].exp().tolist()
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for path in product(range(SIZES.target), repeat=len(p)):
        written = tuple(token for token, _ in groupby(path) if token != END)
        found[written] += math.prod(each[token] for each, token in zip(p, path, strict=True))
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_loss_and_the_likelihoods_are_sums_over_all_alignments(options: dict[str, Any]) -> None:
    model = transcriber(**options)
    pairs = batch([[6, 3], [5]], [[5, END], [END]])
    assert pairs.target is not None
    expected = [math.log(enumerated(model, pairs, row)[y]) for row, y in enumerate([(5,), ()])]
    with torch.no_grad():
        each = of_rows(model.token_log_likelihoods(pairs), pairs.target.lengths)
        assert_close(each, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)
        assert_close(model.loss(pairs), -each.sum(), rtol=0, atol=1e-10)


def test_a_wide_beam_and_an_exhaustive_search_find_the_most_probable_answers() -> None:
    model, asked = transcriber(seed=3), batch([[3, 4, 5], [6, 3]])
    for options in ({"width": 300, "best": 4}, {"search": "exhaustive", "best": 4, "max_length": 5}):
        found = found_by(model, asked, length_penalty=0.0, **options)
        for row, answers in enumerate(found):
            every = enumerated(model, asked, row)
            best = sorted(((p, y) for y, p in every.items() if START not in y), reverse=True)[:4]
            assert [tuple(each.tokens[:-1]) for each in answers] == [y for _, y in best]
            assert [each.log_probability for each in answers] == pytest.approx([math.log(p) for p, _ in best])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_searches_on_a_device_answer_alike(options: dict[str, Any]) -> None:
    model = transcriber(**options)
    agree(model, ASKED, WORDS, watch=False, width=5, best=3)
    agree(model, ASKED, WORDS, watch=False, search="greedy")
    agree(model, ASKED, WORDS._replace(banned=(4,)), watch=False, search="sampling", best=2, temperature=0.8)


def test_a_network_with_a_decoder_and_one_without_answer_together() -> None:
    members: list[Transcriber | SequenceToSequence] = [transcriber(seed=1), network(seed=2, wiring="feeding")]
    both = Ensemble(members)
    agree(both, ASKED, WORDS, watch=False, width=4)
    with torch.no_grad():
        each = torch.stack([member.token_log_likelihoods(FEW) for member in members])
        assert_close(both.token_log_likelihoods(FEW), each.exp().mean(0).log(), rtol=0, atol=1e-12)
    with pytest.raises(ConfigError, match="most probable alignment of one model, but there are several"):
        found_by(both, ASKED, search="path")


def test_the_best_path_joins_the_most_probable_tokens_of_all_places() -> None:
    model = transcriber(seed=5)
    with torch.no_grad():
        spoken = model.spoken(ASKED.source)
    for row, [found] in enumerate(found_by(model, ASKED, search="path", length_penalty=0.0)):
        path = spoken.log_p[row, spoken.mask[row]].argmax(1).tolist()
        assert found.tokens == [token for token, _ in groupby(path) if token != END] + [END]
        # A sequence is at least as probable as one of its alignments.
        alignment = float(spoken.log_p[row, spoken.mask[row]].amax(1).sum())
        assert found.score == found.log_probability >= alignment - 1e-12


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_answer_is_aligned_in_order_and_never_beyond_its_source(options: dict[str, Any]) -> None:
    model = transcriber(seed=7, **options)
    found = found_by(model, ASKED, width=5, best=3)
    with torch.no_grad():
        aligned = model.aligned(ASKED, found)
    for row, (_, places) in enumerate(model.extents(ASKED.source).each):
        for each in aligned[row]:
            assert each.watched is not None
            assert each.watched.shape == (len(each.tokens) - 1, places)
            stands = [token.nonzero()[0].tolist() for token in each.watched]
            assert all(stands)
            assert stands == sorted(stands)
            assert ((each.watched >= 0) & (each.watched <= 1)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_gpu_answers_and_learns_as_the_cpu_does(options: dict[str, Any]) -> None:
    model, there = transcriber(**options), transcriber(**options).cuda()
    asked = ASKED._replace(source=ASKED.source._replace(values=ASKED.source.values.cuda()))
    for decoding in ({"width": 5, "best": 3}, {"search": "greedy"}, {"search": "path"}):
        expected = found_by(model, ASKED, **decoding)
        for _ in range(4):  # eager, recorded, replayed
            for some, others in zip(found_by(there, asked, **decoding), expected, strict=True):
                assert [each.tokens for each in some] == [each.tokens for each in others]
                scores = [each.log_probability for each in others]
                assert [each.log_probability for each in some] == pytest.approx(scores, abs=1e-9)
    assert graphs_of(there).recorded > 0
    assert graphs_of(there).refusals == []
    pairs = batch([[3, 4, 5, 6], [6, 3, 5, 4]], [[3, END], [5, END]])
    moved = fitted(pairs, there)
    one, other = model.loss(pairs), there.loss(moved)
    assert_close(one, other.cpu(), rtol=0, atol=1e-9)
    for mine, theirs in zip(
        torch.autograd.grad(one, [*model.parameters()], allow_unused=True),
        torch.autograd.grad(other, [*there.parameters()], allow_unused=True),
        strict=True,
    ):
        if mine is not None and theirs is not None:
            assert_close(mine, theirs.cpu(), rtol=0, atol=1e-8)
