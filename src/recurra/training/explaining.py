"""`recurra explain`: what a model did with one input. What there is to see, its task says."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence, Sized
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from recurra.data.files import extension, lines
from recurra.data.formats import endings
from recurra.data.frames import Frame, as_files, is_frame
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.named import did_you_mean
from recurra.tasks.task import Asked, Task, Viewer
from recurra.text.visible import without_controls
from recurra.training.answering import Answering
from recurra.views.page import in_notebook, page, section, write_whole
from recurra.views.view import View
from recurra.views.viewer import view_of

ENDINGS = (".html", ".svg", ".png")


class Explanation(NamedTuple):
    """What there is to see of one answer: the view that was asked for, or the most telling one and all others."""

    model: Answering
    asked: Asked
    given: str  # as it was typed
    name: str
    view: View
    alone: bool

    @property
    def text(self) -> str:
        """For the terminal."""
        return self.view.text()

    def write(self, path: str | Path) -> None:
        """Write a page (.html) of all there is, or of what was asked for alone; or a picture (.svg, .png)."""
        path = Path(path)
        check_ending(path)
        if path.suffix == ".png":
            self.view.png(path)
        else:
            write_whole(path, self.html() if path.suffix == ".html" else self.view.svg())

    @property
    def answer(self) -> str:
        """What was read, and what was answered."""
        said = self.model.task.headline(*self._read_and_answered())
        which = f" (answer {self.asked.best})" if self.asked.best > 1 else ""
        return without_controls(said.replace("\t", " · ")) + which

    def _read_and_answered(self) -> tuple[str, str]:
        best = self.asked.best
        [answer] = self.model.answers([self.asked.example], detail=best > 1)
        return answer.input or self.given, answer.output if best == 1 else answer.alternatives[best - 2]["output"]

    def json(self) -> dict[str, Any]:
        """For a program: by its name, the numbers of the view that was asked for or of all; or why there are none."""
        read, output = self._read_and_answered()
        viewers = self.model.task.viewers()
        found = (
            {"views": {self.name: self.view.json()}, "missing": {}} if self.alone else numbers_of(self.asked, viewers)
        )
        return {"input": read, "output": output, **found}

    def _repr_html_(self) -> str:
        """What a notebook shows: the answer, and the view that was asked for or is the most telling."""
        return in_notebook(f"<p><strong>{escape(self.answer)}</strong></p>\n{self.view.html()}")

    def html(self) -> str:
        """One page that fetches nothing."""
        views, missing = ([self.view], dict[str, str]()) if self.alone else every(self.asked, self.model.task.viewers())
        title = self.view.title if self.alone else "Why this answer"
        said = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in missing.items())
        pieces = [
            f"<h1>{escape(title)}</h1>",
            f"<p><strong>{escape(self.answer)}</strong></p>",
            *(view.html() if self.alone else section(view.title, view.html()) for view in views),
            section("Not shown", f'<ul class="soft">{said}</ul>' if said else ""),
        ]
        return page(title, pieces, script="\n".join(filter(None, (view.script for view in views))))


def check_ending(path: Path) -> None:
    """Refuse a file that is neither a page nor a picture."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: the file must end in .html, .svg or .png.")


def explain(
    model: Answering,
    given: str | Sequence[Any] | Mapping[str, Any] | Frame,
    *,
    show: str | None = None,
    layer: int | None = None,
    direction: str | None = None,
    best: int = 1,
) -> Explanation:
    """Why a model answers one input as it does.

    The input is a line as `recurra predict` takes it, such as a text or the path of a picture; or FILE:LINE for a row
    of a file of data; in Python also what `predict` takes as one input, such as a row as a dict, or a data frame of
    one input, such as a whole series. `show` is one of the task's views, such as attention, probabilities, saliency,
    tree and gates; without it, the first that there is. Gates are those of a layer, counted from 1, and a direction;
    where answers are searched for, the best-th is explained.
    """
    if show is not None:
        viewer = viewer_named(model.task, show, "--show")
        if not viewer.layered and (layer is not None or direction is not None):
            what = "--layer" if layer is not None else "--direction"
            raise ConfigError(f"{what} selects gates, but --show {show} shows none: leave it out.")
    if best < 1:
        raise ConfigError(f"--best {best}: answers are counted from 1 (the best).")
    if best > 1:
        model = model.searching(best=best)
    asked = model.asked(example_of(model.task, given))._replace(layer=layer, direction=direction, best=best)
    model.task.check_explained(asked.example)
    given = given if isinstance(given, str) else "a data frame" if is_frame(given) else str(given)
    viewers = model.task.viewers()
    if show is not None:
        return Explanation(model, asked, given, show, view_of(viewers, show, asked), alone=True)
    refusals: dict[str, RecurraError] = {}
    for name in viewers:
        try:
            return Explanation(model, asked, given, name, view_of(viewers, name, asked), alone=False)
        except RecurraError as error:
            refusals[name] = error
    for refusal in refusals.values():
        if isinstance(refusal, DataError):  # it is the input
            raise refusal
    raise ConfigError("\n".join(["there is nothing to show.", *(f"{name}: {why}" for name, why in refusals.items())]))


def viewer_named(task: Task[Any, Any, Any], name: object, what: str) -> Viewer:
    """The viewer of that name; a ConfigError says which ones there are."""
    viewers = task.viewers()
    if not isinstance(name, str) or name not in viewers:
        raise ConfigError(f"{what} {name}: a {task.name} model has no such view. {did_you_mean(str(name), viewers)}")
    return viewers[name]


def every(asked: Asked, viewers: Mapping[str, Viewer]) -> tuple[list[View], dict[str, str]]:
    """All that there is to see; and of the rest, by its name, why not."""
    views, missing = list[View](), dict[str, str]()
    for name in viewers:
        try:
            views.append(view_of(viewers, name, asked))
        except RecurraError as error:
            missing[name] = str(error)
    return views, missing


def numbers_of(asked: Asked, viewers: Mapping[str, Viewer]) -> dict[str, Any]:
    """The numbers of some views by their names; and of the rest, by its name, why not."""
    views, missing = dict[str, Any](), dict[str, str]()
    for name in viewers:
        try:
            views[name] = view_of(viewers, name, asked).json()
        except RecurraError as error:
            missing[name] = str(error)
    return {"views": views, "missing": missing}


def example_of(task: Task[Any, Any, Any], given: str | Sequence[Any] | Mapping[str, Any] | Frame) -> Any:
    """The one example that is meant by a line, by FILE:LINE, by FILE:SERIES, or by an input as `predict` takes it."""
    if is_frame(given):
        with as_files(given, "explain") as [file]:
            found = list(islice(task.questions(file, ()), 2))
        if len(found) != 1:
            held = f"{len(given):,} rows" if isinstance(given, Sized) else "more than one input"
            raise DataError(f"explain takes one input, but this data frame has {held}: give a row, as frame.iloc[:1].")
        return found[0]
    if isinstance(given, Mapping) and not (task.schema().kind == "series" and "values" in given):
        with as_files([given], "explain") as [file]:
            [example] = task.questions(file, ())
        return example
    if not isinstance(given, str):
        [example] = task.questions(None, [given])  # type: ignore[list-item]  # checked by the task
        return example
    file, _, number = given.rpartition(":")
    if task.schema().kind == "series":
        if not number.isdecimal() and _is_of_data(file) and Path(file).is_file():
            return _series_named(task, file, number)
        if _is_of_data(given) and Path(given).is_file():
            return _only_series(task, given)
    is_named = number.isdecimal() and (Path(file).is_file() or _is_of_data(file))
    if not is_named:
        if _is_of_data(given) and Path(given).is_file():
            asked = task.questions(given, (line for _, line in lines(given)))
            first = next((task.origin(example)[1] for example in asked), 1)
            raise DataError(
                f"{given} is a file with several inputs, but explain takes one: name a line, as {given}:{first}."
            )
        [example] = task.questions(None, [given])
        return example
    for example in task.questions(file, (line for _, line in lines(file))):
        at = task.origin(example)[1]
        if at >= int(number):
            break
    else:
        raise DataError(
            f"{file}:{number}: there is no such line: the file is shorter. Give the number of a line with an input."
        )
    if at != int(number) and (name := getattr(example, "name", "")):
        raise DataError(
            f"{file}:{number}: no series starts on this line; '{name}' starts on line {at}. A series may also be "
            f"named, as {file}:{name}."
        )
    if at != int(number):
        raise DataError(f"{file}:{number}: no row starts on this line; the next row starts on line {at}.")
    return example


def _series_named(task: Task[Any, Any, Any], file: str, name: str) -> Any:
    """The series of a name in a file."""
    names = list[str]()
    for example in task.questions(file, (line for _, line in lines(file))):
        if example.name == name:
            return example
        names.append(example.name)
    if not any(names):
        raise DataError(f"{file}:{name}: the series of this file have no names: give the number of a line.")
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"The first of its {len(names):,} series is '{names[0]}'."
    raise DataError(f"{file} has no series '{name}'. {hint}")


def _only_series(task: Task[Any, Any, Any], file: str) -> Any:
    """The series of a file that has but one."""
    found = list(islice(task.questions(file, (line for _, line in lines(file))), 2))
    if len(found) == 1:
        return found[0]
    first = (found[0].name or task.origin(found[0])[1]) if found else 1
    raise DataError(f"{file} has several series, but explain takes one: name it, as {file}:{first}.")


def _is_of_data(name: str) -> bool:
    return extension(name) in endings() and not any(letter.isspace() for letter in name)
