"""Models that read pictures of many sizes: their programs answer as the models do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recurra
from recurra.engines.c_library import compiler
from recurra.programs.solving import NotExportable
from tests.exporting.agreeing import assert_agrees, built

SIZES = ((9, 5), (4, 13), (1, 1), (8, 8))
SMALL: Mapping[str, Any] = {"data.cache": False, "data.image": "pixels", "model.image.widths": [3, 4]}
CAPTIONS: Mapping[str, Any] = {
    **SMALL,
    **{"data.target.tokens": "characters", "model.hidden": 6, "model.embedding": 4, "model.attention": "additive"},
    **{"decoding.min_length": 2, "decoding.max_length": 6, "decoding.width": 3},
}
ASKED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "captions": ("vec2seq", CAPTIONS),
    "rows that are read": ("vec2seq", {**CAPTIONS, "model.image.rows": "gru", "model.image.norm": "layer"}),
    "classes": ("classification", {**SMALL, "model.image.positions": True}),
    "attention to places": ("classification", {**SMALL, "model.summary": "attention", "model.image.non_local": True}),
}


def pictures() -> list[list[list[int]]]:
    draws = np.random.default_rng(1)
    found: list[list[list[int]]] = [draws.integers(0, 256, size).tolist() for size in SIZES]
    return found


def written(folder: Path, task: str) -> Path:
    path = folder / "pictures.jsonl"
    answers = ("ab", "ba", "abb", "c") if task == "vec2seq" else ("a", "b", "a", "c")
    name = "target" if task == "vec2seq" else "label"
    rows = [{"pixels": picture, name: answer} for picture, answer in zip(pictures(), answers, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def made(folder: Path, task: str, asked: Mapping[str, Any]) -> tuple[Any, torch.nn.Module]:
    return built(written(folder, task), task, asked, 5, times=1.0)


@pytest.mark.parametrize("name", ASKED)
def test_a_model_of_pictures_answers_alike_by_its_program(tmp_path: Path, name: str) -> None:
    task, asked = ASKED[name]
    kind, model = made(tmp_path, task, asked)
    by = ("numpy", "c", "onnx") if name == "captions" and compiler() is not None else ("numpy", "onnx")
    assert_agrees(kind, model, list(kind.questions(None, pictures())), by=by, folder=tmp_path / "onnx")


@pytest.mark.parametrize("name", ["captions", "classes"])
def test_an_exported_folder_answers_pictures_without_torch(tmp_path: Path, name: str) -> None:
    pytest.importorskip("PIL", reason="samples are pictures in PNG")
    task, asked = ASKED[name]
    path = written(tmp_path, task)
    run = recurra.train(task, train=str(path), out=tmp_path / "run", settings={**asked, "training.steps": 2})
    recurra.export(tmp_path / "run", tmp_path / "exported")
    samples = json.loads((tmp_path / "exported" / "samples.json").read_text())
    assert samples[0]["input"].startswith("data:image/png;base64,")
    (tmp_path / "asked.json").write_text(json.dumps(pictures()))
    code = (
        "import json, pathlib, sys\n"
        "sys.modules['torch'] = None\n"
        "import recurra\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "model = recurra.load(folder / 'exported', by='numpy')\n"
        "asked = json.loads((folder / 'asked.json').read_text())\n"
        "print(json.dumps([[each.output, each.score] for each in model.predict(asked)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    right = run.predict(pictures())
    found = json.loads(done.stdout)
    assert [output for output, _ in found] == [each.output for each in right]
    assert [score for _, score in found] == pytest.approx([each.score for each in right], abs=1e-5)


def test_attention_that_goes_by_rows_and_columns_is_refused_in_words(tmp_path: Path) -> None:
    asked = {**CAPTIONS, "model.attention": {"name": "additive", "terms": ["coverage"]}}
    kind, model = made(tmp_path, "vec2seq", asked)
    with pytest.raises(NotExportable, match="its attention has a location or terms"):
        kind.predictor().functions(model)
