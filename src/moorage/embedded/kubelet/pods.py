"""What kubelets do for the pods of their nodes: admission, volumes, the steps of a life, the end."""

from __future__ import annotations

import math

from moorage.api import decoding, resources
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import Unstructured
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache, Caches
from moorage.embedded.controllers.kinds import is_finished, is_terminating, node_name
from moorage.embedded.controllers.volume_claims import claims_used
from moorage.embedded.controllers.writes import Writer
from moorage.embedded.kubelet import decisions, lives, nodes, pod_status
from moorage.embedded.kubelet.decisions import KubeletLoad, KubeletSettings
from moorage.embedded.kubelet.lives import KubeletEvents, Life, facts
from moorage.embedded.kubelet.nodes import Addresses, NodeKeeper
from moorage.framework.ports import Clock

_BURST_SECONDS = 0.2
"""So much of a second's share may come at once."""
NODE = "node"
"""The index of pods by their node."""
_VOLUME_RETRY = 2.0
_USUAL_GRACE = 30.0
_NODE_REASONS = ("NodeAffinity", "TaintToleration")


def volumes_ready(pod: Unstructured, claims: Cache, volumes: Cache) -> bool:
    for key in claims_used(pod):
        claim = claims.get(key)
        if claim is None or (claim.raw.get("status") or {}).get("phase") != "Bound":
            return False
        if volumes.get(str((claim.raw.get("spec") or {}).get("volumeName") or "")) is None:
            return False
    return True


class Pace:
    """At most `rate` turns a second, apart from short bursts."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._gap = 1.0 / rate
        self._next = clock.now()

    async def turn(self) -> None:
        now = self._clock.now()
        self._next = max(self._next, now - _BURST_SECONDS) + self._gap
        wait = self._next - now
        if wait > 0:
            await self._clock.sleep(wait)


class PodKeeper:
    """The pods of one `Kubelets`. `backlog` tells how many pods wait to be looked at."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        events: KubeletEvents,
        clock: Clock,
        settings: KubeletSettings,
        keeper: NodeKeeper,
    ) -> None:
        self.pods = caches.of(kinds.PODS)
        self.pods.add_index(NODE, lambda pod: (node_name(pod),))
        self.backlog = 0
        self._claims = caches.of(kinds.CLAIMS)
        self._volumes = caches.of(kinds.VOLUMES)
        self._writer = writer
        self._events = events
        self._clock = clock
        self._settings = settings
        self._nodes = keeper
        self._pace = Pace(clock, settings.writes_per_second)
        self._addresses = Addresses(nodes.POD_NETWORK)
        self._lives: dict[str, Life] = {}
        """UID → life of each pod that was admitted."""
        self._loads: dict[str, KubeletLoad] = {}

    def on(self, node: str) -> list[Unstructured]:
        return self.pods.find(NODE, node)

    def forget(self, pod: Unstructured) -> None:
        """The pod is gone: its address and its share of the node are free."""
        if self._lives.pop(pod.uid, None) is not None:
            self._addresses.give_back(pod.uid)
        self._free(pod)

    def forget_node(self, name: str) -> None:
        self._loads.pop(name, None)

    async def sync(self, key: str) -> float | None:
        """One look at a pod; gives the seconds to its next step."""
        pod = self.pods.get(key)
        node = self._nodes.living(node_name(pod)) if pod is not None and node_name(pod) else None
        if pod is None or node is None:
            return None
        load = self._load_of(node.name)
        if is_finished(pod):
            load.remove(pod.uid)
            if is_terminating(pod):
                await self._delete(pod)
            return None
        life = self._lives.get(pod.uid)
        if life is None and is_terminating(pod):
            await self._delete(pod)  # never started here: nothing to stop
            return None
        life = life or await self._admit(pod, node, load)
        return None if life is None else await self._advance(pod, node, life)

    # Admission

    def _load_of(self, node: str) -> KubeletLoad:
        """What the node has admitted. The first time, those count that were admitted before this process."""
        load = self._loads.get(node)
        if load is None:
            load = self._loads[node] = KubeletLoad()
            for pod in self.on(node):
                if _was_admitted(pod) and not is_finished(pod):
                    self._resume(pod, load)
        return load

    def _resume(self, pod: Unstructured, load: KubeletLoad) -> Life:
        address = (pod.raw.get("status") or {}).get("podIP")
        if address:
            self._addresses.keep(pod.uid, address)
        wall, backoff = self._clock.wall(), self._settings.crash_backoff
        life = self._lives[pod.uid] = lives.resume(pod, self._addresses.of(pod.uid), wall, backoff)
        load.add(_typed(pod))
        return life

    async def _admit(self, pod: Unstructured, node: Unstructured, load: KubeletLoad) -> Life | None:
        if _was_admitted(pod):
            return self._resume(pod, load)
        typed = _typed(pod)
        refused = load.judge(typed, _typed_node(node))
        if refused is not None and refused.reason in _NODE_REASONS:
            # As upstream: labels and taints may have changed already, so the node is read before a pod fails.
            await self._writer.refresh(kinds.NODES, node.name, "")
            refused = load.judge(typed, _typed_node(self._nodes.nodes.get(node.name) or node))
        if refused is not None:
            status = pod_status.rejected(pod, refused.reason, refused.message, self._clock.wall())
            await self._pace.turn()
            await self._writer.update_status(kinds.PODS, pod, status)
            self._events.rejected(pod, refused.reason, refused.message)
            return None
        load.add(typed)
        for problem in decisions.script_of(pod, self._settings).problems:
            self._events.problem(pod, problem)
        address = self._nodes.address(node) if typed.spec.host_network else self._addresses.of(pod.uid)
        life = lives.begin(self._clock.wall(), address, self._settings.crash_backoff)
        self._lives[pod.uid] = life
        return life

    # Going on

    async def _advance(self, pod: Unstructured, node: Unstructured, life: Life) -> float | None:
        wall = self._clock.wall()
        script = decisions.script_of(pod, self._settings)
        if is_terminating(pod):
            return await self._stop(pod, node, life, script.stop, wall)
        ready = volumes_ready(pod, self._claims, self._volumes)
        surroundings = lives.SimulatedNode(self._nodes.address(node), volumes_ready=ready)
        before = facts(life)
        due = life.advance(pod, script, surroundings, wall)
        if not self._may_skip(pod, life):
            await self._write(pod, life, surroundings)
        self._events.went_on(pod, life, before)
        if not ready:
            due = min(due, wall + _VOLUME_RETRY)
        return None if math.isinf(due) else max(0.0, due - self._clock.wall())

    def _may_skip(self, pod: Unstructured, life: Life) -> bool:
        """Under load, that a pod is about to start is not worth a write of its own."""
        is_new = not (pod.raw.get("status") or {}).get("containerStatuses")
        return is_new and life.phase == "Pending" and self.backlog > self._settings.busy_backlog

    async def _write(self, pod: Unstructured, life: Life, surroundings: lives.SimulatedNode) -> None:
        status = pod_status.status_of(pod, life.picture(surroundings), self._clock.wall())
        if status == (pod.raw.get("status") or {}):
            return
        await self._pace.turn()
        current = self.pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            return
        if current.resource_version != pod.resource_version:  # others wrote while this one waited for its turn
            status = pod_status.status_of(current, life.picture(surroundings), self._clock.wall())
        await self._writer.update_status(kinds.PODS, current, status)
        if life.is_over:
            self._free(pod)
        elif current.metadata.generation > 1:
            self._load_of(node_name(pod)).add(_typed(current))  # a resize changes what it holds

    def _free(self, pod: Unstructured) -> None:
        load = self._loads.get(node_name(pod))
        if load is not None:
            load.remove(pod.uid)

    # The end

    async def _stop(
        self, pod: Unstructured, node: Unstructured, life: Life, seconds: float, wall: float
    ) -> float | None:
        if life.stopping_since is None:
            life.stopping_since = wall
            self._events.killing(pod)
        grace = pod.metadata.deletion_grace_period_seconds
        due = life.stopping_since + min(seconds, _USUAL_GRACE if grace is None else float(grace))
        if wall < due:
            return due - wall
        if pod.metadata.finalizers and not life.is_over:
            life.stop(wall)  # those who hold it back see how it ended
            await self._write(pod, life, lives.SimulatedNode(self._nodes.address(node)))
        await self._delete(self.pods.get(pod.key) or pod)
        return None

    async def _delete(self, pod: Unstructured) -> None:
        """The pod has stopped: it may go."""
        if pod.metadata.finalizers and pod.metadata.deletion_grace_period_seconds == 0:
            return  # reported already; it waits for its finalizers
        await self._pace.turn()
        await self._writer.delete(kinds.PODS, pod, grace_period=0)


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
