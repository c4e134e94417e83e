"""/moorage/v1 asked about a cluster of the test kit, by path, without sockets and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from moorage.endpoints import queries
from moorage.endpoints.loop_bridge import LoopBridge, T
from moorage.endpoints.v1.views import SchedulerViews
from moorage.testing import Cluster

QUERIES: dict[str, type[msgspec.Struct]] = {
    "records": queries.RecordsQuery,
    "queue": queries.QueueQuery,
    "attempts": queries.AttemptsQuery,
    "attempt": queries.AttemptQuery,
    "nodes": queries.NodesQuery,
    "node": queries.NodeQuery,
    "summary": queries.SummaryQuery,
    "snapshot": queries.SnapshotQuery,
}


class DirectBridge(LoopBridge):
    """Calls functions on the loop itself: there is only one under virtual time."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, function: Callable[[], T]) -> T:
        self.calls += 1
        return function()


class Asker:
    """`get("queue?place=unschedulable")`, `get("nodes/node-1")`: the answer as a client reads it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.bridge = DirectBridge()
        self.views = SchedulerViews(cluster.scheduler, self.bridge)

    def get(self, path: str) -> Any:
        parts = urlsplit(path)
        view, _, item = parts.path.partition("/")
        given: dict[str, Any] = {}
        if item:
            view = view.removesuffix("s")
            given = {"sequence": int(item)} if view == "attempt" else {"name": item}
        query = queries.read_query(QUERIES[view], dict(parse_qsl(parts.query)))
        assert not isinstance(query, str), query
        answer = self.cluster.run(getattr(self.views, view)(query, **given))
        return msgspec.json.decode(msgspec.json.encode(answer))

    def snapshot(self, *, annotations: bool = False) -> list[bytes]:
        """The blocks of /moorage/v1/snapshot."""

        async def blocks() -> list[bytes]:
            found = await self.views.snapshot(queries.SnapshotQuery(annotations))
            return [block async for block in found]

        return self.cluster.run(blocks())
