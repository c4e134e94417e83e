"""LowCpuScheduler: thresholds, scores, what is not measured yet, and what is not measured any more."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.times import format_time
from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.contrib.metrics import Sample
from moorage.contrib.metrics.metrics_server import NODE_METRICS
from moorage.store.faults import Fault, not_found
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.configs import enabling
from tests.plugins.one_plugin import ask

NAN = float("nan")


def usage(cluster, **percent):
    """What the metrics server says from now on; nodes have 4 cpus and 16 GiB."""
    known = {stored.name for stored in cluster.store.list(NODE_METRICS).items}
    for name, (cpu, memory) in percent.items():
        measured = {
            "timestamp": format_time(cluster.clock.wall()), "window": "0s",
            "usage": {"cpu": f"{cpu * 40}m", "memory": f"{memory * 16 * 1024 // 100}Mi"},
        }  # fmt: skip
        if name in known:
            cluster.patch(NODE_METRICS, name, measured)
        else:
            header = {"apiVersion": NODE_METRICS.api_version, "kind": NODE_METRICS.kind}
            cluster.add({**header, "metadata": {"name": name}, **measured})


def cluster_with(args=None, weight=1):
    without = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
    config = enabling("LowCpuScheduler", args, weight=weight, without=without)
    return Cluster(config=config, verify_reuse=True)


def asked(args=None, pods=(), nodes=None, **percent):
    """The plugin on nodes that were measured at this moment, in percent of cpu and memory."""
    nodes = nodes or [make_node(name) for name in percent]
    found = ask("LowCpuScheduler", make_pod("p"), nodes, pods, args)
    plugin = found.plugin
    values = {
        measure: np.array([pair[index] for pair in percent.values()], dtype=float)
        for index, measure in enumerate(("cpu", "memory"))
    }
    taken = np.full(len(nodes), plugin.handle.clock.wall())
    plugin.usage.accept(Sample(list(percent), values, taken), plugin.handle)
    return found


def reasons(found):
    return {name: reasons for name, (_, reasons) in found.refused().items()}


def test_nodes_above_a_threshold_are_refused_with_the_level_they_are_above():
    found = asked(a=(80, 90), b=(81, 91), c=(96, 10), d=(10, 99.9), e=(130, 10))
    assert reasons(found) == {
        "b": ("cpu usage too high: above 80%",),
        "c": ("cpu usage too high: above 95%",),
        "d": ("memory usage too high: above 97.5%",),
        "e": ("cpu usage too high: above 100%",),
    }


def test_the_least_used_node_scores_highest():
    assert asked(a=(0, 0), b=(20, 60), c=(100, 100)).raw_scores() == {"a": 100, "b": 60, "c": 0}
    weights = {"cpuWeight": 3, "memoryWeight": 1}
    assert asked(weights, a=(20, 60)).raw_scores() == {"a": 70}


def test_percentages_are_of_what_a_node_can_allocate():
    half = {"cpu": "2", "memory": "16Gi", "pods": "110"}
    found = asked(nodes=[make_node("a", allocatable=half)], a=(45, 0))
    assert reasons(found) == {"a": ("cpu usage too high: above 85%",)}
    assert found.raw_scores() == {"a": 55}


@pytest.mark.parametrize(
    ("when", "refused", "scores"),
    [
        ("Allow", {}, {"a": 100, "b": 0}),
        ("Refuse", {"b": ("cpu usage is not known",)}, {"a": 100, "b": 0}),
        ("UseRequests", {}, {"a": 100, "b": 75}),
    ],
)
def test_a_node_that_is_not_measured_is_treated_as_the_arguments_say(when, refused, scores):
    half = make_pod("half", node="b", cpu="2", memory="0")
    found = asked({"whenMissing": when}, [half], a=(0, 0), b=(NAN, NAN))
    assert reasons(found) == refused
    assert found.raw_scores() == scores


def test_values_that_are_too_old_count_as_missing():
    with cluster_with({"whenMissing": "Refuse", "metricsMaxAgeSeconds": 60}) as cluster:
        cluster.add(make_node("a"))
        usage(cluster, a=(10, 10))
        cluster.settle(20)
        cluster.faults.add(Fault(not_found(), verb="list", times=None))
        cluster.add(make_pod("p"))
        cluster.settle(30)
        assert cluster.node_of("p") == "a"
        cluster.settle(60)
        cluster.add(make_pod("q"))
        cluster.settle(5)
        assert cluster.events("q")[0].note.startswith("0/1 nodes are available: 1 cpu usage is not known.")
        cluster.faults.clear()
        usage(cluster, a=(10, 10))
        cluster.settle(60)
        assert cluster.node_of("q") == "a"
        assert cluster.record("q").woken_by == "NodeUsageUpdate"


def test_a_burst_between_two_measurements_spreads_and_stops_at_the_threshold():
    with cluster_with(weight=100) as cluster:
        cluster.add(make_node("busy"), make_node("idle"))
        usage(cluster, busy=(50, 10), idle=(10, 10))
        cluster.settle(16)
        cluster.add(make_pod("foreign", node="idle", cpu="800m"))  # placed by another scheduler
        cluster.settle()
        cluster.add(make_pod(f"p{n}", cpu="400m") for n in range(20))
        cluster.settle()
        placed = list(cluster.bound().values())
    # Pods of 10 % each, on nodes with 50 and 30 % in use, until more than 80 % are.
    assert placed.count("busy") == 4
    assert placed.count("idle") == 6 + 1


@pytest.mark.parametrize("pods_per_second", [200, 10], ids=["at once", "between measurements"])
def test_a_burst_on_many_nodes_is_spread_and_keeps_off_a_node_above_the_threshold(pods_per_second):
    nodes = [f"n{number}" for number in range(50)]
    with cluster_with() as cluster:
        cluster.add(make_node(name) for name in nodes)

        def measure():
            """Every 15 seconds: pods use what they request, 5 % of a node, beside 20 %; n0 is overloaded."""
            placed = [*cluster.bound().values()]
            usage(cluster, **{name: (20 + 5 * placed.count(name), 10) for name in nodes} | {"n0": (85, 10)})

        measure()
        cluster.settle(16)
        for second in range(200 // pods_per_second):
            burst = range(second * pods_per_second, (second + 1) * pods_per_second)
            cluster.add(make_pod(f"p{number}", cpu="200m") for number in burst)
            cluster.settle(1)
            if second % 15 == 14:
                measure()
        placed = [*cluster.bound().values()]
    assert (len(placed), placed.count("n0")) == (200, 0)
    assert max(map(placed.count, nodes)) <= 1.5 * len(placed) / len(nodes)


@pytest.mark.parametrize(
    ("when", "refusal"),
    [("Allow", ""), ("Refuse", "1 cpu usage is not known"), ("UseRequests", "1 cpu usage too high: above 85%")],
)
def test_without_metrics_the_fallback_applies_one_interval_after_the_age_limit(when, refusal):
    with cluster_with({"whenMissing": when, "metricsMaxAgeSeconds": 60}) as cluster:
        cluster.add(make_node("a"), make_pod("idle", node="a", cpu="3500m"))  # 87.5 % requested, 10 % used
        cluster.settle(1)
        usage(cluster, a=(10, 10))
        cluster.settle(15)
        cluster.faults.add(Fault(not_found(), verb="list", times=None))
        cluster.settle(60 - 16)
        cluster.add(make_pod("before", cpu="10m"))
        cluster.settle(1)
        assert cluster.node_of("before") == "a"
        cluster.settle(15)
        cluster.add(make_pod("after", cpu="10m"))
        cluster.settle(1)
        assert cluster.node_of("after") == ("" if refusal else "a")
        assert not refusal or refusal in cluster.events("after")[0].note


def test_an_unschedulable_pod_is_woken_when_a_node_is_measured_below_its_threshold_and_not_before():
    with cluster_with() as cluster:
        cluster.add(make_node("a"), make_node("b"))
        usage(cluster, a=(95, 10), b=(90, 10))
        cluster.settle(20)
        cluster.add(make_pod("p"))
        cluster.settle(100)
        assert cluster.record("p").attempt == 1
        usage(cluster, a=(85, 10), b=(70, 10))
        cluster.settle(30)
        assert cluster.node_of("p") == "b"
        assert cluster.record("p").woken_by == "NodeUsageUpdate"


def test_a_pod_that_was_refused_for_what_pods_request_is_woken_when_they_use_less():
    with cluster_with() as cluster:
        cluster.add(make_node("a"))
        usage(cluster, a=(10, 10))
        cluster.settle(16)
        cluster.add(make_pod("large", cpu="3900m"))
        cluster.settle()
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == ""
        cluster.settle(20)
        usage(cluster, a=(30, 10))  # the large pod included
        cluster.settle(20)
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").woken_by == "NodeUsageUpdate"


@pytest.mark.parametrize("point", ["filter", "score"])
def test_it_may_be_enabled_at_one_point_alone(point):
    config = json.loads(enabling("LowCpuScheduler"))
    config["profiles"][0]["plugins"] = {point: {"enabled": [{"name": "LowCpuScheduler", "weight": 100}]}}
    with Cluster(config=json.dumps(config)) as cluster:
        cluster.add(make_node("a"), make_node("b"))
        usage(cluster, a=(95, 10), b=(20, 10))
        cluster.settle(40)
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "b"


def test_an_average_looks_past_a_peak():
    args = {"window": {"function": "Average", "seconds": 60}}
    with cluster_with(args) as cluster:
        cluster.add(make_node("a"))
        usage(cluster, a=(20, 10))
        cluster.settle(46)
        usage(cluster, a=(95, 10))
        cluster.settle(14)
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.node_of("p") == "a"


def test_pods_that_came_while_an_average_was_taken_count_with_their_requests():
    args = {"window": {"function": "Average", "seconds": 120}}
    with cluster_with(args) as cluster:
        cluster.add(make_node("a"))
        for _ in range(8):
            usage(cluster, a=(10, 10))
            cluster.settle(15)
        cluster.add(make_pod("large", cpu="3"))
        cluster.settle(1)
        for number in range(12):
            usage(cluster, a=(70, 10))  # the large pod included; the average lags behind
            cluster.settle(15)
            cluster.add(make_pod(f"p{number}", cpu="0", memory="0"))
            cluster.settle(1)
        waited = [number for number in range(12) if cluster.record(f"p{number}").attempt > 1]
        assert waited == [*range(len(waited))]
        assert 6 <= len(waited) <= 10
        assert cluster.pending() == []


@given(
    st.lists(
        st.tuples(st.floats(0, 120) | st.just(NAN), st.floats(0, 120), st.integers(0, 5000)), min_size=1, max_size=5
    ),
    st.sampled_from(["Allow", "Refuse", "UseRequests"]),
)
def test_one_node_is_judged_as_all_nodes_are(cases, when):
    pods = [make_pod(f"pod-{n}", node=f"n{n}", cpu=f"{milli}m") for n, (_, _, milli) in enumerate(cases)]
    values = {f"n{number}": (cpu, memory) for number, (cpu, memory, _) in enumerate(cases)}
    found = asked({"whenMissing": when}, pods, **values)  # `refused` and `scores` compare all forms
    found.refused()
    found.raw_scores()


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"cpuThresholdPercent": 0}, "cpuThresholdPercent"),
        ({"memoryThresholdPercent": 101}, "memoryThresholdPercent"),
        ({"cpuWeight": -5}, "cpuWeight"),
        ({"cpuWeight": 0, "memoryWeight": 0}, "cpuWeight"),
        ({"metricsMaxAgeSeconds": 0}, "metricsMaxAgeSeconds"),
        ({"whenMissing": "Ignore"}, "whenMissing"),
        ({"window": {"function": "Median"}}, "window.function"),
        ({"window": {"function": "Percentile", "percentile": 0}}, "window.percentile"),
        ({"metricProvider": {"type": "Prometheus"}}, "metricProvider.address"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_their_place(args, path):
    with pytest.raises(ConfigError) as caught:
        configure(enabling("LowCpuScheduler", args))
    assert [problem.path for problem in caught.value.problems] == [f"profiles[0].pluginConfig[0].args.{path}"]
