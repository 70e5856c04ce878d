"""Forecasts with the default settings on M4 hourly, tourism monthly and ETTh1, beside simple rules and published ones.

    python benchmarks/forecast_sets.py                                              # all sets, default output
    python benchmarks/forecast_sets.py --sets etth1 --outputs gaussian,student_t --steps 500

Only the horizon and the steps between origins are given. The two competitions are trained on train.csv.gz and
forecast once, over all steps of test.csv.gz; a second training holds out the last 10 % of each series (--valid 10%), by
whose errors the intervals of decoding.coverage = 0.9 are corrected. All series of a competition share one test period,
which may be calm or lively; with --back 1 it is the horizon before the end of train.csv.gz, and so on. ETTh1 is cut
into 12, 4 and 4 months; its columns are standardised by the first part, and errors are over all windows that lie
within the last part, in these units:

    MSE = mean (x̂ − x)²,     MAE = mean |x̂ − x|            over windows, steps of the horizon and columns

CRPS is in the unit of the data, divided by the mean size of the values (ETTh1: not divided). The data is looked for in
RECURRA_DATA (default ../shared/data); the parts of ETTh1 are written to a temporary folder.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import os
import platform
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from forecast_baselines import scores as baseline_scores
from recurra.metrics.forecasts import came_true, last_value, seasonal
from recurra.metrics.theta import theta_of
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.version import __version__

Floats = NDArray[np.float64]

USUAL = "quantiles"
"""The output of the default settings, which is then not named."""

COVERAGE = 0.9

PARTS = {"train": (0, 8640), "valid": (8640, 11520), "test": (11520, 14400)}
"""Rows of ETTh1, as all papers cut it."""

DAY, READ_BY_THETA = 24, 336
"""Steps of a season of ETTh1, and before an origin that the Theta method reads there."""

STRIDE = 5
"""Steps between the origins of ETTh1 that are validated and calibrated on; all are tested."""

COMPETITIONS = {"m4_hourly": 48, "tourism_monthly": 24}
"""The horizons."""

FEWEST = {"m4_hourly": 72, "tourism_monthly": 36}
"""Steps of a series that are left to train on before an earlier test period."""

PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "m4_hourly": {
        "ES-RNN (Smyl, the winner)": {"smape": 9.328, "mase": 0.893},
        "RNN of the organisers": {"smape": 14.698, "mase": 3.048},
        "DeepAR (GIFT-Eval)": {"smape": 16.4, "mase": 3.53},
    },
    "tourism_monthly": {
        "ETS (R forecast)": {"mape": 21.06, "mase": 1.54},
        "Theta (R forecast)": {"mape": 22.39, "mase": 1.65},
        "N-BEATS, one repeat": {"mape": 19.66},
        "N-BEATS, ensemble": {"mape": 19.47},
    },
    "OT, 24": {"LSTMa": {"mse": 0.114, "mae": 0.272}, "DeepAR": {"mse": 0.107, "mae": 0.280}},
    "OT, 48": {"LSTMa": {"mse": 0.193, "mae": 0.358}, "DeepAR": {"mse": 0.162, "mae": 0.327}},
    "OT, 168": {"LSTMa": {"mse": 0.236, "mae": 0.392}, "DeepAR": {"mse": 0.239, "mae": 0.422}},
    "OT, 336": {"LSTMa": {"mse": 0.590, "mae": 0.698}, "DeepAR": {"mse": 0.445, "mae": 0.552}},
    "OT, 720": {"LSTMa": {"mse": 0.683, "mae": 0.768}, "DeepAR": {"mse": 0.658, "mae": 0.707}},
    "all 7, 24": {"LSTMa": {"mse": 0.650, "mae": 0.624}, "LSTNet": {"mse": 1.293, "mae": 0.901}},
    "all 7, 48": {"LSTMa": {"mse": 0.702, "mae": 0.675}, "LSTNet": {"mse": 1.456, "mae": 0.960}},
    "all 7, 168": {"LSTMa": {"mse": 1.212, "mae": 0.867}, "LSTNet": {"mse": 1.997, "mae": 1.214}},
    "all 7, 336": {"LSTMa": {"mse": 1.424, "mae": 0.994}, "LSTNet": {"mse": 2.655, "mae": 1.369}},
    "all 7, 720": {"LSTMa": {"mse": 1.960, "mae": 1.322}, "LSTNet": {"mse": 2.143, "mae": 1.380}},
}

SCORES = ("smape", "mape", "mase", "mse", "mae", "crps", "coverage", "calibrated", "seconds")


class Limits(NamedTuple):
    """What is given beside the data."""

    overrides: list[str]
    folder: Path


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sets", default="m4_hourly,tourism_monthly,etth1", help="some of these three (all)")
    arguments.add_argument("--outputs", default=USUAL, help=f"values of model.output ({USUAL}, the default)")
    arguments.add_argument("--horizons", default="24,48,168", help="of ETTh1 (24,48,168)")
    arguments.add_argument("--columns", default="OT,all 7", help="of ETTh1 (OT,all 7)")
    arguments.add_argument("--steps", type=int, help="updates of each training (the default epochs)")
    arguments.add_argument("--minutes", type=float, help="minutes of each training (no limit)")
    arguments.add_argument("--seed", type=int, default=1, help="of the training (1)")
    arguments.add_argument(
        "--back", default="0", help="test periods of the competitions: 0 the given one, 1 that before"
    )
    arguments.add_argument("--shares", default="none,10%", help="held out of the competitions' series (none,10%%)")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    print(f"recurra {__version__}, torch {torch.__version__}, Python {platform.python_version()}, 1 thread")
    print(f"command: python benchmarks/{Path(sys.argv[0]).name} {' '.join(map(quoted, sys.argv[1:]))}\n")
    given = [f"training.seed={options.seed}", "training.threads=1", "training.device=cpu", "data.cache=false"]
    given += [f"training.{name}={getattr(options, name)}" for name in ("steps", "minutes") if getattr(options, name)]
    outputs = options.outputs.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets.split(","):
            if not (data_folder() / name).exists():
                print(f"{name}: not found in {data_folder()}\n")
                continue
            limits = Limits(given, Path(folder))
            if name == "etth1":
                cases = list(itertools.product(options.columns.split(","), map(int, options.horizons.split(","))))
                show_etth1(cases, outputs, limits)
            else:
                for back in map(int, options.back.split(",")):
                    show_competition(name, outputs, options.shares.split(","), limits, back)


def quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def data_folder() -> Path:
    return Path(os.environ.get("RECURRA_DATA", Path(__file__).parent / "../../shared/data"))


def user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def trained(limits: Limits, files: Mapping[str, str], output: str, settings: Sequence[str]) -> tuple[Trained, float]:
    """A model, and the seconds of the processor that its training took."""
    began, run = user_seconds(), Path(tempfile.mkdtemp(dir=limits.folder)) / "run"
    named = [] if output == USUAL else [f"model.output={output}"]
    begin(setup("forecasting", given=files, overrides=[*settings, *named, *limits.overrides]), run, Silent())
    return load(run), user_seconds() - began


def show_competition(name: str, outputs: Sequence[str], shares: Sequence[str], limits: Limits, back: int) -> None:
    horizon = COMPETITIONS[name]
    train, test = earlier(name, back, limits.folder) if back else map(str, competition(name))
    settings = [f"decoding.horizon={horizon}", f"evaluation.stride={horizon}"]
    columns = [score for score in SCORES if score not in ("mse", "mae")]
    head(f"{name}, horizon {horizon}{f', {back} back' if back else ''}", columns)
    for output, share in itertools.product(outputs, shares):
        is_held_out = share != "none"
        given = {"train": train} | ({"valid": share} if is_held_out else {})
        model, seconds = trained(limits, given, output, settings)
        if is_held_out:
            model = model.with_settings([f"decoding.coverage={COVERAGE}"])
        found = model.evaluate(test).values
        row(f"{output}{f', --valid {share}' if is_held_out else ''}", columns, named(found, seconds))
    if back:
        print(flush=True)
        return
    for rule, found in baseline_scores(name).items():
        row(rule, columns, found)
    for system, found in PUBLISHED[name].items():
        row(system, columns, found)
    print(flush=True)


def competition(name: str) -> list[Path]:
    return [data_folder() / name / f"{part}.csv.gz" for part in ("train", "test")]


def earlier(name: str, back: int, folder: Path) -> list[str]:
    """Files of the test period so many horizons before the given one, and of what lies before it.

    Series of which less than three years of months, or three days, would be left to train on are left out.
    """
    horizon, series, header = COMPETITIONS[name], dict[str, list[list[str]]](), list[str]()
    with gzip.open(competition(name)[0], "rt", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    for row in rows:
        series.setdefault(row[0], []).append(row)
    found = []
    for part in ("train", "test"):
        path = folder / f"{name}-{back}-{part}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            for each in series.values():
                end = len(each) - (back - 1) * horizon
                if end - horizon >= FEWEST[name]:
                    writer.writerows(each[: end - horizon] if part == "train" else each[end - horizon : end])
        found.append(str(path))
    return found


def named(found: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Scores of a model under the names of the columns."""
    known = {"coverage": found["interval_coverage"], "crps": found["weighted_quantile_loss"], "seconds": seconds}
    if "calibrated_coverage" in found:
        known["calibrated"] = found["calibrated_coverage"]
    return {**{name: found[name] for name in ("smape", "mape", "mase")}, **known}


def show_etth1(cases: Sequence[tuple[str, int]], outputs: Sequence[str], limits: Limits) -> None:
    columns = [score for score in SCORES if score not in ("smape", "mape", "mase")]
    for which, horizon in cases:
        head(f"etth1, {which}, {horizon}", columns)
        files, values = parts(which, limits.folder)
        settings = [f"decoding.horizon={horizon}", f"evaluation.stride={STRIDE}"]
        for output in outputs:
            given = {part: files[part] for part in ("train", "valid")}
            model, seconds = trained(limits, given, output, settings)
            row(output, columns, tested(model, files, horizon) | {"seconds": seconds})
        for rule, found in rules(values, horizon):
            row(rule, columns, found)
        for system, found in PUBLISHED.get(f"{which}, {horizon}", {}).items():
            row(system, columns, found)
        print(flush=True)


def parts(which: str, folder: Path) -> tuple[dict[str, str], Floats]:
    """Files of the three parts of ETTh1, and all its rows, standardised by the first part."""
    with gzip.open(data_folder() / "etth1" / "ETTh1.csv.gz", "rt", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    values = np.array([row[1:] for row in rows], np.float64)[: PARTS["test"][1]]
    first = values[slice(*PARTS["train"])]
    values, names = (values - first.mean(0)) / first.std(0), header[1:]
    if which == "OT":
        values, names = values[:, -1:], names[-1:]
    files = {}
    for part, (start, end) in PARTS.items():
        path = folder / f"etth1-{len(names)}-{part}.csv"
        lines = [",".join([row[0], *(f"{x:.6f}" for x in each)]) for row, each in zip(rows, values, strict=False)]
        path.write_text("\n".join([",".join(["date", *names]), *lines[start:end]]) + "\n", "utf-8")
        files[part] = str(path)
    return files, values


def tested(model: Trained, files: Mapping[str, str], horizon: int) -> dict[str, float]:
    """Scores over every window that lies within the test part."""
    model = model.with_settings(["evaluation.stride=1", f"decoding.coverage={COVERAGE}"]).preceded_by(files["valid"])
    examples, [review] = model.to_score([files["test"]])
    start, end = PARTS["test"]
    count = end - start - horizon + 1
    assert review.origins[0] == len(examples[0]) - (end - start), "the first window begins with the part"
    review = review._replace(origins=review.origins[:count], ahead=review.ahead[:count], fan=review.fan[:count])
    found: dict[str, Any] = model.task.score(examples, [review]).values
    known = {"coverage": found["interval_coverage"], "calibrated": found["calibrated_coverage"]}
    return {"mse": found["rmse"] ** 2, "mae": found["mae"], "crps": found["crps"], **known}


def rules(values: Floats, horizon: int) -> Iterator[tuple[str, dict[str, float]]]:
    """The errors of simple rules on the same windows."""
    start, end = PARTS["test"]
    origins = np.arange(start, end - horizon + 1)
    gold = came_true(values, origins, horizon)
    histories = [column[origin - READ_BY_THETA : origin] for origin in origins for column in values.T]
    smooth = theta_of(histories, horizon, DAY).reshape(len(origins), -1, horizon).swapaxes(1, 2)
    found = {
        "naive (last value)": last_value(values, origins, horizon),
        "seasonal naive (last day)": seasonal(values, origins, horizon, DAY),
        f"theta (of {READ_BY_THETA} steps)": smooth,
    }
    for rule, ahead in found.items():
        yield rule, {"mse": float(np.square(ahead - gold).mean()), "mae": float(np.abs(ahead - gold).mean())}


def head(title: str, columns: Sequence[str]) -> None:
    labels = {"coverage": "cover 90 %", "calibrated": "calibrated", "seconds": "CPU s"}
    print(f"{title:32}" + "".join(f"{labels.get(column, column):>12}" for column in columns), flush=True)


def row(label: str, columns: Sequence[str], found: Mapping[str, float]) -> None:
    digits = {"seconds": 0}
    cells = [f"{found[name]:12.{digits.get(name, 3)}f}" if name in found else " " * 12 for name in columns]
    print(f"  {label:30}" + "".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
