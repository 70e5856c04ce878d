"""The command line as a user meets it: a process, its output and its exit code."""

from __future__ import annotations

import csv
import importlib
import json
import os
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import recurra
from recurra.cells import Cell
from recurra.cli import main, parsed, parser
from recurra.named import catalogue


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "recurra", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60, check=False)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_answer_without_torch(option: str) -> None:
    code = (
        "import sys, recurra.cli\n"
        f"try: recurra.cli.main(['{option}'])\n"
        "except SystemExit as end: assert end.code == 0, end\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
        "assert 'recurra.config' not in sys.modules, 'all settings were imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "recurra" in done.stdout


def test_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"recurra {recurra.__version__}\n"


def test_the_help_of_every_command_ends_with_examples_that_parse() -> None:
    [commands] = [action.choices for action in parser()._actions if isinstance(action.choices, dict)]
    for name, command in commands.items():
        title, *examples = command.epilog.splitlines()
        assert title in ("example:", "examples:"), name
        assert examples, name
        for example in examples:
            *_, typed = example.strip().split(" | ")
            program, *arguments = shlex.split(typed.partition(" > ")[0])
            assert (program, arguments[0]) == ("recurra", name)
            assert parsed(arguments).command.__name__ == name


def test_every_option_is_explained() -> None:
    [commands] = [action.choices for action in parser()._actions if isinstance(action.choices, dict)]
    missing = [
        f"{name} {action.dest}" for name, command in commands.items() for action in command._actions if not action.help
    ]
    assert missing == []


def test_cells_shows_every_cell_with_equations_counts_and_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells"]) == 0
    shown = capsys.readouterr().out
    for name in catalogue(Cell):
        assert f"\n{name}\n" in f"\n{shown}"
    assert "c' = f ∘ c + i ∘ ĉ" in shown
    assert "394,240 parameters (4.00 × elman); engines: vendor, planned, loop" in shown
    assert "wrapper zoneout" in shown


def test_one_cell_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells", "gru", "--input", "3", "--hidden", "4"]) == 0
    shown = capsys.readouterr().out
    assert "Parameters at input 3, hidden 4: 96" in shown
    assert 'reset = "before"' in shown
    assert "vendor: torch's GRU applies the reset gate after the product, this one before it" in shown
    assert "loop: runs it" in shown
    assert main(["cells", '{name = "gru", reset = "after"}', "--input", "3", "--hidden", "4"]) == 0
    shown = capsys.readouterr().out
    assert "hidden 4: 100" in shown
    assert "vendor: runs it" in shown


def test_a_cells_plan_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells", "gru", "--plan", "--input", "3", "--hidden", "4"]) == 0
    shown = capsys.readouterr().out
    assert "product: forward product 0 = previous 0 · 4 x 8 weights" in shown
    assert shown.count("row pass") == 4
    assert main(["cells", "tests.engines.test_planned:Sorts", "--plan", "--input", "4", "--hidden", "4"]) == 0
    assert "has no plan: its step uses aten.sort.default" in capsys.readouterr().out


def test_a_wrapper_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells", "recurrent_dropout"]) == 0
    shown = capsys.readouterr().out
    assert 'mode = "variational"' in shown
    assert "rate = (required)" in shown
    assert main(["cells", "zoneout", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["options"] == {"rate": None}


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cells", "lstm", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert entry["parameters"] == 394_240
    assert [name for name, reason in entry["engines"].items() if reason is None] == ["vendor", "planned", "loop"]
    assert main(["cells", "--json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    assert [cell["name"] for cell in everything["cells"]] == catalogue(Cell)
    assert everything["wrappers"][2]["options"] == {"rate": None}


def test_a_users_own_cell_in_the_current_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_text(
        "from typing import NamedTuple\n"
        "import recurra\n"
        "from torch import Tensor\n"
        "class State(NamedTuple):\n"
        "    h: Tensor\n"
        "class Mine(recurra.Cell):\n"
        '    """My cell.\n\n        h\' = h + x\n    """\n'
        "    State = State\n"
        "    def parts(self, inputs, state, fixed):\n"
        "        return State(state.h + inputs)\n"
    )
    done = run("cells", "lab:Mine", "--input", "4", "--hidden", "4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "lab:Mine: My cell." in done.stdout
    assert "h' = h + x" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cells", "lsmt"], "there is no cell 'lsmt'. Did you mean 'lstm'?"),
        (["cells", "no.such:Cell"], "importing 'no.such' failed"),
        (["cells", "lstm", "--hidden", "0"], "hidden_size must be a whole number of at least 1, but is 0"),
        (["cells", '{name = "gru"'], "is not a valid TOML table"),
        (
            ["bench", "--shapes", "3x4"],
            "a shape must be rows x steps x input x hidden, such as 32x30x256x256, but is '3x4'",
        ),
        (["bench", "--shapes", "0x1x1x1"], "every size of a shape must be at least 1"),
        (["bench", "--engines", "vendr"], "Did you mean 'vendor'?"),
        (["bench", "--threads", "0"], "--threads must be at least 1"),
        (["bench", "--threads", "100000"], "--threads must be at least 1 and at most"),
        (["bench", "--seconds", "-1"], "--seconds must be a number above 0, but is -1.0"),
        (["bench", "--seconds", "nan"], "--seconds must be a number above 0, but is nan"),
        (["bench", "--shapes", "1000000x1000000x8x8"], "is too large for this command. Use smaller sizes"),
        (["cells", "lstm", "--hidden", "99999999999"], "can be 20,000 at most, but one is 99,999,999,999"),
        (["bench", "--device", "meta"], "--device 'meta' cannot be used"),
        (["bench", "--types", "bf16"], "--types needs --device cuda"),
        (["bench", "--cells", "lstm", "lsmt"], "Did you mean 'lstm'?"),
        (["bench", "--device", "gpu"], "--device 'gpu' cannot be used"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.startswith("recurra: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


MODULES = {
    "a syntax error": ("class Cell(:\n", "failed with a syntax error at"),
    "a name error": ("x = nothing\n", "NameError at"),
    "an abstract class": ("from recurra import Cell\n", "lab:Cell is abstract"),
    "a constructor that raises": (
        "import recurra\nclass Cell(recurra.Cell):\n"
        "    def __init__(self, i, h): raise ValueError('no luck')\n    def parts(self, *a): pass\n",
        "its constructor failed with ValueError at",
    ),
    "no state": (
        "import recurra\nclass Cell(recurra.Cell):\n    def parts(self, *a): pass\n",
        "'lab:Cell' has no State",
    ),
}


@pytest.mark.parametrize("mistake", MODULES)
def test_a_mistake_in_the_users_own_file_is_one_sentence(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, since torch takes seconds to be imported; a cell without a mistake is found in one of its own.
    text, message = MODULES[mistake]
    (tmp_path / "lab.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    importlib.invalidate_caches()
    try:
        assert main(["cells", "lab:Cell"]) == 2
    finally:
        sys.modules.pop("lab", None)
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert said.count("\n") == 1


def test_an_output_that_cannot_be_written_is_one_sentence() -> None:
    command = f"{sys.executable} -m recurra config tagging > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("recurra: cannot write the output")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_piped_output_is_utf_8_whatever_the_locale(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LANG": "C", "LC_ALL": "C"}
    # A command that needs no torch, which takes seconds to be imported.
    command = [sys.executable, "-m", "recurra", "config", "tagging"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode("utf-8")
    assert {each for each in shown if not each.isascii()} >= {"×", "…"}  # of these, latin-1 lacks one, and ascii both


def test_piped_messages_are_utf_8_whatever_the_locale() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-m", "recurra", "config", "größe→"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 2
    assert "there is no task 'größe→'" in done.stderr.decode("utf-8")


def test_a_terminal_shows_question_marks_for_letters_that_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    pty = pytest.importorskip("pty")
    assert main(["config", "tagging"]) == 0
    expected = capsys.readouterr().out.encode("ascii", "replace")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "recurra", "config", "tagging"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # Linux reports the end of a terminal as an error
            pass
    os.close(ours)
    assert process.returncode == 0
    assert shown.replace(b"\r\n", b"\n") == expected
    assert b"?" in expected


def test_a_mistake_shows_no_traceback() -> None:
    done = run("cells", "lsmt")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_command_that_does_not_exist_is_refused() -> None:
    done = run("sing")
    assert done.returncode == 2
    assert "invalid choice: 'sing'" in done.stderr


def test_bench_prints_a_ratio_for_each_engine_and_a_reason_for_each_refusal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["bench", "--cells", "lstm", "min_gru", "--shapes", "3x4x5x6", "--seconds", "0.01"]
    assert main([*arguments, "--explain"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "3x4x5x6" in line]
    engines = ["single", "vendor", "planned", "graph", "scan", "loop"]
    assert [row[:2] for row in rows] == [[cell, engine] for cell in ("lstm", "min_gru") for engine in engines]
    refused = {
        ("lstm", "single"): "refused: it runs a batch of one row, but this batch has 3",
        ("min_gru", "single"): "refused: it runs a batch of one row, but this batch has 3",
        ("lstm", "scan"): "refused: the step of 'lstm' is not known to be linear in its state",
        ("min_gru", "vendor"): "refused: torch has no kernel for 'min_gru'",
        ("lstm", "graph"): "refused: it runs on a GPU, but the batch is on cpu",
        ("min_gru", "graph"): "refused: it runs on a GPU, but the batch is on cpu",
    }
    for cell, engine, _, *rest in rows:
        if (cell, engine) in refused:
            assert " ".join(rest) == refused[cell, engine]
        else:
            assert all(float(number) > 0 for number in rest)
            assert len(rest) == 4
    assert main([*arguments, "--json", "--forward", "--engines", "loop"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["cell"], second["cell"], first["shape"]) == ("lstm", "min_gru", "3x4x5x6")
    assert first["to_lstm"] > 0


def test_ctrl_c_stops_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("recurra.demo.tour", interrupt)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "\nrecurra: stopped.\n"


def test_a_pipe_that_closes_early_is_no_error() -> None:
    command = [sys.executable, "-m", "recurra", "config", "tagging"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before anything is written: starting Python takes longer
        assert b"Error" not in process.stderr.read()
    assert process.returncode == 0


TAGGED = "they\tPRON\nrun\tVERB\n\nthe\tDET\nrun\tNOUN\n\n"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that took a second, made by the command itself."""
    folder = tmp_path_factory.mktemp("tagger")
    (folder / "train.conll").write_text(TAGGED)
    sets = ["training.epochs=40", "model.hidden=16", "model.dropout=0", "data.min_count=1", "data.cache=false"]
    options = [part for setting in sets for part in ("--set", setting)]
    files = ["--train", str(folder / "train.conll"), "--valid", str(folder / "train.conll")]
    assert main(["train", "tagging", *files, "--out", str(folder / "run"), "--quiet", *options]) == 0
    return folder


def test_train_ends_by_saying_what_was_reached(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tagger / "run")]) == 0
    said = capsys.readouterr().out
    assert "tagging: 4 word embeddings of size" in said
    assert "40 steps" in said
    assert "valid: accuracy 1.0000" in said
    assert main(["info", str(tagger / "run"), "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["best"]["scores"]["accuracy"] == 1.0
    assert main(["info", f"{tagger / 'run'},{tagger / 'run'}"]) == 0
    assert capsys.readouterr().out == said * 2
    assert main(["info", f"{tagger / 'run'},{tagger / 'run'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [one, one]


def test_evaluate_prints_scores_or_one_json_object(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tagger / "train.conll")
    assert main(["evaluate", str(tagger / "run"), data, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["accuracy"] == 1.0
    assert {"count", "seconds"} <= scores.keys()
    assert main(["evaluate", str(tagger / "run"), data, "--tables"]) == 0
    said = capsys.readouterr().out
    assert "accuracy             1.0000" in said
    assert "PRON    1.0000 1.0000 1.0000     1" in said


def test_predict_answers_every_line_in_order(tagger: Path) -> None:
    command = [sys.executable, "-m", "recurra", "predict", str(tagger / "run")]
    done = subprocess.run(command, input="the run\n\nthey run\n", capture_output=True, text=True, check=True)
    assert done.stdout == "DET NOUN\n\nPRON VERB\n"
    done = subprocess.run([*command, "--json"], input="they run\n", capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["tags"] == ["PRON", "VERB"]
    assert answer["tokens"] == ["they", "run"]
    assert answer["line"] == 1
    assert all(0 < p <= 1 for p in answer["probabilities"][0])


def test_the_file_of_predict_may_come_after_the_options(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, file = str(tagger / "run"), str(tagger / "train.conll")
    assert main(["predict", run, file, "--device", "cpu"]) == 0
    before = capsys.readouterr().out
    assert main(["predict", run, "--device", "cpu", file]) == 0
    assert capsys.readouterr().out == before
    with pytest.raises(SystemExit) as error:
        main(["predict", run, "--device", "cpu", file, "another"])
    assert error.value.code == 2
    assert "unrecognized arguments: " in capsys.readouterr().err


def test_counts_are_whole_numbers_in_json(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tagger / "run"), str(tagger / "train.conll"), "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out)["count"], int)


def test_predictions_of_a_file_score_as_evaluate_says(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(tagger / "run"), str(tagger / "train.conll")]) == 0
    (tagger / "predicted.txt").write_text(capsys.readouterr().out)
    assert main(["score", str(tagger / "train.conll"), str(tagger / "predicted.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    (tagger / "predicted.txt").write_text("PRON NOUN\nDET NOUN\n")
    assert main(["score", str(tagger / "train.conll"), str(tagger / "predicted.txt")]) == 0
    assert "accuracy             0.7500" in capsys.readouterr().out


def test_config_prints_every_setting_and_reads_it_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "tagging", "--set", "model.cell=gru"]) == 0
    printed = capsys.readouterr().out
    assert 'cell = "gru"' in printed
    (tmp_path / "mine.toml").write_text(printed)
    assert main(["config", str(tmp_path / "mine.toml")]) == 0
    assert capsys.readouterr().out == printed


def test_check_says_what_a_file_can_serve(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tagger / "train.conll")]) == 0
    said = capsys.readouterr().out
    assert "tagging: yes" in said
    assert f"recurra train tagging --train {tagger / 'train.conll'}" in said
    assert main(["check", str(tagger / "train.conll"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["rows"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "taging"], "there is no task 'taging'. Did you mean 'tagging'?"),
        (["train", "tagging"], "set data.train, or give --train FILE"),
        (["train", "tagging", "--train", "none.conll"], "none.conll"),
        (["train", "mine.toml"], "there is no config file mine.toml"),
        (["train", "none", "--resume"], "there is no folder none"),
        (["train", "none", "--resume", "--seeds", "2"], "leave --seeds out"),
        (["train", "tagging", "--set", "hidden=3"], "there is no setting 'hidden'. Did you mean 'model.hidden'"),
        (["train", "seq2seq", "--set", "training.width=3"], "Did you mean 'decoding.width'"),
        (["train", "tagging", "--epochs", "3"], "Did you mean --set training.epochs=3?"),
        (["train", "tagging", "--early-stopping", "3"], "a setting for that. Did you mean --set training.patience=3?"),
        (
            ["train", "tagging", "--set", "training.early_stopping_patience=3"],
            "Here it is called 'training.patience': early stopping: validations without improvement before",
        ),
        (["train", "--steps", "100", "tagging"], "Did you mean --set training.steps=100?"),
        (["train", "tagging", "--batch-size=8", "--train", "x"], "Did you mean --set training.batch_size=8?"),
        (["train", "tagging", "--seed", "7"], "Did you mean --set training.seed=7 or --set data.seed=7?"),
        (["config", "tagging", "--dropout", "0.1"], "Did you mean --set model.dropout=0.1 or"),
        (["train", "tagging", "--set", "model.hiden=3"], "there is no setting 'model.hiden'. Did you mean 'hidden'?"),
        (["train", "tagging", "--seeds", "0"], "--seeds must be at least 1, but is 0"),
        (["train", "tagging", "--set", "hidden"], "--set takes section.key=value"),
        (["train", "tagging", "--set", "training.epochs=none"], "training has no limit"),
        (["evaluate", "none", "a.conll"], "there is no folder none"),
        (["predict", "none"], "there is no folder none"),
        (["info", "none"], "there is no run in none"),
        (["check", "none.tsv"], "none.tsv"),
        (["config", "taging"], "there is no task 'taging'"),
        (["score", "none.conll", "none.txt"], "none.conll"),
    ],
)
def test_a_mistake_leaves_one_sentence_and_nothing_else(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.startswith("recurra: ")
    assert shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["config", "tagging"], ["check", "a.conll"], ["train", "tagging"], ["info", "x"]]
)
def test_what_needs_no_torch_does_not_import_it(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(TAGGED)
    code = f"import sys, recurra.cli\nrecurra.cli.main({arguments!r})\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("task", "command", "options", "name", "sent"),
    [
        ("tagging", "predict", ["-"], "input", (b"they run", b"the walk", b"", b"they Talk the run")),
        ("language_model", "generate", ["--prompts", "-", "--length", "3"], "prompt", (b"the", b"", b"the")),
    ],
)
def test_a_co_process_gets_each_answer_before_it_sends_the_next_line(
    task: str, command: str, options: list[str], name: str, sent: tuple[bytes, ...]
) -> None:
    folder = Path(__file__).parent / "old_runs" / "0.1" / task / "run"
    line_by_line = [sys.executable, "-m", "recurra", command, str(folder), *options, "--json"]
    with subprocess.Popen(line_by_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in sent:
                process.stdin.write(line + b"\n")
                ready, _, _ = select.select([process.stdout], [], [], 50)
                assert ready, f"no answer to {line!r}"
                answer = process.stdout.readline()
                assert json.loads(answer)[name] == line.decode()
            process.stdin.close()
            assert process.wait(timeout=50) == 0
        finally:
            process.kill()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "tagging", "--train", "train.conll", "--out", "new", "--device", "cuda"],
        ["train", "tagging", "--train", "train.conll", "--dry-run", "--device", "cuda:1"],
        ["train", "run", "--resume", "--device", "cuda"],
        ["predict", "run", "train.conll", "--device", "cuda"],
        ["evaluate", "run", "train.conll", "--device", "cuda"],
        ["compare", "run", "run", "train.conll", "--device", "cuda"],
        ["explain", "run", "they run", "--device", "cuda"],
        ["serve", "run", "--device", "cuda"],
        ["bench", "--device", "cuda"],
    ],
)
def test_every_command_says_in_words_that_there_is_no_gpu(
    arguments: list[str], tagger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tagger)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "cannot be used: no GPU here (torch sees none): use --device cpu." in said
    assert "Traceback" not in said


def test_train_takes_the_device_that_is_given(tagger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--train", str(tagger / "train.conll"), "--set", "data.cache=false"]
    assert main(["train", "tagging", *files, "--dry-run", "--device", "cpu"]) == 0
    assert "device   cpu" in capsys.readouterr().out
    assert main(["train", "tagging", *files, "--dry-run", "--device", "abacus"]) == 2
    assert "training.device = 'abacus' cannot be used" in capsys.readouterr().err


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table with a header and a column that is not read."""
    folder = tmp_path_factory.mktemp("classifier")
    rows = [f"{n},{text},{label}" for n, (text, label) in enumerate([("good fun", "pos"), ("bad bore", "neg")] * 4)]
    (folder / "train.csv").write_text("id,text,label\n" + "\n".join(rows) + "\n")
    sets = ["training.epochs=20", "model.hidden=8", "model.embedding=8", "data.cache=false", "training.threads=1"]
    options = [part for setting in sets for part in ("--set", setting)]
    files = ["--train", str(folder / "train.csv")]
    assert main(["train", "classification", *files, "--out", str(folder / "run"), "--quiet", *options]) == 0
    return folder


def test_predict_writes_the_columns_of_the_input_beside_the_answers(classifier: Path) -> None:
    asked = classifier / "asked.csv"
    asked.write_text('id,text,label\n7,"good, good fun",pos\n8,bad bore,neg\n')
    run = str(classifier / "run")
    for ending, separator in (("csv", ","), ("tsv", "\t")):
        out = classifier / f"answers.{ending}"
        assert main(["predict", run, str(asked), "--out", str(out)]) == 0
        with out.open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file, delimiter=separator))
        assert [list(row) for row in found] == [["id", "text", "label", "prediction", "score"]] * 2
        assert [(row["id"], row["text"], row["prediction"]) for row in found] == [
            ("7", "good, good fun", "pos"),
            ("8", "bad bore", "neg"),
        ]
        assert all(float(row["score"]) <= 1 for row in found)
    assert main(["predict", run, str(asked), "--out", str(classifier / "answers.jsonl")]) == 0
    lines = [json.loads(line) for line in (classifier / "answers.jsonl").read_text("utf-8").splitlines()]
    assert [(line["id"], line["label"], line["prediction"]) for line in lines] == [
        ("7", "pos", "pos"),
        ("8", "neg", "neg"),
    ]


def test_quotes_and_tabs_of_a_text_do_not_break_a_tsv_file(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text('id,text,label\n1,"a ""good""\tfun",pos\n')
    out = tmp_path / "answers.tsv"
    assert main(["predict", str(classifier / "run"), str(tmp_path / "asked.csv"), "--out", str(out)]) == 0
    assert [line.split("\t")[:3] for line in out.read_text().splitlines()] == [
        ["id", "text", "label"],
        ["1", 'a "good" fun', "pos"],
    ]


def test_a_column_of_the_input_that_is_called_prediction_stays(classifier: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("text,prediction,label\ngood fun,none yet,pos\n")
    out = tmp_path / "answers.csv"
    assert main(["predict", str(classifier / "run"), str(tmp_path / "asked.csv"), "--out", str(out)]) == 0
    [names, cells] = out.read_text().splitlines()
    assert names == "text,prediction,label,predicted_prediction,score"
    assert cells.startswith("good fun,none yet,pos,pos,")


def test_predict_joins_plain_lines_and_sentences_too(tagger: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("they run\nthe run\n")
    run, out = str(tagger / "run"), tmp_path / "lines.tsv"
    assert main(["predict", run, str(tmp_path / "lines.txt"), "--out", str(out)]) == 0
    assert [line.split("\t")[:2] for line in out.read_text().splitlines()] == [
        ["input", "prediction"],
        ["they run", "PRON VERB"],
        ["the run", "DET NOUN"],
    ]
    assert main(["predict", run, str(tagger / "train.conll"), "--out", str(tmp_path / "sentences.jsonl")]) == 0
    first = json.loads((tmp_path / "sentences.jsonl").read_text().splitlines()[0])
    assert (first["tokens"], first["tags"], first["prediction"]) == (["they", "run"], ["PRON", "VERB"], "PRON VERB")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "taken.csv"], "--out taken.csv: this file exists already. Remove it, or choose another name."),
        (["--out", "answers.xlsx"], "--out answers.xlsx: the file must end in .csv, .tsv, .jsonl, .parquet;"),
        (["--out", "no/such/a.csv"], "--out no/such/a.csv cannot be written: No such file or directory."),
        (["--out", "a.csv", "--json"], "leave --json out"),
    ],
)
def test_predict_overwrites_nothing_and_says_what_it_cannot_write(
    options: list[str], said: str, tagger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tagger)
    (tagger / "taken.csv").write_text("mine\n")
    assert main(["predict", "run", "train.conll", *options]) == 2
    assert said in capsys.readouterr().err
    assert (tagger / "taken.csv").read_text() == "mine\n"
