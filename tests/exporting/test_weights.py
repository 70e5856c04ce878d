"""`recurra export --weights`: narrower weights answer as the run does, and what was lost is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recurra
from recurra.cli import main
from recurra.errors import ConfigError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.training.trained import load
from tests.once import made_once


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger that is small, but not too small for narrow weights."""

    def make(here: Path) -> None:
        (here / "train.conll").write_text("the\tDET\ncat\tNOUN\nsleeps\tVERB\n\n" * 9)
        few = {"training.steps": 30, "model.hidden": 48, "data.cache": False, "data.min_count": 1}
        recurra.train("tagging", train=str(here / "train.conll"), out=here / "run", settings=few)

    return made_once(tmp_path_factory, "narrow", make) / "run"


@pytest.mark.parametrize("width", ["bf16", "int8"])
def test_an_export_with_narrow_weights_answers_as_the_run_and_says_what_it_lost(
    run: Path, tmp_path: Path, width: str
) -> None:
    assert main(["export", str(run), str(tmp_path / "exported"), "--weights", width]) == 0
    plain = export(run, tmp_path / "plain")
    assert plain.narrow is None
    exported = load_exported(tmp_path / "exported")
    kinds = {kind for kind, _ in exported.running.program.weights.values()}
    assert kinds & {"int8", "bfloat16"} == {{"bf16": "bfloat16"}.get(width, width)}
    assert json.loads((tmp_path / "exported" / "export.json").read_text())["weights"] == width
    assert (tmp_path / "exported" / "weights.bin").stat().st_size < 0.7 * plain.bytes["weights.bin"]
    samples = json.loads((tmp_path / "exported" / "samples.json").read_text("utf-8"))
    right = load(run).predict([each["input"] for each in samples])
    for answer, each, wanted in zip(exported.predict([each["input"] for each in samples]), samples, right, strict=True):
        assert answer.output == each["output"] == wanted.output
        assert answer.score == pytest.approx(wanted.score, abs=0.02)


def test_the_report_names_how_matrices_are_kept_and_how_many_answers_are_the_runs(run: Path, tmp_path: Path) -> None:
    report = export(run, tmp_path / "exported", weights="int8")
    text = report.text()
    assert "matrices: " in text
    assert f"{report.samples} of {report.samples} sample answers are the run's own; scores differ by" in text


def test_a_width_that_there_is_not_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="--weights int4 is not known: choose float32, bf16 or int8"):
        export(run, tmp_path / "exported", weights="int4")  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        main(["export", "run", "folder", "--weights", "int4"])
    assert "invalid choice: 'int4'" in capsys.readouterr().err
