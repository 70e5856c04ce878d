"""What a config file is made of: values as TOML writes them, and the line on which one stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recurra.errors import ConfigError

LONGEST = 1000
"""Lines of a config file; in a longer one, errors come without a line."""


def toml_value(value: object) -> str:
    """A value as TOML writes it.

    >>> toml_value({"name": "lstm", "wrap": [{"name": "zoneout", "rate": 0.1}], "bias": True})
    '{name = "lstm", wrap = [{name = "zoneout", rate = 0.1}], bias = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)  # not that of numpy's own floats
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ConfigError("whole numbers must fit in 64 bits.")
        return int.__repr__(value)
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ConfigError(f"{shown(value)} is not valid Unicode.")
        # JSON escapes all that TOML must have escaped, but for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    try:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(toml_value, value)) + "]"
    except RecursionError as error:
        raise ConfigError("a setting is nested too deeply.") from error
    raise ConfigError(f"a setting must be a string, a number, true, false, a list or a table, but is {shown(value)}.")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"the keys of a table must be strings, but one is {shown(key)}.")
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def dotted(keys: Sequence[str]) -> str:
    """A name for an error message.

    >>> dotted(["model", "cell"]), dotted(["model", "odd key"])
    ('model.cell', 'model."odd key"')
    """
    return clipped(".".join(key if re.fullmatch(r"[\w-]+", key) else json.dumps(key) for key in keys))


def shown(value: object) -> str:
    """A value for an error message, whatever it is."""
    return "none" if value is None else clipped(written_out(value))


def written_out(value: object) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested very deeply, or a number of more than 4,300 digits
        return f"a {type(value).__name__} too large to show"


def clipped(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"


def line_of(path: Path, keys: Sequence[str]) -> int | None:
    """The line of a config file that gives a key its value; none where it gives it none.

    The lines before it are the longest beginning of the file that is TOML without that key.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").split("\n")
        found = _inside(tomllib.loads("\n".join(lines)), keys)
    except (OSError, ValueError, RecursionError):
        return None
    if not found or len(lines) > LONGEST:
        return None
    without, having = 0, len(lines)
    while having - without > 1:
        middle = (without + having) // 2
        end, beginning = _beginning(lines, middle, having)
        if _inside(beginning, keys) or end == having:
            having = middle
        else:
            without = end
    return without + 1


def _beginning(lines: Sequence[str], least: int, most: int) -> tuple[int, Mapping[str, Any]]:
    """The shortest beginning that is TOML, as a table: others end in the midst of a statement."""
    for end in range(least, most):
        try:
            return end, tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
    return most, {}


def _inside(table: object, keys: Sequence[str]) -> list[Any]:
    """What a table has under some keys, in a list; an empty one where it has nothing."""
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return []
        table = table[key]
    return [table]
