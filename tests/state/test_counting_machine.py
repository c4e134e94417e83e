"""Random events against counters and term holders: whatever happens, they equal a recount.

Labels, nodes and namespaces are few, so that selectors overlap, entries empty and come back, and counters are
evicted and built anew: the limit holds only a few of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moorage.api.core import Namespace
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    WeightedPodAffinityTerm,
)
from moorage.api.pod_affinity import AffinityTerm, compile_pod_terms
from moorage.api.resources import NAMESPACES
from moorage.api.selectors import NOTHING, Selector, make_requirement, make_selector
from moorage.framework.indexes import PodSelector, TermKind
from moorage.framework.ports import Change
from moorage.state import label_index, row_counts
from moorage.state.cache import ClusterCache
from moorage.state.columns import Topologies
from moorage.state.counting import HeldTerms, SelectorCounters, lists_of
from moorage.state.indexes import ObjectIndexes
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import bound_to
from moorage.state.stores import Stores
from tests.state.objects import ZONE, make_node

SPACES = ["x", "y", "z"]
node_names = st.sampled_from(["a", "b", "c", "d", "e"])
spaces = st.sampled_from(SPACES)
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2", "3"]), max_size=2)
requirements = st.one_of(
    st.builds(
        make_requirement,
        st.sampled_from(["app", "tier"]),
        st.sampled_from(["In", "NotIn"]),
        st.sets(st.sampled_from(["1", "2", "3"]), min_size=1, max_size=2),
    ),
    st.builds(make_requirement, st.sampled_from(["app", "tier"]), st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.one_of(st.lists(requirements, max_size=3).map(make_selector), st.just(NOTHING))
pod_selectors = st.builds(
    PodSelector, st.one_of(st.none(), st.frozensets(spaces, max_size=2)), selectors, st.booleans()
)
label_selectors = st.one_of(
    st.none(),
    st.builds(LabelSelector, match_labels=labels),
    st.builds(
        lambda key, operator, values: LabelSelector(
            match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=values),)
        ),
        st.sampled_from(["app", "tier"]),
        st.sampled_from(["In", "NotIn", "Exists", "Wrong"]),
        st.sampled_from([(), ("1",), ("1", "2")]),
    ),
)
terms = st.builds(
    PodAffinityTerm,
    label_selector=label_selectors,
    namespaces=st.lists(spaces, max_size=2).map(tuple),
    namespace_selector=label_selectors,
    topology_key=st.sampled_from([ZONE, "kubernetes.io/hostname"]),
)
required = st.lists(terms, max_size=2).map(tuple)
preferred = st.lists(
    st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 2), pod_affinity_term=terms), max_size=2
).map(tuple)
affinities = st.one_of(
    st.none(),
    st.builds(
        lambda near, preferences, away, fears: Affinity(
            pod_affinity=PodAffinity(
                required_during_scheduling_ignored_during_execution=near,
                preferred_during_scheduling_ignored_during_execution=preferences,
            ),
            pod_anti_affinity=PodAntiAffinity(
                required_during_scheduling_ignored_during_execution=away,
                preferred_during_scheduling_ignored_during_execution=fears,
            ),
        ),
        required,
        preferred,
        required,
        preferred,
    ),
)


def make_pod(
    uid: int, node: str, namespace: str, labels: dict[str, str], affinity: Affinity | None, leaving: bool
) -> Pod:
    meta = ObjectMeta(
        name=f"p{uid}",
        uid=str(uid),
        namespace=namespace,
        labels=labels,
        deletion_timestamp="2026-01-01T00:00:00Z" if leaving else None,
    )
    return Pod(metadata=meta, spec=PodSpec(node_name=node, affinity=affinity))


pods = st.builds(make_pod, st.integers(0, 9), node_names, spaces, labels, affinities, st.booleans())


class CountingMachine(RuleBasedStateMachine):
    @initialize(few=st.sampled_from([0, 32]), vacant=st.sampled_from([0, 1024]))
    def start(self, few: int, vacant: int) -> None:
        self._kept = row_counts._MIN_ROWS, label_index._MAX_VACANT
        row_counts._MIN_ROWS, label_index._MAX_VACANT = few, vacant
        self.table = NodeTable(width=2)
        self.cache = ClusterCache(self.table)
        self.counters = SelectorCounters(self.table, limit=4096)
        self.terms = HeldTerms(self.table)
        self.table.observers.observe(self.counters)
        self.table.observers.observe(self.terms)
        self.topologies = Topologies(self.table)
        self.stores = Stores()
        index = ObjectIndexes(self.stores.lister)
        self.by_label = index.object_index("labels", NAMESPACES, lambda ns: tuple(ns.labels.items()))
        self.known: dict[PodSelector, None] = {}
        self.pending: dict[str, Pod] = {}
        self.asked = 0

    def teardown(self) -> None:
        if hasattr(self, "_kept"):
            row_counts._MIN_ROWS, label_index._MAX_VACANT = self._kept

    @rule(pod=pods)
    def seen(self, pod: Pod) -> None:
        self.cache.add_pod(pod)

    @rule(pod=pods)
    def pending_seen(self, pod: Pod) -> None:
        """What is worked out about it now may be old when it is placed."""
        if self.cache.get(pod.uid) is None:
            self.pending[pod.uid] = bound_to(pod, "")
            self.cache.expect(self.pending[pod.uid])

    @rule(uid=st.integers(0, 9).map(str), name=node_names)
    def placed(self, uid: str, name: str) -> None:
        pod = self.pending.pop(uid, None)
        if pod is not None and self.cache.get(uid) is None:
            self.cache.assume(pod, name)

    @rule(uid=st.integers(0, 9).map(str))
    def given_up(self, uid: str) -> None:
        self.cache.forget(uid)

    @rule(pod=pods)
    def gone(self, pod: Pod) -> None:
        self.cache.remove_pod(pod)

    @rule(name=node_names, zone=st.sampled_from([None, "", "z1", "z2"]))
    def node(self, name: str, zone: str | None) -> None:
        self.cache.add_node(make_node(name, zone=zone, labels={"kubernetes.io/hostname": name}))

    @rule(name=node_names)
    def no_node(self, name: str) -> None:
        self.table.remove_node(name)

    @rule(name=spaces, labels=labels)
    def namespace(self, name: str, labels: dict[str, str]) -> None:
        new = Namespace(metadata=ObjectMeta(name=name, uid=name, labels=labels))
        self.stores.apply(Change(NAMESPACES, self.stores[NAMESPACES].get(name), new))

    @rule(name=spaces)
    def no_namespace(self, name: str) -> None:
        self.stores.apply(Change(NAMESPACES, self.stores[NAMESPACES].get(name), None))

    @rule(selector=pod_selectors)
    def ask(self, selector: PodSelector) -> None:
        self.known[selector] = None
        self._check(selector)

    @rule(labels=labels, space=spaces)
    def ask_by_namespace_labels(self, labels: dict[str, str], space: str) -> None:
        """What affinity does with a namespaceSelector: the names of now make the counter."""
        wanted = make_selector(make_requirement(key, "In", [value]) for key, value in labels.items())
        names = frozenset(ns.name for ns in self.stores[NAMESPACES].list() if wanted.matches(ns.labels))
        self.ask(PodSelector(names, make_selector(())))

    @rule(pod=pods)
    def incoming(self, pod: Pod) -> None:
        """The terms that mean a pod, found by its labels, are those that a scan finds."""
        namespace = self.stores[NAMESPACES].get(pod.namespace)
        space_labels = namespace.labels if namespace is not None else {}
        found = self.terms.matching(pod, space_labels, frozenset(TermKind))
        scanned = [held for held in self.terms if held.term.matches(pod, space_labels)]
        assert Counter(found) == Counter(scanned)

    @invariant()
    def counters_equal_a_recount(self) -> None:
        if not hasattr(self, "known"):
            return
        self.asked += 1
        for selector in list(self.known)[self.asked % 3 :: 3]:
            self._check(selector)

    @invariant()
    def holders_equal_a_recount(self) -> None:
        if not hasattr(self, "terms"):
            return
        expected: dict[Any, Counter[int]] = {}
        for row, pod in self._placed():
            for kind, sign, listed in lists_of(compile_pod_terms(pod)):
                for found in listed:
                    term, weight = (found, 0) if isinstance(found, AffinityTerm) else (found.term, found.weight)
                    if not term.selector.nothing:
                        expected.setdefault((kind, term, sign * weight), Counter())[row] += 1
        assert {(held.kind, held.term, held.weight): held.as_dict() for held in self.terms} == expected

    @invariant()
    def objects_are_found_by_their_keys(self) -> None:
        if not hasattr(self, "stores"):
            return
        for label in [(key, value) for key in ("app", "tier") for value in "123"]:
            expected = {ns.name for ns in self.stores[NAMESPACES].list() if label in ns.labels.items()}
            assert {ns.name for ns in self.by_label.at(label)} == expected

    def _placed(self) -> list[tuple[int, Pod]]:
        rows = dict(self.table.known_rows())
        return [(rows[cached.node_name], cached.pod) for cached in self.cache.pods()]

    def _check(self, selector: PodSelector) -> None:
        once = self.counters.once(selector).as_dict()
        counter = self.counters.get(selector)
        expected = Counter(row for row, pod in self._placed() if counts(selector, pod))
        assert counter.as_dict() == once == expected
        assert counter.empty == (not expected)
        assert {r: n for r, n in enumerate(counter.per_row.tolist()) if n} == expected
        for key in (ZONE, "kubernetes.io/hostname"):
            self._check_sums(counter.as_dict(), selector, key)

    def _check_sums(self, expected: Mapping[int, int], selector: PodSelector, key: str) -> None:
        topology = self.topologies.topology(key)
        where = np.arange(self.table.width) % 2 == 0
        by_value: Counter[str] = Counter()
        halved: Counter[str] = Counter()
        for node in self.table.nodes():
            if key in node.labels:
                by_value[node.labels[key]] += expected.get(node.row, 0)
                halved[node.labels[key]] += expected.get(node.row, 0) * int(where[node.row])
        counter = self.counters.get(selector)
        for mask, wanted in ((None, by_value), (where, halved)):
            sums = counter.sums(topology, mask)
            found = {value: int(sums[domain]) for value, domain in topology.values.items() if sums[domain]}
            assert found == +wanted


def counts(selector: PodSelector, pod: Pod) -> bool:
    if selector.namespaces is not None and pod.namespace not in selector.namespaces:
        return False
    return selects(selector.selector, pod) and (selector.terminating or not pod.is_terminating)


def selects(selector: Selector, pod: Pod) -> bool:
    return selector.matches(pod.labels)


TestCounting = CountingMachine.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_counters_stay_within_their_limit() -> None:
    table = NodeTable()
    counters = SelectorCounters(table, limit=8192)
    for number in range(100):
        counters.get(PodSelector(None, make_selector([make_requirement("app", "In", [str(number)])])))
    assert len(counters) == 8
