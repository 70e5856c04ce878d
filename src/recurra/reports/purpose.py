"""What a card says of a model: what it is for, what it was trained on, and how it is used."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from recurra.reports.summary import Run, within
from recurra.views.purpose import Purpose
from recurra.views.table import Table


def purpose(run: Run) -> Purpose:
    """What the model of a run is for, as its task said when it was trained."""
    said = within(run.summary, "purpose")
    return Purpose(**{name: str(said[name]) for name in Purpose._fields if name in said})


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
    return [
        *([f"recurra generate {place} {words.generate}"] if words.generate else []),
        f"recurra predict {place} {words.asked}",
        f"recurra evaluate {place} {names}",
    ]


def python(run: Run) -> str:
    """How the model is used in Python."""
    words = purpose(run)
    said = f"  # {words.inputs}" if "(inputs)" in words.python else ""
    return f"import recurra\n\nmodel = recurra.load({run.folder.resolve().name!r})\n{words.python}{said}"
