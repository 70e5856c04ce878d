"""The journal of a sweep: a file of Optuna's that several processes and machines share, and who of them is at work.

Each process holds the lock of a file of its own in workers/ while it runs, and touches the file every few seconds. A
trial whose process is gone (its lock is free, or on another machine its file grew old) is marked as failed, and its
settings are queued to be tried again, once. Times are those of the file system that holds the sweep, so the clocks of
machines need not agree.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import secrets
import socket
import statistics
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

from recurra.errors import CheckpointError, ConfigError
from recurra.sweeping.space import Choices, Label, Varied

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

JOURNAL, WORKERS, ASKING = "journal.jsonl", "workers", "asking"

TOUCH_SECONDS, DEAD_SECONDS = 10.0, 120.0
"""So often a process touches its file, and so old it is on another machine when the process is taken for gone."""

ATTEMPTS = 2
"""So often settings are tried whose process is killed each time: they may be what kills it."""

STARTUP = 4
"""Trials that are finished before any is pruned."""

FIRST_PRUNED, SHARE_PRUNED = 2, 0.2
"""The first validation at which a trial can be pruned, and the share of those of a complete trial: the later counts."""


def optuna() -> Any:
    """Optuna, which says nothing but warnings of its own."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigError(
            f"recurra sweep needs Optuna, and {error.name} is not installed: pip install 'recurra[tune]'."
        ) from error
    return optuna


class Metric(NamedTuple):
    """What is measured: the first score of the task, and that of its quicker validation during training."""

    name: str
    higher_is_better: bool
    while_training: str
    agrees: bool  # whether both are better in the same direction

    def better(self, value: float, other: float | None) -> bool:
        """Whether one score is better than another, or than none."""
        return other is None or (value > other if self.higher_is_better else value < other)


@final
class Journal:
    """A study in a folder, as one process of perhaps several sees it."""

    def __init__(self, folder: Path, seed: int, *, prunes: bool) -> None:
        self._optuna = optuna()
        self.folder, self.seed = folder, seed
        self.me = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}".replace("/", "-")
        storages = self._optuna.storages
        try:
            (folder / WORKERS).mkdir(parents=True, exist_ok=True)
            # Not the lock that Optuna would choose: it is a symbolic link, for which Windows wants a privilege.
            lock = storages.journal.JournalFileOpenLock(str(folder / JOURNAL))
            self._asking = storages.journal.JournalFileOpenLock(str(folder / ASKING))
            backend = storages.journal.JournalFileBackend(str(folder / JOURNAL), lock)
            lock.acquire()
            try:
                _end_last_line(folder / JOURNAL)
            finally:
                lock.release()
        except OSError as error:
            raise CheckpointError(f"the sweep {folder} cannot be written: {error.strerror or error}.") from error
        try:
            self._storage = storages.JournalStorage(backend)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{folder / JOURNAL} is no journal of a sweep ({error}). Restore it.") from error
        self._prunes = prunes

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other process of the sweep draws a trial, removes one or moves a run."""
        self._asking.acquire()
        try:
            yield
        finally:
            self._asking.release()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Inside, other processes see that this one is at work."""
        path, over = self.folder / WORKERS / self.me, threading.Event()

        def touch() -> None:
            while not over.wait(TOUCH_SECONDS):
                with contextlib.suppress(OSError):
                    os.utime(path)

        with path.open("w") as file:
            _lock(file.fileno())
            threading.Thread(target=touch, name="telling that a sweep goes on", daemon=True).start()
            try:
                yield
            finally:
                over.set()
                if sys.platform == "win32":  # which removes no file that is open
                    file.close()
                path.unlink(missing_ok=True)

    def open(self, metric: Metric | None, first: Mapping[str, Label]) -> None:
        """Go on with the study of this folder, or begin one with a metric, whose first trial has these values.

        Whoever calls this is `alone`.
        """
        create, name = self._optuna.create_study, "sweep"
        before = self._optuna.logging.get_verbosity()
        self._optuna.logging.set_verbosity(max(before, self._optuna.logging.WARNING))
        if metric is not None:
            direction = "maximize" if metric.higher_is_better else "minimize"
            self.study: Study = create(storage=self._storage, study_name=name, direction=direction)
            self.study.set_user_attr("metric", metric._asdict())
            self._queue(first, as_given=True)
        else:
            self.study = self._optuna.load_study(storage=self._storage, study_name=name)
        self._optuna.logging.set_verbosity(before)

    @property
    def is_begun(self) -> bool:
        """Whether there is a study in the folder."""
        return bool(self._storage.get_all_studies())

    @property
    def metric(self) -> Metric:
        """What the trials are compared by."""
        return Metric(**self.study.user_attrs["metric"])

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials so far, of all processes."""
        return self.study.get_trials(deepcopy=False)

    def drawn(self, space: Sequence[Varied], most: int | None) -> tuple[Trial, dict[str, Label]] | None:
        """A new trial with what is drawn for it; None where there are as many as are wanted. Whoever calls is `alone`.

        What is drawn hangs on the seed, on how many trials there were before, and on what came of them: a sweep of one
        process that was killed and goes on draws what it would have drawn.
        """
        self.reap()
        counted = [each for each in self.trials if counts(each)]
        if most is not None and len(counted) >= most:
            return None
        number = hashlib.sha256(f"{self.seed} {len(counted)}".encode()).digest()[:4]
        self.study.sampler = self._optuna.samplers.TPESampler(seed=int.from_bytes(number, "big"))
        self.study.pruner = self._pruner(counted)
        trial = self.study.ask()
        queued = trial.user_attrs.get("queued")
        chosen = [varied for varied in space if queued is None or varied.name in queued]
        labels = {varied.name: _suggested(trial, varied) for varied in chosen}
        trial.set_user_attr("worker", self.me)  # at last: of what was cut off before, not all is drawn
        return trial, labels

    def _pruner(self, trials: Sequence[FrozenTrial]) -> BasePruner:
        """What prunes the next trial: not before a fifth of the validations that complete trials have had."""
        if not self._prunes:
            return self._optuna.pruners.NopPruner()
        counts = [len(each.intermediate_values) for each in trials if each.state.name == "COMPLETE"]
        first = max(FIRST_PRUNED, math.ceil(SHARE_PRUNED * statistics.median(counts or [0])))
        return self._optuna.pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=first)

    def reap(self) -> list[int]:
        """Give up the trials whose process is gone, and queue their settings again. Whoever calls this is `alone`."""
        running = [each for each in self.trials if each.state.name == "RUNNING"]
        gone = [each for each in running if not self._is_at_work(each.user_attrs.get("worker"))]
        for each in gone:
            self.give_up(each.number)
        return [each.number for each in gone]

    def give_up(self, number: int) -> bool:
        """Mark a trial as failed that was not brought to an end, and queue its settings; False where it was."""
        [trial] = [each for each in self.trials if each.number == number]
        if trial.state.name != "RUNNING":
            return False
        self.study.tell(number, state=self._optuna.trial.TrialState.FAIL)
        attempt = int(trial.user_attrs.get("attempt", 1))
        labels = trial.params if "worker" in trial.user_attrs else trial.system_attrs.get("fixed_params")
        if attempt >= ATTEMPTS or labels is None:
            return True
        kept = {name: value for name, value in trial.user_attrs.items() if name == "as_given"}
        self._queue(labels, **kept, attempt=attempt + 1, again=number)
        return True

    def _queue(self, labels: Mapping[str, Label], **told: object) -> None:
        """Let a later trial have these values, and nothing drawn."""
        self.study.enqueue_trial(dict(labels), user_attrs={**told, "queued": sorted(labels)})

    def _is_at_work(self, worker: object) -> bool:
        """Whether a process still runs."""
        if not isinstance(worker, str):  # it was cut off when it had just drawn the trial
            return False
        if worker == self.me:
            return True
        path = self.folder / WORKERS / worker
        try:
            if worker.rpartition("-")[0].rpartition("-")[0] == socket.gethostname():
                with path.open("r") as file:
                    if (is_free := _lock(file.fileno())) is not None:
                        return not is_free
            mine = self.folder / WORKERS / self.me
            os.utime(mine)
            return mine.stat().st_mtime - path.stat().st_mtime < DEAD_SECONDS
        except OSError:
            return False


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial is one of those that were asked for: not one that waits, nor one whose process was cut off."""
    state = trial.state.name
    return state in ("COMPLETE", "PRUNED", "RUNNING") or (state == "FAIL" and "why" in trial.user_attrs)


def importances(study: Study) -> dict[str, float]:
    """How much each setting tells good trials from all, as shares of 1: PED-ANOVA (Watanabe et al. 2023).

    Of the best trials and of all, the density of a setting's values is estimated; the importance is the Pearson
    divergence of the two. The best are a tenth, but at least five trials and at most half of them.
    """
    found = optuna().importance
    complete = [each for each in study.get_trials(deepcopy=False) if each.state.name == "COMPLETE"]
    finite = [each for each in complete if each.value is not None and math.isfinite(each.value)]
    if len(finite) < 2 * STARTUP:
        return {}
    import warnings

    evaluator = found.PedAnovaImportanceEvaluator(target_quantile=min(0.5, max(0.1, 5 / len(finite))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are few trials
        return dict(found.get_param_importances(study, evaluator=evaluator))


def _suggested(trial: Trial, varied: Varied) -> Label:
    """The value that is drawn for a setting, or that was queued for it."""
    values = varied.values
    if isinstance(values, Choices):
        label: Any = trial.suggest_categorical(varied.name, values.labels)
        return label
    if values.whole:
        low, high, step = int(values.low), int(values.high), int(values.step or 1)
        return trial.suggest_int(varied.name, low, high, step=step, log=values.log)
    return trial.suggest_float(varied.name, values.low, values.high, step=values.step, log=values.log)


def _lock(file: int) -> bool | None:
    """Take the lock of a file; False where another process holds it, None where the system has no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _end_last_line(path: Path) -> None:
    """Cut off half a line that a process left which was killed while it wrote: the next one would be appended to it."""
    with path.open("rb+") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
