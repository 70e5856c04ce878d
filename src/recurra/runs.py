"""From settings to a finished run folder: what `recurra train` and `recurra.train` do."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recurra.cache import cache_folder, private_folder, tidy
from recurra.config.fine_tuning import LOWER, SECTION, fine_tuning_of
from recurra.config.given import Changes, Config, Files, Given, Origin
from recurra.config.known_as import KNOWN_AS
from recurra.config.run_file import run_text
from recurra.data.frames import Rows, is_rows, named_as, write_rows
from recurra.errors import CheckpointError, ConfigError, DataError, TrainingError, TrustError
from recurra.interrupts import STATUS, last_words
from recurra.manifest import (
    MANIFEST,
    committing,
    finish_change,
    is_trained,
    locked,
    read_manifest,
    refuse_links,
    remove_run,
    verify,
    wrong_files,
)
from recurra.manifest import accept as accept_files
from recurra.named import catalogue, find
from recurra.opening import SMALL
from recurra.reading.once import tables_read_once
from recurra.scoring.scores import Scores
from recurra.settings import SettingError, about, explained, read_toml, refuse_idle, same_name, table_of, toml_text
from recurra.tasks.task import Task
from recurra.text.json_file import json_text, read_json
from recurra.toml import dotted
from recurra.training.callbacks import Callbacks
from recurra.training.launching import launch, place_of_this_process
from recurra.training.loading import EXPORT, refuse_elsewhere
from recurra.training.log import EventLine, Lines, Log, NoLog, Opening, TrainLine, ValidLine
from recurra.training.loggers import openings
from recurra.training.notebook import Notebook, is_notebook
from recurra.training.own_code import keep_sources, kept_sources
from recurra.training.permission import allowed
from recurra.training.processes import Processes, joined
from recurra.training.progress import Progress, Silent
from recurra.training.progress import progress as progress_for

if TYPE_CHECKING:
    from recurra.data.store import Encoded, Store
    from recurra.training.preparation import HeldOut
    from recurra.training.trained import Trained
    from recurra.training.trainer import Trainer

RATE, OLD_DATA = ("training", "learning_rate"), (*SECTION, "old_data")

ENDS = ("epochs", "steps", "minutes")

LIMITS = ("epochs", "steps", "minutes", "patience", "save_minutes", "threads", "device", "loggers")
"""Settings of training that may change when a run is resumed."""


class Setup(NamedTuple):
    """A task's class and its settings, and how these were given."""

    kind: type[Task[Any, Any, Any]]
    settings: Any
    given: Given = Given()


def setup(
    what: Config | None,
    *,
    given: Mapping[str, object] | None = None,
    overrides: Changes = (),
    device: str | None = None,
    start_from: str | os.PathLike[str] | None = None,
    trust: bool = False,
) -> Setup:
    """What a task's name or a config file, files given on the command line, --set, --device and --from mean.

    Without a task or a config file, the settings are those of the run that training starts from.

    >>> setup("tagging", overrides=["model.hidden=64"]).settings.model.hidden
    64
    >>> setup("tagging", overrides={"model": {"hidden": 64}}).settings.model.hidden
    64
    """
    found = given_by(what, start_from, trust=trust).files(given or {}, "--{}").changes(overrides, "overrides")
    found = starting_from(found, start_from, "--from")
    return setup_of(found if device is None else found.also(("training", "device"), device, "--device"))


def starting_from(given: Given, base: str | os.PathLike[str] | None, word: str) -> Given:
    """With the run that training starts from, where there is one."""
    return given if base is None else given.also((*SECTION, "base"), os.fspath(base), word)


def given_by(what: Config | None, base: str | os.PathLike[str] | None = None, *, trust: bool) -> Given:
    """What a task's name, a config file or a table gives; the config.toml of a run may come from somebody else.

    Without any, those of a base, the run that training starts from, but for its data and how it was fine-tuned itself.
    """
    if what is None:
        if base is None:
            raise ConfigError(
                "what is to be trained? Name a task or a config file: recurra train tagging …; or a run to start "
                "from, whose settings are used: recurra train --from RUN …"
            )
        path = Path(base) / "config.toml"
        if not path.is_file():
            raise CheckpointError(f"there is no run in {base}: a run is a folder created by `recurra train --out`.")
        found = Given.of_run(Path(base))
        allowed(found, path, trust=trust)
        data = (("data", name) for name in ("train", "valid", "test", "seed"))
        return found.without(("format",), ("version",), *data, SECTION)
    given = Given.of(what)
    if not isinstance(what, Mapping) and Path(what).name == "config.toml" and is_trained(Path(what).parent):
        allowed(given, Path(what), trust=trust)
    return given


def setup_of(given: Given) -> Setup:
    """The task and the settings that were given, by whichever way."""
    with given.placing():
        if any(each.keys[0] == "sweep" for each in given.assignments):
            raise SettingError(
                "[sweep] is the space of a sweep, whose runs `recurra sweep` trains: take the table out, or type "
                "recurra sweep CONFIG.",
                ("sweep",),
            )
        kind = task_named(given.task)
    kind = kind.fitting(given.table(kind.Settings))
    training = given.table(kind.Settings).get("training")
    if isinstance(training, Mapping) and training.keys() & {"steps", "minutes"} and "epochs" not in training:
        # A limit in steps or minutes stands alone: the usual number of epochs does not end a run before it.
        given = given.also(("training", "epochs"), None)
    settings: Any = given.settings(kind.Settings)
    if base := fine_tuning_of(settings.training).base:
        given = with_own_limits(given, kind.Settings, Path(base))
        if not is_own_rate(given, kind.Settings, Path(base)):
            given = given.also(RATE, LOWER * settings.training.learning_rate)
        settings = given.settings(kind.Settings)
    with given.placing(kind.Settings):
        refuse_idle(settings)
    return Setup(kind, settings, given)


def is_own_rate(given: Given, settings: type, base: Path) -> bool:
    """Whether the user has set the learning rate: that in the config.toml of the base was meant for the base.

    The rate of a base that was fine-tuned itself is low already.
    """
    origins = given.origins(settings)
    if (origin := origins.get(RATE)) is None:
        return False
    if origin.file is None or not is_config_of(base, origin):
        return True
    return bool(Given.of_file(origin.file).settings(settings).training.fine_tuning.base)


def with_own_limits(given: Given, settings: type, base: Path) -> Given:
    """Without the limits of the base's training, where the user has set another one."""
    origins = given.origins(settings)
    named = {keys: origins[keys] for keys in (("training", name) for name in ENDS) if keys in origins}
    if any(not is_config_of(base, origin) for origin in named.values()):
        for keys, origin in named.items():
            if is_config_of(base, origin):
                given = given.also(keys, None)
    return given


def is_config_of(base: Path, origin: Origin) -> bool:
    """Whether a setting was given by the config.toml of a run."""
    return origin.file is not None and os.path.abspath(origin.file) == os.path.abspath(base / "config.toml")


def task_named(name: object) -> type[Task[Any, Any, Any]]:
    """The class of a task."""
    if not isinstance(name, str):
        known = ", ".join(catalogue(Task))
        raise SettingError(f"task = {name!r} is not the name of a task. Known: {known}.", ("task",))
    with about("task"):
        return find(Task, name)


def setting_names(tasks: Sequence[str], name: str) -> list[str]:
    """The settings with this last name, of the first of these words that is a task or a config file."""
    for word in tasks:
        with contextlib.suppress(ConfigError, TrustError):
            given = given_by(word, trust=False)
            kind = task_named(given.task).fitting(given.table()).Settings
            if found := same_name(kind, name):
                return sorted(found, key=lambda each: not each.startswith("training."))  # what is most often meant
            meant = KNOWN_AS.get(name, "")
            return [meant] if explained(kind, meant) is not None else []
    return []


def train(
    task: Config | None = None,
    *,
    train: Files | Rows = (),
    valid: Files | Rows = (),
    test: Files | Rows = (),
    out: str | os.PathLike[str],
    settings: Mapping[str, object] | None = None,
    start_from: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    on_step: Callable[[TrainLine], object] | None = None,
    on_validation: Callable[[ValidLine], object] | None = None,
    overwrite: bool = False,
    trust: bool = False,
    processes: int = 1,
) -> Trained:
    """Train a model and return it. `task` is the name of a task, a config file or a dict of settings.

    `start_from` is a run to fine-tune: its weights are where training starts, and without a `task` its settings are
    used.

    Data are files, data frames (pandas, polars, Arrow) or dicts, one a row. `overwrite` replaces a run that is in `out`
    already, when the new training begins.

    `progress` is shown in a notebook alone, unless it is True or False. `on_step` is called with the numbers of each
    step, `on_validation` with the scores of each validation; an error of theirs ends the training.

    `settings` override those: nested dicts, {"model": {"hidden": 16}}, or names with dots. Code that you name yourself
    is trusted; `trust` is for the code of the run in `start_from`, or of a run's config.toml.

    `processes` share out the rows of each batch on this machine; they are started anew, so they show their progress on
    the terminal, and know nothing of this program but its settings and where it imports from.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n\\na\\tDET\\ndog\\tNOUN\\n")
    >>> few = {"training.steps": 30, "model": {"hidden": 16, "dropout": 0.0}, "data.cache": False}
    >>> model = train("tagging", train=folder / "train.conll", out=folder / "run", settings=few)
    >>> model.predict(["the dog"])[0].output
    'DET NOUN'
    """
    from recurra.training.trained import load

    given = given_by(task, start_from, trust=trust).keywords({} if settings is None else settings, "settings")
    files, names = in_files({"train": train, "valid": valid, "test": test}, given)
    with named_as(names):
        this = setup_of(starting_from(given.files(files, "{}="), start_from, "start_from"))
        if processes != 1:
            if on_step is not None or on_validation is not None:
                raise ConfigError(
                    f"on_step and on_validation are functions of this process, but training in {processes} processes "
                    f"has others: leave them out, and read {Path(out) / 'metrics.jsonl'}."
                )
            in_others(this, Path(out), processes, overwrite=overwrite, trust=trust, quiet=progress is not True)
        else:
            told = Callbacks(shown(progress), on_step, on_validation)
            begin(this, Path(out), told, overwrite=overwrite, trust=trust)
    return load(out, trust=True)


def in_others(this: Setup, folder: Path, processes: int, *, overwrite: bool, trust: bool, quiet: bool) -> None:
    """Train in processes that are started for that, as `recurra train --processes` does."""
    if not overwrite:
        check_is_new(folder)
    with tempfile.TemporaryDirectory(prefix="recurra-") as kept:
        settings = Path(kept) / "settings.toml"
        settings.write_text(toml_text(this.settings), "utf-8")
        arguments = ["train", str(settings), "--out", str(folder)]
        arguments += [word for word, is_on in (("--trust", trust), ("--quiet", quiet)) if is_on]
        if is_run(folder):
            with held(folder):
                remove_run(folder)
        status = launch(arguments, processes, lambda said: print(said, file=sys.stderr))
    if status == STATUS:
        raise KeyboardInterrupt
    if status:
        raise TrainingError(f"training in {processes} processes has failed; why is said on stderr.")


def shown(progress: Progress | bool | None) -> Progress:
    """The progress that is asked for; None: that of a notebook, where this is one."""
    if isinstance(progress, Progress):
        return progress
    if progress is not False and is_notebook():
        return Notebook()
    return progress_for(sys.stderr) if progress else Silent()


def in_files(data: Mapping[str, Files | Rows], given: Given) -> tuple[dict[str, object], dict[str, str]]:
    """Where data are rows, the file that holds them; and by its path what the user calls them."""
    files: dict[str, object] = dict(data)
    names: dict[str, str] = {}
    for which, source in data.items():
        if not is_rows(source):
            continue
        settings = given.table().get("data", {})
        if settings.get("format") is not None:
            raise ConfigError(f"data.format is for files, but {which}= is rows in memory: leave data.format out.")
        folder = cache_folder() / "frames" if settings.get("cache", True) else private_folder()
        path = write_rows(source, folder, f"{which}=")
        tidy(path.parent)
        files[which] = str(path)
        names.setdefault(str(path), f"{which}=")
    return files, names


def begin(
    this: Setup,
    folder: Path,
    progress: Progress,
    *,
    overwrite: bool = False,
    trust: bool = False,
) -> None:
    """A new run in a new folder, which is made only when all files were read and the model built without complaint.

    With `overwrite`, a run that is there is removed at that moment.

    Where torchrun or `recurra train --processes` has started several processes, each of them calls this, and they train
    together.

    The code that its own settings name is trusted from now on; `trust` is for that of the run it starts from.
    """
    from recurra.training.preparation import prepared, repeated, with_old_data
    from recurra.training.samples import samples_of_data

    place = place_of_this_process()
    is_writer = place is None or place.rank == 0
    if is_writer and not overwrite:
        check_is_new(folder)
    tuning = fine_tuning_of(this.settings.training)
    with joined(place) as processes, progress if is_writer else Silent() as progress:
        base = None
        if tuning.base:  # whether it may be loaded is said before anything is done
            from recurra.training.loading import load_task

            base = load_task(Path(tuning.base), trust=trust)
            say_how_it_starts(this, base, progress)
        nothing_saved = last_words("stopped before training began; nothing is saved.")
        with nothing_saved, tables_read_once(), this.given.placing(this.kind.Settings):
            kept = vocabulary_of(this, base)
            task, store = processes.after_writer(lambda: prepared(this.kind, this.settings, progress.note, kept))
            # What is wrong with a file is said before torch is imported.
            from recurra.training.trainer import Trainer
            from recurra.training.transfer import start_from

            apart = held_out(task, store, progress)
            for which, (_, rows) in apart.items():
                is_said = trained_on(task.settings.data, which)
                if not is_said and (again := repeated(rows, store)) > 0:
                    if again == len(rows) == len(store) and task.settings.data.shares is not None:
                        raise ConfigError(
                            f"data.{which} = '{share_of(task.settings.data, which)}' holds nothing out: "
                            f"{type(task).__name__} reads whole files. Read them with rows_of or Task.read, or name "
                            f"a file."
                        )
                    progress.note(
                        f"{again:,} of {len(rows):,} {which} examples ({100 * again / len(rows):.0f} %) are also "
                        "in the training data, with the same answer: scores on them do not measure generalisation"
                    )
            # Of a table, all rows are read for a few: once more after training would take long.
            samples = None if apart["valid"].examples else samples_of_data(task)
            mixed = with_old_data(task, store, base, progress.note)
            trainer = Trainer(task, mixed, apart["valid"], folder, progress, processes)
            for said in (task.initialise(trainer.model), task.first_guess(trainer.model, store)):
                if said is not None:
                    progress.note(said)
        if base is not None:  # the settings of another run were not given here
            for line in start_from(trainer.model, task, base, Path(tuning.base)).lines():
                progress.note(line)
        trainer.weights_are_given()
        with held(folder) if is_writer else contextlib.nullcontext():
            if is_writer and overwrite and is_run(folder):
                remove_run(folder)
            if is_writer:
                check_is_new(folder)
            trainer.also_saved += [task.save, partial(write_config, task.settings)]
            with logged(folder, task.settings, processes) as log, this.given.placing(this.kind.Settings):
                trainer.run(log)
            if is_writer:
                _finish(trainer, store, apart, samples)


@contextlib.contextmanager
def logged(folder: Path, settings: Any, processes: Processes, keep: int | None = None) -> Iterator[Lines]:
    """The log of a run, which one of its processes writes."""
    if not processes.is_writer:
        yield NoLog()
        return
    with Log(folder, keep, openings_of(settings)) as log:
        yield log


def openings_of(settings: Any) -> list[Opening]:
    """How the loggers of a run are opened; a user's own settings need not name any."""
    return openings(getattr(settings.training, "loggers", ()), flattened(table_of(settings)))


def flattened(table: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Settings by names with dots.

    >>> flattened({"task": "tagging", "model": {"hidden": 64}})
    {'task': 'tagging', 'model.hidden': 64}
    """
    found: dict[str, object] = {}
    for name, value in table.items():
        inner = isinstance(value, Mapping) and value
        found |= flattened(value, f"{above}{name}.") if inner else {f"{above}{name}": value}  # type: ignore[arg-type]
    return found


def held_out(task: Task[Any, Any, Any], store: Store, progress: Progress) -> dict[str, HeldOut]:
    """The validation and the test examples, which are both read now, so that a mistake shows before training."""
    from recurra.training.preparation import HeldOut

    data = task.settings.data
    test = HeldOut.of(task, data.files("test"))
    if not data.files("valid"):
        progress.note("no validation data: the weights of the last step are saved, without early stopping")
    for file in trained_on(data, "valid"):
        progress.note(f"{file} is used for both training and validation: these scores do not measure generalisation")
    valid = HeldOut.of(task, data.files("valid"))
    found = {"valid": valid, "test": test}
    for which in found:
        if (said := share_in_words(task, store, found, which)) is not None:
            progress.note(f"{which}: {said}")
        if (said := task.preceded(found[which].examples)) is not None:
            progress.note(f"{which}: {said}")
    if (said := task.noticed(valid.examples)) is not None:
        progress.note(said)
    return found


def trained_on(data: Any, which: str) -> list[str]:
    """The files of validation or test that training reads as well, and not another part of them."""
    return [file for file in data.files(which) if file in data.files("train") and not share_of(data, which)]


def share_of(data: Any, which: str) -> str:
    """The share of the training files that is held out, as it was given; "" where there are files."""
    shares, given = data.shares, getattr(data, which)
    return "" if shares is None or not shares.of_part(which) else given if isinstance(given, str) else given[0]


def share_in_words(task: Task[Any, Any, Any], store: Store, apart: Mapping[str, HeldOut], which: str) -> str | None:
    """What of the training files is held out, and how; None where there are files."""
    from recurra.data.store import Rows as Encodings

    data = task.settings.data
    if not share_of(data, which):
        return None
    rows = {name: Encodings(found.rows) for name, found in apart.items() if share_of(data, name)}
    return task.held_out(rows[which], [store, *rows.values()])


def check_is_new(folder: Path) -> None:
    if (folder / "config.toml").exists() or (folder / MANIFEST).exists():
        raise CheckpointError(
            f"{folder} already contains a run. Resume it: recurra train {folder} --resume; or choose another --out. In "
            f"Python, overwrite=True replaces it."
        )


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, whatever state it is in."""
    return any((folder / name).exists() for name in ("config.toml", MANIFEST))


def check_run(folder: Path, *, accept: bool = False) -> str:
    """Verify every file of a run by its manifest, and say what was found; a CheckpointError lists what is damaged.

    With `accept`, the files of the manifest are recorded as they are now.
    """
    if accept:
        with held(folder):
            finish_change(folder)
            accept_files(folder)
    refuse_links(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        return (
            f"{folder} has no manifest.json, because an earlier version of recurra wrote it: its files cannot be "
            f"verified. To record them as they are now: recurra check {folder} --accept"
        )
    if wrong_files(folder):
        try:
            verify(folder)  # finishes a change that was cut off
        except CheckpointError as error:
            others = [f"\n{folder / name} {what}." for name, what in wrong_files(folder)[1:]]
            raise CheckpointError(f"{error}{''.join(others)}") from error
        manifest = read_manifest(folder) or {}
    size = sum(entry.bytes for entry in manifest.values())
    what = "are recorded in" if accept else "are as written, by the SHA-256 in"
    return f"{folder}: {len(manifest)} files of {size:,} bytes {what} manifest.json"


def write_config(settings: object, folder: Path) -> None:
    """Write config.toml of a run, and trust what it names: whoever trains it has given these settings."""
    path = folder / "config.toml"
    path.write_text(run_text(settings), "utf-8")
    given = Given.of_file(path)
    kind = allowed(given, path, trust=True)
    keep_sources(given.code(kind.Settings), folder)


def resume(folder: Path, progress: Progress, *, overrides: Changes = (), trust: bool = False) -> None:
    """Go on with a run from its last checkpoint; limits may be raised by --set, or by a dict of settings."""
    from recurra.training.loading import load_task
    from recurra.training.position import position_of
    from recurra.training.preparation import prepared_again, with_old_data
    from recurra.training.trainer import Trainer

    task = load_task(folder, trust=trust)
    changes = Given().changes(overrides, "overrides")
    for keys in changes.named(type(task.settings)):
        if keys[0] != "data" and keys not in [*(("training", limit) for limit in LIMITS), OLD_DATA]:
            with changes.placing(type(task.settings)):
                raise SettingError(
                    f"{dotted(keys)} cannot be used with --resume: only limits can change "
                    f"({', '.join(LIMITS)}), and the paths of data files.",
                    keys,
                )
    as_it_was = last_words(f"stopped; the run is unchanged. Continue with: recurra train {folder} --resume")
    place = place_of_this_process()
    is_writer = place is None or place.rank == 0
    with contextlib.ExitStack() as closing:
        processes = closing.enter_context(joined(place))
        progress = closing.enter_context(progress if is_writer else Silent())
        if is_writer:
            closing.enter_context(held(folder))
        with as_it_was:
            # This needs the lock: whoever reads the folder from here on cannot get it.
            processes.said_by_writer(lambda: finish_change(folder))
            given = Given.of_run(folder).changes(overrides, "overrides")
            with given.placing(type(task.settings)):
                if overrides:
                    settings = given.settings(type(task.settings))
                    if settings.data.shares != task.settings.data.shares:
                        raise ConfigError(
                            f"--resume cannot change which examples are held out: {folder} was begun with data.valid = "
                            f"{task.settings.data.valid!r}, data.test = {task.settings.data.test!r} and data.seed = "
                            f"{task.settings.data.seed}. Begin another run."
                        )
                    task = type(task).load(settings, folder)
                before = position_of(folder)
                known = before.data if before is not None else None
                _, store = processes.after_writer(lambda: prepared_again(task, known, progress.note))
                apart = held_out(task, store, progress)
                mixed = with_old_data(task, store, base_of(task, trust=trust), lambda _: None)
                trainer = Trainer(task, mixed, apart["valid"], folder, progress, processes)
                trainer.restore()
                if overrides:  # they come into force with the first checkpoint that was reached with them
                    trainer.also_saved.append(partial(write_config, task.settings))
        at = trainer.position
        with logged(folder, task.settings, processes, at.log_bytes) as log, given.placing(type(task.settings)):
            log.write(EventLine(at.step, f"resumed from step {at.step}"))
            trainer.run(log)
        if is_writer:
            _finish(trainer, store, apart)


def say_how_it_starts(this: Setup, base: Task[Any, Any, Any], progress: Progress) -> None:
    """Which run training starts from, and with which learning rate."""
    tuning, training = fine_tuning_of(this.settings.training), this.settings.training
    said = f"starting from {tuning.base}"
    if not is_own_rate(this.given, this.kind.Settings, Path(tuning.base)):
        rate = training.learning_rate
        said += f" with a learning rate of {rate:g} instead of {rate / LOWER:g} (training.learning_rate sets it)"
    progress.note(said)
    if type(base) is not this.kind:
        progress.note(f"{tuning.base} is a run of {base.name}: its vocabulary is not kept")


def vocabulary_of(this: Setup, base: Task[Any, Any, Any] | None) -> Task[Any, Any, Any] | None:
    """The base, where the vocabularies and scales that it learned are kept."""
    is_kept = fine_tuning_of(this.settings.training).vocabulary == "kept"
    return base if is_kept and type(base) is this.kind else None


def base_of(task: Task[Any, Any, Any], *, trust: bool) -> Task[Any, Any, Any] | None:
    """The task of the run that a run was started from, where its old data are still needed."""
    from recurra.training.loading import load_task

    tuning = fine_tuning_of(task.settings.training)
    if not tuning.old_share or tuning.old_files:
        return None
    try:
        return load_task(Path(tuning.base), trust=trust)
    except CheckpointError as error:
        raise CheckpointError(
            f"{error} This run replays the training data of {tuning.base} (training.fine_tuning.old_share), so that it "
            f"cannot go on without it. Restore that run, or name the files: --set training.fine_tuning.old_data=FILE"
        ) from error


def _finish(
    trainer: Trainer, store: Store, apart: Mapping[str, HeldOut], samples: Sequence[object] | None = None
) -> None:
    """The best weights scored once more, the summary, the report and the card."""
    import torch

    from recurra.data.store import Rows as Encodings
    from recurra.reports.report import write_card, write_report
    from recurra.reports.report_pictures import pictures
    from recurra.training.samples import keep_samples
    from recurra.training.trained import load
    from recurra.version import __version__

    task, folder = trainer.task, trainer.folder
    model = load(folder, device=str(trainer.device), trust=True)
    data, at = task.settings.data, trainer.position
    found: dict[str, Scores] = {}
    parts: dict[str, dict[str, Any]] = {}
    validated: tuple[Sequence[Any], Sequence[Encoded], list[Any]] | None = None
    for which, (examples, rows) in apart.items():
        if data.files(which):
            with last_words(
                "training has finished, but the run has not been scored yet. "
                f"To score it: recurra train {folder} --resume"
            ):
                outputs = model.outputs(rows)
                found[which] = task.score(examples, outputs)
            tokens = int(task.lengths(Encodings(rows)).sum())
            parts[which] = {"path": getattr(data, which), "rows": len(rows), "tokens": tokens}
            if (said := share_in_words(task, store, apart, which)) is not None:
                parts[which] |= {"path": data.train, "share": share_of(data, which), "held_out": said}
            if which == "valid":
                validated = examples, rows, outputs
                calibrated = task.calibrated(model.model, examples, rows, outputs)
                if calibrated is not task:
                    task = calibrated
                    with committing(folder) as new:
                        task.save(new)
                    model = load(folder, device=str(trainer.device), trust=True)
    lengths = task.lengths(store)
    summary: dict[str, Any] = {
        "task": task.name,
        "name": folder.name,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "recurra_version": __version__,
        "torch_version": torch.__version__,
        "device": str(trainer.device),
        "threads": torch.get_num_threads(),
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "description": task.described(),
        "purpose": task.purpose()._asdict(),
        "data": {"train": {"path": data.train, "rows": len(store), "tokens": int(lengths.sum())}, **parts},
        "seconds": round(at.seconds, 1),
        **({"base": base} if (base := fine_tuning_of(task.settings.training).base) else {}),
        "steps": at.step,
        "epochs": at.epoch + (0 if at.batch == 0 else 1),
        "stopped": at.ended,
        "seed": task.settings.training.seed,
        "best": {
            "step": at.best_step,
            **({"parts": at.best_part_steps} if at.best_part_steps else {}),
            "scores": _finite(found["valid"].values) if "valid" in found else {},
        },
        "first_metric": next(iter(found.values())).first if found else None,
        "quick_validation": trainer.validating is not task,  # the log's scores are of another kind than these
        "training_differs": task.training_differs(),
        "engines": engines(trainer.model),
        "tables": {
            f"{which}: {title}": table._asdict()
            for which, scores in found.items()
            for title, table in scores.tables.items()
        },
    }
    if "test" in found:
        summary["test"] = {"path": parts["test"]["path"], "scores": _finite(found["test"].values)}
    if trainer.tempo.milliseconds is not None:
        summary["milliseconds_per_step"] = round(trainer.tempo.milliseconds, 3)
        summary["gpu_busy"] = trainer.tempo.busy
        with trainer.in_precision():
            ran = engines_in_words(trainer.model)
        recorded = "" if trainer.replaying is None else f"; {trainer.replaying}"
        trainer.progress.note(f"{trainer.tempo}; {ran}{recorded}")
    with committing(folder) as new:
        (new / "summary.json").write_text(json_text(summary, indent=1) + "\n", "utf-8")
        keep_samples(task, apart["valid"].examples, new, samples)
    write_report(folder)
    write_card(folder)
    if validated is not None:  # the run is finished: whoever stops the pictures has a whole report
        with last_words("stopped; the run is finished, but its report has no pictures of examples."):
            shown = pictures(model if trainer.device.type == "cpu" else load(folder, trust=True), *validated)
        if shown.html:
            write_report(folder, examples=shown.html, script=shown.script)


def engines(model: Any) -> list[str]:
    """Which engine runs each recurrent part of a model."""
    from recurra.stacks.recurrent import Recurrent

    return [
        f"{name}: {line}"
        for name, module in model.named_modules()
        if isinstance(module, Recurrent)
        for line in str(module.engine_report(slower_ones=False)).splitlines()
    ]


def engines_in_words(model: Any) -> str:
    """The same in one line.

    >>> import torch
    >>> from recurra import Recurrent
    >>> engines_in_words(torch.nn.ModuleDict({"reader": Recurrent("gru", 2, 3, engine="loop")}))
    'engines: loop (reader)'
    """
    from recurra.stacks.recurrent import Recurrent

    parts: dict[str, list[str]] = {}
    for name, module in model.named_modules():
        if isinstance(module, Recurrent):
            for layer in module.engine_report(slower_ones=False).layers:
                parts.setdefault(layer.engines_in_words(), []).append(name)
    found = (f"{engine} ({', '.join(dict.fromkeys(names))})" for engine, names in parts.items())
    return f"engines: {', '.join(found)}" if parts else "no recurrent layer"


def free_name(this: Setup) -> Path:
    """A run folder that is not there yet."""
    return next(path for n in itertools.count(1) if not (path := Path("runs") / f"{this.kind.name}-{n}").exists())


def summary_of(folder: Path) -> dict[str, Any]:
    """What is known of a run without loading its weights."""
    path = folder / "summary.json"
    if folder.is_dir():
        verify(folder, {"summary.json", "config.toml"}.__contains__)
    if path.exists():
        return _checked_summary(path)
    if not (folder / "config.toml").exists():
        refuse_elsewhere(folder)
        raise CheckpointError(f"there is no run in {folder}: a run is a folder created by `recurra train --out`.")
    return {"task": read_toml(folder / "config.toml").get("task"), "stopped": None}


def _checked_summary(path: Path) -> dict[str, Any]:
    """What a summary says, or a CheckpointError: whatever else can lie in the file is no summary."""
    try:
        found = read_json(path, most=SMALL)
    except DataError as error:
        raise CheckpointError(f"{error} Train again, or restore the file.") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is damaged: it is not a JSON object. Train again, or restore the file.")
    best, parts = found.get("best"), found.get("data", {})
    wanted: list[tuple[str, object, type | tuple[type, ...]]] = [
        *((name, found.get(name), str) for name in ("task", "description", "device", "stopped")),
        *((name, found.get(name), int) for name in ("parameters", "steps")),
        ("seconds", found.get("seconds"), (int, float)),
        ("best", best, dict),
        ("data", parts, dict),
        ("test", found.get("test", {}), dict),
        ("first_metric", found.get("first_metric"), (str, type(None))),
    ]
    if isinstance(best, dict):
        wanted.append(("best.step", best.get("step"), int))
    for which, part in (("best", best), ("test", found.get("test"))):
        if isinstance(part, dict):
            scores = part.get("scores")
            wanted.append((f"{which}.scores", scores, dict))
            for name, value in scores.items() if isinstance(scores, dict) else ():
                wanted.append((f"{which}.scores.{name}", value, (int, float)))
    for name, part in parts.items() if isinstance(parts, dict) else ():
        wanted.append((f"data.{name}", part, dict))
    for name, value, kind in wanted:
        if not isinstance(value, kind) or (isinstance(value, int) and abs(value) >= 1 << 63):
            raise CheckpointError(
                f"{path} is damaged: '{name}' is missing or of the wrong type. Train again, or restore the file."
            )
    return found


def told(folder: Path) -> str:
    """A run in a few lines."""
    summary = summary_of(folder)
    is_exported = (folder / EXPORT).is_file()
    if summary["stopped"] is None and is_exported:
        return f"{folder}: {summary['task']}, exported: it answers without torch"
    if summary["stopped"] is None:
        return f"{folder}: {summary['task']}, not finished. Continue with: recurra train {folder} --resume"
    of_parts = [f"of the {part} those of step {step:,}" for part, step in summary["best"].get("parts", {}).items()]
    lines = [
        f"{folder}: {summary['task']}: {summary['description']}",
        f"{summary['parameters']:,} parameters; {summary['steps']:,} steps in {summary['seconds']:,.0f} s on "
        f"{summary['device']} ({summary['stopped']}); the weights of step {summary['best']['step']:,} are kept"
        + "".join(f", {said}" for said in of_parts),
    ]
    if is_exported:
        lines.append("exported: it answers without torch")
    if kept := kept_sources(folder):
        named = dict.fromkeys(each.name for each in Given.of_run(folder).code(None))
        lines.append(f"needs code of your own: {', '.join(named)} (as it was in training: {', '.join(map(str, kept))})")
    for which, part in (("valid", summary["best"]), ("test", summary.get("test"))):
        if said := summary.get("data", {}).get(which, {}).get("held_out"):
            lines.append(f"{which} data: {said}")
        if part and part["scores"]:
            first = summary.get("first_metric")  # what decided is said first
            scores = dict(sorted(part["scores"].items(), key=lambda score: score[0] != first))
            lines.append(f"{which}: " + scores_in_words(scores))
    return "\n".join(lines)


def scores_in_words(scores: Mapping[str, float]) -> str:
    shown = [
        f"{name} {value:.4f}"
        for name, value in scores.items()
        if name not in ("count", "characters", "unknown", "seconds")
    ]
    return ", ".join(shown)


def rehearsed(this: Setup, progress: Progress, *, trust: bool = False) -> str:
    """A dry run in words: the data, the model, its parameters, its batches and the memory of the largest."""
    from recurra.training.loading import load_task
    from recurra.training.preparation import prepared
    from recurra.training.rehearsal import rehearsal

    start = fine_tuning_of(this.settings.training).base
    base = load_task(Path(start), trust=trust) if start else None
    with this.given.placing(this.kind.Settings):
        task, store = prepared(this.kind, this.settings, progress.note, vocabulary_of(this, base))
        return rehearsal(task, store, progress.note)


class Spread(NamedTuple):
    """Scores of several seeds."""

    seeds: int
    mean: dict[str, float]
    deviation: dict[str, float]

    def __str__(self) -> str:
        rows = [f"{name:20} {mean:.4f} ± {self.deviation[name]:.4f}" for name, mean in self.mean.items()]
        return f"{self.seeds} seeds: mean ± standard deviation\n" + "\n".join(rows)


def several(
    this: Setup,
    folder: Path,
    seeds: int,
    progress: Progress,
    *,
    trust: bool = False,
) -> Spread:
    """The same run with several seeds, each in a folder of its own; mean and standard deviation of their scores."""
    import dataclasses

    first = this.settings.training.seed
    found: list[dict[str, float]] = []
    for seed in range(first, first + seeds):
        training = dataclasses.replace(this.settings.training, seed=seed)
        part = folder / f"seed-{seed}"
        if not (part / "summary.json").exists():
            one = this._replace(settings=dataclasses.replace(this.settings, training=training))
            if is_run(part):
                resume(part, progress, trust=trust)
            else:
                begin(one, part, progress, trust=trust)
        summary = summary_of(part)
        found.append(summary.get("test", summary["best"])["scores"])
    names = [name for name in found[0] if name != "count" and all(name in scores for scores in found)]
    columns = {name: [scores[name] for scores in found] for name in names}
    spread = {name: statistics.stdev(values) if seeds > 1 else 0.0 for name, values in columns.items()}
    return Spread(seeds, {name: statistics.fmean(values) for name, values in columns.items()}, spread)


def held(folder: Path) -> contextlib.AbstractContextManager[None]:
    """The run folder, for this process alone."""
    return locked(folder, "another process is training in {}. Wait for it to finish, or choose another --out.")


def _finite(scores: Mapping[str, float]) -> dict[str, float]:
    """What a summary keeps: how long scoring took is not a score, and JSON has no NaN."""
    return {name: value for name, value in scores.items() if math.isfinite(value) and name != "seconds"}
