"""Nodes that fall silent, the taints that say so, and the pods that leave because of them.

A node whose lease is not renewed for 40 seconds (or for as long as its lease says, if that is longer) gets conditions
of status Unknown, and its pods are marked not ready. Taints follow from conditions and from cordons. A NoExecute taint
evicts pods at once, or when the time is over for which a pod tolerates all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from moorage.api.resources import Unstructured
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, tolerates
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import condition, is_ready, is_terminating, node_name, with_condition

Raw = dict[str, Any]

GRACE = 40.0
"""Seconds of silence after which a node counts as unreachable."""
PERIOD = 5.0
"""Seconds between two looks at all nodes."""
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()}
_SILENT = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_LEASES = "kube-node-lease"
_MONITOR = "#monitor"
NODE = "node"


class NodeLifecycle(Controller):
    """Keys are node names; one more key is the regular look at all of them."""

    name = "node-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.nodes = self.watch(kinds.NODES, own_key)
        self.pods = self.caches.of(kinds.PODS)
        self.pods.add_index(NODE, lambda pod: (node_name(pod),))
        self.leases = self.caches.of(kinds.LEASES)
        self.leases.handlers.append(self._lease_changed)
        self.nodes.handlers.append(self._node_changed)
        self._heard: dict[str, float] = {}
        """Node → when it was last heard of, on this process's own clock."""
        self.queue.add(_MONITOR)

    def _lease_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is not None and new.namespace == _LEASES:
            self._heard[new.name] = self.clock.now()

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None:
                self._heard.pop(old.name, None)
                self.event(old, "RemovingNode", f"Node {old.name} event: Removing Node {old.name} from Controller")
        elif old is None:
            self._heard.setdefault(new.name, self.clock.now())
            self.event(new, "RegisteredNode", f"Node {new.name} event: Registered Node {new.name} in Controller")
        elif _beats(old) != _beats(new):
            self._heard[new.name] = self.clock.now()

    async def reconcile(self, key: str) -> float | None:
        if key == _MONITOR:
            self._look_at_all()
            return PERIOD
        node = self.nodes.get(key)
        if node is None:
            return None
        if self._is_silent(node) and not _is_unknown(node):
            node = await self._mark_silent(node)
        node = await self._taint(node)
        if not is_ready(node):
            await self._mark_pods(node)
        return None

    def _look_at_all(self) -> None:
        for node in self.nodes:
            if self._is_silent(node) and not _is_unknown(node):
                self.queue.add(node.key)

    def _is_silent(self, node: Unstructured) -> bool:
        lease = self.leases.get(f"{_LEASES}/{node.name}")
        promised = (lease.raw.get("spec") or {}).get("leaseDurationSeconds") if lease is not None else None
        grace = max(GRACE, float(promised or 0))
        return self.clock.now() - self._heard.get(node.name, self.clock.now()) > grace

    async def _mark_silent(self, node: Unstructured) -> Unstructured:
        now = format_time(self.clock.wall())
        status: Raw = dict(node.raw.get("status") or {})
        conditions: list[Raw] = list(status.get("conditions") or ())
        for kind in _SILENT:
            known = condition(node, kind)
            reason = "NodeStatusUnknown" if known is not None else "NodeStatusNeverUpdated"
            text = "Kubelet stopped posting node status." if known else "Kubelet never posted node status."
            new = {**(known or {}), "type": kind, "status": "Unknown", "reason": reason, "message": text}
            conditions = with_condition(conditions, new, now)
        was_ready = is_ready(node)
        node = await self.writer.update_status(kinds.NODES, node, {**status, "conditions": conditions})
        if was_ready:
            text = f"Node {node.name} status is now: NodeNotReady"
            self.event(node, "NodeNotReady", text)
        return node

    async def _taint(self, node: Unstructured) -> Unstructured:
        present: list[Raw] = list((node.raw.get("spec") or {}).get("taints") or ())
        taints = with_taints(present, wanted_taints(node), format_time(self.clock.wall()))
        if taints == present:
            return node
        return await self.writer.patch(kinds.NODES, node, {"spec": {"taints": taints or None}})

    async def _mark_pods(self, node: Unstructured) -> None:
        """Pods on a node that is not ready are not ready either."""
        for pod in self.pods.find(NODE, node.name):
            found = condition(pod, "Ready")
            if found is None or found.get("status") != "True":
                continue
            now = format_time(self.clock.wall())
            status = pod.raw.get("status") or {}
            new = {"type": "Ready", "status": "False"}
            conditions = with_condition(status.get("conditions"), new, now)
            await self.writer.update_status(kinds.PODS, pod, {**status, "conditions": conditions})
            self.world.events.warning(self.name, pod, "NodeNotReady", "Node is not ready")


def wanted_taints(node: Unstructured) -> list[tuple[str, str]]:
    """Key and effect of each taint that the node's conditions and its spec ask for."""
    wanted = []
    ready = condition(node, "Ready")
    if ready is not None and ready.get("status") == "Unknown":
        wanted += [(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)]
    elif ready is None:  # it has yet to report
        wanted.append((NOT_READY, NO_SCHEDULE))
    elif ready.get("status") != "True":
        wanted += [(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]
    for kind, key in _PRESSURES.items():
        found = condition(node, kind)
        if found is not None and found.get("status") == "True":
            wanted.append((key, NO_SCHEDULE))
    if (node.raw.get("spec") or {}).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    return wanted


def with_taints(present: Iterable[Raw], wanted: Iterable[tuple[str, str]], now: str) -> list[Raw]:
    """The taints after ours are brought in line; those of others, and their order, stay."""
    missing = list(wanted)
    kept = []
    for taint in present:
        which = (taint.get("key", ""), taint.get("effect", ""))
        if which in missing:
            missing.remove(which)
            kept.append(taint)
        elif which[0] not in _OURS:
            kept.append(taint)
    added = [{"key": key, "effect": effect, **_since(effect, now)} for key, effect in missing]
    return [*kept, *added]


def _since(effect: str, now: str) -> Raw:
    return {"timeAdded": now} if effect == NO_EXECUTE else {}


def _beats(node: Unstructured) -> list[Any]:
    conditions = (node.raw.get("status") or {}).get("conditions") or ()
    return [c.get("lastHeartbeatTime") for c in conditions]


def _is_unknown(node: Unstructured) -> bool:
    found = condition(node, "Ready")
    return found is not None and found.get("status") == "Unknown"


class TaintEviction(Controller):
    """Keys are pods; a changed taint queues all pods of its node."""

    name = "taint-eviction-controller"
    spacing = 0.0

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.pods = self.watch(kinds.PODS, self._on_tainted_node, _concerns)
        self.pods.add_index(NODE, lambda pod: (node_name(pod),))
        self.nodes = self.caches.of(kinds.NODES)
        self.nodes.handlers.append(self._node_changed)

    def _on_tainted_node(self, pod: Unstructured) -> Iterable[str]:
        node = self.nodes.get(node_name(pod)) if node_name(pod) else None
        return own_key(pod) if node is not None and taints_of(node) else ()

    def _node_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None or (taints_of(new) == (taints_of(old) if old is not None else [])):
            return
        for pod in self.pods.find(NODE, new.name):
            self.queue.add(pod.key)

    async def reconcile(self, key: str) -> float | None:
        pod = self.pods.get(key)
        node = self.nodes.get(node_name(pod)) if pod is not None else None
        if pod is None or node is None or is_terminating(pod):
            return None
        wall = self.clock.wall()
        due = eviction_time(taints_of(node), tolerations_of(pod), wall)
        if due == math.inf:
            return None
        if due > wall:
            return due - wall
        await self._evict(pod, wall)
        return None

    async def _evict(self, pod: Unstructured, wall: float) -> None:
        status = pod.raw.get("status") or {}
        why = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        conditions = with_condition(status.get("conditions"), why, format_time(wall))
        pod = await self.writer.update_status(kinds.PODS, pod, {**status, "conditions": conditions})
        self.event(pod, "TaintManagerEviction", f"Marking for deletion Pod {pod.key}")
        await self.writer.delete(kinds.PODS, pod)


def taints_of(node: Unstructured) -> list[Taint]:
    """The NoExecute taints."""
    taints = (node.raw.get("spec") or {}).get("taints")
    if not taints:
        return []
    return [t for t in msgspec.convert(taints, list[Taint]) if t.effect == NO_EXECUTE]


def tolerations_of(pod: Unstructured) -> list[Toleration]:
    return msgspec.convert((pod.raw.get("spec") or {}).get("tolerations") or [], list[Toleration])


def eviction_time(taints: Sequence[Taint], tolerations: Sequence[Toleration], wall: float) -> float:
    """When a pod has to go, in Unix seconds: not after now for at once, infinity for never."""
    if not taints:
        return math.inf
    used: list[Toleration] = []
    for taint in taints:
        covering = [t for t in tolerations if tolerates(t, taint)]
        if not covering:
            return -math.inf
        used += covering
    limits = [t.toleration_seconds for t in used if t.toleration_seconds is not None]
    if not limits:
        return math.inf
    since = min((parse_time(t.time_added) or wall for t in taints), default=wall)
    return since + max(0, min(limits))


def _concerns(old: Unstructured, new: Unstructured) -> bool:
    return node_name(old) != node_name(new) or (old.raw.get("spec") or {}).get("tolerations") != (
        new.raw.get("spec") or {}
    ).get("tolerations")
