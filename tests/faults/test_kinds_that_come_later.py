"""A custom kind whose definition is installed while the scheduler runs, on the embedded API server.
(docs/plugins/recipes.md: Access to the cluster)"""

from __future__ import annotations

from typing import Any

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Unstructured, custom
from moorage.embedded.catalog.crds.registrar import Registrar
from moorage.framework import Access, FilterPlugin, ReusablePlugin, Status
from moorage.framework.access import Kind
from moorage.testing import make_node, make_pod
from tests.embedded.in_process import AsgiTransport
from tests.faults.world import HttpCluster
from tests.scheduler.kit import config

WIDGETS = custom("example.com", "v1", "widgets", "Widget")
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Widgets(FilterPlugin, ReusablePlugin):
    """Pods wait until widgets are a kind of this cluster. Its answers are reused."""

    name = "Widgets"
    needs = (Access(WIDGETS),)

    def reads(self, pod):
        return (Kind(WIDGETS),)

    def sign(self, pod):
        return ()

    def filter(self, state, pod, node):
        widgets = self.handle.lister(WIDGETS)
        return None if widgets.known else Status.unschedulable("the kind Widget is not installed")

    def events_to_register(self):
        return []


class CrdCluster(HttpCluster):
    """An API server that serves what definitions define."""

    def _serve(self) -> AsgiTransport:
        transport = super()._serve()
        self.registrar = Registrar(self.store, self.catalog, self.clock.wall, self.loop.call_soon)
        return transport

    def close(self) -> None:
        self.registrar.close()
        super().close()

    def __enter__(self) -> CrdCluster:
        return self


def install(cluster: HttpCluster) -> None:
    cluster.run(cluster.http.create(CUSTOM_RESOURCE_DEFINITIONS, Unstructured(DEFINITION)))


def known(cluster: HttpCluster) -> bool:
    return cluster.scheduler.engine.stores.lister(WIDGETS).known


def test_item_3_a_definition_that_comes_later_is_seen_within_two_seconds_and_brings_refused_pods_back():
    with CrdCluster(config=config("Widgets"), plugins=[Widgets], start=False, flush_after=None) as cluster:
        cluster.add(make_node("a"), *(make_pod(name) for name in ("p", "q", "r")))
        cluster.start()
        cluster.settle(200)
        assert not known(cluster)
        assert cluster.pending() == ["default/p", "default/q", "default/r"]
        assert "the kind Widget is not installed" in cluster.record("p").message
        install(cluster)
        cluster.settle(2.0)
        assert known(cluster)
        assert cluster.pending() == []
        assert cluster.record("p").woken_by == "KindServed"


def test_item_3_a_definition_that_goes_is_noticed_and_one_that_was_there_at_the_start_is_known():
    with CrdCluster(config=config("Widgets"), plugins=[Widgets], start=False) as cluster:
        cluster.add(make_node("a"))
        install(cluster)
        cluster.start()
        cluster.settle()
        assert known(cluster)
        cluster.run(cluster.http.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com"))
        cluster.until(lambda: not known(cluster), timeout=700)
        cluster.add(make_pod("p"))
        cluster.settle()
        assert cluster.pending() == ["default/p"]
