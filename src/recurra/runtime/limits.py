"""Listening on this machine alone, with limits on what a client may hold up."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from recurra.errors import ConfigError


def listening(application: Callable[[int], ASGIApp], *, port: int, said: Callable[[str], None]) -> None:
    """Answer on 127.0.0.1 until Ctrl-C; the application is made for the port that was taken."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(f"--port {port} cannot be used: {error.strerror}. --port 0 takes a free one.") from error
        found: int = listener.getsockname()[1]
        settings = uvicorn.Config(application(found), log_level="warning", lifespan="off", server_header=False)
        said(f"http://127.0.0.1:{found}/ (Ctrl-C ends it)")
        uvicorn.Server(settings).run([listener])
