"""The network from sequence to sequence: its probabilities, its losses, and what is read while it learns."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from recurra.models.forcing import Forced
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.models.seq2seq import PairBatch, SequenceToSequence, Sizes, of_rows, pairs_batched
from recurra.padding import Padded
from recurra.wirings import Features
from tests.models.pairs import CONTEXTS, END, PAIRS, SIZES, START, UNKNOWN, batch, network, row_of, stepped, tokens_read

every = pytest.mark.parametrize("options", CONTEXTS, ids=str)


def likelihoods(model: SequenceToSequence, pairs: PairBatch) -> Tensor:
    assert pairs.target is not None
    return of_rows(model.token_log_likelihoods(pairs), pairs.target.lengths)


# Probabilities


@every
def test_all_tokens_at_once_are_one_after_the_other(options: Any) -> None:
    model = network(**options)
    chosen = [log_p.gather(1, y[:, None]) for log_p, y in zip(stepped(model, PAIRS), targets_of(PAIRS), strict=True)]
    assert_close(model.token_log_likelihoods(PAIRS), torch.cat(chosen).squeeze(1), rtol=0, atol=1e-10)


def targets_of(pairs: PairBatch) -> list[Tensor]:
    assert pairs.target is not None
    return [row[:length] for row, length in zip(pairs.target.values, pairs.target.lengths.tolist(), strict=True)]


@every
def test_the_probabilities_of_all_targets_sum_to_one(options: Any) -> None:
    model = network(Sizes(source=7, target=3, frames=None, unknown=UNKNOWN, start=START), **options)
    others, longest = [0, 1], 3
    ended = [[*each, END] for n in range(longest) for each in itertools.product(others, repeat=n)]
    cut_off = [list(each) for each in itertools.product(others, repeat=longest)]
    total = likelihoods(model, batch([[3, 4, 5]] * len(ended + cut_off), ended + cut_off)).exp().sum()
    assert float(total.detach()) == pytest.approx(1.0, abs=1e-12)


pairs_of_tokens = st.lists(
    st.tuples(st.lists(st.integers(0, 6), max_size=5), st.lists(st.integers(0, 5), min_size=1, max_size=4)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=25)
@given(options=st.sampled_from(CONTEXTS), pairs=pairs_of_tokens, noise=st.integers(0, 5), more=st.integers(0, 2))
def test_a_pair_alone_is_as_likely_as_in_any_batch_and_any_order(
    options: Any, pairs: list[tuple[list[int], list[int]]], noise: int, more: int
) -> None:
    model = network(**options)
    sources, targets = [list(each) for each in zip(*pairs, strict=True)]
    together = batch(sources, targets)
    assert isinstance(together.source, Padded)
    assert together.target is not None
    padded = PairBatch(noisy(together.source, noise, more), noisy(together.target, noise, more), None)
    expected = torch.cat([likelihoods(model, row_of(together, row)) for row in range(len(pairs))])
    assert expected.isfinite().all()
    assert_close(likelihoods(model, together), expected, rtol=0, atol=1e-10)
    assert_close(likelihoods(model, padded), expected, rtol=0, atol=1e-10)
    assert_close(likelihoods(model, batch(sources[::-1], targets[::-1])).flip(0), expected, rtol=0, atol=1e-10)


def noisy(rows: Padded, noise: int, more: int) -> Padded:
    """The same rows with other padding, and more of it."""
    values = functional.pad(rows.values, (0, more))
    return Padded(torch.where(Padded(values, rows.lengths).mask, values, noise), rows.lengths)


@pytest.mark.parametrize("kind", ["cnn", "bag"])
def test_a_source_is_read_by_any_encoder(kind: str) -> None:
    model = network(encoder={"kind": kind}, start="mean", conditioning=["output"], summary="max")
    expected = torch.cat([likelihoods(model, row_of(PAIRS, row)) for row in range(3)])
    assert_close(likelihoods(model, PAIRS), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"attention": {"name": "additive", "terms": ["location"]}},
        {"start": "mean", "conditioning": ["every"], "summary": "ends", "wiring": "feeding"},
        {"encoder": {"kind": "pyramid", "layers": 2}, "layers": 2, "bridge": "identity"},
        {"encoder": {"kind": "pyramid", "cell": "gru"}, "start": "zeros", "attention": "none", "bidirectional": False},
    ],
)
def test_a_source_may_be_read_by_a_pyramid(options: dict[str, Any]) -> None:
    model = network(**{"encoder": "pyramid", **options})
    pairs = batch([[3, 4, 5, 6, 3], [6, 3], [], [5]], [[3, 4, END], [5, 3, 3, 4, END], [4, END], [END]])
    expected = torch.cat([likelihoods(model, row_of(pairs, row)) for row in range(4)])
    assert_close(likelihoods(model, pairs), expected, rtol=0, atol=1e-12)
    chosen = [log_p.gather(1, y[:, None]) for log_p, y in zip(stepped(model, pairs), targets_of(pairs), strict=True)]
    assert_close(model.token_log_likelihoods(pairs), torch.cat(chosen).squeeze(1), rtol=0, atol=1e-10)


def test_a_source_may_be_numbers() -> None:
    model = network(Sizes(source=None, target=6, frames=2, unknown=UNKNOWN, start=START))
    frames = Padded(torch.randn(3, 4, 2).double(), torch.tensor([4, 2, 0]))
    nan = Padded(frames.values.masked_fill(~frames.mask.unsqueeze(2), torch.nan), frames.lengths)
    expected = [
        likelihoods(
            model, PairBatch(Padded.full(frames.values[row : row + 1, :length]), row_of(PAIRS, row).target, None)
        )
        for row, length in enumerate([4, 2, 0])
    ]
    loss = model.loss(PairBatch(nan, PAIRS.target, None))
    assert_close(-loss, torch.cat(expected).sum(), rtol=0, atol=1e-12)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


# Copying

COPIES = network(copy=True)
COPYING = PAIRS._replace(copied=torch.tensor([[3, 6, 6, 7], [8, 4, 0, 0], [5, 0, 0, 0]]), extra=3)._replace(
    target=batch([[]] * 3, [[3, 6, 7, END], [8, 4, END], [END]]).target
)


def test_a_network_that_copies_gives_words_of_the_source_their_probability() -> None:
    each = stepped(COPIES, COPYING)
    for log_p in each:
        assert log_p.shape[1] == 9
        assert_close(log_p.exp().sum(1), torch.ones(len(log_p)).double(), rtol=0, atol=1e-12)
    assert (each[0][:, [6, 7]] > -torch.inf).all()
    assert (each[0][:, 8] == -torch.inf).all()  # a word of another source
    chosen = [log_p.gather(1, y[:, None]) for log_p, y in zip(each, targets_of(COPYING), strict=True)]
    assert_close(COPIES.token_log_likelihoods(COPYING), torch.cat(chosen).squeeze(1), rtol=0, atol=1e-10)
    alone = torch.cat([likelihoods(COPIES, row_of(COPYING, row)) for row in range(3)])
    assert_close(likelihoods(COPIES, COPYING), alone, rtol=0, atol=1e-10)


def test_a_copied_word_is_read_as_the_unknown_one() -> None:
    model = network(copy=True)
    read = tokens_read(model)
    model.token_log_likelihoods(COPYING)
    assert read[0].tolist() == [[START, 3, UNKNOWN, UNKNOWN], [START, UNKNOWN, 4, END], [START, END, 0, 0]]


@pytest.mark.parametrize("forced", [Forced(), Forced(0.5), Forced(0.5, "sequence", "sampled")])
@pytest.mark.parametrize("r_drop", [0.0, 2.0])
def test_a_network_that_copies_learns(forced: Forced, r_drop: float) -> None:
    model = network(copy=True, label_smoothing=0.1, dropout=0.2).train()
    model.loss(COPYING, forced=forced, r_drop=r_drop).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_a_word_that_cannot_be_copied_costs_much_but_breaks_nothing() -> None:
    model = network(copy=True, label_smoothing=0.1).train()
    elsewhere = COPYING._replace(target=batch([[]] * 3, [[8, END], [8, END], [END]]).target)
    assert model.token_log_likelihoods(elsewhere)[0] == -torch.inf
    loss = model.loss(elsewhere)
    loss.backward()
    assert 90 < float(loss.detach()) < 200
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


# Losses


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_cross_entropy_with_smoothing_in_training_alone(smoothing: float) -> None:
    model = network(label_smoothing=smoothing)
    log_p, y = torch.cat(stepped(model, PAIRS)), torch.cat(targets_of(PAIRS))
    of_torch = functional.cross_entropy(log_p, y, reduction="sum", label_smoothing=smoothing)
    wanted = (1 - smoothing) * np.eye(6)[y.numpy()] + smoothing / 6
    of_numpy = -(wanted * log_p.detach().numpy()).sum()
    assert float(model.eval().loss(PAIRS).detach()) == pytest.approx(-float(likelihoods(model, PAIRS).sum().detach()))
    found = model.train().loss(PAIRS)
    assert_close(found, of_torch, rtol=0, atol=1e-10)
    assert float(found.detach()) == pytest.approx(of_numpy, abs=1e-10)


@every
def test_a_loss_reaches_every_parameter(options: Any) -> None:
    model = network(**options, label_smoothing=0.1).train()
    model.loss(PAIRS).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@every
def test_it_learns_in_sixteen_bits_too(options: Any) -> None:
    model = network(**options).float().train()
    whole = model.loss(PAIRS)
    with torch.autocast("cpu", torch.bfloat16):
        lowered = model.loss(PAIRS)
        free = model.loss(PAIRS, forced=Forced(0.5, "token", "sampled"), r_drop=1.0)
    assert_close(lowered, whole, rtol=0.05, atol=0)
    (lowered + free).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@every
def test_gradients_are_those_of_differences(options: Any) -> None:
    model = network(**options).train()
    names = [name for name, _ in model.named_parameters()]
    unchanged = {name: value.clone() for name, value in model.named_parameters()}

    def loss(*weights: Tensor) -> Tensor:
        for name, weight in zip(names, weights, strict=True):
            unchanged[name] = weight
        found: Tensor = torch.func.functional_call(Losses(model), {f"model.{k}": v for k, v in unchanged.items()}, ())
        return found

    weights = [parameter.detach().requires_grad_() for parameter in model.parameters()]
    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


class Losses(torch.nn.Module):
    def __init__(self, model: SequenceToSequence) -> None:
        super().__init__()
        self.model = model

    def forward(self) -> Tensor:
        return self.model.loss(PAIRS)


@pytest.mark.parametrize("copies", [False, True])
def test_two_passes_that_differ_cost_their_divergence(copies: bool) -> None:
    model = network(dropout=0.3, label_smoothing=0.1, copy=copies).train()
    pairs = COPYING if copies else PAIRS
    seen: list[Features] = []
    model.decoder.register_forward_hook(lambda _, __, found: seen.append(found))
    loss = model.loss(pairs, r_drop=3.0)
    [features] = seen
    assert pairs.target is not None
    assert features.weights is not None
    halves = []
    for h, weights in zip(features.values.chunk(2), features.weights.chunk(2), strict=True):
        log_p = model.output.log_probabilities(h.flatten(0, 1))
        if model.pointer is not None:
            assert pairs.copied is not None
            where = weights.flatten(0, 1), h.flatten(0, 1), pairs.copied, pairs.extra
            log_p = model.pointer.log_probabilities(log_p, *where)
        halves.append(log_p[pairs.target.mask.flatten()])
    log_p, log_q = halves
    assert not torch.allclose(log_p, log_q)
    y = torch.cat(targets_of(pairs))
    with np.errstate(invalid="ignore"):
        p, q = log_p.detach().numpy(), log_q.detach().numpy()
        chosen = (p + q)[np.arange(len(y)), y.numpy()].sum()
        entropies = -0.9 * chosen - 0.1 / 6 * (p + q)[:, :6].sum()
        divergence = np.nansum(np.exp(p) * (p - q)) + np.nansum(np.exp(q) * (q - p))
    assert float(loss.detach()) == pytest.approx(entropies / 2 + 3.0 / 4 * divergence, abs=1e-10)

    if not copies:
        ce = functional.cross_entropy(torch.cat([log_p, log_q]), y.repeat(2), reduction="sum", label_smoothing=0.1)
        kl = functional.kl_div(log_p, log_q, reduction="sum", log_target=True)
        kl = kl + functional.kl_div(log_q, log_p, reduction="sum", log_target=True)
        parameters = list(model.parameters())
        expected = torch.autograd.grad(ce / 2 + 3.0 / 4 * kl, parameters, retain_graph=True)
        assert_close(torch.autograd.grad(loss, parameters), expected, rtol=0, atol=1e-10)


def test_without_dropout_two_passes_are_one() -> None:
    model = network().train()
    assert_close(model.loss(PAIRS, r_drop=5.0), model.loss(PAIRS), rtol=0, atol=1e-10)
    assert_close(network(dropout=0.5).eval().loss(PAIRS, r_drop=5.0), model.loss(PAIRS), rtol=0, atol=1e-10)


def test_some_tokens_of_both_sides_are_read_as_unknown() -> None:
    model = network(token_dropout=0.2).train()
    target, source = tokens_read(model), list[Tensor]()
    assert model.embedding is not None
    model.embedding.register_forward_pre_hook(lambda _, given: source.append(given[0].clone()))
    rows = 400
    pairs = batch([[3, 4, 5, 6, 3]] * rows, [[3, 4, 5, 4, 3, END]] * rows)
    model.loss(pairs)
    assert (target[0][:, 0] == START).all()
    for read, gold in ((source[0], pairs.source.values), (target[0][:, 1:], torch.tensor([3, 4, 5, 4, 3]))):
        gone = read == UNKNOWN
        assert (gone | (read == gold)).all()
        assert abs(float(gone.double().mean()) - 0.2) < 3 * (0.2 * 0.8 / gone.numel()) ** 0.5
    model.eval().loss(pairs)
    assert torch.equal(source[1], pairs.source.values)


# Tied weights


@pytest.mark.parametrize("tied", ["output", "all"])
def test_tied_weights_are_one_parameter_saved_once_and_tied_on_load(tied: str, tmp_path: Path) -> None:
    sizes = SIZES._replace(source=6)

    def made(seed: int) -> SequenceToSequence:
        return network(sizes, seed, tied=tied, hidden=5)

    def are_one(model: SequenceToSequence) -> bool:
        together = [model.decoder.embedding.weight, model.output.readout.weight]
        if tied == "all":
            assert model.embedding is not None
            together.append(model.embedding.weight)
        return len({id(each) for each in together}) == 1

    model, other = made(1), made(2)
    assert are_one(model)
    untied = sum(p.numel() for p in network(sizes, tied="none", hidden=5).parameters())
    assert sum(p.numel() for p in model.parameters()) < untied
    write_tensors(tmp_path / "weights.safetensors", model.state_dict())
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        assert len([name for name in file.keys() if "embedding" in name or "readout.weight" in name]) == (  # noqa: SIM118
            1 if tied == "all" else 2
        )
    put_weights(other, read_tensors(tmp_path / "weights.safetensors")[0], tmp_path)
    assert are_one(other)
    pairs = batch([[3, 4, 5]], [[3, END]])
    assert torch.equal(likelihoods(model, pairs), likelihoods(other, pairs))


# Batches


def test_rows_become_a_batch() -> None:
    rows = [
        {"source": np.array([3, 4]), "target": np.array([3, 2]), "copied": np.array([3, 9])},
        {"source": np.array([5]), "target": np.array([2]), "copied": np.array([1])},
    ]
    made = pairs_batched(rows, vocabulary=8)
    assert made.target is not None
    assert made.copied is not None
    assert isinstance(made.source, Padded)
    assert (made.source.values.tolist(), made.source.lengths.tolist()) == ([[3, 4], [5, 0]], [2, 1])
    assert (made.copied.tolist(), made.extra) == ([[3, 9], [1, 0]], 2)
    assert pairs_batched(rows, vocabulary=20).extra == 0
    questions = pairs_batched([{"source": row["source"]} for row in rows], vocabulary=8)
    assert (questions.target, questions.copied, questions.extra) == (None, None, 0)
    frames = pairs_batched([{"frames": np.ones((2, 3))}, {"frames": np.ones((0, 3))}], vocabulary=8)
    assert frames.source.values.shape == (2, 2, 3)
