"""What `generate` is asked with, how it is checked, and which requests are written together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from recurra.errors import ConfigError, DataError, RecurraError
from recurra.runtime.effort import MOST, check_most
from recurra.runtime.inputs import LARGEST, checked
from recurra.training.answering import Answering

if TYPE_CHECKING:
    from recurra.generation.generated import Generated, Manner, TextSource

TEXTS = "texts"
"""The modules that write whole texts: neither answers nor streams wait for them."""

STREAMS = "streams"
"""The modules that write texts whose pieces are sent as they come."""

ROWS = 64
"""Texts that are written together for several requests."""

TYPES: dict[str, Any] = {
    "count": int,
    "seed": int,
    "length": int,
    "temperature": int | float,
    "top_k": int,
    "top_p": int | float,
    "until": str,
    "allow_unknown": bool,
}
"""How a text may be asked for."""

KINDS = {int: "a whole number", int | float: "a number", str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class Writing:
    """What `generate` is asked with."""

    prompt: object
    options: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Texts; 1 where it is not known yet whether that many may be asked for."""
        count = self.options.get("count", 1)
        return count if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST["count"] else 1


Written: TypeAlias = "tuple[int, dict[str, Any] | RecurraError]"
"""The number of a request, and its texts or what is wrong with it."""


class _Read(NamedTuple):
    """A request that the model can write."""

    number: int
    prompt: Any
    texts: int


def count_and_manner(options: Mapping[str, Any]) -> tuple[int, Manner]:
    """How many texts are to be written, and how."""
    from recurra.generation.generated import Manner

    options = dict(options)
    for name, value in options.items():
        kind = TYPES[name]
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise ConfigError(f'"{name}" must be {KINDS[kind]}, but is {value!r:.60}.')
        check_most(name, value)
        if kind is not str and abs(value) > LARGEST:
            raise ConfigError(f'"{name}" is too large.')
    count = options.pop("count", 1)
    if count < 1:
        raise ConfigError(
            f'"count", the number of texts, must be a whole number from 1 to {MOST["count"]}, but is {count}.'
        )
    return count, Manner(**options)


def prompt_for(model: Answering, prompt: object) -> Any:
    """A prompt as the model takes it."""
    given = checked(model.task, prompt)
    if model.task.schema().kind == "text" and not isinstance(given, str):
        raise DataError('"prompt" must be a text.')
    return given


def written(
    model: Answering, writer: Callable[[Manner], TextSource], asked: Sequence[Writing]
) -> Iterator[list[Written]]:
    """The number of each request with its texts, or what is wrong with it; those of one manner are written together.

    What is written for one depends on it alone. They come in parts as they are written.
    """
    alike: dict[Manner, list[_Read]] = {}
    refused: list[Written] = []
    for number, each in enumerate(asked):
        try:
            count, manner = count_and_manner(each.options)
            alike.setdefault(manner, []).append(_Read(number, prompt_for(model, each.prompt), count))
        except RecurraError as error:
            refused.append((number, error))
    if refused:
        yield refused
    for manner, group in alike.items():
        try:
            source = writer(manner)
        except RecurraError as error:
            yield [(each.number, error) for each in group]
        else:
            for part in _in_parts(group):
                yield _written(source, part)


def _in_parts(group: Sequence[_Read]) -> Iterator[list[_Read]]:
    part: list[_Read] = []
    for each in group:
        if part and sum(other.texts for other in part) + each.texts > ROWS:
            yield part
            part = []
        part.append(each)
    yield part


def _written(source: TextSource, part: Sequence[_Read]) -> list[Written]:
    """The texts of some requests; where they cannot be written together, each has its own error."""
    began = time.perf_counter()
    try:
        found = source.several([(each.prompt, each.texts) for each in part])
    except RecurraError as error:
        return [(part[0].number, error)] if len(part) == 1 else [_written(source, [each])[0] for each in part]
    seconds = round(time.perf_counter() - began, 6)
    return [
        (each.number, {"texts": [_as_json(text) for text in texts], "seconds": seconds})
        for each, texts in zip(part, found, strict=True)
    ]


def _as_json(text: Generated) -> dict[str, Any]:
    return {**text._asdict(), "log_probability": round(text.log_probability, 5)}
