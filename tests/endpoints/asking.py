"""/moorage/v1 asked about a cluster of the test kit, by path, without sockets and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from moorage.endpoints.loop_bridge import LoopDoor, T
from moorage.endpoints.v1 import routes
from moorage.endpoints.v1.views import Pages
from moorage.testing import Cluster

QUERIES: dict[str, type[msgspec.Struct]] = {
    "records": routes.RecordsQuery,
    "queue": routes.QueueQuery,
    "attempts": routes.AttemptsQuery,
    "attempt": routes.AttemptQuery,
    "nodes": routes.NodesQuery,
    "node": routes.NodeQuery,
    "summary": routes.SummaryQuery,
    "snapshot": routes.SnapshotQuery,
}


class Inside(LoopDoor):
    """The asker is on the loop itself: there is only one under virtual time."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, question: Callable[[], T]) -> T:
        self.asked += 1
        return question()


class Asker:
    """`get("queue?place=parked")`, `get("nodes/node-1")`: the answer as a client reads it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.door = Inside()
        self.pages = Pages(cluster.scheduler, self.door)

    def get(self, path: str) -> Any:
        parts = urlsplit(path)
        view, _, item = parts.path.partition("/")
        given: dict[str, Any] = {}
        if item:
            view = view.removesuffix("s")
            given = {"sequence": int(item)} if view == "attempt" else {"name": item}
        query = routes.read_query(QUERIES[view], dict(parse_qsl(parts.query)))
        assert not isinstance(query, str), query
        answer = self.cluster.run(getattr(self.pages, view)(query, **given))
        return msgspec.json.decode(msgspec.json.encode(answer))

    def snapshot(self, *, annotations: bool = False) -> list[bytes]:
        """The blocks of /moorage/v1/snapshot."""

        async def blocks() -> list[bytes]:
            found = await self.pages.snapshot(routes.SnapshotQuery(annotations))
            return [block async for block in found]

        return self.cluster.run(blocks())
