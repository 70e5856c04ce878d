"""The wrappers do what their papers say: masks checked one by one against numpy and by their frequency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recurra import ConfigError, Padded, Recurrent
from recurra.cells import AnyCell, Product, build
from recurra.cells.cell import fields
from recurra.cells.weights import leaves
from tests.cells import equations
from tests.variants import CANDIDATE, VARIATIONAL, WEIGHT_DROP, ZONEOUT_EACH, batch, model, random_states

STEPS, ROWS, I, H = 4, 3, 3, 4  # noqa: E741


def wrapped(spec: dict[str, Any], wrap: dict[str, Any]) -> AnyCell:
    return model({**spec, "wrap": [wrap]}, I, H)._layers()[0][0].train()


def course(cell: AnyCell, x: torch.Tensor, fixed: Any) -> tuple[torch.Tensor, list[Any]]:
    """The projected inputs and the parts of every step."""
    inputs = cell.project(x, fixed)
    state, parts = cell.start(len(x), x), []
    for t in range(x.shape[1]):
        parts.append(cell.parts(inputs[:, t], state, fixed))
        state = cell.State(*(getattr(parts[-1], name) for name in fields(cell.State)))
    return inputs, parts


def inner_parameters(cell: AnyCell) -> dict[str, equations.Array]:
    return {name.removeprefix("cell."): value.numpy() for name, value in cell.state_dict().items()}


@pytest.mark.parametrize("spec", [{"name": "lstm"}, {"name": "gru"}, {"name": "gru", "reset": "after"}])
def test_variational_dropout_masks_h_before_every_u_and_x_once_per_sequence(spec: dict[str, Any]) -> None:
    cell, x = wrapped(spec, VARIATIONAL), torch.randn(ROWS, STEPS, I).double()
    fixed = cell.fixed(ROWS, x)
    masks = {id(U.mask): U.mask for U in leaves(fixed, Product)}
    assert len(masks) == 1  # one mask for all U
    [m], n = masks.values(), fixed.input_mask
    assert m is not None
    assert m.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert n.unique().tolist() == pytest.approx([0, 1 / 0.8])
    _, parts = course(cell, x, fixed)
    for row in range(ROWS):
        state: equations.Values = {name: np.zeros(H) for name in fields(cell.State)}
        for t in range(STEPS):
            seen = (x[row, t] * n[row]).numpy()
            m_row = m[row].numpy()
            step = getattr(equations, spec["name"])
            values = step(inner_parameters(cell), spec, seen, state, lambda h, m=m_row: m * h, lambda c: c)
            state = {name: values[name] for name in state}
            np.testing.assert_allclose(parts[t].h[row].detach().numpy(), values["h"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", [{"name": "lstm"}, {"name": "gru"}, {"name": "coupled_lstm"}, {"name": "min_lstm"}])
def test_candidate_dropout_masks_the_candidate_anew_at_each_step(spec: dict[str, Any]) -> None:
    cell, x = wrapped(spec, CANDIDATE), torch.randn(ROWS, STEPS, I).double()
    fixed = cell.fixed(ROWS, x)
    inputs, parts = course(cell, x, fixed)
    masks = inputs[..., -H:]
    assert masks.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert not (masks[:, :1] == masks).all()
    for row in range(ROWS):
        state: equations.Values = {name: np.zeros(H) for name in fields(cell.State)}
        for t in range(STEPS):
            m = masks[row, t].detach().numpy()
            step = getattr(equations, spec["name"])
            values = step(inner_parameters(cell), spec, x[row, t].numpy(), state, lambda h: h, lambda c, m=m: m * c)
            state = {name: values[name] for name in state}
            np.testing.assert_allclose(parts[t].h[row].detach().numpy(), values["h"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", [{"name": "lstm"}, {"name": "gru"}, {"name": "elman"}, {"name": "ind_rnn"}])
def test_weight_drop_leaves_out_weights_for_the_whole_sequence(spec: dict[str, Any]) -> None:
    cell, x = wrapped(spec, WEIGHT_DROP), torch.randn(ROWS, STEPS, I).double()
    fixed = cell.fixed(ROWS, x)
    U = torch.cat([leaf.weight for leaf in leaves(fixed, Product)])
    parameters = inner_parameters(cell)
    kept = U.detach().numpy() != 0
    np.testing.assert_allclose(U.detach().numpy()[kept], parameters["from_state"][kept] * 2, rtol=1e-12)
    assert 0 < kept.mean() < 1
    parameters["from_state"] = U.detach().numpy()
    _, parts = course(cell, x, fixed)
    for row in range(ROWS):
        state: equations.Values = {name: np.zeros(H) for name in fields(cell.State)}
        for t in range(STEPS):
            step = getattr(equations, spec["name"])
            options = {**spec, "horizon": 0.5}  # 2^(1/0.5) = 4 bounds what dropping has doubled
            values = step(parameters, options, x[row, t].numpy(), state, lambda h: h, lambda c: c)
            state = {name: values[name] for name in state}
            np.testing.assert_allclose(parts[t].h[row].detach().numpy(), values["h"], rtol=0, atol=1e-12)


def test_zoneout_keeps_each_unit_or_renews_it() -> None:
    cell, plain = wrapped({"name": "lstm"}, ZONEOUT_EACH), build("lstm", I, H).double()
    plain.load_state_dict({name: torch.tensor(value) for name, value in inner_parameters(cell).items()})
    x = torch.randn(50, I).double()
    before: Any = plain.State(torch.randn(50, H).double(), torch.randn(50, H).double())
    fixed = plain.fixed(50, x)
    new: Any = plain.step(plain.project(x, fixed), before, fixed)
    inputs = cell.project(x, cell.fixed(50, x))
    after: Any = cell.step(inputs, before, cell.fixed(50, x))
    for name, mask in zip("hc", inputs[:, -2 * H :].chunk(2, -1), strict=True):
        expected = torch.where(mask == 1, getattr(before, name), getattr(new, name))
        torch.testing.assert_close(getattr(after, name), expected, rtol=0, atol=1e-12)


def test_zoneout_in_evaluation_is_the_expected_state() -> None:
    cell = wrapped({"name": "lstm"}, ZONEOUT_EACH).eval()
    x = torch.randn(ROWS, STEPS, I).double()
    _, parts = course(cell, x, cell.fixed(ROWS, x))
    state: equations.Values = {"h": np.zeros(H), "c": np.zeros(H)}
    for t in range(STEPS):
        new = equations.lstm(inner_parameters(cell), {}, x[0, t].numpy(), state, lambda h: h, lambda c: c)
        state = {"h": 0.05 * state["h"] + 0.95 * new["h"], "c": 0.5 * state["c"] + 0.5 * new["c"]}
        np.testing.assert_allclose(parts[t].h[0].detach().numpy(), state["h"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(parts[t].c[0].detach().numpy(), state["c"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_masks_are_drawn_at_their_rate(rate: float) -> None:
    rows, steps, hidden = 50, 20, 64
    x = torch.randn(rows, steps, I)
    expected, spread = rate, 3.5 * (rate * (1 - rate)) ** 0.5
    zoned = build({"name": "gru", "wrap": {"name": "zoneout", "rate": rate}}, I, hidden)
    share = zoned.project(x, zoned.fixed(rows, x))[..., -hidden:].mean().item()
    assert abs(share - expected) < spread / (rows * steps * hidden) ** 0.5
    for wrap in ({"name": "recurrent_dropout", "rate": rate}, {"name": "weight_drop", "rate": rate}):
        dropped = build({"name": "elman", "wrap": wrap}, I, hidden)
        [U] = leaves(dropped.fixed(rows, x), Product)
        drawn = U.weight if U.mask is None else U.mask
        assert abs((drawn == 0).double().mean().item() - expected) < spread / drawn.numel() ** 0.5


@pytest.mark.parametrize("wrap", [VARIATIONAL, CANDIDATE, WEIGHT_DROP, {"name": "zoneout", "rate": 0.0}])
def test_in_evaluation_nothing_is_dropped(wrap: dict[str, Any]) -> None:
    rnn = model({"name": "lstm", "wrap": [wrap]}).eval()
    plain = Recurrent("lstm", I, H).double()
    plain.load_state_dict({name.replace("0.0.cell.", "0.0."): value for name, value in rnn.state_dict().items()})
    x = batch([4, 2])
    torch.testing.assert_close(rnn(x)[0].values, plain(x)[0].values, rtol=0, atol=1e-12)


def test_two_dropouts_of_a_kind_drop_what_either_drops() -> None:
    half = {"name": "recurrent_dropout", "rate": 0.5}
    x = torch.randn(500, 1, I)
    twice = build({"name": "lstm", "wrap": [half, half]}, I, 64)
    [U] = leaves(twice.fixed(500, x), Product)
    assert U.mask is not None
    assert (U.mask == 0).double().mean().item() == pytest.approx(0.75, abs=0.02)
    on_candidate = {**half, "mode": "candidate"}
    twice = build({"name": "lstm", "wrap": [on_candidate, on_candidate]}, I, 64)
    fixed = twice.fixed(500, x)
    [parts] = course(twice, x, fixed)[1]
    assert (parts.candidate == 0).double().mean().item() == pytest.approx(0.75, abs=0.02)


def test_wrappers_compose_in_any_order() -> None:
    inside = model({"name": "lstm", "wrap": [WEIGHT_DROP, VARIATIONAL]}, engine="loop")
    outside = model({"name": "lstm", "wrap": [VARIATIONAL, WEIGHT_DROP]}, engine="loop")
    x, start = batch([5, 3]), random_states(inside, 2)
    for rnn in (inside, outside):
        [U] = leaves(rnn.fixed(2), Product)
        assert U.mask is not None
        assert (U.weight == 0).any()
        assert torch.isfinite(rnn(x, start)[0].values).all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "min_gru", "wrap": [WEIGHT_DROP]}, "weight_drop finds no recurrent weights in 'min_gru'"),
        ({"name": "min_gru", "wrap": [VARIATIONAL]}, "recurrent_dropout finds no recurrent weights in 'min_gru'"),
        ({"name": "elman", "wrap": [CANDIDATE]}, "recurrent_dropout finds no candidate in 'elman'"),
        ({"name": "slstm", "wrap": [{"name": "zoneout", "rate": 0.1}]}, "zoneout cannot keep the state 'c' of 'slstm'"),
        ({"name": "gru", "wrap": [{"name": "zoneout", "rate": {"c": 0.1}}]}, "'gru' has no state 'c' to zone out"),
        ({"name": "gru", "wrap": [{"name": "zoneout", "rate": 1.5}]}, "must be a probability from 0 to 1, but is 1.5"),
        ({"name": "gru", "wrap": [{"name": "weight_drop", "rate": 1.0}]}, "must be a probability from 0 to below 1"),
        (
            {"name": "gru", "wrap": [{**CANDIDATE, "input_rate": 0.1}]},
            "input_rate has an effect only with mode = 'variational'.",
        ),
        ({"name": "gru", "wrap": [{"name": "zoneout"}]}, "'zoneout' needs the option 'rate'"),
        ({"name": "gru", "wrap": [{"name": "zonout", "rate": 0.1}]}, "Did you mean 'zoneout'?"),
        ({"name": "gru", "wrap": 3}, "wrap must be a list of wrappers"),
        ({"name": "gru", "wrap": [3]}, "a wrapper is a name or a table with a name"),
        ("zoneout", "'zoneout' is a wrapper, not a cell"),
    ],
)
def test_a_wrapper_that_cannot_be_is_refused_in_words(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        build(spec, 3, 4)
    assert message in str(refusal.value)


def test_a_wrapped_cell_without_weights_of_its_own_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"weight_drop finds no recurrent weights in 'tests\.own_cells:Leaky'"):
        build({"name": "tests.own_cells:Leaky", "wrap": [WEIGHT_DROP]}, 3, 3)


def test_padding_does_not_change_which_masks_are_drawn() -> None:
    rnn = model({"name": "lstm", "wrap": [VARIATIONAL]}, engine="loop")
    x = batch([4, 2], extra=3)
    torch.manual_seed(3)
    long = rnn(x)[0].values[:, :4]
    torch.manual_seed(3)
    short = rnn(Padded(x.values[:, :4], x.lengths))[0].values
    torch.testing.assert_close(long, short, rtol=0, atol=1e-12)
