"""The gradient laboratory for the models of tasks: a trained run, or a config before any training."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from recurra.analysis.laboratory import STEPS, Laboratory, looked
from recurra.analysis.watching import Watch
from recurra.data.files import extension, parallel_files
from recurra.data.formats import endings
from recurra.data.store import Encoded, Store
from recurra.errors import ConfigError, DataError
from recurra.padding import fitted
from recurra.stacks.recurrent import Recurrent
from recurra.tasks.task import Task
from recurra.training.preparation import prepared
from recurra.training.samples import kept_samples
from recurra.training.trained import Trained

EXAMPLES, AMONG = 4, 500
"""So many examples are looked at: the longest among the first of a file."""

ASKED_AS_KEPT = ("text", "frames", "series", "vector", "places")
"""Kinds of input that a task takes as samples.json has them; a picture would have to be unpacked."""


def gradients_of_run(model: Trained, data: str | None = None, *, steps: int = STEPS) -> Laboratory:
    """What a trained model does with a few examples of a file, else of its validation data; or with one input.

    Where the files it was trained on are gone, it reads the samples in its folder, which have no answers.
    """
    files, title = model.task.settings.data, str(model.folder)
    given = data or files.files("valid") or files.files("train")
    is_gone = data is None and not all(map(is_there, given)) and model.task.schema().kind in ASKED_AS_KEPT
    if is_gone and (samples := kept_samples(model.folder)):
        title = f"{title} (its data is gone: the samples in the run folder)"
        return gradients_of(model.task, model.model, None, title=title, steps=steps, inputs=samples)
    return gradients_of(model.task, model.model, given, title=title, steps=steps)


def gradients_before_training(
    kind: type[Task[Any, Any, Any]],
    settings: Any,
    data: str | None = None,
    *,
    title: str,
    steps: int = STEPS,
    say: Callable[[str], None] = lambda _: None,
) -> Laboratory:
    """What a model does before it has learned anything, with the weights that training would start from."""
    task, store = prepared(kind, settings, say)
    torch.manual_seed(settings.training.seed)
    model = task.build()
    task.initialise(model)
    return gradients_of(task, model, data or settings.data.files("valid") or None, title=title, steps=steps, rows=store)


def gradients_of(
    task: Task[Any, Any, Any],
    model: nn.Module,
    data: str | Sequence[str] | None,
    *,
    title: str,
    steps: int = STEPS,
    rows: Any = None,
    inputs: Sequence[Any] = (),
) -> Laboratory:
    """What a task's model does with the longest few examples of a file, or with one input that has no answer.

    Where no data is named, `rows` are encoded examples to choose from, or `inputs` are read, which have no answers.
    """
    if not any(isinstance(part, Recurrent) for part in model.modules()):
        raise ConfigError(
            f"{title} ({task.described()}) has no recurrent cells, so there are no gradients "
            f"through time to measure. Use a model with cells, such as model.cell = lstm."
        )
    watch, settings = Watch(model), task.settings
    if isinstance(data, str) and not is_file(data):
        inputs = [data]
    if inputs:
        batch: Any = task.batch(list(task.encode_all(task.questions(None, inputs))))
        task.reread(watch.model, fitted(batch, watch.model))
        loss, examples = None, len(inputs)
    else:
        if data is not None:
            files = [data] if isinstance(data, str) else data
            rows = list(task.encode_all(itertools.islice(task.read(files), AMONG)))
        with tempfile.TemporaryDirectory(prefix="recurra-") as folder:
            chosen = longest(task, rows, Path(folder))
            found = task.loss(watch.model, fitted(task.batch(chosen), watch.model))
        loss, examples = found.total / max(1, found.labels), len(chosen)
    clip = settings.training.clip
    report = looked(watch, loss, examples, steps=steps, title=title, clip=clip, cut=task.truncation)
    if not report.layers:
        raise ConfigError(f"{title} cannot be measured: its cells have read no step. Give a longer input.")
    return report


def is_file(data: str) -> bool:
    """Whether a file of data is meant, or several side by side, and not an input; a missing one is meant too.

    >>> is_file("gone.tsv"), is_file("Is this gone.tsv"), is_file("42")
    (True, False, False)
    """
    is_named = extension(data) in endings() and not any(letter.isspace() for letter in data)
    return is_named or is_there(data)


def is_there(data: str) -> bool:
    """Whether a file of data, or each of several side by side, can be found."""
    return all(Path(part).is_file() for part in parallel_files(data))


def longest(task: Task[Any, Any, Any], rows: Sequence[Encoded], folder: Path) -> Sequence[Encoded]:
    """A few rows as training would read them, among the longest: whole, or chunks of a text, or windows of a series."""
    store = rows if isinstance(rows, Store) else Store.write(folder / "store", iter(rows))
    if not len(store):
        raise DataError("there is no example to examine: the file is empty.")
    training = task.settings.training
    usual = type(task.settings)().training.batch_tokens
    few = copy.copy(task)
    few.settings = dataclasses.replace(
        task.settings, training=dataclasses.replace(training, batch_size=EXAMPLES, batch_tokens=usual)
    )
    batches = few.batches(store, 0)
    largest = max(range(min(len(batches), AMONG)), key=lambda number: math.prod(batches.shape(number)))
    return few.chosen(store, batches[largest])
