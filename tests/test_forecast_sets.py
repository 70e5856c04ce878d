"""benchmarks/forecast_sets.py cuts ETTh1 as the papers do: the simple rules have their published errors."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return runpy.run_path(str(BENCHMARKS / "forecast_sets.py"))


def test_the_rules_on_etth1_have_the_errors_of_the_data_set_s_own_table(script: dict[str, Any], tmp_path: Path) -> None:
    if not (script["data_folder"]() / "etth1").exists():
        pytest.skip("ETTh1 is not here")
    files, values = script["parts"]("OT", tmp_path)
    found = dict(script["rules"](values, 24))
    assert [round(found["naive (last value)"][name], 3) for name in ("mse", "mae")] == [0.034, 0.139]
    assert [round(found["seasonal naive (last day)"][name], 3) for name in ("mse", "mae")] == [0.046, 0.166]
    rows = {part: Path(file).read_text("utf-8").splitlines()[1:] for part, file in files.items()}
    assert {part: len(lines) for part, lines in rows.items()} == {"train": 8640, "valid": 2880, "test": 2880}
    assert rows["test"][0].startswith("2017-10-24 00:00")


def test_series_drawn_for_the_peers_are_the_same_each_time_and_have_a_season() -> None:
    peers = runpy.run_path(str(BENCHMARKS / "forecast_peers.py"))
    values = peers["drawn"](200)
    assert values.shape == (200, 60)
    np.testing.assert_array_equal(values, peers["drawn"](200))
    scaled = values / values.mean(1, keepdims=True)
    apart = [float(np.abs(scaled[:, lag:] - scaled[:, :-lag]).mean()) for lag in (12, 6)]
    assert apart[0] < apart[1] / 2
