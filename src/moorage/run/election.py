"""Leader election in its own thread, with its own loop and connection.

The scheduler's loop cannot delay a renewal; only if its heartbeat stops, the lease is not renewed.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import threading
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from moorage.api.core import Lease
from moorage.api.errors import MoorageError
from moorage.app.clock import LeaseClock
from moorage.client.candidacy import Candidacy
from moorage.client.election import Election
from moorage.client.lease import Fence, LeaseCandidate, Terms
from moorage.framework.ports import ApiClient
from moorage.telemetry import logs

_log = logs.get(__name__)

LAST_RESORT_SECONDS = 30.0
"""Seconds after the loss of the lease until the process exits, even if its loop is blocked."""


class ClosableClient(ApiClient, Protocol):
    """A client with a connection to close."""

    async def close(self) -> None: ...


class Watcher(Protocol):
    """Notified on the scheduler's loop."""

    def on_leading(self, lease: Lease) -> None: ...

    def on_lost(self, reason: str) -> None: ...


def make_identity() -> str:
    """Return an identity like kube-scheduler's: the host name and a UUID."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class ElectionThread:
    """Runs one election until it is lost, or until `release`."""

    def __init__(
        self,
        *,
        connect: Callable[[LeaseClock], ClosableClient],
        candidate: LeaseCandidate,
        fence: Fence,
        beats: Callable[[], bool],
        loop: asyncio.AbstractEventLoop,
        watcher: Watcher,
        on_conflict: Callable[[], None] = lambda: None,
        version: str = "",
        last_resort: float = LAST_RESORT_SECONDS,
    ) -> None:
        """`version` is the Kubernetes version that a coordinated candidate announces."""
        self._connect = connect
        self._candidate = candidate
        self._fence = fence
        self._beats = beats
        self._loop = loop
        self._watcher = watcher
        self._on_conflict = on_conflict
        self._version = version
        self._last_resort = last_resort
        self._thread = threading.Thread(target=self._main, name="election", daemon=True)
        self._own_loop = asyncio.new_event_loop()
        self._election: Election | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self.holder = ""
        """The last known leader."""

    def start(self) -> None:
        self._thread.start()

    async def release(self, seconds: float = 10.0, *, give_back: bool = True) -> bool:
        """Stop renewing, release the lease and end the thread. Returns whether the lease was released. Call
        it on the scheduler's loop when all writes are finished. A lost lease cannot be released."""
        self._fence.close()
        if not self._thread.is_alive():
            return False
        asked = asyncio.run_coroutine_threadsafe(self._release(give_back), self._own_loop)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(asked)
        except TimeoutError:
            _log.warning("The lease was not released in time; it will expire", seconds=seconds)
            return False
        finally:
            await asyncio.to_thread(self._thread.join, 2.0)

    # On the thread

    def _main(self) -> None:
        asyncio.set_event_loop(self._own_loop)
        try:
            self._own_loop.run_until_complete(self._live())
        finally:
            self._own_loop.close()

    async def _live(self) -> None:
        clock = LeaseClock()
        client = self._connect(clock)
        try:
            self._election = Election(client, clock, random.Random(), self._candidate, self._fence, self, self._beats)
            self._running = asyncio.create_task(self._run(self._election.run()))
            announcing = asyncio.create_task(self._run(self._announce(client, clock)))
            await self._stopped.wait()
            announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)
        finally:
            await client.close()

    async def _announce(self, client: ClosableClient, clock: LeaseClock) -> None:
        """Keep the LeaseCandidate of this replica if the API server chooses the leader."""
        candidate = self._candidate
        if candidate.coordinated:
            await Candidacy(
                client,
                clock,
                identity=candidate.identity,
                lease=candidate.name,
                namespace=candidate.namespace,
                version=self._version,
            ).run()

    async def _run(self, election: Coroutine[Any, Any, None]) -> None:
        try:
            await election
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # A bug here must not leave a leader that no other replica can replace.
            self._fence.close()
            _log.error("Leader election failed", error=error, stack=True)
            self.lost(f"{type(error).__name__}: {error}")

    async def _release(self, give_back: bool) -> bool:
        try:
            if self._running is not None:
                self._running.cancel()
                await asyncio.gather(self._running, return_exceptions=True)
            return give_back and self._election is not None and await self._election.release()
        except MoorageError as error:
            _log.warning("The lease could not be released", err=str(error))
            return False
        finally:
            self._stopped.set()

    # Reports of the election, forwarded to the scheduler's loop

    def leading(self, lease: Lease) -> None:
        self._notify(self._watcher.on_leading, lease)

    def lost(self, reason: str) -> None:
        self._notify(self._watcher.on_lost, reason)
        timer = threading.Timer(self._last_resort, self._give_up)
        timer.daemon = True
        timer.start()

    def observed(self, holder: str) -> None:
        self.holder = holder

    def conflicted(self) -> None:
        self._on_conflict()

    def _notify(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def _give_up(self) -> None:
        _log.error("The lease is lost and the scheduler does not exit; exiting now", seconds=self._last_resort)
        os._exit(1)


def make_candidate(identity: str, name: str, namespace: str, terms: Terms, coordinated: bool = False) -> LeaseCandidate:
    """Return a candidate for the lease of the configuration."""
    return LeaseCandidate(identity or make_identity(), name, namespace, terms, coordinated=coordinated)
