"""Texts that are sent as they are written: all that are under way take turns, one piece each."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator

from recurra.runtime.batching import COMPUTING, IDLE, LINGER, Busy, Late, Waiting, tell

Pieces = Iterator[str]


class Stream(Waiting[Callable[[], Pieces], None]):
    """A text that is to be written, and whoever is told its pieces; the future says how it has ended."""

    def __init__(self, pieces: Callable[[], Pieces], told: Callable[[str], None], seconds: float) -> None:
        super().__init__(pieces, 1, time.monotonic() + seconds)
        self.told = told
        self.seconds = seconds
        self.begun: Pieces | None = None
        self.is_given_up = False

    def give_up(self) -> None:
        """No one reads it any longer."""
        self.is_given_up = True
        self.future.cancel()  # where it has not begun


class Streams:
    """The texts of one model, and the thread that writes them.

    A long text keeps no other one waiting, however many are under way: each has a piece, then the next. No more are
    begun than `most` at a time.

    >>> found = []
    >>> streams = Streams()
    >>> streams.ask(lambda: iter("abc"), found.append, seconds=10).future.result()
    >>> found
    ['a', 'b', 'c']
    """

    def __init__(self, most: int = 64) -> None:
        self.most = most
        self._under_way: deque[Stream] = deque()
        self._changed = threading.Condition()
        self._is_running = False

    def __len__(self) -> int:
        """Those that wait for their first turn."""
        return sum(each.begun is None for each in tuple(self._under_way))

    def ask(self, pieces: Callable[[], Pieces], told: Callable[[str], None], *, seconds: float) -> Stream:
        """Write a text within some seconds; Busy where too many are under way."""
        with self._changed:
            if len(self._under_way) >= self.most:
                raise Busy("too many texts are being written by this run: try again later.")
            stream = Stream(pieces, told, seconds)
            self._under_way.append(stream)
            if self._is_running:
                self._changed.notify()
            else:
                self._is_running = True
                threading.Thread(target=self._work, name=IDLE, daemon=True).start()
        return stream

    def _work(self) -> None:
        thread = threading.current_thread()
        while (stream := self._next()) is not None:
            thread.name = COMPUTING
            has_ended = self._advance(stream)
            with self._changed:
                self._under_way.popleft()
                if not has_ended:
                    self._under_way.append(stream)
            thread.name = IDLE
            del stream

    def _next(self) -> Stream | None:
        """The text whose turn it is; None where no one has asked for long, and the thread is to end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._under_way, LINGER):
                self._is_running = False
                return None
            return self._under_way[0]

    def _advance(self, stream: Stream) -> bool:
        """Write one piece. Whether the text has ended."""
        try:
            if stream.begun is None:
                if not stream.future.set_running_or_notify_cancel():
                    return True
                stream.waited, stream.together = time.monotonic() - stream.since, len(self._under_way)
                stream.begun = stream.asked()
            if stream.is_given_up:
                _close(stream.begun)
                stream.future.set_result(None)
                return True
            if time.monotonic() >= stream.deadline:
                _close(stream.begun)
                raise Late(f"the text was not written within {stream.seconds:g} seconds.")
            stream.told(next(stream.begun))
        except StopIteration:
            stream.future.set_result(None)
            return True
        except BaseException as error:
            tell(stream.future, error)
            return True
        return False


def _close(pieces: Pieces) -> None:
    if isinstance(pieces, Generator):
        pieces.close()
