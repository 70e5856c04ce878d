"""What a config file is made of: values as TOML writes them, and the line on which one stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recurra.errors import ConfigError
from recurra.opening import read_file

MOST_PARSED = 1 << 18
"""Bytes of a config file, and characters parsed to find a line in it; beyond, errors come without a line."""

MOST_VALUES = 100_000
"""Values of a config file: no settings take as many."""


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


_TEXT = (
    r'''(?s)"""(?:[^"\\]|\\.|"(?!""))*+"{0,5}+|"(?:[^"\\\n]|\\.)*+"?+'''
    r"""|'''(?:[^']|'(?!''))*+'{0,5}+|'[^'\n]*+'?+|\#[^\n]*+"""
)
"""A string or a comment; one without an end takes the rest of its line or file, so that no end is sought twice."""

_DOTTED = r"[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++)*+"

_STATEMENT = r"""\s*(?:$|\#|\[|(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')\s*[.=])"""
"""What the first line of a statement begins with."""


def excess(text: str) -> str | None:
    """Why tomllib would need long for a text; none where it would not.

    A dotted key takes time that grows with the square of its parts. Values end in a comma or at the end of a line.

    >>> excess("a.b = 'c'"), excess("a" + ".b" * 40 + " = 1"), excess(f"a = '{'b.' * 40}'")
    (None, 'is nested too deeply: a key has more than 32 parts', None)
    >>> excess("a = [" + "[]," * 200_000 + "]")
    'holds more than 100,000 values, so it is not a config file'
    """
    is_plain = '"""' not in text and "'''" not in text  # no string goes on from one line to the next
    is_short = text.count(",") + text.count("\n") <= MOST_VALUES
    if is_plain and is_short and all(line.count(".") < 32 for line in text.split("\n")):
        return None
    without_strings = re.sub(_TEXT, "s", text)
    if any(found[0].count(".") >= 32 for found in re.finditer(_DOTTED, without_strings)):
        return "is nested too deeply: a key has more than 32 parts"
    if without_strings.count(",") + without_strings.count("\n") > MOST_VALUES:
        return f"holds more than {MOST_VALUES:,} values, so it is not a config file"
    return None


def line_of(path: Path, keys: Sequence[str]) -> int | None:
    """The line of a config file that gives a key its value; none where it gives it none.

    The lines before it are the longest beginning of the file that is TOML without that key.
    """
    try:
        lines = read_file(path, MOST_PARSED).decode("utf-8-sig").replace("\r\n", "\n").split("\n")
        found = _inside(tomllib.loads("\n".join(lines)), keys)
    except (OSError, ValueError, RecursionError):
        return None
    if not found:
        return None
    without, having, parsed = 0, len(lines), 0
    while having - without > 1:
        middle = end = (without + having) // 2
        beginning: Mapping[str, Any] | None = None
        while end < having:
            if re.match(_STATEMENT, lines[end]):  # other beginnings end in the midst of a statement
                text = "\n".join(lines[:end])
                parsed += len(text)
                if parsed > MOST_PARSED:
                    return None
                if (beginning := _table(text)) is not None:
                    break
            end += 1
        if end == having or _inside(beginning, keys):
            having = middle
        else:
            without = end
    return without + 1


def _table(text: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _inside(table: object, keys: Sequence[str]) -> list[Any]:
    """What a table has under some keys, in a list; an empty one where it has nothing."""
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return []
        table = table[key]
    return [table]
