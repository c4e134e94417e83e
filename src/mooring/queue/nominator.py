"""Which pods are to run on which node once their victims are gone.

Holds the space in memory, before the API server knows of it. When a nomination ends by the pod's deletion or
by another choice, `scheduling_queue` wakes the pods that may use the space.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from mooring.api.pod import Pod


class PodNominator:
    """Nominations by node and by pod; a pod has at most one."""

    def __init__(self, is_gone: Callable[[str], bool]) -> None:
        self._is_gone = is_gone
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}

    def nodes(self) -> Collection[str]:
        """Names of the nodes that pods are nominated to."""
        return tuple(self._pods_on) if self._pods_on else ()

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """The pods nominated there, in the order of their nomination."""
        return tuple(self._pods_on.get(node_name, {}).values())

    def nominated_node(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Replaces an earlier nomination; an empty name ends it. A pod whose deletion was seen while its
        attempt was still under way gets none: no event would ever end it."""
        self.forget(pod.uid)
        if node_name and not self._is_gone(pod.uid):
            self._node_of[pod.uid] = node_name
            self._pods_on.setdefault(node_name, {})[pod.uid] = pod

    def forget(self, uid: str) -> None:
        if not self._node_of:
            return
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        del self._pods_on[node][uid]
        if not self._pods_on[node]:
            del self._pods_on[node]

    def refresh(self, pod: Pod) -> None:
        """A newer object of a pod whose nomination stays as it is."""
        node = self._node_of.get(pod.uid)
        if node is not None:
            self._pods_on[node][pod.uid] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """Follow the object only where it changed: an update that left before our own patch arrived must not
        undo what is decided here."""
        if old.nominated_node_name == new.nominated_node_name:
            self.refresh(new)
        else:
            self.nominate(new, new.nominated_node_name)

    def validate(self) -> list[str]:
        listed = {uid: node for node, pods in self._pods_on.items() for uid in pods}
        return [] if listed == self._node_of else ["nominations by node and by pod differ"]


def holding(pod: Pod, node_name: str) -> Pod:
    """The pod as hints expect one that held space on a node: with the node in its status."""
    if pod.nominated_node_name == node_name:
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return msgspec.structs.replace(pod, status=status)
