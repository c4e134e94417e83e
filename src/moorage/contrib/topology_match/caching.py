"""What is known of the zones of nodes, how far it can be trusted, and what an operator should know about it.

The objects are published some time after the kubelet has given resources to a pod. `TopologyCache` believes them as
they come, `DiscardReserved` not while a pod is on its way to the node. `over_reserve` has the third way."""

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
    """Objects count as they are published. One exists per process and arguments."""

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
        """A node has no object any more."""
        del self.latest[name], self.topologies[name]
        self.columns.drop(name)
        self.notify(name)

    def published(self, name: str) -> None:
        """A node has a new object."""
        self.topologies[name] = self.latest[name]
        self.show(name)

    def show(self, name: str) -> None:
        self.columns.put(name, self.topologies[name], self.reserved_on(name))
        self.notify(name)

    def reserved_on(self, name: str, without: Container[str] = ()) -> Amounts:
        """What is missing in every zone of a node, without that of some pods, by UID."""
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
        """What counts on a node, and what is missing in every zone, once these pods are gone; by UID. `pods`
        are those that are there before."""
        return self.topologies[name], self.reserved_on(name, victims)

    async def resync(self, handle: Handle) -> None:
        """Compare what was published with the pods that are known."""


class DiscardReserved(TopologyCache):
    """As published, but a node is not used while a pod is being bound to it."""

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
        """A line when the number of nodes without object changes; an event for each node that is late."""
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
