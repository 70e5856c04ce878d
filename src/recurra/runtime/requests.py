"""What a request says: its JSON, and the seconds in which it must be answered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from recurra.data.formats.jsonl import DECODER, Refusal
from recurra.named import did_you_mean
from recurra.runtime.limits import beside

DEEPEST = 16
"""Lists and objects in each other."""

LARGE = 1 << 16
"""Bytes from which JSON is read in a thread, so that no one else waits for it."""

DEADLINE = "x-deadline-seconds"
"""A header: the seconds within which a client wants its answer, where that is less than the server allows."""


async def body(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """What a request asks with. It has to be called JSON, which a form of another site cannot do."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send JSON with the header Content-Type: application/json.")
    try:
        raw = await request.body()
    except ClientDisconnect:
        raise gone() from None
    return parsed(raw, known) if len(raw) < LARGE else await beside(partial(parsed, raw, known))


def gone() -> HTTPException:
    """Of a client that has ended the connection."""
    return HTTPException(400, "the client has disconnected.")  # no one reads it


def seconds_for(request: Request, most: float) -> float:
    """In how many seconds a request must be answered."""
    given = request.headers.get(DEADLINE)
    if given is None:
        return most
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise HTTPException(400, f"{DEADLINE} must be a number of seconds above 0, but is {given[:40]!r}.")
    return min(found, most)


def parsed(raw: bytes, known: Mapping[str, type]) -> dict[str, Any]:
    """The JSON object of a request: known names of known types, and none that is null.

    >>> parsed(b'{"layer": 2, "best": null}', {"layer": int, "best": int})
    {'layer': 2}
    """
    try:
        found = DECODER.decode(raw.decode("utf-8"))
    except RecursionError as error:
        raise HTTPException(400, "this is not valid JSON: it is nested too deeply.") from error
    except (Refusal, ValueError) as error:
        raise HTTPException(400, f"this is not valid JSON: {str(error).rstrip('.')}.") from error
    if not isinstance(found, dict):
        raise HTTPException(400, "the request must be a JSON object.")
    if _is_deep(found, DEEPEST):
        raise HTTPException(400, f"lists and objects in a request can be nested at most {DEEPEST} levels deep.")
    for name, value in found.items():
        if name not in known:
            raise HTTPException(400, f"a request has no field '{name:.60}'. {did_you_mean(name, sorted(known))}")
        fits = isinstance(value, known[name]) and not (known[name] is int and isinstance(value, bool))
        if value is not None and not fits:
            kinds = {int: "a whole number", str: "a text", list: "a list", dict: "an object", bool: "true or false"}
            kind = kinds[known[name]]
            raise HTTPException(400, f'"{name}" is {kind}.')
    return {name: value for name, value in found.items() if value is not None}


def _is_deep(value: object, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most == 0 or any(_is_deep(each, most - 1) for each in inner if isinstance(each, dict | list))
