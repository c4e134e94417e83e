"""Unschedulable and gated pods, in groups that share their hint results.

Two pods are in the same group if the same plugins rejected them and their signatures are equal, because a
hint cannot tell them apart. Groups are indexed by plugin, so an event costs nothing for groups whose plugins
did not register it. `hints` calls the hints.

These are the unschedulablePods of pkg/scheduler/backend/queue, which kube-scheduler does not group.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from moorage.framework.events import QueuedPod

FLUSH_PERIOD = 30.0
"""Seconds between two checks for pods that have been unschedulable for too long."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The values that the pods of a group have in common."""

    profile: str
    signature: Hashable
    unschedulable: frozenset[str]
    pending: frozenset[str]
    gating: str

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins that rejected the pods. A plugin that gates them counts as well."""
        return self.unschedulable | {self.gating} if self.gating else self.unschedulable

    @property
    def listens_to(self) -> Iterable[str]:
        """The plugins whose events matter. While a pod is gated, only the gating plugin can help."""
        return (self.gating,) if self.gating else sorted(self.unschedulable)


def key_of(info: QueuedPod) -> GroupKey:
    """Return the group of a pod. A pod without a signature is alone in its group."""
    signature = ("uid", info.uid) if info.signature is None else info.signature
    return GroupKey(
        info.pod.scheduler_name, signature, info.unschedulable_plugins, info.pending_plugins, info.gating_plugin
    )


@dataclass(slots=True, eq=False)
class RejectedGroup:
    """The pods with the same key, in order of arrival."""

    key: GroupKey
    pods: dict[str, QueuedPod] = field(default_factory=dict)


class Flush:
    """Decides when pods that have been unschedulable for more than `after` seconds are tried again.

    Pods are checked every `FLUSH_PERIOD` seconds, starting at `origin`. If `after` is None, they are never flushed.
    """

    def __init__(self, after: float | None, origin: float) -> None:
        self._after = after
        self._origin = origin

    def due(self, since: float) -> float | None:
        """Return when the first check flushes a pod that became unschedulable at `since`."""
        if self._after is None:
            return None
        periods = math.floor((since + self._after - self._origin) / FLUSH_PERIOD) + 1
        return self._origin + periods * FLUSH_PERIOD


class UnschedulablePods:
    """All unschedulable and gated pods by UID, by group and by age."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, RejectedGroup] = {}
        self._by_plugin: dict[str, dict[str, dict[GroupKey, RejectedGroup]]] = {}
        self._group_of: dict[str, RejectedGroup] = {}
        # An OrderedDict, because finding the first entry of a plain dict gets slower as entries are removed.
        self._since: OrderedDict[str, float] = OrderedDict()
        self._gated = 0

    def add(self, info: QueuedPod, now: float) -> None:
        """Add a pod. The clock is monotonic, so the order of arrival is the order of age."""
        self._join(info)
        self._since[info.uid] = now

    def remove(self, uid: str) -> None:
        """Remove the pod with this UID."""
        self._part(uid)
        del self._since[uid]

    def regroup(self, info: QueuedPod) -> None:
        """Move a pod to its new group after its object, signature or gate has changed. Its age stays the same."""
        self._part(info.uid)
        self._join(info)

    def profiles(self) -> Iterator[tuple[str, QueuedPod]]:
        """Yield each profile that has pods here, with one of its pods."""
        for profile, plugins in self._by_plugin.items():
            group = next(iter(next(iter(plugins.values())).values()))
            yield profile, next(iter(group.pods.values()))

    def listening(self, profile: str, plugins: Iterable[str]) -> list[RejectedGroup]:
        """Return the groups that one of these plugins rejected, each group once."""
        index = self._by_plugin.get(profile, {})
        found = {id(group): group for plugin in plugins for group in index.get(plugin, {}).values()}
        return list(found.values())

    def oldest(self) -> tuple[str, float] | None:
        """Return the UID and the arrival time of the oldest pod."""
        return next(iter(self._since.items()), None)

    def since(self, uid: str) -> float:
        """Return when the pod became unschedulable or when PreEnqueue last gated it."""
        return self._since[uid]

    def get(self, uid: str) -> QueuedPod:
        """Return the pod with this UID."""
        return self._group_of[uid].pods[uid]

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, uid: object) -> bool:
        return uid in self._since

    def __iter__(self) -> Iterator[QueuedPod]:
        return (self.get(uid) for uid in self._since)

    @property
    def gated(self) -> int:
        """The number of gated pods."""
        return self._gated

    def validate(self) -> list[str]:
        """Return the violated invariants as text."""
        problems = [
            f"{info.key} is in the wrong group" for info in self if self._group_of[info.uid].key != key_of(info)
        ]
        problems += [f"group {group.key} is empty" for group in self._groups.values() if not group.pods]
        if list(self._since.values()) != sorted(self._since.values()):
            problems.append("unschedulable pods are not in order of age")
        if self._gated != sum(info.is_gated for info in self):
            problems.append(f"{self._gated} gated pods counted")
        grouped = sum(len(group.pods) for group in self._groups.values())
        if grouped != len(self._since) or len(self._group_of) != len(self._since):
            problems.append(f"{grouped} pods in groups, {len(self._since)} unschedulable")
        return problems + self._validate_index()

    def _validate_index(self) -> list[str]:
        wanted = {(key, plugin) for key in self._groups for plugin in key.listens_to}
        indexed = {
            (key, plugin)
            for plugins in self._by_plugin.values()
            for plugin, groups in plugins.items()
            for key in groups
        }
        return [] if wanted == indexed else ["the index by plugin does not match the groups"]

    def _join(self, info: QueuedPod) -> None:
        key = key_of(info)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = RejectedGroup(key)
            index = self._by_plugin.setdefault(key.profile, {})
            for plugin in key.listens_to:
                index.setdefault(plugin, {})[key] = group
        group.pods[info.uid] = info
        self._group_of[info.uid] = group
        self._gated += bool(key.gating)

    def _part(self, uid: str) -> None:
        group = self._group_of.pop(uid)
        del group.pods[uid]
        self._gated -= bool(group.key.gating)
        if not group.pods:
            self._drop(group.key)

    def _drop(self, key: GroupKey) -> None:
        del self._groups[key]
        index = self._by_plugin[key.profile]
        for plugin in key.listens_to:
            del index[plugin][key]
            if not index[plugin]:
                del index[plugin]
        if not index:
            del self._by_plugin[key.profile]
