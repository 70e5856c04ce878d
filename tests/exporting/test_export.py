"""`recurra export`: an exported folder answers and scores as its run does, without torch; a damaged one is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.cli import main
from recurra.engines import c_library
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.generation.generated import Manner
from recurra.training.trained import load
from tests.exporting.exports import (
    OLD,
    TASKS,
    assert_alike,
    assert_answers_and_scores_as,
    exported_once,
    inputs_of,
    sealed,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every exportable one of the old runs, exported once."""

    return exported_once(tmp_path_factory)


@pytest.fixture
def copy(folders: Path, tmp_path: Path) -> Path:
    """An exported tagger that may be damaged."""
    return Path(shutil.copytree(folders / "tagging", tmp_path / "copy"))


@pytest.mark.parametrize("by", ["c", "numpy"])
@pytest.mark.parametrize("task", TASKS)
def test_an_exported_model_answers_and_scores_as_its_run_does(folders: Path, task: str, by: Any) -> None:
    run, exported = load(OLD / task / "run"), load_exported(folders / task, by=by)
    assert_answers_and_scores_as(exported, run, task)


@pytest.mark.parametrize(
    "asked",
    [
        {"search": "greedy"},
        {"search": "beam", "width": 4, "best": 3},
        {"search": "beam", "width": 3, "length_penalty": 0.8},
        {"search": "sampling", "temperature": 0.8, "top_k": 5, "top_p": 0.9, "seed": 4},
    ],
)
def test_every_search_of_an_exported_model_finds_what_the_run_finds(folders: Path, asked: dict[str, Any]) -> None:
    lines = [line for line in inputs_of("seq2seq")[1] if line][:4]
    run, exported = load(OLD / "seq2seq" / "run"), load_exported(folders / "seq2seq")
    for found, right in zip(exported.predict(lines, **asked), run.predict(lines, **asked), strict=True):
        assert_alike(found._asdict(), right._asdict())


def test_options_of_one_call_are_not_taken_for_those_of_another(folders: Path) -> None:
    model = load_exported(folders / "seq2seq")
    line = next(line for line in inputs_of("seq2seq")[1] if line)
    for options in ({"width": 1}, {"width": 4, "best": 4}, {"search": "greedy"}, {"width": 1}):
        [found], [right] = model.predict([line], **options), model.searching(**options).predict([line])
        assert_alike(found._asdict(), right._asdict())
    with pytest.raises(ConfigError, match="width must be a whole number"):
        model.predict([line], width=True)


def test_rules_of_a_search_hold_in_an_exported_model(folders: Path) -> None:
    run, exported = load(OLD / "seq2seq" / "run"), load_exported(folders / "seq2seq")
    lines = [line for line in inputs_of("seq2seq")[1] if line][:3]
    for changes in (
        {"decoding.no_repeat": 1, "decoding.min_length": 3, "decoding.coverage_penalty": 0.2},
        {"decoding.search": "greedy", "decoding.max_length": 2},
    ):
        found, right = (model.with_settings(changes).predict(lines) for model in (exported, run))
        assert [each.output for each in found] == [each.output for each in right]
    with pytest.raises(ConfigError, match="'exhaustive' needs the run"):
        exported.predict(lines, search="exhaustive")


def test_an_exported_language_model_writes_what_the_run_writes(folders: Path) -> None:
    run, exported = load(OLD / "language_model" / "run"), load_exported(folders / "language_model")
    for seed in (1, 2):
        found, right = (recurra.generate(model, "", count=2, seed=seed, length=12) for model in (exported, run))
        assert [each.text for each in found] == [each.text for each in right]
        for one, other in zip(found, right, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-4)
    assert list(exported.writer(Manner(length=5)).pieces("")) == list(run.writer(Manner(length=5)).pieces(""))


def test_a_tagger_of_frames_is_exported_with_the_usual_settings(tmp_path: Path) -> None:
    frames, tags = [[0.5, -1.0], [2.0, 0.0], [-0.5, 1.5]], ["low", "high", "low"]
    rows = [{"frames": frames[:count], "tags": tags[:count]} for count in (1, 2, 3)]
    few = {"training.steps": 2, "training.threads": 1, "training.device": "cpu", "data.cache": False, "model.hidden": 4}
    run = recurra.train("tagging", train=rows, out=tmp_path / "run", settings=few)
    export(tmp_path / "run", tmp_path / "exported")
    exported = load_exported(tmp_path / "exported", by="numpy")
    for found, right in zip(exported.predict([frames, frames[:1]]), run.predict([frames, frames[:1]]), strict=True):
        assert found.output == right.output
        assert_alike(found.detail, right.detail)


def test_a_fresh_process_answers_without_torch(folders: Path) -> None:
    """Nor with safetensors, which only runs need: the modules that were imported say so."""
    code = (
        "import sys, recurra\n"
        f"model = recurra.load({str(folders / 'tagging')!r})\n"
        "print(model.predict(['a b'])[0].output)\n"
        "print(sorted({'torch', 'safetensors'} & {name.split('.')[0] for name in sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_the_command_line_exports_predicts_and_evaluates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, run = tmp_path / "new", OLD / "classification" / "run"
    file, _ = inputs_of("classification")
    [valid] = (OLD / "classification" / "data").glob("valid.*")
    assert main(["export", str(run), str(target)]) == 0
    said = capsys.readouterr().out
    assert f"exported to {target}: " in said
    assert "largest difference from the run in torch" in said
    for command in (["predict", "{}", str(file), "--json"], ["evaluate", "{}", str(valid), "--json"]):
        printed = []
        for folder in (run, target):
            assert main([part.format(folder) for part in command]) == 0
            printed.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
        for lines in printed:
            for line in lines:
                line.pop("seconds", None)
        assert_alike(printed[1], printed[0])


def test_the_folder_describes_itself(folders: Path) -> None:
    names = {path.name for path in (folders / "tagging").iterdir()}
    assert {"manifest.json", "export.json", "program.json", "weights.bin", "model.c", "model.h", "config.toml"} <= names
    about = json.loads((folders / "tagging" / "export.json").read_text())
    assert about["task"] == "tagging"
    assert about["weights"] == "float32"


WARNINGS = ["-Wall", "-Wextra", "-Werror", "-std=c11"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_c_file_of_every_task_compiles_without_a_warning(
    folders: Path, tmp_path: Path, task: str, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    command = [compiler, *WARNINGS, "-O0", "-c", str(folders / task / "model.c"), "-o", str(tmp_path / "model.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_program_links_the_c_file_by_its_header(folders: Path, tmp_path: Path) -> None:
    command = c_library.compiler()
    if command is None:
        pytest.skip("there is no C compiler here")
    program = tmp_path / "main.c"
    program.write_text(
        '#include "model.h"\n#include <stdio.h>\n'
        'int main(void) { recurra_model *model; return recurra_open("", 0, &model) == RECURRA_WEIGHTS ? 0 : 1; }\n'
    )
    folder = folders / "language_model"
    flags = ["-O1", *WARNINGS, f"-I{folder}"]
    built = [*command, *flags, str(program), str(folder / "model.c"), "-lm", "-o", str(tmp_path / "main")]
    done = subprocess.run(built, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


# What is refused


@pytest.mark.parametrize("name", ["program.json", "weights.bin", "config.toml", "export.json", "vocabulary.words.json"])
def test_a_damaged_file_is_refused(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        recurra.load(copy)


def test_a_missing_file_or_manifest_is_refused(copy: Path) -> None:
    (copy / "weights.bin").unlink()
    with pytest.raises(CheckpointError, match=r"weights\.bin is missing"):
        recurra.load(copy)
    (copy / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match=r"has no manifest\.json, so it cannot be verified"):
        recurra.load(copy)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("program.json", b"{}", "is not a program of recurra"),
        ("program.json", b"\xff", "cannot be read"),
        ("weights.bin", b"recurra weights\n", "is not the file of weights that program.json describes"),
        ("export.json", b"[]", "does not say how the folder was written"),
        ("export.json", b'{"format": 9}', "was exported by a later recurra"),
    ],
)
def test_a_folder_that_was_made_to_deceive_is_refused_too(copy: Path, name: str, content: bytes, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        recurra.load(sealed(copy, name, content))


def test_numbers_of_weights_that_do_not_fit_their_checksum_are_refused_by_c(copy: Path) -> None:
    content = bytearray((copy / "weights.bin").read_bytes())
    content[-100] ^= 1
    sealed(copy, "weights.bin", bytes(content))
    with pytest.raises(CheckpointError, match="the weights are damaged"):
        load_exported(copy, by="c")


def test_code_in_the_c_file_is_never_run(copy: Path) -> None:
    """What is compiled is printed from the program; model.c is for other programs."""
    evil = b"__attribute__((constructor)) static void evil(void) { *(volatile int *)0 = 1; }\n"
    sealed(copy, "model.c", evil + (copy / "model.c").read_bytes())
    assert recurra.load(copy).predict(["a b"])


def test_without_a_compiler_numpy_answers_and_says_so(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_library, "compiler", lambda: None)
    c_library.library.cache_clear()
    words = "no C compiler was found, so the exported model is run by NumPy, .*; install a C compiler"
    with pytest.warns(RuntimeWarning, match=words):
        model = load_exported(folders / "tagging")
    assert model.predict(["a b"])
    with pytest.raises(ConfigError, match="cannot be compiled: no C compiler was found"):
        load_exported(folders / "tagging", by="c")
    c_library.library.cache_clear()


def test_a_compiler_that_fails_is_told_from_one_that_is_missing(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = tmp_path / "failing"
    failing.write_text(
        "#!/bin/sh\necho \"x.c: In function 'f':\" >&2\necho 'x.c:1:2: error: no such type' >&2\nexit 1\n"
    )
    failing.chmod(0o755)
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(c_library, "compiler", lambda: (str(failing),))
    c_library.library.cache_clear()
    with pytest.warns(RuntimeWarning) as caught:
        model = load_exported(folders / "tagging")
    [said] = {str(each.message) for each in caught}
    assert "failing failed: x.c:1:2: error: no such type, so the exported model is run by NumPy" in said
    assert "install" not in said
    assert model.predict(["a b"])
    c_library.library.cache_clear()


@pytest.mark.parametrize(
    ("task", "words"),
    [("question_answering", "N is at most 2")],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_left(tmp_path: Path, task: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        export(OLD / task / "run", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_other_mistakes_are_said_in_words(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(OLD / "tagging" / "run")
    for arguments, words in (
        (["export", run, str(folders / "tagging")], "already exists and is not empty"),
        (["export", f"{run},{run}", str(tmp_path / "new")], "an ensemble of runs cannot be exported"),
        (["export", str(tmp_path), str(tmp_path / "new")], "a run is a folder created by"),
        (["explain", str(folders / "tagging"), "a b"], "this view is not available for an exported model"),
        (["predict", str(folders / "tagging"), "--device", "cuda"], "answers on the CPU alone"),
        (["export", str(folders / "tagging"), str(tmp_path / "new")], "is an exported model"),
        (
            ["predict", str(folders / "tagging"), "--raw"],
            "an exported model has no finder",
        ),
        (["generate", str(folders / "tagging")], "cannot generate text"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err


def test_an_unknown_form_of_export_is_refused_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(OLD / "tagging" / "run")
    with pytest.raises(SystemExit, match="2"):
        main(["export", run, str(tmp_path / "new"), "--to", "fortran"])
    assert "invalid choice: 'fortran'" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--to fortran is not known"):
        export(run, tmp_path / "new", to="fortran")


def test_inputs_that_cannot_be_read_are_refused_as_by_the_run(folders: Path) -> None:
    with pytest.raises(DataError, match="predict needs a list of inputs"):
        load_exported(folders / "tagging").predict("a b")


def test_an_empty_input_is_answered_as_by_the_run(folders: Path) -> None:
    for task in ("tagging", "classification"):
        run, exported = load(OLD / task / "run"), load_exported(folders / task)
        for found, right in zip(exported.predict(["", "a"]), run.predict(["", "a"]), strict=True):
            assert found.output == right.output
