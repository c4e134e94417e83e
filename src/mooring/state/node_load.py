"""The pods on one node and the exact sums of what they request.

Shared by the NodeTable, which has one load per row, and by the overlay, which copies the loads that it
changes. Columns are kept by their owners.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from mooring.api.pod import Pod
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.state.errors import CacheError
from mooring.state.pod_entry import PodEntry

_EMPTY = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0}


class NodeLoad:
    """Pods by UID and their sums. Each sum is that of the pods, at any time; sums are exact, never
    clamped."""

    __slots__ = ("_listing", "nonzero_cpu", "nonzero_memory", "pods", "requested", "shown")

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        """UID → pod, in the order in which they came."""
        self.requested: dict[str, int] = dict(_EMPTY)
        """Resource → sum; the four standard ones are always present, `pods` is the number of pods."""
        self.shown: Mapping[str, int] = MappingProxyType(self.requested)
        """`requested` for readers."""
        self.nonzero_cpu = 0
        """Milli-cpu with scoring defaults."""
        self.nonzero_memory = 0
        """Bytes with scoring defaults."""
        self._listing: tuple[Pod, ...] | None = ()

    @classmethod
    def copied(
        cls, pods: Iterable[Pod], requested: Mapping[str, int], nonzero: Mapping[str, int]
    ) -> NodeLoad:
        """A load of its own that starts with these pods and sums."""
        load = cls()
        load.pods = {pod.metadata.uid: pod for pod in pods}
        load.requested.update(requested)
        load.nonzero_cpu, load.nonzero_memory = nonzero[CPU], nonzero[MEMORY]
        load._listing = None
        return load

    def add(self, entry: PodEntry) -> None:
        if entry.uid in self.pods:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is on the node already")
        self.pods[entry.uid] = entry.pod
        requested = self.requested
        for name, amount in entry.amounts:
            requested[name] = requested.get(name, 0) + amount
        cpu, memory = entry.nonzero
        self.nonzero_cpu += cpu
        self.nonzero_memory += memory
        self._listing = None

    def remove(self, entry: PodEntry) -> None:
        """Take out what `add` put in; the entry must have the same demand as the added one."""
        if self.pods.pop(entry.uid, None) is None:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is not on the node")
        requested = self.requested
        for name, amount in entry.amounts:
            requested[name] -= amount
        cpu, memory = entry.nonzero
        self.nonzero_cpu -= cpu
        self.nonzero_memory -= memory
        self._listing = None

    def replace(self, entry: PodEntry) -> None:
        """Another version of a pod that is here, with the same demand."""
        if entry.uid not in self.pods:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is not on the node")
        self.pods[entry.uid] = entry.pod
        self._listing = None

    def listing(self) -> tuple[Pod, ...]:
        """The pods as a value that later changes leave alone."""
        if self._listing is None:
            self._listing = tuple(self.pods.values())
        return self._listing

    def nonzero(self, resource: str) -> int:
        """One sum with scoring defaults."""
        if resource == CPU:
            return self.nonzero_cpu
        return self.nonzero_memory if resource == MEMORY else self.requested.get(resource, 0)

    def nonzero_requested(self) -> dict[str, int]:
        """Resource → sum with scoring defaults, which exist for cpu and memory; the others as requested."""
        return {**self.requested, CPU: self.nonzero_cpu, MEMORY: self.nonzero_memory}
