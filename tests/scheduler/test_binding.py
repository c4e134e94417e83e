"""The binding cycle when the world does not answer as it should: lost answers, conflicts, deletions."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from moorage.api.resources import PODS
from moorage.api.versions import DEFAULT_BEHAVIOUR
from moorage.framework import PermitPlugin, PreBindPlugin, ReservePlugin, Status
from moorage.framework.ports import Change
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import make_node, make_pod

NODES = (make_node("a"), make_node("b"))
TRIES = DEFAULT_BEHAVIOUR.bind_tries


def with_plugin(name: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{{name: {name}}}]
"""


def binds(cluster):
    return cluster.faults.calls_of("bind")


def assumed(cluster):
    return [cached.pod.key for cached in cluster.scheduler.engine.cache.assumed()]


def test_a_lost_answer_of_a_bind_that_happened_is_settled_by_reading(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.lost_answer(), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    assert cluster.node_of("p") == "a"
    assert len(binds(cluster)) == 1
    assert [e.reason for e in cluster.events("p")] == ["Scheduled"]
    assert assumed(cluster) == []


@pytest.mark.parametrize(("code", "sent"), [(500, 2), (504, 1)])
def test_a_bind_that_happened_although_the_server_failed_is_settled_by_reading(moorage_cluster, code, sent):
    """After an internal error the bind is sent again, which is a conflict then."""
    cluster = moorage_cluster()
    effect = dataclasses.replace(faults.server_error(code), applied=True)
    cluster.faults.add(Fault(verb="bind", effect=effect, times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    assert (cluster.node_of("p"), len(binds(cluster))) == ("a", sent)
    assert [e.reason for e in cluster.events("p")] == ["Scheduled"]


def test_a_lost_request_is_settled_and_tried_again(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.lost_request(), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(30)
    assert cluster.node_of("p") != ""
    assert [e.reason for e in cluster.events("p")] == ["FailedScheduling", "Scheduled"]
    cluster.validate()


def test_the_pod_stays_assumed_while_the_outcome_is_unknown(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.lost_request(), times=1))
    cluster.faults.add(Fault(verb="get", resource=PODS, effect=faults.server_error(503), times=None))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(60)
    assert assumed(cluster) == ["default/p"]
    assert len(binds(cluster)) == 1, "nothing is sent while the outcome is unknown"
    cluster.faults.clear()
    cluster.settle(30)
    assert cluster.node_of("p") != ""
    assert assumed(cluster) == []


def test_a_conflict_with_another_scheduler_is_understood(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.delay(0.5), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.1)
    cluster.store.bind("p", "default", "b")
    cluster.settle(5)
    assert cluster.node_of("p") == "b"
    assert len(binds(cluster)) == 1
    assert "FailedScheduling" not in [e.reason for e in cluster.events("p")]
    assert assumed(cluster) == []
    assert [pod.key for pod in cluster.scheduler.engine.cache.pods_on("b")] == ["default/p"]
    assert list(cluster.scheduler.engine.cache.pods_on("a")) == []


def test_a_pod_deleted_on_its_way_is_forgotten_at_once_and_quietly(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.delay(5), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.1)
    assert assumed(cluster) == ["default/p"]
    cluster.delete(cluster.pod("p"))
    cluster.settle(0.1)
    assert assumed(cluster) == []
    cluster.settle(30)
    assert cluster.events("p") == []
    assert len(cluster.scheduler.engine.queue) == 0
    cluster.validate()


def test_a_recreated_pod_is_not_bound_by_the_old_ones_bind(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.delay(5), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.1)
    old = cluster.pod("p").uid
    cluster.delete(cluster.pod("p"))
    cluster.add(make_pod("p", uid="another"))
    cluster.settle(30)
    assert cluster.pod("p").uid != old
    assert cluster.node_of("p") != ""
    cluster.validate()


@pytest.mark.parametrize(
    ("effect", "times"),
    [(faults.server_error(500), TRIES), (faults.not_sent(), TRIES), (faults.too_many_requests(2), 1)],
)
def test_a_refused_bind_gives_everything_back_and_retries(moorage_cluster, effect, times):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=effect, times=times))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.5)
    assert assumed(cluster) == []
    assert cluster.pod("p").status.conditions[0].reason == "SchedulerError"
    cluster.settle(15)
    assert cluster.node_of("p") != ""


class Doorman(PermitPlugin):
    name = "doorman"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=1000)


def waiting(cluster):
    return {held.pod.name: held for held in cluster.scheduler.engine.services.waiting}


def test_a_waiting_pod_proceeds_when_it_is_allowed(moorage_cluster):
    cluster = moorage_cluster(config=with_plugin("doorman"), plugins=[Doorman])
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(5)
    assert cluster.node_of("p") == ""
    assert assumed(cluster) == ["default/p"]
    assert cluster.pod("p").nominated_node_name == "a", "others can see where it is going"
    held = waiting(cluster)["p"]
    assert list(held.pending_plugins()) == ["doorman"]
    held.allow("doorman")
    held.reject("doorman", "too late")
    cluster.settle()
    assert cluster.node_of("p") == "a"
    assert waiting(cluster) == {}


def test_a_waiting_pod_can_be_rejected_and_its_resources_wake_others(moorage_cluster):
    cluster = moorage_cluster(config=with_plugin("doorman"), plugins=[Doorman])
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    waiting(cluster)["p"].reject("doorman", "not today")
    cluster.settle(0.1)
    assert cluster.events("p")[-1].note == "0/1 nodes are available: 1 not today."
    assert cluster.record("p").attempt >= 1


def test_a_preempted_waiting_pod_returns_by_error_backoff(moorage_cluster):
    cluster = moorage_cluster(config=with_plugin("doorman"), plugins=[Doorman])
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    waiting(cluster)["p"].preempt("DefaultPreemption", "preempted")
    cluster.settle(0.1)
    assert cluster.events("p")[-1].note == "waiting on permit for pod: preempted"
    assert cluster.scheduler.where(cluster.pod("p")).place == "backoff"


def test_a_deleted_waiting_pod_is_rejected(moorage_cluster):
    cluster = moorage_cluster(config=with_plugin("doorman"), plugins=[Doorman])
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    cluster.delete(cluster.pod("p"))
    cluster.settle()
    assert (waiting(cluster), assumed(cluster), len(cluster.scheduler.engine.queue)) == ({}, [], 0)


@pytest.mark.parametrize(("asked", "given"), [(3600.0, 900.0), (None, 900.0), (-5.0, 0.0), (0.0, 0.0)])
def test_permit_waits_are_bounded(moorage_cluster, asked, given):
    class Slow(PermitPlugin):
        name = "slow"

        def permit(self, state, pod, node_name):
            return Status.wait(timeout=asked)

    cluster = moorage_cluster(config=with_plugin("slow"), plugins=[Slow])
    cluster.add(*NODES, make_pod("p"))
    cluster.until(lambda: cluster.events("p"), timeout=1000)
    assert cluster.clock.now() == pytest.approx(given, abs=0.2)


class Ledger(ReservePlugin):
    """Counts reservations per pod, to see that each is given back exactly when it should be."""

    name = "ledger"
    open: list[str]

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.open = handle.shared("ledger", list)

    def reserve(self, state, pod, node_name):
        self.open.append(pod.name)

    def unreserve(self, state, pod, node_name):
        self.open.remove(pod.name)


def test_reservations_balance_under_failing_binds(moorage_cluster):
    cluster = moorage_cluster(config=with_plugin("ledger"), plugins=[Ledger])
    cluster.faults.add(Fault(verb="bind", effect=faults.server_error(500), times=5))
    cluster.add(*NODES, *(make_pod(f"p{i}") for i in range(3)))
    cluster.settle(60)
    assert cluster.pending() == []
    assert sorted(cluster.scheduler.engine.services.shared["ledger"]) == ["p0", "p1", "p2"]


def test_stopping_waits_for_binds_that_were_sent(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.slow_answer(5)))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.1)
    cluster.close()
    assert cluster.node_of("p") == "a"


def test_stopping_cancels_pre_bind(moorage_cluster):
    class Endless(PreBindPlugin):
        name = "endless"

        async def pre_bind(self, state, pod, node_name):
            await asyncio.Event().wait()

    cluster = moorage_cluster(config=with_plugin("endless"), plugins=[Endless])
    cluster.add(*NODES, make_pod("p"))
    cluster.settle()
    cluster.close()
    assert cluster.node_of("p") == ""


def test_a_failed_bind_shows_in_the_record(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.server_error(500), times=TRIES))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.5)
    record = cluster.record("p")
    assert (record.result, record.plugin) == ("error", "DefaultBinder")
    assert record.message == cluster.events("p")[0].note


def test_stopping_does_not_wait_for_ever_for_an_api_that_is_away(moorage_cluster):
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.lost_request(), times=1))
    cluster.faults.add(Fault(verb="get", resource=PODS, effect=faults.server_error(503), times=None))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(1)
    began = cluster.clock.now()
    cluster.close()
    assert cluster.clock.now() - began < 60


def test_an_older_placement_cannot_undo_a_newer_one(moorage_cluster):
    """The pod vanishes from the list while its bind is slow, returns, and is placed again."""
    cluster = moorage_cluster()
    cluster.faults.add(Fault(verb="bind", effect=faults.delay(5), times=1))
    cluster.faults.add(Fault(verb="bind", effect=faults.delay(20), times=1))
    cluster.add(*NODES, make_pod("p"))
    cluster.settle(0.1)
    engine, pod = cluster.scheduler.engine, cluster.pod("p")
    engine.inbox.post(Change(PODS, pod, None))
    engine.inbox.post(Change(PODS, None, pod))
    cluster.settle(0.1)
    assert assumed(cluster) == ["default/p"]
    older = cluster.faults.calls_of("bind")
    assert len(older) == 2, "both placements are on their way"
    cluster.settle(30)
    assert cluster.node_of("p") != ""
    assert assumed(cluster) == []
    cluster.validate()
