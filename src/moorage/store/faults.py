"""Faults for the in-process client: which calls go wrong, how, and how often; and a log of all calls.

An effect says what happens to a call, a Fault which calls it happens to. Everything is decided when a call
is sent, in the order the faults were added; the first one that fits and is not used up applies.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from moorage.api.errors import NotSent, OutcomeUnknown
from moorage.api.resources import Resource
from moorage.store import refusals

_LOG_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens to one call; times in seconds of the clock. Make them with the functions below."""

    request_delay: float = 0.0
    """Before the server sees the call."""
    applied: bool = True
    """Whether the server acts on it at all."""
    answer_delay: float = 0.0
    """After the server has acted."""
    error: Exception | None = None
    """Raised in place of the answer."""
    cut_after: int | None = None
    """For a watch: it ends after so many events."""
    cut_error: Exception | None = None
    """For a cut watch: raised at its end; None ends it as a server that closes the stream."""
    event_delay: float = 0.0
    """For a watch: how late each event comes, at least."""


def lost_answer(after: float = 0.0) -> Effect:
    """The server acts, the answer never comes: OutcomeUnknown after so many seconds."""
    return Effect(answer_delay=after, error=OutcomeUnknown("the answer was lost"))


def lost_request(after: float = 0.0) -> Effect:
    """The server never sees the call; the caller cannot know that: OutcomeUnknown."""
    return Effect(applied=False, answer_delay=after, error=OutcomeUnknown("the request was lost"))


def not_sent() -> Effect:
    """The connection is refused: NotSent."""
    return Effect(applied=False, error=NotSent("connection refused"))


def fail(error: Exception) -> Effect:
    """The server refuses with this error."""
    return Effect(applied=False, error=error)


def conflict(message: str = refusals.CHANGED) -> Effect:
    return fail(refusals.failure(409, "Conflict", message))


def not_found(message: str = "not found") -> Effect:
    return fail(refusals.failure(404, "NotFound", message))


def too_many_requests(retry_after: int = 0) -> Effect:
    message = "the server has received too many requests and has asked us to try again later"
    return fail(refusals.failure(429, "TooManyRequests", message, retry_after=retry_after))


def server_error(code: int = 500) -> Effect:
    return fail(refusals.failure(code, "InternalError", "an error on the server has prevented the request"))


def gone() -> Effect:
    """410, for a watch or a page: the version is too old."""
    return fail(refusals.failure(410, "Expired", "too old resource version"))


def delay(seconds: float) -> Effect:
    """The call reaches the server late."""
    return Effect(request_delay=seconds)


def slow_answer(seconds: float) -> Effect:
    """The server acts at once, the answer comes late."""
    return Effect(answer_delay=seconds)


def cut_watch(after: int = 0, error: Exception | None = None) -> Effect:
    """The watch opens and ends after so many events, quietly or with an error."""
    return Effect(cut_after=after, cut_error=error)


def delay_events(seconds: float) -> Effect:
    """Each event of the watch arrives so much later, in order."""
    return Effect(event_delay=seconds)


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was sent. `verb` is the client's method: list, watch, get, create, bind and so on."""

    verb: str
    resource: Resource
    key: str
    """`namespace/name`, as far as the call names them."""
    time: float
    subresource: str = ""

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


@dataclass(slots=True, eq=False)
class Fault:
    """Which calls an effect happens to."""

    effect: Effect
    verb: str = ""
    """Empty: every verb."""
    resource: Resource | None = None
    """None: every resource."""
    name: str | Callable[[str], bool] = ""
    """The object's name, or a test of it; empty: every name, and calls without one."""
    times: int | None = 1
    """How often; None: without end."""
    skip: int = 0
    """How many fitting calls pass first."""
    chance: float = 1.0
    """With which probability a fitting call is hit; needs the rng of `Faults`."""
    hits: int = field(default=0, init=False)
    """How often it has happened."""

    def fits(self, call: Call) -> bool:
        if self.verb not in ("", call.verb) or self.resource not in (None, call.resource):
            return False
        if callable(self.name):
            return self.name(call.name)
        return self.name in ("", call.name)


class Faults:
    """The faults of one client, or of several that share them, and the log of their calls."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self.calls: deque[Call] = deque(maxlen=_LOG_LIMIT)
        """Every call in the order of sending, hit or not."""
        self._faults: list[Fault] = []
        self._rng = rng

    def add(self, fault: Fault) -> Fault:
        if fault.chance < 1 and self._rng is None:
            raise ValueError("a fault with a chance needs Faults(rng=random.Random(seed))")
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Heals everything; the log stays."""
        self._faults.clear()

    def sent(self, call: Call) -> Effect | None:
        """Logs a call and gives what happens to it."""
        self.calls.append(call)
        for fault in self._faults:
            if fault.fits(call) and strikes(fault, self._rng):
                return fault.effect
        return None

    def calls_of(self, verb: str, resource: Resource | None = None) -> list[Call]:
        return [c for c in self.calls if c.verb == verb and resource in (None, c.resource)]


class Countable(Protocol):
    """The part of a fault that says how often it happens."""

    times: int | None
    skip: int
    chance: float
    hits: int


def strikes(fault: Countable, rng: random.Random | None) -> bool:
    """Whether a fault that fits happens this time; counts it."""
    if fault.times is not None and fault.hits >= fault.times:
        return False
    if fault.skip > 0:
        fault.skip -= 1
        return False
    if fault.chance < 1 and rng is not None and rng.random() >= fault.chance:
        return False
    fault.hits += 1
    return True
