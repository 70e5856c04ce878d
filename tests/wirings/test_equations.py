"""Every wiring against its equations in numpy; Bahdanau's decoder term by term."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recurra.cells.cell import fields
from recurra.errors import ConfigError
from recurra.named import catalogue
from recurra.padding import Padded
from recurra.wirings import Source, Wiring
from recurra.wirings.wiring import Readout
from tests.cells.equations import sigma
from tests.wirings.equations import weights_of, written
from tests.wirings.every import (
    ATTENTIONS,
    CELLS,
    INPUT,
    MEMORY,
    SUMMARY,
    VARIANTS,
    WIDTH,
    Variant,
    drawn,
    drawn_starts,
    inputs,
    source_of,
    step_by_step,
)

LENGTHS, STEPS = [5, 2, 1], 4


def test_every_file_is_tested() -> None:
    others = {"transformer", "window"}  # without cells: test_transformer.py and test_window.py test them
    assert {variant.name for variant in VARIANTS} | others == set(catalogue(Wiring))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_wiring_computes_its_equations(variant: Variant, cell: str, layers: int) -> None:
    for spec in ATTENTIONS[:1] if variant.name == "alone" else ATTENTIONS:
        assert_equations(drawn(variant, cell, layers, spec), variant, cell, spec)


WAYS: tuple[dict[str, Any], ...] = ({"skip": "residual"}, {"skip": "highway"}, {"mix": "concat"}, {"mix": "mean"})


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_ways_past_a_layer_and_mixes_are_those_of_one_stack(variant: Variant, options: dict[str, Any]) -> None:
    spec = ATTENTIONS[0]
    assert_equations(drawn(variant, "lstm", 3, spec, **options), variant, "lstm", spec)
    both = {**options, "mix": "learned"} if "skip" in options else {**options, "skip": "highway"}
    assert_equations(drawn(variant, "gru", 2, spec, **both), variant, "gru", spec)


@pytest.mark.parametrize("options", [*WAYS, {"mix": "learned", "skip": "residual"}], ids=str)
def test_maxout_reads_what_came_out_of_all_layers(options: dict[str, Any]) -> None:
    for variant in (Variant("inside"), Variant("conditional")):
        wiring = drawn(variant, "lstm", 3, ATTENTIONS[0], readout="maxout", **options)
        assert_equations(wiring, variant, "lstm", ATTENTIONS[0])


def assert_equations(wiring: Wiring, variant: Variant, cell: str, spec: Any) -> None:
    places, summary = torch.randn(3, 5, MEMORY).double(), torch.randn(3, SUMMARY).double()
    source, starts, x = source_of(wiring, places, LENGTHS, summary), drawn_starts(wiring, 3), inputs(3, STEPS)
    state = wiring.start(starts, source)
    at_once = wiring(Padded.full(x), state, source)
    for found in (at_once, step_by_step(wiring, x, state, source)):
        for row, length in enumerate(LENGTHS):
            own = [{name: getattr(s, name)[row].numpy() for name in fields(s)} for s in starts]
            real = places[row, :length].numpy()
            values, weights = written(
                *(variant.name, variant.query, cell, spec, wiring, x[row].numpy(), own, real, summary[row].numpy()),
                readout=wiring.shape.readout,
            )
            np.testing.assert_allclose(found.values[row].detach().numpy(), values, rtol=0, atol=1e-12)
            if found.weights is not None:
                np.testing.assert_allclose(found.weights[row, :, :length].detach().numpy(), weights, rtol=0, atol=1e-12)
                assert (found.weights[row, :, length:] == 0).all()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_maxout_and_a_local_look_compute_their_equations(variant: Variant, layers: int) -> None:
    for spec in ({"name": "bilinear", "look": {"name": "local", "reach": 2}}, {"name": "additive", "size": 3}):
        wiring = drawn(variant, "gru", layers, spec, readout="maxout")
        places, summary = torch.randn(3, 5, MEMORY).double(), torch.randn(3, SUMMARY).double()
        source, starts, x = source_of(wiring, places, LENGTHS, summary), drawn_starts(wiring, 3), inputs(3, STEPS)
        found = wiring(Padded.full(x), wiring.start(starts, source), source)
        stepped = step_by_step(wiring, x, wiring.start(starts, source), source)
        for row, length in enumerate(LENGTHS):
            own = [{name: getattr(s, name)[row].numpy() for name in fields(s)} for s in starts]
            given = (x[row].numpy(), own, places[row, :length].numpy(), summary[row].numpy())
            values, _ = written(variant.name, variant.query, "gru", spec, wiring, *given, readout="maxout")
            for each in (found, stepped):
                np.testing.assert_allclose(each.values[row].detach().numpy(), values, rtol=0, atol=1e-12)


def test_a_wiring_that_does_not_tell_what_was_read_has_no_maxout() -> None:
    readout = Readout(drawn(Variant("alone"), readout="maxout").shape, WIDTH)
    with pytest.raises(
        ConfigError, match=r"which this wiring does not give it: call readout\(source, state, context, x"
    ):
        readout(Source(None, torch.zeros(1, SUMMARY)), torch.zeros(1, WIDTH))


def test_attention_inside_a_gru_is_the_decoder_of_bahdanau() -> None:
    wiring = drawn(Variant("inside"), "gru", 1, {"name": "additive", "size": 3})
    w = weights_of(wiring)
    both, U = w["first.cells.0.0.from_input.weight"], np.split(w["first.cells.0.0.from_state"], 3)
    (W_r, W_z, W), (C_r, C_z, C) = np.split(both[:, :INPUT], 3), np.split(both[:, INPUT:], 3)
    b_r, b_z, b = np.split(w["first.cells.0.0.from_input.bias"], 3)
    U_r, U_z, U_s = U
    W_a, U_a, v_a = (w[f"attention.{name}"] for name in ("from_query.weight", "from_memory.weight", "v"))
    assert C.shape == (WIDTH, MEMORY)

    places, summary = torch.randn(1, 5, MEMORY).double(), torch.randn(1, SUMMARY).double()
    source, x = source_of(wiring, places, [5], summary), inputs(1, STEPS)
    starts = drawn_starts(wiring, 1)
    found = wiring(Padded.full(x), wiring.start(starts, source), source)
    h, s = places[0].numpy(), starts[0][0][0].numpy()
    for i, y in enumerate(x[0].numpy()):
        e = np.array([v_a @ np.tanh(W_a @ s + U_a @ h_j) for h_j in h])
        alpha = np.exp(e) / np.exp(e).sum()
        c = sum(a * h_j for a, h_j in zip(alpha, h, strict=True))
        r = sigma(W_r @ y + U_r @ s + C_r @ c + b_r)
        z = sigma(W_z @ y + U_z @ s + C_z @ c + b_z)
        s_new = np.tanh(W @ y + U_s @ (r * s) + C @ c + b)
        s = (1 - z) * s + z * s_new
        t = np.tanh(w["readout.mix.weight"] @ np.concatenate([s, c, summary[0]]) + w["readout.mix.bias"])
        np.testing.assert_allclose(found.values[0, i].detach().numpy(), t, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.weights[0, i].detach().numpy(), alpha, rtol=0, atol=1e-12)


def test_a_conditional_gru_is_two_grus_with_attention_between_them() -> None:
    wiring = drawn(Variant("conditional"), "gru", 1, {"name": "additive", "size": 3})
    w = weights_of(wiring)

    def gru(part: str, x: Any, s: Any) -> Any:
        W_r, W_z, W = np.split(w[f"{part}.cells.0.0.from_input.weight"], 3)
        U_r, U_z, U = np.split(w[f"{part}.cells.0.0.from_state"], 3)
        b_r, b_z, b = np.split(w[f"{part}.cells.0.0.from_input.bias"], 3)
        r, z = sigma(W_r @ x + U_r @ s + b_r), sigma(W_z @ x + U_z @ s + b_z)
        return (1 - z) * s + z * np.tanh(W @ x + U @ (r * s) + b)

    places, summary = torch.randn(1, 5, MEMORY).double(), torch.randn(1, SUMMARY).double()
    source, x = source_of(wiring, places, [5], summary), inputs(1, STEPS)
    starts = drawn_starts(wiring, 1)
    found = wiring(Padded.full(x), wiring.start(starts, source), source)
    h, s = places[0].numpy(), starts[0][0][0].numpy()
    for i, y in enumerate(x[0].numpy()):
        between = gru("first", y, s)
        query = w["attention.from_query.weight"] @ between
        e = np.array([w["attention.v"] @ np.tanh(query + w["attention.from_memory.weight"] @ h_j) for h_j in h])
        c = (np.exp(e) / np.exp(e).sum()) @ h
        s = gru("second", c, between)
        t = np.tanh(w["readout.mix.weight"] @ np.concatenate([s, c, summary[0]]) + w["readout.mix.bias"])
        np.testing.assert_allclose(found.values[0, i].detach().numpy(), t, rtol=0, atol=1e-12)
