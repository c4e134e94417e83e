"""What is remembered is never older, nor about another pod, than it may be."""

from __future__ import annotations

import pytest

from moorage.api.resources import PODS
from moorage.framework import FilterPlugin, Reads, ReusablePlugin, Status
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import make_nodes, make_pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    filter: {enabled: [{name: pinned}]}
"""


class Pinned(FilterPlugin, ReusablePlugin):
    """Reads an annotation, which no template and no other plugin's signature covers."""

    name = "pinned"

    def filter(self, state, pod, node):
        return None if pod.annotations.get("on") == node.name else Status.unschedulable("elsewhere")

    def reads(self, pod):
        return (Reads.NODE,)


class Signed(Pinned):
    def sign(self, pod):
        return pod.annotations.get("on", "")


class Unsigned(Pinned):
    def sign(self, pod):
        return None


@pytest.mark.parametrize("plugin", [Pinned, Signed, Unsigned])
def test_pods_that_differ_in_what_a_plugin_reads_do_not_share_its_answer(moorage_cluster, plugin):
    cluster = moorage_cluster(config=CONFIG, plugins=[plugin])
    cluster.add(make_nodes(2))
    cluster.settle()
    for number in range(8):
        on = f"node-{number // 4}"
        cluster.add(make_pod(f"p{number}", annotations={"on": on}))
        cluster.settle()
        assert cluster.node_of(f"p{number}") == on


def test_a_pod_that_changed_during_its_attempt_is_judged_as_it_is_now(moorage_cluster):
    """Two pods like the first, so that it is remembered; the third changes on its way to a node."""
    cluster = moorage_cluster(config=CONFIG, plugins=[Signed])
    cluster.add(make_nodes(2))
    cluster.settle()
    for number in range(3):
        cluster.add(make_pod(f"p{number}", annotations={"on": "node-0"}))
        cluster.settle()
    cluster.faults.add(Fault(verb="bind", effect=faults.lost_request(after=1), times=1))
    cluster.add(make_pod("late", annotations={"on": "node-0"}))
    cluster.settle(0.5)
    cluster.patch(PODS, "late", {"metadata": {"annotations": {"on": "node-1"}}}, namespace="default")
    cluster.settle(30)
    assert cluster.node_of("late") == "node-1"


class Breaks(Signed):
    """Fails for a node that has pods, which only the refreshed row has."""

    def filter(self, state, pod, node):
        if node.pods and pod.name == "third":
            raise RuntimeError("too crowded")
        return super().filter(state, pod, node)

    def reads(self, pod):
        return (Reads.NODE, Reads.ROW)


def test_a_failure_on_a_refreshed_row_names_the_plugin(moorage_cluster):
    cluster = moorage_cluster(config=CONFIG, plugins=[Breaks])
    cluster.add(make_nodes(2))
    cluster.settle()
    for name in ("first", "second", "third"):
        cluster.add(make_pod(name, annotations={"on": "node-0"}))
        cluster.settle()
    note = cluster.events("third")[0].note
    assert note.startswith('running "pinned" filter plugin: pod "default/third", node "node-0"')


def test_a_record_tells_only_of_refusals_that_hold(moorage_cluster):
    """The first pods fill the node one by one; records of later pods do not contain earlier reasons of the node."""
    cluster = moorage_cluster()
    cluster.add(make_nodes(1, cpu="2"))
    cluster.settle()
    for number in range(4):
        cluster.add(make_pod(f"p{number}", cpu="1"))
        cluster.settle()
    refusals = cluster.record("p3").to_dict()["refusals"]
    assert [(refusal["reasons"], refusal["nodes"]) for refusal in refusals] == [(["Insufficient cpu"], 1)]
    cluster.delete(cluster.pod("p0"))
    cluster.settle(3)
    bound = [name for name in ("p2", "p3") if cluster.node_of(name)]
    assert len(bound) == 1
    assert cluster.record(bound[0]).to_dict()["refusals"] == []
