"""The network of a language model: states in the open, dropouts as their equations say, likelihoods by a plain loop."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from recurra.cells import Cell
from recurra.config import LanguageModelModel
from recurra.errors import DataError
from recurra.heads import UNLABELLED
from recurra.models.language_model import NextToken, TextBatch, weight_drop_of, with_weight_drop
from recurra.models.likelihood import carried, windowed
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.named import catalogue
from recurra.padding import Padded
from recurra.settings import SettingError

V = 7
WITHOUT_U = ("min_gru", "min_lstm")
PLAIN: dict[str, Any] = {
    "embedding": 5,
    "hidden": 6,
    "token_dropout": 0.0,
    "dropout": 0.0,
    "weight_drop": 0.0,
    "output_dropout": 0.0,
}


def network(tokens: int = V, **changed: Any) -> NextToken:
    torch.manual_seed(1)
    return NextToken(LanguageModelModel(**{**PLAIN, **changed}), tokens=tokens).double()


def random_tokens(*shape: int) -> Tensor:
    return torch.randint(0, V, shape, generator=torch.Generator().manual_seed(2))


def ragged(lengths: list[int]) -> TextBatch:
    tokens = random_tokens(len(lengths), max(lengths) + 1)
    beyond = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    inputs = Padded(tokens[:, :-1], torch.tensor(lengths))
    return TextBatch(inputs, tokens[:, 1:].masked_fill(beyond, UNLABELLED), None)


@torch.no_grad()
def by_hand(model: NextToken, tokens: Tensor) -> Tensor:
    """log p of each token but the first, a step at a time."""
    states, found = None, []
    for one, following in pairwise(tokens):
        logs, states = model.step(one.unsqueeze(0), states)
        found.append(logs[0, following])
    return torch.stack(found)


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman", "slstm"])
def test_chunks_with_carried_states_are_one_long_sequence(cell: str) -> None:
    model = network(cell=cell)
    tokens = random_tokens(3, 20)
    whole, end = model(Padded.full(tokens))
    states, parts = None, []
    for first, last in ((0, 7), (7, 8), (8, 20)):
        part, states = model(Padded.full(tokens[:, first:last]), states)
        states = model.nested(model.flat(states), torch.ones(3, dtype=torch.bool))
        parts.append(part.values)
    assert_close(torch.cat(parts, 1), whole.values, atol=1e-10, rtol=0)
    assert_close(model.flat(states), model.flat(end), atol=1e-10, rtol=0)  # type: ignore[arg-type]


def test_rows_that_are_not_kept_begin_anew() -> None:
    model = network(cell="lstm")
    _, states = model(Padded.full(random_tokens(3, 4)))
    again = model.nested(model.flat(states), torch.tensor([True, False, True]))
    for layer, before in zip(again, states, strict=True):
        for field, old in zip(layer[0], before[0], strict=True):
            assert_close(field[[0, 2]], old[[0, 2]].detach())
            assert bool((field[1] == 0).all())
            assert not field.requires_grad


def test_a_step_at_a_time_and_a_prompt_at_once_give_the_same() -> None:
    model = network().eval()
    prompt = Padded(random_tokens(2, 5), torch.tensor([5, 3]))
    states, last = model.read(prompt)
    for row, length in ((0, 5), (1, 3)):
        logs, one = None, None
        for token in prompt.values[row, :length]:
            logs, one = model.step(token.unsqueeze(0), one)
        assert logs is not None
        assert one is not None
        assert_close(logs[0], last[row], atol=1e-10, rtol=0)
        for field, whole in zip(model.flat(one), model.flat(states), strict=True):
            assert_close(field[0], whole[row], atol=1e-10, rtol=0)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(
        DataError, match="a prompt needs at least one token: use the end-of-line symbol to start from an empty prompt"
    ):
        network().read(Padded(random_tokens(2, 3), torch.tensor([3, 0])))


@pytest.mark.parametrize("output", ["softmax", {"name": "mixture_of_softmaxes", "components": 2}])
def test_the_perplexity_of_a_uniform_model_is_the_size_of_the_vocabulary(output: Any) -> None:
    model = network(output=output)
    for parameter in model.output.readout.parameters():  # type: ignore[union-attr]
        torch.nn.init.zeros_(parameter)
    for found in (
        carried(model, random_tokens(40), streams=3, ahead=4),
        windowed(model, random_tokens(40), window=8, stride=3),
    ):
        assert math.exp(found.nats / found.predicted) == pytest.approx(V, rel=1e-12)


def test_a_row_costs_the_same_whatever_rows_and_padding_are_beside_it() -> None:
    model = network(activation_regularization=0.0).eval()
    batch = ragged([6, 1, 4])
    together, _ = model.log_likelihoods(batch)
    for row, length in enumerate([6, 1, 4]):
        alone = TextBatch(
            Padded.full(batch.inputs.values[row : row + 1, :length]), batch.targets[row : row + 1, :length], None
        )
        assert_close(model.log_likelihoods(alone)[0][0], together[row, :length], atol=1e-12, rtol=0)
    assert bool((together[1, 1:] == 0).all())
    assert_close(model.loss(batch).total, -together.sum(), atol=1e-10, rtol=0)


@pytest.mark.parametrize("output", ["softmax", {"name": "mixture_of_softmaxes", "components": 3}])
def test_scores_are_computed_in_parts_that_fit_into_memory(output: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(output=output).eval()
    batch = ragged([6, 1, 4])
    expected, _ = model.log_likelihoods(batch)
    sizes = []
    loss = model.output.loss

    def watched(features: Tensor, targets: Tensor) -> Tensor:
        sizes.append(len(features) * V * (1 if output == "softmax" else 3))
        return loss(features, targets)

    monkeypatch.setattr(model.output, "loss", watched)
    monkeypatch.setattr("recurra.models.language_model.SCORES", 4 * V)
    found, _ = model.log_likelihoods(batch)
    assert_close(found, expected, atol=1e-12, rtol=0)
    assert len(sizes) > 1
    assert max(sizes) <= 4 * V


def test_the_loss_is_that_of_a_plain_loop_over_tokens() -> None:
    model = network()
    tokens = random_tokens(9)
    batch = TextBatch(Padded.full(tokens[None, :-1]), tokens[None, 1:], None)
    assert_close(model.loss(batch).total, -by_hand(model, tokens).sum(), atol=1e-10, rtol=0)


def test_activation_and_temporal_regularisation_are_what_their_equations_say() -> None:
    alpha, beta = 2.0, 3.0
    model = network(activation_regularization=alpha, temporal_regularization=beta, output_dropout=0.4)
    plain = network(output_dropout=0.4)
    lengths = [5, 1, 3]
    batch = ragged(lengths)
    torch.manual_seed(5)
    total = model.loss(batch).total
    torch.manual_seed(5)
    bare = plain.loss(batch).total
    torch.manual_seed(5)
    h, _ = model(batch.inputs)
    dropped = model.drop_output(h).values
    squares = torch.cat([dropped[row, :length].flatten() for row, length in enumerate(lengths)]).square()
    changes = [h.values[row, 1:length] - h.values[row, : length - 1] for row, length in enumerate(lengths)]
    jumps = torch.cat([change.flatten() for change in changes]).square()
    expected = bare / 9 + alpha * squares.mean() + beta * jumps.mean()
    assert_close(total / 9, expected, atol=1e-12, rtol=0)


def test_a_chunk_of_one_step_has_no_jump_to_regularise() -> None:
    batch = ragged([1, 1])
    assert_close(network(temporal_regularization=2.0).loss(batch).total, network().loss(batch).total)


def test_token_dropout_zeroes_its_share_of_tokens_and_leaves_the_others_as_they_are() -> None:
    model = network(token_dropout=0.3)
    tokens = Padded.full(random_tokens(100, 100))
    x = model.embedded(tokens).values
    gone = (x == 0).all(-1)
    assert float(gone.double().mean()) == pytest.approx(0.3, abs=0.02)
    assert_close(x[~gone], model.embedding(tokens.values)[~gone])
    assert_close(model.eval().embedded(tokens).values, model.embedding(tokens.values))


def test_embedding_dropout_drops_tokens_of_the_vocabulary_wherever_they_stand() -> None:
    model = network(embedding_dropout=0.5)
    everything = Padded.full(torch.arange(V).repeat(2).unsqueeze(0))
    plain = model.embedding.weight.detach()
    total = torch.zeros_like(plain)
    for _ in range(400):
        first, second = model.embedded(everything).values[0].detach().split(V)
        assert_close(first, second)
        gone = (first == 0).all(-1)
        assert_close(first[~gone], 2 * plain[~gone])
        total += first
    assert_close(total / 400, plain, atol=0.2, rtol=0)


def test_tied_weights_are_one_matrix_saved_once_and_tied_again_on_load(tmp_path: Path) -> None:
    model = network(tied=True, hidden=[6, 5])
    assert (
        sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in network(hidden=[6, 5]).parameters()) - 35
    )
    path = tmp_path / "model.safetensors"
    write_tensors(path, model.state_dict())
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as file:
        assert [name for name in file.keys() if file.get_slice(name).get_shape() == [V, 5]] == ["embedding.weight"]  # noqa: SIM118
    other = NextToken(LanguageModelModel(**{**PLAIN, "tied": True, "hidden": [6, 5]}), tokens=V).double()
    put_weights(other, read_tensors(path)[0], path)
    assert other.output.readout.weight is other.embedding.weight  # type: ignore[union-attr]
    assert_close(other.embedding.weight, model.embedding.weight)


@pytest.mark.parametrize(("text", "window", "stride"), [(30, 7, 3), (8, 7, 3), (5, 7, 3), (29, 4, 9), (2, 1, 1)])
def test_windows_are_those_of_a_plain_loop(text: int, window: int, stride: int) -> None:
    model = network().eval()
    tokens = random_tokens(text)
    size = min(window, text - 1)
    nats, count = 0.0, 0
    for start in range(0, text - size, stride):
        nats -= float(by_hand(model, tokens[start : start + size + 1]).sum())
        count += size
    found = windowed(model, tokens, window=window, stride=stride)
    assert found.predicted == count
    assert found.nats == pytest.approx(nats, abs=1e-9)


@pytest.mark.parametrize("text", [2, 5, 41, 700])
def test_a_text_in_one_stream_is_every_token_but_the_first_given_all_before_it(text: int) -> None:
    model = network().eval()
    found = carried(model, random_tokens(text), streams=1, ahead=4)
    assert found.predicted == text - 1
    assert found.nats == pytest.approx(-float(by_hand(model, random_tokens(text)).sum()), abs=1e-8)


def test_each_stream_begins_with_the_state_after_the_tokens_before_it() -> None:
    model = network().eval()
    tokens = random_tokens(24)
    found = carried(model, tokens, streams=3, ahead=5)
    length, nats = 8, 0.0  # 23 predictions in three streams
    for start in range(0, 23, length):
        ahead = min(5, start)
        nats -= float(by_hand(model, tokens[start - ahead : start + length + 1])[ahead:].sum())
    assert found.nats == pytest.approx(nats, abs=1e-9)


@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_without_a_memory_the_number_of_streams_changes_nothing(text: int, streams: int, ahead: int) -> None:
    model = network(cell="elman", engine="loop").eval()
    assert model.recurrent is not None
    for layer in model.recurrent.cells:
        torch.nn.init.zeros_(layer[0].from_state)  # type: ignore[index]
    one = carried(model, random_tokens(text), streams=1, ahead=ahead)
    several = carried(model, random_tokens(text), streams=streams, ahead=ahead)
    assert several.predicted == one.predicted == text - 1
    assert several.nats == pytest.approx(one.nats, abs=1e-9)


def test_weight_drop_runs_on_torchs_kernels_in_training() -> None:
    model = network(weight_drop=0.5).float().train()
    assert model.recurrent is not None
    assert [layer.engine.name for layer in model.recurrent.engine_report().layers] == ["vendor", "vendor"]
    batch = ragged([5, 5])
    torch.manual_seed(1)
    one = model.loss(batch).total
    torch.manual_seed(2)
    assert not torch.equal(one, model.loss(batch).total)


def test_weight_drop_stands_inside_other_wrappers() -> None:
    cell = {"name": "lstm", "wrap": {"name": "zoneout", "rate": 0.1}}
    wrapped = with_weight_drop(cell, 0.5)
    assert isinstance(wrapped, dict)
    assert [wrap["name"] for wrap in wrapped["wrap"]] == ["weight_drop", "zoneout"]
    assert with_weight_drop(cell, 0.0) is cell


def test_a_chunk_can_be_trained_in_bfloat16_and_its_states_carried() -> None:
    model = network(weight_drop=0.3, token_dropout=0.1, temporal_regularization=1.0).float().train()
    batch = ragged([6, 6])
    torch.manual_seed(1)
    exact = model.loss(batch).total
    with torch.autocast("cpu", torch.bfloat16):
        torch.manual_seed(1)
        total, states = model.loss(batch)
        kept = model.nested(model.flat(states), torch.tensor([True, False]))
        again = model.loss(batch, kept).total
    assert_close(total, exact, atol=0.3, rtol=0.02)
    again.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("cell", catalogue(Cell))
def test_every_cell_makes_a_language_model_by_default(cell: str) -> None:
    hidden = 8
    model = NextToken(LanguageModelModel(cell=cell, embedding=hidden, hidden=hidden), tokens=V)
    model.loss(ragged([3, 2])).total.backward()
    assert weight_drop_of(LanguageModelModel(cell=cell)) == (0.0 if cell in WITHOUT_U else 0.2)


def test_weight_drop_that_a_cell_cannot_use_is_refused_where_it_was_set() -> None:
    with pytest.raises(SettingError, match=r"weight_drop = 0\.1 has no effect: the cell 'min_gru' has no .* Leave"):
        NextToken(LanguageModelModel(cell="min_gru", weight_drop=0.1), tokens=V)


def test_the_usual_weight_drop_gives_way_to_that_of_the_cell() -> None:
    cell = {"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.1}]}
    assert weight_drop_of(LanguageModelModel(cell=cell)) == 0.0


def test_looking_for_weights_to_drop_draws_nothing() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    weight_drop_of(LanguageModelModel(cell="gru"))
    assert_close(torch.rand(3), expected)
