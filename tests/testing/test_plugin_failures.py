"""The kit fails a test for what a plugin did wrong without failing an attempt, and hands out the plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.resources import NODES
from moorage.framework import Access, FilterPlugin, PermitPlugin, PostBindPlugin, ReservePlugin, Status
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config


class Unreserves(ReservePlugin, PermitPlugin):
    name = "Faulty"

    def unreserve(self, state, pod, node_name):
        raise LookupError("no reservation")

    def permit(self, state, pod, node_name):
        return Status.unschedulable("never")


class AfterBinding(PostBindPlugin):
    name = "Faulty"

    def post_bind(self, state, pod, node_name):
        raise LookupError("no reservation")


class Callback(FilterPlugin):
    name = "Faulty"
    needs = (Access(NODES),)

    def __init__(self, args, handle):
        super().__init__(args, handle)
        handle.on_change(NODES, self.changed)

    def changed(self, old, new):
        raise LookupError("no reservation")

    def filter(self, state, pod, node):
        return None


class Indexes(Callback):
    def __init__(self, args, handle):
        FilterPlugin.__init__(self, args, handle)
        handle.pod_index("faulty", lambda pod: self.changed(None, pod))


FAULTY = [
    (Unreserves, "Unreserve of plugin 'Faulty' failed"),
    (AfterBinding, "PostBind of plugin 'Faulty' failed"),
    (Callback, "a change callback of plugin 'Faulty' failed"),
    (Indexes, "an index function failed"),
]


def run(plugin: type, **options: Any) -> None:
    with Cluster(config=config("Faulty"), plugins=[plugin], **options) as cluster:
        cluster.add(make_node("a"), make_pod("p"))
        cluster.settle()


@pytest.mark.parametrize(("plugin", "what"), FAULTY)
def test_a_failure_that_is_only_logged_fails_the_test(plugin, what):
    with pytest.raises(AssertionError, match=f"{what}: LookupError: no reservation"):
        run(plugin)


@pytest.mark.parametrize("plugin", [plugin for plugin, _ in FAULTY])
def test_a_test_may_allow_such_failures(plugin):
    run(plugin, allow_background_failures=True)


def test_the_failures_of_another_cluster_are_its_own():
    with Cluster(config=config("Faulty"), plugins=[AfterBinding], allow_background_failures=True) as other:
        other.add(make_node("a"), make_pod("p"))
        with Cluster(config=config()) as cluster:
            cluster.add(make_node("a"), make_pod("p"))
            cluster.settle()
        other.settle()


WRITES: dict[str, Callable[[Any, Any], object]] = {
    "Pod default/p: spec.nodeSelector.zone": lambda pod, node: pod.spec.node_selector.update(zone="z"),
    "Pod default/p: spec.containers": lambda pod, node: pod.spec.containers[0].resources.requests.update(cpu="8"),
    "Pod default/p: spec.topologySpreadConstraints": (
        lambda pod, node: pod.spec.topology_spread_constraints[0].label_selector.match_labels.clear()
    ),
}


@pytest.mark.parametrize("what", WRITES)
def test_an_object_that_a_plugin_has_changed_fails_the_test(what):
    class Writes(FilterPlugin):
        name = "Writes"

        def filter(self, state, pod, node):
            WRITES[what](pod, node)

    cluster = Cluster(config=config("Writes"), plugins=[Writes])
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": {"os": "linux"}, "topologySpreadConstraints": spread}
    cluster.add(make_node("a"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()
    with pytest.raises(AssertionError, match=f"a plugin changed {what}.*change a copy"):
        cluster.close()


class Counts(FilterPlugin):
    name = "Counts"

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.calls = 0

    def filter(self, state, pod, node):
        self.calls += 1


def test_the_kit_hands_out_the_plugin_of_each_profile():
    with Cluster(config=config("Counts", profiles=["one", "two"]), plugins=[Counts]) as cluster:
        cluster.add(make_node("a"), make_pod("p", scheduler_name="two"))
        cluster.settle()
        assert cluster.plugin("Counts", "two").calls == 1
        assert cluster.plugin("Counts").calls == cluster.plugin("Counts", profile="one").calls == 0
        with pytest.raises(AssertionError, match="no plugin 'Other' runs in any profile; running are one: "):
            cluster.plugin("Other")
        with pytest.raises(AssertionError, match="no plugin 'Counts' runs in three"):
            cluster.plugin("Counts", "three")
