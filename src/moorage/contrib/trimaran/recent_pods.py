"""Pods that were assigned too recently to be part of the measured load, with their expected usage. Follows
pkg/trimaran/handler.go of scheduler-plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.api.pod import Pod
from moorage.api.times import parse_time

MAX_AGE_SECONDS = 900.0
"""Seconds after which a pod is not recent, however late measurements are."""


class RecentPods:
    """Recent pods by node. Register `pod_changed` with `handle.on_change`; Reserve and Unreserve call `add` and
    `remove`, so a pod counts from the moment that it is placed."""

    def __init__(self, expect: Callable[[Pod], int], now: Callable[[], float]) -> None:
        self._expect = expect
        self._now = now
        self._by_node: dict[str, dict[str, tuple[float, int]]] = {}
        """Node → UID → when it came, and what it is expected to use."""
        self._since = now() - MAX_AGE_SECONDS

    def pod_changed(self, old: Any, new: Any) -> None:
        """Update the pod. For a pod that already has a node when it appears, the condition PodScheduled gives the
        time."""
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
        """Forget pods that were assigned no later than this; the measurement includes them."""
        self._since = moment
        for name, pods in list(self._by_node.items()):
            for uid in [uid for uid, (since, _) in pods.items() if since <= moment]:
                del pods[uid]
            if not pods:
                del self._by_node[name]

    def __contains__(self, node: str) -> bool:
        """Return whether a node has recent pods."""
        return node in self._by_node

    def expected(self, node: str, moment: float) -> int:
        """Return the expected usage of pods that were assigned later."""
        pods = self._by_node.get(node)
        return sum(used for since, used in pods.values() if since > moment) if pods else 0


def scheduled_at(pod: Pod) -> float:
    """Return Unix seconds; long ago if the pod does not state it."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return parse_time(condition.last_transition_time) or 0.0
    return 0.0
