"""JSONL: one JSON object a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from recurra.data.files import PathLike, lines
from recurra.data.formats import values
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError


class JSONL(Reader):
    """One row a line, with the object's keys, or with those that columns names: a list, or a table of name = "key".

    Arrays may be nested three deep, as pen strokes are; true and false are read as those words.
    """

    extensions = ("jsonl", "ndjson", "json")
    cut_at = "line"

    def __init__(self, *, columns: Mapping[str, str] | Sequence[str] | None = None) -> None:
        self.columns = values.wanted(columns)

    def read(self, path: PathLike) -> Iterator[Row]:
        blank = 0
        for number, line in lines(path):
            if not line.strip():
                blank = blank or number
                continue
            if blank:
                raise DataError(
                    f"{path}:{blank}: this line is blank, and more lines follow. Blank lines are allowed only at "
                    "the end of the file: remove it."
                )
            place = f"{path}:{number}"
            found = parsed_object(place, line)
            roles = self.columns or {key: key for key in found}
            for key in roles.values():
                if key not in found:
                    raise values.missing(place, key, list(found))
            yield Row({role: values.value(found[key], key, place) for role, key in roles.items()}, number)


class Refusal(Exception):
    """What Python's json takes, but JSON or we do not: NaN, a name twice in one object, a number beyond all floats."""


def parsed_object(place: str, line: str) -> dict[str, object]:
    """The object of a line, or a DataError that says what is wrong with it."""
    try:
        found = DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{place}: this is not JSON ({error.msg.lower()} at column {error.colno}). Each line holds one "
            f'object such as {{"text": "…", "label": "…"}}.'
        ) from error
    except Refusal as error:
        raise DataError(f"{place}: {error}") from error
    except RecursionError as error:
        raise DataError(f"{place}: the value is nested deeper than {values.DEEPEST} levels.") from error
    if not isinstance(found, dict):
        kind = "an array" if isinstance(found, list) else f"{line.strip()[:40]}"
        raise DataError(
            f'{place}: found {kind}, but each line must hold one object such as {{"text": "…", "label": "…"}}. '
            f"If the file is one array of objects, write each on a line of its own."
        )
    if not found:
        raise DataError(f"{place}: the object is empty. Remove the line, or give it a value.")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise Refusal(f"the key '{twice:.60}' occurs twice in one object. Keep one of them.")
    return found


def _no_constant(name: str) -> float:
    raise Refusal(f"{name} is not JSON. Write null where a number is missing.")


def _whole(digits: str) -> int:
    if len(digits) > 309:  # more digits than the largest float
        raise Refusal(f"the number {digits[:12]}… of {len(digits)} digits is too large.")
    return int(digits)


def _number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Refusal(f"the number {text[:24]} is too large.")
    return number


DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole, parse_float=_number)
