"""JSON on disk: written whole or not at all, and read with a sentence about whatever is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path

from recurra.errors import DataError


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write a value as UTF-8 JSON, an item a line; a reader sees the old file or the new one, never half of it."""
    text = json.dumps(value, ensure_ascii=False, indent=0) + "\n"
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


def read_json(path: str | os.PathLike[str]) -> object:
    """The value that a JSON file holds; a DataError says why there is none."""
    try:
        value: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} cannot be read.") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: this is not JSON ({error.msg}). The file may be cut short.") from error
    except RecursionError as error:
        raise DataError(f"{path} is JSON nested too deeply to be read.") from error
    return value
