"""The C file of every task under the sanitizers: inputs of any size, ids from anywhere, weights that are damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recurra.exporting.folder import export
from recurra.exporting.joining import recorded_functions
from recurra.predictors.predictor import Predictor
from recurra.programs.c_text import Printed
from recurra.programs.folding import folded
from recurra.programs.narrowing import Width
from recurra.programs.program import Program
from recurra.programs.weights import weights_content
from recurra.training.trained import load
from tests.exporting.agreeing import built
from tests.exporting.attacking import driver
from tests.exporting.random_models import written
from tests.exporting.test_kinds_of_models import MODELS, SMALL, SYMBOLS, WRITES

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"
EXPORTED: list[tuple[str, Width]] = [
    *((task, "float32") for task in ("tagging", "classification", "language_model", "seq2seq", "vec2seq")),
    ("forecasting", "float32"),
    ("vec2seq", "int8"),
    ("seq2seq", "int8"),
    ("tagging", "int8"),
    ("seq2seq", "bf16"),
]
TABLE = {"data.time": "time", "data.series": "shop", "data.values": ["sold"], "data.season": 4, "decoding.horizon": 3}
OTHERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{name: ("seq2seq", "pairs", {**SMALL, **SYMBOLS, **asked}) for name, asked in MODELS.items()},
    "a tagger of streams": ("tagging", "tags", {"model.hidden": 8, "model.bidirectional": False}),
    "a classifier of streams": ("classification", "labels", {"model.hidden": 8, "model.bidirectional": False}),
    "a transformer that continues": ("language_model", "lines", {**SMALL, **WRITES, "model.decoder.context": 4}),
    "answers to stories": ("question_answering", "stories", {"model.hidden": 6, "model.memories": 6}),
    "forecasts of series": (
        *("forecasting", "table"),
        {**TABLE, "model.hidden": 6, "model.ahead": "attention", "data.future": ["price"]},
    ),
    "forecasts of counts": (
        *("forecasting", "counts"),
        {**TABLE, "model.hidden": 6, "model.ahead": "direct", "model.output": "negative_binomial"},
    ),
    "forecasts with heavy tails": ("forecasting", "table", {**TABLE, "model.hidden": 6, "model.output": "student_t"}),
}
"""Untrained models: their tasks, data and settings."""

STRICT = ("-Wall", "-Wextra", "-std=c11", "-Werror")
SANITIZED = ("-O1", "-g", "-Werror", "-fno-sanitize-recover=all")
BUILDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gcc": ("gcc", ("-fsanitize=address,undefined",)),
    "clang": ("clang", ("-fsanitize=address,undefined",)),
    "threads": ("gcc", ("-fsanitize=address,undefined", "-pthread", "-DRECURRA_THREADS", "-DWORTH_SHARING=64")),
    "races": ("clang", ("-fsanitize=thread", "-pthread", "-DRECURRA_THREADS", "-DWORTH_SHARING=64")),
}
"""Compilers and their arguments. With threads, products of any size are shared out."""


def exported(folder: Path, task: str, width: Width) -> Printed:
    """A run of an earlier version in C, in a folder."""
    export(OLD / task / "run", folder, weights=width)
    program = Program.from_json((folder / "program.json").read_text())
    return Printed(program, usual=load(OLD / task / "run").task.predictor().usual())


def printed_of(folder: Path, name: str) -> Printed:
    """An untrained model in C, in a folder."""
    task, data, asked = OTHERS[name]
    folder.mkdir()
    kind, model = built(written(folder, data), task, asked, 3, times=1.5)
    predictor: Predictor[Any] = kind.predictor()
    program, weights = folded(*recorded_functions(model, predictor.functions(model)))
    program = Program.from_json(program.to_json())
    printed = Printed(program, usual=predictor.usual())
    (folder / "model.c").write_text(printed.text)
    (folder / "model.h").write_text(printed.header())
    (folder / "weights.bin").write_bytes(weights_content(program, weights).tobytes())
    return printed


def compiled(build: str, *arguments: str) -> None:
    """What one of the compilers does; a test is skipped where there is none."""
    command, flags = BUILDS[build]
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command} here")
    done = subprocess.run([command, *flags, *arguments], capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert done.returncode == 0, done.stderr


def attacked(folder: Path, printed: Printed, build: str) -> None:
    """That an exported C file answers or refuses whatever it is called with."""
    main = folder / "main"
    (folder / "main.c").write_text(driver(printed))
    sources = [str(folder / "main.c"), str(folder / "model.c")]
    compiled(build, *SANITIZED, f"-I{folder}", *sources, "-lm", "-o", str(main))
    # What is larger than any memory is refused by malloc, as it is without the sanitizers.
    settings = {"ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=1024"}
    settings["TSAN_OPTIONS"] = settings["ASAN_OPTIONS"]
    done = subprocess.run(
        [str(main), str(folder / "weights.bin")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **settings},
    )
    assert done.returncode == 0, done.stderr[:3000]
    answered, refused = map(int, done.stdout.split())
    assert answered > 2000
    assert refused > 100
    print(f"{build}: {answered:,} answered, {refused:,} refused")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("task", "width"), EXPORTED)
def test_ten_thousand_inputs_and_two_thousand_damaged_weights_give_an_answer_or_a_code(
    tmp_path: Path, task: str, width: Width, build: str
) -> None:
    attacked(tmp_path / "new", exported(tmp_path / "new", task, width), build)


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", OTHERS)
def test_models_of_every_kind_give_an_answer_or_a_code_too(tmp_path: Path, name: str, build: str) -> None:
    attacked(tmp_path / "new", printed_of(tmp_path / "new", name), build)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* has no manifest.json:UserWarning")
@pytest.mark.parametrize(("name", "width"), [*((name, "float32") for name in OTHERS), ("", "int8"), ("", "bf16")])
def test_the_c_file_compiles_without_a_warning(tmp_path: Path, name: str, width: Width) -> None:
    folder = tmp_path / "new"
    if name:
        printed_of(folder, name)
    else:
        exported(folder, "seq2seq", width)
    threaded = ("-pthread", "-DRECURRA_THREADS")
    for command, *more in (("gcc", "-O2"), ("gcc", "-fsyntax-only", *threaded), ("clang", "-O1", *threaded)):
        if shutil.which(command) is None:
            continue
        given = [command, *STRICT, *more, "-c", str(folder / "model.c"), "-o", str(folder / "model.o")]
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]
