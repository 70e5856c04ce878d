"""Ctrl-C on the command line: a command ends within two seconds, also in the middle of one long call of C.

Python raises KeyboardInterrupt between two of its own instructions. A product of large matrices, or the gradient of a
long sequence, is one instruction of many seconds, so a thread watches for the signal too and ends the process when
Python does not come to it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn, TypeAlias, final

PATIENCE_SECONDS = 1.5
"""After Ctrl-C, so long the watching thread waits for Python to end the command by itself."""

SHORT_PATIENCE_SECONDS = 0.5
"""The same where a checkpoint is to be written afterwards, and all that is lost is a computation of scores."""

STATUS = 130
"""The exit status of a command that Ctrl-C has ended."""

LastWords: TypeAlias = Callable[[], str | None]
"""Makes ready for the end of the process, in the watching thread, and says in a sentence what is saved.

None: not now, for something is just being saved.
"""


def _stopped() -> str:
    return "stopped."


@final
class Watch:
    """The handler of Ctrl-C while a command runs; others find it by `watch_of_this_command`."""

    def __init__(self) -> None:
        self._last_words: LastWords = _stopped
        self._patience = PATIENCE_SECONDS
        self._is_over = threading.Event()

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        """Python has seen the signal."""
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def saying(self, last_words: LastWords, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
        """Inside, a process that has to be ended, so many seconds after Ctrl-C, ends with these words."""
        before = self._last_words, self._patience
        self._last_words, self._patience = last_words, patience
        try:
            yield
        finally:
            self._last_words, self._patience = before

    def look(self, signals: socket.socket) -> None:
        """Read the numbers of signals as they come, and end the process if Ctrl-C has not ended it soon after."""
        with signals:
            while seen := signals.recv(64):
                if signal.SIGINT in seen and not self._is_over.wait(self._patience):
                    try:
                        while (said := self._last_words()) is None:
                            if self._is_over.wait(0.05):
                                return
                    except Exception as error:  # such as a full disk
                        said = f"stopped, but the last steps could not be saved: {error}"
                    _end(said)

    def end(self) -> None:
        """The command is over."""
        self._is_over.set()


def _end(said: str) -> NoReturn:
    """End from the watching thread; what Python would do at its end needs the main thread, and is left out."""
    shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar has hidden the cursor
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        print(f"{shown}\nrecurra: {said}", file=sys.stderr, flush=True)
    os._exit(STATUS)


def leave() -> NoReturn:
    """End a command that Ctrl-C has stopped, without freeing its memory first, which takes long on a busy machine."""
    atexit._run_exitfuncs()  # temporary folders are removed
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(STATUS)


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt, or ends the process where that takes too long.

    Only where nothing else was made of Ctrl-C: a job in the background ignores it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    watch = Watch()
    signals, sender = socket.socketpair()
    sender.setblocking(False)
    threading.Thread(target=watch.look, args=[signals], name="watching for Ctrl-C", daemon=True).start()
    wake_up_before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, watch)
    try:
        yield
    finally:
        watch.end()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(wake_up_before)
        sender.close()  # which the watching thread sees as the end


def watch_of_this_command() -> Watch | None:
    """What handles Ctrl-C, where a command of ours runs; None in other programs, which are never ended."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if isinstance(handler, Watch) else None


@contextlib.contextmanager
def last_words(said: str) -> Iterator[None]:
    """Inside, a command that Ctrl-C ends says this, which tells what is saved."""
    watch = watch_of_this_command()
    try:
        with contextlib.nullcontext() if watch is None else watch.saying(lambda: said):
            yield
    except KeyboardInterrupt as stop:
        raise stop if str(stop) else KeyboardInterrupt(said) from None
