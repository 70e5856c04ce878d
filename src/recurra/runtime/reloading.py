"""Runs that are trained again while they are served: the new one is made ready, and then takes the place of the old."""

from __future__ import annotations

import sys
import threading
from typing import TypeAlias

from recurra.errors import RecurraError
from recurra.manifest import MANIFEST
from recurra.runtime.batching import COMPUTING, IDLE
from recurra.runtime.hosted import Hosted
from recurra.runtime.service import Service
from recurra.training.loading import EXPORT, MODEL
from recurra.training.run_names import folders

EVERY = 2.0
"""Seconds between two looks."""

FILES = (MANIFEST, "config.toml", MODEL, EXPORT)

Stamp: TypeAlias = list[tuple[int, int, int]]


def stamp_of(run: Hosted) -> Stamp:
    """What changes when a run has been written anew."""
    found = []
    for folder in folders(run.given):
        for name in FILES:
            try:
                about = (folder / name).stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((about.st_ino, about.st_size, about.st_mtime_ns))
    return found


class Reloading:
    """Looks at the folders of the runs, every two seconds if `is_watching`, and else when it is told to."""

    def __init__(self, service: Service, *, is_watching: bool) -> None:
        self.service = service
        self.is_watching = is_watching
        self._told = threading.Event()
        self._stamps = {name: stamp_of(run) for name, run in service.runs.items()}
        self._changed: dict[str, Stamp] = {}  # seen once: perhaps it is still being written
        self._failed: dict[str, Stamp] = {}

    def start(self) -> None:
        threading.Thread(target=self._watch, name=IDLE, daemon=True).start()

    def now(self) -> None:
        """Look at once; may be called by a signal."""
        self._told.set()

    def _watch(self) -> None:
        thread = threading.current_thread()
        while True:
            self._told.wait(EVERY if self.is_watching or self._changed else None)
            self._told.clear()
            thread.name = COMPUTING
            self.look()
            thread.name = IDLE

    def look(self) -> None:
        """Load each run whose files have changed, and have not since the last look."""
        for name in list(self.service.runs):
            stamp = stamp_of(self.service.runs[name])
            if stamp in (self._stamps[name], self._failed.get(name)):
                self._changed.pop(name, None)
            elif self._changed.get(name) == stamp:
                del self._changed[name]
                self._load(name, stamp)
            else:
                self._changed[name] = stamp

    def _load(self, name: str, stamp: Stamp) -> None:
        old = self.service.runs[name]
        new = Hosted(name, old.given, device=old.device, trust=old.trust)
        try:
            _ = new.about
            self.service.warm(new)
            if stamp_of(new) != stamp:  # written meanwhile: the next look sees it
                raise RecurraError(f"{name}: its files have changed while they were read.")
        except Exception as error:  # the old run answers whatever is wrong with the new one
            self._failed[name] = stamp
            self.service.forget(new)
            self.service.metrics.reloads.add(run=name, result="failed")
            print(f"recurra: {name} goes on as it was: {error}", file=sys.stderr, flush=True)
        else:
            self._stamps[name] = stamp
            self.service.replace(name, new)
            self.service.metrics.reloads.add(run=name, result="loaded")
            print(f"recurra: {name} has been loaded again.", file=sys.stderr, flush=True)
