"""benchmarks/training_on_gpu.py measures steps of the trainer itself; here on a CPU and on a few words."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "training_on_gpu.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("training_on_gpu", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_of_the_table_is_measured(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "g2p_sigmorphon2020" / "ice_train.tsv"
    data.parent.mkdir()
    data.write_text("".join(f"{'ab' * n}\t{'A B ' * n}\n" for n in range(1, 6)), "utf-8")
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(script.pronunciation, "DATA", tmp_path)
    monkeypatch.setattr(script, "WARM_UP", 2)
    monkeypatch.setattr(script, "WINDOW", 3)
    given = ["g2p", "--device", "cpu", "--seconds", "0"]
    for setting in ("model.hidden=4", "model.embedding=4", "training.batch_size=2", "training.threads=1"):
        given += ["--set", setting]
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, *given])
    script.main()
    title, heads, row = capsys.readouterr().out.splitlines()
    assert title.startswith("cpu, torch ")
    assert heads.split() == ["training", "steps", "ms", "a", "step", "windows", "kernels", "busy", "waits"]
    name, steps, median, spread = row.split()
    least, most = map(float, spread.split("–"))
    assert (name, steps) == ("g2p", "12")
    assert 0 < least <= float(median) <= most


def test_overlapping_kernels_are_counted_once(script: ModuleType) -> None:
    def event(device: str, start: float, end: float) -> Any:
        return SimpleNamespace(
            device_type=SimpleNamespace(name=device), time_range=SimpleNamespace(start=start, end=end)
        )

    events = [event("CUDA", 0, 2000), event("CUDA", 1000, 3000), event("CPU", 0, 9000), event("CUDA", 5000, 6000)]
    assert script.in_kernels(events) == pytest.approx(4.0)
