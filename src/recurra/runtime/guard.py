"""What stands around the application: who may ask, how much, and what a browser may do with the answers."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recurra.runtime.limits import Limits

HERE = ("127.0.0.1", "localhost", "[::1]")

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


class Guard:
    """An application for this machine's own browser and programs.

    A page elsewhere can make a browser send requests here: by a name of its own that it lets point to this machine,
    which Host tells, or across sites, which Origin and Sec-Fetch-Site tell. Any port will do, for what reaches this
    machine through a tunnel names that of its other end.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [
                    *message.get("headers", ()),
                    *((n.encode(), v.encode()) for n, v in HEADERS.items()),
                ]
            await send(message)

        refusal = self.refusal(scope)
        try:
            if refusal is None:
                await self.app(scope, limited(receive, self.limits), guarded)
                return
        except asyncio.CancelledError:
            refusal = 503, "the server is shutting down."
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            refusal = 500, MISTAKE
        if not started:
            await JSONResponse({"error": refusal[1]}, status_code=refusal[0])(scope, receive, guarded)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is not looked at, where it is not."""
        limits, raw = self.limits, scope["headers"]
        size = (
            len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) + 4 for name, value in raw)
        )
        if len(raw) > limits.headers or size > limits.head_bytes:
            return 431, f"a request can have at most {limits.headers} headers of {limits.head_bytes:,} bytes in all."
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
        return _stranger(scope["path"], headers) or self._too_long(headers.get("content-length", "0"))

    def _too_long(self, length: str) -> tuple[int, str] | None:
        if not length.isascii() or not length.isdecimal():
            return 400, "Content-Length is not a number."
        return _too_large(self.limits) if len(length) > 18 or int(length) > self.limits.body_bytes else None


def _stranger(path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
    host, origin = headers.get("host", "").lower(), headers.get("origin")
    name, _, port = host.rpartition(":")
    if (name if port.isdecimal() else host) not in HERE:
        return 421, f"this server accepts only requests to {', '.join(HERE[:2])}."
    if origin is not None and origin.lower() != f"http://{host}":
        return 403, "this server does not accept requests from other sites."
    is_page = path == "/" or path.startswith("/page/")  # which a link may lead to
    if not is_page and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return 403, "this server does not accept requests from other sites."
    return None


def _too_large(limits: Limits) -> tuple[int, str]:
    return 413, f"a request can have at most {limits.body_bytes:,} bytes."


def limited(receive: Receive, limits: Limits) -> Receive:
    """A body of so many bytes and so many seconds, whatever its headers say."""
    seen, deadline = 0, asyncio.get_running_loop().time() + limits.body_seconds
    is_there = False

    async def counted() -> Message:
        nonlocal seen, is_there
        if is_there:  # what may still come is that the client is gone
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the request was not received within {limits.body_seconds:g} seconds.") from None
        seen += len(message.get("body", b""))
        if seen > limits.body_bytes:
            raise HTTPException(*_too_large(limits))
        is_there = not message.get("more_body", False)
        return message

    return counted
