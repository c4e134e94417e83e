"""Group B of the fault cases: writes, through the HTTP client and the embedded API server.

The cases of the binding cycle itself, and those that need no bytes, are in tests/scheduler and tests/client.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.resources import NAMESPACES, NODES, PODS
from moorage.api.taints import Toleration
from moorage.framework import PermitPlugin, PreBindPlugin, Status
from moorage.framework.cycle_state import CycleState
from moorage.testing import make_node, make_pod
from tests.embedded import wire_faults as wire
from tests.faults.world import HttpCluster

TWO = (make_node("a"), make_node("b"))
ONE_CPU = {"cpu": "1"}


def small(*names: str):
    """Nodes with room for one pod of `ONE_CPU`."""
    return [make_node(name, cpu="1") for name in names]


def full(name: str, **options):
    return make_pod(name, requests=ONE_CPU, **options)


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


@pytest.mark.parametrize("same", [True, False], ids=["our node", "another node"])
def test_b1_already_assigned(same):
    """Another scheduler binds the pod while our request is under way; then ours gets a 409."""
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(request=2.0), method="POST", path="/binding")
        cluster.add(*small("a", "b"), full("p"))
        cluster.settle(1)
        ours = next(iter(cluster.scheduler.engine.cache.assumed())).pod.spec.node_name
        other = ours if same else ({"a", "b"} - {ours}).pop()
        cluster.store.bind("p", "default", other)
        cluster.settle(10)
        assert cluster.bound() == {"default/p": other}
        assert cluster.accounted()[other] == ["default/p"]
        assert len(cluster.binds()) == 1
        assert "FailedScheduling" not in cluster.reasons("p")
        assert ("Scheduled" in cluster.reasons("p")) == same
        assert len(cluster.scheduler.engine.queue) == 0
        cluster.add(full("q"))
        cluster.settle(10)
        assert cluster.pending() == [], "the room that ours had held is free"
        cluster.check()


def test_b2_being_deleted():
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(request=2.0), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p", finalizers=["example.com/hold"]))
        cluster.settle(1)
        cluster.delete(cluster.the("p"))
        cluster.settle(30)
        assert cluster.node_of("p") == ""
        assert len(cluster.binds()) == 1
        assert cluster.assumed() == []
        assert len(cluster.scheduler.engine.queue) == 0, "not requeued"
        assert cluster.events("p") == []


def test_b3_another_uid():
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(request=2.0), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p", uid="first"))
        cluster.settle(1)
        cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
        cluster.add(make_pod("p", uid="second"))
        cluster.settle(10)
        assert cluster.the("p").uid == "second"
        assert cluster.node_of("p") != ""
        assert [b'"uid":"first"' in sent.request.body for sent in cluster.binds()] == [True, False]
        assert cluster.reasons("p") == ["Scheduled"]
        cluster.check()


def test_b4_gated_meanwhile():
    """A gate cannot be added to a pod, but another server may know of one that our watch has not shown."""
    with HttpCluster() as cluster:
        refusal = (
            b'{"kind":"Status","code":409,"reason":"Conflict","message":"pod p has non-empty .spec.schedulingGates"}'
        )
        cluster.spoil(wire.answer(409, refusal), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.5)
        assert cluster.assumed() == []
        cluster.settle(20)
        assert cluster.node_of("p") != "", "tried again after its backoff"
        cluster.check()


@pytest.mark.parametrize("what", ["pod", "namespace"])
def test_b5_gone(what):
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(request=2.0), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(1)
        cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
        if what == "namespace":
            cluster.store.delete(NAMESPACES, "default")
        cluster.settle(30)
        assert len(cluster.binds()) == 1
        assert cluster.assumed() == []
        assert cluster.events("p") == []
        assert len(cluster.scheduler.engine.queue) == 0
        cluster.check()


@pytest.mark.parametrize(
    ("effect", "happened"),
    [
        pytest.param(wire.lose_answer(), True, id="B8 reset after sending, applied"),
        pytest.param(wire.lose_request(), False, id="B8 reset after sending, not applied"),
        pytest.param(wire.lose_answer(after=None), True, id="B6 timed out, applied"),
        pytest.param(wire.lose_request(after=None), False, id="B7 timed out, not applied"),
        pytest.param(wire.cut(5), True, id="B8 cut inside the answer"),
        pytest.param(wire.answer(200, b"<html>"), False, id="a page of a proxy"),
    ],
)
def test_b6_b7_b8_an_unknown_outcome_is_settled_by_reading(effect, happened):
    with HttpCluster() as cluster:
        cluster.spoil(effect, method="POST", path="/binding")
        cluster.add(*small("a"), full("p"))
        cluster.until(lambda: cluster.sent("GET", "/pods/p"), timeout=60)
        assert len(cluster.binds()) == 1, "never sent again before the truth is known"
        cluster.settle(30)
        assert cluster.node_of("p") == "a"
        assert len(cluster.binds()) == (1 if happened else 2)
        assert cluster.reasons("p") == ["Scheduled"] if happened else ["FailedScheduling", "Scheduled"]
        cluster.check()


def test_b6_the_place_is_kept_while_the_bind_outcome_is_unknown():
    with HttpCluster() as cluster:
        cluster.spoil(wire.lose_answer(), method="POST", path="/binding")
        cluster.spoil(wire.refuse(), method="GET", path="/pods/p", times=None)
        cluster.add(*small("a"), full("p"))
        cluster.settle(0.5)
        cluster.add(full("q"))
        cluster.settle(60)
        assert cluster.bound() == {"default/p": "a"}, "the other pod got no second place"
        assert len(cluster.binds()) == 1
        cluster.wire.clear()
        cluster.settle(60)
        assert cluster.assumed() == []
        cluster.check()


@pytest.mark.parametrize(
    ("status", "headers", "least", "most"),
    [
        (500, {}, 0.01, 0.1),
        (503, {}, 0.01, 0.1),
        (429, {}, 1.0, 3.0),
        (429, {"retry_after": "20"}, 20.0, 22.0),
        (503, {"retry_after": "20"}, 20.0, 22.0),
        (429, {"retry_after": "1000000000"}, 60.0, 62.0),
        (429, {"retry_after": "soon"}, 1.0, 3.0),
    ],
)
def test_b9_a_busy_server_gets_the_pause_it_asks_for(status, headers, least, most):
    with HttpCluster() as cluster:
        cluster.spoil(wire.answer(status, b"", **headers), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(0.5)
        assert cluster.assumed() == [], "the place is given back meanwhile, unless the bind was sent again at once"
        cluster.until(lambda: cluster.node_of("p"), timeout=100)
        first, second = (sent.time for sent in cluster.binds())
        assert least <= second - first <= most
        cluster.check()


def test_b10_forbidden_binds_back_off_and_tell_why():
    refusal = (
        b'{"kind":"Status","code":403,"reason":"Forbidden",'
        b'"message":"pods \\"p\\" is forbidden: \\"moorage\\" cannot create resource \\"pods/binding\\""}'
    )
    with HttpCluster() as cluster:
        cluster.spoil(wire.answer(403, refusal), method="POST", path="/binding", times=None)
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(120)
        assert 8 <= len(cluster.binds()) <= 20, "1, 2, 4, 8, then every 10 s"
        note = cluster.events("p")[0].note
        assert "cannot create resource" in note
        assert "grant this right to the user" in note
        cluster.wire.clear()
        cluster.settle(15)
        assert cluster.node_of("p") != ""


def test_b11_the_watch_is_a_minute_late():
    with HttpCluster() as cluster:
        cluster.add(*small("a"))
        cluster.settle(1)
        cluster.transport.cut(quietly=True)
        cluster.spoil(wire.delay(chunk=60.0), path="/pods", watch=True, times=None)
        cluster.spoil(wire.delay(chunk=0.0), path="/pods", watch=True)
        cluster.settle(1)
        cluster.add(full("p"), full("q"))
        cluster.until(lambda: cluster.binds(), timeout=200)
        cluster.settle(50)
        assert len(cluster.bound()) == 1
        assert len(cluster.binds()) == 1, "the room is taken from the decision on"
        cluster.settle(200)
        assert len(cluster.binds()) == 1
        cluster.check()


def test_b12_the_watch_is_faster_than_the_answer():
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(answer=5.0), method="POST", path="/binding")
        cluster.add(*small("a"), full("p"), full("q"))
        cluster.settle(2)
        assert len(cluster.bound()) == 1
        assert cluster.assumed() == [], "confirmed by the watch"
        cluster.settle(30)
        assert len(cluster.binds()) == 1
        assert sum(map(len, cluster.accounted().values())) == 1
        cluster.check()


def test_b13_bound_by_another_scheduler_while_assumed():
    """What we had booked is free again, and who waits for room is woken."""
    with HttpCluster(flush_after=None) as cluster:
        cluster.spoil(wire.delay(request=20.0), method="POST", path="/p/binding")
        cluster.add(*small("a"), full("p"))
        cluster.settle(1)
        assert cluster.assumed() == ["default/p"]
        cluster.add(full("waiting"))
        cluster.settle(5)
        cluster.add(make_node("elsewhere", unschedulable=True))
        cluster.store.bind("p", "default", "elsewhere")
        cluster.settle(10)
        assert cluster.bound() == {"default/p": "elsewhere", "default/waiting": "a"}
        cluster.settle(30)
        cluster.check()


class Slow(PreBindPlugin):
    """Takes ten seconds before each bind."""

    name = "Slow"

    async def pre_bind(self, state: CycleState, pod, node_name: str) -> Status | None:
        await self.handle.clock.sleep(10.0)
        return None


@pytest.mark.parametrize("change", ["deleted", "cordoned"])
def test_b14_the_node_goes_between_decision_and_bind(change):
    with HttpCluster(plugins=[Slow], config=with_plugin("Slow")) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(1)
        assert cluster.assumed() == ["default/p"]
        if change == "deleted":
            cluster.store.delete(NODES, "a")
        else:
            cluster.cordon("a")
        cluster.settle(30)
        assert cluster.binds() == []
        assert cluster.node_of("p") == ""
        message = 'node "a" is gone' if change == "deleted" else 'node "a" was cordoned before the pod was bound'
        assert message in cluster.events("p")[0].note
        cluster.add(make_node("b"))
        cluster.settle(60)
        assert cluster.node_of("p") == "b"
        cluster.check()


def test_b14_a_pod_that_tolerates_the_cordon_is_bound_all_the_same():
    with HttpCluster(plugins=[Slow], config=with_plugin("Slow")) as cluster:
        tolerant = make_pod("p", tolerations=[Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")])
        cluster.add(make_node("a"), tolerant)
        cluster.settle(1)
        cluster.cordon("a")
        cluster.settle(30)
        assert cluster.node_of("p") == "a"


class Doorman(PermitPlugin):
    """Refuses every pod."""

    name = "Doorman"

    def permit(self, state: CycleState, pod, node_name: str):
        return Status.wait(timeout=600)


@pytest.mark.parametrize("place", ["Permit", "PreBind", "Bind"])
def test_b15_deleted_on_its_way(place):
    plugin = {"Permit": Doorman, "PreBind": Slow, "Bind": None}[place]
    options: dict[str, Any] = {"plugins": [plugin], "config": with_plugin(plugin.name)} if plugin else {}
    with HttpCluster(flush_after=None, **options) as cluster:
        if place == "Bind":
            cluster.spoil(wire.delay(request=10.0), method="POST", path="/p/binding")
        cluster.add(*small("a"), full("p"))
        cluster.settle(1)
        assert cluster.assumed() == ["default/p"]
        cluster.add(full("waiting"))
        cluster.settle(2)
        cluster.store.delete(PODS, "p", namespace="default", grace_period=0)
        cluster.settle(1)
        assert "default/p" not in cluster.assumed(), "forgotten at once"
        if place == "Permit":
            assert cluster.assumed() == ["default/waiting"], "woken, and now waiting itself"
        else:
            cluster.settle(30)
            assert cluster.node_of("waiting") == "a"
        assert "FailedScheduling" not in cluster.reasons("p"), "quietly"
        cluster.validate()


def test_b16_changed_in_flight():
    """The assumed copy stays; the next attempt takes the new object."""
    with HttpCluster(plugins=[Slow], config=with_plugin("Slow")) as cluster:
        cluster.spoil(wire.answer(500), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(1)
        cluster.patch(PODS, "p", {"metadata": {"labels": {"changed": "yes"}}}, "default")
        cluster.settle(1)
        held = next(iter(cluster.scheduler.engine.cache.assumed())).pod
        assert held.labels == {}
        cluster.settle(60)
        assert cluster.node_of("p") != ""
        assert [len(list(cluster.scheduler.engine.cache.pods_on(node))) for node in ("a", "b")].count(1) == 1
        cluster.check()


@pytest.mark.parametrize(
    ("effect", "patches"),
    [
        (wire.answer(409), 2),
        (wire.answer(500), 2),
        (wire.refuse(), 2),
        (wire.lose_request(), 2),
        (wire.answer(404), 1),
        (wire.answer(422), 1),
    ],
    ids=["409", "500", "refused", "lost", "404", "422"],
)
def test_b17_a_status_patch_that_fails(effect, patches):
    with HttpCluster() as cluster:
        cluster.spoil(effect, method="PATCH", path="/big/status")
        cluster.add(make_node("a"), make_pod("big", requests={"cpu": "100"}), make_pod("p"))
        cluster.settle(1)
        assert cluster.node_of("p") == "a", "binds do not wait for it"
        cluster.settle(10)
        assert len(cluster.sent("PATCH", "/big/status")) == patches
        if patches == 2:
            assert cluster.the("big").status.conditions[0].reason == "Unschedulable"


def test_b18_the_same_message_is_written_once():
    with HttpCluster() as cluster:
        cluster.add(make_node("a"), make_pod("big", requests={"cpu": "100"}))
        cluster.settle(1)
        for turn in range(10):
            cluster.add(make_node(f"n{turn}", cpu="1"))
            cluster.store.delete(NODES, f"n{turn}")
            cluster.settle(15)
        cluster.settle(120)
        assert len(cluster.sent("PATCH", "/big/status")) <= 3
        assert len(cluster.events("big", "FailedScheduling")) <= 3


def test_b19_events_cannot_be_written_for_ten_minutes():
    with HttpCluster() as cluster:
        cluster.spoil(wire.refuse(), path="/events", times=None)
        cluster.add(make_node("a", cpu="1000", memory="1Ti", pods=5000))
        cluster.add(*(make_pod(f"p{i}") for i in range(1500)))
        cluster.settle(600)
        assert len(cluster.bound()) == 1500
        assert cluster.scheduler.recorder.dropped > 0, "bounded: what does not fit is dropped and counted"
        cluster.wire.clear()
        cluster.settle(60)
        cluster.add(make_pod("late"))
        cluster.settle(120)
        assert cluster.reasons("late") == ["Scheduled"]


def test_b21_binds_keep_their_share_of_a_drained_limit():
    with HttpCluster(qps=50, burst=100) as cluster:
        cluster.add(make_node("a", cpu="1000", memory="1Ti", pods=5000))
        cluster.add(*(make_pod(f"big{i}", requests={"cpu": "2000"}) for i in range(300)))
        cluster.settle(0.5)
        cluster.add(*(make_pod(f"p{i}") for i in range(200)))
        cluster.settle(3.5)
        assert len(cluster.bound()) >= 100, "three hundred status patches came first"
        cluster.settle(60)
        assert len(cluster.bound()) == 200
        assert all(cluster.the(f"big{i}").status.conditions for i in range(300)), "and those arrived too"


@pytest.mark.parametrize(
    "effect",
    [wire.answer(409), wire.answer(429), wire.answer(500), wire.lose_request(), wire.lose_answer()],
    ids=["409", "429", "500", "lost request", "lost answer"],
)
def test_b22_the_delete_of_a_victim_fails(effect):
    with HttpCluster(flush_after=None) as cluster:
        cluster.add(*small("a"), full("victim", node="a"))
        cluster.settle(1)
        cluster.spoil(effect, method="DELETE", path="/victim")
        cluster.add(full("vip", priority=1000))
        cluster.settle(60)
        if (victim := cluster.pod("victim")) is not None and victim.is_terminating:
            cluster.store.delete(PODS, "victim", namespace="default", grace_period=0)
        cluster.until(lambda: cluster.node_of("vip") == "a", timeout=120)
        cluster.check()


def test_b22_a_victim_that_is_gone_already_is_as_good_as_deleted():
    with HttpCluster(flush_after=None) as cluster:
        cluster.add(*small("a"), full("victim", node="a"))
        cluster.settle(1)
        cluster.spoil(wire.delay(request=2.0), method="DELETE", path="/victim")
        cluster.add(full("vip", priority=1000))
        cluster.settle(1)
        cluster.store.delete(PODS, "victim", namespace="default", grace_period=0)
        cluster.settle(10)
        assert cluster.node_of("vip") == "a"
        cluster.check()


def test_b23_a_victim_recreated_under_its_name_is_not_deleted():
    with HttpCluster(flush_after=None) as cluster:
        cluster.add(*small("a"), full("victim", node="a", uid="old"))
        cluster.settle(1)
        cluster.spoil(wire.delay(request=2.0), method="DELETE", path="/victim")
        cluster.add(full("vip", priority=1000))
        cluster.settle(1)
        cluster.store.delete(PODS, "victim", namespace="default", grace_period=0)
        cluster.add(full("victim", uid="new"))
        cluster.settle(30)
        assert cluster.the("victim").uid == "new"
        assert not cluster.the("victim").is_terminating
        assert b'"uid":"old"' in cluster.sent("DELETE", "/victim")[0].request.body
        assert cluster.node_of("vip") == "a"


def test_a_bind_that_waits_does_not_stop_the_others():
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(request=20.0), method="POST", path="/slow/binding")
        cluster.add(*TWO, make_pod("slow"), *(make_pod(f"p{i}") for i in range(20)))
        cluster.settle(1)
        assert len(cluster.bound()) == 20
        cluster.settle(60)
        assert len(cluster.bound()) == 21


def test_stopping_waits_for_binds_under_way():
    with HttpCluster() as cluster:
        cluster.spoil(wire.delay(answer=3.0), method="POST", path="/binding")
        cluster.add(*TWO, make_pod("p"))
        cluster.settle(1)
        began = cluster.clock.now()
        cluster.run(_stop(cluster))
        assert cluster.clock.now() - began >= 1.9
        assert cluster.node_of("p") != ""


async def _stop(cluster: HttpCluster) -> None:
    await asyncio.sleep(0)
    await cluster.scheduler.stop()
