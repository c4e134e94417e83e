"""Simulated usage for metrics.k8s.io: told by annotations, or a fraction of requests with noise.

The noise belongs to pod, container and half a minute, so that the same question has the same answer, and
numbers wander as real ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api import quantity
from mooring.api.errors import QuantityError
from mooring.api.resources import Unstructured
from mooring.embedded.catalog.metrics import Usage
from mooring.embedded.controllers.cache import Cache
from mooring.embedded.controllers.pod_states import phase
from mooring.embedded.kubelet.scripts import USAGE_CPU, USAGE_MEMORY, chance
from mooring.embedded.kubelet.settings import KubeletSettings
from mooring.framework.ports import Clock

_WINDOW = 30.0
_IDLE_CPU, _IDLE_MEMORY = 0.001, 8 * 1024 * 1024
"""Of a container that requests nothing."""
_SYSTEM_CPU, _SYSTEM_MEMORY = 0.05, 256 * 1024 * 1024
"""Of a node without pods."""


class SimulatedUsage:
    """Implements `catalog.usage.UsageSource` on the caches of the kubelets."""

    def __init__(self, nodes: Cache, pods: Cache, clock: Clock, settings: KubeletSettings) -> None:
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self._settings = settings

    def node(self, name: str) -> Usage | None:
        if self._nodes.get(name) is None:
            return None
        cpu, memory = _SYSTEM_CPU, _SYSTEM_MEMORY
        for pod in self._pods.find("node", name):
            for used in (self._of(pod) or {}).values():
                cpu += used.cpu_cores
                memory += used.memory_bytes
        return Usage(round(cpu, 6), memory)

    def pod(self, namespace: str, name: str) -> Mapping[str, Usage] | None:
        pod = self._pods.get(f"{namespace}/{name}")
        return None if pod is None else self._of(pod)

    def _of(self, pod: Unstructured) -> dict[str, Usage] | None:
        if phase(pod) != "Running":
            return None
        containers = (pod.raw.get("spec") or {}).get("containers") or []
        told_cpu = _parsed(pod.annotations.get(USAGE_CPU))
        told_memory = _parsed(pod.annotations.get(USAGE_MEMORY))
        share = max(1, len(containers))
        window = int(self._clock.wall() / _WINDOW)
        used = {}
        for container in containers:
            noise = self._noise(f"{pod.uid}/{container.get('name')}/{window}")
            cpu = self._wanted(container, "cpu", _IDLE_CPU) * noise if told_cpu is None else told_cpu / share
            memory = (
                self._wanted(container, "memory", _IDLE_MEMORY) * noise
                if told_memory is None
                else told_memory / share
            )
            used[str(container.get("name"))] = Usage(round(cpu, 6), int(memory))
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
