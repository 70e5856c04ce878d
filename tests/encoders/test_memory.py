"""What a decoder is given of a source, against numpy: memories, where they ended, and summaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from recurra.config import EncoderModel, Seq2SeqModel
from recurra.encoders.memory import Read, SourceEncoder, pooled
from recurra.encoders.pyramid import Pyramid
from recurra.padding import Padded
from tests.cells import equations
from tests.encoders.test_pyramid import by_numpy as pyramid_by_numpy

Array = NDArray[np.float64]
LENGTHS = [5, 2, 1, 4]


def drawn(kind: Any = "rnn", **options: Any) -> SourceEncoder:
    own = {key: options.pop(key) for key in ("width", "hidden", "layers", "cell") if key in options}
    settings_ = Seq2SeqModel(
        **{"cell": "lstm", "hidden": 4, "dropout": 0.0, "engine": "loop", **options}, encoder=EncoderModel(kind, **own)
    )
    encoder = SourceEncoder(settings_, 3).double()
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.7)
    return encoder


def sources(lengths: list[int] = LENGTHS, more: int = 0) -> Padded:
    """Random rows, right-padded with noise."""
    return Padded(torch.randn(len(lengths), max(lengths) + more, 3).double(), torch.tensor(lengths))


def layer_in_numpy(encoder: SourceEncoder, number: int, xs: Array) -> list[list[dict[str, Array]]]:
    """The states after each step, of the direction that reads forward and of the one that reads backward."""
    assert encoder.recurrent is not None
    found = []
    cells: Any = encoder.recurrent.cells[number]
    for way, cell in enumerate(cells):
        w = {name: value.detach().numpy() for name, value in cell.state_dict().items()}
        state, states = {name: np.zeros(cell.hidden_size) for name in cell.State._fields}, []
        for x in xs[::-1] if way else xs:
            values = getattr(equations, cell.name)(w, {}, x, state, lambda a: a, lambda a: a)
            state = {name: values[name] for name in state}
            states.append(state)
        found.append(states[::-1] if way else states)
    return found


def in_numpy(encoder: SourceEncoder, xs: Array, layers: int) -> tuple[Array, list[list[list[dict[str, Array]]]]]:
    """The memory (S, D), and the states of each layer, direction and step."""
    every = []
    for number in range(layers):
        every.append(layer_in_numpy(encoder, number, xs))
        xs = np.stack([np.concatenate([way[t]["h"] for way in every[-1]]) for t in range(len(xs))])
    return xs, every


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("start", ["last", "mean", "max", "zeros"])
def test_a_recurrent_memory_and_its_ends(cell: str, layers: int, bidirectional: bool, start: str) -> None:
    encoder = drawn(
        cell=cell, layers=layers, bidirectional=bidirectional, start=start, conditioning=["output"], summary="last"
    )
    x = sources()
    read = encoder(x)
    assert [{k: v.shape[1] for k, v in layer.items()} for layer in read.ends] == list(encoder.end_sizes)
    for row, length in enumerate(LENGTHS):
        memory, every = in_numpy(encoder, x.values[row, :length].numpy(), layers)
        close(read.memory.values[row, :length], memory)
        assert (read.memory.values[row, length:] == 0).all()
        last = [[way[-1], *([other[0] for other in rest])] for way, *rest in every]
        close(read.summary[row], np.concatenate([state["h"] for state in last[-1]]))
        if start == "zeros":
            assert read.ends == ()
            continue
        for number, layer in enumerate(read.ends):
            assert list(layer) == (["h", "c"] if cell == "lstm" else ["h"])
            for name, value in layer.items():
                if start == "last":
                    expected = np.concatenate([state[name] for state in last[number]])
                else:
                    all_steps = [np.stack([state[name] for state in way]) for way in every[number]]
                    pool = np.mean if start == "mean" else np.max
                    expected = np.concatenate([pool(steps, axis=0) for steps in all_steps])
                close(value[row], expected)


@pytest.mark.parametrize("start", ["last", "mean", "max", "zeros"])
@pytest.mark.parametrize("summary", ["last", "mean"])
def test_a_pyramid_has_half_as_many_places_from_layer_to_layer(start: str, summary: str) -> None:
    encoder = drawn("pyramid", start=start, conditioning=["output"], summary=summary)
    assert isinstance(encoder.recurrent, Pyramid)
    x = sources([7, 2, 1, 4])
    read = encoder(x)
    assert encoder.extents(x).each == [(1, 2), (1, 1), (1, 1), (1, 1)]  # three layers, where nothing else is said
    assert read.memory.mask.tolist() == [[True, True]] + [[True, False]] * 3
    assert [{k: v.shape[1] for k, v in layer.items()} for layer in read.ends] == list(encoder.end_sizes)
    for row, length in enumerate([7, 2, 1, 4]):
        memory, every = pyramid_by_numpy(encoder.recurrent, x.values[row, :length].numpy())
        close(read.memory.values[row, : len(memory)], memory)
        last = [[way[-1], *([other[0] for other in rest])] for way, *rest in every]
        ended = np.concatenate([state["h"] for state in last[-1]])
        close(read.summary[row], ended if summary == "last" else memory.mean(0))
        for number, layer in enumerate(read.ends):
            for name, value in layer.items():
                steps = [np.stack([state[name] for state in way]) for way in every[number]]
                pool = np.mean if start == "mean" else np.max
                ends = [state[name] for state in last[number]] if start == "last" else [pool(s, axis=0) for s in steps]
                close(value[row], np.concatenate(ends))
    assert (read.states is not None) == (start == "last")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("sizes", [[4], [3, 3], [5, 4]])
@pytest.mark.parametrize("start", ["mean", "max", "zeros"])
def test_a_memory_of_convolutions(width: int, sizes: list[int], start: str) -> None:
    encoder = drawn("cnn", width=width, hidden=sizes, start=start)
    x = sources(more=2)
    read = encoder(x)
    for row, length in enumerate(LENGTHS):
        y = x.values[row, :length].numpy()
        for layer in encoder.layers:
            W, b = (value.detach().numpy() for value in layer.parameters())  # (out, in, width)
            out = np.tile(b, (length, 1))
            for i in range(length):
                for j in range(width):
                    if 0 <= (at := i + j - (width - 1) // 2) < length:
                        out[i] += W[:, :, j] @ y[at]
            out = np.maximum(out, 0)
            y = out + y if out.shape == y.shape else out
        close(read.memory.values[row, :length], y)
        assert (read.memory.values[row, length:] == 0).all()
        check_pooled(read, row, y, start)


@pytest.mark.parametrize("sizes", [[4], [3], [3, 3]])
@pytest.mark.parametrize("start", ["mean", "max", "zeros"])
def test_a_memory_without_order(sizes: list[int], start: str) -> None:
    encoder = drawn("bag", hidden=sizes, start=start)
    x = sources()
    read = encoder(x)
    for row, length in enumerate(LENGTHS):
        y = x.values[row, :length].numpy()
        for layer in encoder.layers:
            W, b = (value.detach().numpy() for value in layer.parameters())
            y = np.tanh(y @ W[:, :, 0].T + b)
        close(read.memory.values[row, :length], y)
        check_pooled(read, row, y, start)


def check_pooled(read: Read, row: int, memory: Array, start: str) -> None:
    if start == "zeros":
        assert read.ends == ()
        return
    [ends] = read.ends
    close(ends["h"][row], memory.mean(0) if start == "mean" else memory.max(0))


@pytest.mark.parametrize("kind", ["rnn", "pyramid", "cnn", "bag"])
@pytest.mark.parametrize("start", ["last", "mean", "max", "zeros"])
@pytest.mark.parametrize("lengths", [[0, 3], [0], [0, 0]])
def test_a_source_without_any_place_gives_finite_numbers(kind: str, start: str, lengths: list[int]) -> None:
    is_recurrent = kind in ("rnn", "pyramid")
    start = start if is_recurrent else start.replace("last", "mean")
    summary = "last" if is_recurrent else "max"
    encoder = drawn(kind, start=start, layers=2, conditioning=["output"], summary=summary)
    x = Padded(sources(lengths).values.requires_grad_(), torch.tensor(lengths))
    read = encoder(x)
    numbers = [read.memory.values, read.summary, *(value for layer in read.ends for value in layer.values())]
    assert all(value.isfinite().all() for value in numbers)
    if is_recurrent:
        assert all((value[0] == 0).all() for layer in read.ends for value in layer.values())
    total = torch.stack([value.sum() for value in numbers]).sum()
    if max(lengths):  # otherwise there is nothing that it could depend on
        total.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["rnn", "pyramid", "cnn", "bag"]),
    start=st.sampled_from(["mean", "max", "zeros", "last"]),
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4),
    more=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_a_source_alone_gives_the_same_as_among_others(
    kind: str, start: str, lengths: list[int], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    start = start if kind in ("rnn", "pyramid") else start.replace("last", "max")
    encoder = drawn(kind, layers=2, start=start, conditioning=["every"], summary="attention")
    x = sources(lengths, more)
    together = encoder(x)
    for row, length in enumerate(lengths):
        alone = encoder(Padded.full(x.values[row : row + 1, :length]))
        places = alone.memory.values.shape[1]
        assert encoder.extents(x).each[row] == (1, places)
        assert together.memory.mask[row].sum() == places
        assert_close(together.memory.values[row, :places], alone.memory.values[0], rtol=0, atol=1e-12)
        assert_close(together.summary[row], alone.summary[0], rtol=0, atol=1e-12)
        for many, one in zip(together.ends, alone.ends, strict=True):
            assert_close({k: v[row] for k, v in many.items()}, {k: v[0] for k, v in one.items()}, rtol=0, atol=1e-12)


def test_what_is_attended_to_is_not_dropped() -> None:
    encoder = drawn(dropout=0.5, hidden=40)
    x = Padded.full(torch.randn(3, 4, encoder.recurrent.input_size if encoder.recurrent else 1, dtype=torch.float64))
    assert_close(encoder.train()(x).memory.values, encoder.eval()(x).memory.values)


@pytest.mark.parametrize("kind", ["cnn", "bag"])
@pytest.mark.parametrize("locked", [False, True])
def test_dropout_is_between_convolutions_too(kind: str, locked: bool) -> None:
    x = sources([6] * 30)
    for layers in (1, 2):
        encoder = drawn(kind, dropout=0.5, layers=layers, start="mean", locked=locked)  # the mean is that of no dropout
        found = encoder.train()(x).ends[0]["h"]
        assert torch.equal(found, encoder.eval()(x).ends[0]["h"]) == (layers == 1)


def test_the_carried_state_of_an_slstm_is_its_h() -> None:
    for start in ("last", "mean"):
        encoder = drawn(cell="slstm", start=start, hidden=2)
        assert encoder.end_sizes == ({"h": 4},)
        assert list(encoder(sources()).ends[0]) == ["h"]


def test_states_are_kept_as_they_are_only_where_they_are_last() -> None:
    assert drawn(start="last")(sources()).states is not None
    for start in ("mean", "max", "zeros"):
        assert drawn(start=start, conditioning=["first"])(sources()).states is None


def test_pooling_leaves_padding_out() -> None:
    values = Padded(torch.tensor([[[-1.0], [-3.0], [9.0]], [[4.0], [4.0], [4.0]]]), torch.tensor([2, 0]))
    assert pooled(values, "mean").tolist() == [[-2.0], [0.0]]
    assert pooled(values, "max").tolist() == [[-1.0], [0.0]]


@pytest.mark.parametrize(("kind", "layers"), [("rnn", 2), ("pyramid", 1)])
@pytest.mark.parametrize("start", ["last", "mean"])
def test_a_source_read_backward_is_the_reversed_source_read_forward(kind: str, layers: int, start: str) -> None:
    options: dict[str, Any] = {"bidirectional": False, "start": start, "conditioning": ["output"], "layers": layers}
    forward, backward = drawn(kind, **options), drawn(kind, **options, direction="backward")
    backward.load_state_dict(forward.state_dict())
    for length in (1, 4, 8):
        x = sources([length])
        ahead, back = forward(x), backward(Padded(x.values.flip(1), x.lengths))
        assert_close(back.memory.values, ahead.memory.values.flip(1))
        assert_close(back.ends, ahead.ends)
        assert_close(back.summary, ahead.summary)


@pytest.mark.parametrize("mix", ["concat", "mean", "learned"])
def test_a_memory_may_be_of_all_layers(mix: Any) -> None:
    mixed, plain = drawn(layers=3, mix=mix), drawn(layers=3)
    plain.load_state_dict({name: w for name, w in mixed.state_dict().items() if "mix_" not in name})
    x, below = sources(), []
    assert plain.recurrent is not None
    for layers in (1, 2, 3):
        shorter = drawn(layers=layers)
        shorter.load_state_dict({name: plain.state_dict()[name] for name in shorter.state_dict()})
        below.append(shorter(x).memory.values)
    shares = torch.ones(3).double() / 3
    if mix == "learned":
        weights: Any = mixed.state_dict()
        shares = weights["recurrent.mix_scale"] * weights["recurrent.mix_weights"].softmax(0)
    expected = sum(share * each for share, each in zip(shares, below, strict=True))
    assert_close(mixed(x).memory.values, torch.cat(below, 2) if mix == "concat" else expected)
