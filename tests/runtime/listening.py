"""A server at work in a thread, and a client that speaks to its socket byte by byte."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from recurra.runtime.limits import Limits, server_of


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        found: str = self.json["error"]
        return found


@contextmanager
def at_work(application: ASGIApp, limits: Limits | None = None) -> Iterator[int]:
    """The port at which an application is answered for."""
    server = server_of(application, limits or Limits())
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def connected(port: int) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=10)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def request(path: str = "/", *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    """A request as it travels; Host and Content-Length stand in it unless they are given."""
    lines = list(headers)
    if not any(each.lower().startswith("host:") for each in headers):
        lines.append("Host: localhost:1")
    if body and not any(each.lower().startswith(("content-length", "transfer-encoding")) for each in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + body


def received(connection: socket.socket, *, has_body: bool = True) -> Answer:
    """The next answer; its status is 0 where the server ends the connection without one."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = next_piece(connection)
        if not piece:
            return Answer(0, {}, found)
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while has_body and len(body) < int(headers["content-length"]):
        body += next_piece(connection)
    return Answer(int(first.split()[1]), headers, body)


def next_piece(connection: socket.socket) -> bytes:
    """What comes next; nothing where the server has ended the connection, in whatever way."""
    try:
        return connection.recv(1 << 20)
    except ConnectionError:
        return b""


def asked(port: int, *pieces: bytes, has_body: bool = True) -> Answer:
    """The answer to one request on a connection of its own."""
    with connected(port) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return received(connection, has_body=has_body)


def posted(port: int, path: str, question: object, *headers: str) -> Answer:
    """The answer to JSON."""
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    return asked(port, request(path, "Content-Type: application/json", *headers, method="POST", body=body))


def seconds_since(began: float) -> float:
    return time.monotonic() - began
