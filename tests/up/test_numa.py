"""What `moorage up --numa` publishes: even shares, and containers in the first zone that has enough."""

from __future__ import annotations

import pytest

from moorage.api import decoding
from moorage.api.resources import Unstructured
from moorage.testing import make_pod
from moorage.testing.builders import make_container
from moorage.up.numa import allot, split

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("amounts", "zones", "expected"),
    [
        ({"cpu": 8000, "memory": 32}, 2, [{"cpu": 4000, "memory": 16}, {"cpu": 4000, "memory": 16}]),
        ({"cpu": 8000}, 3, [{"cpu": 3000}, {"cpu": 3000}, {"cpu": 2000}]),
        ({"cpu": 2500}, 2, [{"cpu": 1500}, {"cpu": 1000}]),
        ({GPU: 1}, 2, [{GPU: 1}, {GPU: 0}]),
        ({"pods": 110, "ephemeral-storage": 9}, 2, [{}, {}]),
    ],
)
def test_a_node_is_split_evenly(amounts, zones, expected):
    assert split(amounts, zones) == expected


def pod(*wanted: dict[str, str], guaranteed: bool = True) -> Unstructured:
    containers = tuple(
        make_container(f"c{number}", requests=amounts, limits=amounts if guaranteed else {})
        for number, amounts in enumerate(wanted)
    )
    return Unstructured(decoding.to_builtins(make_pod(containers=containers)))


SMALL, LARGE = {"cpu": "1", "memory": "1"}, {"cpu": "3", "memory": "1"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(SMALL), [{"cpu": 1000, "memory": 1}, {}]),
        (pod(LARGE), [{}, {"cpu": 3000, "memory": 1}]),
        (pod(LARGE, SMALL), [{"cpu": 1000, "memory": 1}, {"cpu": 3000, "memory": 1}]),
        (pod({"cpu": "5", "memory": "1"}), [{"cpu": 2000, "memory": 1}, {"cpu": 3000, "memory": 0}]),
        (pod(LARGE, guaranteed=False), [{}, {}]),
        (pod({"cpu": "1", GPU: "1"}, guaranteed=False), [{}, {GPU: 1}]),
    ],
    ids=["the first zone", "the first that has enough", "by container", "several", "shared", "a device"],
)
def test_a_container_gets_what_is_its_own_from_one_zone_if_one_has_enough(found, expected):
    free = [{"cpu": 2000, "memory": 4, GPU: 0}, {"cpu": 4000, "memory": 4, GPU: 1}]
    assert [*allot(found, free)] == expected
