"""Random events against the cache and a model of a few dictionaries: whatever happens, they agree.

Names and UIDs are few, so that everything collides: nodes that come back, pods before their nodes,
duplicates, confirmations elsewhere, resizes, finished pods, successors under the same name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.taints import Taint
from moorage.framework.nodes import TaintClass
from moorage.state.cache import CacheOutcome, ClusterCache
from moorage.state.indexes import Indexes, RowNodeIndex, RowPodIndex
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import bound_to
from tests.state.objects import ZONE, make_node, make_pod

KEYS = (ZONE, "size", "never")
node_names = st.sampled_from(["a", "b", "c", "d", "e"])
uids = st.sampled_from(["1", "2", "3", "4", "5", "6"])
amounts = st.sampled_from(["0", "100m", "1", "2500m", "9223372036854775807"])
taints = st.lists(st.builds(Taint, key=st.sampled_from("xy"), effect=st.just("NoSchedule")), max_size=2)
nodes = st.builds(
    lambda name, uid, zone, size, cpu, gpu, taints, cordoned: make_node(
        name,
        uid=f"{name}-{uid}",
        zone=zone,
        labels={"size": size} if size else {},
        taints=tuple(taints),
        unschedulable=cordoned,
        cpu=cpu,
        gpu=gpu,
    ),
    node_names,
    st.integers(0, 1),
    st.sampled_from([None, "z1", "z2", "z3"]),
    st.sampled_from(["", "4", "large"]),
    amounts,
    st.integers(0, 2),
    taints,
    st.booleans(),
)


def pod_of(uid: str, node: str, cpu: str, gpu: int, phase: str = "") -> Pod:
    return make_pod(f"p{uid}", uid=uid, node=node, phase=phase, cpu=cpu, gpu=gpu)


bound_pods = st.builds(pod_of, uids, node_names, amounts, st.integers(0, 1))


def cpu_keys(pod: Pod) -> list[str]:
    return [str(pod.spec.containers[0].resources.requests["cpu"])]


def zone_keys(node: Node) -> list[tuple[str, str]]:
    return [(node.labels[ZONE], node.uid)] if ZONE in node.labels else []


def flat(index: RowPodIndex | RowNodeIndex) -> dict[tuple[Hashable, int], Any]:
    keys = list(index.keys())
    return {(key, row): value for key in keys for row, value in index.rows(key).items()}


@dataclass(frozen=True)
class Place:
    """Where the model has a pod."""

    pod: Pod
    node: str
    assumed: bool


class CacheMachine(RuleBasedStateMachine):
    """The model keeps the nodes, and each pod's place; everything else is derived in the invariants."""

    @initialize(width=st.integers(1, 4))
    def start(self, width: int) -> None:
        self.cache = ClusterCache(NodeTable(width))
        self.nodes: dict[str, Node] = {}
        self.places: dict[str, Place] = {}
        self.asked: set[str] = set()
        self.seen_version = 0
        self.indexes = Indexes(self.cache.table.observers)
        self.pod_index: RowPodIndex | None = None
        self.node_index: RowNodeIndex | None = None

    @rule(node=nodes)
    def node_seen(self, node: Node) -> None:
        self.cache.add_node(node)
        self.nodes[node.name] = node

    @rule(name=node_names)
    def node_gone(self, name: str) -> None:
        known = self.nodes.pop(name, None)
        assert self.cache.remove_node(known or make_node(name)) == (known is not None)

    @rule(pod=bound_pods, name=node_names)
    def assume(self, pod: Pod, name: str) -> None:
        if pod.uid not in self.places:
            self.cache.assume(pod, name)
            self.places[pod.uid] = Place(bound_to(pod, name), name, True)

    @rule(uid=uids)
    def forget(self, uid: str) -> None:
        place = self.places.get(uid)
        assert self.cache.forget(uid) == bool(place and place.assumed)
        if place and place.assumed:
            del self.places[uid]

    @rule(pod=bound_pods, as_update=st.booleans())
    def pod_seen(self, pod: Pod, as_update: bool) -> None:
        place = self.places.get(pod.uid)
        outcome = self.cache.update_pod(pod, pod) if as_update else self.cache.add_pod(pod)
        assert outcome == self.expected(place, pod)
        self.places[pod.uid] = Place(pod, pod.spec.node_name, False)

    @rule(uid=uids)
    def confirmed_where_assumed(self, uid: str) -> None:
        place = self.places.get(uid)
        if place is not None:
            self.cache.add_pod(place.pod)
            self.places[uid] = replace(place, assumed=False)

    @rule(uid=uids)
    def stale_version_seen(self, uid: str) -> None:
        assert self.cache.add_pod(pod_of(uid, "", "1", 0)) == CacheOutcome.IGNORED

    @rule(uid=uids, phase=st.sampled_from(["Succeeded", "Failed"]), name=node_names)
    def pod_finished(self, uid: str, phase: str, name: str) -> None:
        known = self.places.pop(uid, None)
        outcome = self.cache.add_pod(pod_of(uid, name, "1", 0, phase))
        assert outcome == (CacheOutcome.RELEASED if known else CacheOutcome.IGNORED)

    @rule(uid=uids, name=st.one_of(st.just(""), node_names))
    def pod_gone(self, uid: str, name: str) -> None:
        known = self.places.pop(uid, None)
        outcome = self.cache.remove_pod(pod_of(uid, name, "1", 0))
        assert outcome == (CacheOutcome.RELEASED if known else CacheOutcome.IGNORED)

    @rule(old=bound_pods, new=bound_pods)
    def successor_seen(self, old: Pod, new: Pod) -> None:
        if old.uid != new.uid:
            expected = self.expected(self.places.get(new.uid), new)
            self.cache.remove_pod(old)
            self.places.pop(old.uid, None)
            assert self.cache.add_pod(new) == expected
            self.places[new.uid] = Place(new, new.spec.node_name, False)

    @rule(key=st.sampled_from(KEYS))
    def ask_for_a_label(self, key: str) -> None:
        self.asked.add(key)

    @rule()
    def ask_for_the_indexes(self) -> None:
        self.pod_index = self.indexes.pod_index("cpu", cpu_keys)
        self.node_index = self.indexes.node_index("zone", zone_keys)

    def expected(self, place: Place | None, pod: Pod) -> CacheOutcome:
        if place is None:
            return CacheOutcome.ADDED
        if place.node != pod.spec.node_name:
            return CacheOutcome.MOVED
        return CacheOutcome.CONFIRMED if place.assumed else CacheOutcome.UPDATED

    @invariant()
    def sums_equal_a_recount(self) -> None:
        self.cache.validate()

    @invariant()
    def pods_are_where_the_model_has_them(self) -> None:
        cached = {found.pod.uid: (found.node_name, found.assumed) for found in self.cache.pods()}
        assert cached == {uid: (place.node, place.assumed) for uid, place in self.places.items()}
        assert {found.pod.uid for found in self.cache.assumed()} == {u for u, (_, a) in cached.items() if a}
        for name in self.nodes.keys() | {place.node for place in self.places.values()}:
            expected = {uid: place.pod for uid, place in self.places.items() if place.node == name}
            assert {pod.uid: pod for pod in self.cache.pods_on(name)} == expected

    @invariant()
    def the_listing_has_every_node_once_and_no_ghost(self) -> None:
        table = self.cache.table
        assert sorted(table.nodes().names) == sorted(self.nodes)
        assert sorted(name for name in table.node_names() if name) == sorted(self.nodes)
        assert [view.name for view in table.nodes()] == table.nodes().names
        assert set(table.ghosts()) == {place.node for place in self.places.values()} - self.nodes.keys()
        assert all(table.row_of(name) == -1 for name in table.ghosts())

    @invariant()
    def columns_say_what_the_node_objects_say(self) -> None:
        table = self.cache.table
        for row, node in enumerate(self.nodes.get(name) for name in table.node_names()):
            taint_class = table.taints.classes[table.taints.ids[row]]
            if node is None:
                assert taint_class == TaintClass((), False)
            else:
                assert taint_class == TaintClass(node.taints, node.unschedulable)
                assert table.view(row).node is node
            for key in self.asked:
                value = node.labels.get(key) if node else None
                code = -1 if value is None else table.labels.values(key)[value]
                assert table.labels.codes(key)[row] == code
                number = table.labels.numbers(key)[row]
                assert number == 4 if value == "4" else math.isnan(number)

    @invariant()
    def indexes_equal_a_recount(self) -> None:
        if self.pod_index is None or self.node_index is None:
            return
        rows = dict(self.cache.table.known_rows())
        pods = Counter((cpu_keys(place.pod)[0], rows[place.node]) for place in self.places.values())
        nodes = {(k, rows[name]): uid for name, node in self.nodes.items() for k, uid in zone_keys(node)}
        assert flat(self.pod_index) == pods
        assert flat(self.node_index) == nodes

    @invariant()
    def versions_tell_what_changed(self) -> None:
        table = self.cache.table
        last = self.seen_version
        changed = set(table.changed_since(last))
        assert changed == {row for row, found in enumerate(table.versions) if found > last}
        self.seen_version = table.version


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
