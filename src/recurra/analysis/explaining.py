"""`recurra explain`: what a model did with one input. A task is explained by one function, listed in EXPLAINED."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from recurra.analysis import alignment, heat_map, picture_attention, picture_heat_map
from recurra.analysis.alignment import Alignment
from recurra.analysis.page import write_whole
from recurra.analysis.picture_attention import PictureAttention
from recurra.data.files import extension, lines
from recurra.data.formats import endings
from recurra.data.pictures import picture_of
from recurra.errors import ConfigError, DataError
from recurra.settings import name_of
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.task import Prediction, Task
from recurra.tasks.vec2seq import Vec2Seq
from recurra.training.trained import Trained

ENDINGS = (".html", ".svg", ".png")


class Explanation(NamedTuple):
    """What there is to see: as text for the terminal, and as a picture that is drawn when it is asked for."""

    text: str
    svg: Callable[[], str]
    html: Callable[[], str]
    png: Callable[[Path], None]

    def write(self, path: Path) -> None:
        """Write a page (.html) or a picture (.svg, .png)."""
        check_ending(path)
        if path.suffix == ".png":
            self.png(path)
        else:
            write_whole(path, self.html() if path.suffix == ".html" else self.svg())


def check_ending(path: Path) -> None:
    """Refuse a file that is neither a page nor a picture."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: an explanation is written as .html, .svg or .png.")


def explain(model: Trained, given: str) -> Explanation:
    """Why a model answers one input as it does.

    The input is a line as `recurra predict` takes it, such as a text or the path of a picture; or FILE:LINE for a row
    of a file of data.
    """
    for kind, explained in EXPLAINED.items():
        if isinstance(model.task, kind):
            return explained(model, given)
    known = " and ".join(kind.name for kind in EXPLAINED)
    raise ConfigError(
        f"the run {model.folder} is a {model.task.name} model, which has no attention to show: {known} are explained."
    )


def example_of(task: Task[Any, Any, Any], given: str) -> Any:
    """The one example that is meant by a line, or by FILE:LINE."""
    file, _, number = given.rpartition(":")
    is_named = number.isdecimal() and (Path(file).is_file() or _is_of_data(file))
    if not is_named:
        if _is_of_data(given) and Path(given).is_file():
            first = next((example.line for example in task.questions(given, (line for _, line in lines(given)))), 1)
            raise DataError(f"{given} is a file of inputs, and one is explained: name its line, as {given}:{first}.")
        [example] = task.questions(None, [given])
        return example
    for example in task.questions(file, (line for _, line in lines(file))):
        if example.line >= int(number):
            break
    else:
        raise DataError(f"{file}:{number}: the file ends before this line.")
    if example.line != int(number):
        raise DataError(f"{file}:{number}: no row begins on this line; the next one is on line {example.line}.")
    return example


def _is_of_data(name: str) -> bool:
    return extension(name) in endings() and not any(letter.isspace() for letter in name)


def _attention_over_words(model: Trained, given: str) -> Explanation:
    answer = _looked(model, example_of(model.task, given))
    found = Alignment.of(answer, f"{answer.input} → {answer.output}")
    return _of_words(found)


def _of_words(found: Alignment) -> Explanation:
    return Explanation(
        alignment.as_text(found),
        lambda: heat_map.as_svg(found),
        lambda: heat_map.as_html(found),
        lambda path: heat_map.as_png(path, found),
    )


def _attention_over_places(model: Trained, given: str) -> Explanation:
    task = model.task
    assert isinstance(task, Vec2Seq), "EXPLAINED says so"
    if task.settings.data.vector is not None:
        raise ConfigError(
            f"the run {model.folder} is given one vector at a time, which has no places to look at: models of "
            f"pictures and of features of places have attention to show."
        )
    example = example_of(task, given)
    answer = _looked(model, example)
    if answer.detail.get("columns") is None:
        return _of_words(Alignment.of(answer, answer.output))
    picture = None if example.picture is None else picture_of(example.picture, given, task.settings.data.image)
    found = PictureAttention.of(answer, picture, answer.output)
    return Explanation(
        picture_attention.as_text(found),
        lambda: picture_heat_map.as_svg(found),
        lambda: picture_heat_map.as_html(found),
        lambda path: picture_heat_map.as_png(path, found),
    )


def _looked(model: Trained, example: Any) -> Prediction:
    """The answer to an example, with where the model looked."""
    settings = model.task.settings
    if name_of(settings.model.attention) == "none":
        raise ConfigError(
            f"the run {model.folder} was trained with model.attention = none, so it looked nowhere: train one without "
            f"that setting to see where it looks."
        )
    [answer] = model.answers([example], detail=True)
    if answer.alignment is None:
        why = "decoding.search = given writes nothing" if settings.decoding.search == "given" else "nothing was read"
        raise DataError(f"there is no answer to explain: {why}.")
    return answer


EXPLAINED: dict[type[Task[Any, Any, Any]], Callable[[Trained, str], Explanation]] = {
    Seq2Seq: _attention_over_words,
    Vec2Seq: _attention_over_places,
}
"""What is shown of each kind of task."""
