"""PodTopologySpread: what random worlds do not name. Events, defaults, reuse of answers, bad selectors."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import resources as kinds
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.workloads import ReplicaSet, ReplicaSetSpec
from moorage.framework.access import Reads
from moorage.framework.events import QueueingHint
from moorage.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, compile_constraints
from moorage.plugins.pod_topology_spread.hints import Hints
from moorage.testing.builders import make_node, make_pod, make_service, spread_over, taint
from tests.plugins.crowded_worlds import HOSTNAME, ZONE, Crowd, Json

WEB = {"app": "web"}
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def waiting(**options: Any) -> Pod:
    return make_pod("waiting", labels=WEB, spread=spread_over(ZONE, WEB, **options))


HINTS = Hints(lambda pod: compile_constraints(pod.spec.topology_spread_constraints, pod.labels, DO_NOT_SCHEDULE))
web, db = make_pod("w", labels=WEB, node="n"), make_pod("w", labels={"app": "db"}, node="n")
tolerant = make_pod("waiting", labels=WEB, spread=spread_over(ZONE, WEB, node_taints_policy="Honor"), tolerations=["t"])


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(waiting(), None, web, QUEUE, id="a matching pod comes"),
        pytest.param(waiting(), None, db, SKIP, id="another pod comes"),
        pytest.param(waiting(), web, None, QUEUE, id="a matching pod goes"),
        pytest.param(waiting(), db, None, SKIP, id="another pod goes"),
        pytest.param(waiting(), web, db, QUEUE, id="a pod matches no longer"),
        pytest.param(waiting(), web, web, SKIP, id="nothing changes"),
        pytest.param(waiting(), None, make_pod("w", labels=WEB), SKIP, id="a pod without a node"),
        pytest.param(waiting(), None, make_pod("w", labels=WEB, nominated="n"), QUEUE, id="a nominated pod"),
        pytest.param(waiting(), None, make_pod("w", labels=WEB, node="n", namespace="y"), SKIP, id="another namespace"),
        pytest.param(
            waiting(), waiting(), make_pod("waiting", labels={"app": "db"}), QUEUE, id="its own labels change"
        ),
        pytest.param(
            waiting(node_taints_policy="Honor"),
            waiting(node_taints_policy="Honor"),
            tolerant,
            QUEUE,
            id="a toleration where taints count",
        ),
        pytest.param(waiting(), waiting(), tolerant, SKIP, id="a toleration where they do not"),
    ],
)
def test_hint_about_pods(pod: Pod, old: Pod | None, new: Pod | None, expected: QueueingHint) -> None:
    assert HINTS.after_pod_change(pod, old, new) is expected


A, B, NONE = make_node("n", zone="a"), make_node("n", zone="b"), make_node("n")
TAINTED = make_node("n", zone="a", taints=[taint("t:NoSchedule")])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, A, QUEUE, id="a node with the key comes"),
        pytest.param(None, NONE, SKIP, id="a node without it comes"),
        pytest.param(A, None, QUEUE, id="a node with the key goes"),
        pytest.param(NONE, None, SKIP, id="a node without it goes"),
        pytest.param(A, NONE, QUEUE, id="the key goes"),
        pytest.param(NONE, A, QUEUE, id="the key comes"),
        pytest.param(A, B, QUEUE, id="another domain"),
        pytest.param(A, TAINTED, QUEUE, id="other taints"),
        pytest.param(A, A, SKIP, id="nothing changes"),
    ],
)
def test_hint_about_nodes(old: Node | None, new: Node | None, expected: QueueingHint) -> None:
    assert HINTS.after_node_change(waiting(), old, new) is expected


def crowd(**case: Any) -> Crowd:
    node: Json = {"metadata": {"name": "n0", "uid": "n0", "labels": {HOSTNAME: "n0", ZONE: "a"}}}
    pod: Json = {"metadata": {"name": "p", "namespace": "default", "labels": WEB}, "spec": {}}
    return Crowd({"nodes": [node], "pod": pod, **case}, "PodTopologySpread")


def test_a_bad_selector_is_an_error_only_where_it_is_read() -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    world = crowd()
    hard = make_pod(spread=spread_over(ZONE, bad))
    soft = make_pod(spread=spread_over(ZONE, bad, soft=True))
    nodes = world.world.nodes
    refused = world.plugin.pre_filter(None, hard, nodes)
    assert refused.message.startswith("get constraints from pod: obtaining pod's hard topology spread constr")
    assert world.plugin.pre_filter(None, soft, nodes).is_skip
    assert world.plugin.pre_score(None, hard, nodes).is_skip
    refused = world.plugin.pre_score(None, soft, nodes)
    assert refused.message.startswith("calculating preScoreState: obtaining pod's soft topology spread constr")


def test_what_selects_a_pod_follows_services_and_owners() -> None:
    world = crowd()
    pod = make_pod(labels={"app": "web", "tier": "front"}, owner="ReplicaSet/rs")
    selected = world.plugin._selectors.of
    assert selected(pod).empty
    service = make_service("s", {"app": "web"})
    world.world.put(kinds.SERVICES, service)
    world.world.put(kinds.SERVICES, make_service("other", {"app": "db"}))
    world.world.put(kinds.SERVICES, make_service("far", {"tier": "front"}, namespace="far"))
    world.world.put(kinds.SERVICES, make_service("headless", {}))
    world.world.engine.drain()
    assert str(selected(pod)) == "app=web"
    owner = ReplicaSet(
        metadata=ObjectMeta(name="rs", namespace="default", uid="rs"),
        spec=ReplicaSetSpec(selector=LabelSelector(match_labels={"tier": "front"})),
    )
    world.world.put(kinds.REPLICA_SETS, owner)
    world.world.engine.drain()
    assert str(selected(pod)) == "app=web,tier=front"
    world.world.put(kinds.SERVICES, None, service)
    world.world.engine.drain()
    assert str(selected(pod)) == "tier=front"


def test_answers_depend_on_what_selects_the_pod_and_change_with_it() -> None:
    world = crowd()
    pod = make_pod(labels=WEB)
    unselected = world.plugin.sign(pod)
    (version,) = world.plugin.reads(pod)
    before = version.value
    world.world.put(kinds.SERVICES, make_service("s", WEB))
    world.world.engine.drain()
    assert world.plugin.sign(pod) != unselected
    assert version.value > before
    assert {Reads.NODE, Reads.PODS} <= set(world.plugin.reads(pod))


def test_an_update_that_leaves_the_selector_alone_changes_nothing() -> None:
    world = crowd()
    service = make_service("s", WEB)
    world.world.put(kinds.SERVICES, service)
    world.world.engine.drain()
    version = world.plugin.reads(make_pod(spread=(), labels={"app": "none"}))[0]
    before = version.value
    world.world.put(kinds.SERVICES, make_service("s", WEB), service)
    world.world.engine.drain()
    assert version.value == before
