"""Stacks: depth, widths, directions, merges, mixes, skips, dropout, and what is refused."""

from __future__ import annotations

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from recurra import ConfigError, DataError, EngineError, Padded, Recurrent, detached
from recurra.cells import build
from recurra.engines import ENGINES, Work
from recurra.engines.cost import work_of
from recurra.stacks.one_step import lstm_step
from tests.variants import CELLS, batch, flat, model, random_states


def one_layer(rnn: Recurrent, number: int, way: int) -> Recurrent:
    """A single cell of a stack as a stack of its own."""
    cell = rnn._layers()[number][way]
    alone = Recurrent("lstm", cell.input_size, cell.hidden_size, direction="backward" if way else "forward").double()
    alone.cells[0][0].load_state_dict(cell.state_dict())  # type: ignore[index]
    return alone


def directions(rnn: Recurrent, number: int, x: Padded) -> list[Tensor]:
    return [one_layer(rnn, number, way)(x)[0].values for way in range(1 + rnn.bidirectional)]


def test_a_deep_stack_feeds_each_layer_to_the_next() -> None:
    rnn = model("lstm", 3, [4, 2, 5])
    x = batch([6, 3, 0])
    expected = x
    for number in range(3):
        expected = Padded(directions(rnn, number, expected)[0], x.lengths)
    outputs, states = rnn(x)
    torch.testing.assert_close(outputs.values, expected.values, rtol=0, atol=1e-12)
    assert rnn.output_size == 5
    assert [state.h.shape[1] for [state] in states] == [4, 2, 5]


MERGES: dict[str, Any] = {
    "concat": lambda rnn, f, b: torch.cat([f, b], -1),
    "mean": lambda rnn, f, b: (f + b) / 2,
    "sum": lambda rnn, f, b: f + b,
    "max": lambda rnn, f, b: torch.where(f > b, f, b),
    "projection": lambda rnn, f, b: torch.cat([f, b], -1) @ rnn.merges[0].linear.weight.T + rnn.merges[0].linear.bias,
    "mean_projection": lambda rnn, f, b: (f + b) / 2 @ rnn.merges[0].linear.weight.T + rnn.merges[0].linear.bias,
    "tests.own_cells:Difference": lambda rnn, f, b: torch.cat([f - b, torch.ones_like(f[..., :1])], -1),
}


@pytest.mark.parametrize("merge", MERGES)
def test_two_directions_are_merged_as_said(merge: str) -> None:
    rnn = model("lstm", 3, 4, bidirectional=True, merge=merge)
    x = batch([5, 2, 0, 1])
    outputs, _ = rnn(x)
    forward, backward = directions(rnn, 0, x)
    expected = Padded(MERGES[merge](rnn, forward, backward), x.lengths).zeroed()
    torch.testing.assert_close(outputs.values, expected.values, rtol=0, atol=1e-12)
    assert outputs.values.shape[-1] == rnn.output_size
    assert Recurrent("lstm", 3, 4, layers=2, bidirectional=True, merge=merge).output_size == rnn.output_size


def test_the_backward_direction_starts_after_the_last_real_element() -> None:
    rnn = model("lstm", 3, 4, bidirectional=True)
    x = batch([2], extra=5)
    outputs, [[_, backward]] = rnn(x)
    torch.testing.assert_close(outputs.values[0, 0, 4:], backward.h[0], rtol=0, atol=1e-12)
    by_hand = directions(rnn, 0, Padded(x.values[:, :2], x.lengths))[1]
    torch.testing.assert_close(outputs.values[:, :2, 4:], by_hand, rtol=0, atol=1e-12)


def layer_outputs(rnn: Recurrent, x: Padded) -> list[Tensor]:
    outputs = [directions(rnn, 0, x)[0]]
    for number in range(1, len(rnn.cells)):
        outputs.append(directions(rnn, number, Padded(outputs[-1], x.lengths))[0])
    return outputs


def test_the_layers_may_be_mixed() -> None:
    x = batch([4, 2])
    for mix in ("concat", "mean", "learned"):
        rnn = model("lstm", 3, 4, layers=3, mix=mix)
        each = layer_outputs(rnn, x)
        if mix == "concat":
            expected, size = torch.cat(each, -1), 12
        elif mix == "mean":
            expected, size = (each[0] + each[1] + each[2]) / 3, 4
        else:
            assert rnn.mix_weights is not None
            assert rnn.mix_scale is not None
            weights = rnn.mix_weights.exp() / rnn.mix_weights.exp().sum()
            expected, size = rnn.mix_scale * sum(w * e for w, e in zip(weights, each, strict=True)), 4
        torch.testing.assert_close(rnn(x)[0].values, expected, rtol=0, atol=1e-12)
        assert rnn.output_size == size


def test_a_fresh_learned_mix_is_the_mean() -> None:
    rnn = Recurrent("lstm", 3, 4, layers=2, mix="learned").double()
    x = batch([4, 2])
    first, second = layer_outputs(rnn, x)
    torch.testing.assert_close(rnn(x)[0].values, (first + second) / 2, rtol=0, atol=1e-12)


def test_residual_and_highway_go_past_a_layer() -> None:
    x = batch([4, 2, 0])
    residual = model("lstm", 3, 4, layers=2, skip="residual")
    [first] = directions(residual, 0, x)
    [second] = directions(residual, 1, Padded(first, x.lengths))
    torch.testing.assert_close(residual(x)[0].values, first + second, rtol=0, atol=1e-12)

    highway = model("lstm", 3, 4, layers=2, skip="highway")
    [first] = directions(highway, 0, x)
    [second] = directions(highway, 1, Padded(first, x.lengths))
    weight, bias = highway.transforms[0].parameters()
    t = torch.sigmoid(first @ weight.T + bias)
    torch.testing.assert_close(highway(x)[0].values, t * second + (1 - t) * first, rtol=0, atol=1e-12)


def test_dropout_falls_between_layers_in_training_alone() -> None:
    x = Padded.full(torch.randn(64, 30, 3).double())
    rnn = model("lstm", 3, 8, layers=2, dropout=0.3)
    dropped = rnn._dropped(1, torch.ones(64, 30, 8).double())
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert (dropped == 0).double().mean().item() == pytest.approx(0.3, abs=0.02)
    assert not torch.equal(rnn(x)[0].values, rnn(x)[0].values)
    rnn.eval()
    assert torch.equal(rnn(x)[0].values, rnn(x)[0].values)
    assert torch.equal(model("lstm", 3, 8, dropout=0.3)._dropped(0, x.values), x.values)


def test_locked_dropout_has_one_mask_for_all_steps() -> None:
    rnn = model("lstm", 3, 8, layers=2, dropout=0.5, locked=True)
    dropped = rnn._dropped(1, torch.ones(4, 9, 8).double())
    assert (dropped == dropped[:, :1]).all()
    assert not (dropped == dropped[:1]).all()
    with pytest.raises(ConfigError, match="locked dropout uses one mask for all steps of a row"):
        rnn.step(torch.zeros(1, 3).double())
    assert rnn.eval().step(torch.zeros(1, 3).double())[0].shape == (1, 8)


def test_states_go_in_and_come_out_per_layer_and_direction() -> None:
    rnn = model("lstm", 3, 4, layers=2, bidirectional=True)
    x, start = batch([3, 0]), random_states(rnn, 2)
    _, states = rnn(x, start)
    assert [[type(s).__name__ for s in layer] for layer in states] == [["LSTMState"] * 2] * 2
    for found, before in zip(flat(states), flat(start), strict=True):
        assert torch.equal(found[1], before[1])  # an empty row ends as it started
        assert not torch.equal(found[0], before[0])


def test_truncated_back_propagation_stops_at_the_cut() -> None:
    rnn = model("gru", 3, 4)
    first = batch([3]).values.requires_grad_()
    _, states = rnn(Padded.full(first))
    outputs, _ = rnn(batch([3]), detached(states))
    outputs.values.sum().backward()
    assert first.grad is None
    outputs, _ = rnn(batch([3]), states)
    outputs.values.sum().backward()
    assert first.grad is not None


def test_masks_that_last_a_sequence_can_be_kept_over_steps() -> None:
    rnn = model({"name": "lstm", "wrap": [{"name": "recurrent_dropout", "rate": 0.5}]}, 3, 4, engine="loop")
    x = batch([5, 5])
    fixed = rnn.fixed(2)
    whole, _ = rnn(x, fixed=fixed)
    states = None
    for t in range(5):
        y, states = rnn.step(x.values[:, t], states, fixed=fixed)
        torch.testing.assert_close(y, whole.values[:, t], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"skip": "residual"}, {"skip": "highway"}, {"mix": "learned"}])
def test_unchecked_steps_give_the_outputs_of_the_whole_sequence(options: dict[str, Any]) -> None:
    rnn, x = model("peephole_lstm", 4, 4, layers=3, engine="loop", **options), batch([5, 5], 4)
    whole, last = rnn(x)
    states, fixed = rnn.start(2), rnn.fixed(2)
    for t in range(5):
        y, states = rnn.advance(x.values[:, t], states, fixed)
        torch.testing.assert_close(y, whole.values[:, t], rtol=0, atol=1e-12)
    for found, expected in zip(flat(states), flat(last), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("variant", ["lstm", "lstm without bias", "lstm sigmoid", "peephole"])
def test_steps_on_a_gpu_are_those_of_the_cell(variant: str, dtype: torch.dtype) -> None:
    rnn = model(CELLS[variant], 4, 5, layers=2, engine="loop").eval().to("cuda", dtype)
    x, states, fixed = torch.randn(3, 4, device="cuda", dtype=dtype), random_states(rnn, 3), rnn.fixed(3)
    expected, after = rnn.advance(x, states, fixed)
    with torch.no_grad():
        found, states = rnn.advance(x, states, fixed)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}[dtype]
    for one, other in zip([found, *flat(states)], [expected, *flat(after)], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("variant", ["lstm sigmoid", "peephole", "coupled", "gru"])
def test_no_other_cell_is_taken_for_torchs_lstm(variant: str) -> None:
    cell, x = build(CELLS[variant], 4, 5), torch.randn(3, 4)
    assert lstm_step(cell, x, cell.start(3, x), cell.fixed(3, x)) is None


def test_an_lstm_that_is_masked_or_watched_is_not_taken_for_torchs() -> None:
    x = torch.randn(3, 4)
    dropping = build({"name": "lstm", "wrap": [{"name": "recurrent_dropout", "rate": 0.5}]}, 4, 5)
    hooked = build("lstm", 4, 5)
    hooked.from_input.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    for cell in (dropping, hooked):
        assert lstm_step(cell, x, cell.start(3, x), cell.fixed(3, x)) is None


def test_unchecked_steps_are_refused_where_steps_are() -> None:
    one_way, locked = Recurrent("lstm", 3, 4, direction="backward"), Recurrent("lstm", 3, 4, dropout=0.5, locked=True)
    for rnn, reason in ((one_way, "cannot run one step at a time"), (locked, "locked dropout uses one mask")):
        with pytest.raises(ConfigError, match=reason):
            rnn.advance(torch.zeros(1, 3), rnn.start(1), rnn.fixed(1))


def test_a_users_own_cell_works_without_a_word_to_anyone() -> None:
    rnn = Recurrent("tests.own_cells:Leaky", 3, 3, layers=2)
    outputs, [_, [state]] = rnn(Padded(torch.ones(1, 3, 3), torch.tensor([2])))
    torch.testing.assert_close(outputs.values[0, :, 0], torch.tensor([0.25, 0.5, 0.0]))
    assert state.h[0, 0] == 0.5


def test_the_engine_report_says_which_and_why() -> None:
    report = str(Recurrent("lstm", 3, 4, layers=2, bidirectional=True).engine_report())
    gradients = "inference only, but gradients are enabled (use torch.no_grad())"
    first, second = report.split("\nlayer 2, ")
    assert first.startswith(
        f"layer 1, lstm, both directions: vendor\n    not single: {gradients}\n    not planned: esti"
    )
    assert second.startswith(f"lstm, both directions: vendor\n    not single: {gradients}\n")
    assert re.search(r"not loop: estimated \d+\.\d times the time of vendor$", report)
    with torch.no_grad():
        report = str(Recurrent("lstm", 3, 4).engine_report())
    assert report.startswith("layer 1, lstm: single\n    not vendor: estimated 2.")
    assert "not scan: the step of 'lstm' is not known to be linear in its state" in report
    report = str(Recurrent({"name": "gru"}, 3, 4, engine="loop").engine_report())
    assert report.startswith("layer 1, gru: loop (asked for)")
    assert "not vendor: torch's GRU applies the reset gate after the product, this one before it" in report
    assert "not planned" not in report  # it could
    dropped = {"name": "lstm", "wrap": [{"name": "recurrent_dropout", "rate": 0.5}]}
    rnn = Recurrent(dropped, 3, 4)
    assert "torch has no kernel for 'recurrent_dropout' around 'lstm' in this mode" in str(rnn.engine_report())
    report = str(rnn.eval().engine_report(slower_ones=False))
    assert report == f"layer 1, recurrent_dropout: vendor\n    not single: {gradients}"


def test_auto_takes_the_engine_with_the_lowest_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    rnn = Recurrent({"name": "gru", "reset": "after"}, 3, 4)
    [layer] = rnn.engine_report().layers
    costs = dict(layer.costs)
    assert layer.engine.name == "planned"
    times = costs["vendor"] / costs["planned"]
    assert times > 2
    assert f"not vendor: estimated {times:.1f} times the time of planned" in str(rnn.engine_report())
    one_step = Padded.full(torch.zeros(1, 1, 3))
    assert rnn.engine_report(one_step).layers[0].engine.name == "loop"
    monkeypatch.setattr("recurra.engines.cost.compiler", lambda: None)
    assert rnn.engine_report().layers[0].engine.name == "vendor"
    [layer] = Recurrent("peephole_lstm", 3, 4).engine_report().layers
    assert layer.engine.name == "loop"  # torch would compute the row passes of a plan, more slowly
    assert dict(layer.refusals)["planned"] is None
    assert dict(layer.costs)["planned"] > 2 * dict(layer.costs)["loop"]


@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("shape", [(1, 1, 8), (1, 100, 64), (16, 25, 64), (64, 50, 256), (16, 1000, 256)])
@pytest.mark.parametrize("spec", ["lstm", "gru", "elman", "min_gru"])
def test_every_estimate_grows_with_the_work(spec: str, shape: tuple[int, int, int], training: bool) -> None:
    rows, steps, hidden = shape
    with torch.set_grad_enabled(training):
        [work] = works(spec, rows, steps, hidden)
        for engine in ENGINES:
            cost = engine.cost(work)
            assert 0 < cost < 10
            assert engine.cost(work._replace(steps=2 * steps)) > cost
            assert engine.cost(work._replace(rows=2 * rows)) >= cost
            assert engine.cost(work._replace(readers=2)) > 1.9 * cost
            assert engine.cost(work._replace(threads=4)) <= cost
            on_gpu = work._replace(device="cuda")
            assert engine.cost(on_gpu._replace(steps=2 * steps)) > engine.cost(on_gpu) > 0


def test_on_a_gpu_kernels_and_scans_beat_the_loop_unless_there_are_few_steps() -> None:
    costs = {}
    for steps in (2, 40):
        for spec in ("lstm", "min_gru"):
            [work] = works(spec, 16, steps, 64)
            costs[steps, spec] = {engine.name: engine.cost(work._replace(device="cuda")) for engine in ENGINES}
    assert costs[40, "lstm"]["vendor"] < costs[40, "lstm"]["loop"] / 5
    assert costs[40, "min_gru"]["scan"] < costs[40, "min_gru"]["loop"] / 2
    assert costs[2, "min_gru"]["loop"] < costs[2, "min_gru"]["scan"]


def works(spec: Any, rows: int, steps: int, hidden: int) -> list[Work]:
    """What the layers of a stack have to do."""
    rnn = Recurrent(spec, hidden, hidden)
    x = Padded.full(torch.zeros(rows, steps, hidden))
    return [work_of(rnn._readers(0, rnn.start(rows), rnn.fixed(rows)), x)]


def test_work_is_read_from_the_cell_inside_its_wrappers() -> None:
    [work] = works({"name": "gru", "wrap": [{"name": "zoneout", "rate": 0.1}]}, 2, 7, 8)
    assert (work.cell.__name__, work.rows, work.steps, work.input_size, work.hidden_size) == ("GRU", 2, 7, 8, 8)
    assert (work.width, work.weights, work.readers, work.training) == (3 * 8, 3 * 8 * 8, 1, True)
    [work] = works("min_gru", 2, 7, 8)
    assert (work.width, work.weights) == (2 * 8, 0)


def test_an_engine_that_is_asked_for_and_refuses_is_reported_not_raised() -> None:
    report = str(Recurrent("min_gru", 3, 4, engine="vendor").engine_report())
    assert report == (
        "layer 1, min_gru: vendor (asked for), but it refuses: torch has no kernel for 'min_gru'\n"
        "    not single: it runs only 'lstm', but this is 'min_gru'\n"
        "    not graph: it runs on a GPU, but the batch is on cpu"
    )


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("peephole_lstm", "torch has no kernel for 'peephole_lstm'"),
        ({"name": "lstm", "candidate": "sigmoid"}, "torch's LSTM has a tanh candidate, this one 'sigmoid'"),
        ("gru", "torch's GRU applies the reset gate after the product, this one before it"),
        ({"name": "gru", "reset": "after", "candidate": "sigmoid"}, "torch's GRU has a tanh candidate"),
        ({"name": "elman", "activation": "identity"}, "torch's RNN has tanh or relu, this one 'identity'"),
        ("tests.own_cells:Matchbox", "torch has no kernel for 'tests.own_cells:Matchbox'"),
    ],
)
def test_an_engine_that_cannot_run_the_cell_says_why(spec: Any, reason: str) -> None:
    rnn = Recurrent(spec, 3, 4, engine="vendor")
    with pytest.raises(EngineError) as refusal:
        rnn(Padded.full(torch.zeros(1, 2, 3)))
    assert "the engine 'vendor' cannot run the cell" in str(refusal.value)
    assert reason in str(refusal.value)
    assert "engine = 'auto'" in str(refusal.value)


def test_the_vendor_does_not_tell_every_c() -> None:
    rnn = Recurrent("lstm", 3, 4, engine="vendor")
    with pytest.raises(EngineError, match="torch's LSTM does not return c for every step"):
        rnn(Padded.full(torch.zeros(1, 2, 3)), every=True)
    with pytest.raises(EngineError, match="there is no step to run"):
        rnn(Padded.full(torch.zeros(1, 0, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bidirectional": 2}, "bidirectional must be true or false, but is 2"),
        ({"locked": "yes"}, "locked must be true or false, but is 'yes'"),
        ({"hidden_size": None}, "hidden_size must be a whole number of at least 1, but is None"),
        ({"hidden_size": 4.0}, "hidden_size must be a whole number of at least 1, but is 4.0"),
        ({"merge": "sumt"}, "merge = 'sumt' is not known. Did you mean 'sum'?"),
        ({"layers": 0}, "layers must be a whole number of at least 1, but is 0"),
        ({"layers": 1.5}, "layers must be a whole number of at least 1, but is 1.5"),
        ({"hidden_size": 0}, "hidden_size must be a whole number of at least 1, but is 0"),
        ({"hidden_size": []}, "gives 0 widths, but there are no layers"),
        ({"hidden_size": [3, 4], "layers": 3}, "gives 2 widths, but there are 3 layers"),
        ({"input_size": -2}, "input_size must be a whole number of at least 1, but is -2"),
        ({"direction": "back"}, "direction = 'back' is not known. Did you mean 'backward'?"),
        ({"direction": "backward", "bidirectional": True}, "a bidirectional stack has no single direction"),
        ({"merge": "concatt", "bidirectional": True}, "merge = 'concatt' is not known. Did you mean 'concat'?"),
        ({"merge": "tests.own_cells:Leaky", "bidirectional": True}, "is not a merge"),
        ({"mix": "lst"}, "mix = 'lst' is not known. Did you mean 'last'?"),
        ({"skip": "residul"}, "Did you mean 'residual'?"),
        (
            {"skip": "residual", "hidden_size": [4, 5]},
            "so all layers must have the same size, but they have the sizes 4, 5",
        ),
        ({"mix": "mean", "hidden_size": [4, 5]}, "mix = 'mean' averages the layers, so all layers must have the"),
        ({"dropout": 1.0}, "dropout must be a probability from 0 to below 1, but is 1.0"),
        ({"engine": "vendr"}, "engine = 'vendr' is not known. Did you mean 'vendor'?"),
        ({"cell": "lsmt"}, "Did you mean 'lstm'?"),
    ],
)
def test_a_stack_that_cannot_be_is_refused_in_words(options: dict[str, Any], message: str) -> None:
    arguments = {"cell": "lstm", "input_size": 3, "hidden_size": 4, **options}
    with pytest.raises(ConfigError) as refusal:
        Recurrent(**arguments)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 3, 3), "a Recurrent needs a Padded batch, but got a Tensor. Pass Padded(x, lengths)"),
        (
            Padded.full(torch.zeros(2, 3, 4)),
            "needs inputs of shape (rows, steps, 3), but the batch has shape (2, 3, 4)",
        ),
        (Padded.full(torch.zeros(2, 3)), "but the batch has shape (2, 3)"),
        (
            Padded.full(torch.zeros(2, 3, 3).double()),
            "the batch has dtype torch.float64, but the weights have torch.float32",
        ),
        (Padded(torch.zeros(2, 3, 3), torch.tensor([3, 4])), "row 1 has length 4, but the batch has only 3 steps"),
        (Padded(torch.zeros(2, 3, 3), torch.tensor([3, -1])), "row 1 has length -1"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_in_words(x: Any, message: str) -> None:
    rnn = Recurrent("lstm", 3, 4)
    for read in (rnn, rnn.parts):
        with pytest.raises(DataError) as refusal:
            read(x)
        assert message in str(refusal.value)


@pytest.mark.parametrize("options", [{"bidirectional": True}, {"direction": "backward"}])
def test_a_stack_that_reads_backward_is_refused_a_step(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cannot run one step at a time: its first output needs the last input"):
        Recurrent("lstm", 3, 4, **options).step(torch.zeros(1, 3))


def test_a_step_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(DataError, match=r"needs inputs of shape \(rows, steps, 3\)"):
        Recurrent("lstm", 3, 4).step(torch.zeros(1, 2))
    for x, found in ((torch.zeros(3), r"\(3,\)"), ([1.0], "list"), (Padded.full(torch.zeros(1, 1, 3)), "Padded")):
        with pytest.raises(DataError, match=rf"step needs one element per row, of shape \(rows, 3\), but got {found}"):
            Recurrent("lstm", 3, 4).step(x)  # type: ignore[arg-type]


def test_sizes_may_be_numpys() -> None:
    rnn = Recurrent("lstm", np.int64(3), np.int32(4), layers=np.int64(2))  # type: ignore[arg-type]
    assert rnn.output_size == 4


@pytest.mark.parametrize("engine", ["vendor", "planned", "loop"])
def test_relu_does_not_run_away_on_padding(engine: str) -> None:
    rnn = Recurrent({"name": "elman", "activation": "relu"}, 3, 4, engine=engine)
    with torch.no_grad():
        rnn.get_parameter("cells.0.0.from_state").copy_(1.2 * torch.eye(4))
        rnn.get_parameter("cells.0.0.from_input.bias").fill_(0.1)
    outputs, _ = rnn(Padded(torch.randn(1, 600, 3), torch.tensor([3])))
    outputs.values.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in rnn.parameters() if p.grad is not None)


@pytest.mark.parametrize("engine", ["vendor", "planned", "loop"])
def test_an_empty_row_keeps_any_state(engine: str) -> None:
    rnn = Recurrent("lstm", 3, 4, engine=engine)
    start = (((torch.full((2, 4), 1e5), torch.ones(2, 4)),),)
    _, [[state]] = rnn(Padded(torch.randn(2, 3, 3), torch.tensor([0, 3])), start)  # a plain tuple will do
    assert state.h[0].tolist() == [1e5] * 4
    assert state.c[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("skip", ["none", "residual", "highway"])
@pytest.mark.parametrize(("bidirectional", "merge"), [(False, "concat"), (True, "sum"), (True, "projection")])
def test_the_parts_of_the_last_layer_are_what_comes_out(skip: Any, bidirectional: bool, merge: str) -> None:
    rnn = model("tests.own_cells:Backwards", 4, 4, layers=2, bidirectional=bidirectional, merge=merge, skip=skip)
    x = batch([5, 0, 3], 4)
    _, every = rnn(x, every=True)
    for parts, states in zip(rnn.parts(x), every, strict=True):
        for part, state in zip(parts, states, strict=True):
            assert part._fields == ("twice", "h")  # in the order the cell gives them
            torch.testing.assert_close(part.h, state.h, rtol=0, atol=1e-12)


def test_the_parts_of_no_steps_have_their_names() -> None:
    [[parts]] = Recurrent("lstm", 3, 4).parts(Padded.full(torch.zeros(2, 0, 3)))
    assert parts._fields == ("h", "c", "i", "f", "candidate", "o")
    assert parts.f.shape == (2, 0, 4)


def test_a_highway_carries_at_first() -> None:
    rnn = Recurrent("lstm", 3, 4, layers=2, skip="highway")
    assert rnn.get_parameter("transforms.0.bias").tolist() == [-1.0] * 4


def test_a_report_leaves_the_random_numbers_alone() -> None:
    rnn = Recurrent({"name": "lstm", "wrap": [{"name": "weight_drop", "rate": 0.5}]}, 3, 4)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    rnn.engine_report()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("spec", ["lstm", "peephole_lstm", {"name": "elman", "activation": "identity"}, "ind_rnn"])
def test_a_stack_can_be_copied_pickled_and_differentiated_as_a_function(spec: Any) -> None:
    rnn = model(spec)
    x = batch([4, 2])
    for other in (copy.deepcopy(rnn), pickle.loads(pickle.dumps(rnn))):
        assert torch.equal(other(x)[0].values, rnn(x)[0].values)
    rnn.engine = "loop"

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        outputs, _ = torch.func.functional_call(rnn, parameters, (x,))
        return outputs.values.sum()

    found = torch.func.grad(loss)({name: p.detach() for name, p in rnn.named_parameters()})
    rnn(x)[0].values.sum().backward()
    for name, parameter in rnn.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=0, atol=1e-12)


def test_many_threads_may_read_at_once() -> None:
    rnn = model("peephole_lstm", layers=2, bidirectional=True).eval()
    x = batch([6, 3, 0])
    expected = rnn(x)[0].values
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: rnn(x)[0].values, range(32)))
    assert all(torch.equal(answer, expected) for answer in answers)


@pytest.mark.parametrize("spec", ["lstm", "peephole_lstm"])
def test_autocast_is_allowed_and_its_states_can_be_used_outside(spec: str) -> None:
    rnn = Recurrent(spec, 3, 4)
    x = Padded.full(torch.randn(2, 5, 3))
    expected, _ = rnn(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, states = rnn(x)
    torch.testing.assert_close(outputs.values.float(), expected.values, rtol=0, atol=0.05)
    assert rnn(x, states)[0].values.dtype == torch.float32


def test_states_that_do_not_fit_are_refused_in_words() -> None:
    rnn, x = Recurrent("lstm", 3, 4, layers=2), Padded.full(torch.zeros(2, 3, 3))
    with pytest.raises(DataError, match="must hold 2 layers with 1 direction"):
        rnn(x, Recurrent("lstm", 3, 4).start(2))
    with pytest.raises(
        DataError, match=r"layer 1 needs the start state \(h, c\) of shapes \[\(2, 4\), \(2, 4\)\], but got"
    ):
        rnn(x, rnn.start(3))
    with pytest.raises(DataError, match="layer 1 needs the start state"):
        rnn.step(torch.zeros(2, 3), rnn.start(3))
    with pytest.raises(
        DataError, match=r"layer 1 got a start state of torch\.float64, but the batch has dtype torch\.float32"
    ):
        rnn(x, Recurrent("lstm", 3, 4, layers=2).double().start(2))
    for nonsense in (3, [[None], [None]], [3, 4]):
        with pytest.raises(DataError, match=r"states must hold 2 layers|layer 1 needs the start state"):
            rnn(x, nonsense)


def test_a_cell_builds_the_same_alone_and_in_a_stack() -> None:
    torch.manual_seed(1)
    alone = build("gru", 3, 4)
    torch.manual_seed(1)
    stacked = Recurrent("gru", 3, 4)._layers()[0][0]
    assert all(torch.equal(a, b) for a, b in zip(alone.parameters(), stacked.parameters(), strict=True))
