"""Requests and limits of cpu and memory as the Trimaran plugins compute them: the larger of all containers together and
each init container, plus overhead. Follows pkg/trimaran/resourcestats.go of scheduler-plugins."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from moorage.api.pod import Container, Pod
from moorage.api.quantity import ResourceList
from moorage.api.requests import CPU, MEMORY, resource_value

Kind = Literal["requests", "limits"]


def effective(pod: Pod, resource: str, kind: Kind = "requests") -> int:
    """Return the amounts in the units of `allocatable`."""

    def of(container: Container) -> int:
        return amount(getattr(container.resources, kind), resource)

    together = sum(map(of, pod.spec.containers))
    largest = max(map(of, pod.spec.init_containers), default=0)
    return max(together, largest) + amount(pod.spec.overhead, resource)


def amount(amounts: ResourceList, resource: str) -> int:
    return resource_value(resource, amounts[resource]) if resource in amounts else 0


class PodAmounts(NamedTuple):
    """Requests and limits; limits are never below requests."""

    cpu_request: int
    cpu_limit: int
    memory_request: int
    memory_limit: int

    @classmethod
    def of(cls, pod: Pod) -> PodAmounts:
        cpu, memory = effective(pod, CPU), effective(pod, MEMORY)
        most_cpu, most_memory = effective(pod, CPU, "limits"), effective(pod, MEMORY, "limits")
        return cls(cpu, max(cpu, most_cpu), memory, max(memory, most_memory))


class KnownAmounts:
    """The amounts of all pods, computed when they appear. Register `pod_changed` with `handle.on_change`."""

    def __init__(self) -> None:
        self._known: dict[str, PodAmounts] = {}

    def pod_changed(self, old: Any, new: Any) -> None:
        if new is None or new.is_terminal:
            self._known.pop((new or old).uid, None)
        else:
            self._known[new.uid] = PodAmounts.of(new)

    def of(self, pod: Pod) -> PodAmounts:
        return self._known.get(pod.uid) or PodAmounts.of(pod)
