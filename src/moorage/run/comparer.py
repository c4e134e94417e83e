"""Compares the scheduler's caches with the API server, all the time, and repairs differences.

It compares cache and queue with the mirrors of the informers, and the mirrors with lists of the API server,
both in small pieces. A difference may be an event that has not arrived yet, so it counts only if it is found
twice in a row. Then it is repaired, counted and logged: every such case is a bug or a lost event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from itertools import islice

from moorage.api.errors import MoorageError
from moorage.api.meta import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.client.informers import FIELD_SELECTORS, Informer
from moorage.client.lists import is_older
from moorage.framework.ports import ADDED, DELETED, ApiClient, Clock, WatchEvent
from moorage.run.takeover import reached
from moorage.scheduler.engine import Engine
from moorage.scheduler.instructions import Inspect
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

SLICE = 500
"""Objects to compare between two cycles: about half a millisecond."""
PAUSE = 0.2
"""Seconds between two slices."""
ROUND = 30.0
"""Seconds between two rounds over cache and queue."""
LISTING = 600.0
"""Seconds between two comparisons with lists of the API server."""
PAGE, PAGE_PAUSE = 100, 0.05
"""Objects in one page of a list, and seconds until the next page. Pages are small and have metadata only,
because long-lived objects are created in between, and freed pages leave holes among them."""

Repair = Callable[[], object]
Finding = tuple[str, Hashable, Repair]
"""The kind of difference, the object, and how to repair it."""
OnHistoryLost = Callable[[Resource, str, str], None]
"""Called with the version of an object that the API server has lost, and the lower one that it has."""


async def between_cycles(engine: Engine, clock: Clock, steps: Iterator[object]) -> None:
    """Run all steps, a slice at a time, when no cycle runs and all events are applied."""
    while await _slice(engine, steps):
        await clock.sleep(PAUSE)


async def _slice(engine: Engine, steps: Iterator[object]) -> bool:
    """Run one slice. Returns whether there are more."""
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def look() -> None:
        more = False
        try:
            more = sum(1 for _ in islice(steps, SLICE)) == SLICE
        except Exception as error:
            _log.error("Inspecting the cache or the queue failed", error=error, stack=True)
        if not done.done():
            done.set_result(more)

    engine.inbox.post(Inspect("comparison", look))
    return await done


class Comparer:
    """Runs beside the engine, and touches its state only between two cycles."""

    def __init__(
        self,
        engine: Engine,
        pods: Informer,
        nodes: Informer,
        client: ApiClient,
        clock: Clock,
        metrics: SchedulerMetrics,
        on_rewind: OnHistoryLost = lambda resource, seen, found: None,
    ) -> None:
        self._engine = engine
        self._pods = pods
        self._nodes = nodes
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._on_rewind = on_rewind
        self._suspects: set[tuple[str, Hashable]] = set()
        self._complaints = Throttle(clock.now)

    async def run(self) -> None:
        """Run until cancelled."""
        listed = self._clock.now()
        while True:
            await self._clock.sleep(ROUND)
            await self.round()
            if self._clock.now() - listed >= LISTING:
                listed = self._clock.now()
                await self._compare_lists()

    async def round(self) -> None:
        """Compare everything in memory once."""
        seen: set[tuple[str, Hashable]] = set()
        for look in (self._nodes_differ, self._mirrored_pods_differ, self._cached_pods_differ, self._queued_differ):
            await between_cycles(self._engine, self._clock, self._judged(look(), seen))
        self._suspects = seen
        self._metrics.comparisons.inc()

    def _judged(self, found: Iterator[Finding | None], seen: set[tuple[str, Hashable]]) -> Iterator[None]:
        for finding in found:
            if finding is not None:
                self._judge(finding, seen)
            yield

    def _judge(self, finding: Finding, seen: set[tuple[str, Hashable]]) -> None:
        kind, what, repair = finding
        if (kind, what) not in self._suspects:
            seen.add((kind, what))
            return
        self._metrics.differences.inc(kind)
        if self._complaints.admits():
            _log.error("Cache or queue differed from the API server; repaired", kind=kind, object=str(what))
        repair()

    # Comparisons. Each yields None for an object without a difference, so that slices have equal size.

    def _mirrored_pods_differ(self) -> Iterator[Finding | None]:
        for pod in list(self._pods.objects.values()):
            yield self._pod_differs(pod)

    def _pod_differs(self, pod: Pod) -> Finding | None:
        if self._pods.objects.get(pod.key) is not pod or pod.is_terminal:
            return None
        cache, queue = self._engine.cache, self._engine.queue
        cached = cache.get(pod.uid)
        if pod.is_assigned:
            if cached is None:
                return "pod_not_cached", pod.uid, lambda: cache.add_pod(pod)
            if cached.node_name != pod.spec.node_name:
                return "pod_on_another_node", pod.uid, lambda: cache.add_pod(pod)
            return None
        ours = pod.scheduler_name in self._engine.profiles and not pod.is_terminating
        if ours and cached is None and pod.uid not in queue:
            return "pod_not_queued", pod.uid, lambda: queue.add(pod)
        return None

    def _cached_pods_differ(self) -> Iterator[Finding | None]:
        cache = self._engine.cache
        for cached in list(cache.pods()):
            pod = cached.pod
            mirrored = self._pods.objects.get(pod.key)
            if mirrored is not None and mirrored.uid == pod.uid:
                yield None
            elif cached.assumed and pod.uid in self._engine.placements:
                yield None  # the result of the binding decides
            elif cache.get(pod.uid) is cached:
                yield "pod_gone_but_cached", pod.uid, lambda pod=pod: cache.remove_pod(pod)  # type: ignore[misc]

    def _queued_differ(self) -> Iterator[Finding | None]:
        queue = self._engine.queue
        for info, location in list(queue.pending):
            mirrored = self._pods.objects.get(info.pod.key)
            if location.place == "inflight" or (mirrored is not None and mirrored.uid == info.uid):
                yield None
            else:
                yield "pod_gone_but_queued", info.uid, lambda pod=info.pod: queue.delete(pod)  # type: ignore[misc]

    def _nodes_differ(self) -> Iterator[Finding | None]:
        cache, mirrored = self._engine.cache, self._nodes.objects
        for node in list(mirrored.values()):
            yield self._node_differs(node)
        for name in list(cache.table.nodes().names):
            if name not in mirrored:
                view = cache.table.view(cache.table.row_of(name))
                yield "node_gone_but_cached", name, lambda node=view.node: cache.remove_node(node)  # type: ignore[misc]

    def _node_differs(self, node: Node) -> Finding | None:
        cache = self._engine.cache
        if self._nodes.objects.get(node.name) is not node or not node.name:
            return None
        row = cache.table.row_of(node.name)
        if row < 0:
            return "node_not_cached", node.name, lambda: cache.add_node(node)
        if cache.table.view(row).node.resource_version != node.resource_version:
            return "node_outdated", node.name, lambda: cache.add_node(node)
        return None

    # The mirrors against the API server.

    async def _compare_lists(self) -> None:
        for informer in (self._nodes, self._pods):
            try:
                first = await self._list_differs(informer)
                if first:
                    await self._clock.sleep(ROUND)
                    for key in first & await self._list_differs(informer):
                        await self._mend(informer, key)
            except MoorageError as error:
                _log.warning("Cannot list for comparison", resource=informer.resource, err=str(error))

    async def _list_differs(self, informer: Informer) -> set[str]:
        """Return the keys of objects whose last event the mirror has missed, according to a list."""
        differing: set[str] = set()
        listed: set[str] = set()
        page, version = "", ""
        while True:
            page, version = await self._look_at_page(informer, page, listed, differing)
            if not page:
                break
            await self._clock.sleep(PAGE_PAUSE)
        for key, known in list(informer.objects.items()):
            if key not in listed and reached(version, known.resource_version):
                differing.add(key)
        return differing

    async def _look_at_page(
        self, informer: Informer, page: str, listed: set[str], differing: set[str]
    ) -> tuple[str, str]:
        """Compare one page. Returns the token of the next one and the version of the list."""
        answer = await self._client.list(
            replace(informer.resource, type=Object),
            field_selector=FIELD_SELECTORS.get(informer.resource, ""),
            resource_version="",
            limit=PAGE,
            page=page,
        )
        for obj in answer.items:
            listed.add(obj.key)
            known = informer.objects.get(obj.key)
            if known is None or not reached(known.resource_version, obj.resource_version):
                differing.add(obj.key)
            elif _is_lost(known, obj, answer.resource_version):
                # The numbers of the probe (`client.probing`) do not show it if the server has caught up with them.
                self._on_rewind(informer.resource, known.resource_version, obj.resource_version)
                return "", answer.resource_version
        return answer.next_page, answer.resource_version

    async def _mend(self, informer: Informer, key: str) -> None:
        """Read one object, and apply the lost event unless it has arrived meanwhile."""
        namespace, _, name = key.rpartition("/")
        selectors = (FIELD_SELECTORS.get(informer.resource, ""), f"metadata.name={name}")
        answer = await self._client.list(
            informer.resource,
            namespace=namespace,
            field_selector=",".join(filter(None, selectors)),
            resource_version="",
        )
        known = informer.objects.get(key)
        if answer.items:
            event = WatchEvent(ADDED, answer.items[0], "")
            lost = known is None or not reached(known.resource_version, event.object.resource_version)
        else:
            event = WatchEvent(DELETED, known, "")
            # An object that cannot be decoded exists.
            lost = (
                known is not None and not answer.malformed and reached(answer.resource_version, known.resource_version)
            )
        if lost:
            self._metrics.differences.inc("mirror_outdated")
            _log.error("An event was lost; the list has repaired it", resource=informer.resource, object=key)
            informer.apply(event)


def _is_lost(known: Object, listed: Object, version: str) -> bool:
    """Return whether a list at `version` proves that the version in the mirror is not in the server's history.

    A mirror that is only ahead of the list has a version above that of the list.
    """
    older = is_older(listed.resource_version, known.resource_version)
    return older and known.uid == listed.uid and reached(version, known.resource_version)
