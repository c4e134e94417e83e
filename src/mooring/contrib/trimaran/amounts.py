"""What pods request and may use at most of cpu and memory, as the Trimaran plugins reckon it: the larger of
all containers together and each init container, plus overhead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mooring.api.pod import Pod
from mooring.api.quantity import ResourceList
from mooring.api.requests import CPU, MEMORY, resource_value


def effective_requests(pod: Pod, resource: str) -> int:
    return _effective(pod, resource, [container.resources.requests for container in pod.spec.containers],
                      [container.resources.requests for container in pod.spec.init_containers])  # fmt: skip


def effective_limits(pod: Pod, resource: str) -> int:
    return _effective(pod, resource, [container.resources.limits for container in pod.spec.containers],
                      [container.resources.limits for container in pod.spec.init_containers])  # fmt: skip


def _effective(pod: Pod, resource: str, main: Iterable[ResourceList], init: Iterable[ResourceList]) -> int:
    together = sum(amount(each, resource) for each in main)
    largest = max((amount(each, resource) for each in init), default=0)
    return max(together, largest) + amount(pod.spec.overhead, resource)


def amount(amounts: ResourceList, resource: str) -> int:
    return resource_value(resource, amounts[resource]) if resource in amounts else 0


class PodAmounts(NamedTuple):
    """Limits are never below requests."""

    cpu_request: int
    cpu_limit: int
    memory_request: int
    memory_limit: int

    @classmethod
    def of(cls, pod: Pod) -> PodAmounts:
        cpu, memory = effective_requests(pod, CPU), effective_requests(pod, MEMORY)
        limits = effective_limits(pod, CPU), effective_limits(pod, MEMORY)
        return cls(cpu, max(cpu, limits[0]), memory, max(memory, limits[1]))


class KnownAmounts:
    """The amounts of all pods, computed when they appear. `pod_changed` is for `handle.on_change`."""

    def __init__(self) -> None:
        self._known: dict[str, PodAmounts] = {}

    def pod_changed(self, old: Any, new: Any) -> None:
        if new is None or new.is_terminal:
            self._known.pop((new or old).uid, None)
        else:
            self._known[new.uid] = PodAmounts.of(new)

    def of(self, pod: Pod) -> PodAmounts:
        return self._known.get(pod.uid) or PodAmounts.of(pod)
