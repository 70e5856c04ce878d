"""Open files that have an end: a device can be read for ever, and a named pipe waits for a writer."""

from __future__ import annotations

import os
import re
import stat
from typing import BinaryIO

HANDED_OVER = r"/dev/stdin|/dev/fd/\d+|/proc/(self|\d+)/fd/\d+"
"""What a shell hands over, as <(zcat file) does: these may be pipes and terminals, for somebody writes to them."""


SMALL = 1 << 22
"""Bytes of a file that describes a run: no summary and no scales of numbers take as many."""


class NoFile(OSError):
    """What is there is no file that can be read to its end."""

    def __init__(self, what: str) -> None:
        super().__init__(0, f"it is {what}, not a file")


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading bytes; OSError as open raises it, NoFile for a device, a socket or a named pipe."""
    return open(path, "rb", opener=_opened)


class TooLarge(OSError):
    """There is more in a file than anything of its kind has."""

    def __init__(self, most: int) -> None:
        super().__init__(0, f"it is larger than {most:,} bytes")


def read_file(path: str | os.PathLike[str], most: int = SMALL) -> bytes:
    """What a file holds; TooLarge, and little memory used, where that is more than so many bytes."""
    with open_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLarge(most)
    return content


def _opened(path: str, flags: int) -> int:
    # Without O_NONBLOCK, to open a named pipe is to wait for somebody who writes to it.
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(number).st_mode
        if (what := _special(mode)) is not None and re.fullmatch(HANDED_OVER, os.fspath(path)) is None:
            raise NoFile(what)
        if hasattr(os, "set_blocking") and not stat.S_ISDIR(mode):
            os.set_blocking(number, True)
    except OSError:
        os.close(number)
        raise
    return number


def _special(mode: int) -> str | None:
    """What a file is that need not have an end; None for files and folders."""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else None
