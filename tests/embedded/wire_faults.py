"""Faults of a connection: which requests are hit, and what happens to them.

The faults of `store.faults` are about verbs and objects; these are about bytes and seconds, so that framing,
decoding and retrying of an HTTP client are tested too. The first fault that fits and is not used up applies.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moorage.client.transport import HttpRequest
from moorage.store.faults import strikes

_LOG_LIMIT = 1_000_000


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


def refuse() -> Effect:
    return Effect(refused=True)


def lose_request(after: float | None = 0.0) -> Effect:
    return Effect(request_lost=True, noticed_after=after)


def lose_answer(after: float | None = 0.0) -> Effect:
    return Effect(answer_lost=True, noticed_after=after)


def delay(*, request: float = 0.0, answer: float = 0.0, chunk: float = 0.0) -> Effect:
    return Effect(request_delay=request, answer_delay=answer, chunk_delay=chunk)


def split(*sizes: int) -> Effect:
    return Effect(split=sizes)


def cut(after: int = 0, *, quietly: bool = False) -> Effect:
    return Effect(cut_after=after, cut_quietly=quietly)


def stall(after: int = 0) -> Effect:
    return Effect(stall_after=after)


def answer(status: int, body: bytes = b"", **headers: str) -> Effect:
    """A canned answer; underscores in the header names stand for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Effect(canned=Canned(status, body, named))


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it was sent."""

    request: HttpRequest
    time: float


@dataclass(slots=True, eq=False)
class WireFault:
    """Which requests an effect happens to."""

    effect: Effect
    method: str = ""
    """Empty: every method."""
    path: str | Callable[[str], bool] = ""
    """A part of the path, or a test of it; empty: every path."""
    watch: bool | None = None
    """Watches only, or everything but watches; None: both."""
    times: int | None = 1
    """How often; None: without end."""
    skip: int = 0
    """How many fitting requests pass first."""
    chance: float = 1.0
    """With which probability a fitting request is hit; needs the rng of `WireFaults`."""
    hits: int = field(default=0, init=False)
    """How often it has happened."""

    def fits(self, request: HttpRequest) -> bool:
        if self.method not in ("", request.method):
            return False
        if self.watch is not None and self.watch != (request.query.get("watch") in ("true", "1")):
            return False
        return self.path(request.path) if callable(self.path) else self.path in request.path


class WireFaults:
    """The faults of one transport, or of several that share them, and the log of their requests."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self.log: deque[Sent] = deque(maxlen=_LOG_LIMIT)
        """Every request in the order of sending, hit or not."""
        self._faults: list[WireFault] = []
        self._rng = rng

    def add(self, fault: WireFault) -> WireFault:
        if fault.chance < 1 and self._rng is None:
            raise ValueError("a fault with a chance needs WireFaults(rng=random.Random(seed))")
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Heals everything; the log stays."""
        self._faults.clear()

    def sent(self, request: HttpRequest, time: float) -> Effect | None:
        """Logs a request and gives what happens to it."""
        self.log.append(Sent(request, time))
        for fault in self._faults:
            if fault.fits(request) and strikes(fault, self._rng):
                return fault.effect
        return None
