"""Runs that earlier versions trained still load, answer and score the same, and go on.

`tests/old_runs/make.py` made them with the version that names their folder.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from recurra.cli import main
from recurra.named import catalogue
from recurra.tasks.task import Task
from recurra.training.loading import files_of_vocabulary, load_task

OLD = sorted((Path(__file__).parent / "old_runs").glob("*/*/expected.json"))
LARGEST = 200_000
"""Bytes of one run with its data."""

NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


@pytest.fixture(params=OLD, ids=lambda path: f"{path.parent.parent.name}-{path.parent.name}")
def old(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an old run is expected to say; the current folder is a copy in which it can be changed."""
    shutil.copytree(request.param.parent, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    found: dict[str, Any] = json.loads(request.param.read_text("utf-8"))
    return found


def said(capsys: pytest.CaptureFixture[str], *arguments: str, is_verified: bool = False) -> list[Any]:
    """The JSON lines that a command prints, which says besides only that the run cannot be verified, where it can't."""
    notice = expected_notice()
    status = main(arguments)
    told = capsys.readouterr()
    assert status == 0
    assert re.fullmatch("" if is_verified else notice, told.err), told.err
    return [json.loads(line) for line in told.out.splitlines()]


def expected_notice() -> str:
    """What is said about a run that has no manifest, as the first ones; of others nothing."""
    has_manifest = Path("run/manifest.json").exists()
    return "" if has_manifest else r"recurra: run has no manifest\.json, because an earlier version .*\n"


def assert_same(found: object, wanted: object, tolerance: float, where: str = "") -> None:
    """The same texts, and numbers that hardly differ; later versions may say more than an old one."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), where
        for key, value in wanted.items():
            assert key in found, f"{where}.{key}"
            assert_same(found[key], value, tolerance, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list), where
        assert len(found) == len(wanted), where
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_same(one, other, tolerance, f"{where}[{number}]")
    elif isinstance(wanted, str):
        assert isinstance(found, str), where
        assert NUMBER.sub("#", found) == NUMBER.sub("#", wanted), where
        assert numbers_in(found) == pytest.approx(numbers_in(wanted), rel=1e-5, abs=1e-5), where
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=tolerance, abs=tolerance), where
    else:
        assert found == wanted, where


def numbers_in(text: str) -> Sequence[float]:
    """A forecast is a text of numbers."""
    return [float(number) for number in NUMBER.findall(text)]


def test_there_is_an_old_run_of_every_task_and_each_is_small() -> None:
    assert {path.parent.name for path in OLD} == set(catalogue(Task))
    for path in OLD:
        assert sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file()) < LARGEST, path


def test_answers_the_same(old: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert_same(said(capsys, "predict", "run", old["inputs"], "--json"), old["answers"], 1e-5)


def test_evaluates_the_same(old: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    [scores] = said(capsys, "evaluate", "run", old["valid"], "--json")
    assert_same(scores, old["scores"], 1e-6)


def test_resumes_at_its_step_and_arrives_where_the_old_code_did(
    old: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    last, notice = old["resumed"], expected_notice()
    assert main(["train", "run", "--resume", "--quiet", "--set", f"training.steps={last['to']}"]) == 0
    told = capsys.readouterr()
    assert re.fullmatch(notice, told.err), told.err
    assert f"{last['to']} steps" in told.out
    log = [json.loads(line) for line in Path("run/metrics.jsonl").read_text("utf-8").splitlines()]
    assert any(line.get("text") == f"resumed from step {last['from']}" for line in log), log
    assert max(line["step"] for line in log) == last["to"]
    [scores] = said(capsys, "evaluate", "run", old["valid"], "--json", is_verified=True)
    assert_same(scores, last["scores"], 1e-3)
    sizes = {
        name: float(tensor.double().square().mean().sqrt())
        for name, tensor in load_file("run/model.safetensors").items()
    }
    assert_same(sizes, last["weights"], 1e-4)


def test_is_a_base_that_keeps_its_vocabulary_and_scales(
    old: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    train = load_task(Path("run")).settings.data.files("train")
    few = ["training.steps=1", "training.learning_rate=1e-9", "training.warmup=0", "training.average=none"]
    changes = [word for each in few for word in ("--set", each)]
    assert main(["train", "--from", "run", "--train", *train, "--out", "new", *changes]) == 0
    told = capsys.readouterr()
    assert "starting from run" in told.err
    for file in files_of_vocabulary(Path("run")):
        before, after = (json.loads(Path(run, file.name).read_text("utf-8")) for run in ("run", "new"))
        is_counted = isinstance(before, dict) and all(isinstance(count, int) for count in before.values())
        assert [*before] == [*after] if is_counted else before == after, old["task"]
    before, after = (load_file(f"{run}/model.safetensors") for run in ("run", "new"))
    assert before.keys() == after.keys()
    for name, weight in before.items():
        if weight.is_floating_point():
            assert torch.allclose(weight, after[name], atol=1e-6), name
