"""A run that answers questions out of JSON with JSON: what the page shows, and what any program may ask."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from recurra.config.given import Given
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.exported import is_exported, load
from recurra.opening import read_file
from recurra.reading.schema import ABOUT
from recurra.runtime.controls import controls, overrides
from recurra.runtime.effort import (
    MOST_EXPLAINED,
    MOST_INPUTS,
    MOST_PICTURES,
    MOST_READ,
    MOST_WEIGHED,
    TOGETHER_WRITTEN,
    check_read,
    check_written,
    lengths_of,
)
from recurra.runtime.inputs import checked, question
from recurra.runtime.samples import samples
from recurra.runtime.writing import STREAMS, TEXTS, Writing, count_and_manner, prompt_for, written
from recurra.tasks.task import Task
from recurra.training.answering import TOKENS, Answering
from recurra.training.loading import files_of_vocabulary, load_task
from recurra.training.run_names import folders

if TYPE_CHECKING:
    from recurra.generation.generated import Manner, TextSource

REMEMBERED = 16
"""Ways to search that were asked for of late are kept ready."""

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Batches of a sample with which a run is tried before it is ready,"""

MEASURED = 3.0
"""for so many seconds of computing or a little more."""

MOST_FOLDERS = 10_000
"""Folders that are looked into for runs: whoever serves a whole disk does not wait for all of it."""


class Question(NamedTuple):
    """What `predict` is asked with."""

    inputs: object
    decoding: object
    raw: bool = False


Answered: TypeAlias = "tuple[int, dict[str, Any] | RecurraError]"
"""The number of a question, and its answers or what is wrong with it."""


class Read(NamedTuple):
    """A question that the model can answer."""

    number: int
    model: Answering
    examples: list[Any]
    of: list[int] | None  # of raw texts, the input that each sentence is of
    tokens: int
    written: int


class Hosted:
    """One run, several that answer as one, or an exported model. Weights are read when they are needed first.

    Several may ask at once, though not for the same: answers, explanations, saliency, texts and streams of texts share
    the weights, but each has modules of its own, so that they never wait for each other. Whose turn it is, the server
    knows.
    """

    def __init__(self, name: str, given: str | Path, *, device: str = "cpu", trust: bool = False) -> None:
        self.name = name
        self.given = given
        self.device = device
        self.trust = trust
        self._loading = threading.Lock()
        self._ready: OrderedDict[tuple[str, ...], Answering] = OrderedDict()

    @cached_property
    def task(self) -> Task[Any, Any, Any]:
        """The task, without weights."""
        return load_task(folders(self.given)[0], trust=self.trust)

    @cached_property
    def is_exported(self) -> bool:
        """Whether a program answers, which has no network to look into and needs no torch."""
        return is_exported(folders(self.given)[0])

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the run is, what it is asked with, and how it may be asked to answer."""
        asked = self.task.schema()
        alone = self.is_exported or (self.task.combines and len(folders(self.given)) > 1)
        viewers = {
            name: each for name, each in self.task.viewers().items() if each.possible and (each.of_several or not alone)
        }
        return {
            "name": self.name,
            "task": self.task.name,
            "described": self.task.described(),
            "input": {**asked._asdict(), "about": ABOUT[asked.kind]},
            "decoding": [
                as_plain(each._asdict())
                for each in controls(self.task.decoding)
                if each.name not in self.task.unused_decoding
            ],
            "answer": self.task.answer_kind(),
            "generates": self.task.purpose().generate != "",
            "cuts": self.cuts,
            "views": list(viewers),
            "view_titles": {name: each.title or _in_words(name) for name, each in viewers.items()},
            "summary": _summary(folders(self.given)[0]),
        }

    @property
    def cuts(self) -> bool:
        """Whether it finds sentences in raw text."""
        return self.task.cuts_text and not self.is_exported

    def samples(self) -> list[object]:
        """A few inputs to ask with: those kept in the run folder, else of its data where the run is trusted.

        A run folder of somebody else's could name any file of this machine as its data, and a visitor would see it.
        """
        kept = samples(self.task, folders(self.given)[0])
        return kept if kept or not self.trust else samples(self.task)

    def predict(self, inputs: object, decoding: object, *, raw: bool = False) -> dict[str, Any]:
        """Answers to a list of inputs, with probabilities, alternatives and alignments.

        Of raw texts, an answer for each sentence, which says of which input it is.
        """
        [[(_, found)]] = self.predict_several([Question(inputs, decoding, raw)])
        if isinstance(found, RecurraError):
            raise found
        return found

    def predict_several(self, questions: Sequence[Question]) -> Iterator[list[Answered]]:
        """The number of each question and what `predict` returns or raises; those who ask alike are answered together.

        They come in parts as they are computed, and not all at the end.
        """
        alike: dict[int, list[Read]] = {}
        refused: list[Answered] = []
        for number, each in enumerate(questions):
            try:
                read = self._read(number, each)
            except RecurraError as error:
                refused.append((number, error))
            else:
                alike.setdefault(id(read.model), []).append(read)
        if refused:
            yield refused
        for group in alike.values():
            yield from map(_answered, _in_parts(group))

    def _read(self, number: int, asked: Question) -> Read:
        inputs = asked.inputs
        if not isinstance(inputs, list) or not inputs:
            raise DataError('"inputs" must be a list of at least one input.')
        if len(inputs) > self.most_inputs:
            raise DataError(
                f'"inputs" has {len(inputs):,} inputs, but one request can have at most {self.most_inputs}.'
            )
        model = self._model(asked.decoding, "answers")
        if asked.raw:
            found = [self._sentences(model, value) for value in inputs]
        else:
            found = [[question(model.task, value)] for value in inputs]
        examples = [example for each in found for example in each]
        lengths = lengths_of(model.task, examples)
        check_read(lengths, MOST_READ, "are answered in one call")
        written = check_written(model.task, lengths)
        of = [place for place, each in enumerate(found) for _ in each] if asked.raw else None
        return Read(number, model, examples, of, sum(lengths), written)

    @cached_property
    def most_inputs(self) -> int:
        """Inputs of one request."""
        return MOST_PICTURES if self.task.schema().kind in ("picture", "strokes") else MOST_INPUTS

    def _sentences(self, model: Answering, value: object) -> list[Any]:
        """The sentences of a raw text."""
        if not self.cuts:
            raise ConfigError(
                f'"raw": the run {self.name} has not learned to find tokens and sentences in raw text. '
                "Separate the words by blanks, one sentence in each input."
            )
        text = checked(model.task, value)
        if not isinstance(text, str):
            raise DataError('"raw": a raw text must be a text, not a list.')
        return list(model.cut([text]))

    def explain(
        self,
        value: object,
        decoding: Mapping[str, Any],
        *,
        show: Sequence[str] | None = None,
        layer: int | None = None,
        direction: str | None = None,
        best: int = 1,
        raw: bool = False,
    ) -> dict[str, Any]:
        """The numbers of some views of one answer by their names, and of the rest why there are none.

        Of a raw text, `best` is the number of the sentence.
        """
        from recurra.training.explaining import numbers_of, viewer_named

        for name in show or ():
            viewer_named(self.task, name, '"show":')
        if best < 1:
            raise ConfigError(f'"best" is {best}: answers are counted from 1 (the best).')
        wanted = list(self.about["views"] if show is None else dict.fromkeys(show))
        # Of samples, the n-th of five is another than the n-th of n: as many are drawn as for the answers.
        drawn = {**{each.name: each.value for each in controls(self.task.decoding)}, **decoding}.get("best")
        if best > (drawn if isinstance(drawn, int) else 1) and not raw:
            decoding = {**decoding, "best": best}
        model = self._model(decoding, self.way(show))
        began = time.perf_counter()
        if raw:
            sentences = self._sentences(model, value)
            if best > len(sentences):
                raise DataError(f'"best": the text has {len(sentences)} sentences, but number {best} is asked for.')
            example, best = sentences[best - 1], 1
        else:
            example = question(model.task, value)
        model.task.encode(example)  # what cannot be read is refused once, and not by each view
        lengths = lengths_of(model.task, [example])
        check_read(lengths, MOST_EXPLAINED, "are explained here")
        check_written(model.task, lengths, searches=1 + len(wanted))  # each view asks the model anew
        asked = model.asked(example)._replace(layer=layer, direction=direction, best=best)
        runs = (run._replace(name=Path(run.name).name) for run in asked.runs)  # where they lie is not for everybody
        asked = asked._replace(runs=tuple(runs))
        model.task.check_explained(example)
        missing, viewers = {}, model.task.viewers()
        try:
            check_read(lengths, MOST_WEIGHED, "are weighed here, which `recurra explain` does of any")
        except DataError as error:
            missing = {name: str(error) for name in wanted if viewers[name].work is not None}
        found = numbers_of(asked, {name: viewers[name] for name in wanted if name not in missing})
        missing = {**found["missing"], **missing}
        return {
            "views": found["views"],
            "missing": {name: _called(self.name, model.folder, why) for name, why in missing.items()},
            "seconds": round(time.perf_counter() - began, 6),
        }

    def way(self, show: Sequence[str] | None) -> str:
        """Whose modules an explanation takes: what takes long has its own, and is waited for by itself alone."""
        viewers = self.task.viewers()
        wanted = [
            viewers[name] for name in (viewers if show is None else show) if isinstance(name, str) and name in viewers
        ]
        return "saliency" if any(viewer.work is not None for viewer in wanted) else "explanations"

    def generate(self, prompt: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Texts that go on from a prompt, or that may be written of a vector or a picture."""
        [[(_, found)]] = self.generate_several([Writing(prompt, options)])
        if isinstance(found, RecurraError):
            raise found
        return found

    def generate_several(self, asked: Sequence[Writing]) -> Iterator[list[Answered]]:
        """The number of each request and what `generate` returns or raises; those of one manner are written together.

        They come in parts as they are written.
        """
        model = self._model({}, TEXTS)
        return written(model, partial(self._writer, model), asked)

    def pieces(self, prompt: object, options: Mapping[str, Any]) -> Iterator[str]:
        """The prompt and one text after it, bit by bit as it is written."""
        count, manner = count_and_manner(options)
        if count != 1:
            raise ConfigError(f'"stream" is for one text, but "count" is {count}: leave one of them out.')
        model = self._model({}, STREAMS)
        given = prompt_for(model, prompt)
        yield from self._writer(model, manner).pieces(given)

    def _writer(self, model: Answering, manner: Manner) -> TextSource:
        try:
            return model.writer(manner)
        except ConfigError as error:
            raise ConfigError(_called(self.name, model.folder, str(error))) from error

    def warm(self, in_turn: Callable[[Callable[[], object]], object] = lambda act: act()) -> None:
        """Answer a sample and compile what can be, so that the first answer to a user is as quick as the next.

        `in_turn` is given what must not be computed while another thread answers.
        """
        samples = self.samples()
        if samples:
            in_turn(lambda: self.predict(samples[:1], {}))
        model = self._model({}, "answers")
        model.prepare()
        examples = [question(model.task, value) for value in samples]
        ends = time.process_time() + MEASURED
        for size in SIZES if samples else ():
            if size <= self.most_inputs and time.process_time() < ends:
                some = [examples[number % len(examples)] for number in range(size)]
                in_turn(partial(model.measure, some))

    def _model(self, decoding: object, way: str) -> Answering:
        """The model as it is to answer, with the modules of one way to use it."""
        changed = overrides(self.task.decoding, decoding)
        key = way, *(f"{name}={value!r}" for name, value in changed.items())
        with self._loading:
            if key not in self._ready:
                given = Given()
                for name, value in changed.items():  # without a word for their origin: a visitor typed no option
                    given = given.also(("decoding", name), value)
                self._ready[key] = self._plain(way).changed(given)
            self._ready.move_to_end(key)
            while len(self._ready) > REMEMBERED:
                del self._ready[next(each for each in self._ready if len(each) > 1)]
            return self._ready[key]

    def _plain(self, way: str) -> Answering:
        """The model as it was trained."""
        if (way,) not in self._ready:
            if way == "answers":
                given = folders(self.given)
                which = given[0] if len(given) == 1 else given
                found: Answering = load(which, device=self.device, trust=self.trust)
                found.record_beside()
                self._ready[(way,)] = found
            else:
                self._ready[(way,)] = self._plain("answers").apart()
        return self._ready[(way,)]


def _in_parts(group: Sequence[Read]) -> Iterator[list[Read]]:
    """Questions that are computed together; a large one stands alone, so that small ones do not wait for it long."""
    part: list[Read] = []
    tokens = written = 0
    for each in group:
        if part and (tokens + each.tokens > TOKENS or written + each.written > TOGETHER_WRITTEN):
            yield part
            part, tokens, written = [], 0, 0
        part.append(each)
        tokens, written = tokens + each.tokens, written + each.written
    yield part


def _answered(group: Sequence[Read]) -> list[Answered]:
    """Questions to one model with their answers; where they cannot be answered together, each has its own error."""
    began = time.perf_counter()
    try:
        found = iter(group[0].model.answers([each for read in group for each in read.examples], detail=True))
    except RecurraError as error:
        return [(group[0].number, error)] if len(group) == 1 else [_answered([read])[0] for read in group]
    seconds = round(time.perf_counter() - began, 6)
    every: list[Answered] = []
    for read in group:
        answers = [_answer(next(found)) for _ in read.examples]
        if read.of is not None:
            answers = [{**answer, "of": number} for answer, number in zip(answers, read.of, strict=True)]
        every.append((read.number, {"answers": answers, "seconds": seconds}))
    return every


def _answer(answer: Any) -> dict[str, Any]:
    found = {"input": answer.input, "output": answer.output, "score": answer.score, **answer.detail}
    plain: dict[str, Any] = as_plain(found)
    return plain


def as_plain(value: Any) -> Any:
    """Numbers that JSON has: arrays as lists, to six places; what is not finite is null."""
    kind = type(value)
    if kind is float:
        return round(value, 6) if math.isfinite(value) else None
    if kind is str or kind is int:
        return value
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): as_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return as_plain(float(value)) if isinstance(value, float) else value


def _in_words(name: str) -> str:
    """The name of a view as a title.

    >>> _in_words("frames_of_speech")
    'Frames of speech'
    """
    return name[:1].upper() + name[1:].replace("_", " ")


def _called(name: str, folder: Path, text: str) -> str:
    """A sentence with the name of a run in place of its folder: where it lies is no business of a visitor's.

    >>> _called("blind", Path("."), "the run . has model.attention = none.")
    'the run blind has model.attention = none.'
    """
    return re.sub(rf"(?<!\S){re.escape(str(folder))}(?=[\s,])", lambda _: name, text)


def _summary(folder: Path) -> dict[str, Any]:
    """What training reached, where the run says it."""
    try:
        found = json.loads(read_file(folder / "summary.json"))
        scores, first = as_plain(found["best"]["scores"]), found.get("first_metric")
        return {"parameters": found["parameters"], "scores": scores, "first_metric": first if first in scores else None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def hosted(given: Sequence[str], *, device: str = "cpu", trust: bool = False) -> dict[str, Hosted]:
    """The runs by their names: those that are named, and those anywhere below folders that are named.

    A name is that of the run's folder; where two have the same, the folders above it go before. "name=folder" gives
    one run a name of its own.
    """
    own: dict[str, str] = {}
    places: list[str] = []
    for each in given:
        name, is_named, place = each.partition("=")
        path = Path(each)
        if is_named and "/" not in name and not path.exists():
            if not name or not place or name in own:
                why = "two runs have this name" if name in own else "a name and a folder are expected, as in pos=runs/a"
                raise ConfigError(f"{each}: {why}.")
            own[name] = place
        else:
            places += [each] if (path / "config.toml").is_file() else runs_below(path) or [each]
    places = list(dict.fromkeys(places))
    named = {**dict(zip(_names(places), places, strict=True)), **own}
    return {name: Hosted(name, place, device=device, trust=trust) for name, place in named.items()}


def siblings(runs: Mapping[str, Hosted]) -> dict[str, list[str]]:
    """By the name of each run, the others in the same folder that have its task and its vocabulary."""
    alike: dict[object, list[str]] = {}
    kinds = {}
    for name, run in runs.items():
        folder = folders(run.given)[0].resolve()
        meaning = [(file.name, hashlib.sha256(file.read_bytes()).digest()) for file in files_of_vocabulary(folder)]
        kinds[name] = folder.parent, run.task.name, tuple(meaning)
        alike.setdefault(kinds[name], []).append(name)
    return {name: [each for each in alike[kinds[name]] if each != name] for name in runs}


def runs_below(folder: Path) -> list[str]:
    """The run folders at any depth below a folder, in the order of their names.

    Links and hidden folders are not followed, nor is a run searched for others; the walk ends after so many folders.
    """
    found, waiting, seen = list[str](), [folder], 0
    while waiting and seen < MOST_FOLDERS:
        here, seen = waiting.pop(), seen + 1
        if here != folder and (here / "config.toml").is_file():
            found.append(str(here))
            continue
        try:
            inner = [Path(each.path) for each in os.scandir(here) if each.is_dir(follow_symlinks=False)]
        except OSError:  # no folder, or one that may not be read
            continue
        waiting += sorted((each for each in inner if not each.name.startswith(".")), reverse=True)
    return found


def _names(places: Sequence[str]) -> list[str]:
    """Short names that differ.

    >>> _names(["runs/a", "runs/b", "old/a", "runs/c,runs/d", "x/../e/"])
    ['runs/a', 'b', 'old/a', 'c,d', 'e']
    """
    parts = [[Path(os.path.abspath(each)).parts for each in folders(place)] for place in places]
    depth = [1] * len(places)
    while True:
        names = [
            ",".join("/".join(each[-deep:]) for each in several) for several, deep in zip(parts, depth, strict=True)
        ]
        twice = [number for number, name in enumerate(names) if names.count(name) > 1]
        if not twice or all(depth[number] > 50 for number in twice):
            return [name.encode("utf-8", "replace").decode() for name in names]  # a disk may hold other bytes
        for number in twice:
            depth[number] += 1
