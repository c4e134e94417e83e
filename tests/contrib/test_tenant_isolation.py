"""TenantIsolation: pools, the shared one, nodes of one tenant alone, and what wakes a pod."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import NAMESPACES, NODES
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.tenant_isolation import OCCUPIED, OTHER_POOL
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_namespace
from tests.contrib.configs import enabling

NODES_OF = {"own": {"tenant": "red"}, "other": {"tenant": "blue"}, "shared": {"tenant": "all"}, "plain": {}}


def cluster_with(**args: Any) -> Cluster:
    made = {"namespaceLabel": "tenant", **args}
    cluster = Cluster(config=enabling("TenantIsolation", made), verify_reuse=True, flush_after=None)
    cluster.add(make_namespace(name, {"tenant": name.rstrip("12")}) for name in ("red1", "red2", "blue"))
    cluster.add(make_namespace("system"))
    cluster.settle()
    return cluster


@pytest.mark.parametrize(
    ("namespace", "args", "allowed"),
    [
        ("red1", {}, {"own", "plain"}),
        ("blue", {}, {"other", "plain"}),
        ("system", {}, {"plain"}),
        ("unknown", {}, {"plain"}),
        ("red2", {"sharedPool": "all"}, {"own", "shared"}),
        ("system", {"sharedPool": "all"}, {"shared"}),
    ],
)
def test_pods_run_in_the_pool_of_their_tenant_and_in_the_shared_one(namespace, args, allowed):
    with cluster_with(**args) as cluster:
        cluster.add(make_node(name, labels=labels, pods=1) for name, labels in NODES_OF.items())
        cluster.settle()
        cluster.add(make_pod(f"p{i}", namespace=namespace) for i in range(4))
        cluster.settle()
        assert {*cluster.bound().values()} == allowed
        assert OTHER_POOL in cluster.record("p3", namespace).message


def test_nodes_may_have_a_label_of_their_own():
    with cluster_with(nodeLabel="pool") as cluster:
        cluster.add(make_node("a", labels={"pool": "blue"}), make_node("b", labels={"pool": "red"}))
        cluster.settle()
        cluster.add(make_pod("p", namespace="red1"))
        cluster.settle()
        assert cluster.node_of("p", "red1") == "b"


def test_with_exclusive_nodes_a_node_runs_pods_of_one_tenant_and_of_none():
    with cluster_with(exclusiveNodes=True) as cluster:
        cluster.add(make_node("a"), make_pod("agent", namespace="system", node="a"))
        cluster.settle()
        cluster.add(make_pod("first", namespace="red1"))
        cluster.settle()
        cluster.add(make_pod("same", namespace="red2"), make_pod("rival", namespace="blue"))
        cluster.add(make_pod("tool", namespace="system"))
        cluster.settle()
        assert cluster.pending() == ["blue/rival"]
        assert OCCUPIED in cluster.record("rival", "blue").message


def test_without_exclusive_nodes_tenants_share_the_shared_pool():
    with cluster_with() as cluster:
        cluster.add(make_node("a"))
        cluster.settle()
        cluster.add(make_pod("first", namespace="red1"), make_pod("second", namespace="blue"))
        cluster.settle()
        assert cluster.pending() == []


def test_preemption_makes_a_node_free_of_another_tenant_and_never_opens_a_pool():
    with cluster_with(exclusiveNodes=True) as cluster:
        cluster.add(make_node("a"), make_node("b", labels={"tenant": "red"}))
        cluster.add(make_pod("low", namespace="red1", node="a"), make_pod("low2", namespace="red1", node="b"))
        cluster.settle()
        cluster.add(make_pod("high", namespace="blue", priority=9))
        cluster.settle()
        assert cluster.record("high", "blue").victims == ("red1/low",)


@pytest.mark.parametrize(
    ("heals", "change"),
    [
        (True, lambda c: c.delete(c.pod("old", "red1"))),
        (True, lambda c: c.add(make_node("new"))),
        (True, lambda c: c.add(make_node("new", labels={"tenant": "blue"}))),
        (True, lambda c: c.patch(NODES, "far", {"metadata": {"labels": {"tenant": "blue"}}})),
        (True, lambda c: c.patch(NAMESPACES, "blue", {"metadata": {"labels": {"tenant": "red"}}})),
        (False, lambda c: c.add(make_node("new", labels={"tenant": "red"}))),
        (False, lambda c: c.delete(c.pod("agent", "system"))),
        (False, lambda c: c.patch(NODES, "far", {"metadata": {"labels": {"colour": "blue"}}})),
        (False, lambda c: c.patch(NAMESPACES, "blue", {"metadata": {"labels": {"colour": "red"}}})),
    ],
)  # fmt: skip
def test_a_refused_pod_is_woken_by_what_may_help_and_by_nothing_else(heals, change):
    with cluster_with(exclusiveNodes=True) as cluster:
        cluster.add(make_node("near"), make_node("far", labels={"tenant": "red"}))
        cluster.add(make_pod("old", namespace="red1", node="near"))
        cluster.add(make_pod("agent", namespace="system", node="near"))
        cluster.settle()
        cluster.add(make_pod("p", namespace="blue"))
        cluster.settle(30)
        assert cluster.record("p", "blue").attempt == 1
        change(cluster)
        cluster.settle(30)
        assert bool(cluster.node_of("p", "blue")) is heals
        assert (cluster.record("p", "blue").attempt > 1) is heals


def test_a_namespace_that_changes_hands_is_judged_anew_while_its_pods_wait():
    with cluster_with() as cluster:
        cluster.add(make_node("a", labels={"tenant": "blue"}, pods=8))
        cluster.settle()
        cluster.add(make_pod(f"p{i}", namespace="red1") for i in range(4))
        cluster.settle(30)
        assert len(cluster.pending()) == 4
        cluster.patch(NAMESPACES, "red1", {"metadata": {"labels": {"tenant": "blue"}}})
        cluster.settle(30)
        assert cluster.pending() == []
        cluster.add(make_pod("red", namespace="red2"))
        cluster.settle()
        assert cluster.pending() == ["red2/red"]


def test_the_label_of_namespaces_is_required():
    with pytest.raises(ConfigError, match="namespaceLabel: Required value"):
        configure(enabling("TenantIsolation", {}), discover=False)
