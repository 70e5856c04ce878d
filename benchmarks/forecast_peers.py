"""Training on many short series beside GluonTS's DeepAR and NeuralForecast's LSTM and DeepAR of the same size.

    python -m venv peers && peers/bin/pip install torch==2.13.0 'gluonts[torch]==0.17.0' neuralforecast==3.3.0
    python benchmarks/forecast_peers.py --peers-python peers/bin/python

Series of 60 months are drawn, a trend, a season and noise. Every system reads windows of 48 + 12 steps with one LSTM
layer of 64 units, 64 windows a batch, and predicts 12 steps. Each side runs in a process of its own, one after the
other, Recurra's by its command line, and trains twice, for few and for many updates; what counts is the difference:

    windows a second = 64 · (many − few) / (seconds for many − seconds for few)

in seconds of the processor, or, with --threads 2, of the clock: threads that wait for each other use a processor too.
So reading files and starting up are not counted. From a window Recurra's direct forecaster learns forecasts from
up to 32 of its steps, the others from one; a column of its own tells that. Peak memory is the resident memory of the
process, with all libraries that it loads, for a tenth of the series and for all.
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

Floats = NDArray[np.float64]


def drawn(count: int) -> Floats:
    """(count, STEPS): a level, a trend, a season of 12 steps and noise."""
    draw, steps = np.random.default_rng(1), np.arange(STEPS)
    level, trend = draw.lognormal(3, 1, (count, 1)), draw.normal(0, 0.005, (count, 1))
    season = 0.3 * np.sin(2 * np.pi * (steps / 12 + draw.random((count, 1))))
    found: Floats = level * (1 + trend * steps + season + 0.1 * draw.normal(size=(count, STEPS)))
    return found


def months() -> list[str]:
    return [f"{2020 + step // 12}-{step % 12 + 1:02}-01" for step in range(STEPS)]


def written(count: int, path: Path) -> None:
    dates = months()
    with path.open("w", encoding="utf-8") as file:
        print("series,date,value", file=file)
        for number, values in enumerate(drawn(count)):
            file.writelines(f"s{number},{date},{value:.4f}\n" for date, value in zip(dates, values, strict=True))


def recurra_training(ahead: str) -> Callable[[Path, int, int], None]:
    def train(folder: Path, count: int, steps: int) -> None:
        window = {"data.window": CONTEXT, "model.lags": CONTEXT} if ahead == "direct" else {"data.window": STEPS}
        output = {} if ahead == "direct" else {"model.output": "student_t"}
        settings: dict[str, object] = {"data.cache": "false", "model.ahead": ahead, "model.hidden": HIDDEN}
        settings |= {**window, **output, "training.batch_size": BATCH, "training.steps": steps}
        settings |= {"training.threads": threads(), "training.device": "cpu", "decoding.horizon": HORIZON}
        run = folder / f"run-{ahead}-{count}-{steps}"
        command = ["train", "forecasting", "--train", str(folder / f"series-{count}.csv"), "--out", str(run), "--quiet"]
        status = part("recurra.cli").main([*command, *(f"--set={name}={value}" for name, value in settings.items())])
        assert not status, f"training ended with status {status}"

    return train


def threads() -> int:
    found: int = part("torch").get_num_threads()
    return found


def gluonts_deepar(folder: Path, count: int, steps: int) -> None:
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
    estimator.train(data)


def neuralforecast(name: str, **options: Any) -> Callable[[Path, int, int], None]:
    def train(folder: Path, count: int, steps: int) -> None:
        pandas = part("pandas")
        dates = pandas.to_datetime(months())
        table = pandas.DataFrame(
            {
                "unique_id": np.repeat([f"s{number}" for number in range(count)], STEPS),
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
        part("neuralforecast").NeuralForecast(models=[model], freq="MS").fit(table)

    return train


def part(name: str) -> Any:
    """A module that only one of the two Pythons has."""
    return importlib.import_module(name)


SIDES: dict[str, Callable[[Path, int, int], None]] = {
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
    seconds = []
    for steps in (FEW,) if options.memory else (WARM, FEW, MANY):
        began = clock()
        SIDES[side](folder, count, steps)
        seconds.append(clock() - began)
    found = {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if not options.memory:
        _, few, many = seconds  # the first one loaded the libraries
        rate = BATCH * (MANY - FEW) / (many - few)
        found |= {"rate": rate, "start": few - FEW * BATCH / rate}
    print(json.dumps(found), file=answers)


def measured(
    python: str, side: str, folder: Path, count: int, threads: int, *, memory: bool = False
) -> dict[str, float] | str:
    of_threads = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    environment = {**os.environ, **of_threads, "CUDA_VISIBLE_DEVICES": ""}
    given = ["--side", side, "--folder", str(folder), "--series", str(count), "--threads", str(threads)]
    done = subprocess.run(
        [python, __file__, *given, *(["--memory"] if memory else [])],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:160]
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="the Python that has GluonTS and NeuralForecast")
    parser.add_argument("--series", type=int, default=10_000, help="how many (10,000)")
    parser.add_argument("--threads", type=int, default=1, help="of each side (1)")
    parser.add_argument("--only", default="", help="sides whose names contain this")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        work(options.side, options.folder, options.series, options)
        return
    command = f"python benchmarks/{Path(sys.argv[0]).name} --series {options.series} --threads {options.threads}"
    print(f"command: {command}\n")
    head = ("windows/s", "forecasts/s", "MB of 1/10", "MB of all", "start s")
    print(f"{f'{options.series:,} series of {STEPS} steps':34}" + "".join(f"{name:>13}" for name in head), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, tenth = Path(name), options.series // 10
        for count in (tenth, options.series):
            written(count, folder / f"series-{count}.csv")
        for side in (side for side in SIDES if options.only in side):
            python = sys.executable if side.startswith("recurra") else options.peers_python
            if python is None:
                print(f"  {side:32}needs --peers-python")
                continue
            few = measured(python, side, folder, tenth, options.threads, memory=True)
            all_of_them = measured(python, side, folder, options.series, options.threads)
            if isinstance(few, str) or isinstance(all_of_them, str):
                print(f"  {side:32}failed: {few if isinstance(few, str) else all_of_them}", flush=True)
                continue
            rate = all_of_them["rate"]
            numbers = (rate, rate * FORECASTS.get(side, 1), few["peak"], all_of_them["peak"], all_of_them["start"])
            print(f"  {side:32}" + "".join(f"{number:13,.0f}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()
