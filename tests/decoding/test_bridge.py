"""Where a decoder starts, given where an encoder ended."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra.cells import AnyCell, AnyState, build
from recurra.cells.cell import fields
from recurra.config import EncoderModel, Seq2SeqModel
from recurra.decoding.bridge import Bridge
from recurra.encoders.memory import Places, Read, SourceEncoder
from recurra.errors import ConfigError
from recurra.padding import Padded

How = Literal["auto", "identity", "map"]


def encoder_of(cell: Any = "lstm", start: Any = "last", kind: Any = "rnn", **options: Any) -> SourceEncoder:
    """Its layers are 4 wide, both directions together."""
    settings = Seq2SeqModel(
        cell=cell, hidden=4, start=start, dropout=0.0, engine="loop", encoder=EncoderModel(kind=kind), **options
    )
    return SourceEncoder(settings, 3).double()


def decoder_of(cell: Any, *widths: int) -> list[AnyCell]:
    return [build(cell, 3, width).double() for width in widths]


def bridged(encoder: SourceEncoder, decoder: list[AnyCell], how: How) -> tuple[Bridge, Read, tuple[AnyState, ...]]:
    bridge = Bridge(encoder.end_sizes, encoder.recurrent, decoder, how, are_last=encoder.start == "last").double()
    for parameter in bridge.parameters():
        nn.init.normal_(parameter)
    read = encoder(Padded(torch.randn(3, 5, 3).double(), torch.tensor([5, 2, 0])))
    starts = tuple(cell.start(3, torch.zeros((), dtype=torch.float64)) for cell in decoder)
    return bridge, read, bridge(read, starts)


def names_of(state: AnyState) -> dict[str, torch.Tensor]:
    return dict(zip(fields(state), state, strict=True))


@pytest.mark.parametrize("how", ["auto", "identity"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "slstm", "min_lstm"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_where_sizes_agree_states_are_taken_over_as_they_are(how: How, cell: str, bidirectional: bool) -> None:
    encoder = encoder_of(cell, layers=2, bidirectional=bidirectional)
    bridge, read, starts = bridged(encoder, decoder_of(cell, 4, 4), how)
    assert list(bridge.parameters()) == []
    assert read.states is not None
    for start, layer in zip(starts, read.states, strict=True):
        for name, value in names_of(start).items():
            assert torch.equal(value, torch.cat([getattr(way, name) for way in layer], dim=1))


@pytest.mark.parametrize(
    ("encoder", "decoder", "how"),
    [
        (encoder_of("lstm"), decoder_of("lstm", 5), "auto"),
        (encoder_of("lstm"), decoder_of("lstm", 4), "map"),
        (encoder_of("lstm", layers=2), decoder_of("lstm", 4), "auto"),
        (encoder_of("lstm"), decoder_of("lstm", 4, 6), "auto"),
        (encoder_of("lstm"), decoder_of("gru", 4), "auto"),
        (encoder_of("gru"), decoder_of("lstm", 4), "auto"),
        (encoder_of("gru", layers=3), decoder_of("peephole_lstm", 2, 3), "map"),
        (encoder_of("lstm", "mean", layers=2), decoder_of("lstm", 4, 4), "auto"),
        (encoder_of("lstm", "max"), decoder_of("lstm", 4), "auto"),
        (encoder_of("gru", "mean", "cnn"), decoder_of("lstm", 4, 3), "auto"),
        (encoder_of("lstm", merge="sum"), decoder_of("lstm", 4), "auto"),
    ],
)
def test_otherwise_they_are_mapped(encoder: SourceEncoder, decoder: list[AnyCell], how: How) -> None:
    bridge, read, starts = bridged(encoder, decoder, how)
    w = {name: value.detach().numpy() for name, value in bridge.named_parameters()}
    for number, start in enumerate(starts):
        below = read.ends[min(number, len(read.ends) - 1)]
        for name, value in names_of(start).items():
            end = below[name if name in below else "h"].detach().numpy()
            mapped = end @ w[f"maps.{number}.{name}.weight"].T + w[f"maps.{number}.{name}.bias"]
            expected = np.tanh(mapped) if name == "h" else mapped
            np.testing.assert_allclose(value.detach().numpy(), expected, rtol=0, atol=1e-12)
    torch.stack([value.sum() for start in starts for value in start]).sum().backward()
    for parameter in bridge.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_zeros_are_what_a_cell_starts_with_by_itself() -> None:
    decoder = decoder_of("lstm", 4, 4)
    bridge, _, starts = bridged(encoder_of("lstm", "zeros"), decoder, "auto")
    assert list(bridge.parameters()) == []
    assert all((value == 0).all() for start in starts for value in start)


@pytest.mark.parametrize("cell", ["slstm", {"name": "slstm", "wrap": [{"name": "zoneout", "rate": {"h": 0.1}}]}])
@pytest.mark.parametrize("encoder", [encoder_of("gru"), encoder_of("lstm"), encoder_of("slstm", "mean")])
def test_what_a_cell_measures_by_a_scale_of_its_own_begins_as_it_always_does(encoder: SourceEncoder, cell: Any) -> None:
    bridge, _, starts = bridged(encoder, decoder_of(cell, 6), "auto")
    start = names_of(starts[0])
    assert start["h"].abs().min() > 0
    assert all((start[name] == 0).all() for name in ("c", "n", "m"))
    assert [name for name, _ in bridge.named_parameters()] == ["maps.0.h.weight", "maps.0.h.bias"]


@pytest.mark.parametrize("cell", ["tests.own_cells:Matchbox", "elman", "ind_rnn", "min_gru", "layer_norm_lstm"])
@pytest.mark.parametrize("pooled", ["last", "max"])
def test_cells_of_any_kind_start_with_finite_numbers_of_their_own_shapes(cell: str, pooled: str) -> None:
    for encoder in (encoder_of(cell, pooled), encoder_of("lstm", pooled)):
        decoder = decoder_of(cell, 5)
        _, _, starts = bridged(encoder, decoder, "auto")
        own = decoder[0].start(3, torch.zeros(()))
        assert [value.shape for value in starts[0]] == [value.shape for value in own]
        assert all(value.isfinite().all() for value in starts[0])


@pytest.mark.parametrize(
    ("encoder", "decoder", "reason"),
    [
        (encoder_of(), decoder_of("lstm", 4, 4), "the encoder has 1 layers, the decoder 2"),
        (encoder_of(), decoder_of("gru", 4), "in layer 1 the encoder keeps h, c, the decoder h"),
        (encoder_of(), decoder_of("lstm", 6), "in layer 1 the encoder has 4 units, the decoder 6"),
        (encoder_of("lstm", "mean"), decoder_of("lstm", 4), "only the last states of a recurrent encoder can be used"),
        (encoder_of("gru", "max", "cnn"), decoder_of("gru", 4), "only the last states of a recurrent encoder can be"),
    ],
)
def test_what_cannot_be_taken_over_as_it_is_is_refused(
    encoder: SourceEncoder, decoder: list[AnyCell], reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"model.bridge = 'identity' is not possible: {reason}.*Use 'auto' or 'map'"):
        bridged(encoder, decoder, "identity")


def test_a_map_of_states_keeps_the_rows_apart() -> None:
    bridge, read, starts = bridged(encoder_of("gru", layers=2), decoder_of("lstm", 5, 3), "auto")
    one = read._replace(ends=tuple({name: value[1:2] for name, value in layer.items()} for layer in read.ends))
    alone = bridge(one, tuple(cell.start(1, torch.zeros(()).double()) for cell in decoder_of("lstm", 5, 3)))
    for together, single in zip(starts, alone, strict=True):
        assert_close([value[1:2] for value in together], list(single), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("states", "given"), [(None, {"h"}), (["h"], {"h"}), (["c"], {"c"}), (["h", "c"], {"h", "c"})])
def test_a_vector_is_the_states_that_are_named(states: list[str] | None, given: set[str]) -> None:
    v = torch.randn(2, 4).double()
    read = Read(Places(v.unsqueeze(1), torch.ones(2, 1, dtype=torch.bool)), ({"h": v},), None, v)
    decoder = decoder_of("lstm", 4, 4)
    bridge = Bridge([{"h": 4}], None, decoder, "direct", are_last=False, states=states)
    for start in bridge(read, tuple(cell.start(2, v) for cell in decoder)):
        for name, value in names_of(start).items():
            assert torch.equal(value, v if name in given else torch.zeros_like(v))


def test_a_learned_map_gives_the_states_that_are_named_alone() -> None:
    v = torch.randn(2, 3).double()
    read = Read(Places(v.unsqueeze(1), torch.ones(2, 1, dtype=torch.bool)), ({"h": v},), None, v)
    decoder = decoder_of("lstm", 4)
    bridge = Bridge([{"h": 3}], None, decoder, "map", are_last=False, states=["c"]).double()
    [start] = bridge(read, tuple(cell.start(2, v) for cell in decoder))
    w = {name: value.detach().numpy() for name, value in bridge.named_parameters()}
    assert not names_of(start)["h"].any()
    np.testing.assert_allclose(names_of(start)["c"].detach(), v.numpy() @ w["maps.0.c.weight"].T + w["maps.0.c.bias"])


def test_a_state_that_a_cell_does_not_have_is_refused() -> None:
    for cell in ("gru", "slstm"):
        with pytest.raises(ConfigError, match=f"a cell '{cell}' has no state 'c' that a vector can set, only h"):
            Bridge([{"h": 4}], None, decoder_of(cell, 4), "map", are_last=False, states=["c"])
