"""Preemption with zones: which zone a victim is in is published too, in the form of the numaplacement
package."""

from __future__ import annotations

import pytest

from moorage.api.resources import Unstructured
from moorage.contrib.topology_match.placement import METADATA, VECTOR, offsets, placement, release, xxhash64
from moorage.contrib.topology_match.topology import ZoneTopology, read_topology
from tests.contrib.topology_match.machines import guaranteed, machine, numa_cluster, put, topology

NONE, SOME = {"cpu": "0", "memory": "0"}, {"cpu": "3", "memory": "8Gi"}
MODES = {"cacheResyncPeriodSeconds": 5, "preemptionMode": "Enabled"}


def placed(zones: dict[str, int], pods, available=(NONE, SOME), busiest: int = 0, **attributes: str):
    """The object of a node whose containers are in these zones, by the name of their pod."""
    order = sorted(zones, key=lambda name: xxhash64(f"default\0{name}\0c0".encode()))
    metadata = f"npv0v001::ve=leb89::cc={len(zones)}::nn=2::bn={busiest}"
    object_ = topology(zones=available, pods=pods, **{METADATA: metadata, **attributes})
    for number, zone in enumerate(object_["zones"]):
        own = [place for place, name in enumerate(order) if zones[name] == number]
        if own and number != busiest:
            zone["attributes"] = [{"name": VECTOR, "value": written(own)}]
    return object_


def written(numbers: list[int]) -> str:
    """Few and small, so that a letter is enough for each difference."""
    letters = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\\\']
    return "".join(letters[b - a] for a, b in zip([0, *numbers], numbers, strict=False))


def read(object_) -> ZoneTopology:
    return read_topology(Unstructured(object_))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", []), ("!", [0]), ("!#", [0, 1]), ("e", [63]), ("f!#", [64, 65]), ("g!", [128]), ("gf!", [1664])],
)
def test_offsets_are_read(text, expected):
    assert offsets(text) == expected


@pytest.mark.parametrize("zones", [{"a": 0}, {"a": 1}, {"a": 0, "b": 1}, {"a": 1, "b": 0, "c": 1, "d": 1}])
@pytest.mark.parametrize("busiest", [0, 1])
def test_containers_are_found_in_their_zones(zones, busiest):
    pods = [guaranteed(name, "2") for name in zones]
    found = placement(read(placed(zones, pods, busiest=busiest)), pods)
    assert found == {("default", name, "c0"): zone for name, zone in zones.items()}


def test_nothing_is_known_of_other_containers_than_those_that_were_published():
    pods = [guaranteed(name, "2") for name in "ab"]
    object_ = placed({"a": 0, "b": 1}, pods)
    assert placement(read(object_), pods[:1]) == {}
    assert placement(read(topology()), pods) == {}


def test_no_zone_gets_more_than_it_had_at_first():
    pods = [guaranteed("a", "2", memory="100Gi")]
    object_ = read(placed({"a": 0}, pods))
    zone, _ = release(object_, pods, placement(object_, pods)).zones
    assert zone.available == {"cpu": 2000, "memory": 64 << 30}


@pytest.mark.parametrize(
    ("args", "zone", "victims"),
    [(MODES, 0, ("default/victim",)), (MODES, 1, ()), ({**MODES, "preemptionMode": "Disabled"}, 0, ())],
    ids=["the victim frees a zone", "the zone is too small all the same", "not asked for"],
)
def test_a_pod_is_preempted_if_that_makes_a_zone_large_enough(args, zone, victims):
    victim = guaranteed("victim", "4", memory="8Gi", node="n0")
    with numa_cluster(args) as cluster:
        available = (NONE, SOME) if zone == 0 else (NONE, NONE)
        object_ = placed({"victim": zone}, [victim], available, busiest=zone)
        if zone == 1:
            object_["zones"][1]["resources"][0]["allocatable"] = "3"
        put(cluster, machine(), object_, victim)
        cluster.add(guaranteed("p", "4", memory="8Gi", priority=10))
        cluster.settle()
        assert cluster.record("p").victims == victims
