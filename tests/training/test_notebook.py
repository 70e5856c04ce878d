"""What a notebook shows, and who hears of a training: progress that replaces itself, HTML, callbacks and loggers."""

from __future__ import annotations

import csv
import html
import importlib
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.analysis.backtests import Backtest, Rolling
from recurra.analysis.exposure import Exposed, Exposure
from recurra.errors import ConfigError
from recurra.reports.comparison_page import as_page
from recurra.runs import resume
from recurra.training.log import EventLine, Line, Logger, TrainLine, ValidLine
from recurra.training.loggers import Guarded, openings
from recurra.training.notebook import Notebook
from recurra.training.progress import Silent
from recurra.training.trained import Trained
from tests.training.test_frames import FEW, ROWS

LINES: list[Line] = [
    TrainLine(1, 0.5, 2.0, 0.01, seconds=1.0),
    ValidLine(2, 1.0, {"accuracy": 0.5, "nll": float("nan")}, 1.5, True),
    EventLine(2, "resumed"),
]
NUMBERS = {"train/loss": 2.0, "train/learning_rate": 0.01, "valid/accuracy": 0.5, "valid/loss": 1.5}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Trained, list[TrainLine], list[ValidLine]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECURRA_CACHE", str(tmp_path_factory.mktemp("cache")))
        steps, valid = list[TrainLine](), list[ValidLine]()
        model = recurra.train(
            "classification",
            train=ROWS,
            valid="20%",
            out=tmp_path_factory.mktemp("runs") / "run",
            settings={**FEW, "training.validate": 2, "training.loggers": ["csv"]},
            on_step=steps.append,
            on_validation=valid.append,
        )
        yield model, steps, valid


def test_callbacks_hear_of_every_step_and_every_validation(trained: Any) -> None:
    _, steps, valid = trained
    assert [line.step for line in steps] == [1, 2, 3, 4, 5]
    assert [line.step for line in valid] == [2, 4, 5]
    assert all("accuracy" in line.scores for line in valid)
    assert sum(line.best for line in valid) >= 1


def test_an_error_of_a_callback_ends_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))

    def stop(line: TrainLine) -> None:
        raise ValueError(f"enough at {line.step}")

    with pytest.raises(ValueError, match="enough at 1"):
        recurra.train("classification", train=ROWS, out=tmp_path / "run", settings=FEW, on_step=stop)


def test_a_table_of_all_numbers_is_written_and_written_anew_when_a_run_is_resumed(trained: Any) -> None:
    model = trained[0]

    def steps(name: str) -> list[int]:
        with (model.folder / "metrics.csv").open() as file:
            return [int(row["step"]) for row in csv.DictReader(file) if row["name"] == name]

    assert steps("valid/accuracy") == [2, 4, 5]
    resume(model.folder, Silent(), overrides=["training.steps=6"])
    assert steps("valid/accuracy") == [2, 4, 5, 6]


def test_what_a_notebook_shows_of_a_model_its_answers_and_its_scores_is_html(trained: Any) -> None:
    model = trained[0]
    assert "<strong>classification</strong>" in model._repr_html_()
    assert "accuracy" in model._repr_html_()
    assert "<svg" in model._repr_html_()
    answers = model.predict([*ROWS, {"text": "<b>good</b>"}])
    assert answers._repr_html_().count("<tr>") == 21
    assert "21 more" in answers._repr_html_()
    assert "&lt;b&gt;good" in model.predict([{"text": "<b>good</b>"}])._repr_html_()
    scores = model.evaluate(ROWS)._repr_html_()
    assert scores.index("accuracy") < scores.index("nll")
    explained = model.explain("good day")
    assert "good" in explained._repr_html_()
    assert "speaks against it" in explained._repr_html_()
    assert model.explain({"text": "good day"}).view.json() == explained.view.json()
    assert model.plot_answer("good day", "gates").title
    assert "<svg" in model.plot_training()._repr_html_()


def test_one_answer_is_shown_with_its_probabilities(trained: Any) -> None:
    [answer] = trained[0].predict([{"text": "<b>good</b>"}])
    shown = answer._repr_html_()
    assert "&lt;b&gt;good" in shown
    for label, share in answer.detail["probabilities"].items():
        assert f"<td>probability_{label}</td>" in shown, share
    assert f"<td>{answer.output}</td>" in shown


def test_a_backtest_is_shown_as_its_scores_and_a_picture() -> None:
    said = {"model": np.array([[5.0]]), "naive": np.array([[3.0]])}
    one = Rolling("", 1, 2, ["3"], np.array([[4.0]]), said, np.ones(1), np.ones(1))
    shown = Backtest([one], ["x"])._repr_html_()
    assert "all windows</th>" in shown
    assert "<td>naive</td>" in shown
    assert "<svg" in shown


def test_exposure_bias_is_shown_as_its_interval_and_curves() -> None:
    item = Exposed(np.array([1.0, 1.0]), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    shown = Exposure.of([item, item], "nll")._repr_html_()
    assert "exposure bias +0.5000" in shown
    assert "<svg" in shown


def test_a_comparison_is_shown_as_its_page_is(trained: Any, tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS[:4]))
    found = recurra.compare([trained[0], trained[0]], tmp_path / "test.jsonl", resamples=10)
    shown = found._repr_html_()
    assert shown.removeprefix(shown.partition("</style>")[0] + "</style>").removesuffix("</div>") in as_page(found)


def test_a_mistake_is_shown_in_a_notebook_by_the_lines_of_the_user_and_the_message() -> None:
    def of_the_user() -> None:
        recurra.Recurrent("lsmt", 2, 3)

    with pytest.raises(recurra.ConfigError) as caught:
        of_the_user()
    *lines, message = caught.value._render_traceback_()
    assert [line.partition(": ")[2] for line in lines] == ["of_the_user()", 'recurra.Recurrent("lsmt", 2, 3)']
    assert message == f"\x1b[31mConfigError\x1b[39m: {caught.value}"


def test_the_best_validation_stays_in_sight() -> None:
    progress = Notebook(show=lambda _: lambda _: None, clock=lambda: 0.0)
    progress.start(0, None, None)
    for step in range(1, 20):
        progress.valid(step, {"nll": float(step)}, "nll", step <= 2)
    shown = progress.html()
    assert shown.count("best so far") == 1
    assert '<td class="number">2</td>' in shown
    assert '<td class="number">11</td>' not in shown


def test_an_engine_report_is_shown_as_it_is_printed() -> None:
    report = recurra.Recurrent("gru", 2, 3, engine="loop").engine_report()
    assert html.unescape(report._repr_html_()) == f"<pre>{report}</pre>"


def test_progress_replaces_itself_and_keeps_the_last_state() -> None:
    shown: list[str] = []

    def show(first: str) -> Callable[[str], object]:
        shown.append(first)
        return lambda text: shown.__setitem__(0, text)

    now = [0.0]
    progress = Notebook(show=show, clock=lambda: now[0])
    with progress:
        progress.note("read <3> examples")
        progress.start(0, 4, None)
        for step in (1, 2, 3, 4):
            now[0] += 2
            progress.step(step, step / 2, 1 / step, 0.01, 100)
        progress.valid(4, {"nll": 0.5, "accuracy": 0.75, "count": 8.0}, "accuracy", True)
    [last] = shown
    assert "read &lt;3&gt; examples" in last
    assert "step 4 of 4" in last
    assert "ended after 0:08" in last
    assert "<svg" in last
    assert last.index("accuracy</th>") < last.index("nll</th>")
    assert "count</th>" not in last


def test_a_long_training_is_drawn_with_few_points() -> None:
    progress = Notebook(show=lambda _: lambda _: None, clock=lambda: 0.0)
    progress.start(0, None, None)
    for step in range(1, 3001):
        progress.step(step, 0.0, 1.0, 0.1, 1)
    assert 100 < len(progress._lines) <= 400
    assert len(progress.html()) < 100_000


def test_a_notebook_has_live_progress_unless_it_is_to_be_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    from recurra.runs import shown

    class ZMQInteractiveShell:
        pass

    assert isinstance(shown(None), Silent)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=ZMQInteractiveShell))
    assert isinstance(shown(None), Notebook)
    assert isinstance(shown(False), Silent)


def test_mlflow_has_the_settings_and_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    told(["mlflow"], tmp_path)
    number = (tmp_path / "run" / "mlflow.txt").read_text().strip()
    run = mlflow.tracking.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri()).get_run(number)
    assert run.data.metrics == NUMBERS
    assert run.data.params == {"model.hidden": "8"}
    assert run.info.run_name == "run"
    assert run.info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_has_every_number_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    told(["wandb"], tmp_path)
    wandb.teardown()  # what it still has to write, it writes now
    [file] = (tmp_path / "run").rglob("*.wandb")
    content = file.read_bytes()
    assert all(name.encode() in content for name in NUMBERS)


def test_wandb_is_told_each_line_with_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What of the library is used: init with a name and settings, log with a step, finish."""
    seen: list[Any] = []

    class Run:
        def log(self, numbers: dict[str, float], step: int) -> None:
            seen.append((step, numbers))

        def finish(self) -> None:
            seen.append("finished")

    def init(**options: Any) -> Run:
        seen.append((options["project"], options["name"], options["config"], options["resume"]))
        return Run()

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    told(["wandb"], tmp_path)
    assert seen == [
        ("recurra", "run", {"model.hidden": "8"}, None),
        (1, {"train/loss": 2.0, "train/learning_rate": 0.01}),
        (2, {"valid/accuracy": 0.5, "valid/loss": 1.5}),
        "finished",
    ]


def told(names: list[str], folder: Path) -> None:
    """Tell loggers of some lines."""
    (folder / "run").mkdir()
    for opening in openings(names, {"model.hidden": 8})[1:]:
        logger = opening(folder / "run", [])
        assert logger is not None
        for line in LINES:
            logger.write(line)
        logger.close()


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_logger_whose_library_is_missing_says_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    with pytest.raises(ConfigError, match=rf"{name} is not installed: pip install 'recurra\[{name}\]'"):
        told([name], tmp_path)


def test_an_unknown_logger_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'comet' is not known: choose from csv, mlflow, wandb"):
        recurra.train("classification", train="no file", out=tmp_path, settings={"training.loggers": ["comet"]})


def test_a_logger_that_cannot_be_opened_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> Logger:
        raise OSError("the store\nis gone")

    monkeypatch.setattr(importlib.import_module("recurra.training.loggers.mlflow"), "opened", opened)
    with pytest.raises(
        ConfigError, match=r"mlflow cannot be opened \(the store is gone\)\. Let MLFLOW_TRACKING_URI na"
    ):
        told(["mlflow"], tmp_path)


def test_a_logger_that_fails_is_closed_with_a_warning_and_training_goes_on() -> None:
    class Gone(Logger):
        def write(self, line: Line) -> None:
            raise OSError("no route to host")

    guarded = Guarded("mlflow", Gone())
    with pytest.warns(RuntimeWarning, match=r"mlflow cannot be written \(no route to host\)"):
        guarded.write(LINES[0])
    guarded.write(LINES[0])
    guarded.close()


def test_settings_are_logged_by_names_with_dots() -> None:
    flattened = importlib.import_module("recurra.runs").flattened
    assert json.dumps(flattened({"a": {"b": 1, "c": {}}})) == '{"a.b": 1, "a.c": {}}'
