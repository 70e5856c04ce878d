"""Purpose: what a model is for and how it is used, in the words of its task; what a card says."""

from __future__ import annotations

from recurra.frozen import NamedTuple

TEXTS = "in the same language, style and form"
PICTURES = "of the same kind, in the same light"
NUMBERS = "from the same source, in the same units and at the same rate"


class Purpose(NamedTuple):
    """A description of what a model is for, used in its model card."""

    does: str = ""  # "" where the task does not say
    alike: str = TEXTS
    rows: str = "rows"  # "" where a row is nothing that the user has made
    elements: str = "tokens"
    asked: str = "input.txt"  # a file of questions
    inputs: str = "texts"
    generate: str = ""  # options of `recurra generate`, where the model writes texts
    python: str = "answers = model.predict(inputs)"  # how a loaded model is used


SERIES = Purpose(alike=NUMBERS, rows="series", elements="steps", inputs="lists of steps")
"""Of a model that reads numbers, step by step."""
