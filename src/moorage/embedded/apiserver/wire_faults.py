"""What can happen to one exchange of a connection, below the meaning of its bytes.

The faults of `store.faults` speak of verbs and objects; these speak of bytes and seconds, so that the
framing, decoding and retrying of an HTTP client are tested too. Which requests are hit is decided by the
tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from moorage.client.transport import Request


@dataclass(frozen=True, slots=True)
class Canned:
    """An answer that the server never gave."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens to one exchange; times in seconds of the clock."""

    refused: bool = False
    """No connection: the server sees nothing, and the client knows that."""
    request_lost: bool = False
    """The server sees nothing, and the client cannot know that."""
    answer_lost: bool = False
    """The server acts; nothing comes back."""
    noticed_after: float | None = 0.0
    """When the client learns of a loss; None: never, only its own timeout ends the wait."""
    request_delay: float = 0.0
    """Before the server sees the request. It does so even when the client has given up meanwhile."""
    answer_delay: float = 0.0
    """Before the client sees status and headers."""
    chunk_delay: float = 0.0
    """Before each chunk of the body."""
    split: tuple[int, ...] = ()
    """Sizes in bytes of the chunks, over and over; empty: as the server sends them."""
    cut_after: int | None = None
    """The connection ends after so many bytes of the body."""
    cut_quietly: bool = False
    """The cut looks like the end of the body."""
    stall_after: int | None = None
    """After so many bytes of the body nothing comes any more, and the connection stays open."""
    canned: Canned | None = None
    """Given in place of the server's answer; the server sees nothing."""


class WireFaults(Protocol):
    """Decides which requests are hit, when they are sent."""

    def sent(self, request: Request, time: float) -> Effect | None: ...
