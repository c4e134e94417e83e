"""Which nodes are refused, and the reports that say where this goes wrong elsewhere; sp is
scheduler-plugins."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.testing import make_pod
from tests.contrib.topology_match.machines import (
    NIC,
    guaranteed,
    machine,
    numa_cluster,
    own,
    publish,
    put,
    refusal,
    topology,
)

SMALL = {"cpu": "4", "memory": "8Gi"}
WITH_NIC = {**SMALL, NIC: "1"}


@pytest.mark.parametrize(
    ("pod", "object_", "expected"),
    [
        (guaranteed("p", "4"), topology(), ""),
        (guaranteed("p", "5"), topology(), "cannot align container"),
        (guaranteed("p", "5"), topology(policy="restricted"), ""),
        (guaranteed("p", "3", "3"), topology(), ""),
        (guaranteed("p", "3", "3"), topology(scope="pod"), "cannot align pod"),
        (guaranteed("p", "1", init_containers=(own("i", cpu="5", memory="1Gi"),)), topology(),
         "cannot align init container"),
        (guaranteed("p", "1", init_containers=(own("i", True, cpu="5", memory="1Gi"),)), topology(),
         "cannot align sidecar container"),
        (make_pod("p", cpu="5", memory="1Gi"), topology(), ""),
        (make_pod("p", cpu="5"), topology(zones=({"memory": "8Gi"},)), "cannot align container"),
        (make_pod("p", requests={NIC: 2}), topology(zones=(WITH_NIC, WITH_NIC)), "cannot align container"),
        (make_pod("p"), topology(zones=()), ""),
    ],
    ids=[
        "a zone is enough", "no zone is", "the kubelet does not insist", "containers in different zones",
        "the pod in one zone", "an init container", "a sidecar", "shared cpus", "no zone knows cpu",
        "a device beside shared cpus", "nothing asked for",
    ],
)  # fmt: skip
def test_a_node_is_refused_where_its_kubelet_would_refuse_the_pod(pod, object_, expected):
    with numa_cluster() as cluster:
        put(cluster, machine(), object_, pod)
        assert cluster.node_of("p") == ("" if expected else "n0")
        if expected:
            assert refusal(cluster, "p") == expected


def test_answers_for_pods_with_nothing_of_their_own_are_used_again():
    with numa_cluster() as cluster:
        profile = next(iter(cluster.scheduler.engine.profiles.values()))
        plugin: Any = profile.plugins["NodeResourceTopologyMatch"]
        assert plugin.sign(make_pod("p")) is not None
        assert plugin.sign(make_pod("p")) == plugin.sign(make_pod("q", labels={"app": "web"}))
        assert plugin.reads(make_pod("p")) == ()
        assert plugin.sign(guaranteed("p", "1")) != plugin.sign(guaranteed("p", "2"))


def test_a_node_without_object_is_not_refused():
    with numa_cluster() as cluster:
        put(cluster, machine(), guaranteed("p", "5"))
        assert cluster.node_of("p") == "n0"


def test_sp366_what_one_container_gets_is_missing_for_the_next():
    with numa_cluster() as cluster:
        put(cluster, machine(), topology(), guaranteed("p", "3", "3", "2"))
        assert refusal(cluster, "p") == "cannot align container"


def test_sp751_a_resource_of_the_whole_node_is_not_looked_for_in_zones():
    container: dict[str, Any] = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi", NIC: "1"}
    pod = make_pod("p", containers=tuple(own(f"c{number}", **container) for number in range(3)))
    with numa_cluster() as cluster:
        put(cluster, machine(), topology(zones=(SMALL,)), pod)
        assert cluster.node_of("p") == "n0"


def test_a_resource_that_the_node_does_not_have_is_not_one_of_the_whole_node():
    with numa_cluster(without=("NodeResourcesFit",)) as cluster:
        put(cluster, machine(extended={}), topology(), make_pod("p", requests={NIC: 1}))
        assert refusal(cluster, "p") == "cannot align container"


def test_a_refused_pod_is_tried_again_when_a_zone_has_enough_and_not_before():
    with numa_cluster() as cluster:
        put(cluster, machine(), topology(), guaranteed("p", "5"))
        attempts = cluster.record("p").attempt
        publish(cluster, topology(zones=(SMALL, {**SMALL, "cpu": "3"})))
        cluster.settle(30)
        assert cluster.record("p").attempt == attempts
        publish(cluster, topology(zones=(SMALL, {**SMALL, "cpu": "5"})))
        cluster.settle(30)
        assert cluster.node_of("p") == "n0"


def test_an_object_that_is_deleted_refuses_no_pod_any_more():
    with numa_cluster() as cluster:
        object_ = topology()
        put(cluster, machine(), object_, guaranteed("p", "5"))
        cluster.delete(object_)
        cluster.settle(30)
        assert cluster.node_of("p") == "n0"


def test_nodes_and_zones_may_be_many_and_come_in_any_order():
    """More nodes than the arrays have places at first, objects before and after their nodes."""
    names = [f"n{number}" for number in range(200)]
    fitting = {"n7", "n63", "n64", "n199"}
    with numa_cluster() as cluster:
        cluster.add(topology(name, (SMALL,) * 3) for name in names[:100] if name not in fitting)
        cluster.settle()
        put(cluster, *map(machine, names))
        cluster.add(topology(name) for name in names[100:] if name not in fitting)
        cluster.add(topology(name, (SMALL,) * 8 + ({"cpu": "6", "memory": "8Gi"},)) for name in fitting)
        cluster.settle()
        cluster.add(guaranteed(f"p{number}", "6") for number in range(8))
        cluster.settle()
        assert set(cluster.bound().values()) == fitting


def test_a_node_that_comes_back_has_its_own_zones():
    """Places in the arrays are used again."""
    with numa_cluster() as cluster:
        put(cluster, machine("n0"), machine("n1"), topology("n0"), topology("n1", scope="pod"))
        cluster.delete(topology("n0"))
        cluster.settle()
        cluster.add(topology("n0", scope="pod"))
        put(cluster, machine("n2"), topology("n2", (SMALL,)), guaranteed("p", "5"))
        reasons = {name: refusal(cluster, "p", name) for name in ("n0", "n1", "n2")}
        assert reasons == {
            "n0": "cannot align pod", "n1": "cannot align pod", "n2": "cannot align container",
        }  # fmt: skip


def test_nodes_are_scored_by_their_zones():
    with numa_cluster({"scoringStrategy": {"type": "MostAllocated"}}) as cluster:
        put(cluster, machine("empty"), machine("filled"), topology("empty"))
        put(cluster, topology("filled", ({"cpu": "2", "memory": "2Gi"},)), guaranteed("p", "2"))
        assert cluster.node_of("p") == "filled"
