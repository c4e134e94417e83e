"""The details that contrib plugins give of their refusals; in random clusters there are some for every
refused node, and for no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import HOSTNAME, ZONE, Node
from moorage.api.pod import Pod
from moorage.api.resources import NAMESPACES
from moorage.contrib.metrics import Sample
from moorage.framework.optional import Detail
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_namespace
from tests.contrib.capacity_scheduling.tenants import quota, tenants
from tests.contrib.gpu.gpus import gpu_node, gpu_pod
from tests.plugins.explained import explained
from tests.plugins.one_plugin import Asked, ask

GIB = 1 << 30


def details(asked: Asked) -> dict[str, list[Detail]]:
    return explained(asked.plugin, asked.pod, asked.world.nodes)


def measured(plugin: str, measures: Mapping[str, Mapping[str, float]], nodes: Sequence[Node], **args: Any) -> Asked:
    """The plugin on nodes that were measured at this moment: measure → node → value."""
    asked = ask(plugin, make_pod("in"), nodes, (), args)
    names = [node.name for node in nodes]
    values = {key: np.array([found.get(name, np.nan) for name in names]) for key, found in measures.items()}
    taken = np.full(len(names), asked.plugin.handle.clock.wall())
    asked.plugin.usage.accept(Sample(names, values, taken), asked.plugin.handle)
    return asked


def test_usage_is_given_in_the_units_of_the_resource():
    usage = {"cpu": {"a": 80, "b": 85}, "memory": {"a": 95, "b": 95}}
    found = details(measured("LowCpuScheduler", usage, [make_node("a"), make_node("b")]))
    memory = Detail("memory usage above 90%", 15461882265, 16320875725, 858993460, "B")
    assert found == {"a": [memory], "b": [Detail("cpu usage above 80%", 3200, 3400, 200, "m"), memory]}


def test_usage_that_is_not_known_is_said_where_it_refuses():
    usage = {"cpu": {"a": 10.0}, "memory": {"a": 10.0}}
    nodes = [make_node("a"), make_node("b")]
    unknown = [Detail("cpu usage", there="not known"), Detail("memory usage", there="not known")]
    assert details(measured("LowCpuScheduler", usage, nodes, whenMissing="Refuse")) == {"b": unknown}
    assert details(measured("LowCpuScheduler", usage, nodes, whenMissing="Allow")) == {}


def test_heat_is_given_in_degrees():
    heat = {"temperature": {"a": 75, "b": 75.5, "c": 90}, "power": {}}
    assert details(measured("EnergyAware", heat, [make_node(name) for name in "abc"])) == {
        "b": [Detail("temperature", 75, 76, 1, "°C")],
        "c": [Detail("temperature", 75, 90, 15, "°C")],
    }


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            gpu_pod("in", count=3),
            {"a": [Detail("GPUs", 3, 2, 1)], "b": [Detail("GPUs", 3, 1, 2)], "none": [Detail("GPUs", 3, 0, 3)]},
            id="too few",
        ),
        pytest.param(
            gpu_pod("in", count=2),
            {
                "a": [Detail("idle GPUs", 2, 1, 1, "", ("default/p",))],
                "b": [Detail("GPUs", 2, 1, 1)],
                "none": [Detail("GPUs", 2, 0, 2)],
            },
            id="not idle",
        ),
        pytest.param(
            gpu_pod("in", 500),
            {
                "b": [Detail("free of one GPU, of 1000 milli", 500, 300, 200, "", ("default/q",))],
                "none": [Detail("GPUs", 1, 0, 1)],
            },
            id="a part",
        ),
        pytest.param(
            gpu_pod("in", 500, models="A10|V100"),
            {
                "a": [Detail("GPU model A10|V100", there="T4")],
                "none": [Detail("GPU model A10|V100", there="no label"), Detail("GPUs", 1, 0, 1)],
                "b": [
                    Detail("GPU model A10|V100", there="T4"),
                    Detail("free of one GPU, of 1000 milli", 500, 300, 200, "", ("default/q",)),
                ],
            },
            id="another model",
        ),
    ],
)
def test_gpus_are_given_card_by_card(pod, expected):
    nodes = [gpu_node("a", 2), gpu_node("b", 1), make_node("none")]
    running = [gpu_pod("p", 200, node="a", index="0"), gpu_pod("q", 700, node="b", index="0")]
    assert details(ask("GpuShare", pod, nodes, running)) == expected


def isolated(nodes: Sequence[Node], pods: Sequence[Pod] = (), namespace: str = "red", **args: Any) -> Asked:
    """A pod of this namespace, beside the tenants red and blue."""
    made = {"namespaceLabel": "tenant", **args}
    asked = ask("TenantIsolation", make_pod("in", namespace=namespace), nodes, pods, made)
    for name in ("red", "blue"):
        asked.world.put(NAMESPACES, make_namespace(name, {"tenant": name}))
    asked.world.engine.drain()
    return asked


POOLS = [make_node("own", labels={"tenant": "red"}), make_node("other", labels={"tenant": "blue"}), make_node("plain")]


@pytest.mark.parametrize(
    ("namespace", "args", "expected"),
    [
        ("red", {}, {"other": [Detail("label tenant", "red or no label", "blue")]}),
        (
            "red",
            {"sharedPool": "all"},
            {
                name: [Detail("label tenant", "red or all", there)]
                for name, there in (("other", "blue"), ("plain", "no label"))
            },
        ),
        (
            "none",
            {},
            {name: [Detail("label tenant", "no label", there)] for name, there in (("own", "red"), ("other", "blue"))},
        ),
    ],
)
def test_a_pool_is_named_by_its_label(namespace, args, expected):
    assert details(isolated(POOLS, namespace=namespace, **args)) == expected


def test_pods_of_other_tenants_are_named():
    pods = [make_pod(f"p-{space}", namespace=space, node="n") for space in ("red", "blue", "none")]
    expected = [Detail("pods of other tenants", 0, 1, 1, "", ("blue/p-blue",))]
    assert details(isolated([make_node("n")], pods, exclusiveNodes=True)) == {"n": expected}


def test_a_limit_of_an_application_gives_the_pods_of_its_domain():
    limits = [{"topologyKey": ZONE, "maxPods": 2}, {"maxPods": 5}]
    nodes = [make_node("a", zone="x"), make_node("b", zone="y"), make_node("c")]
    pods = [make_pod(f"p{i}", node="a", labels={"AppID": "web"}) for i in range(3)]
    pod = make_pod("in", labels={"AppID": "web"})
    assert details(ask("AppAffinity", pod, nodes, pods, {"limits": limits})) == {
        "a": [Detail(f"pods of application web per {ZONE}=x", 2, 3, 2)],
        "c": [Detail(f"label {ZONE}", there="no label")],
    }


def test_a_quota_gives_what_is_asked_for_and_what_is_free():
    most = {"cpu": "3", "memory": "4Gi"}
    with tenants(quota("a", {"cpu": "2", "memory": "8Gi"}, most), quota("b", 1)) as cluster:
        cluster.add(make_pod("p", namespace="a", cpu="1", memory="1Gi"))
        cluster.add(make_pod("large", namespace="a", cpu="4", memory="4Gi"))
        cluster.add(make_pod("borrows", namespace="b", cpu="3"))
        cluster.settle()
        assert cluster.pending() == ["a/large", "b/borrows"]
        assert cluster.details("CapacityScheduling", "large", "n0", "a") == [
            Detail("cpu within max of ElasticQuota a/q", 4000, 2000, 2000, "m"),
            Detail("memory within max of ElasticQuota a/q", 4 * GIB, 3 * GIB, GIB, "B"),
            Detail("cpu within the sum of min of all ElasticQuotas", 4000, 2000, 2000, "m"),
        ]
        assert cluster.details("CapacityScheduling", "borrows", "n0", "b") == [
            Detail("cpu within the sum of min of all ElasticQuotas", 3000, 2000, 1000, "m")
        ]


def test_a_quota_that_cannot_be_read_has_no_details_but_a_reason():
    with tenants(quota("a", {"cpu": "many"})) as cluster:
        cluster.add(make_pod("p", namespace="a"))
        cluster.settle()
        assert "is not a quantity" in cluster.record("p", "a").message
        assert cluster.details("CapacityScheduling", "p", "n0", "a") == []


percents = st.floats(0, 130) | st.sampled_from([80.0, 80.00000001, 90.0, float("nan")])
places = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["red", "blue", "none"])), max_size=6)


@settings(max_examples=30)
@given(
    usage=st.lists(st.tuples(percents, percents), min_size=4, max_size=4),
    degrees=st.lists(st.floats(-20, 200) | st.sampled_from([75.0, 75.0000001]), min_size=4, max_size=4),
    missing=st.sampled_from(["Allow", "Refuse", "UseRequests"]),
    placed=places,
    request=st.sampled_from([(1, 500), (1, 1000), (2, 1000), (3, 1000)]),
    models=st.sampled_from(["", "T4", "A10"]),
    exclusive=st.booleans(),
    shared=st.sampled_from(["", "all"]),
    space=st.sampled_from(["red", "none"]),
    most=st.integers(1, 2),
)
def test_a_refusal_has_details_and_nothing_else_has(
    usage, degrees, missing, placed, request, models, exclusive, shared, space, most
):
    labels: tuple[dict[str, str], ...] = (
        {ZONE: "x", "tenant": "red"},
        {ZONE: "x", "tenant": "all"},
        {ZONE: "y", "tenant": ""},
        {},
    )
    plain = [make_node(f"n{i}", labels=found) for i, found in enumerate(labels)]
    names = [node.name for node in plain]
    by_resource = {
        key: dict(zip(names, (pair[index] for pair in usage), strict=True))
        for index, key in enumerate(("cpu", "memory"))
    }
    details(measured("LowCpuScheduler", by_resource, plain, whenMissing=missing))
    heat = {"temperature": dict(zip(names, degrees, strict=True)), "power": {}}
    details(measured("EnergyAware", heat, plain))
    running = [
        make_pod(f"p{i}", namespace=where, node=f"n{number}", labels={"AppID": "web"})
        for i, (number, where) in enumerate(placed)
    ]
    details(isolated(plain, running, space, exclusiveNodes=exclusive, sharedPool=shared))
    web = make_pod("in", labels={"AppID": "web"})
    limits = [{"topologyKey": ZONE, "maxPods": most}, {"topologyKey": HOSTNAME, "maxPods": most}]
    details(ask("AppAffinity", web, plain, running, {"limits": limits}))
    cards = [gpu_node(f"n{number}", number) for number in range(4)]
    holders = [gpu_pod(f"p{i}", 600, node=f"n{number}") for i, (number, _) in enumerate(placed)]
    count, milli = request
    details(ask("GpuShare", gpu_pod("in", milli, count, models=models), cards, holders))
