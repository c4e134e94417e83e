"""What a cluster has from the start: its namespaces, the system priority classes, and a ServiceAccount
each.
"""

from __future__ import annotations

from typing import Any

from mooring.api.errors import AlreadyExists
from mooring.api.resources import Resource
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.controller import Controller, World, own_key
from mooring.embedded.controllers.pod_states import is_terminating

Raw = dict[str, Any]

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PRIORITY_CLASSES: dict[str, tuple[int, str]] = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary.",
    ),
}
_START = "#start"


class Bootstrap(Controller):
    """Keys are names of namespaces; the first key makes what every cluster has."""

    name = "serviceaccount-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.namespaces = self.watch(kinds.NAMESPACES, own_key)
        self.accounts = self.watch(kinds.SERVICE_ACCOUNTS, lambda account: (account.namespace,))
        self.classes = self.caches.of(kinds.PRIORITY_CLASSES)
        self.queue.add(_START)

    async def reconcile(self, key: str) -> float | None:
        if key == _START:
            await self._first_objects()
            return None
        namespace = self.namespaces.get(key)
        if namespace is None or is_terminating(namespace):
            return None
        if self.accounts.get(f"{key}/default") is None:
            raw = {"metadata": {"name": "default", "namespace": key}}
            await self._make(kinds.SERVICE_ACCOUNTS, raw)
        return None

    async def _first_objects(self) -> None:
        for name in NAMESPACES:
            if self.namespaces.get(name) is None:
                await self._make(kinds.NAMESPACES, {"metadata": {"name": name}})
        for name, (value, description) in PRIORITY_CLASSES.items():
            if self.classes.get(name) is None:
                raw = {"metadata": {"name": name}, "value": value, "description": description}
                await self._make(kinds.PRIORITY_CLASSES, {**raw, "preemptionPolicy": "PreemptLowerPriority"})

    async def _make(self, resource: Resource, raw: Raw) -> None:
        try:
            await self.writer.create(resource, raw)
        except AlreadyExists:
            meta = raw["metadata"]
            await self.writer.refresh(resource, meta["name"], meta.get("namespace", ""))
