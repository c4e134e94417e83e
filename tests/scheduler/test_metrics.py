"""After a scenario the metrics have kube-scheduler's names, labels and buckets, and the right numbers."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from moorage.api.resources import NODES, PODS
from moorage.app.scheduler import Scheduler
from moorage.config.gates import DEFAULT_GATES
from moorage.framework import PermitPlugin, Status
from moorage.run import metrics as process_metrics
from moorage.telemetry.instruments import Exposed, exponential
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import Cluster, make_node, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Waits}]}}
"""

# Name: (labels, buckets), as kube-scheduler has them.
HISTOGRAMS = {
    "scheduler_scheduling_attempt_duration_seconds": (("profile", "result"), exponential(0.001, 2, 15)),
    "scheduler_framework_extension_point_duration_seconds": (
        ("extension_point", "profile", "status"),
        exponential(0.0001, 2, 12),
    ),
    "scheduler_plugin_execution_duration_seconds": (
        ("extension_point", "plugin", "status"),
        exponential(0.00001, 1.5, 20),
    ),
    "scheduler_scheduling_algorithm_duration_seconds": ((), exponential(0.001, 2, 15)),
    "scheduler_pod_scheduling_sli_duration_seconds": (("attempts",), exponential(0.01, 2, 20)),
    "scheduler_pod_scheduling_attempts": ((), exponential(1, 2, 5)),
    "scheduler_preemption_victims": ((), exponential(1, 2, 7)),
    "scheduler_preemption_goroutines_duration_seconds": (("result",), exponential(0.01, 2, 20)),
    "scheduler_permit_wait_duration_seconds": (("result",), exponential(0.001, 2, 15)),
    "scheduler_event_handling_duration_seconds": (("event",), exponential(0.0001, 2, 12)),
    "scheduler_queueing_hint_execution_duration_seconds": (("event", "hint", "plugin"), exponential(0.00001, 1.5, 20)),
}
COUNTERS = {
    "scheduler_schedule_attempts": ("profile", "result"),
    "scheduler_plugin_evaluation": ("extension_point", "plugin", "profile"),
    "scheduler_queue_incoming_pods": ("event", "queue"),
    "scheduler_queue_incoming_entities": ("event", "queue", "type"),
    "scheduler_preemption_attempts": (),
    "scheduler_preemption_goroutines_execution": ("result",),
    "scheduler_pod_scheduled_after_flush": (),
}
GAUGES = {
    "scheduler_pending_pods": ("queue",),
    "scheduler_queued_entities": ("queue", "type"),
    "scheduler_unschedulable_pods": ("plugin", "profile"),
    "scheduler_goroutines": ("operation",),
    "scheduler_cache_size": ("type",),
    "kubernetes_build_info": None,
    "kubernetes_feature_enabled": ("name", "stage"),
}
STABLE = (
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_attempt_duration_seconds",
    "scheduler_framework_extension_point_duration_seconds",
    "scheduler_pending_pods",
    "scheduler_queue_incoming_pods_total",
    "scheduler_pod_scheduling_attempts",
    "scheduler_preemption_victims",
    "scheduler_preemption_attempts_total",
)


class Waits(PermitPlugin):
    """Holds pods that say so for a second."""

    name = "Waits"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=1.0) if "waits" in pod.labels else None


class Measured(Cluster):
    """A cluster whose scheduler is measured."""

    def _make_scheduler(self) -> Scheduler:
        self.metrics = SchedulerMetrics(self.clock.now)
        return Scheduler(
            self.client, clock=self.clock, random=self.random, instance="test", metrics=self.metrics, **self._options
        )

    def __enter__(self) -> Measured:
        return self

    def families(self):
        process_metrics.refresh(self.metrics, self.scheduler.engine, self.scheduler.recorder)
        registry = CollectorRegistry()
        registry.register(Exposed(self.metrics.families()))
        self.text = generate_latest(registry).decode()
        return {family.name: family for family in text_string_to_metric_families(self.text)}


@pytest.fixture(scope="module")
def scenario():
    """Scheduled, refused, gated, preempting, waiting and failing pods."""
    with Measured(config=CONFIG, plugins=[Waits], seed=3) as cluster:
        process_metrics.describe(cluster.metrics, DEFAULT_GATES)
        cluster.add(make_node("a", cpu="2"), make_node("b", cpu="2"))
        for number in range(10):
            cluster.add(make_pod(f"small-{number}", cpu="100m"))
        cluster.settle(5)
        cluster.add(make_pod("huge", cpu="64"))
        cluster.add(make_pod("gated", gates=["example.com/wait"]))
        cluster.add(make_pod("important", cpu="1900m", priority=1000))
        cluster.add(make_pod("held", labels={"waits": "yes"}, priority=2000))
        cluster.settle(20)
        for number in range(0, 10, 2):  # the kubelet's part: the victims end
            gone = cluster.client.delete(PODS, f"small-{number}", namespace="default", grace_period=0)
            cluster.run(gone)
        cluster.settle(20)
        families = cluster.families()
        yield cluster, families


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(scenario, name):
    labels, bounds = HISTOGRAMS[name]
    family = scenario[1][name]
    assert family.type == "histogram"
    buckets = [sample for sample in family.samples if sample.name.endswith("_bucket")]
    assert buckets, "there are samples"
    assert {tuple(sorted(sample.labels.keys() - {"le"})) for sample in buckets} == {labels}
    first = {key: value for key, value in buckets[0].labels.items() if key != "le"}
    edges = [float(s.labels["le"]) for s in buckets if first.items() <= s.labels.items()]
    assert edges == [*bounds, float("inf")]


@pytest.mark.parametrize("name", COUNTERS)
def test_counters(scenario, name):
    family = scenario[1][name]
    assert family.type == "counter"
    assert {tuple(sorted(sample.labels)) for sample in family.samples} == {COUNTERS[name]}


@pytest.mark.parametrize("name", GAUGES)
def test_gauges(scenario, name):
    family = scenario[1][name]
    assert family.type == "gauge"
    assert family.samples
    if GAUGES[name] is not None:
        assert {tuple(sorted(sample.labels)) for sample in family.samples} == {GAUGES[name]}


@pytest.mark.parametrize("name", STABLE)
def test_the_help_text_begins_with_the_stability(scenario, name):
    assert f"# HELP {name} [STABLE] " in scenario[0].text


def value(families, family, name="", **labels):
    name = name or family
    found = [s for s in families[family].samples if s.name == name and labels.items() <= s.labels.items()]
    return sum(sample.value for sample in found)


def test_the_numbers_are_right(scenario):
    cluster, found = scenario
    bound = len(cluster.bound())
    attempts = "scheduler_schedule_attempts"
    assert value(found, attempts, f"{attempts}_total", result="scheduled") >= bound
    assert value(found, attempts, f"{attempts}_total", result="unschedulable") >= 2
    assert value(found, "scheduler_pending_pods", queue="gated") == 1
    assert value(found, "scheduler_pending_pods", queue="unschedulable") >= 1
    assert value(found, "scheduler_unschedulable_pods", plugin="NodeResourcesFit") >= 1
    assert value(found, "scheduler_unschedulable_pods", plugin="SchedulingGates") == 1
    assert value(found, "scheduler_cache_size", type="nodes") == 2
    assert value(found, "scheduler_cache_size", type="assumed_pods") == 0
    victims = "scheduler_preemption_victims"
    assert value(found, victims, f"{victims}_sum") >= 1
    assert value(found, "scheduler_permit_wait_duration_seconds", "scheduler_permit_wait_duration_seconds_count") >= 1
    incoming = "scheduler_queue_incoming_pods"
    assert value(found, incoming, f"{incoming}_total", event="UnscheduledPodAdd", queue="active") == 13
    flushed = "scheduler_pod_scheduled_after_flush"
    assert value(found, flushed, f"{flushed}_total") == 0
    points = {
        sample.labels["extension_point"]
        for sample in found["scheduler_framework_extension_point_duration_seconds"].samples
        if sample.name.endswith("_count") and sample.value
    }
    assert points >= {
        "PreEnqueue", "PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Permit",
        "PreBindPreFlight", "PreBind", "Bind", "PostBind", "Sign",
    }  # fmt: skip
    evaluated = "scheduler_plugin_evaluation"
    assert value(found, evaluated, f"{evaluated}_total", plugin="NodeResourcesFit", extension_point="Filter") > 0
    lag = "moorage_watch_lag_seconds"
    assert value(found, lag, f"{lag}_count") == value(found, attempts, f"{attempts}_total", result="scheduled")


def test_no_label_names_a_pod_or_a_node(scenario):
    text = scenario[0].text
    assert "small-1" not in text
    assert 'node="a"' not in text


def test_series_do_not_grow_with_the_number_of_pods():
    with Measured(seed=1) as cluster:
        cluster.add(make_node("a", cpu="64", pods=500))
        counts = []
        for batch in range(3):
            cluster.add([make_pod(f"p-{batch}-{i}", cpu="10m") for i in range(40)])
            cluster.settle(5)
            counts.append(sum(len(family.samples) for family in cluster.families().values()))
        assert counts[1] == counts[2]


def test_an_exception_of_a_plugin_is_counted():
    class Broken(PermitPlugin):
        name = "Waits"

        def permit(self, state, pod, node_name):
            raise RuntimeError("boom")

    with Measured(config=CONFIG, plugins=[Broken]) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(0.5)
        assert cluster.metrics.plugin_failures.samples()[("Waits", "Permit")] >= 1


def test_a_lost_answer_is_counted_with_what_turned_out_to_be_true():
    from moorage.store import faults
    from moorage.store.faults import Fault

    with Measured() as cluster:
        cluster.faults.add(Fault(verb="bind", effect=faults.lost_answer(), times=1))
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(2)
        assert cluster.metrics.unknown_binds.samples() == {("bound_here",): 1}


def test_rows_are_those_of_kube_scheduler():
    """Plugins have their evaluations from the start, those that refuse no pod any more stay at 0, what never
    happened has no histogram, and bounds are written as Go writes them."""
    with Measured() as cluster:
        cluster.add(make_node("a"), make_pod("p", node_selector={"disk": "ssd"}))
        cluster.settle(2)
        cluster.patch(NODES, "a", {"metadata": {"labels": {"disk": "ssd"}}})
        cluster.settle(5)
        assert cluster.node_of("p") == "a"
        found, text = cluster.families(), cluster.text
    evaluated = "scheduler_plugin_evaluation"
    counts = {
        plugin: value(found, evaluated, f"{evaluated}_total", plugin=plugin, extension_point="PreFilter")
        for plugin in ("NodeAffinity", "NodePorts")
    }
    assert counts == {"NodeAffinity": 2, "NodePorts": 0}, "one that skips was not asked"
    assert value(found, "scheduler_unschedulable_pods", plugin="NodeAffinity") == 0
    points = {
        (sample.labels["extension_point"], sample.labels["status"])
        for sample in found["scheduler_framework_extension_point_duration_seconds"].samples
    }
    assert ("PreBindPreFlight", "Skip") in points
    assert ("PreBind", "Success") in points
    assert "Unreserve" not in {point for point, _ in points}
    assert 'scheduler_pod_scheduling_attempts_bucket{le="16"}' in text
