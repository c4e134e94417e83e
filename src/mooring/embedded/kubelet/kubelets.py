"""The kubelets of all nodes of a cluster in one object: no task per node, none per pod.

Changes of pods and nodes, and the times of their next steps, come together in two queues; a few workers
take from them, compare what should be with what is, and write the difference. Dead nodes (`fail`, or the
annotation) do nothing at all: their pods stay as they are, as on a machine without power.

Nodes are made by others. What pods do is in `lives`, what they may do in `admission`, the lease in
`heartbeats`.
"""

from __future__ import annotations

import asyncio
import math
from random import Random

from mooring.api import decoding, resources
from mooring.api.errors import AlreadyExists, MooringError
from mooring.api.label_selectors import parse_selector
from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.resources import Unstructured
from mooring.client.events import ApiEventRecorder
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.caches import Caches
from mooring.embedded.controllers.eventing import Events
from mooring.embedded.controllers.pod_states import is_finished, is_terminating, node_name
from mooring.embedded.controllers.work_queue import WorkQueue
from mooring.embedded.controllers.writing import Writer
from mooring.embedded.kubelet import addresses, lives, node_status, pod_status, scripts
from mooring.embedded.kubelet.addresses import Addresses
from mooring.embedded.kubelet.admission import NodeLoad
from mooring.embedded.kubelet.heartbeats import Heartbeats
from mooring.embedded.kubelet.lives import Life
from mooring.embedded.kubelet.pacing import Pace
from mooring.embedded.kubelet.settings import KubeletSettings
from mooring.embedded.kubelet.usage import SimulatedUsage
from mooring.embedded.kubelet.volumes import volumes_ready
from mooring.framework.ports import ApiClient, Clock
from mooring.telemetry import logs

log = logs.get(__name__)

NODE = "node"
"""The index of pods by their node."""
_REPORT_SECONDS = 300.0
"""Between two full node reports when nothing changes, as upstream's nodeStatusReportFrequency."""
_VOLUME_RETRY = 2.0
_NODE_REASONS = ("NodeAffinity", "TaintToleration")


class Kubelets:
    """All kubelets. `caches` may be shared with controllers of the same process; then their owner runs
    them.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        random: Random,
        settings: KubeletSettings | None = None,
        *,
        caches: Caches | None = None,
        instance: str = "mooring",
    ) -> None:
        self.settings = settings or KubeletSettings()
        self._client = client
        self._clock = clock
        self._owns_caches = caches is None
        self._caches = caches or Caches(client, clock, random)
        self._writer = Writer(client, self._caches, clock)
        self._recorder = ApiEventRecorder(client, clock, random, instance=instance, queue_size=5000)
        self._events = Events(self._recorder, clock, burst=300.0, rate=20.0)
        self._selector = parse_selector(self.settings.node_selector)
        self._pods = self._caches.of(kinds.PODS)
        self._pods.add_index(NODE, lambda pod: (node_name(pod),))
        self._nodes = self._caches.of(kinds.NODES)
        self._claims = self._caches.of(kinds.CLAIMS)
        self._volumes = self._caches.of(kinds.VOLUMES)
        self._csi_nodes = self._caches.of(kinds.CSI_NODES)
        self._pods.handlers.append(self._pod_changed)
        self._nodes.handlers.append(self._node_changed)
        self._pod_queue: WorkQueue[str] = WorkQueue(clock, random)
        self._node_queue: WorkQueue[str] = WorkQueue(clock, random)
        self._heartbeats = Heartbeats(client, clock, self.settings, self._living_uid)
        self._pace = Pace(clock, self.settings.writes_per_second)
        self._pod_ips = Addresses(addresses.PODS)
        self._node_ips = Addresses(addresses.NODES)
        self._lives: dict[str, Life] = {}
        """UID → life of each pod that was admitted."""
        self._loads: dict[str, NodeLoad] = {}
        self._failed: set[str] = set()
        self._synced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.usage = SimulatedUsage(self._nodes, self._pods, clock, self.settings)
        """For metrics.k8s.io."""

    # Life

    async def run(self) -> None:
        """Runs until cancelled or stopped."""
        works = [self._recorder.run(), self._start()]
        if self._owns_caches:
            works.append(self._caches.run())
        self._tasks = [asyncio.create_task(work, name=f"kubelets {i}") for i, work in enumerate(works)]
        try:
            await asyncio.gather(*self._tasks)
        except asyncio.CancelledError:
            if self._tasks:
                raise
        finally:
            await self.stop()

    async def _start(self) -> None:
        await self._caches.wait_synced()
        self._synced.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._heartbeats.run(), name="kubelet heartbeats")
            group.create_task(self._report_nodes(), name="kubelet node reports")
            for number in range(self.settings.workers):
                group.create_task(self._work(self._pod_queue, self._sync_pod), name=f"kubelet pods {number}")
            group.create_task(self._work(self._node_queue, self._sync_node), name="kubelet nodes")

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pod_queue.close()
        self._node_queue.close()

    def fail(self, node: str) -> None:
        """The node loses its power: no heartbeat, no change of its pods."""
        self._failed.add(node)

    def recover(self, node: str) -> None:
        """The power is back. Pods go on; those that were deleted meanwhile stop."""
        self._failed.discard(node)
        self._wake(node)

    @property
    def idle(self) -> bool:
        """Nothing to do now; steps that wait for their time do not count."""
        return self._pod_queue.idle and self._node_queue.idle

    # What concerns whom

    def _lives_on(self, node: str) -> Unstructured | None:
        """The node, if it is simulated here and alive."""
        found = self._nodes.get(node)
        if found is None or node in self._failed or scripts.is_dead(found):
            return None
        return found if self._selector.matches(found.labels) else None

    def _living_uid(self, node: str) -> str | None:
        found = self._lives_on(node)
        return None if found is None else found.uid

    def _pod_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None:
                self._forget(old)
        elif node_name(new):
            self._pod_queue.add(new.key)

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None:
                self._heartbeats.remove(old.name)
                self._loads.pop(old.name, None)
                self._node_ips.give_back(old.name)
            return
        self._heartbeats.add(new.name)
        self._node_queue.add(new.key)
        if old is None or scripts.is_dead(old) != scripts.is_dead(new):
            self._wake(new.name)

    def _wake(self, node: str) -> None:
        self._node_queue.add(node)
        for pod in self._pods.find(NODE, node):
            self._pod_queue.add(pod.key)

    def _forget(self, pod: Unstructured) -> None:
        if self._lives.pop(pod.uid, None) is not None:
            self._pod_ips.give_back(pod.uid)
        load = self._loads.get(node_name(pod))
        if load is not None:
            load.remove(pod.uid)

    # Nodes

    async def _report_nodes(self) -> None:
        """Full reports in turn, so that heartbeat times in the conditions go on."""
        while True:
            await self._clock.sleep(_REPORT_SECONDS)
            for node in self._nodes:
                await self._sync_node(node.key, beat=True)

    async def _sync_node(self, key: str, beat: bool = False) -> float | None:
        node = self._lives_on(key)
        if node is None:
            return None
        told, problems = scripts.node_conditions(node.annotations)
        for problem in problems:
            self._events.warning("kubelet", node, "InvalidAnnotation", problem)
        address = node_status.address_of(node) or self._node_ips.of(node.name)
        wall = self._clock.wall()
        status = node_status.status_of(node, address, told, self.settings.version, wall, beat)
        await self._writer.update_status(kinds.NODES, node, status)
        if self._csi_nodes.get(node.name) is None:
            await self._create_csi_node(node)
        return None

    async def _create_csi_node(self, node: Unstructured) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        raw = {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": {"drivers": []}}
        try:
            await self._writer.create(kinds.CSI_NODES, raw)
        except AlreadyExists:
            await self._writer.refresh(kinds.CSI_NODES, node.name, "")

    # Pods

    async def _sync_pod(self, key: str) -> float | None:
        pod = self._pods.get(key)
        if pod is None or not node_name(pod):
            return None
        node = self._lives_on(node_name(pod))
        if node is None:
            return None
        load = self._load_of(node.name)
        if is_finished(pod):
            load.remove(pod.uid)
            if is_terminating(pod):
                await self._delete(pod)
            return None
        life = self._lives.get(pod.uid)
        if life is None:
            if is_terminating(pod):
                await self._delete(pod)  # never started here: nothing to stop
                return None
            life = await self._admit(pod, node, load)
            if life is None:
                return None
        return await self._advance(pod, node, life)

    def _load_of(self, node: str) -> NodeLoad:
        """What the node has admitted. The first time, those count that were admitted before this process."""
        load = self._loads.get(node)
        if load is None:
            load = self._loads[node] = NodeLoad()
            for pod in self._pods.find(NODE, node):
                if _was_admitted(pod) and not is_finished(pod):
                    self._resume(pod, load)
        return load

    def _resume(self, pod: Unstructured, load: NodeLoad) -> Life:
        address = (pod.raw.get("status") or {}).get("podIP")
        if address:
            self._pod_ips.keep(pod.uid, address)
        life = lives.resume(pod, self._pod_ips.of(pod.uid), self._clock.wall(), self.settings.crash_backoff)
        self._lives[pod.uid] = life
        load.add(_typed(pod))
        return life

    async def _admit(self, pod: Unstructured, node: Unstructured, load: NodeLoad) -> Life | None:
        if _was_admitted(pod):
            return self._resume(pod, load)
        typed = _typed(pod)
        refused = load.judge(typed, _typed_node(node))
        if refused is not None and refused.reason in _NODE_REASONS:
            # As upstream: labels and taints may have changed already, so the node is read before a pod fails.
            await self._writer.refresh(kinds.NODES, node.name, "")
            refused = load.judge(typed, _typed_node(self._nodes.get(node.name) or node))
        wall = self._clock.wall()
        if refused is not None:
            status = pod_status.rejected(pod, refused.reason, refused.message, wall)
            await self._pace.turn()
            await self._writer.update_status(kinds.PODS, pod, status)
            self._events.warning("kubelet", pod, refused.reason, refused.message)
            return None
        load.add(typed)
        host = bool((pod.raw.get("spec") or {}).get("hostNetwork"))
        address = node_status.address_of(node) or self._node_ips.of(node.name)
        life = lives.begin(wall, address if host else self._pod_ips.of(pod.uid), self.settings.crash_backoff)
        self._lives[pod.uid] = life
        for problem in scripts.script_of(pod, self.settings).problems:
            self._events.warning("kubelet", pod, "InvalidAnnotation", problem)
        return life

    async def _advance(self, pod: Unstructured, node: Unstructured, life: Life) -> float | None:
        wall = self._clock.wall()
        script = scripts.script_of(pod, self.settings)
        if is_terminating(pod):
            return await self._stop(pod, node, life, script, wall)
        ready = volumes_ready(pod, self._claims, self._volumes)
        surroundings = lives.Node(
            node_status.address_of(node) or self._node_ips.of(node.name), volumes_ready=ready
        )
        was = (life.phase, life.main.restarts, life.main.state)
        due = life.advance(pod, script, surroundings, wall)
        is_new = not (pod.raw.get("status") or {}).get("containerStatuses")
        if not (is_new and life.phase == "Pending" and len(self._pod_queue) > self.settings.busy_backlog):
            await self._write(pod, life, surroundings)
        self._tell(pod, life, was)
        if not ready:
            due = min(due, wall + _VOLUME_RETRY)
        return None if math.isinf(due) else max(0.0, due - self._clock.wall())

    async def _write(self, pod: Unstructured, life: Life, surroundings: lives.Node) -> None:
        status = pod_status.status_of(pod, life.picture(surroundings), self._clock.wall())
        if status == (pod.raw.get("status") or {}):
            return
        await self._pace.turn()
        current = self._pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            return
        if (
            current.resource_version != pod.resource_version
        ):  # others wrote while this one waited for its turn
            status = pod_status.status_of(current, life.picture(surroundings), self._clock.wall())
        await self._writer.update_status(kinds.PODS, current, status)
        if life.is_over:
            load = self._loads.get(node_name(pod))
            if load is not None:
                load.remove(pod.uid)
        elif current.metadata.generation > 1:
            self._load_of(node_name(pod)).add(_typed(current))  # a resize changes what it holds

    async def _stop(
        self, pod: Unstructured, node: Unstructured, life: Life, script: scripts.Script, wall: float
    ) -> float | None:
        grace = pod.metadata.deletion_grace_period_seconds
        if life.stopping_since is None:
            life.stopping_since = wall
            self._event_killing(pod)
        due = life.stopping_since + min(script.stop, 30.0 if grace is None else float(grace))
        if wall < due:
            return due - wall
        if pod.metadata.finalizers and not life.is_over:
            life.stop(wall)
            surroundings = lives.Node(node_status.address_of(node) or self._node_ips.of(node.name))
            await self._write(pod, life, surroundings)
        await self._delete(self._pods.get(pod.key) or pod)
        return None

    async def _delete(self, pod: Unstructured) -> None:
        """The pod has stopped: it may go."""
        if pod.metadata.finalizers and pod.metadata.deletion_grace_period_seconds == 0:
            return  # told already; it waits for its finalizers
        await self._pace.turn()
        await self._writer.delete(kinds.PODS, pod, grace_period=0)

    # Events

    def _event_killing(self, pod: Unstructured) -> None:
        for container in (pod.raw.get("spec") or {}).get("containers") or ():
            self._events.normal("kubelet", pod, "Killing", f"Stopping container {container.get('name')}")

    def _tell(self, pod: Unstructured, life: Life, was: tuple[str, int, str]) -> None:
        if life.main.state == "running" and (was[1], was[2]) != (life.main.restarts, "running"):
            for container in (pod.raw.get("spec") or {}).get("containers") or ():
                note = f'Container image "{container.get("image")}" already present on machine'
                self._events.normal("kubelet", pod, "Pulled", note)
                self._events.normal("kubelet", pod, "Created", "Container created")
                self._events.normal("kubelet", pod, "Started", "Container started")
        if life.main.reason == "CrashLoopBackOff" and was[1] != life.main.restarts:
            names = [str(c.get("name")) for c in (pod.raw.get("spec") or {}).get("containers") or ()]
            note = f"Back-off restarting failed container {' '.join(names)} in pod {pod.name}"
            self._events.warning("kubelet", pod, "BackOff", note)
        if life.phase == "Failed" and life.reason == "DeadlineExceeded" and was[0] != "Failed":
            self._events.normal("kubelet", pod, "DeadlineExceeded", life.message)

    # Work

    async def _work(self, queue: WorkQueue[str], sync: object) -> None:
        while True:
            key = await queue.get()
            try:
                again = await sync(key)  # type: ignore[operator]
            except MooringError as error:
                delay = queue.add_failed(key)
                log.info(4, "Kubelet will look again", key=key, seconds=delay, err=error)
            except Exception as error:
                queue.add_failed(key)
                log.error("Kubelet met a bug, going on", error=error, stack=True, key=key)
            else:
                queue.forget(key)
                if again is not None:
                    queue.add_after(key, again)
            finally:
                queue.done(key)


def _was_admitted(pod: Unstructured) -> bool:
    return bool((pod.raw.get("status") or {}).get("startTime"))


def _typed(pod: Unstructured) -> Pod:
    typed = decoding.convert(resources.PODS, pod.raw)
    assert isinstance(typed, Pod)
    return typed


def _typed_node(node: Unstructured) -> Node:
    typed = decoding.convert(resources.NODES, node.raw)
    assert isinstance(typed, Node)
    return typed
