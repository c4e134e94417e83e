"""What objects say, fingerprints of pods, and arguments."""

from __future__ import annotations

import pytest

from moorage.api.resources import Unstructured
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.topology_match.columns import ZoneSet, zone_sets
from moorage.contrib.topology_match.placement import ANNOTATION, fingerprint, published_fingerprint, xxhash64
from moorage.contrib.topology_match.topology import TopologyManager, read_topology
from moorage.testing import make_pod
from tests.contrib.configs import enabling


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, TopologyManager("none", "container", 8)),
        ({"topologyPolicies": ["SingleNUMANodePodLevel", "x"]}, TopologyManager("single-numa-node", "pod")),
        ({"topologyPolicies": ["RestrictedContainerLevel"]}, TopologyManager("restricted", "container")),
        ({"topologyPolicies": ["None"]}, TopologyManager()),
        (
            {"topologyPolicies": ["BestEffortPodLevel"], "attributes": {"topologyManagerPolicy": "none"}},
            TopologyManager("none", "pod"),
        ),
        ({"attributes": {"topologyManagerScope": "node"}}, TopologyManager()),
        ({"attributes": {"topologyManagerMaxNUMANodes": "16"}}, TopologyManager(max_numa_nodes=16)),
        ({"attributes": {"topologyManagerMaxNUMANodes": "9999"}}, TopologyManager(max_numa_nodes=1024)),
        ({"attributes": {"topologyManagerMaxNUMANodes": "1"}}, TopologyManager()),
        ({"attributes": {"topologyManagerMaxNUMANodes": "²"}}, TopologyManager()),
    ],
)  # fmt: skip
def test_attributes_win_over_the_deprecated_field_and_nonsense_is_ignored(fields, expected):
    pairs = [{"name": name, "value": value} for name, value in fields.get("attributes", {}).items()]
    assert read_topology(Unstructured({**fields, "attributes": pairs})).manager == expected


def test_zones_are_ordered_by_their_ids_and_others_than_numa_nodes_are_omitted():
    zones = [
        {"name": "node-3", "type": "Node", "resources": [{"name": "cpu", "available": "1500m"}]},
        {"name": "socket-0", "type": "Socket"},
        {"name": "node-x", "type": "Node"},
        {"name": "node-1", "type": "Node", "costs": [{"name": "node-3", "value": 21}]},
    ]
    found = read_topology(Unstructured({"zones": zones})).zones
    assert [(zone.id, zone.available, zone.distances) for zone in found] == [
        (1, {}, (255, 21)), (3, {"cpu": 1500}, (255, 255)),
    ]  # fmt: skip


@pytest.mark.parametrize("amount", ["-1", "many", None])
def test_an_amount_that_makes_no_sense_is_none(amount):
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "available": amount}]}
    [found] = read_topology(Unstructured({"zones": [zone]})).zones
    assert found.available in ({}, {"cpu": 0})


def test_sets_of_zones_are_ordered_by_size_distance_and_ids():
    near, far = 10, 30
    sets = zone_sets(((near, far, 12), (far, near, far), (12, far, near)))
    assert sets[:3] == [ZoneSet((0,), True), ZoneSet((1,), True), ZoneSet((2,), True)]
    assert sets[3:] == [
        ZoneSet((0, 2), True), ZoneSet((0, 1), False), ZoneSet((1, 2), False), ZoneSet((0, 1, 2), True),
    ]  # fmt: skip


def test_of_very_many_zones_only_small_sets_are_looked_at():
    assert max(len(found.zones) for found in zone_sets(((10,) * 40,) * 40)) == 2


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abcd", 0, 0xDE0327B0D25D92CC),
        (b"ns\0pod\0cnt", 0, 9468815510407277218),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_of_xxh64(data, seed, expected):
    assert xxhash64(data, seed) == expected


def test_the_fingerprint_is_that_of_the_set_of_pods():
    pods = [make_pod("a"), make_pod("b", namespace="other"), make_pod("c")]
    assert fingerprint(pods) == fingerprint(reversed(pods)) != fingerprint(pods[1:])
    assert fingerprint([]) == "pfp0v001ef46db3751d8e999"


def test_the_fingerprint_may_be_in_the_annotation_of_old_objects():
    obj = Unstructured({"metadata": {"annotations": {ANNOTATION: "pfp0v001x"}}})
    assert published_fingerprint(read_topology(obj), "OnlyExclusiveResources") == ("pfp0v001x", False)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"scoringStrategy": {"type": "LeastNuma"}}, 'scoringStrategy.type: Unsupported value: "LeastNuma"'),
        ({"cache": {"informerMode": "Own"}}, 'cache.informerMode: Unsupported value: "Own"'),
        ({"cache": {"resyncScope": "None"}}, 'cache.resyncScope: Unsupported value: "None"'),
        ({"preemptionMode": "On"}, 'preemptionMode: Unsupported value: "On"'),
        ({"cacheResyncPeriod": 5}, "cacheResyncPeriod"),
    ],
)  # fmt: skip
def test_arguments_that_are_wrong_are_named(args, problem):
    with pytest.raises(ConfigError, match=problem):
        configure(enabling("NodeResourceTopologyMatch", args), discover=False)
