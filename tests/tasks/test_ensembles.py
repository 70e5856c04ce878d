"""Several forecasters or language models wherever a run is named: backtests, anomalies, streams, free running."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError
from recurra.models.together import Together
from recurra.training.trained import Trained, load
from tests.tasks import test_language_model
from tests.tasks.test_direct_forecasts import trained
from tests.tasks.test_forecast_output import KINDS, close, dated, untrained
from tests.tasks.test_forecasting import write


def answering_as_one(*members: Trained) -> Trained:
    """Networks as `load` joins those of several runs."""
    tasks = [each.task for each in members]
    return Trained(tasks[0], Together(tasks, [each.model for each in members]), Path(), others=[Path()])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A table of two shops, and two runs on it with other cells, of which only one was told of the calendar."""
    folder = tmp_path_factory.mktemp("ensembles")
    file = dated(folder / "a.csv")
    own = [
        "data.series=shop",
        "data.values=['sold']",
        "decoding.horizon=3",
        "model.ahead=recursive",
        "training.steps=3",
        "model.engine=loop",
    ]
    others = (["training.seed=1"], ["model.cell=gru", "model.hidden=5", "data.calendar=['weekday']"])
    return file, [
        str(trained(folder / str(number), file, *own, *other, valid=file).folder) for number, other in enumerate(others)
    ]


def test_a_backtest_of_several_runs_is_scored_by_their_mean_forecast(
    runs: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    file, folders = runs
    both, *alone = (load(each).backtest(file, windows=2, step=4) for each in (folders, *folders))
    for joined, *each in zip(both.forecasts, *(one.forecasts for one in alone), strict=True):
        np.testing.assert_allclose(joined.said["model"], np.mean([one.said["model"] for one in each], axis=0))
        np.testing.assert_allclose(joined.fan, np.mean([one.fan for one in each], axis=0))
        np.testing.assert_array_equal(joined.said["theta"], each[0].said["theta"])
    assert main(["backtest", ",".join(folders), file, "--windows", "2", "--step", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["model"] == pytest.approx(both.scores()["model"])


@pytest.mark.slow
def test_several_runs_are_each_trained_anew_before_an_origin(
    runs: tuple[str, list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, folders = runs
    said = list[list[float]]()
    for names in (",".join(folders), *folders):
        forecasts = tmp_path / f"{len(said)}.csv"
        assert main(["backtest", names, file, "--refit", "--csv", str(forecasts)]) == 0
        assert "trained anew for each" in capsys.readouterr().out
        said.append([float(row["forecast"]) for row in csv.DictReader(forecasts.read_text("utf-8").splitlines())])
    np.testing.assert_allclose(said[0], np.mean(said[1:], axis=0), rtol=1e-6)


def test_anomalies_of_several_runs_are_those_of_the_mixture_of_their_densities(
    runs: tuple[str, list[str]], tmp_path: Path
) -> None:
    file, folders = runs
    assert main(["evaluate", ",".join(folders), file, "--anomalies", str(tmp_path / "odd.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "odd.csv").read_text("utf-8").splitlines()))
    tables = [load(folder).anomalies(file) for folder in folders]
    alone = [[dict(zip(found.columns, row, strict=True)) for row in found.rows] for found in tables]
    for row, *each in zip(rows, *alone, strict=True):
        density = np.mean([math.exp(-float(one["surprise"])) for one in each])
        assert float(row["surprise"]) == pytest.approx(-math.log(density), rel=1e-5)
        assert float(row["expected"]) == pytest.approx(np.mean([float(one["expected"]) for one in each]), rel=1e-6)
        # One side of each member: the other is what is left of 1.
        below = [
            float(one["tail"]) / 2 if float(one["value"]) < float(one["expected"]) else 1 - float(one["tail"]) / 2
            for one in each
        ]
        assert float(row["tail"]) == pytest.approx(2 * min(np.mean(below), 1 - np.mean(below)), rel=1e-4, abs=1e-6)
    nll = load(folders).evaluate(file).values["nll"]
    assert np.mean([float(row["surprise"]) for row in rows]) == pytest.approx(nll, rel=1e-5)


@pytest.mark.parametrize("kinds", [("recursive", "gaps"), ("direct", "attention"), ("paths", "transformer")])
def test_a_stream_of_several_runs_forecasts_what_predict_does(tmp_path: Path, kinds: tuple[str, str]) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    same = ["decoding.horizon=5", *(["data.season=3"] if "direct" in kinds else [])]
    same += ["decoding.paths=7"] if "paths" in kinds else []
    members = [untrained(file, *KINDS[kind], *same) for kind in kinds]
    both = answering_as_one(*members)
    rows_read = [[20.0 + 3 * np.sin(n), np.cos(2 * n)] for n in range(6)]
    stream = both.stream()
    for count, row in enumerate(rows_read, 1):
        said = stream.read(row)
        close(said, both.predict([rows_read[:count]])[0])
        if count % 2 == 0:
            stream = both.stream(stream.state())
        assert stream.steps == count
    of_another = "is of a stream of another run"
    for one in (members[0], answering_as_one(*members[::-1])):
        with pytest.raises(CheckpointError, match=of_another):
            one.stream(stream.state())


@pytest.mark.parametrize("output", ["gaussian", "bernoulli"])
def test_forecasters_that_run_free_together_cost_what_their_joint_forecast_is_wrong(
    tmp_path: Path, output: str
) -> None:
    if output == "bernoulli":
        file, own = str(tmp_path / "a.jsonl"), ["data.frames=frames"]
        pieces = [[[n % 2, int((n + k) % 3 == 0)] for n in range(5 + k)] for k in range(3)]
        write(tmp_path / "a.jsonl", "".join(json.dumps({"frames": piece}) + "\n" for piece in pieces))
    else:
        file, own = dated(tmp_path / "a.csv", shops=1, days=14), ["model.ahead=recursive"]
    members = [untrained(file, *own, "decoding.horizon=3", cell=cell) for cell in ("gru", "lstm")]
    both, twice = answering_as_one(*members), answering_as_one(members[0], members[0])
    found = both.free_running(file)
    assert twice.free_running(file).values == pytest.approx(members[0].free_running(file).values)
    if output == "bernoulli":
        losses = [review.losses[1:] for review in both.to_score([file])[1]]  # the first frame follows on nothing
        assert found.values["teacher_forced_nll"] == pytest.approx(np.concatenate(losses).mean(), rel=1e-5)
        return
    [series], [review] = both.to_score([file])
    values, errors = both.task.encode(series)["values"], []
    for origin, ahead in zip(review.origins, review.ahead, strict=True):
        came = values[origin : origin + 3]
        errors += np.abs(ahead[: len(came)] - came).mean(1).tolist()
    assert found.values["free_running_error"] == pytest.approx(np.mean(errors), rel=1e-5)


def test_language_models_that_run_free_together_read_the_token_that_they_find_most_probable_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = test_language_model.write(tmp_path / "a.txt", test_language_model.TEXT)
    options = ("training.steps=3", "training.learning_rate=0.05", "data.independent=true")
    own: dict[str, tuple[str, ...]] = {"one": (), "two": ("training.seed=2",), "back": ("model.direction=backward",)}
    alone = {name: test_language_model.trained(tmp_path, file, *options, *each, run=name) for name, each in own.items()}
    folders = {name: str(tmp_path / name) for name in own}
    both = load([folders["one"], folders["two"]])
    found = both.free_running(file)
    costs, networks = [], [alone[name].model for name in ("one", "two")]
    for example in both.task.read([file]):
        ids = both.task.encode(example)["tokens"].tolist()
        states: list[Any] = [network.start(1) for network in networks]  # type: ignore[operator]
        token = torch.tensor([both.task.end])  # type: ignore[attr-defined]
        for right in ids:
            steps = [network.step(token, state) for network, state in zip(networks, states, strict=True)]  # type: ignore[operator]
            p = torch.stack([log_p.exp() for log_p, _ in steps]).mean(0)
            costs.append(-float(p[0, right].detach().log()))
            token, states = p.argmax(1), [state for _, state in steps]
    assert found.values["free_running_nll"] == pytest.approx(np.mean(costs), rel=1e-4)
    assert found.values["teacher_forced_nll"] == pytest.approx(both.evaluate(file).values["nll"], rel=1e-4)
    said = "read in opposite directions, so they can score a text together, but not run free in one: name runs with"
    with pytest.raises(ConfigError, match=said):
        load([folders["one"], folders["back"]]).free_running(file)
    assert main(["evaluate", f"{folders['one']},{folders['two']}", file, "--free-running"]) == 0
    assert f"free_running_nll        {found.values['free_running_nll']:.4f}" in capsys.readouterr().out
