"""Forecasts beside baselines: the yearly number of sunspots, and the monthly CO₂ of Mauna Loa.

    python benchmarks/forecasting.py                                 # both, out of statsmodels, if it is installed
    python benchmarks/forecasting.py --sunspots sunspots.csv --co2 co2.csv        # the files that are inside its wheel

Both are cut by time into train, valid and test; valid and test begin with CONTEXT steps of the part before, which are
read and not scored. From every further step a forecast over the horizon is made by feeding the mean back, and its mean
absolute error is compared with that of the last value and of the last season. Settings were chosen on valid.
"""

from __future__ import annotations

import argparse
import csv
import importlib.resources
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from recurra.runs import begin, setup
from recurra.training.progress import progress

CONTEXT = 60

SETTINGS = {
    "sunspots": [
        *("decoding.horizon=11", "evaluation.season=11", "model.cell=gru", "model.hidden=64", "model.dropout=0.4"),
        *("data.window=64", "training.batch_size=4", "training.epochs=150", "training.learning_rate=5e-3"),
    ],
    "co2": [
        *("decoding.horizon=12", "evaluation.season=12", "model.cell=gru", "model.hidden=32", "model.dropout=0.1"),
        *("data.difference=true", "data.missing=previous", "data.window=64", "training.batch_size=4"),
        *("training.epochs=150", "training.learning_rate=5e-3"),
    ],
}

CUTS = {"sunspots": ("1920", "1960"), "co2": ("1986", "1993")}
"""Where valid and test begin."""

Rows = list[tuple[str, str]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SETTINGS:
        arguments.add_argument(f"--{name}", type=Path, help=f"{name}.csv of statsmodels")
    arguments.add_argument("--only", choices=list(SETTINGS), help="one of the two")
    arguments.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for both")
    options = arguments.parse_args()
    for name in [options.only] if options.only else list(SETTINGS):
        rows = records(name, getattr(options, name))
        with tempfile.TemporaryDirectory() as folder:
            files = written(monthly(rows) if name == "co2" else rows, CUTS[name], Path(folder))
            extra = [f"evaluation.context={CONTEXT}", "training.validate=20", f"training.device={options.device}"]
            this = setup("forecasting", given=files, overrides=[*SETTINGS[name], *extra, *options.set])
            begin(this, Path(folder) / "run", progress(sys.stderr, quiet=True))
            show(name, json.loads((Path(folder) / "run" / "summary.json").read_text("utf-8")))


def records(name: str, file: Path | None) -> Rows:
    """The two columns of a file of statsmodels: a time and a value."""
    if file is not None:
        text = file.read_text("utf-8")
    else:
        try:
            package = importlib.resources.files(f"statsmodels.datasets.{name}")
        except ModuleNotFoundError:
            sys.exit(f"statsmodels is not installed: install it, or give --{name} FILE, which is inside its wheel.")
        text = (package / f"{name}.csv").read_text("utf-8")
    return [(time, value) for time, value, *_ in csv.reader(io.StringIO(text))][1:]


def monthly(weeks: Rows) -> Rows:
    """The mean of the weeks of each month, empty where none was measured."""
    months: dict[str, list[float]] = {}
    for day, value in weeks:
        months.setdefault(f"{day[:4]}-{day[4:6]}", []).extend([float(value)] if value.strip() else [])
    return [(month, f"{sum(found) / len(found):.4f}" if found else "") for month, found in months.items()]


def written(rows: Rows, cuts: tuple[str, str], folder: Path) -> dict[str, str]:
    """Three tables, cut by time."""
    first, second = (next(number for number, (time, _) in enumerate(rows) if time >= cut) for cut in cuts)
    parts = {"train": rows[:first], "valid": rows[first - CONTEXT : second], "test": rows[second - CONTEXT :]}
    for part, found in parts.items():
        lines = ["date,value", *(f"{time},{value}" for time, value in found)]
        (folder / f"{part}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return {part: str(folder / f"{part}.csv") for part in parts}


def show(name: str, summary: dict[str, Any]) -> None:
    print(f"\n{name}: {summary['description']}, {summary['parameters']:,} parameters, {summary['seconds']:.0f} s")
    print(f"{'part':7}{'mae':>9}{'last value':>12}{'seasonal':>10}{'mae / seasonal':>16}{'rmse':>9}{'coverage':>10}")
    for part, scores in (("valid", summary["best"]["scores"]), ("test", summary["test"]["scores"])):
        print(
            f"{part:7}{scores['mae']:9.3f}{scores['last_value_mae']:12.3f}{scores['seasonal_mae']:10.3f}"
            f"{scores['mae_to_seasonal']:16.3f}{scores['rmse']:9.3f}{scores.get('coverage', float('nan')):10.2f}"
        )
    table = summary["tables"]["test: by step of the horizon"]
    print("test, step " + "".join(f"{row[0]:>8}" for row in table["rows"]))
    for number, column in enumerate(table["columns"][1:-1], 1):
        label = column.removesuffix("_mae").replace("mae", "model")
        print(f"{label:11}" + "".join(f"{row[number]:8.2f}" for row in table["rows"]))


if __name__ == "__main__":
    main()
