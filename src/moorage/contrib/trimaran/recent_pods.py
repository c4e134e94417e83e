"""Pods that came to a node so lately that its measured load does not contain them, with what they are
expected to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.pod import Pod
from moorage.api.times import parse_time

MAX_AGE_SECONDS = 900.0
"""Seconds after which a pod is not recent, however late measurements are."""


class RecentPods:
    """By node. `pod_changed` is for `handle.on_change`, `add` and `remove` for Reserve and Unreserve: a pod
    counts from the moment that it is placed."""

    def __init__(self, expect: Callable[[Pod], int], now: Callable[[], float]) -> None:
        self._expect = expect
        self._now = now
        self._by_node: dict[str, dict[str, tuple[float, int]]] = {}
        """Node → UID → when it came, and what it is expected to use."""
        self._since = now() - MAX_AGE_SECONDS

    def pod_changed(self, old: Any, new: Any) -> None:
        """Of a pod that has its node already when it appears, the condition PodScheduled says since when."""
        if new is None or new.is_terminal:
            self.remove(new or old)
        elif new.is_assigned:
            seen = old is not None and not old.spec.node_name
            self.add(new, new.spec.node_name, self._now() if seen else scheduled_at(new))

    def add(self, pod: Pod, node: str, moment: float) -> None:
        if moment > self._since:
            self._by_node.setdefault(node, {}).setdefault(pod.uid, (moment, self._expect(pod)))

    def remove(self, pod: Pod, node: str = "") -> None:
        name = node or pod.spec.node_name
        pods = self._by_node.get(name, {})
        pods.pop(pod.uid, None)
        if not pods:
            self._by_node.pop(name, None)

    def forget(self, moment: float) -> None:
        """Pods that came no later are measured by now."""
        self._since = moment
        for name, pods in list(self._by_node.items()):
            for uid in [uid for uid, (since, _) in pods.items() if since <= moment]:
                del pods[uid]
            if not pods:
                del self._by_node[name]

    def __contains__(self, node: str) -> bool:
        """Whether a node has any."""
        return node in self._by_node

    def expected(self, node: str, moment: float) -> int:
        """What the pods use that came later."""
        pods = self._by_node.get(node)
        return sum(used for since, used in pods.values() if since > moment) if pods else 0


def scheduled_at(pod: Pod) -> float:
    """Unix seconds; long ago where the pod does not say."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return parse_time(condition.last_transition_time) or 0.0
    return 0.0
