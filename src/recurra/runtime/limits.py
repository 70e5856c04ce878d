"""Listening, with limits on what a client may hold up."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from recurra.errors import ConfigError
from recurra.runtime.batching import COMPUTING
from recurra.training.answering import RECORDING

Found = TypeVar("Found")

WHEN_GONE = "recurra.when_gone"
"""Where the scope of a request holds a function that is called if the client leaves before it has its answer."""

BACKLOG = 1024
"""Connections that the system holds until they are accepted."""

FILES = 128
"""Files that a process has open beside its connections."""


class Limits(NamedTuple):
    """What one client may take, so that others are answered and the server can end."""

    connections: int = 1000  # at a time; the one that has let the server wait longest makes room for another
    headers: int = 100
    head_bytes: int = 32 << 10  # of the address and the headers together
    body_bytes: int = 16 << 20
    all_body_bytes: int = 256 << 20  # of all requests that are read or computed at a time
    head_seconds: float = 10.0  # until an address and all headers are there
    body_seconds: float = 30.0  # until the body is there
    idle_seconds: int = 60  # from an answer to the next request
    ending_seconds: int = 1  # for computations that are under way when the server is told to end
    deadline_seconds: float = 30.0  # in which a request is answered, or told that it will not be
    queued: int = 256  # requests that wait for one run
    together: int = 64  # inputs that are computed together
    streams: int = 64  # texts of one run that are sent as they are written, at a time


class Gathered:
    """A transport that sends what is written in one turn of the loop at once.

    The head of an answer and its body are written one after the other; each call of the system wakes the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        if not self.waiting:
            self.loop.call_soon(self.flush)
        self.waiting.append(data)

    def flush(self) -> None:
        if self.waiting:
            data, self.waiting = b"".join(self.waiting), []
            self.transport.write(data)

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def abort(self) -> None:
        self.waiting.clear()
        self.transport.abort()


class Connection(H11Protocol):
    """uvicorn's connection, on which a client has to ask in time, and has to make room for others."""

    def __init__(
        self,
        limits: Limits,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.heard = self.loop.time()
        self.deadline: asyncio.TimerHandle | None = None

    @property
    def awaits_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn."""
        return self.awaits_head or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others = [each for each in self.connections if isinstance(each, Connection) and not each.transport.is_closing()]
        super().connection_made(Gathered(transport, self.loop))  # type: ignore[arg-type]
        self.watch()
        if len(others) >= self.limits.connections:
            waiting = [each for each in others if each.is_waiting]
            if waiting:
                min(waiting, key=lambda each: each.heard).transport.abort()
            else:
                self.refuse(503, "too many requests at once: try again later.")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.watch()

    def watch(self) -> None:
        """Give the client so much time from the first letter of a request, however often it sends another one."""
        if self.awaits_head and self.deadline is None:
            self.deadline = self.loop.call_later(self.limits.head_seconds, self.late)
        elif not self.awaits_head and self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def on_response_complete(self) -> None:
        self.heard = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        if self.cycle is not None and not self.cycle.response_complete:
            act: Any = self.scope.get(WHEN_GONE)
            if act is not None:
                act()
        super().connection_lost(exc)

    def late(self) -> None:
        if self.cycle is None:
            self.refuse(408, f"the request was not received within {self.limits.head_seconds:g} seconds.")
        else:  # what is left of a request that has its answer, or a next one
            self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # also where the last answer was not taken, which close() would wait for

    def send_400_response(self, msg: str) -> None:
        if self.awaits_head or not self.cycle.response_started:
            self.refuse(400, f"this is not HTTP/1.1, or its headers have more than {self.limits.head_bytes:,} bytes.")
        else:
            self.transport.abort()

    def refuse(self, status: int, sentence: str) -> None:
        """Say what is wrong, and end the connection."""
        body = json.dumps({"error": sentence}).encode()
        head = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()
        self.loop.call_later(1, self.transport.abort)  # where the client does not take it

    def shutdown(self) -> None:
        if self.transport.is_closing():
            return
        if self.is_waiting and not self.awaits_head:  # a body that may never come
            self.transport.abort()
        else:
            super().shutdown()


async def beside(compute: Callable[[], Found]) -> Found:
    """What is computed in a thread of its own, which no one waits for where the server ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Found] = loop.create_future()

    def tell(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else act())

    def work() -> None:
        try:
            found = compute()
        except StopIteration as error:  # which a future does not take: whoever awaits it would wait for ever
            wrapped = RuntimeError("the computation raised StopIteration")
            wrapped.__cause__ = error
            tell(partial(future.set_exception, wrapped))
        except BaseException as error:
            tell(partial(future.set_exception, error))
        else:
            tell(partial(future.set_result, found))

    threading.Thread(target=work, name=COMPUTING, daemon=True).start()
    return await future


def server_of(application: ASGIApp, limits: Limits) -> uvicorn.Server:
    """A server that says nothing by itself: what is wrong with an application, the application says."""
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http=partial(Connection, limits),  # type: ignore[arg-type]
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.head_bytes,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.ending_seconds,
        )
    )


def listening(
    application: ASGIApp,
    *,
    port: int,
    host: str = "127.0.0.1",
    said: Callable[[str], None] = print,
    limits: Limits | None = None,
) -> None:
    """Answer at an address until SIGTERM, or until Ctrl-C, which is raised as KeyboardInterrupt when all has ended."""
    limits = limits or Limits()
    limits = limits._replace(connections=_room_for(limits.connections))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends the small parts of an answer at once, and not 40 ms later, where a socket says that it is TCP.
    with socket.socket(family, proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "a port must be a number from 0 to 65535"
            if isinstance(error, OSError) and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise ConfigError(
                    f"--host {host} cannot be used: {why}. It must be an address of this machine."
                ) from error
            raise ConfigError(f"--port {port} cannot be used: {why}. --port 0 picks a free port.") from error
        shown = f"[{host}]" if ":" in host else host
        said(f"http://{shown}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        with _ending():
            server_of(application, limits).run([listener])


def _room_for(connections: int) -> int:
    """So many connections, or as many as the system lets this process have beside its files."""
    try:
        import resource
    except ImportError:  # no Unix
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        connections = max(1, min(connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES))
    return connections


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """SIGTERM ends the server and no more: uvicorn raises what it caught again, when it is done."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    status = 130
    try:
        yield
        status = 0
    finally:
        signal.signal(signal.SIGTERM, before)
        if any(thread.name in (COMPUTING, RECORDING) for thread in threading.enumerate()):
            # Python cannot end a thread that computes, and torch would not survive being left by the interpreter.
            atexit.register(_leave, status)


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
