"""Lines of a pipe as they arrive: whoever reads them can tell whether the next one is there already."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator

from recurra.data import files

CHUNK = 1 << 16


class Arriving:
    """The lines of an open file, as bytes without their end.

    `before_waiting` is called before each wait for more, so that answers to earlier lines are not held back: whoever
    writes to the pipe may be waiting for them.
    """

    def __init__(self, descriptor: int, before_waiting: Callable[[], None] = lambda: None) -> None:
        self.descriptor = descriptor
        self.before_waiting = before_waiting
        self._whole: deque[bytes] = deque()  # lines that are complete
        self._rest: list[bytes] = []  # pieces of one that is not
        self._size = self._done = 0  # bytes of that one; lines that were complete
        self._is_over = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self.has_arrived():
            self.before_waiting()
            while not self._whole and not self._is_over:
                self._read()
        if not self._whole:
            raise StopIteration
        return self._whole.popleft()

    def has_arrived(self) -> bool:
        """Whether another whole line is there; it is never waited for."""
        while not self._whole and not self._is_over and self._can_be_read():
            self._read()
        return bool(self._whole)

    def _read(self) -> None:
        """Take what there is, or wait for it; what is left at the end is a line too."""
        chunk = os.read(self.descriptor, CHUNK)
        first, *others = chunk.split(b"\n")
        if first:
            self._rest.append(first)
            self._size += len(first)
        if self._size > files.LONGEST_LINE:
            raise files.too_long("standard input", self._done + 1)
        for other in others:
            self._whole.append(b"".join(self._rest))
            self._rest, self._size = [other] if other else [], len(other)
            self._done += 1
        if not chunk:
            self._is_over = True
            if self._rest:
                self._whole.append(b"".join(self._rest))

    def _can_be_read(self) -> bool:
        if sys.platform == "win32":  # which can ask this of sockets alone: each line is then answered by itself
            return False
        return bool(select.select([self.descriptor], [], [], 0)[0])
