"""InterPodAffinity: what random worlds do not say by name. Events, reuse of answers, bad selectors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api import resources as kinds
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.node import Node
from moorage.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, PodAntiAffinity
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.selectors import NOTHING, selector_from_labels
from moorage.framework.access import Reads
from moorage.framework.events import QueueingHint
from moorage.framework.indexes import Topology
from moorage.framework.status import Code
from moorage.plugins.inter_pod_affinity.hints import after_node_change, after_pod_change
from moorage.plugins.inter_pod_affinity.terms import TermIndex
from moorage.testing.builders import make_affinity, make_namespace, make_node, make_pod
from tests.plugins.crowded_worlds import HOSTNAME, ZONE, Crowd, Json
from tests.plugins.one_plugin import ask

WEB, DB = {"app": "web"}, {"app": "db"}
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
web, db = make_pod("o", labels=WEB, node="n"), make_pod("o", labels=DB, node="n")
near = make_pod("waiting", affinity=make_affinity(near=WEB, topology=ZONE))
away = make_pod("waiting", affinity=make_affinity(away=WEB, topology=ZONE))
hostile = make_pod("o", labels=DB, node="n", affinity=make_affinity(away=WEB))


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(near, None, web, QUEUE, id="company comes"),
        pytest.param(near, None, db, SKIP, id="another pod comes"),
        pytest.param(near, db, web, QUEUE, id="a pod becomes company"),
        pytest.param(near, web, db, SKIP, id="a pod is company no longer"),
        pytest.param(near, web, None, SKIP, id="company goes"),
        pytest.param(away, web, None, QUEUE, id="who kept it away goes"),
        pytest.param(away, web, db, QUEUE, id="who kept it away changes"),
        pytest.param(away, None, web, SKIP, id="one more that keeps it away"),
        pytest.param(make_pod("waiting", labels=WEB), hostile, None, QUEUE, id="a hostile pod goes"),
        pytest.param(make_pod("waiting", labels=DB), hostile, None, SKIP, id="hostile to others"),
        pytest.param(near, None, make_pod("o", labels=WEB), SKIP, id="a pod without a node"),
        pytest.param(near, None, make_pod("o", labels=WEB, nominated="n"), QUEUE, id="a nominated pod"),
        pytest.param(near, near, near, QUEUE, id="its own labels change"),
    ],
)
def test_hint_about_pods(pod: Pod, old: Pod | None, new: Pod | None, expected: QueueingHint) -> None:
    assert after_pod_change(pod, old, new) is expected


A, B, NONE = make_node("n", zone="a"), make_node("n", zone="b"), make_node("n")


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(near, None, A, QUEUE, id="a node with the key"),
        pytest.param(near, None, NONE, SKIP, id="a node without it"),
        pytest.param(near, NONE, A, QUEUE, id="the key comes"),
        pytest.param(near, A, NONE, SKIP, id="the key goes"),
        pytest.param(near, A, B, QUEUE, id="another domain"),
        pytest.param(near, A, A, SKIP, id="nothing changes"),
        pytest.param(away, None, NONE, QUEUE, id="any new node, for anti-affinity"),
        pytest.param(away, A, NONE, QUEUE, id="the key goes, for anti-affinity"),
        pytest.param(away, NONE, A, SKIP, id="the key comes, for anti-affinity"),
        pytest.param(away, A, B, QUEUE, id="another domain, for anti-affinity"),
        pytest.param(make_pod("waiting"), None, A, SKIP, id="a pod without terms"),
    ],
)
def test_hint_about_nodes(pod: Pod, old: Node | None, new: Node, expected: QueueingHint) -> None:
    assert after_node_change(pod, old, new) is expected


def crowd(**case: Any) -> Crowd:
    node: Json = {"metadata": {"name": "n0", "uid": "n0", "labels": {HOSTNAME: "n0", ZONE: "a"}}}
    pod: Json = {"metadata": {"name": "p", "namespace": "default", "labels": WEB}, "spec": {}}
    return Crowd({"nodes": [node], "pod": pod, **case}, "InterPodAffinity")


BAD = PodAffinityTerm(
    label_selector=LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),)),
    topology_key=ZONE,
)
GOOD = PodAffinityTerm(label_selector=LabelSelector(match_labels=WEB), topology_key=ZONE)


def test_a_bad_selector_of_the_incoming_pod_refuses_it() -> None:
    world = crowd()
    affinity = Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(BAD,)))
    status = world.plugin.pre_filter(None, make_pod(affinity=affinity), world.world.nodes)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: requiredAffinityTerms: ")


def test_a_bad_selector_of_a_running_pod_spoils_its_own_list_only() -> None:
    affinity = Affinity(
        pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(GOOD, BAD)),
        pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=(GOOD,)),
    )
    world = crowd()
    world.world.put(kinds.PODS, make_pod("running", node="n0", affinity=affinity))
    world.world.engine.drain()
    answer = world.world.one_plugin("InterPodAffinity")
    assert list(answer["filter"]) == ["n0"]
    assert "score" not in answer


def test_a_pod_without_terms_depends_on_distinct_terms_only() -> None:
    world = crowd()
    plain = make_pod(labels={"app": "none"})
    terms, namespaces = world.plugin.reads(plain)
    seen = terms.value
    for name in ("a", "b"):
        world.world.put(kinds.PODS, make_pod(name, node="n0", labels=WEB, affinity=make_affinity(away=WEB)))
        world.world.engine.drain()
    assert terms.value == seen + 1
    assert Reads.PODS in world.plugin.reads(make_pod(labels=WEB))
    assert Reads.PODS in world.plugin.reads(near)
    before = namespaces.value
    world.world.put(kinds.NAMESPACES, make_namespace("x", {"team": "a"}))
    world.world.engine.drain()
    assert namespaces.value == before + 1


def test_a_namespace_that_changes_its_labels_is_found_by_the_new_ones() -> None:
    world = crowd()
    team = LabelSelector(match_labels={"team": "a"})
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels=WEB), topology_key=ZONE, namespace_selector=team)
    side = PodAntiAffinity(required_during_scheduling_ignored_during_execution=(term,))
    world.pod = world.world.pod = make_pod(affinity=Affinity(pod_anti_affinity=side))
    world.world.put(kinds.PODS, make_pod("other", namespace="x", node="n0", labels=WEB))
    old = make_namespace("x", {"team": "b"})
    world.world.put(kinds.NAMESPACES, old)
    world.world.engine.drain()
    assert "filter" not in world.world.one_plugin("InterPodAffinity")
    world.world.put(kinds.NAMESPACES, make_namespace("x", {"team": "a"}), old)
    world.world.engine.drain()
    assert "filter" in world.world.one_plugin("InterPodAffinity")


def test_keys_that_no_node_has_are_not_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[str] = []
    original = Topology.gather

    def gather(self: Topology, values: Any, missing: Any, nodes: Any) -> Any:
        gathered.append(self.key)
        return original(self, values, missing, nodes)

    monkeypatch.setattr(Topology, "gather", gather)
    terms = [{"topologyKey": f"k{i}", "labelSelector": {"matchLabels": {"app": "web"}}} for i in range(50)]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "spec": {"affinity": affinity}}, Pod)
    asked = ask("InterPodAffinity", pod, [make_node("a"), make_node("b")])
    refusals = asked.plugin.filter_nodes(asked.state, asked.pod, asked.world.nodes)

    assert len(gathered) == 1
    assert refusals is not None
    assert all(entry.mask.all() for entry in refusals.entries)


def test_a_pod_is_compared_with_the_terms_that_require_one_of_its_labels() -> None:
    compared: list[str] = []

    class Watched(AffinityTerm, frozen=True):
        def matches(self, pod: Pod, namespace_labels: Any = None) -> bool:
            compared.append(str(self.selector))
            return super().matches(pod)

    def term(**labels: str) -> AffinityTerm:
        return Watched("t", frozenset(("default",)), selector_from_labels(labels), NOTHING)

    terms = [*(term(app=f"a{i}") for i in range(1000)), term(app="web", tier="db"), term()]
    index = TermIndex(terms)
    assert list(index.matching(make_pod("p", labels={"app": "web", "tier": "db"}))) == [terms[-1], terms[-2]]
    assert compared == ["", "app=web,tier=db"]
    assert list(index.matching(make_pod("p", labels={"app": "a7"}))) == [terms[-1], terms[7]]
