"""Forecasts by a decoder that looks back at the past: against the equations in NumPy, and through the whole task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.analysis.looking_back import looking_back
from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.models import reviewing
from recurra.models.at_once import Seen
from recurra.models.attending import Attending
from recurra.padding import Padded
from recurra.reports.examined import gradients_of_run
from recurra.runs import begin, resume, setup
from recurra.training.explaining import explain
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.cells.equations import gru, lstm
from tests.tasks.test_direct_forecasts import seasonal, trained
from tests.tasks.test_forecasting import SMALL, write
from tests.training.test_trainer import StopsAt

Floats = NDArray[np.float64]

LOOKING = ("model.ahead=attention", "model.decoder.hidden=8", "model.lags=12")


def by_hand(ahead: Any, h: Floats, count: int, future: Floats | None, cell: Any = gru) -> tuple[Floats, Floats]:
    """f and α of each step ahead, (K, F) and (K, L), by the equations: from h (L, H), of which `count` are real."""
    p = {name: value.detach().double().numpy() for name, value in ahead.named_parameters()}
    of_cell = {name.rpartition("0.0.")[2]: value for name, value in p.items() if name.startswith("wiring.cells.")}
    h = h @ p["memory.weight"].T
    m = h + p["places"]
    state = {"h": np.tanh(p["bridge.maps.0.h.weight"] @ h[-1] + p["bridge.maps.0.h.bias"])}
    if cell is lstm:
        state["c"] = p["bridge.maps.0.c.weight"] @ h[-1] + p["bridge.maps.0.c.bias"]
    features, weights = [], []
    for k in range(ahead.horizon):
        x = p["numbers.weight"][k] if future is None else np.concatenate([future[k], p["numbers.weight"][k]])
        state = cell(of_cell, {}, x, state, lambda a: a, lambda a: a)
        s = state["h"]
        scores = [np.exp(s @ m[j] / np.sqrt(len(s))) if j >= len(m) - count else 0.0 for j in range(len(m))]
        alpha = np.array(scores) / sum(scores)
        seen = np.concatenate([s, alpha @ m])
        features.append(np.tanh(p["wiring.readout.mix.weight"] @ seen + p["wiring.readout.mix.bias"]))
        weights.append(alpha)
    return np.array(features), np.array(weights)


@pytest.mark.parametrize(("name", "cell"), [("gru", gru), ("lstm", lstm)])
@pytest.mark.parametrize("known", [0, 2])
def test_features_and_weights_are_those_of_the_equations(name: str, cell: Any, known: int) -> None:
    torch.manual_seed(1)
    ahead = Attending(
        5, 1, horizon=4, lags=7, season=3, future_size=known, cell=name, hidden=6, attention="scaled_dot"
    ).double()
    with torch.no_grad():
        for parameter in ahead.parameters():
            parameter.normal_(std=0.7)
    h, z = torch.randn(2, 3, 7, 5).double(), torch.randn(2, 3, 4, known).double()
    counts = torch.tensor([[7, 1, 4], [2, 7, 6]])
    seen, future = Seen(ahead.kept(h), counts), z if known else None
    features, weights = ahead(seen, future), ahead.looked(seen, future)
    assert weights is not None
    for row in np.ndindex(2, 3):
        f, alpha = by_hand(ahead, h[row].numpy(), int(counts[row]), z[row].numpy() if known else None, cell)
        assert np.allclose(features[row].detach(), f, atol=1e-12)
        assert np.allclose(weights[row].detach(), alpha, atol=1e-12)
    assert torch.allclose(ahead(seen, None if future is None else future[..., :2, :], 2), features[..., :2, :])


@pytest.mark.parametrize("steps", [60, 9])  # more than are looked at, and fewer
def test_forecasts_are_those_of_the_equations(tmp_path: Path, steps: int) -> None:
    file = seasonal(tmp_path / "a.csv", 60)
    options = ("training.steps=3", "training.precision=float64", "model.output=gaussian")
    model = trained(tmp_path, file, *options, *LOOKING)
    network: Any = model.model.double()
    task: Any = model.task
    [whole] = task.read([file])
    series = whole.cut(0, steps)
    z = task.conventions.unit_of(series).scaled(series.values).astype(np.float32).astype(np.float64)
    h = network.read(Padded.full(torch.from_numpy(z)[None]))[0].values[0].detach().numpy()
    h, recent = (np.concatenate([np.repeat(each[:1], 12, axis=0), each])[-12:] for each in (h, z))
    f, _ = by_hand(network.direct, h, min(steps, 12), None)
    base = network.direct.base(torch.from_numpy(recent)).detach().numpy()
    readout = network.density.readout
    mean = f @ readout.weight[:1].detach().numpy().T + readout.bias[:1].detach().numpy() + base
    [found] = task.predict(network, task.batch([task.encode(series)]))
    assert np.allclose(found.values, mean, rtol=1e-6)


def test_reviews_forecast_from_each_origin_what_is_predicted_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a long series is reviewed in parts, whose first steps look at those of the part before."""
    file = seasonal(tmp_path / "a.csv", 60)
    model = trained(tmp_path, file, "training.steps=5", *LOOKING, "model.horizon=2")
    task: Any = model.task
    network: Any = model.model
    [series] = task.read([file])
    row, origins = task.encode(series), [np.array([1, 9, 15, 16, 17, 40, 57])]
    for chunk in (2048, 16):
        monkeypatch.setattr(reviewing, "CHUNK", chunk)
        monkeypatch.setattr(reviewing, "LARGEST", 2**24 if chunk == 2048 else 5 * 12 * 8)
        [review] = reviewing.review(network, task.batch([row]), origins, horizon=3, quantiles=True)
        [observed] = reviewing.observed(network, task.batch([row]))
        for number, origin in enumerate(origins[0]):
            [alone] = network.predict(task.batch([task.encode(series.cut(0, int(origin)))]), horizon=3)
            assert review.fan is not None
            assert np.allclose(review.ahead[number], alone.values, atol=1e-5)
            assert np.allclose(review.fan[number], alone.fan, atol=1e-5)
            assert np.allclose(review.next[origin], alone.means[0], atol=1e-5)
            assert np.allclose(observed.expected[origin], alone.means[0], atol=1e-5)


def test_a_horizon_beyond_that_of_training_looks_at_its_own_forecasts(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 70)
    model = trained(tmp_path, file, "training.steps=5", *LOOKING)
    near, far = (model.with_settings([f"decoding.horizon={horizon}"]) for horizon in (3, 8))
    [short] = near.predict_file(file, [], detail=True)
    [long] = far.predict_file(file, [], detail=True)
    assert np.allclose(long.detail["values"][:3], short.detail["values"])
    rows = "".join(f"{70 + k},s0,{value[0]!r}\n" for k, value in enumerate(short.detail["values"]))
    [again] = near.predict_file(write(tmp_path / "fed.csv", Path(file).read_text() + rows), [], detail=True)
    assert np.allclose(long.detail["values"][3:6], again.detail["values"], rtol=1e-4)


def test_what_is_known_of_a_step_ahead_is_read_at_that_step(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x, drive = draw.normal(size=40), draw.normal(size=43)
    table = [f"{t},{x[t] if t < 40 else ''},{drive[t]}\n" for t in range(43)]
    file = write(tmp_path / "a.csv", "step,x,drive\n" + "".join(table))
    model = trained(tmp_path, file, "data.future=drive", "training.steps=2", "data.season=4", *LOOKING)
    [before] = model.predict_file(file, [], detail=True)
    other = write(tmp_path / "b.csv", "step,x,drive\n" + "".join([*table[:-1], "42,,7.5\n"]))
    [after] = model.predict_file(other, [], detail=True)
    is_same = np.isclose(np.array(before.detail["values"]), np.array(after.detail["values"]), rtol=1e-9)
    assert is_same.ravel().tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("cell", "attention", "wiring"),
    [
        ("lstm", "additive", "feeding"),
        ("slstm", {"name": "projected_dot", "heads": 2}, "inside"),
        ({"name": "gru", "wrap": [{"name": "zoneout", "rate": 0.1}]}, "bilinear", "conditional"),
        ("gru_d", {"name": "dot", "terms": ["coverage"]}, "outside"),
    ],
)
def test_any_cell_score_and_wiring_looks_at_what_is_there(cell: Any, attention: Any, wiring: str) -> None:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "horizon": 3,
        "lags": 6,
        "season": 2,
        "hidden": 4,
        "layers": 1 if wiring == "inside" else 2,
    }
    ahead = Attending(5, 1, cell=cell, attention=attention, wiring=wiring, **sizes).eval()
    h = torch.randn(2, 6, 5)
    counts = torch.tensor([6, 2])
    weights = ahead.looked(Seen(ahead.kept(h), counts))
    assert weights is not None
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert not weights[1, :, :4].any()
    h[1, :4] = 9.0  # which is not there
    features = ahead(Seen(ahead.kept(h), counts))
    h[1, :4] = -9.0
    assert torch.equal(ahead(Seen(ahead.kept(h), counts)), features)


def test_a_cell_that_reads_gaps_has_a_decoder_without_them(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 50)
    model = trained(tmp_path, file, "training.steps=2", *LOOKING, "model.cell=gru_d", "model.wiring=feeding")
    [answer] = model.predict_file(file, [], detail=True)
    assert np.isfinite(answer.detail["values"]).all()
    network: Any = model.model
    [observed] = reviewing.observed(network, model.task.batch([model.task.encode(next(iter(model.task.read([file]))))]))
    assert np.isfinite(observed.expected[1:]).all()


def test_the_past_of_a_transformer_is_looked_at_too(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 50)
    small = [each for each in SMALL if not each.startswith(("model.cell", "model.engine", "model.hidden"))]
    options = [*small, "training.steps=2", *LOOKING, "model.encoder=transformer", "model.hidden=16"]
    this = setup("forecasting", given={"train": file}, overrides=options)
    begin(this, tmp_path / "run", Silent())
    model = load(tmp_path / "run")
    assert "Transformer 16, LSTM 8 decoder with attention over 12 steps" in model.task.described()
    [answer] = model.predict_file(file, [], detail=True)
    assert np.isfinite(answer.detail["values"]).all()


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    file = seasonal(tmp_path / "a.csv", 90, series=3)
    options = ["training.epochs=3", "training.batch_tokens=96", "data.origins=192", "model.dropout=0.2", *LOOKING]
    whole = trained(tmp_path / "whole", file, *options)
    this = setup("forecasting", given={"train": file}, overrides=[*SMALL, *options])
    with pytest.raises(MemoryError):
        begin(this, tmp_path / "cut", StopsAt(3))
    resume(tmp_path / "cut", Silent())
    cut = load(tmp_path / "cut")
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, cut.model.state_dict()[name]), name


def test_runs_that_look_back_and_others_forecast_together_with_calibrated_intervals(tmp_path: Path) -> None:
    file, later = seasonal(tmp_path / "a.csv", 80), seasonal(tmp_path / "b.csv", 40, start=80)
    options = ("training.steps=5", "evaluation.stride=3", "decoding.coverage=0.8", "data.log=false")
    one = trained(tmp_path / "one", file, *options, *LOOKING, valid=later)
    two = trained(tmp_path / "two", file, *options, "model.lags=12", valid=later)
    assert "attention" in one.task.viewers()
    assert "attention" not in two.task.viewers()
    both = load(f"{tmp_path / 'one' / 'run'},{tmp_path / 'two' / 'run'}")
    found = [next(iter(each.predict_file(file, [], detail=True))).detail for each in (one, two, both)]
    assert np.allclose(found[2]["values"], np.mean([found[0]["values"], found[1]["values"]], axis=0))
    assert np.all(np.array(found[2]["low"]) < np.array(found[2]["high"]))
    assert "calibrated_coverage" in one.evaluate(later).values
    assert one.backtest(file, windows=2, step=6).table().rows


def test_the_view_shows_how_much_each_step_ahead_looked_at_each_known_step(tmp_path: Path) -> None:
    rows = "".join(f"{2000 + t // 12}-{t % 12 + 1:02},{t % 5}.5\n" for t in range(40))
    file = write(tmp_path / "a.csv", "month,x\n" + rows)
    model = trained(tmp_path, file, "training.steps=2", "model.ahead=attention")
    found: Any = explain(model, f"{file}:2", show="attention").view
    # Seven years are looked at, of which the series has 40 months.
    assert (found.rows, found.columns[0], found.columns[-1]) == (("2003-05", "2003-06", "2003-07"), "40", "1")
    assert (found.numbers["past"][0], found.numbers["past"][-1]) == ("2000-01", "2003-04")
    assert found.weights.sum(1) == pytest.approx(100)
    network: Any = model.model
    [weights] = network.looked(model.task.batch([model.task.encode(next(iter(model.task.read([file]))))]))
    assert np.allclose(found.weights, 100 * weights)
    halves = looking_back(np.arange(100.0)[None] / 4950, [str(t) for t in range(100)], ["100"])
    assert halves.columns[-2:] == ("6", "3")  # three steps in each
    assert np.allclose(np.asarray(halves.weights)[0, [0, -1]], [0, 100 * (97 + 98 + 99) / 4950])
    further = model.with_settings(["decoding.horizon=5"])
    assert (
        "the first 3 steps of the forecast (model.horizon)"
        in explain(further, f"{file}:2", show="attention").view.caption
    )
    with pytest.raises(DataError, match="the series has no steps that a forecast could look at"):
        explain(model, "[]", show="attention")
    with pytest.raises(ConfigError, match="'attention' predicts all steps of the horizon at once and feeds nothing"):
        model.free_running(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["model.attention=dot"], r"model\.attention = 'dot' has no effect: it belongs to model\.ahead = 'attention'"),
        (["model.wiring=feeding", "model.ahead=direct"], r"model\.wiring = 'feeding' has no effect"),
        (["model.decoder.hidden=5"], r"model\.decoder\.hidden = 5 has no effect"),
        (["model.ahead=attention", "model.decoder.layers=0"], r"model\.decoder\.layers must be at least 1"),
        (["model.ahead=attention", 'model.attention={name="dot", look="hard"}'], "needs a loss of its own"),
        (["model.ahead=attention", "model.attention=dott"], "dott"),
        (
            ["model.ahead=attention", "decoding.paths=5"],
            r"'attention' predicts all steps at once, which decoding\.paths",
        ),
        (
            ["model.ahead=attention", "data.difference=true"],
            r"'attention' predicts all steps at once, which data\.diff",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    file = seasonal(tmp_path / "a.csv", 40)
    with pytest.raises(ConfigError, match=message):
        trained(tmp_path, file, "training.steps=1", *options)


@pytest.mark.parametrize("wiring", ["outside", "feeding"])
def test_gates_of_the_decoder_are_those_of_the_equations(tmp_path: Path, wiring: str) -> None:
    rows = "".join(f"{2000 + t // 12}-{t % 12 + 1:02},{t % 5}.5\n" for t in range(40))
    file = write(tmp_path / "a.csv", "month,x\n" + rows)
    model = trained(tmp_path, file, "training.steps=2", *LOOKING, f"model.wiring={wiring}", "model.cell=gru")
    found: Any = explain(model, f"{file}:2", show="decoder").view
    assert found.title == "Gates while it forecast"
    assert found.tokens == ["2003-05", "2003-06", "2003-07"]
    network: Any = model.model.double()
    p = {name: value.detach().numpy() for name, value in network.direct.named_parameters()}
    of_cell = {name.rpartition("0.0.")[2]: value for name, value in p.items() if name.startswith("wiring.cells.")}
    batch = model.task.batch([model.task.encode(next(iter(model.task.read([file]))))])
    h = network.read(network.seen(batch))[0].values[0].detach().numpy() @ p["memory.weight"].T
    m = h[-12:] + p["places"]
    state = {"h": np.tanh(p["bridge.maps.0.h.weight"] @ h[-1] + p["bridge.maps.0.h.bias"])}
    fed = np.zeros(len(p["wiring.readout.mix.weight"]))
    for k in range(3):
        number = p["numbers.weight"][k]
        x = np.concatenate([number, fed]) if wiring == "feeding" else number
        state = gru(of_cell, {}, x, state, lambda a: a, lambda a: a)
        for name, value in state.items():
            given = found.values[name]
            assert given.means[k] == pytest.approx(value.mean(), abs=1e-6), name
            assert given.rows[0][k] == pytest.approx(value[given.units[0]], abs=1e-6), name
        scores = np.exp(m @ state["h"] / np.sqrt(8))
        seen = np.concatenate([state["h"], scores / scores.sum() @ m])
        fed = np.tanh(p["wiring.readout.mix.weight"] @ seen + p["wiring.readout.mix.bias"])


@pytest.mark.parametrize("wiring", ["outside", "feeding", "inside", "conditional"])
def test_gradients_of_the_decoder_are_those_that_autograd_finds(tmp_path: Path, wiring: str) -> None:
    file = seasonal(tmp_path / "a.csv", 30)
    model = trained(tmp_path, file, "training.steps=2", *LOOKING, f"model.wiring={wiring}", "evaluation.stride=3")
    found = gradients_of_run(model, file)
    own = [layer for layer in found.layers if layer.title.startswith("direct.wiring")]
    assert [layer.steps for layer in own] == [model.task.settings.model.horizon] * (2 if wiring == "conditional" else 1)
    assert all(len(layer.gradient["h"]) == layer.steps for layer in own)
    assert any(layer.title.startswith("recurrent") for layer in found.layers)


def test_gates_of_a_decoder_are_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = seasonal(tmp_path / "a.csv", 30)
    model = trained(tmp_path, file, "training.steps=2", *LOOKING, "model.decoder.cell=ntm")
    asked = ["explain", str(model.folder), f"{file}:2"]
    for options, said in (
        (["--show", "decoder", "--layer", "2"], "--layer 2: this decoder has one layer, counted from 1."),
        (["--show", "decoder", "--direction", "backward"], "--direction backward: a decoder reads forward only."),
    ):
        assert main([*asked, *options]) == 2
        assert said in capsys.readouterr().err
    assert main([*asked, "--show", "decoder_memory"]) == 0
    said = capsys.readouterr().out
    assert "ntm, layer 1 of 1 of the decoder" in said
    assert "writes" in said
    assert "reads" in said
    other = trained(tmp_path / "other", file, "training.steps=2", *LOOKING)
    assert "decoder_memory" not in other.task.viewers()
