"""Preemption with the real scheduler: who goes, what is written, and what the preemptor gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.resources import PODS
from moorage.framework import FilterPlugin, PermitPlugin, PreBindPlugin, ReusablePlugin, Status
from moorage.framework.access import Reads
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_pdb

NODE_A = make_node("a", cpu="4")


def victim(name, cpu="2", priority=0, grace=0, **options):
    """A pod that stops at once when it is deleted, unless it is given grace."""
    return make_pod(name, cpu=cpu, priority=priority, termination_grace_period_seconds=grace, **options)


def preemptor(name="high", cpu="2", priority=100, **options):
    return make_pod(name, cpu=cpu, priority=priority, **options)


def start(moorage_cluster, *objects, **options):
    cluster = moorage_cluster(flush_after=None, **options)
    cluster.add(NODE_A)
    for obj in objects:
        cluster.add(obj)
        cluster.settle()
    return cluster


def finish(cluster, name):
    """What a kubelet does when a pod has stopped."""
    cluster.store.delete(PODS, name, namespace="default", grace_period=0)
    cluster.settle(3)


def notes(cluster, name, reason=""):
    return [event.note for event in cluster.events(name, reason)]


def deletes(cluster):
    return [call.name for call in cluster.faults.calls_of("delete", PODS)]


def test_a_pod_of_high_priority_takes_the_place_of_lower_ones(moorage_cluster):
    cluster = start(moorage_cluster, victim("low-1"), victim("low-2", priority=5), preemptor())
    cluster.settle(5)
    assert cluster.pod("low-1") is None
    assert cluster.node_of("low-2") == "a"
    assert cluster.node_of("high") == "a"
    uid = cluster.pod("high").uid
    (event,) = cluster.events("low-1", "Preempted")
    assert (event.type, event.action) == ("Normal", "Preempting")
    assert event.note == f"Preempted by pod {uid} on node a"
    assert event.related.name == "high"
    assert notes(cluster, "high", "FailedScheduling") == [
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node a, "
        "preempting 1 victims"
    ]
    assert deletes(cluster) == ["low-1"]
    cluster.validate()


def test_the_victim_gets_an_event_and_the_preemptor_waits_nominated_until_it_is_gone(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30), preemptor(cpu="4"))
    low = cluster.pod("low")
    assert low.is_terminating
    (condition,) = [c for c in low.status.conditions if c.type == "DisruptionTarget"]
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert cluster.pod("high").nominated_node_name == "a"
    assert cluster.node_of("high") == ""
    finish(cluster, "low")
    assert cluster.node_of("high") == "a"
    cluster.validate()


def test_no_second_preemption_while_a_victim_terminates(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30), preemptor(cpu="4"))
    cluster.scheduler.engine.services.activate([cluster.pod("high")], "")
    cluster.settle(3)
    assert deletes(cluster) == ["low"]
    assert cluster.pod("high").nominated_node_name == "a", "the nomination is left alone"
    assert "preemption: not eligible due to a terminating pod on the nominated node." in notes(cluster, "high")[-1]


def test_a_pod_that_must_not_preempt_stays_pending(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4"), preemptor(preemption_policy="Never"))
    cluster.settle(5)
    assert cluster.node_of("low") == "a"
    assert deletes(cluster) == []
    assert notes(cluster, "high")[-1].endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_equal_priority_is_not_preempted(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", priority=100), preemptor())
    cluster.settle(5)
    assert deletes(cluster) == []
    assert notes(cluster, "high")[-1].endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_budget_is_respected_when_another_node_will_do(moorage_cluster):
    cluster = moorage_cluster(flush_after=None)
    cluster.add(NODE_A, make_node("b", cpu="4"), make_pdb("budget", {"app": "db"}, allowed=0))
    cluster.add(victim("db", cpu="4", node="a", labels={"app": "db"}))
    cluster.add(victim("web", cpu="4", node="b", priority=50))
    cluster.settle()
    cluster.add(preemptor())
    cluster.settle(5)
    assert deletes(cluster) == ["web"]
    assert cluster.node_of("high") == "b"


def test_a_budget_yields_when_nothing_else_helps(moorage_cluster):
    budget = make_pdb("budget", {"app": "db"}, allowed=0)
    cluster = start(moorage_cluster, budget, victim("db", cpu="4", labels={"app": "db"}), preemptor())
    cluster.settle(5)
    assert deletes(cluster) == ["db"]
    assert cluster.node_of("high") == "a"


def test_a_victim_recreated_under_its_name_is_not_deleted(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4"))
    cluster.faults.add(Fault(verb="delete", resource=PODS, effect=faults.delay(2), times=1))
    cluster.add(preemptor())
    cluster.settle(0.5)
    cluster.store.delete(PODS, "low", namespace="default", grace_period=0)
    cluster.add(victim("low", cpu="1", uid="another"))
    cluster.settle(10)
    assert cluster.pod("low").uid == "another"
    assert cluster.node_of("high") == "a"
    assert notes(cluster, "low", "Preempted") == []
    cluster.validate()


@pytest.mark.parametrize(
    "effect",
    [faults.conflict(), faults.server_error(500), faults.lost_answer(), faults.not_sent()],
    ids=["409", "500", "answer lost", "not sent"],
)
def test_a_delete_that_fails_does_not_strand_the_preemptor(moorage_cluster, effect):
    cluster = start(moorage_cluster, victim("low", cpu="4"))
    cluster.faults.add(Fault(verb="delete", resource=PODS, effect=effect, times=1))
    cluster.add(preemptor())
    cluster.settle(20)
    assert cluster.node_of("high") == "a"
    assert cluster.pod("low") is None
    cluster.validate()


@pytest.mark.parametrize("verb", ["patch", "delete"])
def test_a_victim_that_is_gone_already_counts_as_success(moorage_cluster, verb):
    cluster = start(moorage_cluster, victim("low", cpu="4"))
    cluster.faults.add(Fault(verb=verb, resource=PODS, name="low", effect=faults.delay(1), times=1))
    cluster.add(preemptor())
    cluster.settle(0.5)
    cluster.store.delete(PODS, "low", namespace="default", grace_period=0)
    cluster.settle(5)
    assert cluster.node_of("high") == "a"
    assert notes(cluster, "low", "Preempted") == []
    cluster.validate()


def test_a_condition_that_cannot_be_written_is_tried_again(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30))
    cluster.faults.add(Fault(verb="patch", resource=PODS, name="low", effect=faults.server_error(), times=2))
    cluster.add(preemptor())
    cluster.settle(2)
    assert "DisruptionTarget" in [c.type for c in cluster.pod("low").status.conditions]
    assert deletes(cluster) == ["low"]


def test_one_failed_victim_spares_the_last_one_for_now(moorage_cluster):
    lows = [victim("low-1", cpu="1"), victim("low-2", cpu="1"), victim("low-3", cpu="2")]
    cluster = start(moorage_cluster, *lows)
    cluster.faults.add(Fault(verb="delete", resource=PODS, effect=faults.server_error(), times=1))
    cluster.add(preemptor(cpu="4"))
    cluster.settle(0.2)
    assert len(deletes(cluster)) >= 2
    cluster.settle(20)
    assert cluster.node_of("high") == "a"
    cluster.validate()


def test_the_preemptor_is_gated_while_its_victims_are_dealt_with(moorage_cluster):
    cluster = start(moorage_cluster, victim("low-1"), victim("low-2"))
    cluster.faults.add(Fault(verb="delete", resource=PODS, name="low-2", effect=faults.delay(5), times=1))
    cluster.add(preemptor(cpu="4"))
    cluster.settle(2)
    assert "low-1" not in [pod.name for pod in cluster.pods()]
    where = cluster.scheduler.engine.queue.pending.where(cluster.pod("high").uid)
    assert where.place == "gated"
    assert "waiting for the preemption for this pod to be finished" in str(where)
    cluster.settle(10)
    assert cluster.node_of("high") == "a"
    assert sorted(deletes(cluster)) == ["low-1", "low-2"]


def test_a_slow_answer_does_not_hold_the_preemptor_back_when_the_victim_is_gone(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4"))
    cluster.faults.add(Fault(verb="delete", resource=PODS, effect=faults.slow_answer(60), times=1))
    cluster.add(preemptor())
    cluster.settle(5)
    assert cluster.node_of("high") == "a"


class Hold(PermitPlugin):
    """Pods named wait* wait until they are allowed or rejected."""

    name = "Hold"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=600) if pod.name.startswith("wait") else None


class Slow(PreBindPlugin):
    """Pods named slow* take a minute to prepare, if they are left alone."""

    name = "Slow"

    async def pre_bind(self, state, pod, node_name):
        if pod.name.startswith("slow"):
            await asyncio.sleep(60)


def with_plugin(name):
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{{name: {name}}}]
"""


@pytest.mark.parametrize(("plugin", "name"), [(Hold, "waiting"), (Slow, "slow")], ids=["Permit", "PreBind"])
def test_a_victim_on_its_way_is_stopped_in_memory(moorage_cluster, plugin, name):
    cluster = start(moorage_cluster, victim(name, cpu="4"), config=with_plugin(plugin.name), plugins=[plugin])
    cluster.add(preemptor())
    cluster.settle(2)
    assert deletes(cluster) == []
    assert cluster.node_of("high") == "a"
    assert cluster.node_of(name) == "", "it is pending again, not deleted"
    uid = cluster.pod("high").uid
    assert notes(cluster, name, "Preempted") == [f"Preempted by pod {uid} on node a (in kube-scheduler memory)."]
    message = notes(cluster, name, "FailedScheduling")[0]
    assert (
        message == {"waiting": "waiting on permit for pod: preempted", "slow": "preempted by DefaultPreemption"}[name]
    )
    cluster.settle(30)
    cluster.validate()


@pytest.mark.parametrize("seed", range(12))
def test_one_victim_in_memory_and_one_to_delete(moorage_cluster, seed):
    """Whichever leaves first, the preemptor evicts neither a second time: the one in memory is pending then."""
    given: dict[str, Any] = {"config": with_plugin("Slow"), "plugins": [Slow], "seed": seed}
    cluster = start(moorage_cluster, victim("slow"), victim("low"), **given)
    cluster.add(preemptor(cpu="4"))
    cluster.settle(5)
    assert cluster.node_of("high") == "a"
    assert deletes(cluster) == ["low"]


def test_nominated_space_is_not_given_to_lower_priority(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30), preemptor(cpu="4"))
    cluster.add(make_pod("late", cpu="1", priority=50))
    finish(cluster, "low")
    cluster.settle(5)
    assert cluster.node_of("high") == "a"
    assert cluster.node_of("late") == ""


def test_lower_nominations_on_the_node_are_taken_back(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30), preemptor("middle", cpu="4", priority=50))
    assert cluster.pod("middle").nominated_node_name == "a"
    cluster.patch(PODS, "low", {"metadata": {"deletionTimestamp": None}}, "default")
    cluster.add(victim("low-b", cpu="4", node="a"), preemptor(cpu="4"))
    cluster.settle(2)
    assert cluster.pod("high").nominated_node_name == "a"
    assert cluster.pod("middle").nominated_node_name == ""
    nominated = cluster.scheduler.engine.queue.nominator.nominated_on("a")
    assert [pod.name for pod in nominated] == ["high"]


class EastOnly(FilterPlugin, ReusablePlugin):
    """Pods want a node in the east; no preemption can move a node."""

    name = "EastOnly"

    def filter(self, state, pod, node):
        return None if node.labels.get("side") == "east" else Status.unresolvable("not in the east")

    def reads(self, pod):
        return (Reads.NODE,)


def test_nodes_beyond_help_are_no_candidates(moorage_cluster):
    cluster = moorage_cluster(flush_after=None, config=with_plugin("EastOnly"), plugins=[EastOnly])
    cluster.add(make_node("west", cpu="4"), make_node("east", cpu="4", labels={"side": "east"}))
    cluster.add(victim("w", cpu="4", node="west"), victim("e", cpu="4", node="east", priority=10))
    cluster.settle()
    cluster.add(preemptor())
    cluster.settle(5)
    assert cluster.node_of("high") == "east"
    assert deletes(cluster) == ["e"]


def test_the_decision_record_names_node_and_victims(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30), preemptor())
    record = cluster.record("high")
    assert (record.nominated_node, record.victims) == ("a", ("default/low",))


def test_a_preemptor_deleted_meanwhile_leaves_nothing_behind(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4"))
    cluster.faults.add(Fault(verb="delete", resource=PODS, name="low", effect=faults.delay(2), times=1))
    cluster.add(preemptor())
    cluster.settle(0.5)
    cluster.delete(cluster.pod("high"))
    cluster.settle(10)
    assert len(cluster.scheduler.engine.queue) == 0
    assert list(cluster.scheduler.engine.queue.nominator.nodes()) == []
    cluster.validate()


def test_victims_that_terminate_already_are_not_deleted_again(moorage_cluster):
    cluster = start(moorage_cluster, victim("low", cpu="4", grace=30))
    cluster.delete(cluster.pod("low"), grace_period=None)
    cluster.add(preemptor(cpu="4"))
    cluster.settle(2)
    assert deletes(cluster) == ["low"], "only the user's own call"
    assert cluster.pod("high").nominated_node_name == "a"
    finish(cluster, "low")
    assert cluster.node_of("high") == "a"


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_order_of_events_the_preemptor_is_placed(moorage_cluster, seed):
    cluster = start(
        moorage_cluster,
        victim("slow", cpu="1"),
        victim("low-1", cpu="1"),
        victim("low-2", cpu="2"),
        config=with_plugin("Slow"),
        plugins=[Slow],
        seed=seed,
    )
    cluster.add(preemptor(cpu="4"))
    cluster.settle(10)
    assert cluster.node_of("high") == "a"
    cluster.validate()


class NeverReady(PreBindPlugin):
    """Fails at once, so that the node which was announced has to be taken back before another part sees it."""

    name = "NeverReady"

    def pre_bind(self, state, pod, node_name):
        return Status.error("not ready")


def test_an_announced_node_is_taken_back_before_the_informer_shows_it(moorage_cluster):
    cluster = start(moorage_cluster, config=with_plugin("NeverReady"), plugins=[NeverReady])
    cluster.faults.add(Fault(verb="watch", resource=PODS, effect=faults.delay_events(0.2), times=None))
    cluster.faults.add(Fault(verb="patch", effect=faults.lost_answer(), times=1))
    cluster.add(make_pod("p"))
    cluster.settle(1.2)
    assert cluster.pod("p").nominated_node_name == ""
    assert list(cluster.scheduler.engine.queue.nominator.nodes()) == []
