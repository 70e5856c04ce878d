"""JSON on disk: written whole or not at all, and read with a sentence about whatever is wrong."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recurra.errors import DataError
from recurra.opening import read_file

LARGEST, MOST_PARTS = 1 << 26, 1_000_000
"""Bytes of a JSON file, and lists and objects in it: no vocabulary and no tokenizer takes as many."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?+', re.DOTALL)


def json_text(
    value: object,
    *,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    default: Callable[[Any], object] | None = None,
) -> str:
    """A value as JSON that every reader takes: JSON has no NaN and no infinity, so what is not finite is null.

    `default` is as in json.dumps: what stands for a value that JSON does not have.

    >>> json_text({"mean": float("nan"), "scores": (0.5, float("inf"))})
    '{"mean": null, "scores": [0.5, null]}'
    """
    write = partial(
        json.dumps, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators, default=default
    )
    try:
        return write(value)
    except ValueError:  # most values are finite: only others are gone through
        return write(_finite(value, default))


def _finite(value: object, default: Callable[[Any], object] | None) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each, default) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each, default) for each in value]
    if default is None or value is None or isinstance(value, str | int):
        return value
    return _finite(default(value), default)


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write a value as UTF-8 JSON, an item a line; a reader sees the old file or the new one, never half of it."""
    import secrets  # and all that draws random numbers: whoever only reads does without

    text = json_text(value, indent=0) + "\n"
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(unfinished, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str], *, most: int = LARGEST) -> object:
    """The value that a JSON file of at most so many bytes holds; a DataError says why there is none."""
    try:
        content = read_file(path, most)
        if _parts(content) > MOST_PARTS and _parts(_STRING.sub(b"", content)) > MOST_PARTS:
            raise DataError(f"{path} cannot be read: it has more than {MOST_PARTS:,} lists and objects.")
        value: object = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} cannot be read.") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: this is not JSON ({error.msg}). The file may be cut short.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DataError(f"{path} cannot be read ({error}).") from error
    except RecursionError as error:
        raise DataError(f"{path} is JSON nested too deeply to be read.") from error
    return value


def _parts(content: bytes) -> int:
    return content.count(b"[") + content.count(b"{")
