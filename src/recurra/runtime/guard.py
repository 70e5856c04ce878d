"""What stands around the application: who may ask, how much, and what a browser may do with the answers."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recurra.runtime.access import Access
from recurra.runtime.limits import Limits

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

MISTAKE = "internal error; details are in the server's log."

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""A browser neither guesses about answers, nor frames them, nor lets them fetch anything from elsewhere."""

RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Ended(NamedTuple):
    """A request that has its answer, or whose client is gone (status 0)."""

    scope: Scope
    status: int
    bytes: int
    seconds: float


class Guard:
    """An application for those who may ask it, and as much as they may."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        access: Access = Access(),  # noqa: B008  # it cannot be changed
        noted: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.access = access
        self.noted = noted  # is told of each request when it has ended
        self.body_bytes = 0  # of all requests at the moment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = size = 0
        began = time.perf_counter()

        async def guarded(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            else:
                size += len(message.get("body", b""))
            await send(message)

        refusal, headers = self.refusal(scope)
        body = Body(self, receive)
        scope["app"] = self  # by which routes know that what they raise is caught
        try:
            if refusal is None:
                await self.app(scope, body.received, guarded)
        except HTTPException as error:
            refusal, headers = in_words(scope, error)
        except asyncio.CancelledError:
            refusal = 503, "the server is shutting down."
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            refusal = 500, MISTAKE
        finally:
            self.body_bytes -= body.seen
        try:
            if refusal is not None and not status:
                answer = JSONResponse({"error": refusal[1]}, status_code=refusal[0], headers=headers)
                await answer(scope, receive, guarded)
        finally:
            self.noted(Ended(scope, status, size, time.perf_counter() - began))

    def refusal(self, scope: Scope) -> tuple[tuple[int, str] | None, dict[str, str]]:
        """Why a request is not looked at, where it is not, and headers of that answer."""
        limits, raw = self.limits, scope["headers"]
        size = (
            len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) + 4 for name, value in raw)
        )
        if len(raw) > limits.headers or size > limits.head_bytes:
            most = f"{limits.headers} headers of {limits.head_bytes:,} bytes"
            return (431, f"a request can have at most {most} in all."), {}
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
        if "content-length" in headers and "transfer-encoding" in headers:
            # Servers disagree about where such a request ends: what follows may be meant as another one.
            return (400, "a request has Content-Length or Transfer-Encoding, but not both."), {"Connection": "close"}
        found = self.access.refusal(scope["path"], headers)
        if found is not None:
            return found, {"WWW-Authenticate": "Bearer"} if found[0] == 401 else {}
        return self._too_long(headers.get("content-length", "0")), {}

    def _too_long(self, length: str) -> tuple[int, str] | None:
        if not length.isascii() or not length.isdecimal():
            return 400, "Content-Length is not a number."
        return _too_large(self.limits) if len(length) > 18 or int(length) > self.limits.body_bytes else None


def in_words(scope: Scope, error: HTTPException) -> tuple[tuple[int, str], dict[str, str]]:
    """The status, sentence and headers of an answer that says what is wrong with a request."""
    detail, headers = error.detail, dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
        detail = f"{scope['method']} is not allowed at {scope['path']}: use {headers['Allow']}."
    elif error.status_code == 404 and detail == "Not Found":
        detail = f"{scope['path']} does not exist: /openapi.json lists all paths."
    return (error.status_code, detail), headers


def _too_large(limits: Limits) -> tuple[int, str]:
    return 413, f"a request can have at most {limits.body_bytes:,} bytes."


class Body:
    """The body of a request: so many bytes in so many seconds, whatever its headers say."""

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self.guard, self.receive = guard, receive
        self.deadline = asyncio.get_running_loop().time() + guard.limits.body_seconds
        self.seen = 0
        self.is_there = False

    async def received(self) -> Message:
        if self.is_there:  # what may still come is that the client is gone
            return await self.receive()
        limits = self.guard.limits
        try:
            async with asyncio.timeout_at(self.deadline):
                message = await self.receive()
        except TimeoutError:
            raise HTTPException(408, f"the request was not received within {limits.body_seconds:g} seconds.") from None
        size = len(message.get("body", b""))
        self.seen += size
        self.guard.body_bytes += size
        if self.seen > limits.body_bytes:
            raise HTTPException(*_too_large(limits))
        if self.guard.body_bytes > limits.all_body_bytes:
            raise HTTPException(503, "too much is being sent to this server at once: try again later.")
        self.is_there = not message.get("more_body", False)
        return message
