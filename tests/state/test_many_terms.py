"""A pod may name hundreds of selectors and keys that no other has: nothing is kept for others' account."""

from __future__ import annotations

import pytest

from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.pod import Affinity, Pod, PodAffinityTerm, PodAntiAffinity, PodSpec
from moorage.api.selectors import EXISTS, IN, NOT_IN, Requirement, make_selector, selector_from_labels
from moorage.framework.indexes import PodSelector, TermKind
from moorage.state.columns import Topologies
from moorage.state.counting import HeldTerms, SelectorCounters
from moorage.state.label_index import PodLabelsIndex, SelectorRegistry
from moorage.state.node_columns import StoredLabelColumns
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from tests.state.objects import ZONE, make_node, make_pod


def with_terms(name: str, *apps: str, namespace: str = "default") -> Pod:
    terms = tuple(
        PodAffinityTerm(topology_key=ZONE, label_selector=LabelSelector(match_labels={"app": app})) for app in apps
    )
    away = PodAntiAffinity(required_during_scheduling_ignored_during_execution=terms)
    return Pod(
        metadata=ObjectMeta(name=name, uid=name, namespace=namespace),
        spec=PodSpec(affinity=Affinity(pod_anti_affinity=away)),
    )


@pytest.mark.parametrize("rows", [[3], [3, 3], [3, 4], [3, 4, 3]])
def test_holders_of_a_term_are_counted_per_row(rows):
    table = NodeTable()
    held = HeldTerms(table)
    entries = [PodEntry(with_terms(f"p{i}", "web")) for i in range(len(rows))]
    for row, entry in zip(rows, entries, strict=True):
        held.pod_added(row, entry)

    (term,) = held.matching(make_pod("x", labels={"app": "web"}), {}, frozenset(TermKind))
    assert term.few() == {row: rows.count(row) for row in rows}
    for row, entry in zip(rows, entries, strict=True):
        held.pod_removed(row, entry)
    assert not len(held)
    assert not held.matching(make_pod("x", labels={"app": "web"}), {}, frozenset(TermKind))


def test_a_new_version_with_equal_terms_changes_no_holders():
    held = HeldTerms(NodeTable())
    old, new = PodEntry(with_terms("p", "web")), PodEntry(with_terms("p", "web"))
    held.pod_added(0, old)
    before = held.version.value
    held.pod_replaced(0, old, new)

    assert held.version.value == before
    held.pod_replaced(0, new, PodEntry(with_terms("p", "db")))
    assert held.version.value > before


def test_counting_once_keeps_no_counter_and_sees_the_pods_of_now():
    table = NodeTable()
    counters = SelectorCounters(table)
    table.observers.observe(counters)
    wanted = PodSelector(frozenset(("default",)), selector_from_labels({"app": "web"}))

    assert counters.once(wanted).empty
    table.add_pod("a", PodEntry(make_pod("p", node="a", labels={"app": "web"})))
    assert counters.once(wanted).as_dict() == {0: 1}
    assert counters.once(wanted).changed_since(0) is None
    assert not len(counters)


SHARED = Requirement("all", IN, ("x",))
FOUND = [
    ((SHARED, Requirement("one", IN, ("1",))), {"all": "x"}, False),
    ((SHARED, Requirement("one", IN, ("1",))), {"all": "x", "one": "1"}, True),
    ((Requirement("one", EXISTS),), {"all": "x"}, False),
    ((Requirement("one", EXISTS),), {"one": "2"}, True),
    ((Requirement("one", NOT_IN, ("1",)),), {"all": "x"}, True),
]


@pytest.mark.parametrize(("requirements", "labels", "tried"), FOUND)
def test_a_selector_is_tried_for_pods_with_its_rarest_label(requirements, labels, tried):
    registry: SelectorRegistry[str] = SelectorRegistry()
    registry.add("other", frozenset("n"), make_selector((SHARED,)))
    registry.add("item", frozenset("n"), make_selector(requirements))

    assert ("item" in registry.candidates("n", labels)) is tried
    registry.remove("item", frozenset("n"), make_selector(requirements))
    assert "item" not in registry.candidates("n", labels)
    registry.remove("other", frozenset("n"), make_selector((SHARED,)))
    assert registry.is_empty


def test_label_keys_that_no_node_has_get_no_column():
    labels = StoredLabelColumns(width=2)
    labels.put(0, {"rack": "r1"})
    before = labels.codes("rack")
    absent = labels.values("k-0")
    for index in range(5000):
        assert labels.codes(f"k-{index}").tolist() == [-1, -1]

    assert labels.codes("rack").base is before.base
    assert len(labels._columns) == 1
    labels.put(1, {"k-0": "here"})
    assert labels.codes("k-0").tolist() == [-1, 0]
    assert labels.values("k-0") is not absent


def test_topologies_of_unknown_keys_push_out_no_others():
    table = NodeTable()
    table.set_node(make_node("a", zone="z"))
    topologies = Topologies(table)
    zone = topologies.topology(ZONE)
    for index in range(1000):
        found = topologies.topology(f"k-{index}")
        assert (found.key, found.size, found.unlabelled) == (f"k-{index}", 0, 1)

    assert topologies.topology(ZONE) is zone
    table.set_node(make_node("a", zone="z", labels={"k-1": "v"}))
    assert topologies.topology("k-1").size == 1


def test_a_selector_with_many_values_is_tried_for_pods_with_its_key_only():
    registry: SelectorRegistry[str] = SelectorRegistry()
    values = tuple(sorted(f"v{i}" for i in range(100)))
    registry.add("item", frozenset("n"), make_selector((Requirement("app", IN, values),)))

    assert "item" in registry.candidates("n", {"app": "v1"})
    assert "item" not in registry.candidates("n", {"tier": "v1"})
    registry.remove("item", frozenset("n"), make_selector((Requirement("app", IN, values),)))
    assert registry.is_empty


def wanted_of(*requirements: Requirement, namespaces: frozenset[str] | None = frozenset(("default",))) -> PodSelector:
    return PodSelector(namespaces, make_selector(requirements))


LARGE = [
    wanted_of(Requirement("app", IN, tuple(sorted(f"v{i}" for i in range(1000))))),
    wanted_of(*(Requirement(f"k{i}", NOT_IN, ("v",)) for i in range(1000))),
    wanted_of(Requirement("app", IN, ("v1",)), namespaces=frozenset(f"n{i}" for i in range(1000)) | {"default"}),
]


@pytest.mark.parametrize("wanted", LARGE, ids=["values", "expressions", "namespaces"])
def test_no_counter_is_kept_for_a_large_selector(wanted):
    table = NodeTable()
    counters = SelectorCounters(table)
    table.observers.observe(counters)
    table.add_pod("a", PodEntry(make_pod("p", node="a", labels={"app": "v1"})))

    assert counters.get(wanted).as_dict() == {0: 1}
    assert not len(counters)


def test_few_counters_are_compared_with_every_new_set_of_labels():
    counters = SelectorCounters(NodeTable())
    for index in range(2000):
        counters.get(wanted_of(Requirement("app", NOT_IN, (f"v{index}",)), namespaces=None))
    tried = len(counters)
    assert tried < 500
    counters = SelectorCounters(NodeTable())
    for index in range(2000):
        counters.get(wanted_of(Requirement("app", IN, (f"v{index}",)), namespaces=None))
    assert len(counters) == 2000


def test_label_sets_without_pods_are_bounded_by_their_labels():
    table = NodeTable()
    counters = SelectorCounters(table)
    table.observers.observe(counters)
    index = PodLabelsIndex()
    for number in range(100):
        labels = {f"key-{number}-{i}": "v" for i in range(500)}
        meta = make_pod(f"p{number}", labels=labels).metadata
        entry, _ = index.find_or_create(meta)
        index.mark_vacant(entry)
        index.mark_vacant(entry)
    assert sum(len(entry.key) for entry in index) <= 4096
    meta = make_pod("p", labels={"app": "web"}).metadata
    entry, _ = index.find_or_create(meta)
    for _ in range(10):
        index.mark_vacant(entry)
        assert index.find_or_create(meta) == (entry, False)


def test_a_count_that_is_not_kept_looks_at_no_label_set_without_pods():
    index = PodLabelsIndex()
    index.find_or_create(make_pod("p", labels={"app": "web"}).metadata)
    wanted = wanted_of(Requirement("app", IN, ("web",)))
    assert len(list(index.matching(wanted))) == 1
    assert not list(index.matching(wanted, occupied=True))
