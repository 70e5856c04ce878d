"""Ctrl-C and SIGTERM in a training: after the present step, or at once where nothing can be lost."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, final

from recurra.interrupts import PATIENCE_SECONDS, SHORT_PATIENCE_SECONDS, LastWords, watch_of_this_command

STEP_PATIENCE_SECONDS = 1.0
"""After Ctrl-C, so long a step may go on to its end."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C came, and everything is saved."""


@final
class Stop:
    """What Ctrl-C and SIGTERM ask for: to stop after the present step, or at once where nothing can be lost."""

    def __init__(self) -> None:
        self.is_asked = False
        self.watch = watch_of_this_command()
        self._is_at_once = self._is_in_step = False
        self._patience = threading.Timer(STEP_PATIENCE_SECONDS, self._cut_short)
        self._patience.daemon = True

    def ask(self, number: int, _frame: Any) -> None:
        """The signal has come; the second Ctrl-C stops at once wherever it comes."""
        was_asked, self.is_asked = self.is_asked, True
        if self._is_at_once or (was_asked and number == signal.SIGINT):
            raise KeyboardInterrupt
        if not was_asked:
            self._patience.start()

    def _cut_short(self) -> None:
        """A step that still goes on a moment later is not waited for."""
        if self._is_in_step and hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # which also ends a wait
        elif self._is_in_step:
            _thread.interrupt_main(signal.SIGINT)

    def saying(self, last_words: LastWords, patience: float = PATIENCE_SECONDS) -> AbstractContextManager[None]:
        """Inside, a command that Ctrl-C has to end in the middle of a long call of C ends with these words."""
        return contextlib.nullcontext() if self.watch is None else self.watch.saying(last_words, patience)

    @contextlib.contextmanager
    def in_step(self, last_words: LastWords) -> Iterator[None]:
        """Inside, Ctrl-C raises KeyboardInterrupt after a moment."""
        self._is_in_step = True
        try:
            with self.saying(last_words):
                yield
        finally:
            self._is_in_step = False

    @contextlib.contextmanager
    def at_once(self, last_words: LastWords) -> Iterator[None]:
        """Inside, Ctrl-C raises KeyboardInterrupt at once; also one that came just before."""
        self._is_at_once = True
        try:
            if self.is_asked:
                raise KeyboardInterrupt
            with self.saying(last_words, SHORT_PATIENCE_SECONDS):
                yield
        finally:
            self._is_at_once = False


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM as a Stop, which does not cut a step in half unless the step takes long."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stop.saying(lambda: None):  # except where in_step or at_once says otherwise, something may be written
            yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
