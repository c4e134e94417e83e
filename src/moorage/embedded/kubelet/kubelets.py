"""The kubelets of all nodes of a cluster in one object: no task per node, none per pod.

Changes of pods and nodes, and the times of their next steps, come together in two queues; a few workers take
from them, compare what should be with what is, and write the difference. Dead nodes (`fail`, or the
annotation) do nothing at all: their pods stay as they are, as on a machine without power.

Nodes are made by others. What is done for them is in `nodes`, for pods in `pods`; the leases and the
usage are in `reports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from moorage.api.errors import MoorageError
from moorage.api.resources import Unstructured
from moorage.client.events import ApiEventRecorder
from moorage.embedded.controllers.caches import Caches
from moorage.embedded.controllers.kinds import node_name
from moorage.embedded.controllers.work_queue import Together, WorkQueue
from moorage.embedded.controllers.writes import Events, Writer
from moorage.embedded.kubelet import decisions
from moorage.embedded.kubelet.decisions import KubeletSettings
from moorage.embedded.kubelet.lives import KubeletEvents
from moorage.embedded.kubelet.nodes import REPORT_SECONDS, NodeKeeper
from moorage.embedded.kubelet.pods import PodKeeper
from moorage.embedded.kubelet.reports import Heartbeats, SimulatedUsage
from moorage.framework.ports import ApiClient, Clock
from moorage.telemetry import logs

log = logs.get(__name__)

_EVENT_BURST, _EVENT_RATE = 300.0, 20.0


class Kubelets:
    """All kubelets. `caches` may be shared with controllers of the same process; their owner runs them."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        random: Random,
        settings: KubeletSettings | None = None,
        *,
        caches: Caches | None = None,
        instance: str = "moorage",
    ) -> None:
        self.settings = settings or KubeletSettings()
        self._clock = clock
        self._owns_caches = caches is None
        self._caches = caches if caches is not None else Caches(client, clock, random)
        self._recorder = ApiEventRecorder(client, clock, random, instance=instance, queue_size=5000)
        events = KubeletEvents(Events(self._recorder, clock, burst=_EVENT_BURST, rate=_EVENT_RATE))
        writer = Writer(client, self._caches, clock)
        self._nodes = NodeKeeper(self._caches, writer, events, clock.wall, self.settings)
        self._pods = PodKeeper(self._caches, writer, events, clock, self.settings, self._nodes)
        self._heartbeats = Heartbeats(client, clock, self.settings, self._nodes.living_uid)
        self._pod_queue: WorkQueue[str] = WorkQueue(clock, random)
        self._node_queue: WorkQueue[str] = WorkQueue(clock, random)
        self._pods.pods.handlers.append(self._pod_changed)
        self._nodes.nodes.handlers.append(self._node_changed)
        self._synced = asyncio.Event()
        self._together = Together("kubelets")
        self.usage = SimulatedUsage(self._nodes.nodes, self._pods.pods, clock, self.settings)
        """For metrics.k8s.io."""

    async def run(self) -> None:
        """Runs until cancelled or stopped."""
        works = {"events": self._recorder.run(), "kubelets": self._work()}
        if self._owns_caches:
            works["caches"] = self._caches.run()
        try:
            await self._together.run(**works)
        finally:
            await self.stop()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def stop(self) -> None:
        await self._together.stop()
        self._pod_queue.close()
        self._node_queue.close()

    def fail(self, node: str) -> None:
        """The node loses its power: no heartbeat, no change of its pods."""
        self._nodes.fail(node)

    def recover(self, node: str) -> None:
        """The power is back. Pods go on; those that were deleted meanwhile stop."""
        self._nodes.recover(node)
        self._wake(node)

    @property
    def idle(self) -> bool:
        """Nothing to do now; steps that wait for their time do not count."""
        return self._pod_queue.idle and self._node_queue.idle

    # What concerns whom

    def _pod_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None:
                self._pods.forget(old)
        elif node_name(new):
            self._pod_queue.add(new.key)

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None:
                self._heartbeats.remove(old.name)
                self._pods.forget_node(old.name)
                self._nodes.forget(old.name)
            return
        self._heartbeats.add(new.name)
        self._node_queue.add(new.key)
        if old is None or decisions.is_dead(old) != decisions.is_dead(new):
            self._wake(new.name)

    def _wake(self, node: str) -> None:
        self._node_queue.add(node)
        for pod in self._pods.on(node):
            self._pod_queue.add(pod.key)

    # Work

    async def _work(self) -> None:
        await self._caches.wait_synced()
        self._synced.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._heartbeats.run(), name="kubelet heartbeats")
            group.create_task(self._report_nodes(), name="kubelet node reports")
            group.create_task(self._take(self._node_queue, self._nodes.sync), name="kubelet nodes")
            for number in range(self.settings.workers):
                group.create_task(self._take(self._pod_queue, self._sync_pod), name=f"kubelet pods {number}")

    async def _report_nodes(self) -> None:
        while True:
            await self._clock.sleep(REPORT_SECONDS)
            await self._nodes.report_all()

    async def _sync_pod(self, key: str) -> float | None:
        self._pods.backlog = len(self._pod_queue)
        return await self._pods.sync(key)

    async def _take(self, queue: WorkQueue[str], sync: Callable[[str], Awaitable[float | None]]) -> None:
        while True:
            key = await queue.get()
            try:
                again = await sync(key)
            except MoorageError as error:
                delay = queue.add_failed(key)
                log.info(4, "Kubelet work failed; trying again", key=key, seconds=delay, err=error)
            except Exception as error:
                queue.add_failed(key)
                log.error("Kubelet failed with a bug; continuing", error=error, stack=True, key=key)
            else:
                queue.forget(key)
                if again is not None:
                    queue.add_after(key, again)
            finally:
                queue.done(key)
