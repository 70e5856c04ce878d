"""Pointer networks: their distribution against a loop in numpy, their searches against all answers there are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.config import Seq2SeqDecoding
from recurra.decoding.pointing import Pointing
from recurra.encoders.memory import Places
from recurra.errors import ConfigError
from recurra.models.searching import Ensemble, searched
from recurra.models.seq2seq import PairBatch, Sizes, of_rows, recurring_pairs
from recurra.padding import Padded, pad
from recurra.products.cross_entropy import Options, cost
from recurra.search.decoding import SearchTokens
from tests.models.pairs import END, START, UNKNOWN, network

V = 4
POINTS = Sizes(source=None, target=V, frames=2, unknown=UNKNOWN, start=START, end=END)
WORDS = SearchTokens(end=END, never=(UNKNOWN, START, 3), specials=V)
NETWORKS: list[dict[str, Any]] = [
    {"pointer": "additive", "attention": "none"},
    {"pointer": "bilinear", "attention": "additive", "conditioning": ["every"], "summary": "mean"},
    {"pointer": "projected_dot", "wiring": "feeding", "attention": "dot", "cell": "gru"},
    {
        "pointer": {"name": "additive", "size": 3},
        "encoder": {"kind": "transformer", "heads": 1},
        "decoder": {"kind": "transformer", "heads": 1},
        "engine": "auto",
    },
]
every = pytest.mark.parametrize("options", NETWORKS, ids=str)


def points(sizes: list[int], targets: list[list[int]] | None = None, seed: int = 5) -> PairBatch:
    """Random points in the plane; targets are numbers of them from 0."""
    chance = torch.Generator().manual_seed(seed)
    frames = [torch.randn(size, 2, dtype=torch.float64, generator=chance) for size in sizes]
    told = None if targets is None else [torch.tensor([*(V + each for each in target), END]) for target in targets]
    copied = pad([torch.arange(V, V + size) for size in sizes]).values
    return PairBatch(pad(frames), None if told is None else pad(told), copied, max(sizes))


def row_of(pairs: PairBatch, row: int) -> PairBatch:
    assert isinstance(pairs.source, Padded)
    assert pairs.copied is not None
    size, target = int(pairs.source.lengths[row]), pairs.target
    told = None if target is None else Padded.full(target.values[row : row + 1, : int(target.lengths[row])])
    source = Padded.full(pairs.source.values[row : row + 1, :size])
    return PairBatch(source, told, pairs.copied[row : row + 1, :size], size)


PAIRS = points([4, 2, 3], [[3, 0, 1], [1], [2, 2, 0, 1]])


def test_the_distribution_is_that_of_the_paper() -> None:
    torch.manual_seed(3)
    pointing = Pointing("additive", 3, 5, specials=V, end=END).double()
    memory, d = torch.randn(1, 4, 5, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    real = torch.tensor([[True, True, True, False]])
    pointed = pointing.remember(Places(memory, real), torch.tensor([[4, 5, 6, 0]]))
    found = pointing.of_tokens(pointing.log_probabilities(d[None], pointed), pointed, 4)[0].detach().numpy()
    score: Any = pointing.score
    W1, W2, v = (each.detach().numpy() for each in (score.from_memory.weight, score.from_query.weight, score.v))
    elements = [pointing.end.detach().numpy(), *memory[0, :3].numpy()]
    u = np.array([v @ np.tanh(W1 @ e + W2 @ d.numpy()) for e in elements])
    expected = np.full(V + 4, -np.inf)
    expected[[END, V, V + 1, V + 2]] = u - np.log(np.exp(u).sum())
    assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_the_next_input_is_the_element_that_was_chosen() -> None:
    model = network(POINTS, **NETWORKS[0])
    assert model.from_frames is not None
    tokens, state, fixed = model.start(PAIRS)
    chosen = torch.tensor([V + 2, V + 1, V])
    assert isinstance(PAIRS.source, Padded)
    read = model.from_frames(PAIRS.source.values[torch.arange(3), chosen - V])
    _, state = model.step(tokens, state, fixed, extra=PAIRS.extra)
    expected, _ = model.decoder.wiring.step(read, state, fixed.source)
    found, _ = model.decoder.step(chosen, state, fixed.source)
    assert_close(found, expected)


@every
def test_padding_and_recurring_sizes_change_nothing(options: dict[str, Any]) -> None:
    model = network(POINTS, **options)
    together = of_rows(model.token_log_likelihoods(PAIRS), PAIRS.target.lengths)  # type: ignore[union-attr]
    for row in range(3):
        assert_close(model.token_log_likelihoods(row_of(PAIRS, row)).sum(), together[row])
    wider = recurring_pairs(PAIRS)
    assert wider is not None
    assert_close(model.loss(wider), -together.sum())
    assert_close(model.loss(PAIRS), -together.sum())


@pytest.mark.parametrize(("number", "how"), [(0, "any"), (0, "once"), (0, "all"), (1, "once"), (2, "all"), (3, "any")])
@pytest.mark.parametrize("on_device", [False, True])
def test_a_wide_beam_finds_the_best_of_all_answers(number: int, how: Any, on_device: bool) -> None:
    model, asked = network(POINTS, **NETWORKS[number]), PAIRS._replace(target=None)
    decoding = Seq2SeqDecoding(elements=how, width=30, best=3, length_penalty=0.0, max_length=3, max_ratio=None)
    found = searched(model, asked, decoding, WORDS, on_device=on_device)
    for row, size in enumerate((4, 2, 3)):
        alone = row_of(asked, row)
        lengths = {"any": range(3), "once": range(3), "all": [size]}[how]
        choices = [
            each
            for length in lengths
            for each in itertools.product(range(size), repeat=length)
            if how == "any" or len({*each}) == len(each)
        ]
        scores = {each: log_p(model, alone, each) for each in choices}
        best = sorted(scores, key=lambda each: -scores[each])[:3]
        assert [tuple(token - V for token in each.tokens[:-1]) for each in found[row] if each.ended] == best
        assert found[row][0].log_probability == pytest.approx(scores[best[0]], abs=1e-9)


@every
@pytest.mark.parametrize("search", ["greedy", "sampling"])
def test_other_searches_visit_each_element_once_too(options: dict[str, Any], search: Any) -> None:
    model, asked = network(POINTS, **options), PAIRS._replace(target=None)
    decoding = Seq2SeqDecoding(elements="all", search=search, temperature=2.0 if search == "sampling" else 1.0)
    for on_device in (False, True):
        found = searched(model, asked, decoding, WORDS, on_device=on_device, watch=True)
        for [answer], size in zip(found, (4, 2, 3), strict=True):
            assert sorted(answer.tokens) == [END, *range(V, V + size)]
            assert answer.watched is not None
            for token, weights in zip(answer.tokens[:-1], answer.watched, strict=False):
                assert weights[token - V] > 0  # it looks where it points
                assert not weights[size:].any()


def test_an_ensemble_points_by_the_mean_of_its_members() -> None:
    members = [network(POINTS, seed, **NETWORKS[0]) for seed in (0, 1)]
    each = torch.stack([member.token_log_likelihoods(PAIRS).exp() for member in members])
    assert_close(Ensemble(members).token_log_likelihoods(PAIRS).exp(), each.mean(0))


def test_label_smoothing_is_spread_over_what_can_be_chosen() -> None:
    log_p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0]]).log()
    found = cost(log_p, torch.tensor([1, 1]), Options(smoothing=0.3), some_never=True)
    spread = -(np.log(0.5) + 2 * np.log(0.25)) / 3
    assert found.item() == pytest.approx(0.7 * -np.log(0.25) + 0.3 * spread, abs=1e-6)


def test_training_with_smoothing_r_drop_and_own_choices_has_finite_gradients() -> None:
    from recurra.models.forcing import Forced

    model = network(POINTS, **{**NETWORKS[0], "dropout": 0.2, "label_smoothing": 0.1}).train()
    model.loss(PAIRS, forced=Forced(0.5), r_drop=1.0).backward()
    gradients: list[Tensor | None] = [parameter.grad for parameter in model.parameters()]
    assert all(each is None or each.isfinite().all() for each in gradients)
    assert model.pointing is not None
    assert model.pointing.end.grad is not None
    assert model.pointing.end.grad.abs().sum() > 0


@pytest.mark.parametrize("score", [{"name": "additive", "terms": ["coverage"]}, {"name": "projected_dot", "heads": 2}])
def test_a_score_with_terms_or_heads_cannot_point(score: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"model\.pointer uses the score of an attention alone: leave out its terms"):
        network(POINTS, pointer=score)


def log_p(model: Any, asked: PairBatch, elements: tuple[int, ...]) -> float:
    """log P of an answer, by teacher forcing."""
    told = asked._replace(target=Padded.full(torch.tensor([[*(V + each for each in elements), END]])))
    return float(model.token_log_likelihoods(told).sum().detach())
