"""The four plugins on clusters; their scores are compared with the Go plugins' in tests/conformance."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.metrics import load_watcher
from moorage.contrib.trimaran.low_risk_over_commitment import within, within_all
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_container
from tests.conformance.plugin_cases import evaluate_plugin
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

MODELS = {name: {"k0": 200, "k1": -90, "k2": -0.07} for name in ("a", "b", "c")}
ARGS = {"Peaks": {"nodePowerModel": MODELS}}
PLUGINS = ("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks")
OTHER_SCORES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")


def watched(end=1000, **nodes):
    """What a load-watcher says: average and deviation of cpu, and the average of memory."""
    listed = {
        name: {
            "metrics": [
                {"type": "CPU", "operator": "AVG", "value": average},
                {"type": "CPU", "operator": "STD", "value": deviation},
                {"type": "Memory", "operator": "AVG", "value": memory},
            ]
        }
        for name, (average, deviation, memory) in nodes.items()
    }
    return {"window": {"start": end - 900, "end": end}, "data": {"NodeMetricsMap": listed}}


def cluster_with(plugin, args=None):
    config = enabling(plugin, args or ARGS.get(plugin), weight=100, without=OTHER_SCORES)
    return Cluster(config=config, verify_reuse=True)


def measure(cluster, **nodes):
    plugin = next(
        plugin
        for profile in cluster.scheduler.engine.profiles.values()
        for plugin in profile.plugins.values()
        if plugin.name in PLUGINS
    )
    plugin.usage.accept(load_watcher.read(watched(cluster.clock.wall(), **nodes)), plugin.handle)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_all_forms_of_a_plugin_say_the_same(plugin):
    nodes = [make_node("a"), make_node("b", cpu="8"), make_node("c", cpu="2"), make_node("unmeasured")]
    pods = [make_pod("other", node="a", cpu="2", memory="1Gi")]
    found = ask(plugin, make_pod("p", cpu="500m", memory="1Gi"), nodes, pods, ARGS.get(plugin))
    asked = found.plugin
    body = watched(asked.handle.clock.wall(), a=(20, 5, 30), b=(50, 20, 10), c=(99, 1, 90))
    asked.usage.accept(load_watcher.read(body), asked.handle)
    scores = found.raw_scores()
    assert scores["unmeasured"] == 0
    assert scores["a"] > 0


@pytest.mark.parametrize(
    ("plugin", "load", "chosen"),
    [
        ("TargetLoadPacking", {"a": (5, 0, 0), "b": (10, 0, 0), "c": (60, 0, 0)}, "b"),
        ("LoadVariationRiskBalancing", {"a": (20, 40, 0), "b": (20, 5, 0), "c": (60, 5, 0)}, "b"),
        ("LowRiskOverCommitment", {"a": (90, 5, 10), "b": (5, 1, 10), "c": (60, 30, 10)}, "b"),
        ("Peaks", {"a": (5, 0, 0), "b": (60, 0, 0), "c": (30, 0, 0)}, "b"),
    ],
)
def test_the_plugin_decides_where_a_pod_goes(plugin, load, chosen):
    with cluster_with(plugin) as cluster:
        cluster.add(*(make_node(name) for name in load))
        bursting = make_container("c", cpu="400m", memory="2Gi", limits={"cpu": "4"})
        cluster.add(*(make_pod(f"on-{name}", node=name, containers=[bursting]) for name in load))
        cluster.settle()
        measure(cluster, **load)
        cluster.add(make_pod("p", cpu="100m", memory="100Mi"))
        cluster.settle()
        assert cluster.node_of("p") == chosen
        cluster.add(make_pod(f"p{number}", cpu="100m", memory="100Mi") for number in range(10))
        cluster.settle()  # reused answers are compared with fresh ones
        assert cluster.pending() == []


def test_pods_that_are_not_measured_yet_count_towards_the_target():
    with cluster_with("TargetLoadPacking", {"targetUtilization": 50}) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        cluster.settle()
        measure(cluster, a=(10, 0, 0), b=(0, 0, 0))
        cluster.add(make_pod(f"p{number}", cpu="200m") for number in range(10))  # 300m each are expected
        cluster.settle()
        placed = list(cluster.bound().values())
        # `a` is filled up to half of its 4 cpus: 5 times 7.5 % on top of 10 %.
        assert (placed.count("a"), placed.count("b")) == (5, 5)
        cluster.settle(120)
        measure(cluster, a=(10, 0, 0), b=(0, 0, 0))  # the pods use nothing
        cluster.add(make_pod("late", cpu="200m"))
        cluster.settle()
        assert cluster.node_of("late") == "a"


def test_metrics_that_are_too_old_count_as_missing():
    with cluster_with("TargetLoadPacking", {"metricProvider": {"intervalSeconds": 60}}) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        cluster.settle()
        measure(cluster, a=(30, 0, 0))
        cluster.settle(200)
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.record("p").scores[0].node == "a"
        cluster.settle(400)
        cluster.add(make_pod("q"))
        cluster.settle()
        parts = [part for top in cluster.record("q").scores for part in top.plugins]
        assert {part.raw for part in parts if part.plugin == "TargetLoadPacking"} == {0}


def test_without_deviations_of_the_source_those_of_the_samples_count():
    found = ask("LoadVariationRiskBalancing", make_pod("p", cpu="100m"), [make_node("a"), make_node("b")])
    plugin = found.plugin
    for steady, varying in ((20, 5), (20, 35), (20, 5), (20, 35)):
        body = watched(plugin.handle.clock.wall(), a=(steady, 0, 10), b=(varying, 0, 10))
        for node in body["data"]["NodeMetricsMap"].values():
            node["metrics"] = [metric for metric in node["metrics"] if metric["operator"] == "AVG"]
        sample = load_watcher.read(body)
        values = {name: values for name, values in sample.values.items() if "deviation" not in name}
        plugin.usage.accept(type(sample)(sample.names, values, sample.taken), plugin.handle)
    scores = found.raw_scores()
    assert scores["a"] > scores["b"]


def test_a_pod_without_requests_and_limits_is_not_the_business_of_low_risk_over_commitment():
    found = ask("LowRiskOverCommitment", make_pod("p"), [make_node("a")])
    plugin = found.plugin
    plugin.usage.accept(load_watcher.read(watched(plugin.handle.clock.wall(), a=(1, 1, 1))), plugin.handle)
    assert found.raw_scores() == {"a": 0}


SHARES = st.floats(0, 1) | st.sampled_from([0.0, 1.0])


@given(SHARES, st.floats(0, 2), SHARES, SHARES)
def test_the_risk_by_load_of_one_node_is_that_of_all(requested, limited, mean, spread):
    spread = min(spread, (0.99 * mean * (1 - mean)) ** 0.5)
    arrays = (np.array([each], dtype=float) for each in (requested, limited, mean, spread))
    assert within_all(*arrays)[0] == pytest.approx(within(requested, limited, mean, spread), abs=1e-9)


def test_power_models_may_be_in_a_file(tmp_path, monkeypatch):
    file = tmp_path / "models.json"
    file.write_text(json.dumps(MODELS))
    monkeypatch.setenv("NODE_POWER_MODEL", str(file))
    found = ask("Peaks", make_pod("p", cpu="1"), [make_node("a")], args={})
    plugin = found.plugin
    plugin.usage.accept(load_watcher.read(watched(plugin.handle.clock.wall(), a=(20, 0, 0))), plugin.handle)
    assert found.raw_scores()["a"] > 0


def case(plugin, nodes, requests, args=None):
    return {
        "id": 1,
        "plugin": plugin,
        "input": {
            "nodes": [
                {"metadata": {"name": name}, "status": {"capacity": size, "allocatable": size}}
                for name in ("a", "b", "c")
                for size in [{"cpu": "4", "memory": "16Gi", "pods": "110"}]
            ],
            "pod": {
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
            },
            "metrics": watched(**nodes),
            "args": {plugin: args or {}},
        },
    }


@pytest.mark.parametrize(
    ("load", "requests", "models", "expected"),
    [
        ({"a": (20, 0, 0), "b": (95, 0, 0)}, {"cpu": "1"}, MODELS, {"a": 100, "b": 0, "c": 0}),
        ({"a": (20.3, 0, 0), "b": (35.7, 0, 0), "c": (0.7, 0, 0)}, {}, MODELS, {"a": 0, "b": 0, "c": 0}),
        (
            {"a": (20, 0, 0), "b": (40, 0, 0)},
            {"cpu": "1"},
            {"a": {"k1": 1, "k2": 0.3}, "b": {"k1": 1, "k2": 0.1}},
            {"a": 0, "b": 100, "c": 0},
        ),
    ],
    ids=["full or not measured", "no request, no increase", "an increase above 64 bits"],
)
def test_peaks_gives_right_answers_where_the_go_plugin_does_not(load, requests, models, expected):
    answer = evaluate_plugin(case("Peaks", load, requests, {"nodePowerModel": models}))
    assert answer["plugins"]["Peaks"]["score"] == expected


@pytest.mark.parametrize(
    ("plugin", "args", "path"),
    [
        ("TargetLoadPacking", {"targetUtilization": 150}, "targetUtilization"),
        ("TargetLoadPacking", {"defaultRequestsMultiplier": "much"}, "defaultRequestsMultiplier"),
        ("TargetLoadPacking", {"watcherAddress": "load-watcher:2020"}, "watcherAddress"),
        ("LoadVariationRiskBalancing", {"metricProvider": {"type": "SignalFx"}}, "metricProvider.type"),
        ("LowRiskOverCommitment", {"riskLimitWeight": {}}, "riskLimitWeight"),
        ("Peaks", {}, "nodePowerModel"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_their_place(plugin, args, path, monkeypatch):
    monkeypatch.delenv("NODE_POWER_MODEL", raising=False)
    with pytest.raises(ConfigError) as caught:
        configure(enabling(plugin, args))
    assert [problem.path for problem in caught.value.problems] == [f"profiles[0].pluginConfig[0].args.{path}"]


def test_values_that_the_go_plugins_replace_by_their_defaults_are_replaced():
    args = {"smoothingWindowSize": 0, "riskLimitWeights": {"cpu": 2, "memory": 0.25}}
    profile = configure(enabling("LowRiskOverCommitment", args)).profiles[0]
    found = profile.plugin_args["LowRiskOverCommitment"]
    assert (found.smoothing_window_size, found.risk_limit_weights) == (5, {"cpu": 0.5, "memory": 0.25})  # type: ignore[attr-defined]
