"""A run that answers questions out of JSON with JSON: what the page shows, and what any program may ask."""

from __future__ import annotations

import copy
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.named import choose, did_you_mean
from recurra.runtime.inputs import ABOUT, checked, input_of, question
from recurra.runtime.samples import samples
from recurra.tasks.task import Task
from recurra.toml import toml_value
from recurra.training.trained import Trained, folders, load, load_task

MOST_INPUTS = 256
"""So many inputs are answered in one call."""

MOST_TEXTS = 16
"""So many texts are written in one call."""

REMEMBERED = 16
"""Ways to search that were asked for of late are kept ready."""


class Hosted:
    """One run, or several that answer as one. Weights are read when they are needed first.

    Answers and explanations each come one after the other, but answers never wait for an explanation: both share the
    weights, but an explanation watches modules of its own.
    """

    def __init__(self, name: str, given: str | Path, *, device: str = "cpu") -> None:
        self.name = name
        self.given = given
        self.device = device
        self._answering, self._explaining = threading.Lock(), threading.Lock()
        self._ready: OrderedDict[tuple[str, str], Trained] = OrderedDict()
        self._loading = threading.Lock()

    @cached_property
    def task(self) -> Task[Any, Any, Any]:
        """The task, without weights."""
        return load_task(folders(self.given)[0])

    def about(self) -> dict[str, Any]:
        """What the run is, what it is asked with, and how it may be asked to answer."""
        from recurra.analysis.views import possible

        folder = folders(self.given)[0]
        asked = input_of(self.task)
        return {
            "name": self.name,
            "task": self.task.name,
            "described": self.task.described(),
            "input": {**asked._asdict(), "about": ABOUT[asked.kind]},
            "decoding": [each._asdict() for each in controls(self.task.settings)],
            "views": possible(self.task),
            "summary": _summary(folder),
        }

    def samples(self) -> list[object]:
        """A few inputs to ask with."""
        return samples(self.task)

    def predict(self, inputs: object, decoding: Mapping[str, Any]) -> dict[str, Any]:
        """Answers to a list of inputs, with probabilities, alternatives and alignments."""
        if not isinstance(inputs, list) or not inputs:
            raise DataError('"inputs" is a list of one input or more.')
        if len(inputs) > MOST_INPUTS:
            raise DataError(f'"inputs" has {len(inputs):,} inputs, but {MOST_INPUTS} is the most of one call.')
        model = self._model(decoding)
        began = time.perf_counter()
        examples = [question(model.task, value) for value in inputs]
        with self._answering:
            answers = model.answers(examples, detail=True)
        return {"answers": [_answer(each) for each in answers], "seconds": round(time.perf_counter() - began, 6)}

    def explain(
        self,
        value: object,
        decoding: Mapping[str, Any],
        *,
        show: Sequence[str] | None = None,
        layer: int | None = None,
        direction: str | None = None,
        best: int = 1,
    ) -> dict[str, Any]:
        """The numbers of some views of one answer by their names, and of the rest why there are none."""
        from recurra.analysis.explaining import check_answered, numbers_of
        from recurra.analysis.views import VIEWS, Asked

        for name in show or ():
            choose(VIEWS, name, '"show"')
        if best < 1:
            raise ConfigError(f'"best" is {best}: the best answer is 1, the next 2.')
        model = self._model({**decoding, "best": best} if best > 1 else decoding, watched=True)
        began = time.perf_counter()
        example = question(model.task, value)
        with self._explaining:
            asked = Asked(model, example, "the input", layer, direction, best)
            check_answered(asked)
            found = numbers_of(asked, possible_of(model.task) if show is None else show)
        return {**found, "seconds": round(time.perf_counter() - began, 6)}

    def generate(self, prompt: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """Texts that go on from a prompt, or that may be written of a vector or a picture."""
        from recurra.generation import writer_of

        options = dict(options)
        count = options.pop("count", 1)
        if not isinstance(count, int) or not 1 <= count <= MOST_TEXTS:
            raise DataError(f'"count" is a whole number from 1 to {MOST_TEXTS}.')
        model = self._model({})
        prompt = checked(model.task, prompt)
        if input_of(model.task).kind == "text" and not isinstance(prompt, str):
            raise DataError('"prompt" is a text.')
        began = time.perf_counter()
        with self._answering:
            found = writer_of(model, **options).texts([prompt], count=count)
        texts = [{**each._asdict(), "log_probability": round(each.log_probability, 5)} for each in found]
        return {"texts": texts, "seconds": round(time.perf_counter() - began, 6)}

    def _model(self, decoding: Mapping[str, Any], *, watched: bool = False) -> Trained:
        """The model as it is to answer; one that is watched has modules of its own."""
        if not isinstance(decoding, Mapping):
            raise ConfigError('"decoding" is an object of settings, such as {"width": 3}.')
        known = [each.name for each in controls(self.task.settings)]
        for name in decoding:
            if name not in known:
                raise ConfigError(f'"decoding" has no "{name}". {did_you_mean(name, known)}')
        way = "watched" if watched else "answering"
        key = way, json.dumps(decoding, sort_keys=True)
        with self._loading:
            if key not in self._ready:
                plain = self._ready.get((way, "{}")) or self._loaded(watched)
                self._ready[way, "{}"] = plain
                self._ready[key] = plain.with_settings(
                    [f"decoding.{name}={_typed(value)}" for name, value in decoding.items()]
                )
            self._ready.move_to_end(key)
            while len(self._ready) > REMEMBERED:
                oldest = next(each for each in self._ready if each[1] != "{}")
                del self._ready[oldest]
            return self._ready[key]

    def _loaded(self, watched: bool) -> Trained:
        if not watched:
            return load(folders(self.given), device=self.device)
        answering = self._ready.get(("answering", "{}"))
        if answering is None:
            answering = self._ready["answering", "{}"] = self._loaded(False)
        shared = {id(each): each for each in (*answering.model.parameters(), *answering.model.buffers())}
        network = copy.deepcopy(answering.model, shared)
        return Trained(answering.task, network, answering.folder, others=answering.others)


def possible_of(task: Task[Any, Any, Any]) -> list[str]:
    from recurra.analysis.views import possible

    return possible(task)


class Control(NamedTuple):
    """A setting of [decoding] as a page offers it."""

    name: str
    kind: Literal["choice", "integer", "number", "boolean", "text", "list"]
    value: Any  # as the run has it
    optional: bool  # may be null
    choices: list[str]
    about: str


def controls(settings: Any) -> list[Control]:
    """What may be changed about how a trained model answers."""
    decoding = getattr(settings, "decoding", None)
    if decoding is None:
        return []
    hints = get_type_hints(type(decoding))
    return [
        Control(field.name, *_kind(hints[field.name], getattr(decoding, field.name)), field.metadata["about"])
        for field in decoding.__dataclass_fields__.values()
    ]


def _kind(hint: Any, value: Any) -> tuple[Any, Any, bool, list[str]]:
    import types

    optional = get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)
    if optional:
        [hint] = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is Literal:
        return "choice", value, optional, [str(each) for each in get_args(hint)]
    kinds = {bool: "boolean", int: "integer", float: "number", str: "text"}
    return kinds.get(hint, "list"), value, optional, []


def _typed(value: object) -> str:
    return "none" if value is None else toml_value(value)


def _answer(answer: Any) -> dict[str, Any]:
    found = {"input": answer.input, "output": answer.output, "score": answer.score, **answer.detail}
    plain: dict[str, Any] = as_plain(found)
    return plain


def as_plain(value: Any) -> Any:
    """Numbers that JSON has: arrays as lists, to six places; what is not finite is null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): as_plain(each) for name, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _summary(folder: Path) -> dict[str, Any]:
    """What training reached, where the run says it."""
    try:
        found = json.loads((folder / "summary.json").read_text("utf-8"))
        return {"parameters": found["parameters"], "scores": as_plain(found["best"]["scores"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def hosted(given: Sequence[str], *, device: str = "cpu") -> dict[str, Hosted]:
    """The runs by their names: those that are named, and those in folders that are named.

    A name is that of the run's folder; where two have the same, the folders above it go before.
    """
    places: list[str] = []
    for each in given:
        path = Path(each)
        inner = sorted(str(found.parent) for found in path.glob("*/config.toml")) if path.is_dir() else []
        if (path / "config.toml").is_file() or not inner:
            places.append(each)
        else:
            places += inner
    if not places:
        raise CheckpointError("there is no run to serve: name a folder that `recurra train --out` made.")
    places = list(dict.fromkeys(places))
    return {name: Hosted(name, place, device=device) for name, place in zip(_names(places), places, strict=True)}


def _names(places: Sequence[str]) -> list[str]:
    """Short names that differ.

    >>> _names(["runs/a", "runs/b", "old/a", "runs/c,runs/d"])
    ['runs/a', 'b', 'old/a', 'c,d']
    """
    parts = [[Path(each.strip()).absolute().parts for each in place.split(",")] for place in places]
    depth = [1] * len(places)
    while True:
        names = [
            ",".join("/".join(each[-deep:]) for each in several) for several, deep in zip(parts, depth, strict=True)
        ]
        twice = [number for number, name in enumerate(names) if names.count(name) > 1]
        if not twice or all(depth[number] > 50 for number in twice):
            return names
        for number in twice:
            depth[number] += 1
