"""Where the pages are: a port that is taken before anything is served, and the token that opens them."""

from __future__ import annotations

import secrets
import socket

from moorage.api.errors import MoorageError
from moorage.serving.server import listen

HOST = "127.0.0.1"
PORT = 7480
"""Beside the API server of `moorage up`; a free one where it is taken."""


def take_port(port: int | None = None) -> socket.socket:
    """Connections wait from now on. None: the usual port, or any that is free."""
    try:
        return listen(HOST, PORT if port is None else port, "--port")
    except MoorageError:
        if port is not None:
            raise
    return listen(HOST, 0, "--port")


def new_token() -> str:
    return secrets.token_urlsafe(24)


def address(listening: socket.socket, token: str) -> str:
    return f"http://localhost:{listening.getsockname()[1]}/?token={token}"
