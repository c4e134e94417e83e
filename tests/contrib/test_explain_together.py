"""Details of plugins that judge a pod by others, or by parts of a node: groups, networks, NUMA zones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.framework.optional import Detail
from moorage.testing import make_pod
from tests.contrib.coscheduling import gangs
from tests.contrib.network_aware.shop import app_group, at, member, topology
from tests.contrib.topology_match import machines
from tests.contrib.topology_match.machines import NIC, guaranteed, machine, numa_cluster, put
from tests.plugins.explained import explained
from tests.plugins.one_plugin import ask

GIB = 1 << 30
SMALL, NARROW = {"cpu": "4", "memory": "8Gi"}, {"cpu": "8", "memory": "1Gi"}


def in_one_zone(resource: str, *figures: Any, what: str = "container") -> Detail:
    return Detail(f"{resource} in one NUMA zone for the {what}", *figures)


@pytest.mark.parametrize(
    ("pod", "zones", "expected"),
    [
        (guaranteed("p", "4"), [SMALL, SMALL], []),
        (guaranteed("p", "5"), [SMALL, SMALL], [in_one_zone("cpu", 5000, 4000, 1000, "m")]),
        (
            guaranteed("p", "5", memory="9Gi"),
            [SMALL],
            [
                in_one_zone("cpu", 5000, 4000, 1000, "m"),
                in_one_zone("memory", 9 * GIB, 8 * GIB, GIB, "B"),
            ],
        ),
        (guaranteed("p", "3", "3", "2"), [SMALL, SMALL], [in_one_zone("cpu", 2000, 1000, 1000, "m")]),
        (
            guaranteed("p", "6", memory="4Gi"),
            [SMALL, NARROW],
            [Detail("cpu, memory together in one NUMA zone for the container")],
        ),
        (make_pod("p", cpu="5"), [{"memory": "8Gi"}], [in_one_zone("cpu", 5000, "not reported", None, "m")]),
        (
            make_pod("p", requests={NIC: 2}),
            [{**SMALL, NIC: "1"}] * 2,
            [in_one_zone(NIC, 2, 1, 1)],
        ),
        (
            make_pod("p", requests={"vendor.io/gpu": 1}),
            [SMALL],
            [in_one_zone("vendor.io/gpu", 1, "none on the node")],
        ),
    ],
    ids=[
        "none", "cpu", "two resources", "what other containers take", "not together", "not reported",
        "a device", "a device of other nodes",
    ],
)  # fmt: skip
def test_what_no_zone_has_is_given_for_each_resource(pod, zones, expected):
    with numa_cluster() as cluster:
        put(cluster, machine(), machines.topology(zones=zones), pod)
        nodes = cluster.scheduler.engine.services.nodes()
        profile = next(iter(cluster.scheduler.engine.profiles.values()))
        found = explained(profile.plugins["NodeResourceTopologyMatch"], pod, nodes)
        assert found == ({"n0": expected} if expected else {})


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([("db", 5)], []),
        ([("db", 4)], [Detail("pods of workload db within network cost 4", 3, 1, 2)]),
        ([("db", 4), ("cache", 4)], []),
        (
            [("db", 4), ("cache", 0)],
            [
                Detail("pods of workload db within network cost 4", 3, 1, 2),
                Detail("pods of workload cache within network cost 0", 1, 0, 1),
            ],
        ),
    ],
    ids=["near enough", "too far away", "as many near as far", "two workloads"],
)
def test_pods_that_are_too_far_away_are_counted_by_workload(needs, expected):
    nodes = [at("a", "r1", "z1"), at("b", "r1", "z2")]
    pods = [member(f"db-{i}", "db", node=node) for i, node in enumerate("abb")]
    pods.append(member("cache", "cache", node="b"))
    costs = {("z1", "z2"): 5, ("z2", "z1"): 5}
    if len(needs) > 1 and needs[1][1]:
        costs = {("z1", "z2"): 4, ("z2", "z1"): 4}
    custom = {"appgroups": [app_group(needs={"cart": needs})], "networktopologies": [topology(costs)]}
    asked = ask("NetworkOverhead", member("p", "cart"), nodes, pods, custom=custom)
    assert explained(asked.plugin, asked.pod, asked.world.nodes).get("a", []) == expected


def too_few() -> list[Any]:
    return [gangs.podgroup("g", 3), gangs.member("g", 0)]


def gated() -> list[Any]:
    return [gangs.podgroup("g", 2), gangs.member("g", 0), gangs.member("g", 1, gates=["wait"])]


def too_large() -> list[Any]:
    return gangs.gang("g", 3)


def without_resources() -> list[Any]:
    return [
        gangs.podgroup("g", 2, minResources={"cpu": "5", "memory": "1Gi"}),
        *(gangs.member("g", number) for number in range(2)),
    ]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (too_few, [Detail("pods of PodGroup default/g", 3, 1, 2)]),
        (gated, [Detail("pods of PodGroup default/g without scheduling gates", 2, 1, 1, "", ("default/g-1",))]),
        (too_large, [Detail("members of PodGroup default/g that find a node together", 3, 2, 1)]),
        (without_resources, [Detail("cpu free on all nodes", 5000, 2000, 3000, "m")]),
    ],
)
def test_what_a_group_waits_for_is_counted(objects: Callable[[], list[Any]], expected: list[Detail]):
    with gangs.cluster() as cluster:
        cluster.add(gangs.nodes(2), objects())
        cluster.settle()
        assert cluster.details("Coscheduling", "g-0", "n0") == expected


def test_a_group_that_backs_off_says_for_how_long():
    with gangs.cluster({"podGroupBackoffSeconds": 60}) as cluster:
        cluster.add(gangs.nodes(2), gangs.gang("g", 3))
        cluster.settle()
        found = cluster.details("Coscheduling", "g-0", "n0")
        assert found[0].subject == "PodGroup default/g failed recently"
        assert str(found[0].there).endswith(" s to wait")
