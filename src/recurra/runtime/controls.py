"""How a run may be asked to answer: the settings of [decoding]."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from recurra.errors import ConfigError
from recurra.named import did_you_mean
from recurra.runtime.effort import MOST, check_most

UNASKED = ("exhaustive", "given")
"""Searches that a page does not offer: one tries up to two million sequences, the other needs a target."""


class Control(NamedTuple):
    """A setting of [decoding] as a page offers it."""

    name: str
    kind: Literal["choice", "integer", "number", "boolean", "text", "list"]
    value: Any  # as the run has it
    optional: bool  # may be null
    choices: list[str]
    most: int | None  # a number, letters or items
    about: str


def controls(decoding: Any) -> list[Control]:
    """What may be changed about how a trained model answers: its settings of [decoding], None without any."""
    if decoding is None:
        return []
    hints = _hints_of(decoding.__class__)
    return [
        _control(field.name, hints[field.name], getattr(decoding, field.name), field.metadata["about"])
        for field in decoding.__dataclass_fields__.values()
    ]


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    """The types of its fields; each is a text that Python compiles when it is asked."""
    return get_type_hints(kind)


def _control(name: str, hint: Any, value: Any, about: str) -> Control:
    optional = get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)
    if optional:
        [hint] = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is Literal:
        choices = [each for each in get_args(hint) if each not in UNASKED or each == value]
        return Control(name, "choice", value, optional, choices, None, about)
    kinds: dict[Any, Any] = {bool: "boolean", int: "integer", float: "number", str: "text"}
    return Control(name, kinds.get(hint, "list"), value, optional, [], MOST.get(name), about)


def overrides(decoding: Any, asked: object) -> dict[str, object]:
    """What was asked of [decoding], in the order of the names, each a setting that the model has."""
    if not isinstance(asked, Mapping):
        raise ConfigError('"decoding" must be an object with settings, such as {"width": 3}.')
    if not asked:
        return {}
    known = {each.name: each for each in controls(decoding)}
    for name, value in asked.items():
        if name not in known:
            why = "" if "search" in known else ": this model does not use a search"
            known_names = did_you_mean(name, list(known)) if known else "Leave it out."
            raise ConfigError(f'"decoding" has no "{name}"{why}. {known_names}')
        if known[name].kind == "choice" and value in UNASKED and value not in known[name].choices:
            raise ConfigError(
                f'"{name}" = "{value}" is available only in `recurra predict`, because it can take too long here.'
            )
        check_most(name, value)
        is_plain = value is None or isinstance(value, str | int | float)
        if not is_plain and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise ConfigError(f'"{name}" must be a number, a text or a list of texts, but is {value!r:.60}.')
    return dict(sorted(asked.items()))
