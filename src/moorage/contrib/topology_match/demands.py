"""The requests of a pod towards the zones of a node: as a whole for kubelets that align pods, and container by
container for kubelets that align containers."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.pod import Container, Pod
from moorage.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_huge_page_resource,
    is_native_resource,
    pod_requests,
    resource_value,
)
from moorage.contrib.qos_sort import BEST_EFFORT, GUARANTEED, qos_class

LARGEST = 1 << 46
"""Amounts of zones are cut here, so that percentages of them are exact in float64."""


class ZoneRequest(NamedTuple):
    what: str
    """For messages: `container`, `init container`, `sidecar container` or `pod`."""
    amounts: tuple[tuple[str, int], ...]
    """Resource and amount, sorted by resource; an amount may be 0."""
    runs_on: bool = True
    """Whether it still has what it asks for when the next one starts."""


class NumaDemand(NamedTuple):
    guaranteed: bool
    """Whether amounts of cpu, memory and huge pages are the container's own. Others share them."""
    pod: ZoneRequest
    containers: tuple[ZoneRequest, ...]
    """Init containers first."""

    def exact(self, resource: str) -> bool:
        """Return whether a zone must have the amount; otherwise it only has to report the resource."""
        return self.guaranteed or not is_numa_resource(resource)


def demand_of(pod: Pod) -> NumaDemand | None:
    """Return the demand; None for a pod without requests and devices."""
    every = (*pod.spec.init_containers, *pod.spec.containers)
    qos = qos_class(pod)
    if qos == BEST_EFFORT and all(is_native_resource(name) for each in every for name in each.resources.requests):
        return None
    containers = (
        *(_request(each, "sidecar" if each.is_sidecar else "init") for each in pod.spec.init_containers),
        *(_request(each) for each in pod.spec.containers),
    )
    whole = ZoneRequest("pod", _sorted(pod_requests(_without_sidecars(pod), use_status=False)))
    return NumaDemand(qos == GUARANTEED, whole, containers)


def _without_sidecars(pod: Pod) -> Pod:
    """Treat sidecars as ordinary init containers, because scheduler-plugins does not add their requests."""
    if not any(each.is_sidecar for each in pod.spec.init_containers):
        return pod
    ordinary = tuple(replace(each, restart_policy=None) for each in pod.spec.init_containers)
    return replace(pod, spec=replace(pod.spec, init_containers=ordinary))


def _request(container: Container, kind: str = "") -> ZoneRequest:
    amounts = {name: resource_value(name, amount) for name, amount in container.resources.requests.items()}
    return ZoneRequest(f"{kind} container".strip(), _sorted(amounts), runs_on=not kind)


def _sorted(amounts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, min(amount, LARGEST + 1)) for name, amount in amounts.items()))


def is_numa_resource(name: str) -> bool:
    """Return whether every zone has the resource; a device may be bound to a zone or not."""
    return name in (CPU, MEMORY) or is_huge_page_resource(name)


def is_host_resource(name: str) -> bool:
    """Return whether a node may have the resource without any zone reporting it."""
    return name in (EPHEMERAL_STORAGE, "storage") or not is_native_resource(name)


def is_exclusive(pod: Pod, reported: set[str]) -> bool:
    """Return whether a long-running container has exclusive resources: whole cpus, memory or a device that a zone
    reports."""
    guaranteed = qos_class(pod) == GUARANTEED
    running = (each for each in pod.spec.init_containers if each.is_sidecar)
    return any(exclusive_amounts(each, guaranteed, reported) for each in (*running, *pod.spec.containers))


def exclusive_amounts(container: Container, guaranteed: bool, reported: set[str]) -> dict[str, int]:
    """Return the exclusive resources of a container."""
    found = {}
    for name, quantity in container.resources.requests.items():
        amount = resource_value(name, quantity)
        if not is_native_resource(name):
            own = name in reported
        else:
            whole = name != CPU or amount % 1000 == 0
            own = guaranteed and is_numa_resource(name) and whole and amount > 0
        if own:
            found[name] = amount
    return found
