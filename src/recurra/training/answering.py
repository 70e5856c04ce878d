"""Answering: what a trained and an exported model have in common. Torch is not needed for it."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from recurra.config.given import Changes, Given
from recurra.errors import ConfigError, DataError
from recurra.named import fits
from recurra.reading.asked import read_by
from recurra.reading.tables import header_in_words
from recurra.settings import SettingError, field_type, refuse_idle
from recurra.tasks.task import Prediction, Task
from recurra.toml import dotted
from recurra.views.viewer import Asked

if TYPE_CHECKING:
    from recurra.generation.generated import Manner, TextSource
    from recurra.scoring.scores import Scores

AHEAD = 4096
"""Lines, at most, that are read before they are answered."""

TOKENS = 8192
"""Elements that are predicted together: more than in training, for nothing is kept for a backward pass."""


MOST_OTHERS = 16
"""Ways to search, at most, that are remembered."""


class Answering(ABC):
    """A model that predicts and is evaluated, by the settings of its task."""

    task: Task[Any, Any, Any]
    folder: Path

    @abstractmethod
    def answers(self, examples: Sequence[Any], *, detail: bool = False, batch_tokens: int = TOKENS) -> list[Prediction]:
        """Predictions for examples that are read already."""

    @abstractmethod
    def to_score(self, files: Sequence[str | Path]) -> tuple[list[Any], list[Any]]:
        """The examples of files with answers, and the model's outputs for them."""

    @abstractmethod
    def asked(self, example: Any) -> Asked:
        """What the viewers of the task are asked to explain: the answer to an example."""

    @abstractmethod
    def apart(self) -> Self:
        """The same model with the same weights, which may answer in another thread at the same time."""

    @abstractmethod
    def with_task(self, task: Task[Any, Any, Any], given: Given) -> Self:
        """The same model with a task that has other settings of evaluation and decoding."""

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
        asked = self._asked(
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

    @property
    def cuts_text(self) -> bool:
        """Whether `predict_raw` finds sentences in raw text."""
        return self.task.cuts_text

    @abstractmethod
    def cut(self, pieces: Iterable[str]) -> Iterator[Any]:
        """The sentences of raw text, as examples to answer."""

    @abstractmethod
    def writer(self, manner: Manner) -> TextSource:
        """What writes texts with this model, in some manner; see `recurra.generate`."""

    @abstractmethod
    def predict_raw(self, pieces: Iterable[str], *, detail: bool = False) -> Iterator[Prediction]:
        """Answers to the sentences of raw text, which arrives in pieces; the model finds them itself.

        Each says in `detail` where its words stand: "start", "end" and "offsets", in code points of the text.
        """

    def printed_raw(
        self, pieces: Iterable[str], format: str, told: Callable[[int, Sequence[str]], None] = lambda *_: None
    ) -> Iterator[str]:
        """The sentences of raw text in a file format, one piece of text each.

        `told` is told the number of each sentence that holds symbols which the model has never seen, and these.
        """

        def answers() -> Iterator[Prediction]:
            for answer in self.predict_raw(pieces):
                if answer.not_in_vocabulary:
                    told(answer.line, answer.not_in_vocabulary)
                yield answer

        return self.task.printed_file(None, answers(), format)

    def header_in(self, file: str | Path) -> str | None:
        """What is said where the first line of a file is taken for a header of other names than training's; or None."""
        by = read_by(file, self.task.settings.data)
        return None if by is None else header_in_words(file, by, also_known=False)

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

    def with_settings(self, changes: Changes) -> Self:
        """The same model with other settings of evaluation and decoding.

        `changes` are a dict, {"decoding": {"best": 4}} or {"decoding.best": 4}, or strings as for --set:
        ["evaluation.manner=windowed", "decoding.horizon=24"].
        """
        return self.changed(Given().changes(changes, "changes"))

    def changed(self, given: Given) -> Self:
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
        return self.with_task(changed_task(self.task, given, self.folder), given)

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
    ) -> Self:
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

    def _asked(self, **options: Any) -> Self:
        """What `searching` makes of some options, made once: settings take longer to be read than a short answer."""
        key = repr([(type(value).__name__, value) for value in options.values()])
        if key not in self._others:
            if len(self._others) >= MOST_OTHERS:
                self._others.clear()
            self._others[key] = self.searching(**options)
        return self._others[key]

    @cached_property
    def _others(self) -> dict[str, Self]:
        return {}

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


def changed_task(task: Task[Any, Any, Any], given: Given, folder: Path) -> Task[Any, Any, Any]:
    """A task with what was given over its settings."""
    settings = task.settings
    changed = given.over(Given.of_settings(settings)).settings(type(settings))
    with given.placing(type(settings)):
        refuse_idle(changed, only=given.named(type(settings)))
        task = task.with_settings(changed, folder)
        if any(one.keys[0] == "evaluation" for one in given.assignments):  # else it need not be scored
            task.check()
    return task
