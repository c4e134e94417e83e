"""The requests of the incoming pod as the resource plugins read them, computed once per template.

There are three readings, as upstream. NodeResourcesFit filters by the effective request with pod-level resources
(KEP-2837). It scores by the containers' requests with scoring defaults, without pod-level resources.
NodeResourcesBalancedAllocation scores by the effective request, including a resize in progress."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import msgspec

from moorage.api.meta import key_of
from moorage.api.pod import Pod
from moorage.api.recent import Recent
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar_resource, pod_nonzero_requests, pod_requests

_FEW = 16
"""More amounts are signed by a short key: signatures outlive pods."""
LIMIT = 2**62 - 1
"""No amount is larger, so that sums and differences with a column stay within int64."""

_MAX_REMEMBERED = 16384
"""Amounts of templates that are remembered."""


_STANDARD = (CPU, MEMORY, EPHEMERAL_STORAGE)


def is_counted(resource: str) -> bool:
    """Return whether scheduling considers this resource; upstream ignores other names, such as `pods`."""
    return resource in _STANDARD or is_scalar_resource(resource)


@dataclass(frozen=True, slots=True)
class PodDemand:
    """The three readings of one pod. Amounts are at most `LIMIT`."""

    filtered: tuple[tuple[str, int], ...]
    """The requests above zero that Filter compares; cpu, memory, ephemeral storage first."""
    scored: Mapping[str, int]
    """The amounts that the scoring strategies add to a node's non-zero requests."""
    balanced: Mapping[str, int]
    """The amounts that BalancedAllocation adds to a node's requests."""
    signature: Hashable
    """Equal for pods with equal requests."""

    @classmethod
    def of(cls, pod: Pod) -> PodDemand:
        """Compute the demand of a pod. Raises QuantityError."""
        effective = _clamped(pod_requests(pod, use_status=False))
        filtered = tuple((name, effective[name]) for name in _order(effective) if effective[name] > 0)
        scored = _scored(pod, effective)
        balanced = _clamped(pod_requests(pod)) if _reports(pod) else effective
        signature: Hashable = (filtered, *scored.items(), *balanced.items())
        if len(scored) + len(balanced) > _FEW:
            signature = key_of(signature)
        return cls(filtered, scored, balanced, signature)


def _order(requests: Mapping[str, int]) -> list[str]:
    """Return the resources that count, in the order in which their reasons are reported."""
    named = [name for name in _STANDARD if name in requests]
    if len(named) < len(requests):
        named += [name for name in requests if name not in _STANDARD and is_scalar_resource(name)]
    return named


def _scored(pod: Pod, effective: Mapping[str, int]) -> Mapping[str, int]:
    plain = _without_pod_level(pod)
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if plain is pod and all(_names_both(container.resources.requests) for container in containers):
        return effective  # no default applies
    cpu, memory = pod_nonzero_requests(plain, use_status=False)
    return _clamped({**pod_requests(plain, use_status=False), CPU: cpu, MEMORY: memory})


def _names_both(requests: Mapping[str, object]) -> bool:
    return CPU in requests and MEMORY in requests


def _clamped(requests: dict[str, int]) -> dict[str, int]:
    for name, amount in requests.items():
        if amount > LIMIT:
            requests[name] = LIMIT
    return requests


def _without_pod_level(pod: Pod) -> Pod:
    if pod.spec.resources is None:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=None))


def _reports(pod: Pod) -> bool:
    """Return whether the kubelet reports resources in the pod's status; it never does for a pending pod."""
    status = pod.status
    return bool(
        status.container_statuses or status.init_container_statuses or status.resources or status.allocated_resources
    )


class PodDemands:
    """Creates demands; pods of one template share one. Get the instance of the process with `of_process`."""

    def __init__(self, max_remembered: int = _MAX_REMEMBERED) -> None:
        self._known: Recent[bytes, PodDemand] = Recent(max_remembered)
        # All plugins ask about one pod in turn, so the latest answer is the most wanted one.
        self._latest: tuple[Pod | None, PodDemand | None] = (None, None)

    def of(self, pod: Pod) -> PodDemand:
        """Return the demand of a pod. Raises QuantityError."""
        latest, demand = self._latest
        if latest is not pod or demand is None:
            demand = PodDemand.of(pod) if _reports(pod) else self._by_template(pod)
            self._latest = (pod, demand)
        return demand

    def _by_template(self, pod: Pod) -> PodDemand:
        spec = pod.spec
        key = key_of(spec.containers, spec.init_containers, spec.overhead, spec.resources)
        demand = self._known.get(key)
        if demand is None:
            demand = PodDemand.of(pod)
            self._known.put(key, demand, 1 + len(demand.scored) + len(demand.balanced))
        return demand
