"""The baselines on M4 hourly and tourism monthly, beside the figures of the competitions.

    python benchmarks/forecast_baselines.py

Each series of train.csv.gz is forecast once, over all steps of test.csv.gz; scores are means over series of the mean
over steps. The data is looked for in RECURRA_DATA (default ../shared/data).
"""

from __future__ import annotations

import csv
import gzip
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recurra
from recurra.metrics.forecast_errors import naive_errors, percentage_errors, symmetric_percentage_errors
from recurra.metrics.forecasts import drift, last_value, seasonal
from recurra.metrics.theta import theta_of

Floats = NDArray[np.float64]

SETS = {"m4_hourly": 24, "tourism_monthly": 12}

PUBLISHED = {
    ("m4_hourly", "naive"): {"smape": 43.003, "mase": 11.608},
    ("m4_hourly", "seasonal naive"): {"smape": 13.912, "mase": 1.193},
    ("m4_hourly", "theta"): {"smape": 18.138, "mase": 2.455},
    ("tourism_monthly", "seasonal naive"): {"mape": 22.56, "mase": 1.63},
    ("tourism_monthly", "theta"): {"mape": 22.39, "mase": 1.65},
}


def data_folder() -> Path:
    return Path(os.environ.get("RECURRA_DATA", Path(__file__).parent / "../../shared/data"))


def series_of(path: Path) -> dict[str, Floats]:
    found: dict[str, list[float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["series_id"], []).append(float(row["value"]))
    return {name: np.array(values) for name, values in found.items()}


def scores(name: str) -> dict[str, dict[str, float]]:
    """sMAPE, MAPE and MASE of each baseline."""
    season, folder = SETS[name], data_folder() / name
    train, test = (series_of(folder / f"{part}.csv.gz") for part in ("train", "test"))
    horizon = len(next(iter(test.values())))
    smooth = dict(zip(train, theta_of(list(train.values()), horizon, season), strict=True))
    rows: dict[str, list[list[float]]] = {}
    for key, history in train.items():
        values, end = history[:, None], np.array([len(history)])
        gold = test[key][None, :, None]
        scale = naive_errors(values, end, season)[0, 0]
        found = {
            "naive": last_value(values, end, horizon),
            "seasonal naive": seasonal(values, end, horizon, season),
            "drift": drift(values, end, horizon),
            "theta": smooth[key][None, :, None],
        }
        for method, ahead in found.items():
            errors = [symmetric_percentage_errors(gold, ahead), percentage_errors(gold, ahead)]
            means = [float(np.nanmean(each)) for each in errors]
            rows.setdefault(method, []).append([*means, float(np.abs(ahead - gold).mean() / scale)])
    return {
        method: dict(zip(("smape", "mape", "mase"), np.nanmean(each, axis=0).tolist(), strict=True))
        for method, each in rows.items()
    }


def main() -> None:
    print(f"recurra {recurra.__version__}, numpy {np.__version__}, Python {platform.python_version()}")
    print(f"command: {' '.join(['python', *sys.argv])}\n")
    for name in SETS:
        if not (data_folder() / name).exists():
            print(f"{name}: not found in {data_folder()}")
            continue
        began = time.perf_counter()
        found = scores(name)
        print(f"{name}, season {SETS[name]}, in {time.perf_counter() - began:.1f} s (published figures in brackets)")
        for method, each in found.items():
            known = PUBLISHED.get((name, method), {})
            cells = [
                f"{score} {value:8.3f}" + (f" ({known[score]:g})" if score in known else "")
                for score, value in each.items()
            ]
            print(f"  {method:15} " + "   ".join(f"{cell:24}" for cell in cells))
        print()


if __name__ == "__main__":
    main()
