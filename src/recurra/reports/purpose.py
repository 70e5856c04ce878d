"""What a model is for and how it is used, in the words of its task and its data: what a card says."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recurra.data.files import extension
from recurra.reports.summary import Run, within
from recurra.views.table import Table

TEXTS = "in the same language, style and form"
NUMBERS = "from the same source, in the same units and at the same rate"


class Purpose(NamedTuple):
    """What a model does; in what its inputs should be alike; what its rows and their elements are called."""

    does: str  # "" where the task is not one of ours
    alike: str = TEXTS
    rows: str = "rows"  # "" where a row is nothing that the user has made
    elements: str = "tokens"
    asked: str = "input.txt"  # a file of questions
    inputs: str = "texts"
    prompt: str = "[…]"  # of what something is to be written


def purpose(run: Run) -> Purpose:
    """What the model of a run is for, by its task and by the columns that it reads."""
    try:
        data: Mapping[str, object] = within(tomllib.loads(run.config), "data")
    except tomllib.TOMLDecodeError:
        data = {}
    task, is_series, kind = run.summary.get("task"), bool(data.get("frames")), _extension(run)
    series = {"alike": NUMBERS, "rows": "series", "elements": "steps", "inputs": "lists of steps"}
    if task == "tagging":
        does = "gives each step of a series its tag" if is_series else "gives each token of a sentence its tag"
        return Purpose(does, **series, asked=f"input.{kind}") if is_series else Purpose(does, rows="sentences")
    if task == "classification":
        wanted = "any number of labels" if data.get("labels") else "a number" if data.get("targets") else "its label"
        does = f"gives a {'series' if is_series else 'text'} {wanted}"
        return Purpose(does, **series, asked=f"input.{kind}") if is_series else Purpose(does, rows="texts")
    if task == "language_model":
        return Purpose("says how likely a text is, and continues it", rows="lines" if data.get("independent") else "")
    if task == "forecasting":
        what = "frames of a sequence" if is_series else "steps of a series"
        return Purpose(f"predicts the next {what}", **series, asked=f"input.{kind}")
    if task == "seq2seq" and is_series:
        return Purpose("writes a text for a series", **{**series, "rows": "pairs"}, asked=f"input.{kind}")
    if task == "seq2seq":
        return Purpose("turns one sequence into another", rows="pairs")
    if task == "vec2seq" and within(data, "image").get("column"):
        alike = "of the same kind, in the same light"
        return Purpose("writes a text for a picture", alike, "pairs", inputs="paths or arrays", prompt="picture.png")
    if task == "vec2seq":
        what = (
            "a drawing" if within(data, "image").get("strokes") else "features of places" if is_series else "a vector"
        )
        return Purpose(f"writes a text for {what}", NUMBERS, "pairs", asked=f"input.{kind}", inputs="lists of numbers")
    return Purpose("")


def data_table(run: Run, *, whole_path: bool) -> Table:
    """The data files with their sizes, in the words of the task."""
    words, table = purpose(run), run.data(whole_path=whole_path)
    if words.rows:
        return table._replace(columns=[*table.columns[:2], words.rows, words.elements])
    return Table([*table.columns[:2], words.elements], [[*row[:2], *row[3:]] for row in table.rows])


def commands(run: Run, files: Mapping[object, object]) -> Sequence[str]:
    """How the model is used in a terminal; `files` are the data's by part."""
    place, words = shlex.quote(run.folder.resolve().name), purpose(run)
    scored = next((str(files[part]) for part in ("test", "valid") if files.get(part)), "data")
    names = " ".join(map(shlex.quote, scored.split(", "))) if re.fullmatch(r"[\w.,+ -]+", scored) else "data"
    writes = {"language_model": "--length 200", "vec2seq": f"--prompt {shlex.quote(words.prompt)} --count 5"}
    how = writes.get(str(run.summary.get("task")))
    return [
        *([f"recurra generate {place} {how}"] if how is not None else []),
        f"recurra predict {place} {words.asked}",
        f"recurra evaluate {place} {names}",
    ]


def python(run: Run) -> str:
    """How the model is used in Python."""
    beginning = f"import recurra\n\nmodel = recurra.load({run.folder.resolve().name!r})\n"
    if run.summary.get("task") == "language_model":
        return beginning + "[text] = recurra.generate(model, length=200)\nprint(text.whole)"
    return beginning + f"answers = model.predict(inputs)  # {purpose(run).inputs}"


def _extension(run: Run) -> str:
    """The ending of the training data, without that of its compression."""
    path = within(run.summary, "data", "train").get("path")
    first = path[0] if isinstance(path, list) and path else path
    return extension(str(first or "")) or "jsonl"
