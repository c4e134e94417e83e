"""Pods on their way through the queue of a running scheduler: gates, order, backoff, wake-ups, deletions."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import pytest

from moorage.api.resources import PODS
from moorage.framework import (
    ActionType,
    ClusterEvent,
    FilterPlugin,
    PermitPlugin,
    QueueingHint,
    Registration,
    ReservePlugin,
    Status,
)
from moorage.framework.events import NODE
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import assumed, config, notes, place, the_pod, where

DEFAULTS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [%s]}}
"""


def with_defaults(*names: str) -> str:
    return DEFAULTS % ", ".join(f"{{name: {name}}}" for name in names)


class Wants(FilterPlugin):
    """The node must have the label that the pod's label `wants` names. Keeps the order of the attempts."""

    name = "wants"
    tried: ClassVar[list[str]]
    hinted: ClassVar[list[tuple[str, str]]]

    def filter(self, state, pod, node):
        self.tried.append(pod.name)
        want = pod.labels.get("wants", "")
        return None if not want or want in node.labels else Status.unschedulable(f"no {want}")

    def events_to_register(self):
        event = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [Registration(event, self.hint)]

    def hint(self, pod, old, new):
        self.hinted.append((pod.name, new.name))
        return QueueingHint.QUEUE if pod.labels["wants"] in new.labels else QueueingHint.SKIP


def wants() -> type[Wants]:
    return type("Wants", (Wants,), {"tried": [], "hinted": []})


def wanting(name: str, label: str, **options: Any) -> Any:
    return make_pod(name, labels={"wants": label}, **options)


def test_a_gated_pod_is_scheduled_when_its_gates_are_opened():
    with Cluster(config=with_defaults(), flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p", gates=["one", "two"]))
        cluster.settle(3600)
        assert where(cluster, "p").place == "gated"
        assert "waiting for scheduling gates: [one two]" in where(cluster, "p").why
        cluster.patch(PODS, "p", {"spec": {"schedulingGates": [{"name": "two"}]}}, "default")
        cluster.settle(60)
        assert where(cluster, "p").place == "gated"
        cluster.patch(PODS, "p", {"spec": {"schedulingGates": []}}, "default")
        cluster.settle(0.1)
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").attempt == 1


def test_higher_priorities_first_then_who_came_first():
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], start=False) as cluster:
        cluster.add(make_node("a"))
        priorities = {"p0": 0, "p1": 10, "p2": None, "p3": -5, "p4": 10, "p5": 2_000_000_000}
        cluster.add(*(make_pod(name, priority=priority) for name, priority in priorities.items()))
        cluster.start()
        cluster.settle()
        assert plugin.tried == ["p5", "p1", "p4", "p0", "p2", "p3"]


def test_errors_back_off_twice_as_long_each_time_up_to_the_maximum():
    head = "podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 10"
    with Cluster(config=config(head=head), flush_after=None) as cluster:
        # Too many requests is no error after which a bind is sent again at once.
        cluster.faults.add(Fault(faults.too_many_requests(), verb="bind", times=7))
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(90)
        assert cluster.node_of("p") == "a"
        sent = [call.time for call in cluster.faults.calls_of("bind")]
        waits = [after - before for before, after in itertools.pairwise(sent)]
        # Waits end with the second in which they would, so they are up to one longer.
        for wait, asked in zip(waits, [1, 2, 4, 8, 10, 10, 10], strict=True):
            assert asked <= wait <= asked + 1


def test_an_error_is_not_tried_early_but_a_refusal_is():
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], flush_after=None) as cluster:
        cluster.faults.add(Fault(faults.too_many_requests(), verb="bind", name="broken", times=3))
        cluster.add(make_node("a"), make_pod("broken"))
        cluster.settle(3.5)
        assert place(cluster, "broken") == "backoff"
        cluster.settle(0.2)
        assert place(cluster, "broken") == "backoff", "idle, and yet it waits"
        cluster.add(wanting("refused", "x"))
        cluster.settle(0.1)
        assert place(cluster, "refused") == "unschedulable"
        cluster.label_node("a", x="1")
        cluster.settle(0.1)
        assert cluster.node_of("refused") == "a", "woken and taken before its backoff is over"


def test_only_those_whom_a_new_node_helps_are_tried_again():
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"), wanting("x", "disk"), wanting("y", "gpu"), wanting("z", "gpu"))
        cluster.settle(20)
        plugin.tried.clear()
        plugin.hinted.clear()
        cluster.add(make_node("b", labels={"gpu": "1"}))
        cluster.settle(5)
        assert sorted(set(plugin.tried)) == ["y", "z"]
        assert len(plugin.hinted) == 2, "once per signature"
        assert (place(cluster, "x"), cluster.bound()) == ("unschedulable", {"default/y": "b", "default/z": "b"})
        assert cluster.record("y").woken_by == "NodeAdd"


def test_events_during_an_attempt_are_not_missed():
    """The node gets its label while the pod waits on Permit; the refusal that follows must not hide the event."""
    answers = [Status.wait(timeout=1)]

    class Door(PermitPlugin):
        name = "door"

        def permit(self, state, pod, node_name):
            return answers.pop() if answers else None

        def events_to_register(self):
            return [Registration(ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL))]

    with Cluster(config=config("door"), plugins=[Door], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(0.5)
        cluster.label_node("a", any="thing")
        cluster.settle(5)
        assert cluster.node_of("p") == "a"
        assert cluster.record("p").attempt == 2


def test_pods_to_activate_are_tried_when_the_attempt_has_succeeded():
    class Friend(ReservePlugin):
        """Reserving for `leader` wants `activated` in the active queue."""

        name = "friend"

        def reserve(self, state, pod, node_name):
            if pod.name == "leader":
                state.to_activate["default/activated"] = activated[0]
                ready.append(True)

    class Stubborn(FilterPlugin):
        name = "stubborn"

        def filter(self, state, pod, node):
            return Status.unschedulable("not yet") if pod.name == "activated" and not ready else None

        def events_to_register(self):
            return []

    ready: list[bool] = []
    activated: list[Any] = []
    with Cluster(config=config("friend", "stubborn"), plugins=[Friend, Stubborn], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("activated"))
        cluster.settle(3600)
        activated.append(the_pod(cluster, "activated"))
        assert place(cluster, "activated") == "unschedulable", "no event ever wakes it"
        cluster.add(make_pod("leader"))
        cluster.settle(0.1)
        assert cluster.pending() == []
        assert cluster.record("activated").woken_by == "ForceActivate"


def test_a_plugin_activates_pods_through_its_handle():
    plugin = wants()

    class Silent(plugin):  # type: ignore[valid-type, misc]
        def events_to_register(self):
            return []

    with Cluster(config=config("wants"), plugins=[Silent], flush_after=None) as cluster:
        cluster.add(make_node("a"), wanting("p", "x"))
        cluster.settle(5)
        cluster.label_node("a", x="1")
        cluster.settle(3600)
        assert place(cluster, "p") == "unschedulable"
        handle = cluster.scheduler.engine.profiles["default-scheduler"].plugins["wants"].handle
        handle.activate([the_pod(cluster, "p")])
        cluster.settle(0.1)
        assert cluster.node_of("p") == "a"


def test_profiles_live_side_by_side_and_pods_of_other_schedulers_are_not_touched():
    plugin = wants()
    text = config("wants", profiles=["one", "two"])
    with Cluster(config=text, plugins=[plugin], flush_after=None) as cluster:
        pods = [wanting(f"{name}-p", "x", scheduler=name) for name in ("one", "two", "three")]
        cluster.add(make_node("a"), *pods)
        cluster.settle(5)
        assert [place(cluster, f"{name}-p") for name in ("one", "two", "three")] == [
            "unschedulable",
            "unschedulable",
            "",
        ]
        assert cluster.events("three-p") == []
        cluster.label_node("a", x="1")
        cluster.settle(5)
        assert cluster.bound() == {"default/one-p": "a", "default/two-p": "a"}
        assert {e.reporting_controller for e in cluster.events("one-p")} == {"one"}
        assert cluster.record("two-p").profile == "two"
        instances = [p.plugins["wants"] for p in cluster.scheduler.engine.profiles.values()]
        assert instances[0] is not instances[1]


def test_a_pod_deleted_while_unschedulable_leaves_nothing_behind():
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"), wanting("p", "x"))
        cluster.settle()
        cluster.delete(the_pod(cluster, "p"))
        cluster.settle()
        assert len(cluster.scheduler.engine.queue) == 0
        plugin.tried.clear()
        cluster.label_node("a", x="1")
        cluster.settle(60)
        assert plugin.tried == []


@pytest.mark.parametrize("cut", [False, True], ids=["seen as two events", "missed, seen as one update"])
def test_another_pod_under_the_same_name_starts_afresh(cut):
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"), wanting("p", "x", uid="old"))
        cluster.settle(5)
        if cut:
            cluster.faults.add(Fault(faults.server_error(503), verb="watch", resource=PODS, times=3))
            cluster.client.cut_watches(PODS)
        cluster.run(cluster.client.delete(PODS, "p", namespace="default", grace_period=0))
        cluster.add(wanting("p", "y", uid="new"))
        cluster.settle(60)
        assert the_pod(cluster, "p").uid == "new"
        assert place(cluster, "p") == "unschedulable"
        assert len(cluster.scheduler.engine.queue) == 1
        assert cluster.record("p").attempt == 1
        cluster.label_node("a", y="1")
        cluster.settle(5)
        assert cluster.node_of("p") == "a"
        cluster.validate()


def test_a_pod_being_deleted_is_not_tried():
    plugin = wants()
    with Cluster(config=config("wants"), plugins=[plugin], start=False) as cluster:
        cluster.add(make_node("a"), make_pod("p", finalizers=["example.com/hold"]))
        cluster.delete(the_pod(cluster, "p"))
        cluster.start()
        cluster.settle()
        assert plugin.tried == []
        assert notes(cluster, "p") == ["skip schedule deleting pod: default/p"]
        assert len(cluster.scheduler.engine.queue) == 0


def test_a_node_that_goes_while_a_pod_waits_for_it_is_not_bound_to():
    class Door(PermitPlugin):
        name = "door"

        def permit(self, state, pod, node_name):
            return Status.wait(timeout=600) if node_name == "a" else None

    with Cluster(config=config("door"), plugins=[Door], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_node("b"), make_pod("p"))
        cluster.settle()
        assert assumed(cluster) == ["default/p"]
        cluster.delete(cluster.node("a"))
        cluster.settle()
        for held in cluster.scheduler.engine.services.waiting:
            held.allow("door")
        cluster.settle(0.2)
        assert cluster.faults.calls_of("bind") == []
        assert 'node "a" is gone' in notes(cluster, "p")
        cluster.settle(10)
        assert cluster.node_of("p") == "b"
        cluster.validate()


def test_a_malformed_pod_disturbs_no_other_pod():
    with Cluster(config=config(), flush_after=None) as cluster:
        cluster.add(make_node("a"))
        raw = {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}}
        raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1x"}}  # type: ignore[index]
        cluster.store.create(PODS, raw)
        cluster.add(make_pod("good"))
        cluster.settle(5)
        assert cluster.scheduler.engine.cache.pods_on("a")[0].name == "good"
        assert [record.pod for record in cluster.scheduler.records] == ["default/good"]
        cluster.validate()
