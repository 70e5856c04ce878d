"""A trained model: loaded from a run folder, it predicts and scores."""

from __future__ import annotations

import copy
import dataclasses
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from recurra.analysis.backtests import Backtest
from recurra.analysis.exposure import Exposure
from recurra.config.given import Given
from recurra.data.batches import in_order_of_length
from recurra.data.frames import Rows as RowsGiven
from recurra.data.frames import as_files
from recurra.data.store import Encoded, Rows
from recurra.errors import CheckpointError, ConfigError
from recurra.generation.generated import Manner, TextSource
from recurra.manifest import committing, verify
from recurra.models.saved import put_weights, read_tensors
from recurra.models.together import Together
from recurra.padding import fitted, longest
from recurra.predictors.streaming import AnyStream
from recurra.tasks.task import Prediction, Task
from recurra.training.answering import TOKENS, Answering, changed_task
from recurra.training.compiled import TRIALS, Compiled
from recurra.training.device import usable_device
from recurra.training.evaluation import combined_outputs, outputs_of, outputs_to_score
from recurra.training.loading import EXPORT, MODEL, files_of_vocabulary, load_task, whole
from recurra.training.own_code import FOLDER as OWN_CODE
from recurra.training.run_names import folders
from recurra.views.table import Table
from recurra.views.viewer import Asked, Run

SENTENCES_AHEAD = 1024
"""Sentences, at most, that are found in raw text before they are answered."""


class Trained(Answering):
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
        compiled: Compiled | None = None,
    ) -> None:
        self.task = task
        self.model = model.eval()
        self.folder = folder
        self.others = tuple(others)  # runs that answer together with that of the folder
        self._quick = _quick(task, self.model) if quick is None else quick
        self._compiled = Compiled(self.model) if compiled is None else compiled

    def __repr__(self) -> str:
        where = ", ".join(map(str, (self.folder, *self.others)))
        return f"<Trained {self.task.name} in {where}: {self.task.described()}>"

    def predict_raw(self, pieces: Iterable[str], *, detail: bool = False) -> Iterator[Prediction]:
        waiting: list[Any] = []
        for example in self.cut(pieces):
            waiting.append(example)
            if len(waiting) >= SENTENCES_AHEAD:
                yield from self.answers(waiting, detail=detail)
                waiting = []
        yield from self.answers(waiting, detail=detail)

    def cut(self, pieces: Iterable[str]) -> Iterator[Any]:
        """The sentences of raw text, as examples to answer."""
        return self.task.cut(self._quick.members[0] if isinstance(self._quick, Together) else self._quick, pieces)

    def printed_raw(
        self, pieces: Iterable[str], format: str, told: Callable[[int, Sequence[str]], None] = lambda *_: None
    ) -> Iterator[str]:
        if not isinstance(self._quick, Together):
            found = self.task.printed_raw(self._quick, pieces, format, told)
            if found is not None:
                return found
        return super().printed_raw(pieces, format, told)

    def answers(self, examples: Sequence[Any], *, detail: bool = False, batch_tokens: int = TOKENS) -> list[Prediction]:
        """Predictions for examples that are read already."""
        if isinstance(self._quick, Together):
            outputs = combined_outputs(self.task, self._quick, examples, tokens=batch_tokens)
        else:
            rows = list(self.task.encode_all(examples))
            outputs = self._outputs_of(rows, tokens=batch_tokens, detail=detail)
        return [self._answer(example, output) for example, output in zip(examples, outputs, strict=True)]

    def free_running(self, files: str | Path | Sequence[str | Path] | RowsGiven) -> Exposure:
        """What it costs the model to read its own outputs in place of the right ones, on files with answers."""
        with as_files(files, "free_running") as given:
            return self.task.free_running(self._quick, list(self.task.read(self.in_folders(given))))

    def backtest(
        self,
        files: str | Path | Sequence[str | Path] | RowsGiven,
        *,
        windows: int = 1,
        step: int = 1,
        back: Sequence[int] | None = None,
    ) -> Backtest:
        """Forecasts of the end of each series from several origins, each from the values before it, and their scores.

        The last window ends with the series, the one before `step` steps earlier; `back` names other origins, as the
        number of steps from each to the end.
        """
        with as_files(files, "backtest") as given:
            return self.task.rolling(self._quick, given, windows=windows, step=step, back=back)

    def stream(self, state: bytes | None = None) -> AnyStream:
        """What reads endless input element by element, with an answer after each; `state` is what its `state()` gave.

        An element is a word, a piece of text, the numbers of a step or, for forecasts, a row of a table; see
        docs/streams.md. A state goes on with the run that it was saved by.
        """
        return self.task.stream(self._quick, state)

    def anomalies(self, files: str | Path | Sequence[str | Path] | RowsGiven) -> Table:
        """Each observed value of series, and how improbable it was given those before it."""
        with as_files(files, "anomalies") as given:
            return self.task.anomalies(self._quick, self.in_folders(given))

    def origins(self, files: str | Path | Sequence[str | Path], *, windows: int, step: int) -> list[int]:
        """How many steps before the end of each series the windows of a backtest begin, the earliest first."""
        return self.task.origins_back([files] if isinstance(files, str | Path) else files, windows=windows, step=step)

    def to_score(
        self,
        files: Sequence[str | Path],
        by: Callable[[Iterable[Sequence[Encoded]]], Iterator[list[Any]]] | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """The examples of files with answers, and the model's outputs for them."""
        examples = list(self.task.read(files))
        if isinstance(self._quick, Together):
            return examples, combined_outputs(self.task, self._quick, examples, scoring=True)
        rows = list(self.task.encode_all(examples))
        apart = self._outputs_of if by is None else partial(self._outputs_by, by)
        return examples, outputs_to_score(self.task, self._quick, rows, apart=apart)

    def outputs(self, rows: Sequence[Encoded]) -> list[Any]:
        """The model's outputs for encoded examples with answers, as Task.score takes them."""
        return outputs_to_score(self.task, self._quick, rows, apart=self._outputs_of)

    def _outputs_of(self, rows: Sequence[Encoded], *, tokens: int = TOKENS, detail: bool = False) -> list[Any]:
        """What the model says of rows, by torch or by C; which of them are computed together does not change it."""
        found: list[Any] = [None] * len(rows)
        for numbers in in_order_of_length(self.task.lengths(Rows.of(rows)), tokens=tokens):
            some = [rows[number] for number in numbers]
            by_torch = partial(outputs_of, self.task, self._quick, some, tokens=tokens, detail=detail)
            outputs = self._compiled.outputs(self.task, some, by_torch, detail=detail)
            for number, output in zip(numbers, outputs, strict=True):
                found[number] = output
        return found

    def in_torch(self) -> Trained:
        """The same model, whose answers torch computes alone."""
        alone = Compiled(self.model, "C was not asked for")
        return Trained(self.task, self.model, self.folder, others=self.others, quick=self._quick, compiled=alone)

    def batch(self, inputs: Sequence[Any]) -> Any:
        """Inputs that `predict` takes as the tensors that the network `model` reads, such as for torch.export."""
        examples = list(self.task.questions(None, list(inputs)))
        return fitted(self.task.batch(list(self.task.encode_all(examples))), self.model)

    def engine_report(self) -> str:
        """Whether torch answers or compiled code, and why, in a sentence; see docs/engines.md."""
        if isinstance(self._quick, Together):
            return "torch answers: several runs answer together"
        return self._compiled.report()

    def prepare(self) -> None:
        if not isinstance(self._quick, Together):
            self._compiled.prepare(self.task)

    def measure(self, examples: Sequence[Any]) -> None:
        """Let C and torch answer so many examples until it is known which is faster for batches of their number."""
        for _ in range(2 * TRIALS):
            if not isinstance(self._quick, Together) and not self._compiled.knows(len(examples)):
                self.answers(examples, detail=True)

    def record_beside(self) -> None:
        self._compiled.is_beside = True

    def settle(self) -> None:
        if not isinstance(self._quick, Together):
            self._compiled.settle(self.task)

    def asked(self, example: Any) -> Asked:
        return Asked(self.model, example, str(self.folder), runs=self.runs)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Of several runs that answer as one, each."""
        if not self.others:
            return ()
        if isinstance(self.model, Together):
            pairs = self.model.pairs
        else:  # they write together
            pairs = [(self.task, member) for member in cast(Any, self.model).members]
        names = map(str, (self.folder, *self.others))
        return tuple(Run(name, *pair) for name, pair in zip(names, pairs, strict=True))

    def apart(self) -> Trained:
        shared = {id(each): each for each in (*self.model.parameters(), *self.model.buffers())}
        return Trained(self.task, copy.deepcopy(self.model, shared), self.folder, others=self.others)

    def with_task(self, task: Task[Any, Any, Any], given: Given) -> Trained:
        if not isinstance(self.model, Together) or not isinstance(self._quick, Together):
            return Trained(
                task, self.model, self.folder, others=self.others, quick=self._quick, compiled=self._compiled
            )
        folders = zip(self.model.tasks[1:], self.others, strict=True)
        tasks = [task, *(changed_task(other, given, folder) for other, folder in folders)]
        model, quick = (Together(tasks, list(each.members)) for each in (self.model, self._quick))
        return Trained(task, model, self.folder, others=self.others, quick=quick)

    def preceded_by(self, file: str | Path) -> Trained:
        """The same model, which reads the steps of a file before those of the series that go on with it."""
        task = self.task.preceded_by(file)
        if not isinstance(self.model, Together) or not isinstance(self._quick, Together):
            return Trained(
                task, self.model, self.folder, others=self.others, quick=self._quick, compiled=self._compiled
            )
        tasks = [task, *(other.preceded_by(file) for other in self.model.tasks[1:])]
        model, quick = (Together(tasks, list(each.members)) for each in (self.model, self._quick))
        return Trained(task, model, self.folder, others=self.others, quick=quick)

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
                if (self.folder / OWN_CODE).is_dir():
                    shutil.copytree(self.folder / OWN_CODE, new / OWN_CODE)
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


def weighted(task: Task[Any, Any, Any], path: Path, device: str) -> nn.Module:
    """The network of a run with its weights."""
    where = usable_device(device, f"the device '{device}'")
    if (path / EXPORT).is_file():
        raise CheckpointError(
            f"{path} is an exported model, which answers without its weights in torch: use `recurra predict`, "
            "`recurra evaluate` or recurra.load, or name the run that was exported."
        )
    verify(path, MODEL.__eq__)
    with whole(path, type(task)):
        model = task.build()
    tensors, _ = read_tensors(path / MODEL)
    if any(tensor.is_floating_point() and tensor.element_size() == 8 for tensor in tensors.values()):
        model = model.double()
    put_weights(model, tensors, path / MODEL)
    return model.to(where, None if longest(where) == torch.float64 else longest(where)).eval()
