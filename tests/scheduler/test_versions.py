"""What a scheduler that emulates 1.36 does differently from one of 1.37: texts, queue, preemption, binding, metrics."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import NODES as NODES_KIND
from moorage.api.resources import PODS
from moorage.api.versions import BEHAVIOURS
from moorage.app.configuration import EMPTY, configure
from moorage.framework import ActionType, ClusterEvent, FilterPlugin, PreBindPlugin, Registration, Status
from moorage.framework.events import NODE
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.state.ranking import PodRanking, VictimColumns
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_pdb

BOTH = pytest.mark.parametrize("version", BEHAVIOURS)


@pytest.fixture
def cluster_of(moorage_cluster):
    def make(version: str, text: str = EMPTY, **options: Any) -> Any:
        plugins = options.pop("plugins", ())
        config = configure(text, plugins=plugins, discover=False, emulated_version=version)
        return moorage_cluster(config=config, flush_after=None, **options)

    return make


def message_of(cluster, name):
    [event, *_] = cluster.events(name, "FailedScheduling")
    return event.note


CLAIMS = {"1.36": "no new claims to deallocate, ", "1.37": ""}
NODES = [make_node(f"n{i}", cpu="4") for i in range(2)]


@BOTH
def test_the_message_of_a_pod_that_no_preemption_helps(cluster_of, version):
    cluster = cluster_of(version)
    cluster.add(*NODES, *(make_pod(f"p{i}", node=f"n{i}", cpu="4", priority=10) for i in range(2)))
    cluster.add(make_pod("p", cpu="1", priority=10))
    cluster.settle(0.5)
    assert message_of(cluster, "p") == (
        f"0/2 nodes are available: 2 Insufficient cpu. {CLAIMS[version]}preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod."
    )


@BOTH
def test_a_successful_preemption_says_where_and_how_many_since_1_37(cluster_of, version):
    cluster = cluster_of(version)
    low = [make_pod(f"low-{i}", node="n", cpu="2", priority=0, termination_grace_period_seconds=30) for i in range(2)]
    cluster.add(make_node("n", cpu="4"), *low, make_pod("p", cpu="4", priority=10))
    cluster.settle(0.5)
    more = " preemption: found a potential placement for pod on node n, preempting 2 victims"
    assert (
        message_of(cluster, "p") == f"0/1 nodes are available: 1 Insufficient cpu.{more if version == '1.37' else ''}"
    )


@BOTH
def test_an_overdrawn_budget_ends_the_check_since_1_37(version):
    """The victim violates the first budget. Up to 1.36 it used up the second one nevertheless."""
    budgets = [make_pdb("a", {"app": "web"}, allowed=0), make_pdb("b", {"tier": "front"}, allowed=1)]
    both = make_pod("both", labels={"app": "web", "tier": "front"}, node="n", priority=2)
    other = make_pod("other", labels={"tier": "front"}, node="n", priority=1)
    found = ClusterBudgets(budgets, BEHAVIOURS[version])
    victims = [both, other] if version == "1.36" else [both]
    assert found.spent([both, other])[1] == victims
    mask = found.violating(VictimColumns([PodRanking((pod, {}) for pod in (both, other)).below(99)]))
    assert mask is not None
    assert mask.tolist() == [True, version == "1.36"]


@pytest.mark.parametrize("effect", [faults.server_error(500), faults.server_error(503), faults.not_sent()])
@pytest.mark.parametrize(("version", "failures", "binds"), [("1.37", 3, 4), ("1.37", 4, 5)])
def test_a_bind_is_sent_again_after_a_transient_error_since_1_37(cluster_of, version, effect, failures, binds):
    cluster = cluster_of(version)
    cluster.faults.add(Fault(verb="bind", effect=effect, times=failures))
    cluster.add(make_node("n"), make_pod("p"))
    cluster.settle(20)
    assert cluster.node_of("p") == "n"
    assert len(cluster.faults.calls_of("bind")) == binds
    reasons = [event.reason for event in cluster.events("p")]
    assert reasons == (["Scheduled"] if failures < 4 else ["FailedScheduling", "Scheduled"])


def test_up_to_1_36_a_bind_is_sent_once(cluster_of):
    cluster = cluster_of("1.36")
    cluster.faults.add(Fault(verb="bind", effect=faults.server_error(503), times=1))
    cluster.add(make_node("n"), make_pod("p"))
    cluster.settle(20)
    assert [event.reason for event in cluster.events("p")] == ["FailedScheduling", "Scheduled"]


def test_a_bind_that_happened_although_the_server_failed_is_a_conflict_that_reading_settles(cluster_of):
    cluster = cluster_of("1.37")
    effect = dataclasses.replace(faults.server_error(500), applied=True)
    cluster.faults.add(Fault(verb="bind", effect=effect, times=1))
    cluster.add(make_node("n"), make_pod("p"))
    cluster.settle(20)
    assert (cluster.node_of("p"), [event.reason for event in cluster.events("p")]) == ("n", ["Scheduled"])
    assert len(cluster.faults.calls_of("get", PODS)) == 1


@BOTH
def test_labels_of_events_about_pending_pods(cluster_of, version):
    cluster = cluster_of(version)
    pod = make_pod("p", node_selector={"disk": "ssd"})
    cluster.add(make_node("n", taints=["a:NoSchedule"]), make_pod("q"))
    cluster.add(pod)
    cluster.settle()
    cluster.patch(PODS, "q", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, "default")
    cluster.settle(30)
    woken = [record.woken_by for record in cluster.scheduler.records if record.pod == "default/q"]
    expected = {
        "1.36": ["UnschedulablePodAdd", "UnschedulablePodUpdatePodToleration"],
        "1.37": ["UnscheduledPodAdd", "TargetPodUpdatePodToleration"],
    }
    assert woken == expected[version]


class WantsNewNodes(FilterPlugin):
    """Refuses every node, and waits for new ones."""

    name = "WantsNewNodes"

    def filter(self, state, pod, node):
        return Status.unschedulable("too old")

    def events_to_register(self):
        return [Registration(ClusterEvent(NODE, ActionType.ADD))]


ENABLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: WantsNewNodes}]}}}]
"""


@BOTH
def test_a_changed_taint_wakes_only_plugins_that_asked_for_it_since_1_37(cluster_of, version):
    cluster = cluster_of(version, ENABLED, plugins=[WantsNewNodes])
    cluster.add(make_node("n"), make_pod("p"))
    cluster.settle(60)
    before = len(cluster.scheduler.records)
    cluster.patch(NODES_KIND, "n", {"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}})
    cluster.settle(60)
    assert (len(cluster.scheduler.records) > before) is (version == "1.36")


@BOTH
def test_the_nomination_of_a_gated_pod_holds_its_space_since_1_37(cluster_of, version):
    cluster = cluster_of(version)
    gated = make_pod("gated", cpu="4", priority=10, gates=["later"], nominated="n")
    cluster.add(make_node("n", cpu="4"), gated)
    cluster.settle()
    cluster.add(make_pod("low", cpu="1", priority=0))
    cluster.settle(1)
    assert cluster.node_of("low") == ("n" if version == "1.36" else "")


class Slow(PreBindPlugin):
    """Holds one pod in PreBind for long."""

    name = "Slow"

    async def pre_bind(self, state, pod, node_name):
        if pod.name == "slow":
            await self.handle.clock.sleep(1000)


@BOTH
def test_a_victim_in_memory_lets_the_preemptor_go_at_once_since_1_37(cluster_of, version):
    """Up to 1.36 the preemptor waited for its backoff after the event."""
    cluster = cluster_of(version, ENABLED.replace("WantsNewNodes", "Slow"), plugins=[Slow])
    cluster.add(make_node("n", cpu="4"), make_pod("slow", cpu="4", priority=0))
    cluster.settle(1)
    cluster.add(make_pod("blocker", cpu="1", priority=5, node_selector={"no": "where"}))
    cluster.add(make_pod("high", cpu="4", priority=10))
    cluster.settle(3)
    assert cluster.node_of("high") == "n"
    assert cluster.faults.calls_of("delete", PODS) == []
    [_, second] = [record for record in cluster.scheduler.records if record.pod == "default/high"]
    assert (second.woken_by == "ForceActivate") is (version == "1.37")


def test_a_reload_does_not_change_the_emulated_version(cluster_of):
    cluster = cluster_of("1.36")
    cluster.add(make_node("n"))
    cluster.settle()
    with pytest.raises(MoorageError, match=r"read for kube-scheduler 1.37, but this scheduler emulates 1.36"):
        cluster.run(cluster.scheduler.reload(configure(discover=False, emulated_version="1.37")))
    cluster.run(cluster.scheduler.reload(None))
    assert cluster.scheduler.configuration.behaviour == BEHAVIOURS["1.36"]
    assert cluster.scheduler.engine.services.cluster.behaviour == BEHAVIOURS["1.36"]


@BOTH
def test_metrics_of_entities_and_the_level_of_timings(version):
    metrics = SchedulerMetrics(lambda: 0.0, BEHAVIOURS[version])
    metrics.came("active", "NodeAdd")
    metrics.waiting({"active": 2, "gated": 1})
    families: dict[str, Any] = {family.name: family for family in metrics.families()}
    since = {"scheduler_queued_entities", "scheduler_queue_incoming_entities_total"}
    assert since & families.keys() == (since if version == "1.37" else set())
    level = "[ALPHA]" if version == "1.36" else "[BETA]"
    for name in ("scheduler_plugin_execution_duration_seconds", "scheduler_scheduling_algorithm_duration_seconds"):
        assert families[name].help.startswith(level)
    queues = {labels[0]: value for labels, value in families["scheduler_pending_pods"].samples().items()}
    empty = {} if version == "1.36" else {"incomplete": 0, "pending": 0}
    assert queues == {"active": 2, "gated": 1, **empty}
    if version == "1.37":
        entities = dict(families["scheduler_queue_incoming_entities_total"].samples())
        assert entities == {("active", "NodeAdd", "pod"): 1}
