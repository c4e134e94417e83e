"""Data that a plugin keeps beside the cluster's: waking the pods that it refused when the data changes, and
callbacks for changes of the kinds that it declared. (docs/plugins/recipes.md: Data from outside)"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest

from moorage.api.resources import NAMESPACES, NODES, PODS
from moorage.framework import (
    Access,
    ActionType,
    ClusterEvent,
    EventResource,
    FilterPlugin,
    PreEnqueuePlugin,
    QueueingHint,
    Registration,
    Status,
)
from moorage.framework.events import NODE
from moorage.runtime.registry import PluginError
from moorage.telemetry.logs import VALUES
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_namespace
from tests.scheduler.kit import config, place, where

LOAD = EventResource("Load")


class Load(FilterPlugin):
    """No node while `load` is above the pod's label; woken where the new value is low enough."""

    name = "Load"
    load: ClassVar[float] = 0.9
    hinted: ClassVar[list[tuple[str, Any, Any]]] = []

    def filter(self, state, pod, node):
        return Status.unschedulable("too much load") if self.load > float(pod.labels["below"]) else None

    def events_to_register(self):
        node_added = ClusterEvent(NODE, ActionType.ADD)
        return [Registration(ClusterEvent(LOAD, ActionType.UPDATE), self.hint), Registration(node_added)]

    def hint(self, pod, old, new):
        self.hinted.append((pod.name, old, new))
        return QueueingHint.QUEUE if new <= float(pod.labels["below"]) else QueueingHint.SKIP

    def measured(self, load: float) -> None:
        old, type(self).load = self.load, load
        self.handle.wake(LOAD, old, load)


class Never(FilterPlugin):
    name = "Never"

    def filter(self, state, pod, node):
        return Status.unschedulable("never") if "never" in pod.labels else None

    def events_to_register(self):
        return []


def load() -> type[Load]:
    class Fresh(Load):
        hinted: ClassVar[list[tuple[str, Any, Any]]] = []

    return Fresh


def plugin_of(cluster: Cluster, name: str = "Load") -> Any:
    return cluster.scheduler.engine.profiles["default-scheduler"].plugins[name]


def test_item_4_wake_brings_back_the_pods_that_the_plugin_refused_where_its_hint_agrees():
    with Cluster(config=config("Never", "Load"), plugins=[load(), Never], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p", labels={"below": "0.5"}))
        cluster.add(make_pod("q", labels={"below": "0.1"}))
        cluster.add(make_pod("r", labels={"below": "0.5", "never": ""}))
        cluster.settle(3600)
        assert [place(cluster, name) for name in "pqr"] == ["unschedulable"] * 3
        plugin = plugin_of(cluster)
        plugin.measured(0.4)
        cluster.settle()
        assert cluster.bound() == {"default/p": "a"}
        assert [place(cluster, name) for name in "qr"] == ["unschedulable"] * 2
        assert sorted(plugin.hinted) == [("p", 0.9, 0.4), ("q", 0.9, 0.4)]
        record = cluster.record("p")
        assert (record.attempt, record.woken_by, record.woken_hint) == (2, "LoadUpdate", "Load")


def test_item_4_wake_keeps_the_backoff_that_activate_leaves_out():
    with Cluster(config=config("Load"), plugins=[load()], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p", labels={"below": "0.5"}))
        cluster.add(make_pod("q", labels={"below": "0.5"}))
        cluster.until(lambda: place(cluster, "p") == place(cluster, "q") == "unschedulable")
        plugin = plugin_of(cluster)
        cluster.scheduler.engine.inbox.drain()
        plugin.handle.wake(LOAD, 0.9, 0.4)
        plugin.handle.activate([cluster.pod("q")])
        cluster.scheduler.engine.drain()
        assert [place(cluster, name) for name in "pq"] == ["backoff", "active"]
        assert where(cluster, "q").why == "Waits for its turn, moved by ForceActivate of Load."


def test_item_4_wake_while_a_pod_is_in_flight_is_not_lost():
    class Measures(load()):  # type: ignore[misc]
        """The value falls while the pod is being judged by the value before."""

        def filter(self, state, pod, node):
            refusal = super().filter(state, pod, node)
            if refusal is not None:
                self.measured(0.1)
            return refusal

    with Cluster(config=config("Load"), plugins=[Measures], flush_after=None) as cluster:
        cluster.add(make_node("a"))
        cluster.settle()
        cluster.add(make_pod("p", labels={"below": "0.5"}))
        cluster.settle(15)
        assert cluster.node_of("p") == "a"
        assert (cluster.record("p").attempt, cluster.record("p").woken_by) == (2, "LoadUpdate")


def test_item_4_wake_opens_the_gate_of_a_pre_enqueue_plugin():
    class Gate(PreEnqueuePlugin):
        name = "Gate"
        is_open: ClassVar[bool] = False

        def pre_enqueue(self, pod):
            return None if self.is_open else Status.unresolvable("closed")

        def events_to_register(self):
            return [Registration(ClusterEvent(EventResource("Gate"), ActionType.UPDATE))]

    with Cluster(config=config("Gate"), plugins=[Gate], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle(60)
        assert place(cluster, "p") == "gated"
        Gate.is_open = True
        plugin_of(cluster, "Gate").handle.wake(EventResource("Gate"))
        cluster.settle()
        assert cluster.node_of("p") == "a"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("Weather", r"plugin 'Load' wakes pods for Weather without having registered it: add Registration"),
        (NODE, r"plugin 'Load': wake\(Node\): only the API server sends such events; .*own"),
    ],
)
def test_item_4_wake_refuses_what_is_not_registered_or_not_the_plugins_own(resource, message):
    with Cluster(config=config("Load"), plugins=[load()]) as cluster, pytest.raises(ValueError, match=message):
        plugin_of(cluster).handle.wake(EventResource(resource))


class Watches(FilterPlugin):
    """Notes every change, with what the listers of other kinds show then."""

    name = "Watches"
    needs = (Access(PODS), Access(NODES), Access(NAMESPACES))
    seen: ClassVar[list[tuple[Any, ...]]]

    def __init__(self, args, handle):
        super().__init__(args, handle)
        handle.on_change(PODS, self.pod_changed)

    def pod_changed(self, old, new):
        names = tuple(None if pod is None else pod.name for pod in (old, new))
        self.seen.append((*names, len(self.handle.lister(NAMESPACES))))

    def filter(self, state, pod, node):
        self.seen.append(("filter", pod.name))
        return Status.unschedulable("no")


def watches(**members: Any) -> type[Watches]:
    return type("Fresh", (Watches,), {"seen": [], **members})


def test_item_4_a_callback_sees_changes_when_all_stores_are_current_and_before_the_next_attempt():
    plugin = watches()
    with Cluster(config=config("Watches"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"))
        cluster.settle()
        # In one delivery: the pod first, the namespace after it.
        cluster.add(make_pod("p"), make_namespace("team"))
        cluster.settle()
    assert plugin.seen[:2] == [(None, "p", 1), ("filter", "p")]


def test_item_4_a_callback_hears_of_a_pending_pod_that_goes_away():
    plugin = watches()
    with Cluster(config=config("Watches"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()
        plugin.seen.clear()
        cluster.run(cluster.client.delete(PODS, "p", namespace="default", grace_period=0))
        cluster.settle()
        assert plugin.seen == [("p", None, 0)]


def test_item_4_a_callback_that_raises_is_logged_with_its_plugin_and_changes_nothing(caplog):
    def broken(self, old, new):
        raise KeyError("gone")

    with caplog.at_level(logging.ERROR):
        plugin = watches(pod_changed=broken, filter=lambda self, state, pod, node: None)
        with Cluster(config=config("Watches"), plugins=[plugin], allow_background_failures=True) as cluster:
            cluster.add(make_node("a"), make_pod("p"))
            cluster.settle(5)
            assert cluster.node_of("p") == "a"
    failed = [record for record in caplog.records if record.msg == "Change callback of plugin failed"]
    assert {record.__dict__[VALUES]["plugin"] for record in failed} == {"Watches"}


async def later(self, old, new):
    """No callback: never called."""


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"needs": ()}, r"plugin 'Watches' uses pods .* without declaring it: add Access"),
        ({"pod_changed": later}, r"plugin 'Watches': the callback of on_change\(pods\) .*handle\.spawn"),
    ],
    ids=["undeclared", "coroutine"],
)
def test_item_4_a_callback_for_an_undeclared_kind_or_a_coroutine_is_refused_at_start(members, message):
    with pytest.raises(PluginError, match=message):
        Cluster(config=config("Watches"), plugins=[watches(**members)])
