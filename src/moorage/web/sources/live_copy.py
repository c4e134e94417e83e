"""A copy of the cluster of a running scheduler, on which pods are explained and changes are tried.

The scheduler sends the objects that it sees and its configuration. Everything else happens in the process of the
pages, on threads, so that a question costs the scheduling loop nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.client.credentials import Credentials
from moorage.endpoints import client
from moorage.snapshots.cluster import ClusterObjects
from moorage.web.source import Explained, Json, Question
from moorage.web.sources.snapshot_source import SnapshotSource
from moorage.web.sources.trying import upgrade, what_if

FRESH_SECONDS = 20.0
"""How long a copy answers questions; pages that are opened together share it."""
IDLE_SECONDS = 120.0
"""A copy of a large cluster takes much memory, so it is dropped after this time without a question."""


@dataclass(frozen=True, slots=True)
class ReadCopy:
    """A copy that answers questions."""

    source: SnapshotSource
    read: float
    """Epoch seconds."""


class LiveCopy:
    def __init__(self, given: Credentials) -> None:
        self._given = given
        self._clock = SystemClock()
        self._lock = asyncio.Lock()
        self._copy: ReadCopy | None = None
        self._dropping: asyncio.TimerHandle | None = None

    async def explain(self, key: str, since: float) -> Explained:
        """Explain a pod on a copy that was read after `since` (epoch seconds)."""
        async with self._lock:
            copy = self._copy
            if copy is None or copy.read < since or self._clock.wall() - copy.read > FRESH_SECONDS:
                copy = self._copy = await self._make()
        self._drop_later()
        answer = await copy.source.pod(key)
        assert answer.explanation is not None  # a copy explains every pod that it has
        return Explained(answer.explanation, copy.read)

    async def what_if(self, question: Question) -> Json:
        """Try a change on objects that are read now."""
        cluster, configured = await self._read()
        return await asyncio.to_thread(what_if, cluster, configured, question)

    async def upgrade(self, to: str) -> Json:
        """Preview an upgrade on objects that are read now."""
        cluster, configured = await self._read()
        return await asyncio.to_thread(upgrade, cluster, configured, to)

    async def _make(self) -> ReadCopy:
        read = self._clock.wall()
        cluster, configured = await self._read()

        async def again() -> ClusterObjects:
            return (await self._read())[0]

        source = await asyncio.to_thread(SnapshotSource, self._given.server, cluster, configured, again)
        return ReadCopy(source, read)

    async def _read(self) -> tuple[ClusterObjects, Configuration]:
        configured = await client.configuration(self._given)
        return await client.cluster(self._given, configured.resources()), configured

    def _drop_later(self) -> None:
        if self._dropping is not None:
            self._dropping.cancel()
        self._dropping = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop)

    def _drop(self) -> None:
        self._copy = self._dropping = None
