"""`recurra serve`: the page and the JSON API behind it, for this machine alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import recurra
from recurra.errors import ConfigError, RecurraError
from recurra.named import did_you_mean
from recurra.runtime.hosted import Hosted
from recurra.runtime.openapi import described

MOST_BYTES = 16 << 20
"""Of the body of a request."""

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def application(runs: Mapping[str, Hosted], *, port: int) -> Starlette:
    """The page and its API over some runs. It answers to the names of this machine at a port alone."""

    async def listed(_: Request) -> Response:
        return JSONResponse({"version": recurra.__version__, "runs": [run.about() for run in runs.values()]})

    async def samples(request: Request) -> Response:
        return await answered(run_of(request).samples, name="samples")

    async def predict(request: Request) -> Response:
        asked = await body(request, {"inputs", "decoding"})
        return await answered(partial(run_of(request).predict, asked.get("inputs"), asked.get("decoding") or {}))

    async def explain(request: Request) -> Response:
        asked = await body(request, {"input", "decoding", "show", "layer", "direction", "best"})
        options = {name: asked[name] for name in ("show", "layer", "direction", "best") if asked.get(name) is not None}
        for name, kind in (("layer", int), ("best", int), ("direction", str), ("show", list)):
            if name in options and (not isinstance(options[name], kind) or isinstance(options[name], bool)):
                raise HTTPException(400, f'"{name}" is no {kind.__name__}.')
        explain = partial(run_of(request).explain, asked.get("input"), asked.get("decoding") or {}, **options)
        return await answered(explain)

    async def generate(request: Request) -> Response:
        known = {"prompt", "count", "seed", "length", "temperature", "top_k", "top_p", "until", "allow_unknown"}
        asked = await body(request, known)
        prompt = asked.pop("prompt", "")
        options = {name: value for name, value in asked.items() if value is not None}
        return await answered(partial(run_of(request).generate, prompt, options))

    async def description(_: Request) -> Response:
        return JSONResponse(described(list(runs)))

    def run_of(request: Request) -> Hosted:
        name = request.path_params["run"]
        if name not in runs:
            raise HTTPException(404, f"there is no run '{name}' here. {did_you_mean(name, list(runs))}")
        return runs[name]

    return Starlette(
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
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={HTTPException: said},  # type: ignore[dict-item]
    )


async def said(_: Request, error: HTTPException) -> Response:
    """What is wrong with a request, in a sentence."""
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


async def page(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params.get("name", "index.html")
    file = resources.files("recurra") / "page" / name
    kind = KINDS.get("." + name.rpartition(".")[2])
    if kind is None or "/" in name or "\\" in name or not file.is_file():
        raise HTTPException(404, f"there is no page '{request.url.path}'.")
    return Response(file.read_bytes(), media_type=kind)


async def body(request: Request, known: set[str]) -> dict[str, Any]:
    """The JSON object of a request, of which only known names are taken."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "ask with JSON, and say so: Content-Type: application/json.")
    try:
        found = json.loads(await request.body(), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"this is not JSON: {error or 'it is nested too deeply'}.") from error
    if not isinstance(found, dict):
        raise HTTPException(400, "ask with a JSON object.")
    for name in found:
        if name not in known:
            raise HTTPException(400, f"there is no '{name}' to ask with. {did_you_mean(name, sorted(known))}")
    return found


def _refused(constant: str) -> object:
    raise ValueError(f"{constant} is not in JSON")


async def answered(compute: Callable[[], object], *, name: str | None = None) -> Response:
    """What is computed, beside the loop that answers others; a user's mistake is a sentence."""
    try:
        found = await anyio.to_thread.run_sync(compute)
    except RecurraError as error:
        raise HTTPException(400, str(error)) from error
    return JSONResponse(found if name is None else {name: found})


class Guard:
    """Requests of this machine's own browser and programs, and answers that no other site may use.

    A page elsewhere can make a browser send requests here: by a name that it lets point to this machine, which Host
    tells, or across sites, which Origin tells.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.names = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}
        if port == 80:
            self.names |= {"127.0.0.1", "localhost", "[::1]"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get("origin")
        refusal = None
        if headers.get("host", "").lower() not in self.names:
            refusal = 421, "this server answers to 127.0.0.1 and localhost alone."
        elif origin is not None and origin.removeprefix("http://").lower() not in self.names:
            refusal = 403, "this server does not answer to other sites."
        elif int(headers.get("content-length", "0") or 0) > MOST_BYTES:
            refusal = 413, f"a request has {MOST_BYTES >> 20} MiB at most."
        if refusal is not None:
            await JSONResponse({"error": refusal[1]}, status_code=refusal[0])(scope, receive, guarded(send))
            return
        await self.app(scope, limited(receive), guarded(send))


def limited(receive: Receive) -> Receive:
    """No more than so many bytes of a body, whatever its header says."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise HTTPException(413, f"a request has {MOST_BYTES >> 20} MiB at most.")
        return message

    return counted


def guarded(send: Send) -> Send:
    """Answers that a browser neither guesses about, nor frames, nor lets fetch anything from elsewhere."""
    extra = {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] += [(name.encode(), value.encode()) for name, value in extra.items()]
        await send(message)

    return with_headers


def serve(given: list[str], *, port: int, device: str = "cpu", said: Callable[[str], None] = print) -> None:
    """Answer on 127.0.0.1 until Ctrl-C."""
    from recurra.runtime.hosted import hosted
    from recurra.runtime.limits import listening

    if not 0 <= port <= 65535 or math.isnan(port):
        raise ConfigError(f"--port {port}: a port is a number from 0 to 65535; 0 takes a free one.")
    runs = hosted(given, device=device)
    for run in runs.values():
        run.about()  # says what is wrong with a run before anyone asks
    listening(lambda found: application(runs, port=found), port=port, said=said)
