"""A sweep: trials are drawn, trained and pruned until there are enough, and the run of the best is kept."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from recurra.config.given import Assignment, Config, Files, Given, Origin
from recurra.data.frames import Rows, named_as
from recurra.errors import CheckpointError, ConfigError, EngineError, TrainingError, is_lack_of_memory
from recurra.interrupts import last_words
from recurra.manifest import make_folder
from recurra.runs import Setup, begin, given_by, in_files, is_run, setup_of, shown, summary_of
from recurra.settings import SettingError, read_toml, table_of, toml_text
from recurra.sweeping.journal import JOURNAL, Journal, Metric, optuna
from recurra.sweeping.results import BEST, PAGE_FILE, ROWS, Sweep, Trial, swept, write
from recurra.sweeping.space import (
    SECTION,
    Label,
    Varied,
    check_fits,
    label_of,
    space_of,
    table_of_space,
    without_space,
)
from recurra.toml import toml_value
from recurra.training.loading import SWEEP
from recurra.training.progress import Progress, Silent
from recurra.views.page import write_whole

if TYPE_CHECKING:
    from optuna.trial import Trial as Drawn

GOES_ON = "The trial under way is tried again when the sweep goes on: type the same command."

TRIALS = "trials"
"""The folder of the runs of trials, those under way or all."""


def sweep(
    task: Config,
    space: Mapping[str, object] | None = None,
    *,
    out: str | os.PathLike[str],
    train: Files | Rows = (),
    valid: Files | Rows = (),
    test: Files | Rows = (),
    trials: int | None = None,
    minutes: float | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int = 1,
    prune: bool = True,
    keep: bool = False,
    progress: Progress | bool | None = None,
    trust: bool = False,
) -> Sweep:
    """Train a task many times with settings drawn from a space, and keep the run with the best validation score.

    `space` names settings, each with a list of choices or a range, as the table [sweep] of a config file does:
    {"model.cell": ["gru", "lstm"], "training.learning_rate": {"from": 1e-4, "to": 1e-2, "log": True}}. The first trial
    has the settings as they are. Trials begin until there are so many `trials` in the sweep, or for so many `minutes`.
    One that is worse at a validation than half of the others were is stopped there (`prune`). A sweep goes on that is
    in `out` already; several processes may work at it at once. It needs Optuna: pip install 'recurra[tune]'.

    >>> sweep("tagging", {"model.hidden": [16]}, out="new", train="a.conll", valid="b.conll", trials=9)
    Traceback (most recent call last):
    recurra.errors.ConfigError: space['model.hidden']: model.hidden has 1 choice: give at least two, or leave it out.
    """
    given = given_by(task, trust=trust).keywords({} if settings is None else settings, "settings")
    files, names = in_files({"train": train, "valid": valid, "test": test}, given)
    given = given.files(files, "{}=")
    if space is not None:
        given = Given((*given.assignments, *_from_python(space)), given.is_run)
    with named_as(names):
        return search(
            given,
            Path(out),
            trials=trials,
            minutes=minutes,
            seed=seed,
            prune=prune,
            keep=keep,
            progress=lambda: shown(progress),
        )


def _from_python(space: Mapping[str, object]) -> Iterator[Assignment]:
    if not isinstance(space, Mapping):
        raise ConfigError(f'space must be a table such as {{"model.hidden": [16, 32]}}, but is {space!r}.')
    for name, values in space.items():
        keys = tuple(str(name).split("."))
        yield Assignment((SECTION, *keys), values, Origin(f"space[{str(name)!r}]", keys=keys, source="space"))


def search(
    given: Given,
    folder: Path,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    seed: int = 1,
    prune: bool = True,
    keep: bool = False,
    progress: Callable[[], Progress] = Silent,
    told: Callable[[str], None] | None = None,
) -> Sweep:
    """The sweep that settings with a space mean, in a folder; `told` hears of each trial that is finished."""
    if trials is None and minutes is None:
        raise ConfigError("a sweep needs an end: give a number of trials (--trials 50), or a time (--minutes 60).")
    for name, number in (("--trials", trials), ("--minutes", minutes)):
        if number is not None and not 0 < number < math.inf:
            raise ConfigError(f"{name} must be above 0, but is {number}.")
    given, spaces = without_space(given)
    this = setup_of(given)
    space = space_of(spaces, this.kind.Settings)
    check_fits(given, space, this.kind.Settings)
    if not this.settings.data.files("valid"):
        raise ConfigError(
            "a sweep compares scores on validation data, but none is named: give data.valid a file, or a share of the "
            'training data such as "10%".'
        )
    optuna()  # where it is missing, that is said before a folder is made
    if is_run(folder):
        raise CheckpointError(f"{folder} is a run, not a sweep: choose another folder.")
    make_folder(folder)
    searching = _Search(this, space, folder, seed, prune=prune, keep=keep, progress=progress, told=told)
    return searching.run(trials, minutes)


def _as_text(this: Setup, space: Sequence[Varied], seed: int) -> str:
    """What a sweep searches."""
    table = "".join(f"{name} = {toml_value(values)}\n" for name, values in table_of_space(space).items())
    return f"# recurra sweep, seed {seed}\n{toml_text(this.settings)}\n[{SECTION}]\n{table}"


def _check_same(folder: Path, text: str) -> None:
    """Refuse to go on with a sweep that searches something else."""
    path = folder / SWEEP
    if not path.exists() or path.read_text("utf-8", "replace") == text:
        return
    before, now = read_toml(path), tomllib.loads(text)
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    what = ", ".join(f"[{name}]" if isinstance(now.get(name), dict) else name for name in names) or "the seed"
    raise CheckpointError(
        f"{folder} is a sweep of other settings: {what} differ{'' if len(names) > 1 else 's'} from {path}. Go on with "
        "the same settings, or choose another folder."
    )


class _Pruned(Exception):
    """A trial is worse than half of the others were at this validation."""


@final
class _Watched(Progress):
    """Another way to show progress; the journal is told of each validation, and may end the trial there."""

    def __init__(self, shown: Progress, trial: Drawn, metric: Metric) -> None:
        self._shown, self._trial, self._metric = shown, trial, metric
        self.validations = self.step_of_last = 0

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        self._shown.start(first_step, total_steps, epochs, seconds)

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        self._shown.step(step, epoch, loss, learning_rate, tokens)

    def validating(self, done: int, total: int) -> None:
        self._shown.validating(done, total)

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        self._shown.valid(step, scores, first, best)
        value = scores[first]
        self.validations, self.step_of_last = self.validations + 1, step
        self._trial.report(value if self._metric.agrees else -value, self.validations)
        if self._trial.should_prune():
            raise _Pruned

    def note(self, text: str) -> None:
        self._shown.note(text)

    def stop(self) -> None:
        self._shown.stop()


class _Search:
    """One process at work on a sweep."""

    def __init__(
        self,
        this: Setup,
        space: Sequence[Varied],
        folder: Path,
        seed: int,
        *,
        prune: bool,
        keep: bool,
        progress: Callable[[], Progress],
        told: Callable[[str], None] | None,
    ) -> None:
        self.this, self.space, self.folder, self.keep = this, space, folder, keep
        self.progress, self.told = progress, told
        self.text = _as_text(this, space, seed)
        self.journal = Journal(folder, seed, prunes=prune)

    def run(self, most: int | None, minutes: float | None) -> Sweep:
        """Trials, one after the other, until there are enough."""
        journal = self.journal
        with journal.at_work(), last_words(f"stopped; {GOES_ON}"):
            _check_same(self.folder, self.text)
            metric = None if journal.is_begun else measured(self.this, self.folder)
            with journal.alone():
                _check_same(self.folder, self.text)  # which another process may just have begun
                if not journal.is_begun:
                    write_whole(self.folder / SWEEP, self.text)
                journal.open(None if journal.is_begun else metric, self._as_given())
                self._tidy()
            until = math.inf if minutes is None else time.monotonic() + 60 * minutes
            try:
                while time.monotonic() < until:
                    with journal.alone():
                        drawn = journal.drawn(self.space, most)
                    if drawn is None:
                        break
                    self._try(*drawn)
            except KeyboardInterrupt:
                with journal.alone():
                    found = self._write()
                raise KeyboardInterrupt(f"stopped; {found.in_words()} {GOES_ON}") from None
            with journal.alone():
                return self._write()

    def _as_given(self) -> dict[str, Label]:
        """What the settings as they are give to those that vary; without those that lie outside of the space."""
        found = {}
        for varied in self.space:
            value: Any = table_of(self.this.settings)
            for key in varied.keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if varied.values.has(value):
                found[varied.name] = label_of(value)
        return found

    def _try(self, trial: Drawn, labels: dict[str, Label]) -> None:
        """One trial from its settings to its end."""
        values = {
            varied.name: varied.values.value(labels[varied.name]) for varied in self.space if varied.name in labels
        }
        place = self.folder / TRIALS / f"trial-{trial.number}"
        began = time.monotonic()
        is_first = "as_given" in trial.user_attrs
        try:
            this, idle = self._set(values)
            trial.set_user_attr("settings", {name: label_of(each) for name, each in values.items()})
            if idle:
                trial.set_user_attr("idle", idle)
            if not self._taken_over(trial, values, idle):
                metric = self.journal.metric
                watched = _Watched(self.progress(), trial, metric)
                trial.set_user_attr("folder", place.name)
                begin(this, place, watched, overwrite=True)
                value = (summary_of(place)["best"]["scores"]).get(metric.name)
                for name, known in (("steps", watched.step_of_last), ("validations", watched.validations)):
                    trial.set_user_attr(name, known)
                self._complete(trial, place, value, time.monotonic() - began)
        except KeyboardInterrupt:
            with self.journal.alone():
                if self.journal.give_up(trial.number):  # and not just finished, when its run may be the best
                    self._remove(place)
            raise
        except _Pruned:
            self._end(trial, "PRUNED", place, time.monotonic() - began)
        except (ConfigError, EngineError, TrainingError, MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not is_lack_of_memory(error):
                raise
            why = str(error) if isinstance(error, ConfigError | EngineError | TrainingError) else "out of memory"
            self._end(trial, "FAIL", place, time.monotonic() - began, why)
            if is_first:  # with the settings as they are: what is wrong is no matter of the space
                self._forget()
                raise
        gc.collect()  # the model of this trial, before the next is built

    def _set(self, values: Mapping[str, object]) -> tuple[Setup, list[str]]:
        """The settings with what was drawn, and the names of what was drawn and has no effect beside the rest of it."""
        chosen = [varied for varied in self.space if varied.name in values]
        idle: list[str] = []
        given = self.this.given
        while True:
            drawn = [varied.at(values[varied.name]) for varied in chosen if varied.name not in idle]
            try:
                return setup_of(Given((*given.assignments, *drawn), given.is_run)), idle
            except SettingError as error:
                refused = [each.name for each in chosen if each.keys == error.keys and each.name not in idle]
                if not error.is_idle or not refused:
                    raise
                idle += refused

    def _taken_over(self, trial: Drawn, values: Mapping[str, object], idle: Sequence[str]) -> bool:
        """Whether the same settings were tried before: what came of them is taken over."""
        used = {name: label_of(each) for name, each in values.items() if name not in idle}
        if self.this.settings.training.minutes is not None or "training.minutes" in values:
            return False  # which another time may come further
        for before in self.journal.trials:
            told = before.user_attrs
            if before.number == trial.number or before.state.name not in ("COMPLETE", "PRUNED") or "same_as" in told:
                continue
            known = {name: each for name, each in told.get("settings", {}).items() if name not in told.get("idle", ())}
            if known == used:
                for step, value in before.intermediate_values.items():
                    trial.report(value, step)
                trial.set_user_attr("same_as", before.number)
                state = before.state.name
                with self.journal.alone():
                    self._tell(trial, state, before.value if state == "COMPLETE" else None)
                    self._write()
                self._say(trial.number)
                return True
        return False

    def _complete(self, trial: Drawn, place: Path, value: float | None, seconds: float) -> None:
        """A trial that was trained to its end; its run is kept if it is the best."""
        if value is None or not math.isfinite(value):
            self._end(trial, "FAIL", place, seconds, f"its {self.journal.metric.name} is not a finite number")
            return
        trial.set_user_attr("seconds", round(seconds, 1))
        with self.journal.alone():
            self._tell(trial, "COMPLETE", value)
            self._tidy()
            self._write()
        self._say(trial.number)

    def _end(self, trial: Drawn, state: str, place: Path, seconds: float, why: str = "") -> None:
        """A trial that came to no score of its own."""
        trial.set_user_attr("seconds", round(seconds, 1))
        if why:
            trial.set_user_attr("why", why)
        with self.journal.alone():
            self._tell(trial, state, None)
            self._write()
        if not self.keep or state == "FAIL":
            self._remove(place)
        self._say(trial.number)

    def _tell(self, trial: Drawn, state: str, value: float | None) -> None:
        self.journal.study.tell(trial, value, getattr(optuna().trial.TrialState, state))

    def _tidy(self) -> None:
        """Let best/ be the run of the best trial, and remove what is of no more use. Whoever calls this is `alone`."""
        old = self.folder / TRIALS / "old"
        self._remove(old)
        complete = [each for each in self.journal.trials if each.state.name == "COMPLETE"]
        if complete:
            first = self.journal.study.best_trial
            number = first.user_attrs.get("same_as", first.number)
            place, best = self.folder / TRIALS / f"trial-{number}", self.folder / BEST
            is_kept = best.is_dir() and summary_of(best).get("name") == place.name
            if place.is_dir() and not is_kept:
                make_folder(old.parent)
                if best.is_dir():
                    os.replace(best, old)
                if self.keep:
                    shutil.copytree(place, old.with_name("new"), dirs_exist_ok=True)
                    place = old.with_name("new")
                os.replace(place, best)
                self._remove(old)
        if not self.keep:
            running = {each.user_attrs.get("folder") for each in self.journal.trials if each.state.name == "RUNNING"}
            for place in (self.folder / TRIALS).glob("trial-*"):
                if place.name not in running:
                    self._remove(place)

    def _forget(self) -> None:
        """Remove a sweep of which nothing came: when its settings are corrected, the folder can be used again."""
        with self.journal.alone():
            if not any(each.state.name in ("COMPLETE", "PRUNED", "RUNNING") for each in self.journal.trials):
                for name in (SWEEP, JOURNAL, ROWS, PAGE_FILE):
                    (self.folder / name).unlink(missing_ok=True)

    def _remove(self, place: Path) -> None:
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()  # where it is empty

    def _write(self) -> Sweep:
        found = swept(self.folder, self.journal, self.space)
        write(found)
        return found

    def _say(self, number: int) -> None:
        if self.told is None:
            return
        found = swept(self.folder, self.journal, self.space)
        [trial] = [each for each in found.trials if each.number == number]
        self.told(found.trial_in_words(trial))


def measured(this: Setup, folder: Path) -> Metric:
    """What the trials of a task are compared by: of a model that has not learned anything, on a few examples.

    On the way, what is wrong with the data is said, and the data are encoded for all trials.
    """
    from recurra.reading.once import tables_read_once
    from recurra.training.evaluation import outputs_to_score
    from recurra.training.preparation import HeldOut, prepared
    from recurra.training.trainer import Trainer

    with (
        last_words("stopped before the sweep began; nothing is saved."),
        tables_read_once(),
        this.given.placing(this.kind.Settings),
    ):
        task, store = prepared(this.kind, this.settings, lambda note: None)
        valid = HeldOut.of(task, task.settings.data.files("valid"))
        few = valid._replace(examples=valid.examples[:2], rows=valid.rows[:2])
        trainer = Trainer(task, store, few, folder, Silent())
        while_training = trainer.scores()
        whole = task.score(few.examples, outputs_to_score(task, trainer.predicting, few.rows, told=lambda *_: None))
    agrees = whole.higher_is_better is while_training.higher_is_better
    return Metric(whole.first, whole.higher_is_better, while_training.first, agrees)


__all__ = ["Sweep", "Trial", "search", "sweep"]
