"""`recurra serve`: runs to a server that listens."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from recurra.errors import ConfigError, RecurraError
from recurra.runtime.access import access
from recurra.runtime.access_log import access_log
from recurra.runtime.application import application
from recurra.runtime.batching import COMPUTING
from recurra.runtime.hosted import Hosted, hosted
from recurra.runtime.limits import Limits, listening
from recurra.runtime.reloading import Reloading
from recurra.runtime.service import Service

WARMED = 4
"""Runs that answer a sample when the server starts; others are read when they are asked first."""

SWITCHING = 0.0005
"""Seconds for which a thread that computes may keep another one from Python's interpreter: the loop asks for it at each
part of a request, and with Python's own 5 ms 64 requests would wait for a third of a second."""


class Serving(NamedTuple):
    """Where and how runs are served."""

    host: str = "127.0.0.1"
    port: int = 8642
    names: tuple[str, ...] = ()  # of the server, by which clients may call it
    token_file: str | None = None
    log: str | None = None  # a file for the access log; "-": standard error
    reload: bool = False  # whether runs that were trained again are loaded without being told
    deadline: float = Limits().deadline_seconds
    queued: int = Limits().queued
    grace: int = Limits().ending_seconds

    def limits(self) -> Limits:
        for name, value in (("--deadline", self.deadline), ("--queue", self.queued), ("--grace", self.grace)):
            if not 0 < value <= 86400:
                raise ConfigError(f"{name} must be a number above 0 and at most 86400, but is {value:g}.")
        return Limits(deadline_seconds=self.deadline, queued=self.queued, ending_seconds=self.grace)


def usable(runs: Mapping[str, Hosted]) -> dict[str, Hosted]:
    """The runs that can be served; of the others it is said why not, unless there are only such."""
    found, refusals = dict[str, Hosted](), list[RecurraError]()
    for name, run in runs.items():
        try:
            _ = run.about
            found[name] = run
        except RecurraError as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    for refusal in refusals:
        print(f"recurra: not served: {refusal}", file=sys.stderr)
    return found


def serve(
    given: list[str],
    how: Serving = Serving(),  # noqa: B008  # it cannot be changed
    *,
    device: str = "cpu",
    trust: bool = False,
    said: Callable[[str], None] = print,
) -> None:
    """Answer until Ctrl-C."""
    limits, allowed = how.limits(), access(how.host, how.names, how.token_file)
    runs = hosted(given, device=device, trust=trust)
    if not all(run.is_exported for run in runs.values()):
        import torch

        from recurra.training.device import usable_device

        torch.set_num_threads(1)  # quicker for a row or a beam; and answers and explanations have a thread each
        usable_device(device, f"--device '{device}'")
    sys.setswitchinterval(SWITCHING)
    service = Service(usable(runs), limits=limits)
    service.is_ready = False
    log = access_log(how.log) if how.log is not None else lambda _: None

    def warm() -> None:
        for run in list(service.runs.values())[:WARMED]:
            try:
                service.warm(run)
            except Exception as error:  # whoever asks it is told the same
                print(f"recurra: {run.name}: {error}", file=sys.stderr)
        service.is_ready = True

    threading.Thread(target=warm, name=COMPUTING, daemon=True).start()
    reloading = Reloading(service, is_watching=how.reload)
    reloading.start()
    app = application(service, access=allowed, log=log)
    with _hung_up(reloading.now):
        listening(app, host=how.host, port=how.port, said=said, limits=limits)


@contextlib.contextmanager
def _hung_up(act: Callable[[], None]) -> Iterator[None]:
    """Inside, SIGHUP calls a function, where there is such a signal."""
    number = getattr(signal, "SIGHUP", None)
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(number, before)
