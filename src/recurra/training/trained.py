"""A trained model: loaded from a run folder, it predicts and scores."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from recurra.analysis.backtests import Backtest
from recurra.analysis.exposure import Exposure
from recurra.config.given import Changes, Given
from recurra.data.store import Encoded
from recurra.errors import CheckpointError, ConfigError, DataError, is_lack_of_memory
from recurra.generation.generated import Manner, TextSource
from recurra.manifest import MANIFEST, committing, notice_unverified, verify
from recurra.models.saved import put_weights, read_tensors
from recurra.models.together import Together
from recurra.named import fits, with_place
from recurra.reading.asked import read_by
from recurra.reading.tables import header_in_words
from recurra.scoring.scores import Scores
from recurra.sequences.stream import Stream
from recurra.settings import SettingError, field_type, refuse_idle
from recurra.tasks.task import Prediction, Task
from recurra.toml import dotted
from recurra.training.device import usable_device
from recurra.training.evaluation import TOKENS, combined_outputs, outputs_of, outputs_to_score
from recurra.training.permission import allowed
from recurra.views.table import Table

MODEL = "model.safetensors"

NOT_FOR_LOADING = (MODEL, "last/checkpoint.safetensors", "metrics.jsonl", "report.html", "card.md")
"""Files of a run that are verified by whoever reads them, or are read by people alone."""

AHEAD = 4096
"""Lines, at most, that are read before they are answered."""


SENTENCES_AHEAD = 1024
"""Sentences, at most, that are found in raw text before they are answered."""


class Trained:
    """A trained model: predict, evaluate, explain and save.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"training.steps": 20, "model.hidden": 8, "data.cache": False, "data.min_count": 1}
    >>> model = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / "run", settings=few)
    >>> [answer] = model.predict(["the cat"], detail=True)
    >>> answer.detail["tokens"], answer.detail["tags"]
    (['the', 'cat'], ['DET', 'NOUN'])
    """

    def __init__(
        self,
        task: Task[Any, Any, Any],
        model: nn.Module,
        folder: Path,
        *,
        others: Sequence[Path] = (),
        quick: nn.Module | None = None,
    ) -> None:
        self.task = task
        self.model = model.eval()
        self.folder = folder
        self.others = tuple(others)  # runs that answer together with that of the folder
        self._quick = _quick(task, self.model) if quick is None else quick

    def __repr__(self) -> str:
        where = ", ".join(map(str, (self.folder, *self.others)))
        return f"<Trained {self.task.name} in {where}: {self.task.described()}>"

    def predict(
        self,
        inputs: Sequence[str | Sequence[Any] | Mapping[str, Any] | NDArray[Any]] | NDArray[Any],
        *,
        detail: bool = False,
        batch_tokens: int = TOKENS,
        search: str | None = None,
        width: int | None = None,
        best: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        length_penalty: float | None = None,
        forced: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> list[Prediction]:
        """One answer per input, in order. An input is a text, a list of words, or an array of numbers; of a series
        also a dict with its times and covariates.

        `search` and those after it replace settings of [decoding] for this call, if the model has them: `temperature`,
        `top_k`, `top_p` and `seed` are for search = "sampling", `forced` lists tokens that every answer must contain.
        For all other settings there is `with_settings`.
        """
        if isinstance(inputs, str) or not isinstance(inputs, Iterable):
            raise DataError("predict needs a list of inputs: predict([text]).")
        given: list[Any] = [each.tolist() if isinstance(each, np.ndarray) else each for each in inputs]
        for text in given:
            if not isinstance(text, str | list | tuple | dict):
                raise DataError(f"an input must be a text or a list, but is {text!r:.60}.")
        asked = self.searching(
            search=search,
            width=width,
            best=best,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            length_penalty=length_penalty,
            forced=forced,
            seed=seed,
        )
        examples = list(asked.task.questions(None, given))
        return asked.answers(examples, detail=detail, batch_tokens=batch_tokens)

    def predict_file(
        self,
        file: str | Path | None,
        lines: Iterable[str],
        *,
        detail: bool = False,
        has_arrived: Callable[[], bool] = lambda: True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Prediction]:
        """Answers to the examples of a file or to lines, in order, computed in batches.

        `say` is told what else was read with them.

        `has_arrived` says whether the next line is there already: before one has to be waited for, all that came
        before it are answered.
        """
        waiting: list[Any] = []
        for example in self.task.questions(file, lines):
            waiting.append(example)
            if len(waiting) >= AHEAD or not has_arrived():
                self._say_preceded(waiting, say)
                yield from self.answers(waiting, detail=detail)
                waiting = []
        self._say_preceded(waiting, say)
        yield from self.answers(waiting, detail=detail)

    def _say_preceded(self, examples: Sequence[Any], say: Callable[[str], None]) -> None:
        if (said := self.task.preceded(examples)) is not None:
            say(said)

    def predict_raw(self, pieces: Iterable[str], *, detail: bool = False) -> Iterator[Prediction]:
        """Answers to the sentences of raw text, which arrives in pieces; the model finds them itself.

        Each says in `detail` where its words stand: "start", "end" and "offsets", in code points of the text.
        """
        model = self._quick.members[0] if isinstance(self._quick, Together) else self._quick
        waiting: list[Any] = []
        for example in self.task.cut(model, pieces):
            waiting.append(example)
            if len(waiting) >= SENTENCES_AHEAD:
                yield from self.answers(waiting, detail=detail)
                waiting = []
        yield from self.answers(waiting, detail=detail)

    def header_in(self, file: str | Path) -> str | None:
        """What is said where the first line of a file is taken for a header of other names than training's; or None."""
        by = read_by(file, self.task.settings.data)
        return None if by is None else header_in_words(file, by, also_known=False)

    def answers(self, examples: Sequence[Any], *, detail: bool = False, batch_tokens: int = TOKENS) -> list[Prediction]:
        """Predictions for examples that are read already."""
        if isinstance(self._quick, Together):
            outputs = combined_outputs(self.task, self._quick, examples, tokens=batch_tokens)
        else:
            rows = list(self.task.encode_all(examples))
            outputs = outputs_of(self.task, self._quick, rows, tokens=batch_tokens, detail=detail)
        return [self._answer(example, output) for example, output in zip(examples, outputs, strict=True)]

    def _answer(self, example: Any, output: Any) -> Prediction:
        """The task's answer; its detail names what the model has never seen of the input."""
        answer, unknown = self.task.answer(example, output), self.task.not_in_vocabulary(example)
        return answer._replace(detail={**answer.detail, "not_in_vocabulary": unknown}) if unknown else answer

    def evaluate(
        self, files: str | Path | Sequence[str | Path], *, say: Callable[[str], None] = lambda _: None
    ) -> Scores:
        """Scores on files with answers; `say` is told what else was read with them."""
        began = time.monotonic()
        examples, outputs = self.to_score([files] if isinstance(files, str | Path) else files)
        self._say_preceded(examples, say)
        scores = self.task.score(examples, outputs)
        return scores._replace(values={**scores.values, "seconds": time.monotonic() - began})

    def free_running(self, files: str | Path | Sequence[str | Path]) -> Exposure:
        """What it costs the model to read its own outputs in place of the right ones, on files with answers."""
        if isinstance(self._quick, Together):
            raise ConfigError("free running is not available for an ensemble of runs: name one of them.")
        given = [files] if isinstance(files, str | Path) else files
        rows = list(self.task.encode_all(self.task.read(given)))
        return self.task.free_running(self._quick, rows, device=str(next(self._quick.parameters()).device))

    def backtest(
        self,
        files: str | Path | Sequence[str | Path],
        *,
        windows: int = 1,
        step: int = 1,
        back: Sequence[int] | None = None,
    ) -> Backtest:
        """Forecasts of the end of each series from several origins, each from the values before it, and their scores.

        The last window ends with the series, the one before `step` steps earlier; `back` names other origins, as the
        number of steps from each to the end.
        """
        if isinstance(self._quick, Together):
            raise ConfigError("a backtest is not available for an ensemble of runs: name one of them.")
        given = [files] if isinstance(files, str | Path) else files
        return self.task.rolling(self._quick, given, windows=windows, step=step, back=back)

    def stream(self, state: bytes | None = None) -> Stream:
        """What reads a series row by row and forecasts after each; `state` is what `Stream.state` gave.

        The run is the same as that of the state; `Stream.read` says what a row may be.
        """
        if isinstance(self._quick, Together):
            raise ConfigError("a stream is not available for an ensemble of runs: name one of them.")
        return self.task.stream(self._quick, state)

    def anomalies(self, files: str | Path | Sequence[str | Path]) -> Table:
        """Each observed value of series, and how improbable it was given those before it."""
        if isinstance(self._quick, Together):
            raise ConfigError("anomalies are not available for an ensemble of runs: name one of them.")
        return self.task.anomalies(self._quick, [files] if isinstance(files, str | Path) else files)

    def origins(self, files: str | Path | Sequence[str | Path], *, windows: int, step: int) -> list[int]:
        """How many steps before the end of each series the windows of a backtest begin, the earliest first."""
        return self.task.origins_back([files] if isinstance(files, str | Path) else files, windows=windows, step=step)

    def to_score(self, files: Sequence[str | Path]) -> tuple[list[Any], list[Any]]:
        """The examples of files with answers, and the model's outputs for them."""
        examples = list(self.task.read(files))
        if isinstance(self._quick, Together):
            return examples, combined_outputs(self.task, self._quick, examples, scoring=True)
        return examples, self.outputs(list(self.task.encode_all(examples)))

    def outputs(self, rows: Sequence[Encoded]) -> list[Any]:
        """The model's outputs for encoded examples with answers, as Task.score takes them."""
        return outputs_to_score(self.task, self._quick, rows)

    def with_settings(self, changes: Changes) -> Trained:
        """The same model with other settings of evaluation and decoding.

        `changes` are a dict, {"decoding": {"best": 4}} or {"decoding.best": 4}, or strings as for --set:
        ["evaluation.manner=windowed", "decoding.horizon=24"].
        """
        return self.changed(Given().changes(changes, "changes"))

    def changed(self, given: Given) -> Trained:
        """The same model with what was given of evaluation and decoding, by whichever way."""
        for keys, _, origin, _ in given.assignments:
            if keys[0] not in ("evaluation", "decoding"):
                words = "" if origin is None else origin.words
                raise ConfigError(
                    f"the settings of a trained model cannot be changed, except evaluation and decoding: remove "
                    f"{words}."
                )
        if not given.assignments:
            return self
        task = self._changed_task(self.task, given, self.folder)
        if not isinstance(self.model, Together) or not isinstance(self._quick, Together):
            return Trained(task, self.model, self.folder, others=self.others, quick=self._quick)
        folders = zip(self.model.tasks[1:], self.others, strict=True)
        tasks = [task, *(self._changed_task(other, given, folder) for other, folder in folders)]
        model, quick = (Together(tasks, list(each.members)) for each in (self.model, self._quick))
        return Trained(task, model, self.folder, others=self.others, quick=quick)

    def preceded_by(self, file: str | Path) -> Trained:
        """The same model, which reads the steps of a file before those of the series that go on with it."""
        task = self.task.preceded_by(file)
        if not isinstance(self.model, Together) or not isinstance(self._quick, Together):
            return Trained(task, self.model, self.folder, others=self.others, quick=self._quick)
        tasks = [task, *(other.preceded_by(file) for other in self.model.tasks[1:])]
        model, quick = (Together(tasks, list(each.members)) for each in (self.model, self._quick))
        return Trained(task, model, self.folder, others=self.others, quick=quick)

    def _changed_task(self, task: Task[Any, Any, Any], given: Given, folder: Path) -> Task[Any, Any, Any]:
        """A task with what was given over its settings."""
        settings = task.settings
        changed = given.over(Given.of_settings(settings)).settings(type(settings))
        with given.placing(type(settings)):
            refuse_idle(changed, only=given.named(type(settings)))
            task = task.with_settings(changed, folder)
            if any(one.keys[0] == "evaluation" for one in given.assignments):  # else it need not be scored
                task.check()
        return task

    def searching(
        self,
        *,
        search: str | None = None,
        width: int | None = None,
        best: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        length_penalty: float | None = None,
        forced: Sequence[str] | None = None,
        seed: int | None = None,
        changes: Changes = (),
    ) -> Trained:
        """The same model, with these of [decoding] where they are given, over `changes` as for `with_settings`."""
        given, decoding = Given().changes(changes, "changes"), self.task.decoding
        known = {field.name for field in dataclasses.fields(decoding)} if decoding is not None else set()
        if self.task.answer_kind() == "likelihood":  # a text is read, and [decoding] is for those that are written
            known = set()
        drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        tokens = [forced] if isinstance(forced, str) else None if forced is None else list(forced)
        asked = {"search": search, "width": width, "best": best, "length_penalty": length_penalty, "forced": tokens}
        for name, value in {**asked, **drawn}.items():
            if value is None:
                continue
            if name not in known:
                what = "an option of search" if name in asked else "for answers that are drawn"
                raise ConfigError(
                    f"{name} is {what}, but {self.task.name} does not use a search: leave it out."
                    if "search" not in known
                    else f"{name} is not a setting of [decoding] here: leave it out."
                )
            given = given.also(("decoding", name), value, word=f"{name} = {value}")
        for name, value in {"width": width, **drawn}.items() if "search" in known else ():
            if value is None:
                continue
            kind, method = type(self.task.settings), "sampling" if name in drawn else "beam"
            wanted = given.table(kind)["decoding"].get("search", decoding.search)
            if wanted != method and fits(wanted, field_type(kind, ("decoding", "search"))):
                where = "beam search" if method == "beam" else method
                raise ConfigError(
                    f"{name} = {value} has an effect only in {where}, but the search is '{wanted}': set search = "
                    f"'{method}', or leave {name} out."
                )
        return self.changed(given)

    def check_used(self, changes: Changes, *, scoring: bool) -> None:
        """Refuse what has no effect where answers are scored, or where they are only given."""
        given = Given().changes(changes, "changes")
        for keys in given.named(type(self.task.settings)):
            if scoring and keys[0] == "decoding" and keys[1] in self.task.unused_in_scores:
                why = "no score depends on it. Leave it out."
            elif not scoring and keys[0] == "evaluation":
                why = "answers are not scored here. Leave it out, or use recurra evaluate."
            else:
                continue
            with given.placing(type(self.task.settings)):
                raise SettingError(f"{dotted(keys)} has no effect: {why}", keys)

    def writer(self, manner: Manner) -> TextSource:
        """What writes texts with this model, in some manner; see `recurra.generate`."""
        found = self.task.writer(self.model, manner)
        if found is None:
            raise ConfigError(
                f"the run {self.folder} cannot generate text: it is a {self.task.name} model, not a language model. "
                f"Use `recurra predict` instead."
            )
        return found

    def save(self, folder: str | Path) -> Path:
        """Save everything that prediction needs to another folder."""
        if self.others:
            raise CheckpointError(
                "an ensemble of runs cannot be saved as one run: copy the run folders and load them together."
            )
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise CheckpointError(f"{target} already exists and is not empty. Choose another folder.")
        try:
            target.mkdir(parents=True, exist_ok=True)
            with committing(target) as new:
                self.task.save(new)
                for name in ("config.toml", MODEL, "summary.json", "samples.json", "card.md", "report.html"):
                    if (self.folder / name).exists():
                        shutil.copy2(self.folder / name, new / name)
        except OSError as error:
            raise CheckpointError(f"the model cannot be saved to {target}: {error.strerror}.") from error
        return target


def load(
    folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, device: str = "cpu", trust: bool = False
) -> Trained:
    """Load the best model of a run; several runs, as a list or as "a,b,c", form an ensemble.

    A run that names code from outside recurra is refused, unless you trust it (`trust`), did so before or trained it.

    >>> import recurra, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.conll").write_text("the\\tDET\\ncat\\tNOUN\\n")
    >>> few = {"training.steps": 20, "model.hidden": 8, "data.cache": False, "data.min_count": 1}
    >>> _ = recurra.train("tagging", train=str(folder / "train.conll"), out=folder / "run", settings=few)
    >>> load(folder / "run").predict(["the cat"])[0].output
    'DET NOUN'
    """
    paths = folders(folder)
    task = load_task(paths[0], trust=trust)
    others = [load_task(other, trust=trust) for other in paths[1:]]
    for other, path in zip(others, paths[1:], strict=True):
        check_same(task, paths[0], other, path)
    tasks = [task, *others]
    models = [weighted(each, path, device) for each, path in zip(tasks, paths, strict=True)]
    if len(models) == 1 or not task.combines:
        return Trained(task, models[0] if len(models) == 1 else task.together(models), paths[0], others=paths[1:])
    alike = [_asked_alike(other, task, path) for other, path in zip(others, paths[1:], strict=True)]
    return Trained(task, Together([task, *alike], models), paths[0], others=paths[1:])


def _asked_alike(task: Task[Any, Any, Any], first: Task[Any, Any, Any], folder: Path) -> Task[Any, Any, Any]:
    """A task that answers and is scored by the settings of the first one's [decoding] and [evaluation]."""
    names = [field.name for field in dataclasses.fields(task.settings) if field.name in ("decoding", "evaluation")]
    changed = {name: vars(first.settings)[name] for name in names}
    return task.with_settings(dataclasses.replace(task.settings, **changed), folder) if changed else task


def _quick(task: Task[Any, Any, Any], model: nn.Module) -> nn.Module:
    """A model, or each of several, as it answers fastest."""
    if isinstance(model, Together):
        return Together(model.tasks, [each.for_prediction(member) for each, member in model.pairs])
    return task.for_prediction(model)


def folders(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The run folders that are meant: one, a list of them, or several with commas between.

    >>> [str(path) for path in folders("runs/a,runs/b")]
    ['runs/a', 'runs/b']
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        found = [Path(each) for each in given]
    elif isinstance(given, str) and "," in given and not Path(given).exists():
        found = [Path(each.strip()) for each in given.split(",") if each.strip()]
    else:
        found = [Path(given)]
    if not found:
        raise CheckpointError("there is no run to load: name a folder created by `recurra train --out`.")
    return found


def check_same(one: Task[Any, Any, Any], path: Path, other: Task[Any, Any, Any], other_path: Path) -> None:
    """Refuse to let models answer together that were made for different tasks or read other tokens."""
    if one.name != other.name:
        raise CheckpointError(
            f"{path} is a run of {one.name}, {other_path} of {other.name}: they cannot form an ensemble."
        )
    if one.combines:
        if one.units() != other.units():
            raise CheckpointError(
                f"{path} and {other_path} do not answer in the same classes, tokens or units: train the runs of an "
                f"ensemble on the same files with the same [data]."
            )
        return
    for file in files_of_vocabulary(path):
        twin = other_path / file.name
        if not twin.is_file() or twin.read_bytes() != file.read_bytes():
            raise CheckpointError(
                f"{path} and {other_path} differ in {file.name}, so their vocabularies differ: train the runs of "
                f"an ensemble on the same files with the same [data]."
            )


def files_of_vocabulary(folder: Path) -> list[Path]:
    """The files in which a task keeps what it learned of its data: what its model means by a token or a number."""
    return sorted(file for file in folder.glob("*.json") if file.name not in ("summary.json", "samples.json", MANIFEST))


def weighted(task: Task[Any, Any, Any], path: Path, device: str) -> nn.Module:
    """The network of a run with its weights."""
    where = usable_device(device, f"the device '{device}'")
    verify(path, MODEL.__eq__)
    with whole(path, type(task)):
        model = task.build()
    tensors, _ = read_tensors(path / MODEL)
    if any(tensor.is_floating_point() and tensor.element_size() == 8 for tensor in tensors.values()):
        model = model.double()
    put_weights(model, tensors, path / MODEL)
    return model.to(where).eval()


def load_task(folder: Path, *, trust: bool = False) -> Task[Any, Any, Any]:
    """The task of a run folder, without its weights. Whoever loads a run comes through here."""
    if (folder / MANIFEST).exists():
        verify(folder, lambda name: name not in NOT_FOR_LOADING)
    if not (folder / "config.toml").is_file():
        what = "there is no folder" if not folder.exists() else "there is no config.toml in"
        runs = sorted(str(path.parent) for path in folder.glob("seed-*/config.toml"))
        seeds = (
            f" {folder} contains one run per seed: name one of them, or all as an ensemble: {','.join(runs)}."
            if runs
            else ""
        )
        one = " This command takes one run, not several." if "," in str(folder) and not folder.exists() else ""
        raise CheckpointError(f"{what} {folder}: a run is a folder created by `recurra train --out`.{seeds}{one}")
    given = Given.of_run(folder)
    notice_unverified(folder)
    kind = allowed(given, folder / "config.toml", trust=trust)
    settings: Any = given.settings(kind.Settings)
    if not settings.data.files("train"):  # by whose ending later files are read
        raise CheckpointError(f"{folder / 'config.toml'} names no training data (data.train). Restore it from a copy.")
    with whole(folder, kind):
        return kind.load(settings, folder)


@contextlib.contextmanager
def whole(folder: Path, kind: type) -> Iterator[None]:
    """Inside, files that do not fit together may fail in any way; so may a user's code, which keeps its traceback."""
    try:
        yield
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        if not kind.__module__.startswith("recurra.") or is_lack_of_memory(error):
            raise
        raise CheckpointError(
            f"the files of {folder} do not fit together ({with_place(error)}). Restore the run from a copy."
        ) from error
