"""The access log: a line of JSON for each request, with what it took and without what was asked."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from recurra.errors import ConfigError
from recurra.runtime.application import TELLS, run_and_endpoint
from recurra.runtime.batching import Waiting
from recurra.runtime.guard import Ended

LONGEST = 200
"""Letters of a path that are written."""


def access_log(file: str) -> Callable[[Ended], None]:
    """What writes a line for a request at the end of a file, or to standard error for "-"."""
    try:
        out = 2 if file == "-" else os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError as error:
        raise ConfigError(f"--access-log {file} cannot be written: {error.strerror}.") from error

    def write(ended: Ended) -> None:
        with contextlib.suppress(OSError):  # a full disk is no reason not to answer
            os.write(out, json.dumps(entry(ended)).encode() + b"\n")

    return write


def entry(ended: Ended) -> dict[str, Any]:
    """What is written of a request."""
    scope = ended.scope
    run, endpoint = run_and_endpoint(scope)
    client = scope.get("client")
    waiting: Waiting[Any, Any] | None = scope.get(TELLS)
    found = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "client": client[0] if client else "",
        "method": scope["method"],
        "path": scope["path"][:LONGEST],
        "status": ended.status,
        "bytes": ended.bytes,
        "seconds": round(ended.seconds, 6),
    }
    if endpoint:
        found["endpoint"] = endpoint
    if run:
        found["run"] = run[:LONGEST]
    if waiting is not None and waiting.waited is not None:
        found |= {"queued": round(waiting.waited, 6), "together": waiting.together}
    return found
