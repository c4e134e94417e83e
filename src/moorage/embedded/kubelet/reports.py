"""What kubelets report again and again: the leases of all nodes, and simulated usage.

Each node's lease is renewed every `interval` seconds: ten, or longer where so many nodes would together renew more
often than the settings allow. The lease says how long it is good for, and grows with the interval.

Usage for metrics.k8s.io comes from annotations, or is a fraction of requests with noise. The noise belongs to pod,
container and half a minute, so that equal questions have equal answers, and numbers wander as real ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from moorage.api import quantity
from moorage.api.errors import AlreadyExists, MoorageError, NotFound, QuantityError
from moorage.api.resources import Unstructured
from moorage.api.times import format_time
from moorage.embedded.catalog.virtual import MeasuredUsage
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.kinds import phase
from moorage.embedded.kubelet.decisions import USAGE_CPU, USAGE_MEMORY, KubeletSettings, chance
from moorage.framework.ports import ApiClient, Clock, PatchType
from moorage.telemetry import logs

log = logs.get(__name__)

NAMESPACE = "kube-node-lease"
_TICK = 0.5
"""Seconds between two rounds; each renews what is due."""
_WINDOW = 30.0
_IDLE_CPU, _IDLE_MEMORY = 0.001, 8 * 1024 * 1024
"""Of a container that requests nothing."""
_SYSTEM_CPU, _SYSTEM_MEMORY = 0.05, 256 * 1024 * 1024
"""Of a node without pods."""


class Heartbeats:
    """The leases. `uid_of` gives the UID of a node that lives, and nothing for others."""

    def __init__(
        self, client: ApiClient, clock: Clock, settings: KubeletSettings, uid_of: Callable[[str], str | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._uid_of = uid_of
        self._renewed: dict[str, float] = {}
        """Node → when last renewed, the longest ago first."""
        self._known: dict[str, str] = {}
        """Node → UID for which a lease is known to exist."""

    @property
    def interval(self) -> float:
        return max(self._settings.heartbeat_seconds, len(self._renewed) / self._settings.heartbeats_per_second)

    @property
    def duration(self) -> int:
        """leaseDurationSeconds."""
        return max(self._settings.lease_seconds, int(self.interval * 4))

    def add(self, node: str) -> None:
        """Renews it soon, before those that were renewed already."""
        if node not in self._renewed:
            self._renewed = {node: -1e9, **self._renewed} if len(self._renewed) < 64 else self._renewed
            self._renewed.setdefault(node, -1e9)

    def remove(self, node: str) -> None:
        self._renewed.pop(node, None)
        self._known.pop(node, None)

    async def run(self) -> None:
        """Renews until cancelled."""
        while True:
            await self.renew_due()
            await self._clock.sleep(_TICK)

    async def renew_due(self) -> None:
        limit = self._clock.now() - self.interval
        due = [node for node, at in self._renewed.items() if at <= limit]
        # No more than a round's share at once, or a restart would renew all leases in the same instant.
        share = max(8, int(self._settings.heartbeats_per_second * _TICK * 2))
        for node in due[:share]:
            await self._renew(node)

    async def _renew(self, node: str) -> None:
        uid = self._uid_of(node)
        if node not in self._renewed:
            return
        del self._renewed[node]
        self._renewed[node] = self._clock.now()
        if uid is None:
            return  # dead, or not ours to keep alive
        try:
            await self._write(node, uid)
        except MoorageError as error:
            log.info(3, "Lease was not renewed", node=node, err=error)

    async def _write(self, node: str, uid: str) -> None:
        now = format_time(self._clock.wall(), micro=True)
        spec = {"renewTime": now, "leaseDurationSeconds": self.duration, "holderIdentity": node}
        if self._known.get(node) == uid:
            try:
                await self._client.patch(
                    kinds.LEASES, node, {"spec": spec}, namespace=NAMESPACE, patch_type=PatchType.MERGE
                )
                return
            except NotFound:
                del self._known[node]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        meta = {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]}
        with suppress(AlreadyExists):
            await self._client.create(kinds.LEASES, {"metadata": meta, "spec": spec})
            self._known[node] = uid
            return
        patch = {"metadata": {"ownerReferences": [owner]}, "spec": spec}
        await self._client.patch(kinds.LEASES, node, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE)
        self._known[node] = uid


class SimulatedUsage:
    """Implements `catalog.metrics.UsageSource` on the caches of the kubelets."""

    def __init__(self, nodes: Cache, pods: Cache, clock: Clock, settings: KubeletSettings) -> None:
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self._settings = settings

    def node(self, name: str) -> MeasuredUsage | None:
        if self._nodes.get(name) is None:
            return None
        cpu, memory = _SYSTEM_CPU, _SYSTEM_MEMORY
        for pod in self._pods.find("node", name):
            for used in (self._of(pod) or {}).values():
                cpu += used.cpu_cores
                memory += used.memory_bytes
        return MeasuredUsage(round(cpu, 6), memory)

    def pod(self, namespace: str, name: str) -> Mapping[str, MeasuredUsage] | None:
        pod = self._pods.get(f"{namespace}/{name}")
        return None if pod is None else self._of(pod)

    def _of(self, pod: Unstructured) -> dict[str, MeasuredUsage] | None:
        if phase(pod) != "Running":
            return None
        containers = (pod.raw.get("spec") or {}).get("containers") or []
        annotated_cpu = _parsed(pod.annotations.get(USAGE_CPU))
        annotated_memory = _parsed(pod.annotations.get(USAGE_MEMORY))
        share = max(1, len(containers))
        window = int(self._clock.wall() / _WINDOW)
        used = {}
        for container in containers:
            noise = self._noise(f"{pod.uid}/{container.get('name')}/{window}")
            cpu = self._wanted(container, "cpu", _IDLE_CPU) * noise if annotated_cpu is None else annotated_cpu / share
            memory = (
                self._wanted(container, "memory", _IDLE_MEMORY) * noise
                if annotated_memory is None
                else annotated_memory / share
            )
            used[str(container.get("name"))] = MeasuredUsage(round(cpu, 6), int(memory))
        return used

    def _wanted(self, container: dict[str, Any], resource: str, idle: float) -> float:
        requests = (container.get("resources") or {}).get("requests") or {}
        asked = _parsed(requests.get(resource))
        return idle if not asked else asked * self._settings.usage_fraction

    def _noise(self, text: str) -> float:
        return 1.0 + self._settings.usage_noise * (2.0 * chance(text) - 1.0)


def _parsed(amount: str | None) -> float | None:
    """In base units; None where there is nothing readable."""
    if amount is None:
        return None
    try:
        return quantity.parse(amount) / quantity.NANO
    except QuantityError:
        return None
