"""What `mooring up` and its API server process tell each other: one JSON line each way.

The parent writes `Orders` to the child's standard input and keeps it open: its end tells the child that the
parent is gone. The child answers `Ready` or `Refused` on standard output. Whatever else it has to say goes to
standard error as log lines.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mooring.app.up.pools import Pool


class Orders(msgspec.Struct, kw_only=True):
    """What kind of cluster to serve."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    data_dir: str = ""
    """Empty: in memory only."""
    pools: list[Pool] = []
    """Nodes that exist already stay as they are."""
    only_if_empty: bool = False
    """Make the pools only in a cluster that has no nodes yet."""
    objects: list[dict[str, Any]] = []
    """Applied in this order before the first request is answered."""
    objects_source: str = ""
    """Where the objects came from, for messages."""
    verbosity: int = 0
    logging_format: Literal["text", "json"] = "text"


class Ready(msgspec.Struct, tag=True, kw_only=True):
    """The API answers."""

    server: str
    """https://127.0.0.1:port"""
    token: str
    ca: str
    """The certificate authority, PEM."""
    nodes: int
    applied: list[str] = []
    """`deployment.apps/web created`, one line an object, as kubectl says it."""


class Refused(msgspec.Struct, tag=True):
    """It cannot be served."""

    error: str
    port_in_use: bool = False


Answer = Ready | Refused
