"""Tables that are read once, however often they are asked for while a run is prepared.

A run looks at its training table to resolve its settings, to learn scales, to encode series and to hold some out: each
needs all rows. Within `tables_read_once` a table is kept from the first reading on, and dropped at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from recurra.config import ForecastingData
from recurra.reading.panel import Panel

_KEPT: ContextVar[dict[object, Panel] | None] = ContextVar("tables that were read", default=None)


@contextmanager
def tables_read_once() -> Iterator[None]:
    """Inside, each table that stays as it is is read once."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def panel_read_once(path: str | os.PathLike[str], data: ForecastingData, read: Callable[[], Panel]) -> Panel:
    """The panel of a table: one that is kept, or what `read` gives."""
    kept = _KEPT.get()
    if kept is None:
        return read()
    try:
        found = os.stat(path)
    except OSError:  # which reading tells in better words
        return read()
    file = os.path.abspath(path), found.st_ino, found.st_size, found.st_mtime_ns
    columns = data.time, data.series, data.values, data.covariates, data.words
    key = repr([file, columns, data.format, data.columns, data.missing, data.has_coming, data.timezone])
    if key not in kept:
        kept[key] = read()
    return kept[key]
