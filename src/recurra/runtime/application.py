"""The page, the JSON API behind it, and what tells how the server is, as an application of ASGI."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

import recurra
from recurra.errors import CheckpointError, RecurraError, TrustError, is_lack_of_memory
from recurra.named import did_you_mean
from recurra.runtime.access import Access
from recurra.runtime.batching import Busy, Late, Mailbox, Waiting
from recurra.runtime.guard import Ended, Guard
from recurra.runtime.hosted import Hosted, Question
from recurra.runtime.limits import WHEN_GONE
from recurra.runtime.openapi import described
from recurra.runtime.requests import body, gone, seconds_for
from recurra.runtime.service import Asked, Service
from recurra.runtime.writing import TEXTS, TYPES, Writing

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

AGAIN = {"Retry-After": "1"}
"""Seconds after which a client that was refused should try again."""

UNBUFFERED = {"X-Accel-Buffering": "no"}
"""By which nginx passes the pieces of a stream on as they come."""

TELLS = "recurra"
"""Where the scope of a request says what became of it in its queue."""


def application(
    service: Service, *, access: Access | None = None, log: Callable[[Ended], None] = lambda _: None
) -> Guard:
    """The page and its API over some runs; `log` is told of each request when it has ended."""
    limits, mailbox = service.limits, Mailbox[bytes]()

    async def listed(_: Request) -> Response:
        found = [{**run.about, "siblings": service.siblings.get(name, [])} for name, run in service.runs.items()]
        return JSONResponse({"version": recurra.__version__, "runs": found})

    async def samples(request: Request) -> Response:
        run_of(request)
        return await answered(request, "samples", lambda run: {"samples": run.samples()})

    async def predict(request: Request) -> Response:
        run_of(request)
        asked = await body(request, {"inputs": list, "decoding": dict, "raw": bool})
        inputs = asked.get("inputs")
        question = Question(inputs, asked.get("decoding", {}), asked.get("raw", False))
        return await answered(request, "answers", question, size=len(inputs) if inputs else 1)

    async def explain(request: Request) -> Response:
        known = {"input": object, "decoding": dict, "show": list, "layer": int, "direction": str, "best": int}
        run_of(request)
        asked = await body(request, {**known, "raw": bool})
        options = {name: asked[name] for name in ("show", "layer", "direction", "best", "raw") if name in asked}

        def compute(run: Hosted) -> object:
            return run.explain(asked.get("input"), asked.get("decoding", {}), **options)

        return await answered(request, lambda run: run.way(options.get("show")), compute)

    async def generate(request: Request) -> Response:
        run_of(request)
        asked = await body(request, {"prompt": object, "stream": bool, **dict.fromkeys(TYPES, object)})
        prompt, is_stream = asked.pop("prompt", ""), asked.pop("stream", False)
        writing = Writing(prompt, asked)
        return await (streamed(request, writing) if is_stream else answered(request, TEXTS, writing, size=writing.size))

    async def description(_: Request) -> Response:
        return JSONResponse(described(list(service.runs)))

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(_: Request) -> Response:
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "loading"}, status_code=503, headers=AGAIN)

    async def metrics(_: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    def run_of(request: Request) -> Hosted:
        name, runs = request.path_params["run"], service.runs
        if name not in runs:
            raise HTTPException(404, f"there is no run '{name}' here. {did_you_mean(name, list(runs))}")
        return runs[name]

    async def answered(
        request: Request, way: str | Callable[[Hosted], str], asked: Asked, *, size: int = 1
    ) -> Response:
        """What a run says when it is its turn; a mistake is a sentence."""
        seconds = seconds_for(request, limits.deadline_seconds)
        with Mistakes():
            waiting = service.ask(request.path_params["run"], way, asked, size=size, seconds=seconds)
            request.scope[TELLS] = waiting
            request.scope[WHEN_GONE] = waiting.future.cancel
            try:
                async with asyncio.timeout(seconds):
                    content = await mailbox.received(waiting)
            except TimeoutError:
                raise Late(f"the request was not answered within {seconds:g} seconds.") from None
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                raise gone() from None
        return Response(content, media_type="application/json")

    async def streamed(request: Request, asked: Writing) -> Response:
        """A text as it is written, an event for each piece; what is wrong before the first one is an error as usual."""
        seconds = seconds_for(request, limits.deadline_seconds)
        loop, found = asyncio.get_running_loop(), asyncio.Queue[str]()
        ends = loop.time() + seconds

        def told(piece: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(found.put_nowait, piece)

        with Mistakes():
            waiting = service.stream(request.path_params["run"], asked, told, seconds=seconds)
        request.scope[TELLS] = waiting
        future = asyncio.wrap_future(waiting.future)

        async def next_piece() -> str | None:
            """None at the end."""
            one = asyncio.ensure_future(found.get())
            try:
                left = max(0.0, ends - loop.time())
                either: set[asyncio.Future[Any]] = {future, one}
                await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if one.done():
                    return one.result()
                if not future.done():
                    raise Late(f"the text was not written within {seconds:g} seconds.")
                future.result()
                return None if found.empty() else found.get_nowait()
            finally:
                one.cancel()

        async def events(first: str | None) -> AsyncIterator[bytes]:
            piece = first
            try:
                while piece is not None:
                    if piece:
                        yield _event({"text": piece})
                    with Mistakes():
                        piece = await next_piece()
                yield _event({}, "end")
            except HTTPException as error:
                yield _event({"error": error.detail}, "error")
            finally:
                waiting.give_up()
                future.cancel()

        try:
            with Mistakes():
                begun = await next_piece()
        except BaseException:
            waiting.give_up()
            future.cancel()
            raise
        return StreamingResponse(events(begun), media_type="text/event-stream", headers=UNBUFFERED)

    def noted(ended: Ended) -> None:
        _measured(service, ended)
        log(ended)

    routes = [
        Route("/api/runs/{run:path}/predict", predict, methods=["POST"]),
        Route("/api/runs/{run:path}/explain", explain, methods=["POST"]),
        Route("/api/runs/{run:path}/generate", generate, methods=["POST"]),
        Route("/api/runs/{run:path}/samples", samples),
        Route("/api/runs", listed),
        Route("/openapi.json", description),
        Route("/", page),
        Route("/page/{name}", page),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
    ]
    return Guard(Router(routes, redirect_slashes=False), limits, access or Access(), noted)


class Mistakes:
    """Inside, what goes wrong with a computation becomes an answer with a sentence."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Busy):
            raise HTTPException(429, str(error), AGAIN) from error
        if isinstance(error, Late):
            raise HTTPException(503, str(error), AGAIN) from error
        if isinstance(error, CheckpointError | TrustError):
            raise HTTPException(500, str(error)) from error
        if isinstance(error, RecurraError):
            raise HTTPException(400, str(error)) from error
        if isinstance(error, MemoryError | RuntimeError) and is_lack_of_memory(error):
            raise HTTPException(507, "out of memory: send fewer or shorter inputs.") from error


def _event(data: object, name: str | None = None) -> bytes:
    """One of the server-sent events."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def _measured(service: Service, ended: Ended) -> None:
    metrics, scope = service.metrics, ended.scope
    run, endpoint = run_and_endpoint(scope)
    run = run if run in service.runs else ""
    metrics.requests.add(run=run, endpoint=endpoint, status=str(ended.status))
    metrics.seconds.add(ended.seconds, run=run, endpoint=endpoint)
    waiting: Waiting[Any, Any] | None = scope.get(TELLS)
    if waiting is not None and waiting.waited is not None:
        metrics.waited.add(waiting.waited, run=run)
        metrics.together.add(waiting.together, run=run)


def run_and_endpoint(scope: Any) -> tuple[str, str]:
    """The name of a run, as a request has it, and what it is asked; both may be empty."""
    return scope.get("path_params", {}).get("run", ""), getattr(scope.get("endpoint"), "__name__", "")


async def page(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params.get("name", "index.html")
    kind = KINDS.get("." + name.rpartition(".")[2])
    if kind is None or name not in files_of_page():
        raise HTTPException(404)
    return Response((resources.files("recurra") / "page" / name).read_bytes(), media_type=kind)


def files_of_page() -> set[str]:
    return {each.name for each in (resources.files("recurra") / "page").iterdir() if each.is_file()}
