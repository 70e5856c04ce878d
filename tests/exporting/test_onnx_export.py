"""`recurra export --to onnx`: the folder answers and scores as its run does, by onnxruntime."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.generation.generated import Manner
from recurra.programs import onnx_file, onnx_operations
from recurra.programs.in_onnx import InOnnx
from recurra.training.trained import load
from tests.exporting.exports import (
    OLD,
    TASKS,
    answers_of,
    assert_alike,
    assert_answers_and_scores_as,
    inputs_of,
    sealed,
)
from tests.once import made_once

pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every exportable one of the old runs, exported once."""

    def make(here: Path) -> None:
        for task in TASKS:
            assert export(OLD / task / "run", here / task, to="onnx").by == "onnx"

    return made_once(tmp_path_factory, "onnx", make)


@pytest.fixture
def copy(folders: Path, tmp_path: Path) -> Path:
    """An exported tagger that may be damaged."""
    return Path(shutil.copytree(folders / "tagging", tmp_path / "copy"))


@pytest.mark.parametrize("task", TASKS)
def test_an_exported_model_answers_and_scores_as_its_run_does(folders: Path, task: str) -> None:
    run, exported = load(OLD / task / "run"), load_exported(folders / task)
    assert getattr(exported.running, "name", None) == "onnx"
    assert_answers_and_scores_as(exported, run, task)


@pytest.mark.parametrize(
    "asked",
    [
        {"search": "greedy"},
        {"search": "beam", "width": 4, "best": 3, "length_penalty": 0.8},
        {"search": "sampling", "temperature": 0.8, "top_k": 5, "top_p": 0.9, "seed": 4},
    ],
)
def test_every_search_finds_what_the_run_finds(folders: Path, asked: dict[str, Any]) -> None:
    lines = [line for line in inputs_of("seq2seq")[1] if line][:4]
    run, exported = load(OLD / "seq2seq" / "run"), load_exported(folders / "seq2seq")
    for found, right in zip(exported.predict(lines, **asked), run.predict(lines, **asked), strict=True):
        assert_alike(found._asdict(), right._asdict())


def test_a_language_model_writes_what_the_run_writes(folders: Path) -> None:
    run, exported = load(OLD / "language_model" / "run"), load_exported(folders / "language_model")
    found, right = (recurra.generate(model, "", count=2, seed=1, length=12) for model in (exported, run))
    assert [each.text for each in found] == [each.text for each in right]
    assert list(exported.writer(Manner(length=5)).pieces("")) == list(run.writer(Manner(length=5)).pieces(""))


def test_forecasts_and_streams_are_those_of_the_run(folders: Path, tmp_path: Path) -> None:
    export(OLD / "forecasting" / "run", tmp_path / "forecasting", to="onnx")
    run, exported = load(OLD / "forecasting" / "run"), load_exported(tmp_path / "forecasting")
    for found, right in zip(answers_of(exported, "forecasting"), answers_of(run, "forecasting"), strict=True):
        assert_alike(found.detail, right.detail)
    folder = folders / "language_model"
    streams = load(OLD / "language_model" / "run").stream(), load_exported(folder).stream()
    for element in "abc":
        right, found = (stream.read(element) for stream in streams)
        assert_alike(found._asdict(), right._asdict())


def test_inputs_without_a_step_are_answered(folders: Path) -> None:
    for task, lines in (("tagging", [""]), ("tagging", ["", "a"]), ("classification", ["", "a"])):
        run, exported = load(OLD / task / "run"), load_exported(folders / task)
        assert [each.output for each in exported.predict(lines)] == [each.output for each in run.predict(lines)]


def test_the_command_line_exports_and_predicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, run = tmp_path / "new", OLD / "tagging" / "run"
    assert main(["export", str(run), str(target), "--to", "onnx"]) == 0
    said = capsys.readouterr().out
    assert f"exported to {target}: 3 functions (scores, spell, chain0)" in said
    assert "the files *.onnx are all that a program with onnxruntime needs" in said
    assert main(["predict", str(target), str(inputs_of("tagging")[0])]) == 0
    found = capsys.readouterr().out
    assert main(["predict", str(run), str(inputs_of("tagging")[0])]) == 0
    assert capsys.readouterr().out == found


def test_a_fresh_process_answers_without_torch_and_without_the_package_onnx(folders: Path) -> None:
    code = (
        "import sys, recurra\n"
        f"model = recurra.load({str(folders / 'tagging')!r})\n"
        "print(model.predict(['a b'])[0].output)\n"
        "print(sorted({'torch', 'onnx'} & {name.split('.')[0] for name in sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_the_folder_describes_itself(folders: Path) -> None:
    names = {path.name for path in (folders / "seq2seq").iterdir()}
    assert {"manifest.json", "export.json", "program.json", "start.onnx", "step.onnx", "config.toml"} <= names
    assert not names & {"model.c", "weights.bin"}
    assert json.loads((folders / "seq2seq" / "export.json").read_text())["to"] == "onnx"


def test_a_program_of_ones_own_takes_one_step_after_the_other(folders: Path) -> None:
    """As docs/export.md shows it: outputs that are called next_… are the inputs of the next step."""
    folder = folders / "language_model"
    begin, step = (onnxruntime.InferenceSession(str(folder / f"{name}.onnx")) for name in ("begin", "step"))
    states = dict(zip([each.name for each in begin.get_outputs()], begin.run(None, {}), strict=True))
    for token in (1, 2):
        log_p, *after = step.run(None, {"tokens": np.array([token]), **states})
        states = {each.name.removeprefix("next_"): a for each, a in zip(step.get_outputs()[1:], after, strict=True)}
        assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-5)


# What is refused


@pytest.mark.parametrize("name", ["scores.onnx", "program.json"])
def test_a_damaged_file_is_refused(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        recurra.load(copy)


def test_a_folder_that_was_made_to_deceive_is_refused_too(copy: Path) -> None:
    other = (copy / "spell.onnx").read_bytes()
    with pytest.raises(CheckpointError, match=r"scores\.onnx does not take what program\.json says"):
        recurra.load(sealed(copy, "scores.onnx", other))
    with pytest.raises(CheckpointError, match=r"onnxruntime cannot read .*scores\.onnx"):
        recurra.load(sealed(copy, "scores.onnx", b"nothing"))


def test_what_runs_another_kind_of_folder_is_refused(folders: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"by = 'numpy': .* was exported to ONNX\. Leave it out, or .* --to c"):
        recurra.load(folders / "tagging", by="numpy")
    export(OLD / "vec2seq" / "run", tmp_path / "c")
    with pytest.raises(ConfigError, match=r"by = 'onnx': .* was exported to C\. Leave it out, or .* --to onnx"):
        recurra.load(tmp_path / "c", by="onnx")


def test_without_onnxruntime_it_is_said_what_to_install(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"onnxruntime is not installed: pip install 'recurra\[onnx\]'"):
        recurra.load(folders / "tagging")
    report = export(OLD / "vec2seq" / "run", tmp_path / "new", to="onnx")
    assert report.by is None
    assert "the files were not run, because onnxruntime is not installed" in report.text()


def test_without_the_package_onnx_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match=r"the package onnx, which is not installed: pip install 'recurra\[onnx\]'"):
        export(OLD / "vec2seq" / "run", tmp_path / "new", to="onnx")
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_exported_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="N is at most 2"):
        export(OLD / "question_answering" / "run", tmp_path / "new", to="onnx")
    with pytest.raises(ConfigError, match="--weights int8: ONNX is written with weights in float32 alone"):
        export(OLD / "tagging" / "run", tmp_path / "new", to="onnx", weights="int8")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "asked", [{"model.decoder.kind": "ctc"}, pytest.param({"model.copy": True}, marks=pytest.mark.slow)]
)
def test_models_that_join_flags_are_exported_too(tmp_path: Path, asked: dict[str, Any]) -> None:
    (tmp_path / "pairs.tsv").write_text("a b\tb a\nb\tb\na\ta\n")
    few = {"training.steps": 2, "model.hidden": 8, "model.embedding": 4, "data.cache": False, **asked}
    few |= {"data.source.tokens": "symbols", "data.target.tokens": "symbols"}
    run = recurra.train("seq2seq", train=str(tmp_path / "pairs.tsv"), out=tmp_path / "run", settings=few)
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "new"), "--to", "onnx"]) == 0
    found, right = (model.predict(["a b b", "z"]) for model in (recurra.load(tmp_path / "new"), run))
    assert [each.output for each in found] == [each.output for each in right]
    assert [each.score for each in found] == pytest.approx([each.score for each in right], abs=1e-4)


def refusal(target: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said where a tagger cannot be exported, of which nothing must be left."""
    assert main(["export", str(OLD / "tagging" / "run"), str(target), "--to", "onnx"]) == 2
    assert not target.exists()
    return capsys.readouterr().err


def test_a_graph_that_the_checker_refuses_is_said_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(onnx_operations.TWO, "add", "And")
    said = refusal(tmp_path / "new", capsys)
    assert "this model cannot be exported to ONNX: the package onnx " in said
    assert " refuses the graph of `scores` (" in said
    assert "Export it to C, by --to c." in said


def test_a_graph_that_cannot_be_loaded_or_answers_otherwise_is_said_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(onnx_file, "OPSET", 9)  # ReduceSum had its dimensions as an attribute then
        changed.setattr(sys.modules["onnx"].checker, "check_model", lambda *_, **__: None)
        said = refusal(tmp_path / "new", capsys)
    assert "what was written cannot be loaded again: onnxruntime cannot read " in said
    assert "Export it to C, by --to c." in said
    monkeypatch.setitem(onnx_operations.TWO, "add", "Sub")
    assert "that is off by" in refusal(tmp_path / "new", capsys)
    monkeypatch.setitem(onnx_operations.TWO, "add", "Add")
    monkeypatch.setattr(InOnnx, "run", raising(DataError("the program cannot compute scores.")))
    said = refusal(tmp_path / "new", capsys)
    assert (
        "this model cannot be exported to ONNX: the program cannot compute scores. Export it to C, by --to c." in said
    )


def raising(error: BaseException) -> Any:
    def call(*_: object) -> None:
        raise error

    return call


def test_an_export_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InOnnx, "run", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        export(OLD / "tagging" / "run", tmp_path / "new", to="onnx")
    assert not (tmp_path / "new").exists()
