"""How long steps take, and how busy the GPU was: said at the end of a training."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from recurra.runs import begin, resume
from recurra.training.nvml import utilisation
from recurra.training.progress import PlainLines
from recurra.training.tempo import Tempo
from tests.training.small import small_setup


def test_the_first_steps_are_not_counted() -> None:
    tempo = Tempo()
    assert tempo.milliseconds is None
    tempo.step(5.0)
    assert tempo.milliseconds == 5000.0  # there are no others
    for seconds in (1.0, 1.0, 0.002, 0.004):
        tempo.step(seconds)
    assert tempo.milliseconds == pytest.approx(3.0)
    assert str(tempo) == "3 ms a step"


def test_how_busy_the_gpu_was_is_a_mean() -> None:
    shares = iter([0.5, 0.7])
    tempo = Tempo(lambda: next(shares))
    for _ in range(2):
        tempo.step(0.5)
        tempo.look()
    assert str(tempo) == "500 ms a step, the GPU busy 60% of the time"


def test_a_driver_that_does_not_say_is_not_asked_again() -> None:
    asked = []

    def refuses() -> float:
        asked.append(True)
        raise RuntimeError("Driver Not Loaded")

    tempo = Tempo(refuses)
    tempo.look()
    tempo.look()
    assert len(asked) == 1
    assert tempo.busy is None


DRIVER = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) { *device = (void *)7; return strcmp(uuid, "GPU-a-b"); }
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) {
    if (device != (void *)7) return 2;
    rates[0] = 42; rates[1] = 9;
    return 0;
}
"""


def test_a_driver_is_asked_for_the_gpu_with_its_id(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "the engines need one too"
    (tmp_path / "driver.c").write_text(DRIVER, "utf-8")
    library = str(tmp_path / "driver.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"], check=True)
    asked = utilisation("GPU-a-b", library)
    assert asked is not None
    assert asked() == 0.42
    assert utilisation("GPU-another", library) is None
    (tmp_path / "old.c").write_text("int nothing;", "utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library + ".old", tmp_path / "old.c"], check=True)
    assert utilisation("GPU-a-b", library + ".old") is None


def test_of_a_cpu_nobody_asks() -> None:
    tempo = Tempo.on(torch.device("cpu"))
    tempo.look()
    assert tempo.busy is None


def test_a_training_says_at_its_end_how_long_a_step_took_and_which_engine_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    out = io.StringIO()
    begin(small_setup(tmp_path, "training.steps=5", "model.engine=loop"), tmp_path / "run", PlainLines(out))
    [said] = [line for line in out.getvalue().splitlines() if "ms a step" in line]
    assert re.search(r"\] [\d.]+ ms a step; engines: loop \(read_words.spelling.recurrent, recurrent\)$", said)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["milliseconds_per_step"] > 0
    assert summary["gpu_busy"] is None
    again = io.StringIO()
    resume(tmp_path / "run", PlainLines(again))  # which makes no step
    assert "ms a step" not in again.getvalue()
