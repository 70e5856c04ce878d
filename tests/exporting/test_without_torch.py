"""Where torch is not installed, exported models answer, are served and explained; all else says what it needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.cli import main
from recurra.engines import c_library
from recurra.errors import ConfigError, lacking
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.manifest import seal
from recurra.runs import begin, setup
from recurra.runtime.hosted import Hosted, hosted
from recurra.training.progress import Silent
from tests.exporting.exports import OLD, TASKS, assert_alike, exported_once, inputs_of
from tests.runtime.listening import asked, connected, next_piece, posted, received, request
from tests.tasks.test_question_answering import OTHER, ROW, SMALL

BLOCKED = ("torch", "safetensors", "rich", "tokenizers", "triton")
"""Packages that recurra-run does not bring."""

SOURCE = Path(recurra.__file__).parents[1]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_once(tmp_path_factory)


def without_torch(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh process in which what recurra-run does not bring cannot be imported."""
    block = f"import sys\nfor name in {BLOCKED}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", block + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=SOURCE)


def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return without_torch("from recurra.cli import main\nsys.exit(main(sys.argv[1:]))", *arguments)


def test_every_task_answers_and_imports_none_of_the_packages(folders: Path, tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in [ROW, OTHER] * 3))
    options = [*SMALL, "model.memories=4", "training.steps=2"]
    begin(setup("question_answering", given={"train": str(train)}, overrides=options), tmp_path / "run", Silent())
    export(tmp_path / "run", tmp_path / "question_answering")
    asked: dict[str, Any] = {str(folders / task): inputs_of(task)[1][:2] for task in TASKS if task != "vec2seq"}
    asked[str(folders / "vec2seq")] = [[1, 2, 3]]
    asked[str(tmp_path / "question_answering")] = ["Ann went out.\tWhere is Ann?"]
    right = [[each.output for each in load_exported(Path(f)).predict(given)] for f, given in asked.items()]
    code = (
        "import sys, json, recurra\n"
        "from recurra.engines import c_library\n"
        f"c_library.FLAGS = {c_library.FLAGS!r}\n"  # what this process has compiled serves there too
        "asked = json.loads(sys.argv[1])\n"
        "found = [[each.output for each in recurra.load(f).predict(given)] for f, given in asked.items()]\n"
        "print(json.dumps(found))\n"
        f"print(sorted(set({BLOCKED}) & {{name.split('.')[0] for name in sys.modules}}))\n"
    )
    # Not blocked: what is imported here would be imported by users who have the packages.
    done = subprocess.run([sys.executable, "-c", code, json.dumps(asked)], capture_output=True, text=True, check=True)
    answers, imported = done.stdout.splitlines()
    assert json.loads(answers) == right
    assert imported == "[]"


def test_a_process_without_torch_serves_and_explains(folders: Path) -> None:
    code = (
        "import json\n"
        "from recurra.runtime import server\n"
        "from recurra.runtime.hosted import hosted\n"
        "found = {}\n"
        "for name, run in hosted([sys.argv[1]]).items():\n"
        "    found[name] = [run.about['views'], run.about['generates'], run.about['cuts'], run.samples()]\n"
        "run = hosted([sys.argv[1] + '/seq2seq'])['seq2seq']\n"
        "print(json.dumps([found, run.predict(['cat'], {'best': 2}), run.explain('cat', {})]))\n"
    )
    done = without_torch(code, str(folders))
    assert done.returncode == 0, done.stderr
    about, predicted, explained = json.loads(done.stdout)
    assert about["seq2seq"][:3] == [["attention", "probabilities", "tree"], False, False]
    assert about["tagging"][0] == about["classification"][0] == []
    assert about["language_model"][:2] == [["probabilities"], True]
    assert about["vec2seq"][:2] == [["probabilities", "tree"], True]
    right = Hosted("seq2seq", OLD / "seq2seq" / "run").predict(["cat"], {"best": 2})
    assert_alike(predicted["answers"], right["answers"])
    assert explained["views"].keys() == {"attention", "probabilities", "tree"}
    assert explained["missing"] == {}


def test_the_command_serves_exported_models_without_torch(folders: Path, tmp_path: Path) -> None:
    """As a whole: names, a token, a text as it is written, measurements, the log, and an end that loses no request."""
    (tmp_path / "token").write_text("0123456789abcdef\n")
    code = (
        f"import sys\nfor name in {BLOCKED}: sys.modules[name] = None\n"
        "from recurra.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    runs = [f"pairs={folders / 'seq2seq'}", str(folders / "language_model")]
    options = ["--port", "0", "--token-file", "token", "--access-log", "log", "--reload", "--grace", "5"]
    command = [sys.executable, "-c", code, "serve", *runs, *options]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline().split("/")[2].partition(":")[2])
            while asked(port, request("/ready")).status != 200:
                time.sleep(0.01)
            token, unknown = "Authorization: Bearer 0123456789abcdef", {"allow_unknown": True}
            assert asked(port, request("/api/runs")).status == 401
            path = "/api/runs/pairs/predict"
            assert len(posted(port, path, {"inputs": ["cat", "goatee"]}, token).json["answers"]) == 2
            with connected(port) as connection:
                body = json.dumps({"prompt": "so it is", "stream": True, "length": 3, **unknown}).encode()
                headers = ["Content-Type: application/json", token]
                path = "/api/runs/language_model/generate"
                connection.sendall(request(path, *headers, method="POST", body=body))
                written = b""
                while b"event: end" not in written:
                    written += next_piece(connection)
                assert b'data: {"text": "so it is' in written
            metrics = asked(port, request("/metrics", token)).body.decode()
            assert 'run="pairs",endpoint="predict",status="200"} 1' in metrics
            body = json.dumps({"prompt": "so", "length": 900, **unknown}).encode()
            with ExitStack() as opened:
                late = [opened.enter_context(connected(port)) for _ in range(4)]
                for connection in late:
                    connection.sendall(request(path, *headers, method="POST", body=body))
                time.sleep(0.3)
                server.send_signal(signal.SIGTERM)
                assert [received(connection).status for connection in late] == [200] * 4
            assert server.wait(10) == 0
        finally:
            server.kill()
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [each["status"] for each in log if each["path"] != "/ready"] == [401, *[200] * 7]


@pytest.mark.parametrize("show", ["attention", "probabilities", "tree"])
def test_views_of_an_exported_model_are_those_of_its_run(folders: Path, show: str) -> None:
    run, exported = (recurra.load(each) for each in (OLD / "seq2seq" / "run", folders / "seq2seq"))
    for best in (1, 2):
        found, right = (
            model.task.viewers()[show].view(asked).json()
            for model, asked in (
                (model, model.asked(next(iter(model.task.questions(None, ["goatee"]))))._replace(best=best))
                for model in (each.searching(best=2) for each in (exported, run))
            )
        )
        assert_close(found, right)


def assert_close(found: Any, right: Any) -> None:
    """The same JSON, whose numbers hardly differ."""
    if isinstance(right, dict):
        assert found.keys() == right.keys()
        for name in right:
            assert_close(found[name], right[name])
    elif isinstance(right, list):
        assert len(found) == len(right)
        for one, other in zip(found, right, strict=True):
            assert_close(one, other)
    elif isinstance(right, float):
        assert np.isclose(found, right, rtol=1e-3, atol=1e-4)
    else:
        assert found == right


def test_views_of_language_models_and_the_refusal_of_gates(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for folder in (OLD / "language_model" / "run", folders / "language_model"):
        assert main(["explain", str(folder), "so it is", "--show", "probabilities", "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert_close(printed[1]["views"], printed[0]["views"])
    assert main(["explain", str(folders / "seq2seq"), "cat", "--show", "gates"]) == 2
    assert "this view is not available for an exported model" in capsys.readouterr().err


def test_exported_vectors_are_described_as_by_the_run(folders: Path) -> None:
    run, exported = recurra.load(OLD / "vec2seq" / "run"), recurra.load(folders / "vec2seq")
    for seed in (1, 2):
        found, right = (
            recurra.generate(model, [[1, 2, 3], [3, 0, 1]], count=3, seed=seed, temperature=0.9)
            for model in (exported, run)
        )
        assert [each.text for each in found] == [each.text for each in right]
        for one, other in zip(found, right, strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-4)


def test_samples_of_a_hosted_export_are_inputs_alone(folders: Path, tmp_path: Path) -> None:
    copy = tmp_path / "seq2seq"
    copy.mkdir()
    for path in (folders / "seq2seq").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "samples.json").write_text('[{"input": "cat", "output": "K", "score": -1}, "dog"]')
    (copy / "manifest.json").unlink()
    seal(copy)
    assert hosted([str(copy)])["seq2seq"].samples() == ["cat"]


def test_info_says_that_a_folder_is_exported(folders: Path) -> None:
    found = typed("info", str(folders / "tagging"))
    assert found.returncode == 0
    assert "parameters" in found.stdout
    assert "exported: it answers without torch" in found.stdout


NEEDED = "this needs torch, which is not installed: pip install recurra. Exported models answer without it."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "tagging", "--train", "TRAIN", "--out", "OUT"], NEEDED),
        (["export", "RUN", "OUT"], NEEDED),
        (["demo"], NEEDED),
        (["predict", "RUN"], "RUN is no folder that `recurra export` wrote, and all else needs torch"),
        (["serve", "RUN"], NEEDED),
    ],
)
def test_a_command_that_needs_torch_says_what_to_install(tmp_path: Path, arguments: list[str], words: str) -> None:
    [train] = (OLD / "tagging" / "data").glob("train.*")
    run = str(OLD / "tagging" / "run")
    places = {"RUN": run, "OUT": str(tmp_path / "new"), "TRAIN": str(train)}
    done = typed(*(places.get(each, each) for each in arguments))
    assert done.returncode == 2
    assert words.replace("RUN", run) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_name_of_the_library_that_needs_torch_says_what_to_install() -> None:
    done = without_torch("import recurra\ntry:\n    recurra.Recurrent\nexcept ImportError as error:\n    print(error)")
    assert done.stdout == f"recurra.Recurrent: {NEEDED}\n"


def test_what_else_is_missing_is_no_matter_of_ours() -> None:
    assert lacking(ModuleNotFoundError("No module named 'pandas'", name="pandas")) is None
    # All of recurra is installed here: that a name is missing from a module is a mistake of ours.
    assert lacking(ImportError("cannot import name 'x' from 'recurra.cells'", name="recurra.cells")) is None


def test_an_exported_model_runs_on_no_other_device(folders: Path) -> None:
    with pytest.raises(ConfigError, match="device = 'cuda': an exported model answers on the CPU alone"):
        recurra.load(folders / "tagging", device="cuda")


def test_an_exported_folder_says_under_which_licence_it_is(folders: Path) -> None:
    text = (folders / "tagging" / "LICENSE").read_text("utf-8")
    assert "SPDX-License-Identifier: Apache-2.0" in text
    assert "whoever trained it decides" in text
