"""The accounting of pods: the entry of one pod, the load of one row, and the observers of both.

An entry is computed once per pod, and all pods of one template share its demand; `api.requests` derives
requests from a spec. A load holds the pods of a row and the exact sums of their requests. The NodeTable has
one per row, and an overlay copies those that it changes; their owners keep the columns.

Observers (counters, indexes, terms) are notified of changes of the table. Most pods concern one or two of
them, so a pending pod is shown to all in advance, and when it is placed, only those are notified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from moorage.api.meta import key_of
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.api.pod_affinity import PodTerms
from moorage.api.recent import Recent
from moorage.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    container_host_ports,
    pod_nonzero_requests,
    pod_requests,
)
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.state.columns import CacheError, clamp
from moorage.state.label_index import LabelSet
from moorage.state.ranking import PodRanking

HostPort = tuple[str, str, int]
"""Protocol, host IP (`0.0.0.0` for all) and port."""

_replace = msgspec.structs.replace

NO_KEYS: Mapping[Any, Sequence[Hashable]] = MappingProxyType({})

_MAX_REMEMBERED = 16384
"""Amounts and ports of templates that are kept."""


@dataclass(frozen=True, slots=True)
class TemplateDemand:
    """The demand that all pods of one template share."""

    requests: Mapping[str, int]
    """Resource → amount: cpu in milli-units, all others in base units. At most `columns.LIMIT`."""
    nonzero: tuple[int, int]
    """Milli-cpu and bytes of memory, with the defaults that scoring assumes."""
    host_ports: tuple[HostPort, ...]
    amounts: tuple[tuple[str, int, int], ...]
    """The changes of a node's sums: resource, request, and request with scoring defaults; `pods` by one."""

    @classmethod
    def of(cls, pod: Pod, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> TemplateDemand:
        """Compute the demand of a pod. Raises QuantityError if it has an invalid quantity."""
        requests = {name: clamp(amount) for name, amount in pod_requests(pod, behaviour=behaviour).items()}
        counted_by_default = pod_nonzero_requests(pod, behaviour=behaviour)
        nonzero = dict(zip((CPU, MEMORY), map(clamp, counted_by_default), strict=True))
        counted = {**requests, **nonzero}
        named = [name for name in counted if name != PODS and (counted[name] or requests.get(name, 0))]
        return cls(
            MappingProxyType(requests),
            (nonzero[CPU], nonzero[MEMORY]),
            container_host_ports(pod),
            (*((name, requests.get(name, 0), counted[name]) for name in named), (PODS, 1, 1)),
        )


class PodEntry:
    """A pod with its demand and its node, as the cache and the NodeTable account it.

    The demand does not change while the pod is accounted. Observers of the table keep their results about the pod here.
    """

    __slots__ = (
        "amounts",
        "assumed",
        "host_ports",
        "index_keys",
        "label_set",
        "listeners",
        "node_name",
        "nonzero",
        "original",
        "prepared_mark",
        "requests",
        "terms",
        "uid",
    )

    def __init__(self, pod: Pod, demand: TemplateDemand | None = None) -> None:
        if demand is None:
            demand = TemplateDemand.of(pod)
        self.original = pod
        """The pod as it arrived. An assumed pod does not name its node here; use `pod` if that matters."""
        self.node_name: str = pod.spec.node_name
        """The node, or ghost, that the pod is or will be accounted on."""
        self.assumed = False
        """Whether the pod was given its node but has not been seen there yet."""
        self.uid: str = pod.metadata.uid
        self.requests = demand.requests
        self.nonzero = demand.nonzero
        self.host_ports = demand.host_ports
        self.amounts = demand.amounts
        self.label_set: LabelSet | None = None
        """The label set that counts the pod, or would."""
        self.terms: PodTerms | None = None
        """The pod's affinity terms, or None until they are needed."""
        self.index_keys: Mapping[Any, Sequence[Hashable]] = NO_KEYS
        """Index → the keys of the pod in it."""
        self.listeners: Sequence[Observer] = ()
        """The observers that this pod concerns, valid if `prepared_mark` is the current `Observers.mark`."""
        self.prepared_mark: object = None

    @property
    def pod(self) -> Pod:
        """The pod, bound to its node. Built on demand, because most pods are seen as bound before that."""
        pod = self.original
        if pod.spec.node_name != self.node_name:
            pod = self.original = bound_to(pod, self.node_name)
        return pod

    def __repr__(self) -> str:
        return f"PodEntry({self.original.key})"


def bound_to(pod: Pod, node_name: str) -> Pod:
    """Return the pod with its node set, as it will be once it is bound."""
    return _replace(pod, spec=_replace(pod.spec, node_name=node_name))


class PodEntries:
    """Creates entries. Pods of one template share one `TemplateDemand`, which saves time and memory."""

    def __init__(self, behaviour: Behaviour = DEFAULT_BEHAVIOUR, max_remembered: int = _MAX_REMEMBERED) -> None:
        self._behaviour = behaviour
        self._demands: Recent[bytes, TemplateDemand] = Recent(max_remembered)

    def entry(self, pod: Pod) -> PodEntry:
        """Return the entry of a pod. Raises QuantityError if it has an invalid quantity."""
        spec, status = pod.spec, pod.status
        key_parts: tuple[Any, ...] = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        if (
            status.conditions
            or status.container_statuses
            or status.init_container_statuses
            or status.resources
            or status.allocated_resources
        ):
            key_parts += _reported(status)
        try:
            # Without node, name and labels, so that replicas have the same key.
            template = key_of(key_parts)
        except OverflowError:  # an integer beyond 64 bits, which cannot be encoded
            return PodEntry(pod, TemplateDemand.of(pod, self._behaviour))
        demand = self._demands.get(template)
        if demand is None:
            demand = TemplateDemand.of(pod, self._behaviour)
            self._demands.put(template, demand, len(demand.amounts) + len(demand.host_ports))
        return PodEntry(pod, demand)


def _reported(status: PodStatus) -> tuple[Any, ...]:
    """Return the requests that the kubelet reports while a pod is resized.

    The result is empty otherwise, so that a pod has the same template key before and after it is bound.
    """
    containers = [
        (found.name, found.resources, found.allocated_resources)
        for found in (*status.container_statuses, *status.init_container_statuses)
        if found.resources is not None or found.allocated_resources
    ]
    pending = [found.reason for found in status.conditions if found.type == "PodResizePending"]
    if not (containers or pending or status.resources or status.allocated_resources):
        return ()
    return containers, pending, status.resources, status.allocated_resources


_EMPTY = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0}


class RowLoad:
    """The pods of a row by UID and their sums, exact and never clamped. Implements `framework.nodes.NodeLoad`."""

    __slots__ = ("_pods", "entries", "nonzero_requested", "nonzero_sums", "ranking", "requested", "sums")

    def __init__(self) -> None:
        self.entries: dict[str, PodEntry] = {}
        """UID → entry, in the order of arrival."""
        self.sums: dict[str, int] = dict(_EMPTY)
        """Resource → sum. The four standard resources are always present; `pods` is the number of pods."""
        self.requested: Mapping[str, int] = MappingProxyType(self.sums)
        """A read-only view of `sums`."""
        self.nonzero_sums: dict[str, int] = dict(_EMPTY)
        """`sums` with scoring defaults, which exist for cpu and memory."""
        self.nonzero_requested: Mapping[str, int] = MappingProxyType(self.nonzero_sums)
        self._pods: tuple[Pod, ...] | None = ()
        self.ranking: PodRanking | None = None
        """The cached result of `ranked`, or None."""

    def copy(self) -> RowLoad:
        """Return an independent load with these pods and sums."""
        load = RowLoad()
        load.entries = self.entries.copy()
        load.sums.update(self.sums)
        load.nonzero_sums.update(self.nonzero_sums)
        load._pods, load.ranking = self._pods, self.ranking
        return load

    def add(self, entry: PodEntry) -> None:
        if entry.uid in self.entries:
            raise CacheError(f"Pod {entry.pod.key} ({entry.uid}) is already on the node.")
        self.entries[entry.uid] = entry
        requested, nonzero = self.sums, self.nonzero_sums
        for name, amount, counted in entry.amounts:
            try:  # cheaper than .get(): the standard resources are always present
                requested[name] += amount
                nonzero[name] += counted
            except KeyError:
                requested[name], nonzero[name] = amount, counted
        self._pods = self.ranking = None

    def remove(self, entry: PodEntry) -> None:
        """Undo `add`. The entry must have the same demand as the added one."""
        if self.entries.pop(entry.uid, None) is None:
            raise CacheError(f"Pod {entry.pod.key} ({entry.uid}) is not on the node.")
        requested, nonzero = self.sums, self.nonzero_sums
        for name, amount, counted in entry.amounts:
            try:
                requested[name] -= amount
                nonzero[name] -= counted
            except KeyError:  # amounts of other pods had made the sum zero
                requested[name], nonzero[name] = -amount, -counted
        self._pods = self.ranking = None

    def drop_unused(self, besides: Collection[str]) -> None:
        """Forget the resources that no pod of the row requests any more. Both mappings keep their identity, but not
        the memory that they have taken for thousands of names."""
        for sums, others in ((self.sums, self.nonzero_sums), (self.nonzero_sums, self.sums)):
            kept = {name: total for name, total in sums.items() if total or others.get(name) or name in besides}
            sums.clear()
            sums.update(kept)

    def replace(self, entry: PodEntry) -> None:
        """Store another version of a pod with the same demand."""
        if entry.uid not in self.entries:
            raise CacheError(f"Pod {entry.pod.key} ({entry.uid}) is not on the node.")
        self.entries[entry.uid] = entry
        self._pods = self.ranking = None

    def pods(self) -> tuple[Pod, ...]:
        """Return the pods as a tuple that later changes do not affect."""
        if self._pods is None:
            self._pods = tuple([entry.pod for entry in self.entries.values()])
        return self._pods

    def ranked(self) -> PodRanking:
        """Return the pods by importance. The result is cached until they change."""
        if self.ranking is None:
            requests = [entry.requests for entry in self.entries.values()]
            self.ranking = PodRanking(zip(self.pods(), requests, strict=True))
        return self.ranking


class NodeObserver(Protocol):
    """Notified after every change of a node."""

    def node_changed(self, row: int, old: Node | None, new: Node | None) -> None: ...


class Observer(Protocol):
    """Notified after a pod was added to or removed from a row. A ghost row has pods but no node."""

    def prepare(self, entry: PodEntry) -> bool:
        """Precompute what is needed about a pod that may be added soon.

        Returns False if this observer need not be notified when the pod is added.
        """
        ...

    def pod_added(self, row: int, entry: PodEntry) -> None: ...

    def pod_removed(self, row: int, entry: PodEntry) -> None: ...

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        """The table calls this for a new version with the same demand on the same row."""
        ...


class Observers:
    """All observers of one table. `pods` and `nodes` iterate over the present pods and nodes with their rows."""

    __slots__ = ("_nodes", "all", "mark", "of_nodes", "pods")

    def __init__(
        self, pods: Callable[[], Iterable[tuple[int, PodEntry]]], nodes: Callable[[], Iterable[tuple[int, Node]]]
    ) -> None:
        self.pods = pods
        """Iterates over all present pods with their rows."""
        self._nodes = nodes
        self.all: list[Observer] = []
        self.of_nodes: list[NodeObserver] = []
        self.mark = object()
        """Marks the entries that the current observers have prepared."""

    def observe(self, observer: Observer) -> None:
        """Notify `observer` of all present pods, and from now on of every pod added or removed.

        Pods stay on their row even if the node is removed.
        """
        self.show_pods(observer)
        self.all.append(observer)
        self.forget_prepared()

    def show_pods(self, observer: Observer) -> None:
        """Notify `observer` of all present pods."""
        for row, entry in self.pods():
            observer.pod_added(row, entry)

    def observe_nodes(self, observer: NodeObserver) -> None:
        """Notify `observer` of all present nodes, and from now on of every change of a node."""
        for row, node in self._nodes():
            observer.node_changed(row, None, node)
        self.of_nodes.append(observer)

    def ignore_nodes(self, observer: NodeObserver) -> None:
        """Stop notifying `observer`."""
        self.of_nodes.remove(observer)

    def prepare(self, entry: PodEntry) -> None:
        """Show a pending pod to all observers."""
        entry.listeners = tuple([observer for observer in self.all if observer.prepare(entry)])
        entry.prepared_mark = self.mark

    def forget_prepared(self) -> None:
        """Invalidate all prepared entries, because an observer is now interested in other pods."""
        self.mark = object()
