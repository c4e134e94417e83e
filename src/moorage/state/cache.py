"""ClusterCache accounts every pod on one node. It is the only writer of the NodeTable.

The states of a pod, by UID. "Seen" means `add_pod` or `update_pod` with a version that names a node:

                 assume                  seen
    unknown ───────────────▶ assumed ──────────────▶ added ◀──┐ seen again: replaced,
     ▲ │ ▲                      │                     ▲ │ └───┘ or moved to another node
     │ │ └─ forget, remove_pod ─┘                     │ │
     │ └────────────────── seen ──────────────────────┘ │
     └───────── remove_pod, or seen Succeeded or Failed ┘

An assumed pod has been given a node but has not been seen there yet. It counts in full and never expires: it
must be seen, forgotten or removed. Where the API server contradicts the cache, the API server is right: the
cache corrects the accounting, logs and counts the correction, and carries on.

Follows pkg/scheduler/backend/cache/cache.go of Kubernetes. The queue and nominations are kept elsewhere.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.state import checks
from moorage.state.columns import CacheError
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntries, PodEntry
from moorage.telemetry import logs

_log = logs.get(__name__)


class CacheOutcome(enum.Enum):
    """The effect of an event on the accounting. The caller decides from it which pods to wake."""

    ADDED = "added"
    """The pod was not accounted before."""
    CONFIRMED = "confirmed"
    """An assumed pod was seen on the node that it was assumed on."""
    UPDATED = "updated"
    """The pod stays on its node; its requests may have changed."""
    MOVED = "moved"
    """The pod was seen on another node, so its requests on the old one are free."""
    RELEASED = "released"
    """The pod is gone or finished, so its requests are free."""
    IGNORED = "ignored"
    """Nothing changed."""


class ClusterCache:
    """The pods by UID, each accounted on exactly one node of the table, and the nodes."""

    def __init__(self, table: NodeTable, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> None:
        self.table = table
        self.entries = PodEntries(behaviour)
        self._behaviour = behaviour
        self.corrections: Counter[str] = Counter()
        """Problem → number of times that the cache had to be corrected for it."""
        self._pods: dict[str, PodEntry] = {}
        self._assumed: dict[str, PodEntry] = {}
        """The assumed pods among `_pods`, oldest first."""
        self._expected: dict[str, PodEntry] = {}
        """UID → prepared entry of a pending pod."""

    # Reading

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> PodEntry | None:
        return self._pods.get(uid)

    def entry(self, pod: Pod) -> PodEntry:
        """Return the accounted entry of this very pod object, or compute one. Used by dry runs."""
        cached = self._pods.get(pod.uid)
        return cached if cached is not None and cached.pod is pod else self.entries.entry(pod)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def assumed(self) -> Iterator[PodEntry]:
        yield from self._assumed.values()

    def expected(self) -> Iterator[str]:
        """Iterate over the UIDs of the pending pods with a prepared entry."""
        yield from self._expected

    def pods(self) -> Iterator[PodEntry]:
        yield from self._pods.values()

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods accounted on a node, or on its ghost."""
        return self.table.pods_of(node_name)

    # Decisions of scheduling cycles

    def expect(self, pod: Pod) -> None:
        """Prepare the entry of a pending pod, or of its new version, ahead of its scheduling cycle.

        Raises QuantityError if the pod has an invalid quantity.
        """
        entry = self._expected[pod.metadata.uid] = self.entries.entry(pod)
        self.table.observers.prepare(entry)

    def forget_expected(self, uid: str) -> None:
        """Drop the prepared entry of a pod that is gone or that another scheduler has placed."""
        self._expected.pop(uid, None)

    def assume(self, pod: Pod, node_name: str) -> None:
        """Account a pod on the node chosen for it. Raises CacheError if the UID is already accounted."""
        uid = pod.metadata.uid
        if uid in self._pods:
            raise CacheError(f"Cannot assume pod {pod.key} ({uid}): it is already in the cache.")
        if not node_name:
            raise CacheError(f"Cannot assume pod {pod.key} ({uid}): the node has no name.")
        entry = self._expected.pop(uid, None)
        if entry is None or entry.original is not pod:
            entry = self.entries.entry(pod)
        entry.node_name, entry.assumed = node_name, True
        self.table.add_pod(node_name, entry)
        self._pods[uid] = self._assumed[uid] = entry

    def forget(self, uid: str) -> bool:
        """Undo `assume`. Returns False for a pod that is unknown or has been seen since."""
        cached = self._assumed.get(uid)
        if cached is None:
            return False
        self._release(cached)
        return True

    # Pods as the API server reports them

    def add_pod(self, pod: Pod) -> CacheOutcome:
        """Account a pod that the API server reports, or confirm an assumed one. Idempotent."""
        cached = self._pods.get(pod.uid)
        if pod.is_terminal:
            return self._release(cached) if cached else CacheOutcome.IGNORED
        if not pod.spec.node_name:
            return self._ignore_unbound(cached)
        entry = self.entries.entry(pod)
        if cached is None:
            self.table.add_pod(entry.node_name, entry)
            self._pods[entry.uid] = entry
            return CacheOutcome.ADDED
        return self._accept_version(cached, entry)

    def update_pod(self, old: Pod, new: Pod) -> CacheOutcome:
        """Account a new version of a pod.

        Raises CacheError if the UIDs differ: a new pod of the same name never arrives as an update
        (`framework.ports.Change`).
        """
        if old.uid != new.uid:
            raise CacheError(f"Pod {new.key} ({new.uid}) is not a version of the pod with UID {old.uid}.")
        return self.add_pod(new)

    def remove_pod(self, pod: Pod) -> CacheOutcome:
        """Release a deleted pod. Its node comes from the cache, because the object may be stale."""
        cached = self._pods.get(pod.uid)
        if cached is None:
            return CacheOutcome.IGNORED
        if pod.spec.node_name not in ("", cached.node_name):
            self._correct("removed_from_another_node", pod, cached)
        return self._release(cached)

    # Nodes as the API server reports them

    def add_node(self, node: Node) -> None:
        """Add a node or a new version of one. A node with another UID replaces the old one."""
        if not node.name:
            self.corrections["node_without_a_name"] += 1
            _log.warning("Ignored a node without a name", uid=node.uid)
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
        """Remove a node; its pods stay on its ghost. Returns False if the node is unknown."""
        return self.table.remove_node(node.name)

    # Checks

    def validate(self) -> None:
        """Recount everything from the pods; raise CacheError with all differences. For tests, O(cluster)."""
        problems = checks.recount(self.table, self._pods.values(), self._behaviour)
        if self._assumed != {uid: cached for uid, cached in self._pods.items() if cached.assumed}:
            problems.append("the list of assumed pods differs from the pods marked as assumed")
        if problems:
            raise CacheError("; ".join(problems))

    def compare(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> list[str]:
        """Return the differences between the cache and the objects that the API server lists."""
        return checks.compare(self.table, self._pods, nodes, pods, self._behaviour)

    def _release(self, cached: PodEntry) -> CacheOutcome:
        self.table.remove_pod(cached.node_name, cached)
        del self._pods[cached.uid]
        self._assumed.pop(cached.uid, None)
        return CacheOutcome.RELEASED

    def _accept_version(self, cached: PodEntry, entry: PodEntry) -> CacheOutcome:
        """Account a version of a known pod that names a node."""
        node_name = entry.node_name
        outcome = CacheOutcome.CONFIRMED if cached.assumed else CacheOutcome.UPDATED
        if node_name == cached.node_name:
            self.table.replace_pod(node_name, cached, entry)
        else:
            outcome = CacheOutcome.MOVED
            self._correct("assumed_on_another_node" if cached.assumed else "moved", entry.pod, cached)
            self.table.remove_pod(cached.node_name, cached)
            self.table.add_pod(node_name, entry)
        self._pods[entry.uid] = entry
        self._assumed.pop(entry.uid, None)
        return outcome

    def _ignore_unbound(self, cached: PodEntry | None) -> CacheOutcome:
        """Ignore a version without a node.

        A bound pod never loses its node, so this version is older than the cached one. Only assumed pods are
        expected to arrive like this.
        """
        if cached is not None and not cached.assumed:
            self._correct("seen_without_its_node", cached.pod, cached)
        return CacheOutcome.IGNORED

    def _correct(self, problem: str, seen: Pod, cached: PodEntry) -> None:
        self.corrections[problem] += 1
        _log.warning(
            "Pod cache corrected",
            problem=problem,
            pod=seen,
            uid=seen.uid,
            node=seen.spec.node_name,
            cached_node=cached.node_name,
        )
