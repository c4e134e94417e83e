"""What pods cost their node: the entry of one pod, and the load of one node.

An entry is computed once per pod, and its demand is shared by all pods of one template; how requests are
derived from a spec is decided in `api.requests`. A load has the pods of a node with the exact sums of what
they request. The NodeTable has one per row, and the overlay copies those that it changes; columns are kept by
their owners."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from moorage.api.pod import Pod, PodStatus
from moorage.api.pod_affinity import PodTerms
from moorage.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    container_host_ports,
    pod_nonzero_requests,
    pod_requests,
)
from moorage.state.columns import CacheError, clamp
from moorage.state.label_index import LabelSet
from moorage.state.ranking import PodRanking

HostPort = tuple[str, str, int]
"""Protocol, host IP (`0.0.0.0` for all), port."""

_replace = msgspec.structs.replace

NO_KEYS: Mapping[Any, Sequence[Hashable]] = MappingProxyType({})

_TEMPLATES = 4096
"""Templates remembered; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What every pod of one template takes from its node."""

    requests: Mapping[str, int]
    """Resource → amount: cpu in milli-units, all others in base units. Never above `columns.LIMIT`."""
    nonzero: tuple[int, int]
    """Milli-cpu and bytes of memory with the defaults that scoring uses."""
    host_ports: tuple[HostPort, ...]
    amounts: tuple[tuple[str, int, int], ...]
    """What a node's sums change by: resource, request, and the same with scoring defaults; one of `pods`."""

    @classmethod
    def of(cls, pod: Pod) -> Demand:
        """Computed afresh. A QuantityError passes through."""
        requests = {name: clamp(amount) for name, amount in pod_requests(pod).items()}
        nonzero = dict(zip((CPU, MEMORY), map(clamp, pod_nonzero_requests(pod)), strict=True))
        counted = {**requests, **nonzero}
        named = [name for name in counted if name != PODS and (counted[name] or requests.get(name, 0))]
        return cls(
            MappingProxyType(requests),
            (nonzero[CPU], nonzero[MEMORY]),
            container_host_ports(pod),
            (*((name, requests.get(name, 0), counted[name]) for name in named), (PODS, 1, 1)),
        )


class Listener(Protocol):
    """Notified of pods that come."""

    def pod_added(self, row: int, entry: PodEntry) -> None: ...


class PodEntry:
    """A pod with its demand and its node, as the cache and the NodeTable account it. What it takes does not
    change once it is accounted; what observers of the table have worked out about the pod is kept with it."""

    __slots__ = (
        "amounts",
        "assumed",
        "came",
        "host_ports",
        "index_keys",
        "label_set",
        "listeners",
        "node_name",
        "nonzero",
        "prepared",
        "requests",
        "terms",
        "uid",
    )

    def __init__(self, pod: Pod, demand: Demand | None = None) -> None:
        if demand is None:
            demand = Demand.of(pod)
        self.came = pod
        """The pod as it came, which is enough for all that does not ask for its node: a pod that was only
        decided does not name it yet."""
        self.node_name: str = pod.spec.node_name
        """Where it is accounted, or shall be; the node may be a ghost."""
        self.assumed = False
        """Decided for its node and not yet seen there."""
        self.uid: str = pod.metadata.uid
        self.requests = demand.requests
        self.nonzero = demand.nonzero
        self.host_ports = demand.host_ports
        self.amounts = demand.amounts
        self.label_set: LabelSet | None = None
        """Where the pod is counted, or would be."""
        self.terms: PodTerms | None = None
        """The pod's affinity terms, which live as long as a pod that has them; None: not asked for."""
        self.index_keys: Mapping[Any, Sequence[Hashable]] = NO_KEYS
        """Index → the keys under which the pod is filed there."""
        self.listeners: Sequence[Listener] = ()
        """Observers of the table that this pod concerns, if `prepared` is the table's mark of now."""
        self.prepared: object = None

    @property
    def pod(self) -> Pod:
        """The pod, bound to its node. The object is made when it is asked for: most pods are seen as bound
        before that."""
        pod = self.came
        if pod.spec.node_name != self.node_name:
            pod = self.came = bound_to(pod, self.node_name)
        return pod

    def __repr__(self) -> str:
        return f"PodEntry({self.came.key})"


def bound_to(pod: Pod, node_name: str) -> Pod:
    """The pod as it will be once it is bound."""
    return _replace(pod, spec=_replace(pod.spec, node_name=node_name))


class PodEntries:
    """Makes entries; pods of one template share one `Demand`, which saves time and memory."""

    def __init__(self, templates: int = _TEMPLATES) -> None:
        self._limit = templates
        self._demands: dict[bytes, Demand] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def entry(self, pod: Pod) -> PodEntry:
        """The entry of a pod. A QuantityError passes through."""
        spec, status = pod.spec, pod.status
        basis: tuple[Any, ...] = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        if (
            status.conditions
            or status.container_statuses
            or status.init_container_statuses
            or status.resources
            or status.allocated_resources
        ):
            basis += _reported(status)
        try:
            # Node, name and labels are left out, so that replicas have the same basis.
            template = self._encode(basis)
        except OverflowError:  # an integer beyond 64 bits, which cannot be encoded
            return PodEntry(pod)
        demand = self._demands.get(template)
        if demand is None:
            demand = self._demands[template] = Demand.of(pod)
            if len(self._demands) > self._limit:
                del self._demands[next(iter(self._demands))]
        return PodEntry(pod, demand)


def _reported(status: PodStatus) -> tuple[Any, ...]:
    """What the kubelet says about requests that differ from the spec while a pod is resized; empty where it
    says nothing, so that a pod has the same basis before and after it is bound."""
    containers = [
        (found.name, found.resources, found.allocated_resources)
        for found in (*status.container_statuses, *status.init_container_statuses)
        if found.resources is not None
    ]
    pending = [found.reason for found in status.conditions if found.type == "PodResizePending"]
    if not (containers or pending or status.resources or status.allocated_resources):
        return ()
    return containers, pending, status.resources, status.allocated_resources


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
        self.ranking: PodRanking | None = None
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

    def ranked(self) -> PodRanking:
        """The pods by importance; kept until they change."""
        if self.ranking is None:
            requests = [entry.requests for entry in self.entries.values()]
            self.ranking = PodRanking(zip(self.pods(), requests, strict=True))
        return self.ranking
