"""ElasticQuota objects and what their namespaces use: one account for scheduling, preemption and status.

A resource that a max does not name is unlimited, one that a min does not name is not guaranteed. Amounts are
the integers of `api.requests`: milli-cpu, bytes, numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mooring.api.errors import QuantityError
from mooring.api.pod import Pod
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, pod_requests, resource_value
from mooring.api.resources import Unstructured, custom

ELASTICQUOTAS = custom("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")

Amounts = Mapping[str, int]
"""Resource → amount."""

_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
"""Held against a quota even by a pod that requests none of them."""


def add(total: dict[str, int], more: Amounts, sign: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount


class Shortage(NamedTuple):
    """A resource of which more is asked for than a quota leaves."""

    resource: str
    asked: int
    free: int


class Quota:
    """The quota of one namespace, and what its pods use."""

    __slots__ = ("max", "min", "name", "namespace", "problem", "used")

    def __init__(self, obj: Unstructured, used: Amounts) -> None:
        self.namespace, self.name = obj.namespace, obj.name
        self.used = used
        """All that pods of the namespace request; the account keeps it up to date."""
        self.problem = ""
        """Why the object cannot be read; no pod of the namespace may run until it can."""
        self.min = self._read(obj, "min")
        self.max = self._read(obj, "max")

    def _read(self, obj: Unstructured, field: str) -> dict[str, int]:
        amounts = {}
        for name, text in (obj.get("spec", field) or {}).items():
            try:
                amounts[name] = resource_value(name, text)
            except QuantityError:
                where = f"ElasticQuota {obj.key}: spec.{field}.{name}"
                self.problem = f'{where}: {text!r} is not a quantity: write a number such as "500m" or "2Gi"'
        return amounts

    def beyond_max(self, asked: Amounts, change: Amounts) -> Iterator[Shortage]:
        """What is too little for pods that ask for so much, after a change of what is used."""
        names = (name for name in _NATIVE | asked.keys() if name in self.max)
        return _shortages({name: self.max[name] for name in names}, asked, self.used, change)

    def over_min_with(self, asked: Amounts) -> bool:
        """Whether pods that ask for so much go beyond what is guaranteed."""
        names = _NATIVE | asked.keys()
        return any(_sum(name, self.used, asked) > self.min.get(name, 0) for name in names)

    def over_min(self, change: Amounts) -> bool:
        """Whether the namespace borrows, after a change of what is used."""
        return any(_sum(name, self.used, change) > self.min.get(name, 0) for name in self.used)


def _shortages(limits: Amounts, asked: Amounts, *used: Amounts) -> Iterator[Shortage]:
    for name, limit in limits.items():
        wanted, free = asked.get(name, 0), limit - _sum(name, *used)
        if wanted > free:
            yield Shortage(name, wanted, free)


def _sum(name: str, *parts: Amounts) -> int:
    return sum(part.get(name, 0) for part in parts)


class Account:
    """All quotas, and what the pods of every namespace use, from Reserve on. One per process, so that
    profiles see each other's pods; keyed by UID, so that it does not matter how often a pod is reported."""

    def __init__(self) -> None:
        self.quotas: dict[str, Quota] = {}
        """By namespace."""
        self._pods: dict[str, tuple[str, Amounts]] = {}
        """UID → namespace and requests of the pods that count."""
        self._reserved: set[str] = set()
        """Of these, the pods whose node the API server has not confirmed yet."""
        self._used: dict[str, dict[str, int]] = {}
        """By namespace, with a quota or without: a quota that comes later finds its figures here."""
        self._all_used: dict[str, int] = {}
        self._all_min: dict[str, int] = {}
        """Sums over all quotas."""
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
        """The pod has no node after all, unless the API server says that it has."""
        if pod.uid in self._reserved:
            self._drop(pod.uid)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """For `handle.on_change`."""
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
        """Forget all others but reserved ones: they may have gone while no profile had the plugin."""
        for uid in self._pods.keys() - self._reserved - {pod.uid for pod in pods}:
            self._drop(uid)

    def set_quota(self, namespace: str, objects: Iterable[Unstructured]) -> None:
        """The ElasticQuota objects of a namespace have changed; the first one counts."""
        if old := self.quotas.pop(namespace, None):
            self._sum_up(old, -1)
        if obj := next(iter(objects), None):
            new = self.quotas[namespace] = Quota(obj, self._used.setdefault(namespace, {}))
            self._sum_up(new, 1)
        self.note(namespace)

    def _sum_up(self, quota: Quota, sign: int) -> None:
        add(self._all_used, quota.used, sign)
        add(self._all_min, quota.min, sign)

    def requests(self, pod: Pod) -> Amounts:
        """What a pod counts with."""
        known = self._pods.get(pod.uid)
        return known[1] if known is not None else pod_requests(pod)

    def make_way(self, pod: Pod, victims: Iterable[Pod]) -> None:
        """These pods will be gone before the pod runs. One that makes way for another pod already leaves
        nothing to this one."""
        self._victims[pod.uid] = frozenset(victim.uid for victim in victims) - self.promised(pod)

    def promised(self, pod: Pod) -> set[str]:
        """UIDs of the pods that make way for others than this one."""
        return {uid for preemptor, found in self._victims.items() if preemptor != pod.uid for uid in found}

    def changes(self, gone: Iterable[str]) -> dict[str, dict[str, int]]:
        """By namespace, how much less is used without these pods."""
        found: dict[str, dict[str, int]] = {}
        for namespace, amounts in (self._pods[uid] for uid in gone if uid in self._pods):
            add(found.setdefault(namespace, {}), amounts, -1)
        return found

    def outstanding(self, pod: Pod, namespace: str = "") -> Amounts:
        """What a nominated pod asks for beyond what its victims still hold, those of one namespace or of all
        quotas: both must not count."""
        held: dict[str, int] = {}
        for uid in self._victims.get(pod.uid, ()):
            space, amounts = self._pods.get(uid, ("", {}))
            if space in self.quotas and namespace in ("", space):
                add(held, amounts)
        return {name: max(amount - held.get(name, 0), 0) for name, amount in pod_requests(pod).items()}

    def all_beyond_min(self, asked: Amounts, change: Amounts) -> Iterator[Shortage]:
        """Where pods that ask for so much would take all quotas together beyond the sum of min."""
        limits = {name: self._all_min.get(name, 0) for name in self._all_used.keys() | asked.keys()}
        return _shortages(limits, asked, self._all_used, change)

    def note(self, namespace: str) -> None:
        """The status of the quota has to be written."""
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
        add(self._used.setdefault(namespace, {}), amounts, sign)
        if namespace in self.quotas:
            add(self._all_used, amounts, sign)
            self.note(namespace)
