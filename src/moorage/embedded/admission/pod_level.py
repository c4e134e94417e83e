"""Resources of a pod as a whole: its QoS class, and requests that follow from its containers."""

from __future__ import annotations

from typing import Any

from moorage.api import quantity
from moorage.api.pod_defaults import nanos_of, total
from moorage.store.objects import Raw

_RESOURCES = ("cpu", "memory")


def amounts_of_pod(spec: Raw, field: str) -> dict[str, str]:
    """Return the requests or limits of a pod: its own where it has some, else those of its containers, and overhead."""
    own = (spec.get("resources") or {}).get(field) or {}
    parts = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    names = {name for part in parts for name in (part.get("resources") or {}).get(field) or ()} | own.keys()
    found = {name: str(own.get(name) or total(spec, name, field)) for name in names}
    for name, more in (spec.get("overhead") or {}).items():
        if name in found or field == "requests":
            before = found.get(name, "0")
            nanos = nanos_of(before) + nanos_of(more)
            found[name] = quantity.format_nanos(nanos, binary=before.endswith("i") or str(more).endswith("i"))
    return found


def with_limits(spec: Raw) -> Raw:
    """Return a spec whose pod-level limits follow from its containers where all of them have one: the larger of their
    sum and the pod-level request (defaultPodLevelLimits of pkg/api/pod/util.go, from 1.37 on)."""
    whole = spec.get("resources") or {}
    requests, limits = whole.get("requests") or {}, whole.get("limits") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    added = {}
    for name in (name for name in _RESOURCES if name in requests and name not in limits):
        if all(name in ((container.get("resources") or {}).get("limits") or {}) for container in containers):
            together = total(spec, name, "limits")
            added[name] = max(together, str(requests[name]), key=nanos_of)
    return {**spec, "resources": {**whole, "limits": {**limits, **added}}} if added else spec


def qos_class(spec: Raw) -> str:
    """Return Guaranteed, Burstable or BestEffort, by the cpu and memory of the pod or else of all containers."""
    whole = spec.get("resources") or {}
    parts: list[Raw] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if whole.get("limits") or whole.get("requests"):
        parts = [spec]
    limited_everywhere, asks = bool(parts), False
    for part in parts:
        amounts = part.get("resources") or {}
        limits, requests = _positive(amounts.get("limits")), _positive(amounts.get("requests"))
        asks = asks or bool(limits or requests)
        if limits.keys() != set(_RESOURCES) or any(requests.get(r, limits[r]) != limits[r] for r in limits):
            limited_everywhere = False
    if not asks:
        return "BestEffort"
    return "Guaranteed" if limited_everywhere else "Burstable"


def _positive(amounts: dict[str, Any] | None) -> dict[str, int]:
    """Return the amounts that count, in nano-units."""
    found = {resource: nanos_of((amounts or {}).get(resource)) for resource in _RESOURCES}
    return {resource: nanos for resource, nanos in found.items() if nanos > 0}
