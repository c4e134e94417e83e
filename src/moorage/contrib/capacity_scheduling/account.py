"""Account for the resources that the pods of every namespace use, for scheduling, preemption and status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.api.resources import Unstructured
from moorage.contrib.capacity_scheduling.quotas import Amounts, Quota, QuotaLevel, add, link


class Account:
    """All quotas, and the usage of every namespace from Reserve on. There is one per process, so that profiles see each
    other's pods. Pods are keyed by UID, so that a pod may be reported repeatedly."""

    def __init__(self) -> None:
        self.quotas: dict[str, Quota] = {}
        """By namespace."""
        self._pods: dict[str, tuple[str, Amounts]] = {}
        """UID → namespace and requests of the pods that count."""
        self._reserved: set[str] = set()
        """Of these, the pods whose node the API server has not confirmed yet."""
        self._used: dict[str, dict[str, int]] = {}
        """By namespace, with a quota or without: a quota that comes later finds its figures here."""
        self._root: QuotaLevel | None = None
        """Of the hierarchy; None when that has to be made anew."""
        self._victims: dict[str, frozenset[str]] = {}
        """UID of a preemptor that has no node yet → UIDs of the pods that make way for it."""
        self.stale: set[str] = set()
        """Namespaces whose quota has another status than its object says."""
        self.changed = asyncio.Event()

    def reserve(self, pod: Pod) -> None:
        self._reserved.add(pod.uid)
        self._victims.pop(pod.uid, None)
        self._count(pod)

    def unreserve(self, pod: Pod) -> None:
        """Remove the pod, unless the API server reports that it has a node."""
        if pod.uid in self._reserved:
            self._drop(pod.uid)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Update the usage; registered with `handle.on_change`."""
        if old is not None and (new is None or new.uid != old.uid):
            self._drop(old.uid)
        if new is None:
            return
        if new.is_terminal:
            self._drop(new.uid)
        elif new.is_assigned:
            self._reserved.discard(new.uid)
            self._victims.pop(new.uid, None)
            self._count(new)

    def keep_only(self, pods: Iterable[Pod]) -> None:
        """Forget all other pods except reserved ones: they may have ended while no profile enabled the plugin."""
        for uid in self._pods.keys() - self._reserved - {pod.uid for pod in pods}:
            self._drop(uid)

    def set_quota(self, namespace: str, objects: Iterable[Unstructured]) -> None:
        """Update the ElasticQuota objects of a namespace; the first one counts."""
        self.quotas.pop(namespace, None)
        if obj := next(iter(objects), None):
            self.quotas[namespace] = Quota(obj, self._used.setdefault(namespace, {}))
        self._root = None
        for name in self.quotas:
            self.note(name)  # parents may have come or gone

    @property
    def root(self) -> QuotaLevel:
        """Return the level above all quotas."""
        return self._linked()

    def _linked(self) -> QuotaLevel:
        """Return the root of the hierarchy, which is rebuilt after a quota has changed."""
        if self._root is None:
            self._root = link(self.quotas, self._used)
        return self._root

    def quota(self, namespace: str) -> Quota | None:
        """Return the quota of a namespace, linked into the hierarchy."""
        self._linked()
        return self.quotas.get(namespace)

    def path(self, namespace: str) -> tuple[QuotaLevel, ...]:
        """Return the levels that pods of a namespace count towards, from its own up to the root; empty without a
        quota."""
        quota = self.quota(namespace)
        return tuple(quota.leaf.path()) if quota is not None else ()

    def requests(self, pod: Pod) -> Amounts:
        """Return the requests of a pod that count."""
        known = self._pods.get(pod.uid)
        return known[1] if known is not None else pod_requests(pod)

    def make_way(self, pod: Pod, victims: Iterable[Pod]) -> None:
        """Record that these victims will be gone before the pod runs. A victim that already makes way for another pod
        frees nothing for this one."""
        self._victims[pod.uid] = frozenset(victim.uid for victim in victims) - self.promised(pod)

    def promised(self, pod: Pod) -> set[str]:
        """Return the UIDs of the victims of other pods than this one."""
        return {uid for preemptor, found in self._victims.items() if preemptor != pod.uid for uid in found}

    def changes(self, gone: Iterable[str]) -> dict[QuotaLevel, dict[str, int]]:
        """Return by how much the usage of each level falls without these pods."""
        found: dict[QuotaLevel, dict[str, int]] = {}
        for namespace, amounts in (self._pods[uid] for uid in gone if uid in self._pods):
            for level in self.path(namespace):
                add(found.setdefault(level, {}), amounts, -1)
        return found

    def outstanding(self, pod: Pod, level: QuotaLevel) -> Amounts:
        """Return what a nominated pod requests of a level beyond what its victims still use there, so that nothing
        counts twice."""
        held: dict[str, int] = {}
        for uid in self._victims.get(pod.uid, ()):
            namespace, amounts = self._pods.get(uid, ("", {}))
            if level in self.path(namespace):
                add(held, amounts)
        return {name: max(amount - held.get(name, 0), 0) for name, amount in pod_requests(pod).items()}

    def note(self, namespace: str) -> None:
        """Mark the status of the quota to be written."""
        if namespace in self.quotas:
            self.stale.add(namespace)
            self.changed.set()

    def _count(self, pod: Pod) -> None:
        entry = pod.namespace, pod_requests(pod)
        if self._pods.get(pod.uid) != entry:
            self._uncount(pod.uid)
            self._pods[pod.uid] = entry
            self._add(*entry, 1)

    def _drop(self, uid: str) -> None:
        self._reserved.discard(uid)
        self._victims.pop(uid, None)
        self._uncount(uid)

    def _uncount(self, uid: str) -> None:
        entry = self._pods.pop(uid, None)
        if entry is not None:
            self._add(*entry, -1)

    def _add(self, namespace: str, amounts: Amounts, sign: int) -> None:
        _, *above = self.path(namespace) or (None,)
        add(self._used.setdefault(namespace, {}), amounts, sign)
        for level in above:
            add(level.used, amounts, sign)
            if isinstance(level, Quota):
                self.note(level.namespace)
        self.note(namespace)
