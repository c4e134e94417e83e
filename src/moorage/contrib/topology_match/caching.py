"""Cache the zones of nodes, and report missing and outdated objects to the operator.

Objects are published some time after the kubelet has assigned resources to a pod. `TopologyCache` uses them as
published; `DiscardReserved` does not use a node while a pod is being bound to it; `over_reserve` has the third variant.
Follows pkg/noderesourcetopology/cache/{passthrough,discardreserved}.go of scheduler-plugins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Mapping

from moorage.api.pod import Pod
from moorage.api.resources import Unstructured
from moorage.contrib.topology_match.columns import ZoneColumns
from moorage.contrib.topology_match.topology import Amounts, ZoneTopology, read_topology
from moorage.framework.handle import Handle


class TopologyCache:
    """Uses objects as published. There is one per process and arguments."""

    def __init__(self) -> None:
        self.columns = ZoneColumns()
        self._objects: dict[str, Unstructured] = {}
        self.latest: dict[str, ZoneTopology] = {}
        """Node → what was last published."""
        self.topologies: dict[str, ZoneTopology] = {}
        """Node → what counts."""
        self.late: dict[str, float] = {}
        """Node → since when its object does not agree with its pods, by the clock."""
        self.listeners: list[Callable[[str], object]] = []
        """Called with the name of a node whose data has changed."""
        self.turn = asyncio.Lock()
        """Of several profiles one looks after the data in the background."""

    def object_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None:
            if old is not None and self._objects.pop(old.name, None) is not None:
                self.gone(old.name)
        elif self._objects.get(new.name) is not new:  # else another profile was faster
            self._objects[new.name], self.latest[new.name] = new, read_topology(new)
            self.published(new.name)

    def gone(self, name: str) -> None:
        """Handle the deletion of a node's object."""
        del self.latest[name], self.topologies[name]
        self.columns.drop(name)
        self.notify(name)

    def published(self, name: str) -> None:
        """Handle a new object of a node."""
        self.topologies[name] = self.latest[name]
        self.show(name)

    def show(self, name: str) -> None:
        self.columns.put(name, self.topologies[name], self.reserved_on(name))
        self.notify(name)

    def reserved_on(self, name: str, without: Container[str] = ()) -> Amounts:
        """Return the amounts that are missing in every zone of a node, without those of some pods, by UID."""
        return {}

    def notify(self, name: str) -> None:
        for listener in self.listeners:
            listener(name)

    def reserve(self, pod: Pod, name: str) -> None:
        pass

    def unreserve(self, pod: Pod, name: str) -> None:
        pass

    def bound(self, pod: Pod, name: str) -> None:
        pass

    def without(self, victims: Mapping[str, Pod], name: str, pods: Iterable[Pod]) -> tuple[ZoneTopology, Amounts]:
        """Return the zones of a node, and the amounts missing in every zone, after these pods (by UID) are removed.
        `pods` are the pods before that."""
        return self.topologies[name], self.reserved_on(name, victims)

    async def resync(self, handle: Handle) -> None:
        """Compare the published objects with the known pods."""


class DiscardReserved(TopologyCache):
    """Uses objects as published, but no node that a pod is being bound to."""

    def __init__(self) -> None:
        super().__init__()
        self._on_their_way: dict[str, set[str]] = {}
        """Node → UIDs."""

    def reserve(self, pod: Pod, name: str) -> None:
        self._on_their_way.setdefault(name, set()).add(pod.uid)
        self._mark(name)

    def unreserve(self, pod: Pod, name: str) -> None:
        pods = self._on_their_way.get(name, set())
        pods.discard(pod.uid)
        if not pods and self._on_their_way.pop(name, None) is not None:
            self._mark(name)
            self.notify(name)

    def _mark(self, name: str) -> None:
        facts = self.columns.facts_of(name)
        if facts is not None:
            facts["invalid"] = name in self._on_their_way

    def show(self, name: str) -> None:
        super().show(name)
        self._mark(name)

    bound = unreserve


LATE = 60.0
"""Seconds after which an object that does not agree with the pods of its node is worth a note."""
_SHOWN = 3
"""Names in a line."""
_log = logging.getLogger(__name__)


class Notes:
    def __init__(self, cache: TopologyCache, handle: Handle) -> None:
        self._cache = cache
        self._handle = handle
        self._missing = 0
        self._late: set[str] = set()

    def check(self) -> None:
        """Log a line when the number of nodes without an object changes, and record an event for each node that is
        late."""
        nodes, columns = self._handle.nodes, self._cache.columns
        missing = nodes.where(~columns.fact("known")[columns.places(nodes)])
        if len(missing) != self._missing:
            self._missing = len(missing)
            shown = ", ".join([*missing.names[:_SHOWN], *["…"] * (len(missing) > _SHOWN)])
            _log.warning(
                "%d of %d nodes have no NodeResourceTopology, so NodeResourceTopologyMatch refuses none of "
                "them%s", len(missing), len(nodes),
                f" ({shown}): run what publishes it there, such as nfd-topology-updater" if shown else "",
            )  # fmt: skip
        now = self._handle.clock.now()
        late = {name for name, since in self._cache.late.items() if now - since >= LATE}
        for name in sorted(late - self._late):
            self._report(name, now - self._cache.late[name])
        self._late = late

    def _report(self, name: str, seconds: float) -> None:
        note = (
            f"NodeResourceTopology {name} has not shown the pods of the node for {seconds:.0f} s, so "
            "it is not used, or pods are counted twice there: see whether what publishes the object runs"
        )
        _log.warning("%s", note)
        node = self._handle.node(name)
        if node is not None:
            self._handle.recorder.event(
                node.node, type="Warning", reason="StaleNodeResourceTopology", action="Scheduling", note=note,
                controller=self._handle.profile_name,
            )  # fmt: skip
