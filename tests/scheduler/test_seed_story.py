"""The story of the sample plugin: refused everywhere, then scheduled because a node got its label."""

from __future__ import annotations

import logging

import pytest

from moorage.framework import FilterPlugin, Status
from moorage.telemetry import logs
from moorage.testing import make_node, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: sample-scheduler
  plugins:
    filter:
      enabled: [{name: sample}]
"""


class Sample(FilterPlugin):
    name = "sample"

    def filter(self, state, pod, node):
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")
        return None


@pytest.fixture
def cluster(moorage_cluster):
    # No flush: only an event can bring the pod back.
    cluster = moorage_cluster(config=CONFIG, plugins=[Sample], flush_after=None)
    cluster.add(
        make_node("k8s"),
        make_node("node1"),
        make_node("node2", taints=["node.kubernetes.io/unreachable:NoSchedule"]),
        make_node("node3", unschedulable=True),
        make_pod("test", scheduler="sample-scheduler"),
        make_pod("other", scheduler="default-scheduler"),
    )
    cluster.settle()
    return cluster


def test_the_pod_stays_pending_and_the_event_says_why(cluster):
    message = (
        "0/4 nodes are available: 1 Node: k8s, 1 Node: node1, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable."
    )
    (event,) = cluster.events("test")
    assert (event.type, event.reason) == ("Warning", "FailedScheduling")
    assert event.note.startswith(message), "what PostFilter adds comes behind it"
    reporter = ("sample-scheduler", "sample-scheduler-test")
    assert (event.reporting_controller, event.reporting_instance) == reporter
    (condition,) = cluster.pod("test").status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message == event.note


def test_the_pod_rests_until_something_changes(cluster):
    cluster.settle(3600)
    assert cluster.record("test").attempt == 1
    where = cluster.scheduler.where(cluster.pod("test"))
    assert where.place == "unschedulable"
    assert "sample" in where.why


def test_the_label_brings_it_back_and_no_timer_does(cluster):
    before = cluster.clock.now()
    cluster.label_node("node1", cpu="true")
    cluster.settle(0.1)
    assert cluster.node_of("test") == "node1"
    assert cluster.clock.now() - before < 0.5
    record = cluster.record("test")
    assert (record.woken_by, record.woken_hint) == ("NodeUpdateNodeLabel", "sample")
    assert cluster.events("test")[-1].note == "Successfully assigned default/test to node1"


def test_pods_of_other_schedulers_are_not_touched(cluster):
    assert cluster.node_of("other") == ""
    assert cluster.events("other") == []
    assert cluster.scheduler.where(cluster.pod("other")) is None


def test_the_record_tells_why_each_node_was_refused(cluster):
    record = cluster.record("test")
    assert record.result == "unschedulable"
    assert record.refusal_of("node1").reasons == ("Node: node1",)
    assert record.refusal_of("node2").plugin == "TaintToleration"
    assert record.refusal_of("node3").plugin == "NodeUnschedulable"
    assert {(r.plugin, r.nodes) for r in record.refusals} == {
        ("NodeUnschedulable", 1),
        ("TaintToleration", 1),
        ("sample", 1),
    }


def test_the_log_tells_the_story_in_the_lines_of_kube_scheduler(caplog, moorage_cluster):
    caplog.set_level(logging.INFO - 4, logger="moorage")
    cluster = moorage_cluster(config=CONFIG, plugins=[Sample], flush_after=None)
    cluster.add(make_node("node1"), make_pod("test", scheduler="sample-scheduler"))
    cluster.settle()
    cluster.label_node("node1", cpu="true")
    cluster.settle()
    cluster.delete(cluster.pod("test"))
    cluster.settle()
    wanted = (
        "Add event for node",
        "Add event for unscheduled pod",
        "Attempting to schedule pod",
        "Unable to schedule pod; no fit; waiting",
        "Updating pod condition",
        "Update event for node",
        "Attempting to bind pod to node",
        "Delete event for unscheduled pod",
        "Add event for scheduled pod",
        "Delete event for scheduled pod",
    )
    said = [record.message for record in caplog.records]
    first = [said.index(line) if line in said else line for line in wanted]
    assert first == sorted(first, key=lambda place: (isinstance(place, str), place)), dict(
        zip(wanted, first, strict=True)
    )
    [updating] = [record for record in caplog.records if record.message == "Updating pod condition"]
    values = {"conditionType": "PodScheduled", "conditionStatus": "False", "conditionReason": "Unschedulable"}
    assert values.items() <= vars(updating)[logs.VALUES].items()
