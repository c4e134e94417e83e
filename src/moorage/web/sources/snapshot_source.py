"""A cluster that was read once, from a file or an API server, as a source of the pages.

One thread answers the questions in turn, because the engine in memory has one state. The pages stay
responsive meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.app.configuration import Configuration
from moorage.app.offline import question_engine
from moorage.endpoints.answers import CheckedConfiguration, ConfigurationAnswer, NodeAnswer, QueueAnswer, SummaryAnswer
from moorage.endpoints.queries import QueueQuery
from moorage.endpoints.v1 import configuration as configurations
from moorage.endpoints.v1 import nodes as nodes_view
from moorage.explain.explanation import explain
from moorage.explain.judging import Judge, find_pod
from moorage.framework.nodes import Nodes, NodeView
from moorage.snapshots.cluster import ClusterObjects
from moorage.web.source import Json, NodeContent, PodContent, Question
from moorage.web.sources.node_columns import UsageColumns, label_columns
from moorage.web.sources.pending import PendingPods, judge_pending
from moorage.web.sources.trying import upgrade, what_if

T = TypeVar("T")
Read = Callable[[], Awaitable[ClusterObjects]]
MAX_PODS = 1000
"""Number of pods of one node that a page lists."""


class SnapshotSource:
    refresh_seconds = 0.0

    def __init__(
        self,
        title: str,
        cluster: ClusterObjects,
        configured: Configuration,
        read: Read,
        usage: UsageColumns | None = None,
    ) -> None:
        self.title = title
        self._usage = usage
        self._configured = configured
        self._read = read
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="asking")
        self._take(cluster)

    def _take(self, cluster: ClusterObjects) -> None:
        self._cluster = cluster
        self._engine = question_engine(self._configured, cluster.changes())
        self._pending: PendingPods | None = None

    async def _ask(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Answer a question on the thread, on a new event loop."""
        return await self._call(lambda: asyncio.run(question()))

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    async def read_again(self) -> None:
        cluster = await self._read()
        await self._call(lambda: self._take(cluster))

    async def summary(self) -> SummaryAnswer:
        async def answer() -> SummaryAnswer:
            pending = await self._judged()
            cache = self._engine.cache
            return SummaryAnswer(nodes=len(self._nodes), pods={**pending.counts(), "bound": len(cache)})

        return await self._ask(answer)

    async def queue(self, query: QueueQuery) -> QueueAnswer:
        async def answer() -> QueueAnswer:
            return (await self._judged()).page(query)

        return await self._ask(answer)

    async def pod(self, key: str) -> PodContent:
        async def answer() -> PodContent:
            pod = self._pod(key)
            found = await explain(Judge.of(self._engine, pod), pod, table=True)
            return PodContent(found.to_dict())

        return await self._ask(answer)

    async def pod_on_node(self, key: str, node: str) -> list[Json]:
        async def answer() -> list[Json]:
            pod = self._pod(key)
            found = await explain(Judge.of(self._engine, pod), pod, nodes=[node], remedies=0)
            return found.nodes.get(node, [])

        return await self._ask(answer)

    async def nodes(self) -> Json:
        columns = await self._call(lambda: _columns(self._nodes))
        return columns if self._usage is None else await self._usage.add_to(columns)

    async def node(self, name: str) -> NodeContent:
        async def answer() -> NodeContent:
            row = self._nodes.columns.row_of(name)
            if row < 0:
                raise MoorageError(f"node {name!r} does not exist in {self.title}; the Cluster page lists all nodes")
            refused = (await self._judged()).refused_by(name)
            return NodeContent(_described(self._nodes.columns.view(row)), refused)

        return await self._ask(answer)

    async def what_if(self, question: Question) -> Json:
        return await self._call(lambda: what_if(self._cluster, self._configured, question))

    async def upgrade(self, to: str) -> Json:
        return await self._call(lambda: upgrade(self._cluster, self._configured, to))

    async def configuration(self) -> ConfigurationAnswer:
        return await self._call(lambda: configurations.described(self._configured))

    async def check(self, text: str) -> CheckedConfiguration:
        return await self._call(lambda: configurations.check(text, self._configured.registry, self._configured.gates))

    # On the thread

    @property
    def _nodes(self) -> Nodes:
        return self._engine.services.nodes()

    async def _judged(self) -> PendingPods:
        if self._pending is None:
            self._pending = await judge_pending(self._engine)
        return self._pending

    def _pod(self, key: str) -> Pod:
        namespace, _, name = key.partition("/")
        return find_pod(self._engine, name, namespace)


def _columns(nodes: Nodes) -> Json:
    views = list(nodes)
    resources = dict.fromkeys(name for view in views for name in view.allocatable)
    return {
        "names": nodes.names,
        "unschedulable": [view.unschedulable for view in views],
        "deleting": [view.node.metadata.deletion_timestamp is not None for view in views],
        "labels": label_columns([view.labels for view in views]),
        "amounts": {
            name: {"allocatable": nodes.allocatable(name).tolist(), "requested": nodes.requested(name).tolist()}
            for name in resources
        },
    }


def _described(view: NodeView) -> NodeAnswer:
    pods = sorted(view.pods, key=lambda pod: pod.key)
    shown = [nodes_view.pod_on_node(pod, pod_requests(pod)) for pod in pods[:MAX_PODS]]
    return nodes_view.described(view, {**view.requested, "pods": len(pods)}, shown, None)
