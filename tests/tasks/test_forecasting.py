"""Forecasting: from tables and frames to what comes next, and everything that can be wrong with a file."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.manifest import seal
from recurra.padding import Padded
from recurra.runs import begin, resume, setup
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.tagging import Tagging
from recurra.training.explaining import explain
from recurra.training.preparation import prepared
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.lines import Lines
from tests.training.test_trainer import StopsAt

SMALL = [
    "model.hidden=12",
    "model.dropout=0",
    "model.cell=gru",
    "model.engine=loop",
    "data.cache=false",
    "decoding.horizon=3",
    "training.device=cpu",
    "training.threads=1",
    "training.average=none",
    "training.learning_rate=0.02",
    "training.warmup=5",
]


def write(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


def trained(folder: Path, file: str, *overrides: str, valid: str = "", task: str = "forecasting") -> Trained:
    this = setup(task, given={"train": file, "valid": valid}, overrides=[*SMALL, *overrides])
    begin(this, folder / "run", Silent())
    return load(folder / "run")


def write_frames(path: Path, sequences: Sequence[Any]) -> str:
    return write(path, "".join(json.dumps({"frames": sequence}) + "\n" for sequence in sequences))


def rolls() -> list[list[list[int]]]:
    """Eight pieces of three notes; the first frame, the number of the piece, tells all that follows."""
    draw = np.random.default_rng(3)
    return [
        [[number >> bit & 1 for bit in range(3)], *draw.integers(0, 2, (int(draw.integers(4, 8)), 3)).tolist()]
        for number in range(8)
    ]


def waves(steps: int, *, start: int = 0) -> str:
    """A table of two series in turn: a wave of six steps in one column, and another in the other."""
    lines = ["when,place,level,flow"]
    for t in range(start, start + steps):
        for place, shift in (("north", 0), ("south", 2)):
            angle = 2 * math.pi * (t + shift) / 6
            lines.append(f"{t},{place},{100 + 10 * math.sin(angle):.5f},{math.cos(angle):.5f}")
    return "\n".join(lines) + "\n"


WAVES = ("data.time=when", "data.series=place")


def test_eight_pieces_are_learned_by_heart_and_continued(tmp_path: Path) -> None:
    pieces = rolls()
    file = write_frames(tmp_path / "a.jsonl", pieces)
    model = trained(
        tmp_path, file, "model.hidden=24", "model.embedding=8", "training.epochs=100", "training.learning_rate=0.04"
    )
    assert model.task.described() == "frames of 3 values, linear layer 8, GRU 24, bernoulli output"
    scores = model.evaluate(file)
    assert scores.first == "nll"
    assert not scores.higher_is_better
    assert scores.values["nll_after_first"] < 0.1
    assert scores.values["count"] == sum(map(len, pieces))
    answers = model.predict([json.dumps(piece[:-3]) for piece in pieces], detail=True)
    assert [answer.detail["values"] for answer in answers] == [piece[-3:] for piece in pieces]
    assert answers[0].output == " ".join(",".join(map(str, frame)) for frame in pieces[0][-3:])
    for answer in answers:
        assert np.array_equal(np.array(answer.detail["probabilities"]) > 0.5, np.array(answer.detail["values"]) == 1)


def test_the_first_frame_is_predicted_from_silence(tmp_path: Path) -> None:
    pieces = [[[1, 0]], [[1, 1]], [[1, 0], [0, 0]]]
    file = write_frames(tmp_path / "a.jsonl", pieces)
    model = trained(tmp_path, file, "training.epochs=100", "data.empty=keep")
    scores = model.evaluate(file).values
    # The first note always sounds, the second in one piece of three; the second frame is known by heart.
    assert scores["nll"] == pytest.approx((3 * (-math.log(2 / 3) * 2 - math.log(1 / 3)) / 3) / 4, abs=0.05)
    [nothing] = model.predict([[]], detail=True)
    assert nothing.detail["probabilities"][0] == pytest.approx([1, 1 / 3], abs=0.05)


def test_notes_found_are_counted_as_in_a_plain_loop(tmp_path: Path) -> None:
    pieces = rolls()
    file = write_frames(tmp_path / "a.jsonl", pieces)
    model = trained(tmp_path, file, "training.steps=15", "decoding.horizon=1")
    right = extra = left = 0
    for piece in pieces:
        for step, frame in enumerate(piece):
            [answer] = model.predict([piece[:step]], detail=True)
            for said, gold in zip(answer.detail["values"][0], frame, strict=True):
                right += said == gold == 1
                extra += said > gold
                left += said < gold
    scores = model.evaluate(file).values
    assert scores["accuracy"] == pytest.approx(right / (right + extra + left))
    assert scores["precision"] == pytest.approx(right / (right + extra))
    assert scores["recall"] == pytest.approx(right / (right + left))
    assert scores["f1"] == pytest.approx(2 * right / (2 * right + extra + left))


@pytest.mark.parametrize("output", ["gaussian", "squared_error"])
def test_two_series_of_a_table_are_learned_in_their_own_units(tmp_path: Path, output: str) -> None:
    train, valid = write(tmp_path / "train.csv", waves(60)), write(tmp_path / "valid.csv", waves(30, start=60))
    options = ("evaluation.season=6", "evaluation.context=4", "data.window=20", f"model.output={output}")
    model = trained(tmp_path, train, *WAVES, *options, "training.epochs=30", "training.validate=40", valid=valid)
    assert model.task.settings.data.values == ["level", "flow"]
    scores = model.evaluate(valid)
    assert scores.first == "scaled_mae"
    assert scores.values["scaled_mae"] < 0.15
    assert scores.values["mae_to_last_value"] < 0.3
    assert scores.values["seasonal_mae"] < 1e-4  # the waves repeat themselves
    assert ("nll" in scores.values) == ("coverage" in scores.values) == (output == "gaussian")
    assert [row[0] for row in scores.tables["by step of the horizon"].rows] == ["1", "2", "3"]
    assert [row[0] for row in scores.tables["by column"].rows] == ["level", "flow"]
    north, south = model.predict_file(valid, [], detail=True)
    assert (north.input, south.input) == ("north", "south")
    for t, (level, flow) in enumerate(north.detail["values"], 90):
        assert level == pytest.approx(100 + 10 * math.sin(2 * math.pi * t / 6), abs=3)
        assert flow == pytest.approx(math.cos(2 * math.pi * t / 6), abs=0.3)


@pytest.mark.parametrize(
    "output",
    [
        "student_t",
        "log_normal",
        "poisson",
        "negative_binomial",
        '{name="mixture", count=2}',
        '{name="quantiles", levels=[0.05, 0.25, 0.5, 0.75, 0.95]}',
    ],
)
def test_every_density_learns_a_wave_of_counts_and_draws_paths_in_its_units(tmp_path: Path, output: str) -> None:
    draw = np.random.default_rng(0)
    rates = 20 + 15 * np.sin(2 * np.pi * np.arange(120) / 6)
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{max(1, k)}\n" for k in draw.poisson(rates)))
    settings = ("evaluation.context=20", "data.window=20", "training.epochs=25", "training.learning_rate=0.05")
    model = trained(tmp_path, file, f"model.output={output}", "model.ahead=recursive", *settings)
    scores = model.evaluate(file).values
    assert scores["mae_to_last_value"] < 0.7
    assert 0.75 < scores["coverage"] <= 1
    assert ("nll" in scores) == ("quantiles" not in output)
    [answer] = model.with_settings(["decoding.paths=61"]).predict_file(file, [], detail=True)
    low, values, high = (np.array(answer.detail[name]) for name in ("low", "values", "high"))
    assert (low <= values).all()
    assert (values <= high).all()
    assert (high - low < 60).all()
    if output in ("poisson", "negative_binomial"):
        assert (np.abs(low - np.round(low)) < 1e-5).all()  # with 61 paths the ends are two of them
        with pytest.raises(DataError, match=r"input:1: found 0\.5, but the model accepts only counts \(whole numbers"):
            model.predict([[1, 0.5]])


def by_hand(model: Trained, values: np.ndarray[Any, Any], origins: Sequence[int]) -> list[float]:
    """Absolute errors of forecasts from every origin, each by its own call."""
    errors = []
    for origin in origins:
        [answer] = model.predict([values[:origin].tolist()], detail=True)
        for ahead, said in enumerate(answer.detail["values"]):
            if origin + ahead < len(values):
                errors += np.abs(np.array(said) - values[origin + ahead]).tolist()
    return errors


@pytest.mark.parametrize(
    "options", [(), ("data.difference=true",), ("model.cell=lstm", "model.engine=auto")], ids=["gru", "changes", "auto"]
)
def test_scores_are_those_of_a_plain_loop_over_origins(tmp_path: Path, options: tuple[str, ...]) -> None:
    values = np.cumsum(np.random.default_rng(0).normal(size=(30, 1)), axis=0) + 50
    file = write(
        tmp_path / "a.tsv", "time\tx\n" + "".join(f"{t}\t{v!r}\n" for t, v in enumerate(values[:, 0].tolist()))
    )
    evaluation = ("evaluation.season=4", "evaluation.context=6", "evaluation.stride=3")
    model = trained(tmp_path, file, *evaluation, *options, "training.steps=10", "training.precision=float64")
    origins = range(6, 30, 3)
    scores = model.evaluate(file).values
    assert scores["mae"] == pytest.approx(np.mean(by_hand(model, values, origins)), rel=1e-6)
    truth = [(o, k) for o in origins for k in range(3) if o + k < 30]
    x = values[:, 0]
    assert scores["last_value_mae"] == pytest.approx(np.mean([abs(x[o + k] - x[o - 1]) for o, k in truth]))
    assert scores["seasonal_mae"] == pytest.approx(np.mean([abs(x[o + k] - x[o + k - 4]) for o, k in truth]))
    assert scores["mae_to_seasonal"] == pytest.approx(scores["mae"] / scores["seasonal_mae"])
    assert scores["count"] == 24  # steps 7 to 30, each from those before it


def test_the_likelihood_is_that_of_the_values_in_their_own_unit(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=25) * 1000
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{v!r}\n" for v in x.tolist()))
    model = trained(tmp_path, file, "training.steps=10", "training.precision=float64", "model.ahead=recursive")
    network: Any = model.model
    nats, hits = [], []
    for step in range(1, 25):
        scaled = torch.tensor(((x - x.mean()) / x.std())[:step].reshape(1, -1, 1).astype(np.float32)).double()
        features, _ = network.read(Padded.full(scaled))
        mean, log_variance = (float(part.detach()[0, -1, 0]) for part in network.density.parts(features.values))
        mean, deviation = mean * x.std() + x.mean(), math.exp(log_variance / 2) * x.std()
        nats.append(0.5 * ((x[step] - mean) / deviation) ** 2 + math.log(deviation * math.sqrt(2 * math.pi)))
        hits.append(abs(x[step] - mean) < 1.6448536 * deviation)
    scores = model.evaluate(file).values
    assert scores["nll"] == pytest.approx(np.mean(nats), rel=1e-5)
    assert scores["coverage"] == pytest.approx(np.mean(hits))


def test_a_trend_is_followed_where_changes_are_learned(tmp_path: Path) -> None:
    rows = [f"{t},{3 * t + 10 * (t % 2)}" for t in range(60)]
    file = write(tmp_path / "a.csv", "time,x\n" + "\n".join(rows) + "\n")
    model = trained(tmp_path, file, "data.difference=true", "training.epochs=100", "data.window=16")
    far = [[1000.0 + 3 * t + 10 * (t % 2)] for t in range(12)]  # much higher than ever in training
    [answer] = model.predict([far], detail=True)
    assert answer.detail["values"] == [pytest.approx([1000 + 3 * t + 10 * (t % 2)], abs=1.5) for t in (12, 13, 14)]


def test_normalisation_is_learned_on_train_saved_and_restored(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 2)) * [3, 500] + [7, -2000]
    file = write(tmp_path / "a.csv", "a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in x.tolist()))
    model = trained(tmp_path, file, "training.steps=5")
    task: Any = model.task
    np.testing.assert_allclose(task.conventions.scale.mean, x.mean(0))
    np.testing.assert_allclose(task.conventions.scale.spread, x.std(0))
    [before] = model.predict([x[:9].tolist()])
    model.save(tmp_path / "copy")
    [after] = load(tmp_path / "copy").predict([x[:9].tolist()])
    assert before == after
    (tmp_path / "copy" / "kind.json").unlink()
    seal(tmp_path / "copy")
    with pytest.raises(CheckpointError, match=r"kind\.json cannot be read .*the run folder is incomplete"):
        load(tmp_path / "copy")


def test_notes_stay_zero_and_one_however_rare(tmp_path: Path) -> None:
    file = write_frames(tmp_path / "a.jsonl", [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0]]])
    task: Any = trained(tmp_path, file, "training.steps=1", "model.output=gaussian").task
    assert task.conventions.scale.mean.tolist() == [0, 0, 0]
    assert task.conventions.scale.spread.tolist() == [1, 1, 1]


def test_missing_values_are_read_as_those_before_and_neither_learned_nor_scored(tmp_path: Path) -> None:
    text = "time,x\n" + "".join(f"{t},{'' if t in (5, 6, 12) else t % 3}.\n".replace(",.", ",") for t in range(20))
    file = write(tmp_path / "a.csv", text)
    with pytest.raises(DataError, match=r"a\.csv:7: the value of 'x' is missing. .*data\.missing = \"previous\""):
        trained(tmp_path, file, "data.missing=refuse")
    model = trained(tmp_path, file, "training.steps=3", "decoding.horizon=1", "model.ahead=recursive")
    [steps] = model.task.read([file])
    assert steps.values[4:8, 0].tolist() == [1, 1, 1, 1]
    assert (~steps.known[:, 0]).nonzero()[0].tolist() == [5, 6, 12]
    scores = model.evaluate(file)
    assert scores.values["count"] == 19 - 3
    assert scores.tables["by step of the horizon"].rows[0][-1] == 19 - 3
    network: Any = model.model
    batch = model.task.batch([model.task.encode(steps)])
    features, _ = network.read(Padded.full(batch.values.values[:, :-1]))
    costs = network.density.costs(features.values, batch.values.values[:, 1:])[0, :, 0]
    assert torch.allclose(network.loss(batch)[0], costs[[t for t in range(19) if t + 1 not in (5, 6, 12)]].sum())


def test_a_change_across_a_missing_value_is_not_scored(tmp_path: Path) -> None:
    x = np.cumsum(np.random.default_rng(0).normal(size=60)) * 10
    gaps = (7, 8, 20, 33)
    file = write(
        tmp_path / "a.csv", "x\n" + "".join(f"{v if t not in gaps else 'nan'}\n" for t, v in enumerate(x.tolist()))
    )
    model = trained(tmp_path, file, "data.missing=previous", "data.difference=true", "training.steps=10")
    network: Any = model.model
    [steps] = model.task.read([file])
    batch = model.task.batch([model.task.encode(steps)])
    with torch.no_grad():
        features, _ = network.read(Padded.full(batch.values.values[:, :-1]))
        mean, log_variance = (part[0, :, 0].double().numpy() for part in network.density.parts(features.values))
    task: Any = model.task
    [spread], [middle] = task.conventions.scale.spread, task.conventions.scale.mean
    nats, hits = [], []
    for t in range(1, 60):
        if t in gaps or t - 1 in gaps:
            continue
        deviation = math.exp(log_variance[t - 1] / 2) * spread
        off = (x[t] - x[t - 1] - mean[t - 1] * spread - middle) / deviation
        nats.append(0.5 * off**2 + math.log(deviation * math.sqrt(2 * math.pi)))
        hits.append(abs(off) < 1.6448536)
    scores = model.evaluate(file).values
    assert scores["count"] == len(nats) == 59 - 4 - 3
    assert scores["nll"] == pytest.approx(np.mean(nats), rel=1e-4)
    assert scores["coverage"] == pytest.approx(np.mean(hits))


def test_frames_that_are_missing_and_pieces_without_any_are_not_counted(tmp_path: Path) -> None:
    keep = ("data.empty=keep", "data.missing=previous", "training.steps=5")
    file = write_frames(tmp_path / "a.jsonl", [[[1, 0], [1, 1], [0, 1]], [], [[0, 0]]])
    model = trained(tmp_path, file, *keep)
    gap = write_frames(tmp_path / "b.jsonl", [[[1, 0], [1, 1], [None, None]], [], [[0, 0]]])
    whole = write_frames(tmp_path / "c.jsonl", [[[1, 0], [1, 1]], [[0, 0]]])
    missing, there = (model.evaluate(name).values for name in (gap, whole))
    assert {name: missing[name] for name in missing if name != "seconds"} == pytest.approx(
        {name: there[name] for name in there if name != "seconds"}, nan_ok=True
    )


def test_a_table_of_another_kind_is_read_by_its_own_names(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "".join(f"{t},{t % 3},9\n" for t in range(12)))
    model = trained(tmp_path, file, 'data.columns=["time", "x", "rest"]', 'data.values=["x"]', "training.steps=2")
    rows = [json.dumps({"time": t, "x": t % 3}) for t in range(5)]
    [answer] = model.predict_file(write(tmp_path / "b.jsonl", "\n".join(rows) + "\n"), [], detail=True)
    [same] = model.predict([str([t % 3 for t in range(5)])], detail=True)
    assert answer.detail["values"] == same.detail["values"]


def test_the_first_steps_of_a_table_of_zeros_and_ones_are_read_and_not_scored(tmp_path: Path) -> None:
    x = [1, 1, 0, 1, 1, 0, 1, 1, 0, 1]
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{v}\n" for v in x))
    for context in (1, 4):
        folder = tmp_path / str(context)
        folder.mkdir()
        model = trained(folder, file, f"evaluation.context={context}", "training.steps=10", "decoding.horizon=1")
        chances = []
        for step in range(context, 10):
            [answer] = model.predict([str(x[:step])], detail=True)
            chances.append(answer.detail["probabilities"][0][0])
        gold = x[context:]
        right = sum(p > 0.5 and v == 1 for p, v in zip(chances, gold, strict=True))
        scores = model.evaluate(file).values
        assert scores["count"] == len(gold)
        assert scores["recall"] == pytest.approx(right / sum(gold))
        nats = [-math.log(p if v else 1 - p) for p, v in zip(chances, gold, strict=True)]
        assert scores["nll"] == pytest.approx(np.mean(nats), rel=1e-4)


def test_drawn_paths_give_a_median_and_where_nine_of_ten_lie(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=300)
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{v!r}\n" for v in x.tolist()))
    model = trained(tmp_path, file, "decoding.paths=400", "training.epochs=15")
    one, again = model.predict([[0.1, 0.2], [0.1, 0.2]], detail=True)
    assert one.detail == again.detail
    for low, middle, high in zip(one.detail["low"], one.detail["values"], one.detail["high"], strict=True):
        assert low[0] < middle[0] < high[0]
        assert high[0] - low[0] == pytest.approx(2 * 1.645, rel=0.35)


def test_a_drawn_roll_is_zeros_and_ones(tmp_path: Path) -> None:
    file = write_frames(tmp_path / "a.jsonl", rolls())
    model = trained(tmp_path, file, "decoding.paths=1", "training.steps=5", "decoding.horizon=9")
    [answer] = model.predict(["[[1, 0, 1]]"], detail=True)
    assert answer.detail["values"] == answer.detail["probabilities"]
    assert {note for frame in answer.detail["values"] for note in frame} == {0.0, 1.0}


@pytest.mark.parametrize("kind", ["table", "frames"])
def test_a_run_broken_anywhere_and_resumed_ends_with_the_same_weights(tmp_path: Path, kind: str) -> None:
    dropped = ("model.dropout=0.3", "model.input_dropout=0.2", "training.average=ema", "training.batch_size=4")
    if kind == "table":
        files = {name: write(tmp_path / f"{name}.csv", waves(20)) for name in ("train", "valid")}
        options = [*WAVES, "data.window=6"]
    else:
        files = {name: write_frames(tmp_path / f"{name}.jsonl", rolls()) for name in ("train", "valid")}
        options = ["model.embedding=4"]
    this = setup("forecasting", given=files, overrides=[*SMALL, *options, *dropped, "training.epochs=3"])
    begin(this, tmp_path / "whole", Silent())
    digests = [hashlib.sha256((tmp_path / "whole" / "model.safetensors").read_bytes()).hexdigest()]
    steps = json.loads((tmp_path / "whole" / "summary.json").read_text())["steps"]
    again = setup(
        "forecasting",
        given=files,
        overrides=[*SMALL, *options, *dropped, "training.epochs=3", "training.save_minutes=0.00001"],
    )
    for last in (1, steps // 2 + 1):
        with pytest.raises(MemoryError):
            begin(again, tmp_path / f"broken{last}", StopsAt(last))
        resume(tmp_path / f"broken{last}", Silent())
        digests.append(hashlib.sha256((tmp_path / f"broken{last}" / "model.safetensors").read_bytes()).hexdigest())
    assert len(set(digests)) == 1


def test_windows_are_parts_of_their_series(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", waves(50))
    this = setup(
        "forecasting",
        given={"train": file},
        overrides=[*SMALL, *WAVES, "model.ahead=recursive", "data.window=16", "data.overlap=4"],
    )
    task, store = prepared(this.kind, this.settings, lambda _: None)
    whole = [store[row]["values"] for row in range(2)]
    seen = np.zeros((2, 50))
    for numbers in task.batches(store, 0):
        for part in task.chosen(store, numbers):
            [row] = [row for row in range(2) if store[row]["place"].tolist() == part["place"].tolist()]
            assert len(part["values"]) == len(part["known"]) == 16
            starts = [t for t in range(35) if np.array_equal(whole[row][t : t + 16], part["values"])]
            assert starts
            for start in starts:
                seen[row, start : start + 16] += 1
    assert (seen > 0).all()


def test_a_window_out_of_a_piece_does_not_learn_to_begin_there(tmp_path: Path) -> None:
    pieces = [[[step % 2, 1] for step in range(9)], [[1, 0]]]
    file = write_frames(tmp_path / "a.jsonl", pieces)
    this = setup("forecasting", given={"train": file}, overrides=[*SMALL, "data.window=4", "data.overlap=2"])
    task, store = prepared(this.kind, this.settings, lambda _: None)
    parts = task.chosen(store, np.arange(5))
    assert [part["known"].all(1).tolist() for part in parts] == [
        [True] * 4,
        *([[False, True, True, True]] * 3),
        [True],
    ]
    assert [len(part["values"]) for part in parts] == [4, 4, 4, 4, 1]


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
@pytest.mark.parametrize("output", ["gaussian", "squared_error"])
def test_other_precisions_train_too(tmp_path: Path, precision: str, output: str) -> None:
    file = write(tmp_path / "a.csv", waves(20))
    options = (f"training.precision={precision}", f"model.output={output}", "model.embedding=4", "training.steps=3")
    assert math.isfinite(trained(tmp_path, file, *WAVES, *options).evaluate(file).values["mae"])


def test_a_language_model_of_frames_is_this_task(tmp_path: Path) -> None:
    file = write_frames(tmp_path / "a.jsonl", rolls())
    model = trained(tmp_path, file, "data.frames=frames", "training.steps=1", task="language_model")
    assert model.task.name == "forecasting"
    assert model.task.settings.task == "language_model"
    assert model.evaluate(file).first == "nll"


def test_an_archive_of_arrays_holds_sequences(tmp_path: Path) -> None:
    pieces = rolls()
    lengths = np.array([len(piece) for piece in pieces])
    np.savez(tmp_path / "a.npz", frames=np.concatenate(pieces), frames_lengths=lengths)
    model = trained(tmp_path, str(tmp_path / "a.npz"), "training.steps=1")
    assert [steps.values.tolist() for steps in model.task.read([tmp_path / "a.npz"])] == pieces


def test_a_table_of_parquet_is_in_the_order_of_its_timestamps(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    times = pa.array(["2026-11-15T08:00:00", "2026-11-15T09:00:00", "2026-11-15T08:30:00"]).cast(pa.timestamp("us"))
    parquet.write_table(pa.table({"time": times, "x": [1.0, 2.0, 4.0]}), tmp_path / "a.parquet")
    with pytest.raises(
        DataError, match=r"a\.parquet:3: the time '2026-11-15 08:30:00\.000000' comes after a later one"
    ):
        trained(tmp_path, str(tmp_path / "a.parquet"))


def test_a_header_is_told_from_numbers_and_times_by_their_names(tmp_path: Path) -> None:
    for name, text in (("a.csv", "Date,note,b\n2020-01,x,1\n2020-02,y,2\n"), ("b.tsv", "1\t2\n2\t3\n")):
        file = write(tmp_path / name, text)
        this = setup("forecasting", given={"train": file}, overrides=[*SMALL, "model.ahead=recursive"])
        data = this.kind.resolved(this.settings).data
        assert (data.time, data.values) == (("Date", ["b"]) if name == "a.csv" else (None, ["column1", "column2"]))
        assert data.window == 128


def test_a_column_whose_first_cells_are_missing_is_seen(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"a": null, "b": 1, "c": "x"}\n{"a": 2.5, "b": 1, "c": "x"}\n')
    this = setup("forecasting", given={"train": file}, overrides=SMALL)
    assert this.kind.resolved(this.settings).data.values == ["a", "b"]


TABLES: dict[str, tuple[str, list[str], str]] = {
    "a time twice": ("time,x\n1,1\n1,2\n", [], r"a\.csv:3: the time '1' is there twice\. .*data\.series = \"…\""),
    "a time out of order": (
        "date,x\n2020-01-02,1\n2020-01-01,2\n",
        [],
        r"a\.csv:3: the time '2020-01-01' comes after a later one\. Sort the rows by 'date'",
    ),
    "a time of a series twice": (
        "time,series,x\n1,a,1\n1,b,2\n1,b,3\n",
        [],
        r"a\.csv:4: the time '1' of 'b' is there twice\. Sort the rows by 'time', and give each time only once\.$",
    ),
    "a time that is none": ("time,x\nsoon,1\n", [], r"a\.csv:2: 'time' must be a number or a date such as .*'soon'"),
    "two kinds of time": (
        "time,x\n1,1\n2020-01-01,1\n",
        [],
        r"a\.csv:3: 'time' is '2020-01-01', but earlier rows contain",
    ),
    "a word": ("x,y\n1,2\n3,four\n", [], r"a\.csv:3: 'y' must be a number, but is 'four'"),
    "infinite": ("x\n1\ninf\n", [], r"a\.csv:3: 'x' must be a finite number, but is 'inf'"),
    "missing": (
        "x,y\n1,2\n3,NaN\n",
        ["data.missing=refuse"],
        r"a\.csv:3: the value of 'y' is missing\. Fill it in, or set data\.missing",
    ),
    "one step": (
        "time,x,y\n1,1,0\n",
        ["data.values=x"],
        r"no training examples are left: a series needs at least 2 steps to learn from",
    ),
    "constant": (
        "x,y\n1,5\n2,5\n",
        [],
        r"the column 'y' of .*a\.csv is constant \(5\), so there is nothing to predict",
    ),
    "no numbers": (
        "name\nx\ny\n",
        [],
        r"a\.csv:1: forecasting needs a column of numbers, but the columns are column1\.",
    ),
    "no such column": ("x,level\n1,2\n2,3\n", ["data.values=levl"], r"no column 'levl'\. Did you mean 'level'\?"),
    "no such time": ("x,level\n1,2\n2,3\n", ["data.time=tim"], r"a\.csv:2: there is no column 'tim'\. Known: x, level"),
    "the time as a value": (
        "time,x\n1,2\n2,3\n",
        ["data.values=time"],
        r"data\.values names 'time', which is already used as the time",
    ),
    "no series": ("series,x\n,2\na,3\n", [], r"a\.csv:2: the row has no series name: 'series' is empty"),
    "coins that are none": (
        "x\n1\n2\n",
        ["model.output=bernoulli"],
        r"model\.output = 'bernoulli' is for values that are 0 or 1, but the training data has other",
    ),
    "counts that are none": (
        "x\n1\n2.5\n",
        ["model.output=negative_binomial"],
        r"model\.output = 'negative_binomial' is for counts \(whole numbers from 0\), but .*a\.csv:2 contains 2\.5\. "
        r"Use 'gaussian', 'student_t' or 'quantiles'",
    ),
    "negative counts": ("x\n1\n-2\n", ["model.output=poisson"], r"is for counts .* contains -2\."),
    "not above 0": ("x\n1\n0\n2\n", ["model.output=log_normal"], r"is for values above 0, but .* contains 0\."),
    "levels": (
        "x\n1\n0\n2\n",
        ['model.output={name="quantiles", levels=[0.9, 0.1]}'],
        r"levels must be at least two ascending numbers between 0 and 1, such as \[0\.05, 0\.5, 0\.95\]",
    ),
    "no such output": ("x\n1\n2\n", ["model.output=gausian"], r"no density 'gausian'\. Did you mean 'gaussian'\?"),
    "no such option": (
        "x\n1\n2\n",
        ['model.output={name="gaussian", least=1}'],
        r"'gaussian' has no option 'least'",
    ),
    "nothing to draw from": (
        "x\n1\n2\n",
        ["model.output=squared_error", "decoding.paths=5"],
        r"decoding\.paths = 5 needs a distribution to sample from, which model\.output = 'squared_error' does not "
        r"predict",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_is_wrong_with_a_table_is_said_with_its_line(tmp_path: Path, name: str) -> None:
    text, options, message = TABLES[name]
    with pytest.raises((DataError, ConfigError), match=message):
        trained(tmp_path, write(tmp_path / "a.csv", text), *options, "training.steps=1")


FRAMES: dict[str, tuple[str, list[str], str]] = {
    "another number of values": (
        '{"frames": [[1, 2]]}\n{"frames": [[1]]}\n',
        [],
        r"a\.jsonl:2: found 1 number per step",
    ),
    "ragged": (
        '{"frames": [[1, 2], [1]]}\n',
        [],
        r"a\.jsonl:1: 'frames' must have the same number of values at every step",
    ),
    "null": (
        '{"frames": [[1], [null]]}\n',
        ["data.missing=refuse"],
        r"a\.jsonl:1: 'frames' contains a number at step 2 that is missing, infinite or NaN",
    ),
    "nothing": (
        '{"frames": []}\n',
        [],
        r'a\.jsonl:1: this example has no frames\. Remove it, or set data\.empty = "keep"',
    ),
    "no such column": ('{"roll": [[1]]}\n', ["data.frames=rol"], r"there is no column 'rol'\. Did you mean 'roll'\?"),
    "not everywhere": ('{"frames": [[1]]}\n{"roll": [[1]]}\n', [], r"a\.jsonl:2: there is no column 'frames'"),
    "unnamed": (
        '{"roll": [[1]]}\n',
        [],
        r"needs a column of numbers, .*If 'roll' holds a whole sequence, set data\.fra",
    ),
    "a list as a value": (
        '{"x": [1, 2]}\n{"x": [3, 4]}\n',
        ["data.values=x"],
        r"a\.jsonl:1: 'x' must be a number, but is \[1, 2\]\. If a row holds a whole sequence, set data\.frames = .x",
    ),
    "missing at first": (
        '{"frames": [[null], [1]]}\n',
        ["data.missing=previous"],
        r"a\.jsonl:1: 'frames' begins with a missing value",
    ),
    "only empty ones": ('{"frames": []}\n', ["data.empty=keep"], r"there are no numbers in the training data"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_what_is_wrong_with_frames_is_said_with_their_line(tmp_path: Path, name: str) -> None:
    text, options, message = FRAMES[name]
    with pytest.raises(DataError, match=message):
        trained(tmp_path, write(tmp_path / "a.jsonl", text), *options, "training.steps=1")


def noise(path: Path, steps: int, seed: int, *, series: int = 1) -> str:
    """A table of series of independent values, each with a spread of its own."""
    draw = np.random.default_rng(seed)
    lines = ["series,x"]
    for number in range(series):
        lines += [f"s{number},{value:.6f}" for value in 10.0**number * draw.normal(size=steps)]
    return write(path, "\n".join(lines) + "\n")


@pytest.mark.parametrize(("paths", "series"), [(0, 1), (40, 1), (0, 3)])
def test_calibrated_intervals_hold_as_often_as_they_say(tmp_path: Path, paths: int, series: int) -> None:
    train, valid, test = (
        noise(tmp_path / f"{name}.csv", 450 // series, seed, series=series) for seed, name in enumerate("abc")
    )
    options = (f"decoding.paths={paths}", "decoding.coverage=0.8", "training.steps=3", "evaluation.context=30")
    model = trained(tmp_path, train, *options, "model.ahead=recursive", "model.hidden=4", valid=valid)
    task: Any = model.task
    assert sorted(task.intervals.calibrations) == (["paths", "point"] if paths else ["point"])
    again = model.with_settings([f"evaluation.paths={paths}"])
    scores = again.evaluate(test).values
    assert scores["calibrated_coverage"] == pytest.approx(0.8, abs=0.07 if series == 1 else 0.1)
    if paths:
        assert scores["interval_coverage"] != pytest.approx(scores["calibrated_coverage"], abs=1e-4)
    few = model.with_settings(["decoding.coverage=0.5"]).evaluate(test).values
    assert few["calibrated_width"] < scores["calibrated_width"]
    answers = list(model.predict_file(test, [], detail=True))
    for answer in answers:
        low, values, high = (np.array(answer.detail[name]) for name in ("low", "values", "high"))
        assert (low < values).all()
        assert (values < high).all()
    if series > 1:  # each interval is as wide as errors are in its own series
        widths = [np.mean(answer.detail["high"]) - np.mean(answer.detail["low"]) for answer in answers]
        assert widths[2] / widths[0] == pytest.approx(100, rel=0.5)


def test_an_interval_without_validation_data_is_refused_or_that_of_paths(tmp_path: Path) -> None:
    file = noise(tmp_path / "a.csv", 60, 0)
    model = trained(tmp_path, file, "training.steps=2", "model.ahead=recursive")
    with pytest.raises(
        ConfigError, match=r"coverage = 0\.9 needs the errors on validation data, but this run was train"
    ):
        model.with_settings(["decoding.coverage=0.9"]).predict([[20.0, 21.0, 22.0]])
    wide, narrow = (
        model.with_settings([f"decoding.coverage={c}", "decoding.paths=50"]).predict([[20.0, 21.0]])[0]
        for c in (0.9, 0.5)
    )
    assert (
        wide.detail["low"][0][0] < narrow.detail["low"][0][0] < narrow.detail["high"][0][0] < wide.detail["high"][0][0]
    )


def test_intervals_are_known_as_far_as_the_horizon_of_training_and_from_enough_forecasts(tmp_path: Path) -> None:
    file = noise(tmp_path / "a.csv", 60, 0)
    few = write(tmp_path / "few.csv", "series,x\n" + "".join(f"s0,{20 + t % 3}\n" for t in range(9)))
    model = trained(tmp_path, file, "training.steps=2", "model.ahead=recursive", valid=few)
    with pytest.raises(ConfigError, match=r"intervals are known for 3 steps ahead, but decoding\.horizon is 4"):
        model.with_settings(["decoding.coverage=0.5", "decoding.horizon=4"]).predict([[20.0, 21.0]])
    with pytest.raises(DataError, match=r"coverage = 0\.9 needs at least 9 forecasts of each step on the validation d"):
        model.with_settings(["decoding.coverage=0.9"]).predict([[20.0, 21.0]])


def test_the_forecast_view_names_its_coverage_and_a_damaged_calibration_is_refused(tmp_path: Path) -> None:
    file = noise(tmp_path / "a.csv", 60, 0)
    model = trained(tmp_path, file, "training.steps=2", "decoding.coverage=0.8", valid=file)
    found = explain(model, f"{file}:2", show="forecast")
    assert isinstance(found.view, Lines)
    assert [band.name for band in found.view.panels[0].bands] == ["80 % interval", "50 % interval"]
    (tmp_path / "run" / "calibration.json").write_text('{"point": {"counts": []}}', "utf-8")
    seal(tmp_path / "run")
    with pytest.raises(
        CheckpointError, match=r"calibration\.json cannot be read \('quantiles'\): the run folder is dama"
    ):
        load(tmp_path / "run")


def test_values_that_do_not_fit_are_written_with_their_probability(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(0)
    values = 50 + 10 * draw.normal(size=90)
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{value!r}\n" for value in values.tolist()))
    model = trained(tmp_path, file, "training.steps=30", "training.precision=float64", "model.ahead=recursive")
    values[40] = 200.0
    odd = write(tmp_path / "b.csv", "x\n" + "".join(f"{value!r}\n" for value in values.tolist()))
    texts = []
    for written in (tmp_path / "odd.csv", tmp_path / "odd.jsonl"):
        assert main(["evaluate", str(tmp_path / "run"), odd, "--anomalies", str(written)]) == 0
        assert "89 values written to" in (told := capsys.readouterr().err)
        assert re.search(r"[1-9] have a tail probability below 0\.001", told)
        texts.append(written.read_text("utf-8"))
    rows = list(csv.DictReader(texts[0].splitlines()))
    for row, line in zip(rows, texts[1].splitlines(), strict=True):
        assert {name: str(value) for name, value in json.loads(line).items()}.keys() == row.keys()
        assert json.loads(line)["tail"] == pytest.approx(float(row["tail"]))
    assert min(rows, key=lambda row: float(row["tail"]))["time"] == "41"
    assert max(rows, key=lambda row: float(row["surprise"]))["time"] == "41"
    surprise = np.mean([float(row["surprise"]) for row in rows])
    assert surprise == pytest.approx(model.evaluate(odd).values["nll"], rel=1e-5)
    held = [float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows]
    assert held == [float(row["tail"]) >= 0.1 for row in rows]  # nine of ten lie between the two


def test_anomalies_need_a_distribution_and_a_file_of_a_known_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = noise(tmp_path / "a.csv", 20, 0)
    model = trained(tmp_path, file, "training.steps=1", "model.output=squared_error")
    with pytest.raises(
        ConfigError, match=r"--anomalies needs a distribution, which model\.output = 'squared_error' does"
    ):
        model.anomalies(file)
    assert main(["evaluate", str(tmp_path / "run"), file, "--anomalies", "a.txt"]) == 2
    assert "--anomalies a.txt: the file must end in .csv or .jsonl." in capsys.readouterr().err
    plain = trained(tmp_path / "b", file, "training.steps=1")
    assert main(["evaluate", str(plain.folder), file, "--anomalies", str(tmp_path / "no" / "a.csv")]) == 2
    assert "a.csv cannot be written: No such file or directory." in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--anomalies is for forecasting, but this is a tagging model"):
        object.__new__(Tagging).anomalies(None, [])  # type: ignore[arg-type]


SETTINGS: dict[str, tuple[list[str], str]] = {
    "both ways": (["model.bidirectional=true"], r"must be false: a backward pass over time would see the values"),
    "overlap": (["data.window=4", "data.overlap=4"], r"data\.overlap = 4 must be below data\.window = 4"),
    "frames and values": (["data.frames=a", "data.values=b"], r"data\.frames and data\.values cannot be used together"),
    "changes of frames": (
        ["data.frames=a", "data.difference=true"],
        r"data\.difference works only for series in a table, not with data\.frames:",
    ),
    "window": (["data.window=1"], r"data\.window must be at least 2, but is 1"),
    "horizon": (["decoding.horizon=0"], r"decoding\.horizon must be at least 1, but is 0"),
    "paths": (["decoding.paths=-1"], r"decoding\.paths must be at least 0, but is -1"),
    "stride": (["evaluation.stride=0"], r"evaluation\.stride must be at least 1, but is 0"),
    "coverage": (["decoding.coverage=1"], r"decoding\.coverage must be between 0 and 1, such as 0\.9, but is 1"),
    "crps without paths": (["evaluation.score=crps"], r"evaluation\.score = 'crps' needs sampled paths: set evaluati"),
    "season": (["evaluation.season=-1"], r"evaluation\.season must be at least 0, but is -1"),
    "hidden": (["model.hidden=0"], r"model\.hidden must be at least 1, for one layer or each of several, but is 0"),
    "layers": (["model.hidden=[3, 4]", "model.layers=3"], r"gives 2 layers, but model\.layers is 3"),
    "dropout": (["model.input_dropout=1"], r"model\.input_dropout must be at least 0 and below 1, but is 1"),
    "drawn values": (
        ["model.output=squared_error", 'training.forcing={name="linear", replacement="sampled"}'],
        r"draws the values that are read, but model\.output = 'squared_error' predicts no distribution",
    ),
    "changes of counts": (
        ["model.output=poisson", "data.difference=true"],
        r"data\.difference = true models changes, which may be negative, but model\.output = 'poisson' is for counts",
    ),
    "changes of what is positive": (
        ["model.output=log_normal", "data.difference=true"],
        r"may be negative, but model\.output = 'log_normal' is for positive values\. Use 'gaussian', or",
    ),
    "missing": (["data.missing=skip"], r"data\.missing must be 'refuse' or 'previous', but is 'skip'"),
    "task": (["task=forecast"], r"task = 'forecast', but these are the settings of forecasting"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_cannot_be_is_refused(name: str) -> None:
    overrides, message = SETTINGS[name]
    with pytest.raises(ConfigError, match=message):
        setup("forecasting", overrides=overrides)


def test_what_does_not_fit_a_trained_model_is_refused(tmp_path: Path) -> None:
    file = write_frames(tmp_path / "a.jsonl", rolls())
    model = trained(tmp_path, file, "training.steps=1")
    with pytest.raises(DataError, match=r"input:2: found 2 values per step, but the model expects 3"):
        model.predict(["[[1, 0, 1]]", "[[1, 0]]"])
    with pytest.raises(DataError, match=r"input:1: found 0\.5, but the model accepts only the values 0 and 1"):
        model.predict(["[[1, 0, 0.5]]"])
    with pytest.raises(
        DataError, match=r"input:1: each line must be a JSON list of steps, each a number or a list of numbers"
    ):
        model.predict(["1 0 1"])


def test_a_file_too_short_to_be_scored_is_said_to_be(tmp_path: Path) -> None:
    train = write(tmp_path / "a.csv", "x\n" + "".join(f"{t}\n" for t in range(9)))
    model = trained(tmp_path, train, "training.steps=1", "evaluation.context=3", "evaluation.season=12")
    with pytest.raises(DataError, match=r"the longest series has 9 steps, and forecasts begin after the first 12"):
        model.evaluate(train)


def test_an_empty_line_gets_an_empty_answer_of_a_series(tmp_path: Path) -> None:
    train = write(tmp_path / "a.csv", "x\n" + "".join(f"{t}\n" for t in range(9)))
    model = trained(tmp_path, train, "training.steps=1")
    empty, one = model.predict(["", "[1, 2]"])
    assert empty.output == ""
    assert len(one.output.split()) == 3


def test_the_command_line_predicts_each_series_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.csv", waves(20))
    trained(tmp_path, file, *WAVES, "training.steps=1")
    assert main(["predict", str(tmp_path / "run"), file, "--json"]) == 0
    north, south = map(json.loads, capsys.readouterr().out.splitlines())
    assert (north["series"], south["series"]) == ("north", "south")
    assert np.array(north["values"]).shape == (3, 2)
    assert main(["evaluate", str(tmp_path / "run"), file, "--tables"]) == 0
    assert "by step of the horizon" in capsys.readouterr().out


def test_a_run_answers_for_another_horizon(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", waves(20))
    trained(tmp_path, file, *WAVES, "training.steps=1")
    further = load(tmp_path / "run").with_settings(["decoding.horizon=7"])
    [answer] = further.predict([[[100, 0]]], detail=True)
    assert len(answer.detail["values"]) == 7


def test_a_step_is_the_time_unless_it_is_named_as_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("series_id,step,x\n" + "".join(f"{k // 4},{k % 4},{k * k}\n" for k in range(12)), "utf-8")
    found = Forecasting.resolved(setup("forecasting", given={"train": str(path)}).settings).data
    assert (found.time, found.series, found.values) == ("step", "series_id", ["x"])
    given = setup("forecasting", given={"train": str(path)}, overrides=["data.values=step"]).settings
    found = Forecasting.resolved(given).data
    assert (found.time, found.series, found.values) == (None, "series_id", ["step"])


def test_a_backward_model_is_a_forward_model_of_the_reversed_series(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(size=24).cumsum().round(3).tolist()
    for name, series in (("as", values), ("reversed", values[::-1])):
        write(tmp_path / f"{name}.csv", "level\n" + "".join(f"{value}\n" for value in series))
    options = ["data.values=level", "training.steps=3", "data.difference=true"]
    (tmp_path / "back").mkdir()
    backward = trained(tmp_path / "back", str(tmp_path / "as.csv"), *options, "model.direction=backward")
    forward = trained(tmp_path, str(tmp_path / "reversed.csv"), *options)
    assert backward.task.described() == forward.task.described().replace("GRU", "backward GRU")
    [one], [other] = backward.predict([values]), forward.predict([values[::-1]])
    assert one.detail["values"] == other.detail["values"][::-1], "in the order of time"
    pairs = ((backward, "as"), (forward, "reversed"))
    scores = [model.evaluate(tmp_path / f"{name}.csv").values for model, name in pairs]
    for each in scores:
        each.pop("seconds")
    assert scores[0] == pytest.approx(scores[1])
    shown = explain(backward, json.dumps(values), show="forecast").view
    twin = explain(forward, json.dumps(values[::-1]), show="forecast").view
    assert isinstance(shown, Lines)
    assert isinstance(twin, Lines)
    assert shown.x == "step back"
    assert [list(curve.y) for curve in shown.panels[0].curves] == [list(curve.y) for curve in twin.panels[0].curves]
    assert backward.task.sent(next(iter(backward.task.questions(None, [values])))) == [[value] for value in values]
    with pytest.raises(CheckpointError, match="do not answer in the same classes, tokens or units"):
        load([tmp_path / "back" / "run", tmp_path / "run"])


def test_the_end_of_a_series_is_held_out_of_a_backward_model_too(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "level\n" + "".join(f"{math.sin(step):.4f}\n" for step in range(50)))
    model = trained(tmp_path, file, "model.direction=backward", "training.steps=1", valid="20%")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["data"]["valid"]["held_out"] == "10 of 50 steps, the end of the series"
    assert model.task.purpose().does == "predicts the earlier steps of a series"
