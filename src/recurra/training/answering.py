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
from recurra.data.batches import in_order_of_length
from recurra.data.frames import Frame, as_files, first_row, is_frame, like
from recurra.data.frames import Rows as RowsGiven
from recurra.data.store import Encoded, Rows
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.named import fits
from recurra.reading.asked import read_by
from recurra.reading.tables import header_in_words
from recurra.settings import SettingError, field_type, refuse_idle
from recurra.tasks.task import Prediction, Task
from recurra.text.json_file import read_json
from recurra.toml import dotted
from recurra.training.predictions import Predictions
from recurra.views.viewer import Asked

if TYPE_CHECKING:
    from recurra.generation.generated import Manner, TextSource
    from recurra.scoring.scores import Scores
    from recurra.training.explaining import Explanation
    from recurra.views.view import View

AHEAD = 4096
"""Lines, at most, that are read before they are answered."""

TOKENS = 8192
"""Elements that are predicted together: more than in training, for nothing is kept for a backward pass."""


RECORDING = "recording a model"
"""The name of the thread that records and compiles a model beside its answers."""

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
    def to_score(
        self,
        files: Sequence[str | Path],
        by: Callable[[Iterable[Sequence[Encoded]]], Iterator[list[Any]]] | None = None,
    ) -> tuple[list[Any], list[Any]]:
        """The examples of files with answers, and the model's outputs for them, by others where `by` is given."""

    def _outputs_by(
        self, by: Callable[[Iterable[Sequence[Encoded]]], Iterator[list[Any]]], rows: Sequence[Encoded]
    ) -> list[Any]:
        """Outputs of encoded examples, in the batches in which one process computes them."""
        found: list[Any] = [None] * len(rows)
        batches = in_order_of_length(self.task.lengths(Rows.of(rows)), tokens=TOKENS)
        outputs = by([rows[number] for number in numbers] for numbers in batches)
        for numbers, some in zip(batches, outputs, strict=True):
            for number, output in zip(numbers, some, strict=True):
                found[number] = output
        return found

    @abstractmethod
    def asked(self, example: Any) -> Asked:
        """What the viewers of the task are asked to explain: the answer to an example."""

    @abstractmethod
    def apart(self) -> Self:
        """The same model with the same weights, which may answer in another thread at the same time."""

    def prepare(self) -> None:  # noqa: B027  # an exported model is ready as it is
        """Record and compile the model now, not when it has answered for some seconds; another thread may answer."""

    def measure(self, examples: Sequence[Any]) -> None:  # noqa: B027
        """Find out now by what so many examples are answered fastest."""

    def record_beside(self) -> None:  # noqa: B027
        """From now on no answer waits until the model is recorded and compiled, which is done in another thread."""

    def settle(self) -> None:  # noqa: B027  # an exported model answers in one way
        """From now on all answers are computed in one way, which the clock has no part in: by C where that can be."""

    @abstractmethod
    def outputs(self, rows: Sequence[Encoded]) -> list[Any]:
        """What the model says of encoded examples."""

    @abstractmethod
    def with_task(self, task: Task[Any, Any, Any], given: Given) -> Self:
        """The same model with a task that has other settings of evaluation and decoding."""

    def predict(
        self,
        inputs: Sequence[str | Sequence[Any] | Mapping[str, Any] | NDArray[Any]] | NDArray[Any] | RowsGiven,
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
    ) -> Predictions:
        """One answer per input, in order. An input is a text, a list of words, or an array of numbers; of a series
        also a dict with its times and covariates. A data frame, or dicts with the columns of the training data, are
        read like a file of them; `.to_frame()` makes a data frame of the answers.

        `search` and those after it replace settings of [decoding] for this call, if the model has them: `temperature`,
        `top_k`, `top_p` and `seed` are for search = "sampling", `forced` lists tokens that every answer must contain.
        For all other settings there is `with_settings`.
        """
        if isinstance(inputs, str) or not (isinstance(inputs, Iterable) or is_frame(inputs)):
            raise DataError("predict needs a list of inputs: predict([text]), or a data frame.")
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
        kind = like(inputs)
        first, inputs = (None, inputs) if is_frame(inputs) else first_row(inputs)  # type: ignore[arg-type]
        if is_frame(inputs) or (isinstance(first, Mapping) and not self._is_series(first)):
            with as_files(inputs, "predict") as [file]:
                examples = list(asked.task.questions(file, ()))
                answers = asked.answers(examples, detail=detail, batch_tokens=batch_tokens)
            return Predictions(answers, asked.task, kind)
        given: list[Any] = [each.tolist() if isinstance(each, np.ndarray) else each for each in inputs]  # type: ignore[union-attr]
        for text in given:
            if not isinstance(text, str | list | tuple | dict):
                raise DataError(f"an input must be a text or a list, but is {text!r:.60}.")
        examples = list(asked.task.questions(None, given))
        return Predictions(asked.answers(examples, detail=detail, batch_tokens=batch_tokens), asked.task, kind)

    def _is_series(self, first: Mapping[Any, Any]) -> bool:
        """Whether a dict is a whole series, and not a row of a table."""
        return self.task.schema().kind == "series" and isinstance(first.get("values"), list | tuple | np.ndarray)

    def predict_file(
        self,
        file: str | Path | None,
        lines: Iterable[str],
        *,
        detail: bool = False,
        has_arrived: Callable[[], bool] = lambda: True,
        say: Callable[[str], None] = lambda _: None,
        answered: Callable[[Iterable[Sequence[Any]]], Iterator[list[Prediction]]] | None = None,
    ) -> Iterator[Prediction]:
        """Answers to the examples of a file or to lines, in order, computed in batches.

        `say` is told what else was read with them. `answered` gives the answers to groups of examples, in their order;
        by default this process computes them.

        `has_arrived` says whether the next line is there already: before one has to be waited for, all that came
        before it are answered.
        """

        def groups() -> Iterator[list[Any]]:
            waiting: list[Any] = []
            for example in self.task.questions(file, lines):
                waiting.append(example)
                if len(waiting) >= AHEAD or not has_arrived():
                    self._say_preceded(waiting, say)
                    yield waiting
                    waiting = []
            self._say_preceded(waiting, say)
            if waiting:
                yield waiting

        here = (self.answers(group, detail=detail) for group in groups()) if answered is None else answered(groups())
        for answers in here:
            yield from answers

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
        self,
        files: str | Path | Sequence[str | Path] | RowsGiven,
        *,
        say: Callable[[str], None] = lambda _: None,
        by: Callable[[Iterable[Sequence[Encoded]]], Iterator[list[Any]]] | None = None,
    ) -> Scores:
        """Scores on files with answers, or folders of them, or on a data frame or dicts.

        `say` is told what else was read with them.
        `by` gives the outputs for batches of encoded examples, in their order; by default this process computes them.
        """
        began = time.monotonic()
        with as_files(files, "evaluate") as named:
            examples, outputs = self.to_score(self.in_folders(named), by)
            self._say_preceded(examples, say)
            scores = self.task.score(examples, outputs)
        return scores._replace(values={**scores.values, "seconds": time.monotonic() - began})

    def in_folders(self, files: Iterable[str | Path]) -> list[str | Path]:
        """Files, where a folder is replaced by the data files in it."""
        return self.task.in_folders(files)

    def explain(
        self,
        given: str | Sequence[Any] | Mapping[str, Any] | Frame,
        *,
        show: str | None = None,
        layer: int | None = None,
        direction: str | None = None,
        best: int = 1,
    ) -> Explanation:
        """Why the model answers one input as it does; see docs/explain.md.

        The input is one of those that `predict` takes, or FILE:LINE. `show` is one of the task's views, such as
        attention, saliency and gates; without it, the first that there is. A notebook shows what is returned.
        """
        from recurra.training.explaining import explain

        return explain(self, given, show=show, layer=layer, direction=direction, best=best)

    def plot_answer(self, given: str | Sequence[Any] | Mapping[str, Any] | Frame, show: str | None = None) -> View:
        """A view of one answer, such as "attention" or "gates", as a picture: show it in a notebook, or `write` it."""
        return self.explain(given, show=show).view

    def plot_training(self, metrics: Sequence[str] = ()) -> View:
        """The learning curves of the run: its losses, the scores of validation (all that are named) and the rate."""
        from recurra.training.curves import learning_curves
        from recurra.training.log import FILE, read_log

        return learning_curves(read_log(self.folder / FILE), metrics=metrics)

    def _repr_html_(self) -> str:
        """What a notebook shows: what the model is, what it reached, and its learning curves."""
        from html import escape

        from recurra.training.log import FILE
        from recurra.views.page import in_notebook, table_in_html
        from recurra.views.table import Table

        pieces = [f"<p><strong>{escape(self.task.name)}</strong>: {escape(self.task.described())}</p>"]
        pieces.append(f"<p>{escape(str(self.folder))}</p>")
        scores = self._reached()
        for which, values in scores.items():
            pieces.append(table_in_html(Table([which, "score"], [[name, value] for name, value in values.items()])))
        if (self.folder / FILE).is_file():
            pieces.append(f"<details><summary>Training</summary>{self.plot_training().figure()}</details>")
        return in_notebook("\n".join(pieces))

    def _reached(self) -> dict[str, dict[str, float]]:
        """The scores in the summary of the run, of validation and of test."""
        try:
            summary = read_json(self.folder / "summary.json")
        except RecurraError:  # it is not finished, or only a part of it was copied
            return {}
        parts = {"validation": summary.get("best"), "test": summary.get("test")} if isinstance(summary, dict) else {}
        return {name: part["scores"] for name, part in parts.items() if isinstance(part, dict) and part.get("scores")}

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
