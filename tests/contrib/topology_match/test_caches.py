"""Objects are published late: how far each cache believes them, and when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.api.resources import PODS
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES
from moorage.testing import Cluster, make_pod
from tests.contrib.configs import enabling
from tests.contrib.topology_match.machines import (
    guaranteed,
    machine,
    numa_cluster,
    publish,
    put,
    refusal,
    run,
    topology,
)

OVER_RESERVE = {"cacheResyncPeriodSeconds": 5}
FULL, HALF = {"cpu": "0", "memory": "6Gi"}, {"cpu": "2", "memory": "7Gi"}
FREE = {"cpu": "4", "memory": "8Gi"}


def test_sp315_without_a_cache_an_old_object_lets_too_many_pods_in():
    with numa_cluster() as cluster:
        put(cluster, machine(), topology(), *(guaranteed(f"p{number}", "4") for number in range(3)))
        assert len(cluster.bound()) == 3


def test_sp315_a_reserved_pod_is_missing_in_every_zone_until_an_object_shows_where_it_is():
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.add(guaranteed("q", "3"))
        cluster.settle(30)
        assert refusal(cluster, "q") == "cannot align container"
        publish(cluster, topology(zones=({"cpu": "1", "memory": "7Gi"}, FREE), pods=run(cluster, "p")))
        cluster.settle(30)
        assert cluster.node_of("q") == "n0"


@pytest.mark.parametrize("started", [(), ("p", "other")], ids=["one pod less", "one pod more"])
def test_an_object_of_other_pods_does_not_count(started):
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        put(cluster, guaranteed("q", "3"))
        run(cluster, "p")
        cluster.settle()
        publish(cluster, topology(pods=[make_pod(name) for name in started]))
        cluster.settle(120)
        assert refusal(cluster, "q") == "cannot align container"


def test_a_pod_that_has_not_started_stays_reserved_when_an_object_counts():
    """The fingerprint agrees: it is that of the pods that run, and p does not yet."""
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.add(guaranteed("q", "3"))
        cluster.settle()
        publish(cluster, topology(pods=[], note="anew"))
        cluster.settle(120)
        assert refusal(cluster, "q") == "cannot align container"


def test_what_a_pod_had_reserved_is_free_again_when_the_pod_is_gone():
    with numa_cluster(OVER_RESERVE) as cluster:
        first = guaranteed("p", "3")
        put(cluster, machine(), topology(pods=[]), first)
        cluster.add(guaranteed("q", "3"))
        cluster.settle()
        cluster.delete(first)
        cluster.settle(30)
        assert cluster.node_of("q") == "n0"


def test_an_object_counts_at_once_where_no_pod_is_reserved():
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(zones=(FULL,)), guaranteed("p", "2"))
        assert refusal(cluster, "p") == "cannot align container"
        publish(cluster, topology(zones=(HALF,)))
        cluster.settle()
        cluster.settle(15)
        assert cluster.node_of("p") == "n0"


THERE: dict[str, Any] = {"scheduler": "other", "node": "n0"}
EXCLUSIVE, SHARING = guaranteed("foreign", "2", **THERE), make_pod("foreign", cpu="2", **THERE)


@pytest.mark.parametrize(
    ("detect", "foreign", "invalid"),
    [("All", SHARING, True), ("None", EXCLUSIVE, False), ("OnlyExclusiveResources", SHARING, False),
     ("OnlyExclusiveResources", EXCLUSIVE, True)],
)  # fmt: skip
def test_a_node_with_a_foreign_pod_is_not_used_until_an_object_shows_it(detect, foreign, invalid):
    args = {**OVER_RESERVE, "cache": {"foreignPodsDetect": detect}}
    with numa_cluster(args) as cluster:
        put(cluster, machine(), topology(pods=[]))
        put(cluster, foreign, guaranteed("p", "2"))
        cluster.settle(10)
        if invalid:
            assert refusal(cluster, "p") == "invalid node topology data"
            publish(cluster, topology(zones=(HALF, FREE), pods=[foreign]))
            cluster.settle(30)
        assert cluster.node_of("p") == "n0"


@pytest.mark.parametrize(("mode", "counts"), [("Dedicated", True), ("Shared", False)])
def test_sp598_pods_that_have_ended_are_in_the_fingerprint_as_long_as_they_exist(mode, counts):
    ended = make_pod("ended", node="n0", phase="Succeeded")
    with numa_cluster({**OVER_RESERVE, "cache": {"informerMode": mode}}) as cluster:
        put(cluster, machine(), ended, topology(pods=[ended]), guaranteed("p", "3"))
        put(cluster, guaranteed("q", "3"))
        zones = ({"cpu": "1", "memory": "7Gi"}, FREE)
        publish(cluster, topology(zones=zones, pods=[ended, *run(cluster, "p")]))
        cluster.settle(60)
        assert bool(cluster.node_of("q")) == counts


@pytest.mark.parametrize(
    ("args", "method"),
    [({}, "with-exclusive-resources"), ({"resyncMethod": "OnlyExclusiveResources"}, "all")],
    ids=["the object says so", "the arguments say so"],
)
def test_sp985_only_pods_with_exclusive_resources_are_in_the_fingerprint_where_that_is_said(args, method):
    shared = make_pod("shared", node="n0", requests={"cpu": "100m", "example.com/tokens": 1})
    settings = {"nodeTopologyPodsFingerprintMethod": method}
    with numa_cluster({**OVER_RESERVE, "cache": args}) as cluster:
        put(cluster, machine(), shared, topology(pods=[], **settings), guaranteed("p", "3"))
        put(cluster, guaranteed("q", "3"))
        zones = ({"cpu": "1", "memory": "7Gi"}, FREE)
        publish(cluster, topology(zones=zones, pods=run(cluster, "p"), **settings))
        cluster.settle(60)
        assert cluster.node_of("q") == "n0"


@pytest.mark.parametrize(("scope", "counts"), [("All", True), ("OnlyResources", False)])
def test_changed_settings_of_the_kubelet_count_at_once_unless_arguments_say_otherwise(scope, counts):
    with numa_cluster({**OVER_RESERVE, "cache": {"resyncScope": scope}}) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.add(guaranteed("q", "3"))
        cluster.settle()
        publish(cluster, topology(policy="best-effort", pods=[make_pod("other")]))
        cluster.settle(3)
        assert bool(cluster.node_of("q")) == counts


def test_after_a_restart_pods_that_have_not_started_are_reserved():
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.restart()
        cluster.add(guaranteed("q", "3"))
        cluster.settle()
        assert refusal(cluster, "q") == "cannot align container"


def test_profiles_share_reservations_and_are_not_foreign_to_each_other():
    profile = json.loads(enabling("NodeResourceTopologyMatch", OVER_RESERVE))
    [one] = profile["profiles"]
    other = {**one, "schedulerName": "other"}
    strategy = {"scoringStrategy": {"type": "LeastNUMANodes"}}
    other["pluginConfig"] = [{**one["pluginConfig"][0], "args": {**OVER_RESERVE, **strategy}}]
    one["schedulerName"] = "default-scheduler"
    with Cluster(config=json.dumps({**profile, "profiles": [one, other]})) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.add(guaranteed("q", "3", scheduler="other"))
        cluster.settle()
        assert refusal(cluster, "q") == "cannot align container"
        cluster.add(guaranteed("r", "1", scheduler="other"))
        cluster.settle()
        assert cluster.node_of("r") == "n0"
        zones = ({"cpu": "1", "memory": "7Gi"}, {"cpu": "3", "memory": "7Gi"})
        publish(cluster, topology(zones=zones, pods=run(cluster, "p", "r")))
        cluster.settle(30)
        assert cluster.node_of("q") == "n0"


def test_reservations_are_made_before_an_object_is_known_and_end_with_the_start_of_the_pod():
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), guaranteed("p", "3"), guaranteed("r", "3"))
        run(cluster, "r")
        cluster.settle()
        put(cluster, topology(pods=[]), guaranteed("q", "2"), guaranteed("s", "1"))
        assert refusal(cluster, "q") == "cannot align container"
        assert cluster.node_of("s") == "n0"


def test_reservations_survive_a_reload():
    with numa_cluster(OVER_RESERVE) as cluster:
        put(cluster, machine(), topology(pods=[]), guaranteed("p", "3"))
        cluster.reload(enabling("NodeResourceTopologyMatch", OVER_RESERVE))
        cluster.add(guaranteed("q", "3"))
        cluster.settle()
        assert refusal(cluster, "q") == "cannot align container"


def test_an_object_that_goes_takes_its_reservations_along():
    object_ = topology(pods=[])
    with numa_cluster(OVER_RESERVE) as cluster:
        first = guaranteed("p", "3")
        put(cluster, machine(), object_, first)
        cluster.delete(object_)
        cluster.settle()
        cluster.add(object_)
        cluster.delete(first)
        cluster.add(guaranteed("q", "4"))
        cluster.settle(10)
        assert cluster.node_of("q") == "n0"


def test_a_node_is_not_used_while_a_pod_is_being_bound_to_it_if_that_is_configured():
    with numa_cluster({"discardReservedNodes": True}) as cluster:
        put(cluster, machine(), topology())
        cluster.add(guaranteed("p", "1"), guaranteed("q", "1"))
        cluster.settle(30)
        assert (cluster.node_of("p"), cluster.node_of("q")) == ("n0", "n0")
        assert sorted(cluster.record(name).attempt for name in "pq") == [1, 2]


def test_pods_and_topologies_are_all_that_the_plugin_reads():
    with numa_cluster(OVER_RESERVE) as cluster:
        profile = next(iter(cluster.scheduler.engine.profiles.values()))
        needs = profile.plugins["NodeResourceTopologyMatch"].needs
        assert {(need.resource, need.verbs) for need in needs} == {
            (NODE_RESOURCE_TOPOLOGIES, ("list", "watch")), (PODS, ("list", "watch")),
        }  # fmt: skip
