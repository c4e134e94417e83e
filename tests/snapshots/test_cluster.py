"""A cluster read from an API server: what the plugins read, what cannot be read, what is not served."""

import asyncio

import pytest

from moorage.api.errors import SelectorError
from moorage.api.resources import NODES, PODS, PRIORITY_CLASSES, SERVICES
from moorage.app.configuration import configure
from moorage.framework.ports import Change, Malformed, ObjectList, Served
from moorage.snapshots.cluster import ClusterObjects, list_cluster
from moorage.testing import make_node, make_pod
from tests.client.scripted import error


class Lists:
    """Answers list calls in pages of one object."""

    def __init__(self, **objects):
        self.objects = objects
        self.selectors = {}

    async def list(self, resource, *, page="", field_selector="", **_):
        self.selectors[resource] = field_selector
        items = self.objects.get(resource.plural)
        if items is None:
            raise error(404)
        at = int(page or 0)
        malformed = [item for item in items[at : at + 1] if isinstance(item, Malformed)]
        good = [item for item in items[at : at + 1] if not isinstance(item, Malformed)]
        return ObjectList(good, "7", str(at + 1) if at + 1 < len(items) else "", malformed)


def read(lists, *resources):
    return asyncio.run(list_cluster(lists, resources))


def test_all_pages_are_read_and_pods_come_last():
    lists = Lists(nodes=[make_node("a"), make_node("b")], pods=[make_pod("p"), make_pod("q")], services=[])
    cluster = read(lists, SERVICES)
    assert list(cluster.objects) == [NODES, SERVICES, PODS]
    assert [change.new.name for change in cluster.changes()] == ["a", "b", "p", "q"]
    assert lists.selectors[PODS] == "status.phase!=Succeeded,status.phase!=Failed"


def test_what_cannot_be_read_is_set_aside():
    cluster = read(Lists(nodes=[Malformed("x", "broken"), make_node("a", cpu="much"), make_node("b")], pods=[]))
    assert [node.name for node in cluster.objects[NODES]] == ["b"]


def test_a_kind_that_is_not_served_is_reported_as_such():
    cluster = read(Lists(nodes=[make_node("a")], pods=[]), PRIORITY_CLASSES)
    first, second = cluster.changes()
    assert first == Served(PRIORITY_CLASSES, known=False)
    assert isinstance(second, Change)
    assert second.initial


def test_other_failures_end_the_reading():
    class Refuses(Lists):
        async def list(self, resource, **_):
            raise error(403)

    with pytest.raises(type(error(403))):
        read(Refuses())


def test_a_kind_that_may_not_be_listed_is_named_with_the_plugins_that_read_it():
    class Refuses(Lists):
        async def list(self, resource, **options):
            if resource == SERVICES:
                raise error(403)
            return await super().list(resource, **options)

    cluster = read(Refuses(nodes=[make_node("a")], pods=[]), SERVICES)
    assert Served(SERVICES, known=False) in list(cluster.changes())
    [gap] = cluster.gaps(configure(discover=False))
    assert gap.startswith("services could not be read")
    assert gap.endswith("PodTopologySpread may answer wrongly")


def test_the_kinds_are_those_that_the_plugins_read():
    assert {PODS, SERVICES} <= set(configure(discover=False).resources())


def test_a_selection_has_the_chosen_pods_and_nodes_and_no_pod_on_another_node():
    nodes = [make_node("a", labels={"pool": "gpu"}), make_node("b", labels={"pool": "cpu"})]
    pods = [
        make_pod("here", node="a", labels={"app": "x"}),
        make_pod("there", node="b", labels={"app": "x"}),
        make_pod("pending", labels={"app": "x"}),
        make_pod("other", node="a", labels={"app": "y"}),
    ]
    cluster = ClusterObjects({NODES: nodes, PODS: pods})

    def names(pods: str, nodes: str) -> list[list[str]]:
        found = cluster.selected(pods, nodes).objects
        return [[each.name for each in found[kind]] for kind in (NODES, PODS)]

    assert names("app=x", "") == [["a", "b"], ["here", "there", "pending"]]
    assert names("", "pool in (gpu)") == [["a"], ["here", "pending", "other"]]
    assert names("app=x", "pool=gpu") == [["a"], ["here", "pending"]]
    with pytest.raises(SelectorError):
        cluster.selected("app in", "")
