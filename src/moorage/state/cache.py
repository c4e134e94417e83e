"""ClusterCache: which pod is accounted on which node. The only writer of the NodeTable.

States of a pod, by UID; "seen" is `add_pod` or `update_pod` with a version that names a node:

                 assume                  seen
    unknown ───────────────▶ assumed ──────────────▶ added ◀──┐ seen again: replaced,
     ▲ │ ▲                      │                     ▲ │ └───┘ or moved to another node
     │ │ └─ forget, remove_pod ─┘                     │ │
     │ └────────────────── seen ──────────────────────┘ │
     └───────── remove_pod, or seen Succeeded or Failed ┘

An assumed pod is one that was decided for a node and not yet seen there. It counts in full and never
expires: only being seen, forgotten or removed ends it. The API server is right where it contradicts the
cache: the accounting is corrected, logged and counted, and the process goes on. Queue and nominations are
kept elsewhere.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.state import checks
from moorage.state.columns import CacheError
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntries, PodEntry
from moorage.telemetry import logs

_log = logs.get(__name__)


class Outcome(enum.Enum):
    """What an event did to the accounting, so that the caller knows whom to wake."""

    ADDED = "added"
    """A pod that was not accounted before."""
    CONFIRMED = "confirmed"
    """An assumed pod, seen on the node that it was assumed on."""
    UPDATED = "updated"
    """A pod accounted on the same node as before, perhaps with other requests."""
    MOVED = "moved"
    """Seen on another node than accounted: what it held on the old one is free."""
    RELEASED = "released"
    """Gone or finished: what it held is free."""
    IGNORED = "ignored"
    """Nothing changed."""


class ClusterCache:
    """Pods by UID, each accounted on exactly one node of the table, and the nodes themselves."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.entries = PodEntries()
        self.corrections: Counter[str] = Counter()
        """How often the cache had to be corrected, by what was wrong."""
        self._pods: dict[str, PodEntry] = {}
        self._assumed: dict[str, PodEntry] = {}
        """The assumed ones among `_pods`, oldest first."""
        self._expected: dict[str, PodEntry] = {}
        """Pending pods, by UID."""

    # Reading

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> PodEntry | None:
        return self._pods.get(uid)

    def entry(self, pod: Pod) -> PodEntry:
        """What a pod costs its node: as accounted if it is, else computed; for dry runs."""
        cached = self._pods.get(pod.uid)
        return cached if cached is not None and cached.pod is pod else self.entries.entry(pod)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def assumed(self) -> Iterator[PodEntry]:
        yield from self._assumed.values()

    def expected(self) -> Iterator[str]:
        """UIDs of the pending pods about which something is worked out."""
        yield from self._expected

    def pods(self) -> Iterator[PodEntry]:
        yield from self._pods.values()

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Pods accounted on a node, or on its ghost."""
        return self.table.pods_of(node_name)

    # Decisions of the scheduler

    def expect(self, pod: Pod) -> None:
        """Work out now what a pending pod takes from a node, or its new version does: a cycle has less time
        than an event. A QuantityError passes through."""
        entry = self._expected[pod.metadata.uid] = self.entries.entry(pod)
        self.table.observers.prepare(entry)

    def expect_no_more(self, uid: str) -> None:
        """The pod is gone, or another scheduler has placed it."""
        self._expected.pop(uid, None)

    def assume(self, pod: Pod, node_name: str) -> None:
        """Account a pod on the node chosen for it. A known UID is a CacheError."""
        uid = pod.metadata.uid
        if uid in self._pods:
            raise CacheError(f"pod {pod.key} ({uid}) is in the cache, so it cannot be assumed")
        if not node_name:
            raise CacheError(f"pod {pod.key} ({uid}) cannot be assumed on a node without a name")
        entry = self._expected.pop(uid, None)
        if entry is None or entry.came is not pod:
            entry = self.entries.entry(pod)
        entry.node_name, entry.assumed = node_name, True
        self.table.add_pod(node_name, entry)
        self._pods[uid] = self._assumed[uid] = entry

    def forget(self, uid: str) -> bool:
        """Take back an assumption. False when there is none: an unknown pod, or one that was seen since."""
        cached = self._assumed.get(uid)
        if cached is None:
            return False
        self._release(cached)
        return True

    # Pods as the API server has them

    def add_pod(self, pod: Pod) -> Outcome:
        """A pod was seen. Confirms an assumed one; repeating an event changes nothing."""
        cached = self._pods.get(pod.uid)
        if pod.is_terminal:
            return self._release(cached) if cached else Outcome.IGNORED
        if not pod.spec.node_name:
            return self._without_node(cached)
        entry = self.entries.entry(pod)
        if cached is None:
            self.table.add_pod(entry.node_name, entry)
            self._pods[entry.uid] = entry
            return Outcome.ADDED
        return self._seen(cached, entry)

    def update_pod(self, old: Pod, new: Pod) -> Outcome:
        """A pod was seen in a new version. Another UID is another pod, which never arrives as an update
        (`framework.ports.Change`), so it is a CacheError."""
        if old.uid != new.uid:
            raise CacheError(f"pod {new.key} ({new.uid}) is not a version of the pod with UID {old.uid}")
        return self.add_pod(new)

    def remove_pod(self, pod: Pod) -> Outcome:
        """A pod is gone, assumed or not. The object may be stale, so where it was is read from the cache."""
        cached = self._pods.get(pod.uid)
        if cached is None:
            return Outcome.IGNORED
        if pod.spec.node_name not in ("", cached.node_name):
            self._correct("removed_from_another_node", pod, cached)
        return self._release(cached)

    # Nodes as the API server has them

    def add_node(self, node: Node) -> None:
        """A node was seen, for the first time or in a new version. Another UID is another node."""
        if not node.name:
            self.corrections["node_without_a_name"] += 1
            _log.warning("Node without a name set aside", uid=node.uid)
            return
        row = self.table.row_of(node.name)
        if row >= 0 and self.table.view(row).node.uid != node.uid:
            self.table.remove_node(node.name)
        self.table.set_node(node)

    def update_node(self, old: Node, new: Node) -> None:
        if old.name != new.name:
            self.remove_node(old)
        self.add_node(new)

    def remove_node(self, node: Node) -> bool:
        """The node is gone; pods that remain are accounted on its ghost. False when it is unknown."""
        return self.table.remove_node(node.name)

    # Checks

    def validate(self) -> None:
        """Recount everything from the pods. A CacheError lists what differs; for tests, O(cluster)."""
        problems = checks.recount(self.table, self._pods.values())
        if self._assumed != {uid: cached for uid, cached in self._pods.items() if cached.assumed}:
            problems.append("the assumed pods are not those marked as assumed")
        if problems:
            raise CacheError("; ".join(problems))

    def compare(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[str]:
        """Differences to what the API server lists; empty when all is well."""
        return checks.compare(self.table, self._pods, nodes, pods)

    def _release(self, cached: PodEntry) -> Outcome:
        self.table.remove_pod(cached.node_name, cached)
        del self._pods[cached.uid]
        self._assumed.pop(cached.uid, None)
        return Outcome.RELEASED

    def _seen(self, cached: PodEntry, entry: PodEntry) -> Outcome:
        """A known pod, in the version of `entry`, which names a node."""
        node_name = entry.node_name
        outcome = Outcome.CONFIRMED if cached.assumed else Outcome.UPDATED
        if node_name == cached.node_name:
            self.table.replace_pod(node_name, cached, entry)
        else:
            outcome = Outcome.MOVED
            self._correct("assumed_on_another_node" if cached.assumed else "moved", entry.pod, cached)
            self.table.remove_pod(cached.node_name, cached)
            self.table.add_pod(node_name, entry)
        self._pods[entry.uid] = entry
        self._assumed.pop(entry.uid, None)
        return outcome

    def _without_node(self, cached: PodEntry | None) -> Outcome:
        """A version without a node. A bound pod never loses its node, so this version is older than the
        cached one: nothing changes. That is expected of assumed pods only."""
        if cached is not None and not cached.assumed:
            self._correct("seen_without_its_node", cached.pod, cached)
        return Outcome.IGNORED

    def _correct(self, what: str, seen: Pod, cached: PodEntry) -> None:
        self.corrections[what] += 1
        _log.warning(
            "Pod cache corrected",
            problem=what,
            pod=seen,
            uid=seen.uid,
            node=seen.spec.node_name,
            cached_node=cached.node_name,
        )
