"""`recurra serve`: the page and the JSON API behind it, for this machine alone."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import recurra
from recurra.data.formats.jsonl import DECODER, Refusal
from recurra.errors import CheckpointError, RecurraError, TrustError, is_lack_of_memory
from recurra.named import did_you_mean
from recurra.runtime.guard import MISTAKE, Guard
from recurra.runtime.hosted import TYPES, Hosted, hosted, siblings
from recurra.runtime.limits import COMPUTING, Limits, beside, listening
from recurra.runtime.openapi import described
from recurra.text.json_file import json_text

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

DEEPEST = 16
"""Lists and objects in each other."""

WARMED = 4
"""Runs that answer a sample when the server starts; others are read when they are asked first."""


def application(runs: Mapping[str, Hosted], *, limits: Limits | None = None) -> Guard:
    """The page and its API over some runs."""
    turns: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
    beside_it = siblings(runs)

    async def listed(_: Request) -> Response:
        found = [{**run.about, "siblings": beside_it[name]} for name, run in runs.items()]
        return JSONResponse({"version": recurra.__version__, "runs": found})

    async def samples(request: Request) -> Response:
        run = run_of(request)
        return await answered(request, lambda: {"samples": run.samples()}, turns[run.name, "samples"])

    async def predict(request: Request) -> Response:
        run, asked = run_of(request), await body(request, {"inputs": list, "decoding": dict, "raw": bool})
        options = {"raw": True} if asked.get("raw") else {}
        compute = partial(run.predict, asked.get("inputs"), asked.get("decoding", {}), **options)
        return await answered(request, compute, turns[run.name, "answers"])

    async def explain(request: Request) -> Response:
        known = {"input": object, "decoding": dict, "show": list, "layer": int, "direction": str, "best": int}
        run, asked = run_of(request), await body(request, {**known, "raw": bool})
        options = {name: asked[name] for name in ("show", "layer", "direction", "best", "raw") if name in asked}
        compute = partial(run.explain, asked.get("input"), asked.get("decoding", {}), **options)
        return await answered(request, compute, turns[run.name, run.way(options.get("show"))])

    async def generate(request: Request) -> Response:
        run, asked = run_of(request), await body(request, {"prompt": object, **dict.fromkeys(TYPES, object)})
        compute = partial(run.generate, asked.pop("prompt", ""), asked)
        return await answered(request, compute, turns[run.name, "answers"])

    async def description(_: Request) -> Response:
        return JSONResponse(described(list(runs)))

    def run_of(request: Request) -> Hosted:
        name = request.path_params["run"]
        if name not in runs:
            raise HTTPException(404, f"there is no run '{name}' here. {did_you_mean(name, list(runs))}")
        return runs[name]

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/page/{name}", page),
            Route("/openapi.json", description),
            Route("/api/runs", listed),
            Route("/api/runs/{run:path}/samples", samples),
            Route("/api/runs/{run:path}/predict", predict, methods=["POST"]),
            Route("/api/runs/{run:path}/explain", explain, methods=["POST"]),
            Route("/api/runs/{run:path}/generate", generate, methods=["POST"]),
        ],
        exception_handlers={HTTPException: said, Exception: mistaken},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False
    return Guard(app, limits or Limits())


async def said(request: Request, error: HTTPException) -> Response:
    """What is wrong with a request, in a sentence."""
    detail, headers = error.detail, dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
        detail = f"{request.method} is not allowed at {request.url.path}: use {headers['Allow']}."
    elif error.status_code == 404 and detail == "Not Found":
        detail = f"{request.url.path} does not exist: /openapi.json lists all paths."
    return JSONResponse({"error": detail}, status_code=error.status_code, headers=headers)


async def mistaken(_: Request, __: Exception) -> Response:
    """For the client; what it is about, the guard says where the server was started."""
    return JSONResponse({"error": MISTAKE}, status_code=500)


async def page(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params.get("name", "index.html")
    kind = KINDS.get("." + name.rpartition(".")[2])
    if kind is None or name not in files_of_page():
        raise HTTPException(404)
    return Response((resources.files("recurra") / "page" / name).read_bytes(), media_type=kind)


def files_of_page() -> set[str]:
    return {each.name for each in (resources.files("recurra") / "page").iterdir() if each.is_file()}


async def body(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """What a request asks with. It has to be called JSON, which a form of another site cannot do."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send JSON with the header Content-Type: application/json.")
    try:
        raw = await request.body()
    except ClientDisconnect:
        raise _gone() from None
    return await beside(partial(parsed, raw, known))


def _gone() -> HTTPException:
    return HTTPException(400, "the client has disconnected.")  # no one reads it


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


async def answered(request: Request, compute: Callable[[], object], turn: asyncio.Lock) -> Response:
    """What is computed when it is its turn, beside the loop that answers others; a mistake is a sentence."""
    async with turn:
        if await request.is_disconnected():  # typed on meanwhile
            raise _gone()
        try:
            content = await beside(lambda: rendered(compute()))
        except (CheckpointError, TrustError) as error:
            raise HTTPException(500, str(error)) from error
        except RecurraError as error:
            raise HTTPException(400, str(error)) from error
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            raise HTTPException(507, "out of memory: send fewer or shorter inputs.") from error
    return Response(content, media_type="application/json")


def rendered(found: object) -> bytes:
    """JSON; a number that is not finite is null."""
    return json_text(found, separators=(",", ":")).encode("utf-8", "replace")


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
    given: list[str], *, port: int, device: str = "cpu", trust: bool = False, said: Callable[[str], None] = print
) -> None:
    """Answer on 127.0.0.1 until Ctrl-C."""
    runs = hosted(given, device=device, trust=trust)
    if not all(run.is_exported for run in runs.values()):
        import torch

        from recurra.training.device import usable_device

        torch.set_num_threads(1)  # quicker for a row or a beam; and answers and explanations have a thread each
        usable_device(device, f"--device '{device}'")
    runs = usable(runs)

    def warm() -> None:
        for run in list(runs.values())[:WARMED]:
            try:
                run.warm()
            except (RecurraError, MemoryError, RuntimeError) as error:
                print(f"recurra: {run.name}: {error}", file=sys.stderr)  # whoever asks it is told the same

    threading.Thread(target=warm, name=COMPUTING, daemon=True).start()
    listening(application(runs), port=port, said=said)
