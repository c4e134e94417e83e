"""Leader election: reads and writes the Lease until it is ours, then keeps it. The decisions are in `lease`.

Runs wherever it is awaited. In production that is a thread with a loop and a connection of its own, so that
neither a busy scheduler nor its request budget can delay a renewal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol

from moorage.api.core import Lease
from moorage.api.errors import AlreadyExists, Conflict, MoorageError, NotFound, TransportError
from moorage.api.resources import LEASES
from moorage.client.lease import Fence, LeaseCandidate, Verdict
from moorage.framework.ports import ApiClient, Clock
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

log = logs.get(__name__)


class LeaderListener(Protocol):
    """Who is notified. Called on the election's own loop; must not block."""

    def leading(self, lease: Lease) -> None:
        """The lease is ours since a moment ago."""
        ...

    def lost(self, reason: str) -> None:
        """It was ours and is no longer. The fence is closed already; nothing comes after this."""
        ...

    def observed(self, holder: str) -> None:
        """Another replica is seen to lead."""
        ...

    def conflicted(self) -> None:
        """A renewal met another version of the lease and had to read it first."""
        ...


class Election:
    """One candidate. `beats` says whether the scheduler's loop is alive: for one that hangs nothing is
    renewed, so that another replica can take over."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        random: Random,
        candidate: LeaseCandidate,
        fence: Fence,
        listener: LeaderListener,
        beats: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._candidate = candidate
        self._fence = fence
        self._listener = listener
        self._beats = beats
        self._renewed = 0.0
        self._holder = ""
        self._complaints = Throttle(clock.now)

    async def run(self) -> None:
        """Win the lease, keep it, and return when it is lost. Cancelling leaves it as it is."""
        await self._acquire()
        await self._keep()

    async def release(self) -> bool:
        """Give the lease back, so that no standby has to wait for its end. Whether that was written."""
        self._fence.close()
        lease = self._candidate.release(self._clock.wall())
        self._candidate.lost()
        if lease is None:
            return False
        try:
            async with asyncio.timeout(self._patience()):
                await self._client.replace(LEASES, lease)
        except (MoorageError, TimeoutError) as error:
            log.warning("The lease could not be released; it will expire", lease=lease.key, err=_text(error))
            return False
        log.info(0, "Released the lease", lease=lease.key, identity=self._candidate.identity)
        return True

    # Winning

    async def _acquire(self) -> None:
        candidate = self._candidate
        log.info(0, "Attempting to acquire leader lease", lease=self._key(), identity=candidate.identity)
        while not await self._try(write_first=False):
            self._tell_holder()
            await self._clock.sleep(candidate.pause(self._clock.now(), self._random.random()))
        log.info(0, "Successfully acquired lease", lease=self._key(), identity=candidate.identity)
        if candidate.lease is not None:
            self._listener.leading(candidate.lease)

    def _tell_holder(self) -> None:
        holder = self._candidate.holder
        if holder != self._holder:
            self._holder = holder
            log.info(0, "New leader elected", identity=holder or "<none>", lease=self._key())
            self._listener.observed(holder)

    # Keeping

    async def _keep(self) -> None:
        terms = self._candidate.terms
        reason = ""
        while not reason:
            await self._clock.sleep(terms.retry_period)
            reason = await self._renew()
        self._fence.close()
        self._candidate.lost()
        log.error("Leader election lost", lease=self._key(), reason=reason)
        self._listener.lost(reason)

    async def _renew(self) -> str:
        """One renewal; why the lease is lost, or nothing."""
        if not self._fence.allows():
            return "the lease was not renewed in time"
        if not self._beats():
            if self._complaints.admits():
                log.error("The scheduling loop does not respond; the lease is not renewed", lease=self._key())
            return ""
        await self._try(write_first=True)
        if self._candidate.leading:
            return ""
        return f"the lease is held by {self._candidate.holder}"

    # One try

    async def _try(self, write_first: bool) -> bool:
        """Whether the lease is ours and was renewed just now. Failures that may pass are logged and answered
        with no; a leader that learns of another holder stops leading."""
        try:
            async with asyncio.timeout(self._patience()):
                if write_first and await self._write():
                    return True
                return await self._read_and_write()
        except (MoorageError, TimeoutError) as error:
            if self._complaints.admits():
                log.warning("Cannot reach the lease", lease=self._key(), err=_text(error))
            return False

    def _patience(self) -> float:
        """Seconds for one try: a request that hangs must leave time for another one."""
        return self._candidate.terms.renew_deadline / 2

    async def _read_and_write(self) -> bool:
        candidate = self._candidate
        candidate.see(await self._read(), self._clock.now())
        if candidate.judge(self._clock.now()) is Verdict.HELD:
            if candidate.leading:
                self._fence.close()
                candidate.lost()
            return False
        return await self._write()

    async def _read(self) -> Lease | None:
        try:
            found = await self._client.get(LEASES, self._candidate.name, self._candidate.namespace)
        except NotFound:
            return None
        if not isinstance(found, Lease):
            raise TransportError(f"the server answered with {type(found).__name__} where a Lease was asked for")
        return found

    async def _write(self) -> bool:
        """False: another version is there, read first."""
        candidate = self._candidate
        exists = candidate.lease is not None
        claim = candidate.claim(self._clock.wall())
        sent = self._clock.now()
        try:
            if exists:
                written = await self._client.replace(LEASES, claim)
            else:
                written = await self._client.create(LEASES, claim)
        except (Conflict, AlreadyExists, NotFound) as error:
            if isinstance(error, NotFound) and not exists:
                raise  # the namespace of the lease is not there
            self._listener.conflicted()
            return False
        candidate.wrote(written)
        self._fence.renewed(sent)
        return True

    def _key(self) -> str:
        return f"{self._candidate.namespace}/{self._candidate.name}"


def _text(error: BaseException) -> str:
    return str(error) or "no answer in time"
