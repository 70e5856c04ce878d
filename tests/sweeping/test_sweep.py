"""Sweeps of a tiny tagger: what is drawn, pruned and kept, and what becomes of a sweep that is cut off."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import recurra
from recurra.cli import main
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.named import catalogue
from recurra.runs import given_by, setup_of, summary_of
from recurra.scoring.counted import is_higher_better
from recurra.sweeping.results import Sweep
from recurra.sweeping.sweep import measured
from recurra.tasks.task import Task
from recurra.training.progress import Progress, Silent
from tests.once import made_once

OLD = Path(__file__).parents[1] / "old_runs" / "0.1"

SETTINGS: dict[str, Any] = {
    "model": {"hidden": 4, "embedding": 4, "characters.cell": "none"},
    "training": {"steps": 6, "validate": 1, "average": "none", "threads": 1},
    "data": {"min_count": 1, "cache": False},
}
SPACE: dict[str, Any] = {
    "model.hidden": [2, 4, 8],
    "training.learning_rate": {"from": 1e-4, "to": 0.1, "log": True},
    "model.dropout": {"from": 0.0, "to": 0.6, "step": 0.3},
}


def write_data(folder: Path) -> None:
    sentences = ["the/D cat/N sees/V a/D dog/N", "a/D dog/N runs/V", "the/D old/A cat/N is/V red/A"]
    text = "".join("".join(f"{word.replace('/', chr(9))}\n" for word in each.split()) + "\n" for each in sentences)
    (folder / "train.conll").write_text(text * 3, "utf-8")
    (folder / "valid.conll").write_text(text, "utf-8")


def searched(data: Path, out: Path, trials: int, space: Mapping[str, object] = SPACE, **more: Any) -> Sweep:
    pytest.importorskip("optuna")
    given = {"settings": SETTINGS, "train": data / "train.conll", "valid": data / "valid.conll", **more}
    return recurra.sweep("tagging", space, out=out, trials=trials, **given)


@pytest.fixture(scope="module", autouse=True)
def _little_to_collect() -> None:
    """A sweep looks for garbage after each trial: what the tests before have left would take a second each time."""
    gc.freeze()


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A sweep of twelve trials, made once, and its trials."""
    pytest.importorskip("optuna")

    def make(folder: Path) -> None:
        write_data(folder)
        searched(folder, folder / "sweep", 12)

    folder = made_once(tmp_path_factory, "sweep", make)
    return folder, trials_in(folder / "sweep")


@pytest.fixture(scope="module")
def two_trials(tmp_path_factory: pytest.TempPathFactory, swept: tuple[Path, list[dict[str, Any]]]) -> Path:
    """A sweep of two trials, made once: to be copied."""

    def make(here: Path) -> None:
        searched(swept[0], here / "sweep", 2)

    return made_once(tmp_path_factory, "two_trials", make) / "sweep"


@pytest.fixture
def begun(two_trials: Path, swept: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> tuple[Path, Path]:
    """The data of the sweep of twelve trials, and another of the same settings that had two so far."""
    return swept[0], Path(shutil.copytree(two_trials, tmp_path / "sweep"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_data(tmp_path)
    return tmp_path


def trials_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text("utf-8").splitlines()]


def drawn(folder: Path) -> list[Any]:
    """What was drawn and what came of it, but for times and the trials that were given up."""
    return [(each["state"], each["settings"], each["score"]) for each in trials_in(folder)]


def test_the_first_trial_has_the_settings_as_they_are(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    _, trials = swept
    assert trials[0]["as_given"]
    assert trials[0]["settings"] == {"model.hidden": 4, "training.learning_rate": 0.004}  # not the usual dropout: 0.5
    assert not any(each["as_given"] for each in trials[1:])


def test_values_are_drawn_from_the_space(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    _, trials = swept
    assert len(trials) == 12
    rates = [each["settings"]["training.learning_rate"] for each in trials[1:]]
    assert all(1e-4 <= rate <= 0.1 for rate in rates)
    assert len({*rates}) == 11
    assert {each["settings"]["model.hidden"] for each in trials[1:]} == {2, 4, 8}
    assert {each["settings"]["model.dropout"] for each in trials[1:]} <= {0.0, 0.3, 0.6}


def test_the_run_of_the_best_trial_is_kept_whole_and_no_other(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, trials = swept
    best = max((each for each in trials if each["state"] == "complete"), key=lambda each: each["score"])
    run = folder / "sweep" / "best"
    summary = summary_of(run)
    assert summary["best"]["scores"]["accuracy"] == best["score"]
    settings = recurra.load(run).task.settings
    assert (settings.model.hidden, settings.training.learning_rate, settings.model.dropout) == tuple(
        best["settings"][name] for name in ("model.hidden", "training.learning_rate", "model.dropout")
    )
    assert main(["check", str(run)]) == 0
    assert sorted(path.name for path in (folder / "sweep").iterdir()) == [
        "best", "journal.jsonl", "sweep.html", "sweep.toml", "trials.jsonl", "workers",
    ]  # fmt: skip
    assert [*(folder / "sweep" / "workers").iterdir()] == []


def test_a_trial_that_is_worse_than_half_of_the_others_is_pruned(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    """As Optuna's journal has it: at the last validation, its best score was below the median of those complete."""
    folder, trials = swept
    pruned = [each for each in trials if each["state"] == "pruned"]
    assert pruned
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    backend = JournalFileBackend(str(folder / "sweep" / "journal.jsonl"))
    study = optuna.load_study(storage=JournalStorage(backend), study_name="sweep")
    known: dict[int, Any] = {each.number: each for each in study.get_trials(deepcopy=False)}
    for each in pruned:
        scores = known[each["number"]].intermediate_values
        last = max(scores)
        assert 2 <= last < 6
        others = sorted(
            other.intermediate_values[last]
            for other in known.values()
            if other.state.name == "COMPLETE" and other.datetime_complete < known[each["number"]].datetime_complete
        )
        assert len(others) >= 4
        middle = len(others) // 2
        median = others[middle] if len(others) % 2 else (others[middle - 1] + others[middle]) / 2
        assert max(scores.values()) < median


def test_the_page_shows_the_trials_and_loads_nothing(swept: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, trials = swept
    page = (folder / "sweep" / "sweep.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    complete = sum(each["state"] == "complete" for each in trials)
    [wide] = re.findall(r'aria-label="Settings and scores of (\d+) trials', page)[:1]
    assert int(wide) == sum(each["state"] in ("complete", "pruned") for each in trials)
    assert page.count("<title>trial ") == 2 * int(wide)  # for wide and for narrow screens
    assert f"of {complete} complete trials" in page
    assert "Importance of the settings: " in page


def test_importances_are_shares_of_one_and_name_the_setting_that_matters(tmp_path: Path) -> None:
    """A study whose value hangs on the learning rate alone, made with Optuna itself."""
    optuna = pytest.importorskip("optuna")
    from recurra.sweeping.journal import Journal, Metric, importances

    (tmp_path / "s").mkdir()
    journal = Journal(tmp_path / "s", 1, prunes=True)
    journal.open(Metric("accuracy", True, "accuracy", True), {})
    rate, hidden = optuna.distributions.FloatDistribution(0, 1), optuna.distributions.IntDistribution(1, 9)
    for number in range(30):
        params = {"rate": (number * 7 % 30) / 30, "hidden": 1 + number * 5 % 9}
        journal.study.add_trial(
            optuna.trial.create_trial(
                params=params, distributions={"rate": rate, "hidden": hidden}, value=-abs(params["rate"] - 0.5)
            )
        )
    found = importances(journal.study)
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["rate"] > 0.7


def test_a_sweep_that_goes_on_draws_what_an_unbroken_one_draws(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    assert len(trials_in(sweep)) == 2
    searched(data, sweep, 4)
    assert drawn(sweep) == drawn(data / "sweep")[:4]


class Stopping(Progress):
    """Ctrl-C at a validation of the whole sweep."""

    def __init__(self, at: int) -> None:
        self.left = at

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        pass

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        pass

    def validating(self, done: int, total: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


def test_ctrl_c_ends_a_sweep_and_the_trial_under_way_is_tried_again(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    with pytest.raises(KeyboardInterrupt, match=r"stopped; 2 trials: 2 complete. .* type the same command"):
        searched(data, sweep, 4, progress=Stopping(3))
    assert not (sweep / "trials").exists()
    assert summary_of(sweep / "best")["best"]["scores"]
    searched(data, sweep, 3)
    assert drawn(sweep) == drawn(data / "sweep")[:3]


def test_a_trial_whose_process_is_gone_is_given_up_and_tried_once_more(begun: tuple[Path, Path]) -> None:
    from recurra.sweeping.journal import Journal

    data, sweep = begun
    space = searched(data, sweep, 2).space
    lost: dict[str, Any] = {}
    for _ in range(2):  # twice its process is killed: then these settings are not tried again
        journal = Journal(sweep, 1, prunes=True)
        with journal.at_work(), journal.alone():
            journal.open(None, {})
            found = journal.drawn(space, None)
            assert found is not None
            lost = dict(found[1])
            assert lost == trials_in(data / "sweep")[2]["settings"]
            assert journal.drawn(space, 3) is None  # it is at work
    after = searched(data, sweep, 3)
    assert [each.number for each in after.trials] == [0, 1, 4]
    assert dict(after.trials[2].settings) == lost  # what is drawn hangs on the trials before, which are the same


def test_settings_that_were_tried_are_not_trained_again(data: Path) -> None:
    found = searched(data, data / "sweep", 6, {"model.hidden": [2, 4]})
    same = [each for each in found.trials if each.same_as is not None]
    assert len(same) == 4
    for each in same:
        first = found.trials[each.same_as or 0]
        assert (each.score, each.settings) == (first.score, first.settings)
    assert {each.settings["model.hidden"] for each in found.trials if each.same_as is None} == {2, 4}


def test_a_trial_that_fails_is_said_and_the_sweep_goes_on(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = data / "sweep.toml"
    config.write_text(
        'task = "tagging"\n[data]\ntrain = "train.conll"\nvalid = "valid.conll"\nmin_count = 1\ncache = false\n'
        '[model]\nhidden = 4\nembedding = 4\ncharacters.cell = "none"\n'
        '[training]\nsteps = 2\nthreads = 1\naverage = "none"\n'
        '[sweep]\nmodel.cell = ["lstm", {name = "gru", resett = "after"}]\n'
    )
    monkeypatch.chdir(data)
    pytest.importorskip("optuna")
    assert main(["sweep", "sweep.toml", "--trials", "6", "--out", "out", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    failed = [each for each in printed["trials"] if each["state"] == "failed"]
    assert failed
    assert "'gru' has no option 'resett'. Did you mean 'reset'?" in failed[0]["why"]
    assert printed["best"]["settings"] == {"model.cell": "lstm"}
    assert not (data / "out" / "trials").exists()


def test_where_the_settings_as_they_are_fail_the_sweep_ends_with_their_error(data: Path) -> None:
    with pytest.raises(ConfigError, match="'lstm' has no option 'candidat'"):
        searched(data, data / "out", 3, settings={**SETTINGS, "model.cell": {"name": "lstm", "candidat": "tanh"}})
    with pytest.raises(DataError, match=r"none.conll"):
        searched(data, data / "out", 3, train=data / "none.conll")
    assert len(searched(data, data / "out", 1).complete) == 1  # corrected, in the same folder


def test_what_has_no_effect_beside_other_draws_is_left_out(data: Path) -> None:
    space = {"model.encoder": ["rnn", "transformer"], "model.transformer.heads": [1, 2]}
    found = searched(data, data / "sweep", 5, space)
    assert {each.state for each in found.trials} == {"complete"}, [each.why for each in found.trials]


def test_all_runs_are_kept_where_that_is_asked_for(data: Path) -> None:
    found = searched(data, data / "sweep", 3, keep=True)
    kept = sorted(path.name for path in (data / "sweep" / "trials").iterdir())
    assert kept == ["trial-0", "trial-1", "trial-2"]
    assert found.best is not None
    texts = ["the cat sees"]
    best = recurra.load(data / "sweep" / "trials" / f"trial-{found.best.number}").predict(texts)
    assert found.load().predict(texts)[0] == best[0]


def test_a_sweep_of_other_settings_is_not_gone_on_with(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    for more, said in (
        ({"space": {"model.hidden": [2, 4]}}, r"is a sweep of other settings: \[sweep\] differs from"),
        ({"settings": {**SETTINGS, "training": {**SETTINGS["training"], "steps": 7}}}, r"\[training\] differs"),
        ({"seed": 2}, "the seed differs"),
    ):
        with pytest.raises(CheckpointError, match=said):
            searched(data, sweep, 2, **more)
    with pytest.raises(CheckpointError, match=r"is a sweep: the run of its best trial is .*best\."):
        recurra.load(sweep)
    with pytest.raises(CheckpointError, match="is a run, not a sweep: choose another folder"):
        searched(data, sweep / "best", 2)


def test_half_a_line_that_a_killed_process_left_is_cut_off(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    with (sweep / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"op_code": 4, "tri')
    assert len(searched(data, sweep, 3).trials) == 3
    assert all(json.loads(line) for line in (sweep / "journal.jsonl").read_text("utf-8").splitlines())


def test_a_journal_that_is_none_is_refused(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    (sweep / "journal.jsonl").write_text("[]\n")
    with pytest.raises(CheckpointError, match=r"journal.jsonl is no journal of a sweep"):
        searched(data, sweep, 2)


def test_without_optuna_the_command_says_what_to_install(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "s.toml").write_text(
        f'task = "tagging"\n[data]\ntrain = "{data}/train.conll"\nvalid = "{data}/valid.conll"\n'
        "[sweep]\nmodel.hidden = [8, 16]\n"
    )
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["sweep", str(data / "s.toml"), "--trials", "2", "--out", str(data / "out")]) == 2
    assert "recurra sweep needs Optuna, and optuna is not installed: pip install 'recurra[tune]'." in (
        capsys.readouterr().err
    )
    assert not (data / "out").exists()


@pytest.mark.filterwarnings("ignore:.* is now called")
@pytest.mark.parametrize("name", catalogue(Task))
def test_every_task_says_what_its_trials_are_compared_by(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(OLD / name, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    given = given_by("run/config.toml", trust=False).options(["data.cache=false"])
    metric = measured(setup_of(given), tmp_path / "sweep")
    assert metric.name == summary_of(Path("run"))["first_metric"]
    assert metric.higher_is_better is is_higher_better(metric.name)
    assert not (tmp_path / "sweep").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is now called")
@pytest.mark.parametrize("name", catalogue(Task))
def test_every_task_can_be_searched(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    shutil.copytree(OLD / name, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    space = {"training.learning_rate": {"from": 1e-4, "to": 1e-2, "log": True}, "training.clip": [1.0, 5.0]}
    brief = {"training": {"steps": 4, "validate": 2}, "data.cache": False}
    found = recurra.sweep("run/config.toml", space, out="sweep", trials=3, settings=brief)
    assert len(found.complete) + sum(each.state == "pruned" for each in found.trials) == 3
    assert found.best is not None
    sign = 1 if found.higher_is_better else -1
    assert sign * (found.best.score or 0) == max(sign * (each.score or 0) for each in found.complete)
    assert found.load().task.name == name


@pytest.mark.slow
def test_two_processes_share_a_sweep_and_one_goes_on_where_the_other_was_killed(data: Path) -> None:
    pytest.importorskip("optuna")
    (data / "s.toml").write_text(
        f'task = "tagging"\n[data]\ntrain = "{data}/train.conll"\nvalid = "{data}/valid.conll"\nmin_count = 1\n'
        'cache = false\n[model]\nhidden = 4\nembedding = 4\ncharacters.cell = "none"\n'
        '[training]\nsteps = 60\nvalidate = 10\nthreads = 1\naverage = "none"\n'
        "[sweep]\ntraining.learning_rate = {from = 1e-4, to = 0.1, log = true}\nmodel.hidden = [2, 4, 8]\n"
    )
    command = [sys.executable, "-m", "recurra", "sweep", "s.toml", "--trials", "8", "--out", "out", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    one, other = (subprocess.Popen(command, cwd=data, env=environment) for _ in range(2))
    until = time.monotonic() + 100
    while not (data / "out" / "trials.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.05)
    one.send_signal(signal.SIGKILL)
    assert other.wait(100) == 0
    one.wait()
    assert subprocess.run(command, cwd=data, env=environment, check=False, timeout=100).returncode == 0
    trials = trials_in(data / "out")
    assert len(trials) in (8, 9)  # what the killed process had drawn may be drawn again by the one that was left
    assert {each["state"] for each in trials} <= {"complete", "pruned"}
    assert recurra.load(data / "out" / "best").predict(["the cat"])[0].output
    assert not (data / "out" / "trials").exists()


def test_no_trial_begins_when_the_time_is_over(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    pytest.importorskip("optuna")
    files: dict[str, Any] = {"train": data / "train.conll", "valid": data / "valid.conll"}
    found = recurra.sweep("tagging", SPACE, out=sweep, minutes=1e-3, settings=SETTINGS, **files)
    assert len(found.trials) == 3  # the one that was begun is brought to its end


def test_a_sweep_that_is_done_says_what_came_of_it(begun: tuple[Path, Path]) -> None:
    data, sweep = begun
    found = searched(data, sweep, 2, progress=Silent())
    assert found.as_given is found.trials[0]
    assert found.in_words().startswith("2 trials: 2 complete. Best: accuracy ")
    assert found.in_words().endswith(f"Its run: {sweep / 'best'}")
    assert "<table>" in found._repr_html_()
    assert [row[0] for row in found.table().rows] == sorted("01", key=lambda n: -(found.trials[int(n)].score or 0))
