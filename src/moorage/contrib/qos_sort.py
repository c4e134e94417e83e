"""QOSSort: try pods of equal priority in the order Guaranteed, Burstable, BestEffort. Follows pkg/qos/queue_sort.go of
scheduler-plugins."""

from __future__ import annotations

from typing import Any

from moorage.api import quantity
from moorage.api.pod import Pod, ResourceRequirements
from moorage.api.quantity import ResourceList
from moorage.framework.events import QueuedPod
from moorage.framework.points import SortKeyPlugin

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_RANKS = {GUARANTEED: 0, BURSTABLE: 1, BEST_EFFORT: 2}
_DECISIVE = ("cpu", "memory")


class QOSSort(SortKeyPlugin):
    name = "QOSSort"

    def key(self, pod: QueuedPod) -> Any:
        return (-pod.pod.priority, _RANKS.get(qos_class(pod.pod), len(_RANKS)), pod.timestamp)


def qos_class(pod: Pod) -> str:
    """Return the QoS class that the API server has written into the status, or would write."""
    if pod.status.qos_class:
        return pod.status.qos_class
    if pod.spec.resources is not None:
        return _class_of([pod.spec.resources])
    return _class_of([c.resources for c in (*pod.spec.containers, *pod.spec.init_containers)])


def _class_of(resources: list[ResourceRequirements]) -> str:
    requests, limits = (_sums([each.requests for each in resources]), _sums([each.limits for each in resources]))
    if not requests and not limits:
        return BEST_EFFORT
    # Every container has to be limited: sums that agree are not enough.
    limited = all(_sums([each.limits]).keys() == {*_DECISIVE} for each in resources)
    return GUARANTEED if limited and requests == limits else BURSTABLE


def _sums(lists: list[ResourceList]) -> dict[str, int]:
    """Return the amounts that determine the class: cpu and memory above zero, in nano-units."""
    total: dict[str, int] = {}
    for amounts in lists:
        for name in _DECISIVE:
            if name in amounts and (nanos := quantity.parse(amounts[name])) > 0:
                total[name] = total.get(name, 0) + nanos
    return total
