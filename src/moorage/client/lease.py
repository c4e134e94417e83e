"""Leadership by a Lease, as decisions without I/O: whose it is, who may take it, how long a leader may act.

    candidate ──lease free, released or over──▶ write accepted ──▶ leader ──▶ lost, or released
        ▲                                            │ conflict        (final: a process does not come back)
        └───────────── read again ◀──────────────────┘

Everything is judged on a monotonic clock. A candidate takes the lease of another only after it has seen the
record unchanged for as long as the lease lasts; wall clocks are written for people and never compared. A
leader counts from the moment at which it *sent* the renewal that was accepted, others from the moment at
which they saw it: the leader's time is over first, whatever got delayed in between.

One rule goes beyond client-go. Every change that a candidate sees starts its wait anew, also when the lease
was deleted, its holder cleared or its duration shortened by hand: whoever held it until then may not know
yet. Only a proper release (no holder, a duration of one second and two equal times, as client-go writes it)
ends the wait, and a candidate that finds no lease at its first look does not wait either.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from moorage.api.core import Lease, LeaseSpec
from moorage.api.errors import MoorageError, NotSent
from moorage.api.meta import ObjectMeta
from moorage.api.resources import LEASES
from moorage.api.times import format_time

JITTER = 1.2
"""A candidate waits between one and 1 + JITTER retry periods before it looks again, or until the lease of
another ends if that is sooner."""
SPREAD_SECONDS = 0.2
"""Candidates that wait for the same end do not all come in the same moment."""
RELEASED_SECONDS = 1
"""The lease duration that a release leaves behind."""
SEND_MARGIN = 0.5
"""Seconds before the end of the lease at which the last write must be over."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The three durations, in seconds."""

    lease_duration: float = 15.0
    """How long others wait after the last renewal that they saw."""
    renew_deadline: float = 10.0
    """How long after its last renewal a leader may act."""
    retry_period: float = 2.0
    """Between two tries."""

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > JITTER * self.retry_period > 0:
            raise MoorageError(
                f"leaderElection: leaseDuration ({self.lease_duration:g}s) must be greater than "
                f"renewDeadline ({self.renew_deadline:g}s), and that greater than {JITTER:g} times "
                f"retryPeriod ({self.retry_period:g}s)"
            )


class Fence:
    """Until when this process may write. Read right before every write, by any thread.

    Its two numbers are set by the election alone. A fence that is not renewed closes by itself.
    """

    def __init__(self, now: Callable[[], float], terms: Terms) -> None:
        self._now = now
        self._terms = terms
        self._renewed = -math.inf
        self._closed = False

    @classmethod
    def open(cls, now: Callable[[], float]) -> Fence:
        """For a scheduler without leader election: it is alone."""
        fence = cls(now, Terms())
        fence._renewed = math.inf
        return fence

    def renewed(self, sent_at: float) -> None:
        """The renewal that was sent at this moment has been accepted."""
        self._renewed = max(self._renewed, sent_at)

    def close(self) -> None:
        """No more writes, for ever."""
        self._closed = True

    def allows(self) -> bool:
        """Whether a write may be sent now."""
        return not self._closed and self._now() < self._renewed + self._terms.renew_deadline

    def seconds_remaining(self) -> float:
        """For a write that is sent now: when its outcome must be final, before others may lead."""
        return self._renewed + self._terms.lease_duration - SEND_MARGIN - self._now()

    def spend(self) -> float:
        """Asked right before a write is sent: how many seconds it may take. NotSent: none may be sent."""
        if not self.allows():
            raise NotSent("not sent: this replica no longer holds the lease")
        return self.seconds_remaining()

    def overdue(self, tolerance: float) -> bool:
        """Whether a lease that was held ran out so many seconds ago and this process did not step down."""
        if self._closed or math.isinf(self._renewed):
            return False
        return self._now() > self._renewed + self._terms.lease_duration + tolerance


class Verdict(enum.Enum):
    """What a candidate may do about the lease as it knows it."""

    HELD = "held by another"
    FREE = "free to take"


class LeaseCandidate:
    """One replica's view of the lease. `now` is always a reading of the same monotonic clock."""

    def __init__(self, identity: str, name: str, namespace: str, terms: Terms, *, coordinated: bool = False) -> None:
        self.identity = identity
        self.name = name
        self.namespace = namespace
        self.terms = terms
        self.coordinated = coordinated
        """Whether the API server chooses the leader (KEP-4355)."""
        self.lease: Lease | None = None
        """The lease as last read or written."""
        self.leading = False
        self.taken_from: str | None = None
        """The version of the lease in whose place our first claim was written, empty where there never was
        one. None before that, and where a lease was seen that is gone."""
        self._held_until = -math.inf
        """When whoever held the lease at its last change that was seen has lost it for sure."""
        self._claims: list[LeaseSpec] = []
        """What was sent in our name and not refused: the newest two."""

    @property
    def holder(self) -> str:
        return (self.lease.spec.holder_identity or "") if self.lease is not None else ""

    def see(self, lease: Lease | None, now: float) -> None:
        """The lease was read at `now` (a moment after the answer came); None: there is none."""
        before = self.lease.spec if self.lease is not None else None
        after = lease.spec if lease is not None else None
        self.lease = lease
        if after == before or (after is not None and self._is_ours(after)):
            return
        if after is not None and is_released(after):
            self._held_until = -math.inf
            return
        announced = float(after.lease_duration_seconds or 0) if after is not None else 0.0
        self._held_until = now + max(announced, self.terms.lease_duration)

    def judge(self, now: float) -> Verdict:
        """Whether a write may be tried. For a leader HELD means that it has lost the lease."""
        if self.coordinated:
            return self._judge_coordinated(now)
        if self.lease is not None and self._is_ours(self.lease.spec):
            return Verdict.FREE
        if self.leading:
            # Deleted or cleared by hand: who leads takes it again, while others wait for the time to be over.
            return Verdict.HELD if self.holder else Verdict.FREE
        return Verdict.HELD if now < self._held_until else Verdict.FREE

    def _judge_coordinated(self, now: float) -> Verdict:
        """The API server writes the holder into the lease; a candidate neither creates nor takes one. A preferred
        holder marks the end of the leader's term. Follows tryCoordinatedRenew of client-go's leaderelection.go."""
        if self.lease is None or self.holder != self.identity or self.lease.spec.preferred_holder:
            return Verdict.HELD
        return Verdict.FREE if self.leading or now < self._held_until else Verdict.HELD

    def pause(self, now: float, luck: float) -> float:
        """Seconds until the next look; `luck` is between 0 and 1. Beyond client-go, the end of a lease that
        is not renewed is not slept through: a takeover comes within lease and one pause, not two."""
        usual = self.terms.retry_period * (1 + JITTER * luck)
        if self.coordinated:
            return usual
        remaining = self._held_until - now
        return remaining + SPREAD_SECONDS * luck if 0 < remaining < usual else usual

    def claim(self, wall: float) -> Lease:
        """The record to write: created when there is none, else in place of exactly the version known."""
        known = self.lease
        moment = format_time(wall, micro=True)
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self.terms.lease_duration),
            acquire_time=moment,
            renew_time=moment,
            lease_transitions=0,
        )
        if known is None:
            metadata = ObjectMeta(name=self.name, namespace=self.namespace)
            made = Lease(api_version=LEASES.api_version, kind=LEASES.kind, metadata=metadata, spec=spec)
            self._remember(spec)
            return made
        old = known.spec
        same = old.holder_identity == self.identity
        spec = msgspec.structs.replace(
            old,
            holder_identity=self.identity,
            lease_duration_seconds=spec.lease_duration_seconds,
            renew_time=moment,
            acquire_time=(old.acquire_time or moment) if same else moment,
            lease_transitions=(old.lease_transitions or 0) + (not same),
        )
        self._remember(spec)
        return msgspec.structs.replace(known, spec=spec)

    def wrote(self, lease: Lease) -> None:
        """A claim was accepted."""
        if not self.leading and self.lease is not None:
            self.taken_from = self.lease.resource_version
        elif not self.leading and self._held_until == -math.inf:
            self.taken_from = ""
        self.lease = lease
        self.leading = True

    def lost(self) -> None:
        """No longer the leader; final."""
        self.leading = False

    def release(self, wall: float) -> Lease | None:
        """The record that gives the lease back; None when it is not ours to give."""
        if self.lease is None or self.holder != self.identity:
            return None
        moment = format_time(wall, micro=True)
        spec = msgspec.structs.replace(
            self.lease.spec,
            holder_identity="",
            lease_duration_seconds=RELEASED_SECONDS,
            renew_time=moment,
            acquire_time=moment,
        )
        return msgspec.structs.replace(self.lease, spec=spec)

    def _remember(self, spec: LeaseSpec) -> None:
        self._claims = [*self._claims[-1:], spec]

    def _is_ours(self, spec: LeaseSpec) -> bool:
        """Whether the record names us by our own doing. One that names us otherwise was edited: the leader it
        was taken from may still act, so a candidate treats it as another replica's."""
        return spec.holder_identity == self.identity and (self.leading or spec in self._claims)


def is_released(spec: LeaseSpec) -> bool:
    """Whether its last holder gave it back."""
    times = spec.acquire_time == spec.renew_time
    return not spec.holder_identity and spec.lease_duration_seconds == RELEASED_SECONDS and times
