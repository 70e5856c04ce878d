"""Training on many short series beside GluonTS's DeepAR and NeuralForecast's LSTM and DeepAR of the same size.

    python -m venv peers && peers/bin/pip install torch==2.13.0 'gluonts[torch]==0.17.0' neuralforecast==3.3.0
    python benchmarks/forecast_peers.py --peers-python peers/bin/python

Series of 60 months are drawn, a trend, a season and noise. Every system reads windows of 48 + 12 steps with one LSTM
layer of 64 units, 64 windows a batch, and predicts 12 steps. Each side runs in a process of its own, one after the
other, Recurra's by its command line, and trains twice, for few and for many updates; what counts is the difference:

    windows a second = 64 · (many − few) / (seconds for many − seconds for few)

in seconds of the processor, or, with --threads 2, of the clock: threads that wait for each other use a processor too.
So reading files and starting up are not counted. From a window Recurra's direct forecaster learns forecasts from
up to 32 of its steps, NeuralForecast's LSTM from one; a column of its own tells that. Peak memory is the resident
memory of the process, with all libraries that it loads, for a tenth of the series and for all.

    python benchmarks/forecast_peers.py --peers-python peers/bin/python --accuracy 50,200,800

Windows differ in what is learned from them, so this asks what a user waits for: how wrong are the forecasts of the 12
steps after each series, once a system has trained for so many updates, and how long did that take from a table to
trained weights? Errors are mean absolute errors in units of the error that the noise alone makes, below which none can
stay.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS, CONTEXT, HORIZON, HIDDEN, BATCH = 60, 48, 12, 64, 64
WARM, FEW, MANY = 5, 50, 650
NOISE = 0.1

Floats = NDArray[np.float64]
Forecasting = Callable[[], Floats]
"""Forecasts of the next steps, (count, HORIZON), by what was trained."""


def drawn(count: int, total: int = STEPS) -> Floats:
    """(count, total): a level, a trend, a season of 12 steps and noise; the first steps are the same of any total."""
    draw, steps = np.random.default_rng(1), np.arange(total)
    level, trend = draw.lognormal(3, 1, (count, 1)), draw.normal(0, 0.005, (count, 1))
    season = 0.3 * np.sin(2 * np.pi * (steps / 12 + draw.random((count, 1))))
    noise = np.concatenate([draw.normal(size=(count, n)) for n in (STEPS, total - STEPS)], axis=1)
    found: Floats = level * (1 + trend * steps + season + NOISE * noise)
    return found


def error_of(forecasts: Floats) -> float:
    """The mean absolute error of the steps after each series, over that of the noise alone."""
    values = drawn(len(forecasts), STEPS + HORIZON)
    sizes = values[:, :STEPS].mean(1, keepdims=True)
    of_noise = NOISE * np.sqrt(2 / np.pi)
    return float(np.mean(np.abs(values[:, STEPS:] - forecasts) / sizes) / of_noise)


def months() -> list[str]:
    return [f"{2020 + step // 12}-{step % 12 + 1:02}-01" for step in range(STEPS)]


def written(count: int, path: Path) -> None:
    dates = months()
    with path.open("w", encoding="utf-8") as file:
        print("series,date,value", file=file)
        for number, values in enumerate(drawn(count)):
            file.writelines(f"s{number},{date},{value:.4f}\n" for date, value in zip(dates, values, strict=True))


def recurra_training(ahead: str) -> Callable[[Path, int, int], Forecasting]:
    def train(folder: Path, count: int, steps: int) -> Forecasting:
        window = {"data.window": CONTEXT, "model.lags": CONTEXT} if ahead == "direct" else {"data.window": STEPS}
        output = {} if ahead == "direct" else {"model.output": "student_t"}
        settings: dict[str, object] = {"data.cache": "false", "model.ahead": ahead, "model.hidden": HIDDEN}
        settings |= {**window, **output, "training.batch_size": BATCH, "training.steps": steps}
        settings |= {"training.threads": threads(), "training.device": "cpu", "decoding.horizon": HORIZON}
        run = folder / f"run-{ahead}-{count}-{steps}"
        table = folder / f"series-{count}.csv"
        command = ["train", "forecasting", "--train", str(table), "--out", str(run), "--quiet"]
        status = part("recurra.cli").main([*command, *(f"--set={name}={value}" for name, value in settings.items())])
        assert not status, f"training ended with status {status}"

        def forecast() -> Floats:
            answers = part("recurra").load(run).predict_file(table, ())
            return np.array([answer.detail["values"] for answer in answers])[:, :, 0]

        return forecast

    return train


def threads() -> int:
    found: int = part("torch").get_num_threads()
    return found


def gluonts_deepar(folder: Path, count: int, steps: int) -> Forecasting:
    pandas = part("pandas")
    start = pandas.Period("2020-01-01", freq="D")
    data = part("gluonts.dataset.common").ListDataset(
        [{"start": start, "target": values.astype(np.float32)} for values in drawn(count)], freq="D"
    )
    estimator = part("gluonts.torch").DeepAREstimator(
        freq="D",
        prediction_length=HORIZON,
        context_length=CONTEXT,
        num_layers=1,
        hidden_size=HIDDEN,
        lags_seq=[1],
        time_features=[],
        batch_size=BATCH,
        num_batches_per_epoch=steps,
        trainer_kwargs={
            "max_epochs": 1,
            "accelerator": "cpu",
            "enable_progress_bar": False,
            "logger": False,
            "default_root_dir": str(folder),
        },
    )
    predictor = estimator.train(data)
    return lambda: np.stack([forecast.quantile(0.5) for forecast in predictor.predict(data)])


def neuralforecast(name: str, **options: Any) -> Callable[[Path, int, int], Forecasting]:
    def train(folder: Path, count: int, steps: int) -> Forecasting:
        pandas = part("pandas")
        dates, names = pandas.to_datetime(months()), [f"s{number}" for number in range(count)]
        table = pandas.DataFrame(
            {
                "unique_id": np.repeat(names, STEPS),
                "ds": np.tile(dates.to_numpy(), count),
                "y": drawn(count).ravel().astype(np.float32),
            }
        )
        model = getattr(part("neuralforecast.models"), name)(
            h=HORIZON,
            input_size=CONTEXT,
            max_steps=steps,
            batch_size=BATCH,
            windows_batch_size=BATCH,
            scaler_type="standard",
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            default_root_dir=str(folder),
            **options,
        )
        system = part("neuralforecast").NeuralForecast(models=[model], freq="MS")
        system.fit(table)

        def forecast() -> Floats:
            found = system.predict().set_index("unique_id").iloc[:, 1]  # after the times; of a distribution the median
            return np.stack([found.loc[name].to_numpy() for name in names])

        return forecast

    return train


def part(name: str) -> Any:
    """A module that only one of the two Pythons has."""
    return importlib.import_module(name)


SIDES: dict[str, Callable[[Path, int, int], Forecasting]] = {
    "recurra, direct (the default)": recurra_training("direct"),
    "recurra, recursive, Student's t": recurra_training("recursive"),
    "GluonTS DeepAR": gluonts_deepar,
    "NeuralForecast LSTM": neuralforecast(
        "LSTM", encoder_n_layers=1, encoder_hidden_size=HIDDEN, decoder_layers=1, decoder_hidden_size=HIDDEN
    ),
    "NeuralForecast DeepAR": neuralforecast("DeepAR", lstm_n_layers=1, lstm_hidden_size=HIDDEN),
}

FORECASTS = {"recurra, direct (the default)": (STEPS - HORIZON) / 2}
"""Forecasts that are learned from a window, where they are several: 48 origins of a series in two windows."""


def work(side: str, folder: Path, count: int, options: argparse.Namespace) -> None:
    """Train for few and for many updates, or for few alone, and say what it took."""
    import torch

    torch.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes elsewhere
    seconds, errors = [], []
    every = [WARM, *updates_of(options)] if options.accuracy else (FEW,) if options.memory else (WARM, FEW, MANY)
    for steps in every:
        began = clock()
        forecast = SIDES[side](folder, count, steps)
        seconds.append(clock() - began)
        if options.accuracy and steps != WARM:
            errors.append(error_of(forecast()))
    found: dict[str, Any] = {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if options.accuracy:
        found |= {"errors": errors, "seconds": seconds[1:]}
    elif not options.memory:
        _, few, many = seconds  # the first one loaded the libraries
        rate = BATCH * (MANY - FEW) / (many - few)
        found |= {"rate": rate, "start": few - FEW * BATCH / rate}
    print(json.dumps(found), file=answers)


def updates_of(options: argparse.Namespace) -> list[int]:
    return [int(number) for number in options.accuracy.split(",")]


def measured(python: str, side: str, folder: Path, count: int, threads: int, *more: str) -> dict[str, Any] | str:
    of_threads = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment = {**os.environ, **of_threads, "CUDA_VISIBLE_DEVICES": ""}
    given = ["--side", side, "--folder", str(folder), "--series", str(count), "--threads", str(threads)]
    done = subprocess.run(
        [python, __file__, *given, *more],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:160]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rates(python: str, side: str, folder: Path, options: argparse.Namespace) -> list[float] | str:
    """Windows and forecasts a second, memory of a tenth of the series and of all, seconds before the first update."""
    few = measured(python, side, folder, options.series // 10, options.threads, "--memory")
    if isinstance(few, str):
        return few
    found = measured(python, side, folder, options.series, options.threads)
    if isinstance(found, str):
        return found
    rate = found["rate"]
    return [rate, rate * FORECASTS.get(side, 1), few["peak"], found["peak"], found["start"]]


def accuracies(python: str, side: str, folder: Path, options: argparse.Namespace) -> list[tuple[float, float]] | str:
    """The error and the seconds of training, for each number of updates."""
    found = measured(python, side, folder, options.series, options.threads, "--accuracy", options.accuracy)
    if isinstance(found, str):
        return found
    return list(zip(found["errors"], found["seconds"], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="the Python that has GluonTS and NeuralForecast")
    parser.add_argument("--series", type=int, default=10_000, help="how many (10,000)")
    parser.add_argument("--threads", type=int, default=1, help="of each side (1)")
    parser.add_argument("--only", default="", help="sides whose names contain this")
    parser.add_argument("--accuracy", metavar="UPDATES", help="errors after so many updates, such as 50,200,800")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        work(options.side, options.folder, options.series, options)
        return
    command = f"python benchmarks/{Path(sys.argv[0]).name} --series {options.series} --threads {options.threads}"
    print(f"command: {command}{f' --accuracy {options.accuracy}' if options.accuracy else ''}\n")
    head = ["windows/s", "forecasts/s", "MB of 1/10", "MB of all", "start s"]
    if options.accuracy:
        head = [f"{updates:,} updates" for updates in updates_of(options)]
    print(f"{f'{options.series:,} series of {STEPS} steps':34}" + "".join(f"{name:>15}" for name in head), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in {options.series // 10, options.series}:
            written(count, folder / f"series-{count}.csv")
        for side in (side for side in SIDES if options.only in side):
            python = sys.executable if side.startswith("recurra") else options.peers_python
            if python is None:
                print(f"  {side:32}needs --peers-python")
                continue
            found = (accuracies if options.accuracy else rates)(python, side, folder, options)
            if isinstance(found, str):
                print(f"  {side:32}failed: {found}", flush=True)
                continue
            cells = [f"{each[0]:.3f}, {each[1]:.0f} s" if isinstance(each, tuple) else f"{each:,.0f}" for each in found]
            print(f"  {side:32}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
