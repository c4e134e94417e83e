"""AppAffinity: limits per domain, the table of other applications, and what wakes a pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def host(name, **labels):
    return make_node(name, labels={HOST: name, **labels})


def app(name, application, **options):
    return make_pod(name, labels={"AppID": application}, **options)


def cluster_with(**args: Any) -> Cluster:
    return Cluster(config=enabling("AppAffinity", args, weight=100), verify_reuse=True, flush_after=None)


def test_a_node_takes_no_more_pods_of_an_application_than_the_limit_says():
    with cluster_with(limits=[{"maxPods": 2}]) as cluster:
        cluster.add(host("a"), host("b"), [app(f"p{i}", "web") for i in range(5)])
        cluster.settle()
        assert sorted(cluster.bound().values()) == ["a", "a", "b", "b"]
        text = f"2 node(s) had 2 pods of application web per {HOST}"
        assert text in cluster.events("p4")[0].note
        cluster.add([app(f"q{i}", "db") for i in range(4)], make_pod("none"))
        cluster.settle()
        assert cluster.pending() == ["default/p4"]


def test_a_limit_may_hold_for_zones_and_for_some_applications_only():
    limits = [{"topologyKey": ZONE, "maxPods": 1, "applications": ["db"]}]
    with cluster_with(limits=limits) as cluster:
        cluster.add(make_nodes(4, zones=("x", "y")))
        cluster.add([app(f"d{i}", "db") for i in range(3)], [app(f"w{i}", "web") for i in range(6)])
        cluster.settle()
        assert cluster.pending() == ["default/d2"]


def test_pods_of_all_namespaces_count():
    with cluster_with(limits=[{"maxPods": 1}]) as cluster:
        cluster.add(host("a"), app("p", "web", namespace="x"), app("p", "web", namespace="y"))
        cluster.settle()
        assert len(cluster.pending()) == 1


def test_a_node_without_the_label_of_a_limit_is_refused():
    found = ask("AppAffinity", app("p", "web"), [make_node("n")], (), {"limits": [{"topologyKey": ZONE, "maxPods": 1}]})
    [(_, reasons)] = found.refused().values()
    assert reasons == (f"node(s) didn't have the label {ZONE} that an application limit needs",)


def test_preemption_counts_the_pods_that_go():
    with cluster_with(limits=[{"topologyKey": ZONE, "maxPods": 1}]) as cluster:
        cluster.add(make_nodes(2, zones=("x",)), app("low", "web", node="node-1"), app("db", "db", node="node-0"))
        cluster.add(app("high", "web", priority=9))
        cluster.settle()
        assert cluster.record("high").victims == ("default/low",)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["web", "db", ""])), max_size=12),
    st.integers(1, 3),
    st.sampled_from([HOST, ZONE]),
)
def test_limits_are_those_of_counting_by_hand(placed, most, key):
    nodes = [host(f"n{i}", **({ZONE: f"z{i % 2}"} if i < 5 else {})) for i in range(6)]
    pods = [app(f"p{i}", name, node=f"n{at}") for i, (at, name) in enumerate(placed)]
    found = ask("AppAffinity", app("p", "web"), nodes, pods, {"limits": [{"topologyKey": key, "maxPods": most}]})
    domains = {node.name: node.labels.get(key) for node in nodes}
    counts = [domains[pod.spec.node_name] for pod in pods if pod.labels["AppID"] == "web"]
    full = {name for name, domain in domains.items() if domain is None or counts.count(domain) >= most}
    assert {*found.refused()} == full


TABLE = [
    {"application": "web", "other": "cache", "weight": 10},
    {"application": "web", "other": "batch", "topologyKey": ZONE, "weight": -5},
]


def test_applications_are_drawn_to_those_they_like_and_away_from_those_they_do_not():
    nodes = [host("a", **{ZONE: "x"}), host("b", **{ZONE: "x"}), host("c", **{ZONE: "y"}), host("d", **{ZONE: "y"})]
    pods = [app("1", "cache", node="a"), app("2", "batch", node="b"), app("3", "cache", node="c")]
    found = ask("AppAffinity", app("p", "web"), nodes, pods, {"preferences": TABLE})
    assert found.scores() == {"a": 5, "b": -5, "c": 10, "d": 0}
    assert ask("AppAffinity", app("p", "db"), nodes, pods, {"preferences": TABLE}).scores() is None


def test_a_preference_decides_where_nodes_are_equal():
    with cluster_with(preferences=TABLE) as cluster:
        cluster.add([host(f"n{i}", **{ZONE: f"z{i}"}) for i in range(6)], app("c", "cache", node="n4"))
        cluster.add(app("p", "web"))
        cluster.settle()
        assert cluster.node_of("p") == "n4"


@pytest.mark.parametrize(
    ("heals", "change"),
    [
        (True, lambda c: c.delete(c.pod("old"))),
        (True, lambda c: c.patch(PODS, "old", {"metadata": {"labels": {"AppID": "db"}}}, "default")),
        (True, lambda c: c.add(host("b"))),
        (False, lambda c: c.delete(c.pod("other"))),
        (False, lambda c: c.patch(PODS, "old", {"metadata": {"labels": {"colour": "red"}}}, "default")),
        (False, lambda c: c.patch(NODES, "a", {"metadata": {"labels": {"colour": "red"}}})),
    ],
)
def test_a_refused_pod_is_woken_by_what_may_help_and_by_nothing_else(heals, change):
    with cluster_with(limits=[{"maxPods": 1}]) as cluster:
        cluster.add(host("a"), app("old", "web", node="a"), app("other", "db", node="a"), app("p", "web"))
        cluster.settle(30)
        assert cluster.record("p").attempt == 1
        change(cluster)
        cluster.settle(30)
        assert bool(cluster.node_of("p")) is heals
        assert (cluster.record("p").attempt > 1) is heals


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"label": ""}, "label: Required value"),
        ({"limits": [{"topologyKey": ""}]}, "limits\\[0\\].maxPods: Invalid value: 0"),
        ({"limits": [{"topologyKey": "", "maxPods": 1}]}, "limits\\[0\\].topologyKey: Required value"),
        ({"preferences": [{"application": "a", "weight": 1}]}, "preferences\\[0\\].other: Required value"),
        ({"preferences": [{"application": "a", "other": "b"}]}, "preferences\\[0\\].weight: Invalid value: 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(args, message):
    with pytest.raises(ConfigError, match=message):
        configure(enabling("AppAffinity", args), discover=False)
