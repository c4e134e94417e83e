"""What /moorage/v1 answers, put together from a running scheduler. Implements `endpoints.v1.routes.Views`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from moorage.app.scheduler import Scheduler
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1 import nodes, records, snapshot
from moorage.endpoints.v1.nodes import NodesPage
from moorage.endpoints.v1.queue import QueuePage
from moorage.endpoints.v1.records import RecordsPage
from moorage.endpoints.v1.routes import (
    Answer,
    AttemptQuery,
    AttemptsQuery,
    NodeQuery,
    NodesQuery,
    QueueQuery,
    RecordsQuery,
    SnapshotQuery,
    SummaryQuery,
)
from moorage.endpoints.v1.summary import SummaryPage


class Pages:
    """`leads`: whether this replica schedules; `generation`: the number of the configuration in use."""

    def __init__(
        self,
        scheduler: Scheduler,
        door: LoopDoor,
        leads: Callable[[], bool] = lambda: True,
        generation: Callable[[], int] = lambda: 1,
    ) -> None:
        self._scheduler = scheduler
        self._door = door
        self._records = RecordsPage(scheduler, door)
        self._queue = QueuePage(scheduler, door)
        self._nodes = NodesPage(scheduler, door)
        self._summary = SummaryPage(scheduler, door, leads, generation)

    async def records(self, query: RecordsQuery) -> Answer:
        return await self._records.page(query)

    async def queue(self, query: QueueQuery) -> Answer:
        return await self._queue.page(query)

    async def attempts(self, query: AttemptsQuery) -> Answer:
        return await records.attempts(self._scheduler, self._door, query)

    async def attempt(self, query: AttemptQuery, sequence: int) -> Answer:
        return await records.attempt(self._scheduler, self._door, query, sequence)

    async def nodes(self, query: NodesQuery) -> Answer:
        return await self._nodes.page(query)

    async def node(self, query: NodeQuery, name: str) -> Answer:
        return await nodes.node(self._scheduler, self._door, query, name)

    async def summary(self, query: SummaryQuery) -> Answer:
        return await self._summary.page()

    async def snapshot(self, query: SnapshotQuery) -> AsyncIterator[bytes]:
        return await snapshot.page(self._scheduler, self._door, query)
