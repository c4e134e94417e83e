"""Eviction by NoExecute taints: at once, or when the time is over for which a pod tolerates all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mooring.api.resources import Unstructured
from mooring.api.taints import NO_EXECUTE, Taint, Toleration, tolerates
from mooring.api.times import format_time, parse_time
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.controller import Controller, World, own_key
from mooring.embedded.controllers.pod_states import is_terminating, node_name, with_condition

Raw = dict[str, Any]
NODE = "node"


class TaintEviction(Controller):
    """Keys are pods; a changed taint queues all pods of its node."""

    name = "taint-eviction-controller"
    spacing = 0.0

    def __init__(self, world: World) -> None:
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
