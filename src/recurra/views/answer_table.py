"""Answers as a table: a row each, with columns for what their kind has beside the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recurra.views.prediction import AnswerKind, Prediction
from recurra.views.table import Table

MOST_CLASSES = 100
"""Classes, at most, whose probabilities are columns of their own."""


def answer_table(answers: Sequence[Prediction], kind: AnswerKind) -> Table:
    """A row for each answer, in order.

    >>> answer = Prediction("tea", "hot", -0.1, 1, {"label": "hot", "probabilities": {"hot": 0.9, "cold": 0.1}})
    >>> table = answer_table([answer], "classes")
    >>> table.columns, table.rows
    (['input', 'output', 'score', 'probability_hot', 'probability_cold'], [['tea', 'hot', -0.1, 0.9, 0.1]])
    """
    found: dict[str, list[Any]] = {
        "input": [answer.input for answer in answers],
        "output": [answer.output for answer in answers],
        "score": [answer.score for answer in answers],
    }
    details = [answer.detail for answer in answers]
    if kind == "classes":
        found |= _probabilities(details)
    elif kind == "tags":
        found |= _lists(details)
    elif kind == "numbers" and all(_is_numbers(detail.get("values")) for detail in details):
        width = max((len(detail["values"]) for detail in details), default=0)
        names = ["value"] if width == 1 else [f"value_{number}" for number in range(1, width + 1)]
        for number, name in enumerate(names):
            found[name] = [(detail["values"][number : number + 1] or [None])[0] for detail in details]
    elif kind == "likelihood":
        for name in ("nll", "perplexity"):
            if all(name in detail for detail in details):
                found[name] = [detail[name] for detail in details]
    return Table([*found], list(map(list, zip(*found.values(), strict=True))))


def _probabilities(details: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The probability of each class, where there are not too many of them."""
    known = [detail.get("probabilities") for detail in details]
    if not all(isinstance(each, dict) and all(isinstance(p, float) for p in each.values()) for each in known):
        return {}
    names = dict.fromkeys(name for each in known if each is not None for name in each)
    if len(names) > MOST_CLASSES:
        return {}
    return {f"probability_{name}": [each.get(name) for each in known if each is not None] for name in names}


def _lists(details: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The tokens and their tags, each a list."""
    names = dict.fromkeys(name for detail in details for name, value in detail.items() if _is_texts(value))
    return {name: [detail.get(name) for detail in details] for name in names}


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_numbers(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, int | float) for part in value)
