"""What /moorage/v1 answers, put together from a running scheduler. Implements `serving.api_v1.Views`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from moorage.app.running import nodes_page, records_page, snapshot_page
from moorage.app.running.loop_door import LoopDoor
from moorage.app.running.nodes_page import NodesPage
from moorage.app.running.queue_page import QueuePage
from moorage.app.running.records_page import RecordsPage
from moorage.app.running.summary_page import SummaryPage
from moorage.app.scheduler import Scheduler
from moorage.serving.api_v1 import (
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
        return await records_page.attempts(self._scheduler, self._door, query)

    async def attempt(self, query: AttemptQuery, sequence: int) -> Answer:
        return await records_page.attempt(self._scheduler, self._door, query, sequence)

    async def nodes(self, query: NodesQuery) -> Answer:
        return await self._nodes.page(query)

    async def node(self, query: NodeQuery, name: str) -> Answer:
        return await nodes_page.node(self._scheduler, self._door, query, name)

    async def summary(self, query: SummaryQuery) -> Answer:
        return await self._summary.page()

    async def snapshot(self, query: SnapshotQuery) -> AsyncIterator[bytes]:
        return await snapshot_page.page(self._scheduler, self._door, query)
