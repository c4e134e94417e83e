"""The over-reserve cache. From Reserve on, the requests of a pod are subtracted from every zone of its node, because
only the kubelet decides which zone it uses. A new object counts if its fingerprint matches the pods that the scheduler
knows on the node; it then includes the running pods, and their requests are no longer subtracted. Follows
pkg/noderesourcetopology/cache/overreserve.go of scheduler-plugins.

    NodeResourceTopology ─▶ nothing depends on it ──────────────────────────────────▶ counts
                        └─▶ pods are reserved there, or a foreign pod was bound
                              └─▶ every period, if Filter rejected the node: same pods? ─▶ counts

A foreign pod is one that another scheduler has bound. Its node is not used until an object includes it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterable, Mapping

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.api.resources import PODS
from moorage.contrib.topology_match.args import ALL, DEDICATED, NONE, ONLY_EXCLUSIVE, CacheArgs
from moorage.contrib.topology_match.caching import TopologyCache
from moorage.contrib.topology_match.demands import is_exclusive
from moorage.contrib.topology_match.placement import (
    ATTRIBUTE,
    Placement,
    fingerprint,
    placement,
    published_fingerprint,
    release,
)
from moorage.contrib.topology_match.topology import Amounts, ZoneTopology
from moorage.framework.handle import Handle

ENDED = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown,spec.nodeName!="
_log = logging.getLogger(__name__)


class OverReserve(TopologyCache):
    def __init__(self, args: CacheArgs) -> None:
        super().__init__()
        self._args = args
        self.profiles: set[str] = set()
        """Scheduler names of the profiles that reserve here."""
        self.reserved: dict[str, dict[str, Amounts]] = {}
        """Node → UID → what a pod requests that its object does not show yet."""
        self._nodes: dict[str, str] = {}
        """UID → node, of these pods."""
        self._foreign: set[str] = set()
        """Nodes that a foreign pod came to."""
        self._without_fingerprint: set[str] = set()
        """Nodes that were complained about."""
        self._placements: dict[str, Placement] = {}
        """Node → container → zone, of the pods that its object was published with."""

    def published(self, name: str) -> None:
        if name not in self.topologies or not (self.reserved.get(name) or name in self._foreign):
            self._placements.pop(name, None)
            super().published(name)
        elif self._args.resync_scope == ALL:
            manager = self.latest[name].manager
            if manager != self.topologies[name].manager:
                self.topologies[name] = self.topologies[name]._replace(manager=manager)
                self.show(name)

    def gone(self, name: str) -> None:
        for uid in self.reserved.pop(name, {}):
            del self._nodes[uid]
        self._set_foreign(name, False)
        super().gone(name)

    def reserved_on(self, name: str, without: Container[str] = ()) -> Amounts:
        total: dict[str, int] = {}
        for uid, amounts in self.reserved.get(name, {}).items():
            for resource, amount in amounts.items() if uid not in without else ():
                total[resource] = total.get(resource, 0) + amount
        return total

    def reserve(self, pod: Pod, name: str) -> None:
        if pod.uid not in self._nodes:
            self._nodes[pod.uid] = name
            self.reserved.setdefault(name, {})[pod.uid] = pod_requests(pod)
            if name in self.topologies:
                self.show(name)

    def unreserve(self, pod: Pod, name: str = "") -> None:
        node = self._nodes.pop(pod.uid, None)
        if node is None:
            return
        del self.reserved[node][pod.uid]
        if not self.reserved[node]:
            del self.reserved[node]
        if node not in self.topologies:
            return
        if node in self.reserved or node in self._foreign:
            self.show(node)
        else:
            self.published(node)  # what was held back until now

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Reserve pods that were bound before a restart, or by another replica, until they have started."""
        if new is None or new.is_terminal:
            self.unreserve(new or old)  # type: ignore[arg-type]
        elif new.is_assigned:
            name, came = new.spec.node_name, old is None or not old.is_assigned
            if new.scheduler_name not in self.profiles:
                if came and self._is_foreign(new):
                    self._set_foreign(name, True)
            elif not has_started(new):
                self.reserve(new, name)
            elif name not in self.topologies:
                self.unreserve(new)  # the first object will show it

    def _is_foreign(self, pod: Pod) -> bool:
        topology = self.topologies.get(pod.spec.node_name)
        if topology is None or self._args.foreign_pods_detect == NONE:
            return False
        return self._args.foreign_pods_detect != ONLY_EXCLUSIVE or is_exclusive(pod, topology.resources)

    def _set_foreign(self, name: str, foreign: bool) -> None:
        (self._foreign.add if foreign else self._foreign.discard)(name)
        self.columns.facts_of(name)["invalid"] = foreign

    async def resync(self, handle: Handle) -> None:
        reserved = self.reserved.keys() & self.topologies.keys()
        names = self._foreign.union(name for name in reserved if self.columns.facts_of(name)["refused"])
        self.late = {name: since for name, since in self.late.items() if name in names}
        ended: dict[str, list[Pod]] = {}
        if names and self._args.informer_mode == DEDICATED:
            # The kubelet counts them until they are deleted; informers do not know them.
            for pod in (await handle.client.list(PODS, field_selector=ENDED)).items:
                ended.setdefault(pod.spec.node_name, []).append(pod)
        for name in sorted(names):
            node = handle.node(name)
            if node is None or name not in self.latest:
                continue
            pods = [*filter(has_started, node.pods), *ended.get(name, ())]
            if self._agrees(self.latest[name], pods):
                self._accept(name, pods)
            else:
                self._complain(name)
                self.late.setdefault(name, handle.clock.now())

    def _agrees(self, topology: ZoneTopology, pods: Iterable[Pod]) -> bool:
        """Return whether an object was published with these pods."""
        published, exclusive = published_fingerprint(topology, self._args.resync_method)
        counted = (pod for pod in pods if not exclusive or is_exclusive(pod, topology.resources))
        return bool(published) and published == fingerprint(counted)

    def _complain(self, name: str) -> None:
        published, _ = published_fingerprint(self.latest[name], self._args.resync_method)
        if not published and name not in self._without_fingerprint:
            self._without_fingerprint.add(name)
            _log.warning(
                "NodeResourceTopology %s has no attribute %s, so it cannot be compared with the pods of the "
                "node: have it published, or set cacheResyncPeriodSeconds of NodeResourceTopologyMatch to 0",
                name, ATTRIBUTE,
            )  # fmt: skip

    def _accept(self, name: str, pods: Collection[Pod]) -> None:
        for pod in pods:
            if self._nodes.pop(pod.uid, None) is not None:
                del self.reserved[name][pod.uid]
        if not self.reserved.get(name):
            self.reserved.pop(name, None)
        self._set_foreign(name, False)
        self.columns.facts_of(name)["refused"] = False
        self.late.pop(name, None)
        super().published(name)
        self._placements[name] = placement(self.topologies[name], pods)

    def without(self, victims: Mapping[str, Pod], name: str, pods: Iterable[Pod]) -> tuple[ZoneTopology, Amounts]:
        topology, started = self.topologies[name], [*filter(has_started, pods)]
        if name not in self._placements and self._agrees(topology, started):
            self._placements[name] = placement(topology, started)
        released = release(topology, victims.values(), self._placements.get(name, {}))
        return released, self.reserved_on(name, victims)


def has_started(pod: Pod) -> bool:
    """Return whether the kubelet has assigned the pod's resources."""
    return pod.status.phase not in ("", "Pending")
