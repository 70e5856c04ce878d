"""A run folder executes no code, and opens no file outside of itself, unless its user trusts it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.cli import main
from recurra.config.given import Given
from recurra.config.trust import trust_folder
from recurra.errors import CheckpointError, ConfigError, RecurraError, TrustError
from recurra.manifest import seal
from recurra.named import catalogue, find
from recurra.runtime.hosted import hosted
from recurra.runtime.server import usable
from recurra.settings import field_type
from recurra.tasks.task import Task
from recurra.toml import toml_value
from recurra.training.loading import load_task

OLD = Path(__file__).parent / "old_runs" / "0.1"

CELL = """
from recurra.cells import LSTM

class Cell(LSTM):
    pass
"""

HOSTILE = "import pathlib\npathlib.Path({!r}).write_text('it ran')\n" + CELL


class Watched:
    """What Python was asked to do: an audit hook cannot be taken away again, so there is one, which is mostly idle."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] | None = None
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.events is not None and event in ("import", "exec", "open", "os.system", "subprocess.Popen"):
            self.events.append((event, arguments))

    @contextmanager
    def listening(self) -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
        self.events = []
        try:
            yield self.events
        finally:
            self.events = None


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


def imports(events: list[tuple[str, tuple[Any, ...]]]) -> set[str]:
    return {arguments[0] for event, arguments in events if event == "import"}


def executed(events: list[tuple[str, tuple[Any, ...]]]) -> set[str]:
    return {arguments[0].co_filename for event, arguments in events if event == "exec"}


def opened(events: list[tuple[str, tuple[Any, ...]]]) -> set[str]:
    return {os.path.abspath(os.fsdecode(path)) for path in _paths(events, writing=False)}


def written(events: list[tuple[str, tuple[Any, ...]]]) -> set[str]:
    """Files that were opened to be written, but for what Python compiles of recurra itself."""
    found = {os.path.abspath(os.fsdecode(path)) for path in _paths(events, writing=True)}
    return {path for path in found if "__pycache__" not in path and path != os.devnull}


def _paths(events: list[tuple[str, tuple[Any, ...]]], *, writing: bool) -> Iterator[Any]:
    for path, _, flags in (arguments for event, arguments in events if event == "open"):
        is_to_write = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if isinstance(path, str | bytes | os.PathLike) and (is_to_write or not writing):
            yield path


def old_run(target: Path, task: str = "tagging") -> Path:
    """A copy of a run that names no code, with its data beside it."""
    shutil.copytree(OLD / task, target)
    seal(target / "run")
    return target / "run"


def set_in(run: Path, keys: tuple[str, ...], value: object) -> None:
    """Change one setting of a run's config.toml, and record it in the manifest, as anybody can."""
    table = tomllib.loads((run / "config.toml").read_text("utf-8"))
    inner = table
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    text = "".join(f"{key} = {toml_value(item)}\n" for key, item in table.items())
    (run / "config.toml").write_text(text, "utf-8")
    seal(run)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own to work in, where nothing is trusted yet and modules are found."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return work


@pytest.fixture
def hostile(home: Path) -> Iterator[Path]:
    """A run whose cell is in a module that leaves a file behind when it is imported, and the file."""
    ran = home / "ran.txt"
    (home / "hostile_module.py").write_text(HOSTILE.format(str(ran)), "utf-8")
    run = old_run(home / "got")
    set_in(run, ("model", "cell"), "hostile_module:Cell")
    yield run
    sys.modules.pop("hostile_module", None)


COMMANDS = {
    "predict": ["predict", "RUN", "DATA/inputs.txt"],
    "an ensemble": ["predict", "RUN,RUN", "DATA/inputs.txt"],
    "evaluate": ["evaluate", "RUN", "DATA/valid.conll"],
    "compare": ["compare", "RUN", "RUN", "DATA/valid.conll"],
    "explain": ["explain", "RUN", "they run"],
    "gradients": ["gradients", "RUN"],
    "generate": ["generate", "RUN"],
    "serve": ["serve", "RUN", "--port", "0"],
    "serve a folder of runs": ["serve", "got", "--port", "0"],
    "info --draw": ["info", "RUN", "--draw", "drawn.svg"],
    "resume": ["train", "RUN", "--resume", "--quiet"],
    "train by its settings": ["train", "RUN/config.toml", "--out", "new", "--quiet"],
    "gradients before training": ["gradients", "RUN/config.toml"],
    "config": ["config", "RUN/config.toml"],
    "fine-tune": ["train", "tagging", "--train", "DATA/train.conll", "--out", "new", "--from", "RUN", "--quiet",
                  "--set", "data.cache=false", "--set", "model.hidden=4"],
    "fine-tune by its settings": ["train", "--train", "DATA/train.conll", "--out", "new", "--from", "RUN", "--quiet"],
    "a dry run by its settings": ["train", "--train", "DATA/train.conll", "--from", "RUN", "--dry-run"],
}  # fmt: skip


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_imports_what_a_run_names(
    name: str, home: Path, watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"RUN": "got/run", "DATA": "got/data"}
    arguments = [_placed(word, places) for word in COMMANDS[name]]
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with watched.listening() as events:
        status = main(arguments)
    said = capsys.readouterr().err
    assert status == 2, said
    assert "the run got/run names code from outside recurra, which would be run:" in said
    assert "got/run/config.toml:3: model.cell = 'hostile_module:Cell' would import the module 'hostile_module'" in said
    assert f"which is {home / 'hostile_module.py'}." in said
    assert "Nothing was imported. If you trust this run and that code, allow it: --trust" in said
    assert "hostile_module" not in {*imports(events), *sys.modules}
    assert not any("hostile_module" in file for file in executed(events))
    assert not written(events)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def _placed(word: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        word = word.replace(name, place)
    return word


def test_what_only_tells_of_a_run_imports_nothing_either(hostile: Path, watched: Watched) -> None:
    with watched.listening() as events:
        assert main(["info", str(hostile)]) == 0
        assert main(["check", str(hostile)]) == 0
    assert "hostile_module" not in imports(events)


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "got/run", "got/data/inputs.txt"],
        ["evaluate", "got/run", "got/data/valid.conll"],
        ["compare", "got/run", "got/run", "got/data/valid.conll"],
        ["explain", "got/run", "they run"],
        ["gradients", "got/run", "got/data/valid.conll"],
        ["info", "got/run", "--draw", "drawn.svg"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.usefixtures("hostile")
def test_a_run_that_is_trusted_does_what_any_other_does(
    arguments: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--trust"]) == 0, capsys.readouterr().err
    assert (home / "ran.txt").read_text("utf-8") == "it ran"


def test_trust_is_a_keyword_in_python(hostile: Path, home: Path) -> None:
    sys.path.append(str(home))
    with pytest.raises(TrustError, match="hostile_module"):
        recurra.load(hostile)
    with pytest.raises(TrustError, match="hostile_module"):
        recurra.compare([hostile, hostile], home / "got/data/valid.conll")
    with pytest.raises(TrustError, match="hostile_module"):
        hosted([str(hostile)])["run"].predict(["they run"], {})
    assert len(recurra.load(hostile, trust=True).predict(["they run"])) == 1
    assert recurra.load(hostile).task.name == "tagging"


@pytest.mark.usefixtures("hostile")
def test_a_run_that_is_not_trusted_is_not_served_and_others_are(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old_run(home / "got" / "good")
    assert list(usable(hosted([str(home / "got")]))) == ["good/run"]
    assert "recurra: not served: the run" in capsys.readouterr().err


NAMED: dict[tuple[str, ...], object] = {
    ("task",): "out.side:Thing",
    ("data", "format"): {"name": "out.side:Thing", "separator": " "},
    ("model", "cell"): {"name": "lstm", "wrap": [{"name": "zoneout"}, {"name": "out.side:Thing"}]},
    ("model", "head"): "out.side:Thing",
    ("model", "merge"): "out.side:Thing",
    ("model", "summary"): {"name": "attention", "score": {"name": "additive", "terms": ["out.side:Thing"]}},
    ("model", "spelling", "cell"): {"name": "elman", "activation": "out.side:Thing"},
    ("training", "optimizer"): "out.side:Thing",
}


@pytest.mark.parametrize("keys", NAMED, ids=".".join)
def test_code_is_found_wherever_a_run_names_it(keys: tuple[str, ...], home: Path) -> None:
    run = old_run(home / "got")
    set_in(run, keys, NAMED[keys])
    given = Given.of_run(run)
    [found] = given.code(None if keys == ("task",) else find(Task, "tagging").Settings)
    assert (found.name, found.module) == ("out.side:Thing", "out.side")
    assert found.setting.startswith(".".join(keys))
    assert found.place.startswith(f"{run}/config.toml:")
    with pytest.raises(TrustError, match=r"the module 'out\.side', which is not found here\."):
        load_task(run)


def test_a_setting_that_holds_texts_names_no_code(home: Path) -> None:
    run = old_run(home / "got", "seq2seq")
    set_in(run, ("decoding", "banned"), ["xml:lang", "os:system"])
    set_in(run, ("data", "train"), "a:b")
    assert load_task(run).settings.decoding.banned == ["xml:lang", "os:system"]


def leaves(kind: type, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of all settings."""
    for field in dataclasses.fields(kind):
        keys = (*path, field.name)
        hint = field_type(kind, [field.name])
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, keys)  # type: ignore[arg-type]  # a class
            yield keys
        elif "str" in str(hint) or "Literal" in str(hint):
            yield keys


def try_every_setting(task: str, home: Path, watched: Watched, *, thoroughly: bool) -> None:
    """Let each setting of a run name a module or a file: whatever comes of it, neither is touched."""
    ran, secret = home / "ran.txt", home / "secret.txt"
    (home / "hostile_module.py").write_text(HOSTILE.format(str(ran)), "utf-8")
    sys.path.append(str(home))
    secret.write_text("2 2\nswordfish 1 2\n", "utf-8")
    run = old_run(home / "got", task)
    untouched = (run / "config.toml").read_bytes()
    inputs = home / "got" / json.loads((home / "got/expected.json").read_text("utf-8"))["inputs"]
    lines = inputs.read_text("utf-8").split("\n")[:1]
    if thoroughly:
        list(recurra.load(run).predict_file(inputs, lines))  # its cells are compiled once, which writes to the cache
    refused = answered = 0
    values: list[object] = ["hostile_module:Cell", str(secret)]
    for keys in leaves(find(Task, task).Settings):
        for value in [*values, *([value] for value in values)] if thoroughly else values[:1]:
            (run / "config.toml").write_bytes(untouched)
            set_in(run, keys, value)
            with watched.listening() as events:
                try:
                    loaded = load_task(run)
                    loaded.build()
                    if thoroughly:
                        list(recurra.load(run).predict_file(inputs, lines))
                    answered += 1
                except TrustError:
                    refused += 1
                except RecurraError:
                    pass
            assert "hostile_module" not in imports(events), keys
            assert str(secret) not in opened(events), keys
            assert not written(events), keys
    assert not ran.exists()
    assert refused >= 5  # the task and its parts
    assert answered >= 5  # the files of data


@pytest.mark.parametrize("task", catalogue(Task))
def test_no_setting_of_a_run_makes_loading_import_a_module(task: str, home: Path, watched: Watched) -> None:
    try_every_setting(task, home, watched, thoroughly=False)


@pytest.mark.slow
@pytest.mark.parametrize("task", catalogue(Task))
def test_no_setting_of_a_run_makes_an_answer_import_a_module_or_open_a_file(
    task: str, home: Path, watched: Watched
) -> None:
    try_every_setting(task, home, watched, thoroughly=True)


def test_trust_ends_when_the_module_the_package_around_it_or_the_settings_change(home: Path) -> None:
    (home / "own_package").mkdir()
    package, module = home / "own_package/__init__.py", home / "own_package/lab.py"
    package.write_text("", "utf-8")
    module.write_text(CELL, "utf-8")
    sys.path.append(str(home))
    run = old_run(home / "got")
    set_in(run, ("model", "cell"), "own_package.lab:Cell")
    with pytest.raises(TrustError, match=rf"which is {module}\.\nNothing was imported\. If"):
        load_task(run)
    load_task(run, trust=True)
    load_task(run)
    copy = shutil.copytree(run, home / "elsewhere")
    load_task(copy)  # the same settings and the same code, wherever they lie
    for file in (package, module, run / "config.toml"):
        before = file.read_bytes()
        file.write_bytes(before + b"# changed\n")
        seal(run)
        with pytest.raises(TrustError) as refusal:
            load_task(run)
        is_code = file.suffix == ".py"
        assert ("It was trusted before, but that code has changed since." in str(refusal.value)) is is_code
        file.write_bytes(before)
        seal(run)
        load_task(run)


def test_where_a_module_lies_is_said_without_importing_the_package_around_it(home: Path, watched: Watched) -> None:
    (home / "space" / "broken").mkdir(parents=True)
    (home / "space/broken/__init__.py").write_text("raise SystemExit('it ran')", "utf-8")
    (home / "space/broken/cells.py").write_text(CELL, "utf-8")
    sys.path.append(str(home))
    run = old_run(home / "got")
    set_in(run, ("model", "cell"), "space.broken.cells:Cell")
    with watched.listening() as events, pytest.raises(TrustError) as refusal:
        load_task(run)
    assert f"the module 'space.broken.cells', which is {home}/space/broken/cells.py." in str(refusal.value)
    assert not {name for name in {*imports(events), *sys.modules} if name.startswith("space")}


@pytest.mark.parametrize("name", ["os:system", "builtins:exec", "sys:exit"])
def test_what_is_part_of_python_is_asked_for_too(name: str, home: Path) -> None:
    run = old_run(home / "got")
    set_in(run, ("model", "cell"), {"name": "elman", "activation": name})
    with pytest.raises(TrustError, match=f"model.cell.activation = '{name}' would import the module"):
        recurra.load(run)


def test_trust_is_kept_in_a_folder_that_is_the_users_alone(hostile: Path, home: Path) -> None:
    sys.path.append(str(home))
    load_task(hostile, trust=True)
    folder = trust_folder()
    assert folder is not None
    [record] = folder.iterdir()
    assert not record.is_relative_to(hostile)
    assert (folder.stat().st_mode & 0o777, record.stat().st_mode & 0o777) == (0o700, 0o600)
    load_task(hostile)
    for path, mode in ((folder, 0o770), (record, 0o606)):  # somebody else could have put it there
        path.chmod(mode)
        with pytest.raises(TrustError):
            load_task(hostile)
        path.chmod(0o700)
    load_task(hostile)
    kept = record.rename(home / "kept")
    record.symlink_to(kept)
    with pytest.raises(TrustError):
        load_task(hostile)


def test_where_trust_cannot_be_remembered_it_is_asked_for_each_time(
    hostile: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys.path.append(str(home))
    (home / "a file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "a file"))
    load_task(hostile, trust=True)
    with pytest.raises(TrustError):
        load_task(hostile)


def test_whoever_trains_a_run_trusts_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "own_cells_here.py").write_text(CELL, "utf-8")
    shutil.copytree(OLD / "tagging" / "data", home / "data")
    few = [f"--set={each}" for each in ("training.steps=2", "model.hidden=4", "data.cache=false")]
    begun = ["train", "tagging", "--train", "data/train.conll", "--out", "run", "--quiet", *few]
    assert main([*begun, "--set", "model.cell=own_cells_here:Cell"]) == 0
    assert main(["predict", "run", "data/inputs.txt"]) == 0
    assert main(["train", "run", "--resume", "--quiet", "--set", "training.steps=3"]) == 0
    assert main(["predict", "run", "data/inputs.txt"]) == 0  # though config.toml is another now
    assert main(["config", "run/config.toml"]) == 0
    assert main([*begun[:5], "fine", "--quiet", *few, "--from", "run"]) == 0
    set_in(home / "run", ("training", "seed"), 5)
    capsys.readouterr()
    assert main(["train", "run", "--resume", "--quiet"]) == 2
    assert "names code from outside recurra" in capsys.readouterr().err


def test_a_tokenizer_is_imported_because_the_settings_name_it_and_not_its_file(home: Path, watched: Watched) -> None:
    (home / "hostile_module.py").write_text(HOSTILE.format(str(home / "ran.txt")), "utf-8")
    sys.path.append(str(home))
    for task, file in (
        ("language_model", "tokenizer.json"),
        ("classification", "tokenizer.json"),
        ("seq2seq", "tokenizer.target.json"),
    ):
        run = old_run(home / task, task)
        (run / file).write_text(json.dumps({"name": "hostile_module:Cell"}), "utf-8")
        seal(run)
        with watched.listening() as events, pytest.raises(TrustError, match=f"{file} names the tokenizer 'hostile"):
            load_task(run)
        assert "hostile_module" not in imports(events)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "vocabulary.words.json", ".lock", "metrics.jsonl", "config.toml"]
)
def test_a_link_out_of_a_run_folder_is_not_followed(name: str, home: Path, watched: Watched) -> None:
    run = old_run(home / "got")
    secret = home / "secret"
    if (run / name).exists():
        (run / name).rename(secret)
    (run / name).symlink_to(secret)
    with watched.listening() as events, pytest.raises(CheckpointError, match="is a link to a place outside"):
        recurra.load(run, trust=True)
    assert not {str(secret), str(run / name)} & opened(events)


WRITING = {
    "check": ["check", "got/run", "--accept"],
    "resume": ["train", "got/run", "--resume", "--quiet"],
    "train": ["train", "tagging", "--train", "got/data/train.conll", "--out", "got", "--quiet", "--set",
              "model.hidden=4", "--set", "data.cache=false"],
}  # fmt: skip


@pytest.mark.parametrize("name", [".lock", ".manifest.json.unfinished", ".new", "metrics.jsonl"])
@pytest.mark.parametrize("command", WRITING)
def test_nothing_is_written_through_a_link_out_of_a_run_folder(
    name: str, command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = old_run(home / "got")
    own = home / "own"
    own.mkdir()
    (own / "file").write_text("mine", "utf-8")
    link = (run if command != "train" else run.parent) / name
    link.unlink(missing_ok=True)
    link.symlink_to(own if name == ".new" else own / "file")
    assert main(WRITING[command]) == 2
    assert "is a link to a place outside of the folder" in capsys.readouterr().err
    assert {path.name: path.read_text("utf-8") for path in own.iterdir()} == {"file": "mine"}


@pytest.mark.parametrize("linked", [Path.symlink_to, Path.hardlink_to], ids=["link", "second name"])
def test_a_lock_that_is_another_file_does_not_empty_it(linked: Callable[[Path, Path], None], home: Path) -> None:
    run = old_run(home / "got")
    weights = (run / "model.safetensors").read_bytes()
    linked(run / ".lock", run / "model.safetensors")
    main(["check", str(run), "--accept"])
    assert (run / "model.safetensors").read_bytes() == weights


def test_a_run_folder_is_never_looked_into_for_modules(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = old_run(home / "got")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.chdir(run)
    assert main(["info", "."]) == 0
    assert "" not in sys.path
    monkeypatch.chdir(home)
    assert main(["info", str(run)]) == 0
    assert "" in sys.path


def test_python_m_recurra_takes_no_module_of_the_current_folder_for_an_installed_one(home: Path) -> None:
    (home / "argparse.py").write_text("raise SystemExit('it ran')", "utf-8")
    done = subprocess.run([sys.executable, "-m", "recurra", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"recurra {recurra.__version__}\n"), done.stderr


@pytest.mark.parametrize("name", ["../lab:Cell", "/tmp/lab:Cell", "lab.py:", ".lab:Cell", "lab:Cell()", "a b:Cell"])
def test_what_is_no_name_is_refused_before_anything_is_imported(name: str, watched: Watched) -> None:
    from recurra.cells import Cell

    with watched.listening() as events, pytest.raises(ConfigError, match="your own is named as 'package"):
        find(Cell, name)
    assert not {module for module in imports(events) if "lab" in module}


def test_texts_are_generated_by_a_run_that_is_trusted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "own_cells_here.py").write_text(CELL, "utf-8")
    run = old_run(home / "got", "language_model")
    set_in(run, ("model", "cell"), "own_cells_here:Cell")
    assert main(["generate", str(run), "--length", "3"]) == 2
    assert main(["generate", str(run), "--length", "3", "--trust"]) == 0
    assert main(["generate", str(run), "--length", "3"]) == 0  # it is remembered
    assert capsys.readouterr().err.count("names code from outside recurra") == 1


def test_a_run_of_somebody_else_can_be_resumed_and_started_from_where_it_is_trusted(
    home: Path, hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--quiet", "--set", "training.steps=1", "--set", "data.cache=false"]
    begun = ["train", "tagging", "--train", "got/data/train.conll", "--out", "new", "--from", str(hostile), *few]
    assert main([*begun, "--set", "model.hidden=4", "--trust"]) == 0, capsys.readouterr().err
    set_in(hostile, ("training", "seed"), 5)
    os.chdir(home / "got")  # the run names its data from there
    sys.path.append(str(home))
    assert main(["train", "run", "--resume", "--quiet", "--trust"]) == 0
