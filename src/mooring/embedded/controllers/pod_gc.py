"""Pods that nobody else cleans up: on vanished nodes, deleted without a node, finished beyond a number."""

from __future__ import annotations

from typing import Any

from mooring.api.errors import NotFound
from mooring.api.resources import Unstructured
from mooring.api.times import format_time
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.controller import Controller, World
from mooring.embedded.controllers.pod_states import (
    is_finished,
    is_terminating,
    node_name,
    with_condition,
)

Raw = dict[str, Any]

PERIOD = 20.0
QUARANTINE = 40.0
"""Seconds for which a node must be gone before its pods are."""
FINISHED_LIMIT = 12_500
"""Finished pods that are kept; beyond it the oldest go."""
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_LOOK = "#look"


class PodGarbage(Controller):
    """One key: the regular look."""

    name = "pod-garbage-collector"
    workers = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.pods = self.caches.of(kinds.PODS)
        self.nodes = self.caches.of(kinds.NODES)
        self._missing: dict[str, float] = {}
        """Node that pods name and that does not exist → since when."""
        self.queue.add(_LOOK)

    async def reconcile(self, key: str) -> float | None:
        pods = list(self.pods)
        self._note_missing(pods)
        for pod in pods:
            if self._is_orphaned(pod) and await self._node_is_gone(node_name(pod)):
                await self._fail(pod, "PodGC: node no longer exists")
                await self.writer.delete(kinds.PODS, pod, grace_period=0)
            elif is_terminating(pod) and (not node_name(pod) or self._is_out_of_service(pod)):
                await self.writer.delete(kinds.PODS, pod, grace_period=0)
        finished = [pod for pod in pods if is_finished(pod) and not is_terminating(pod)]
        surplus = sorted(finished, key=lambda pod: pod.metadata.creation_timestamp or "")
        for pod in surplus[: max(0, len(surplus) - FINISHED_LIMIT)]:
            await self.writer.delete(kinds.PODS, pod, grace_period=0)
        return PERIOD

    def _note_missing(self, pods: list[Unstructured]) -> None:
        named = {node_name(pod) for pod in pods} - {""}
        missing = {name for name in named if self.nodes.get(name) is None}
        now = self.clock.now()
        self._missing = {name: self._missing.get(name, now) for name in missing}

    def _is_orphaned(self, pod: Unstructured) -> bool:
        since = self._missing.get(node_name(pod))
        return since is not None and self.clock.now() - since >= QUARANTINE

    async def _node_is_gone(self, name: str) -> bool:
        """Asked of the server itself: the cache may be behind."""
        try:
            await self.world.client.get(kinds.NODES, name)
        except NotFound:
            return True
        return False

    def _is_out_of_service(self, pod: Unstructured) -> bool:
        node = self.nodes.get(node_name(pod))
        taints = (node.raw.get("spec") or {}).get("taints") or () if node is not None else ()
        return any(taint.get("key") == _OUT_OF_SERVICE for taint in taints)

    async def _fail(self, pod: Unstructured, message: str) -> None:
        """Others see that the pod did not end by itself."""
        if is_finished(pod):
            return
        status = pod.raw.get("status") or {}
        why = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": message}
        conditions = with_condition(status.get("conditions"), why, format_time(self.clock.wall()))
        failed = {**status, "phase": "Failed", "conditions": conditions}
        await self.writer.update_status(kinds.PODS, pod, failed)
