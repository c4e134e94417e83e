"""The pods on one node and the exact sums of what they request.

Shared by the NodeTable, which has one load per row, and by the overlay, which copies the loads that it
changes. Columns are kept by their owners.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mooring.api.pod import Pod
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.framework.ranking import RankedPods
from mooring.state.columns import CacheError
from mooring.state.pod_entry import PodEntry

_EMPTY = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0}


class NodeLoad:
    """Pods by UID and their sums, which are exact at any time, never clamped. Implements
    `framework.nodes.NodeLoad`."""

    __slots__ = ("_pods", "entries", "nonzero_requested", "nonzero_sums", "ranking", "requested", "sums")

    def __init__(self) -> None:
        self.entries: dict[str, PodEntry] = {}
        """UID → pod with its demand, in the order in which they came."""
        self.sums: dict[str, int] = dict(_EMPTY)
        """Resource → sum; the four standard ones are always present, `pods` is the number of pods."""
        self.requested: Mapping[str, int] = MappingProxyType(self.sums)
        """`sums` for readers."""
        self.nonzero_sums: dict[str, int] = dict(_EMPTY)
        """`sums` with scoring defaults, which exist for cpu and memory."""
        self.nonzero_requested: Mapping[str, int] = MappingProxyType(self.nonzero_sums)
        self._pods: tuple[Pod, ...] | None = ()
        self.ranking: RankedPods | None = None
        """What `ranked` gives, if that is known."""

    def copy(self) -> NodeLoad:
        """A load of its own that starts with these pods and sums."""
        load = NodeLoad()
        load.entries = self.entries.copy()
        load.sums.update(self.sums)
        load.nonzero_sums.update(self.nonzero_sums)
        load._pods, load.ranking = self._pods, self.ranking
        return load

    def add(self, entry: PodEntry) -> None:
        if entry.uid in self.entries:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is on the node already")
        self.entries[entry.uid] = entry
        requested, nonzero = self.sums, self.nonzero_sums
        for name, amount, counted in entry.amounts:
            try:  # cheaper than asking for a default: the standard ones are always there
                requested[name] += amount
                nonzero[name] += counted
            except KeyError:
                requested[name], nonzero[name] = amount, counted
        self._pods = self.ranking = None

    def remove(self, entry: PodEntry) -> None:
        """Take out what `add` put in; the entry must have the same demand as the added one."""
        if self.entries.pop(entry.uid, None) is None:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is not on the node")
        requested, nonzero = self.sums, self.nonzero_sums
        for name, amount, counted in entry.amounts:
            requested[name] -= amount
            nonzero[name] -= counted
        self._pods = self.ranking = None

    def replace(self, entry: PodEntry) -> None:
        """Another version of a pod that is here, with the same demand."""
        if entry.uid not in self.entries:
            raise CacheError(f"pod {entry.pod.key} ({entry.uid}) is not on the node")
        self.entries[entry.uid] = entry
        self._pods = self.ranking = None

    def pods(self) -> tuple[Pod, ...]:
        """The pods as a value that later changes leave alone."""
        if self._pods is None:
            self._pods = tuple([entry.pod for entry in self.entries.values()])
        return self._pods

    def ranked(self) -> RankedPods:
        """The pods by importance; kept until they change."""
        if self.ranking is None:
            requests = [entry.requests for entry in self.entries.values()]
            self.ranking = RankedPods(zip(self.pods(), requests, strict=True))
        return self.ranking
