"""What was worked out about a pending pod is used when it is assumed, and never for another version of it."""

from __future__ import annotations

import pytest

from moorage.api.selectors import selector_from_labels
from moorage.framework.indexes import PodSelector
from moorage.state import label_index
from moorage.state.cache import ClusterCache
from moorage.state.counting import LazyCounting
from moorage.state.indexes import Indexes
from moorage.state.node_table import NodeTable
from tests.state.objects import make_node, make_pod


def app_keys(pod):
    return (pod.labels["app"],) if "app" in pod.labels else ()


class Counted:
    """A cache whose table is counted and indexed by the label `app`."""

    def __init__(self) -> None:
        table = NodeTable(width=2)
        self.cache = ClusterCache(table)
        self.cache.add_node(make_node("a"))
        self.counters = LazyCounting(table).pod_counters()
        self.indexes = Indexes(table.observers)
        self.index = self.indexes.pod_index("app", app_keys)

    def seen(self, app: str) -> tuple[int, int, int]:
        """Milli-cpu on the node, pods counted and pods indexed there."""
        self.cache.validate()
        selector = PodSelector(None, selector_from_labels({"app": app}))
        row = self.cache.table.row_of("a")
        return (
            self.cache.table.load_on(row).requested["cpu"],
            self.counters.get(selector).number(row),
            self.index.rows(app).get(row, 0),
        )


@pytest.mark.parametrize("expected", ["nothing", "the pod", "an older version"])
def test_an_assumed_pod_counts_as_it_is(expected):
    world, pod = Counted(), make_pod("p", cpu="1", labels={"app": "web"})
    if expected == "the pod":
        world.cache.expect(pod)
    elif expected == "an older version":
        world.cache.expect(make_pod("p", cpu="2"))
    world.cache.assume(pod, "a")
    assert world.seen("web") == (1000, 1, 1)
    world.cache.forget(pod.uid)
    assert world.seen("web") == (0, 0, 0)


def test_a_newer_version_replaces_what_was_expected():
    world, pod = Counted(), make_pod("p", cpu="1", labels={"app": "web"})
    world.cache.expect(make_pod("p", cpu="2"))
    world.cache.expect(pod)
    world.cache.assume(pod, "a")
    assert world.seen("web") == (1000, 1, 1)


def test_a_pod_without_keys_gets_them_from_an_index_that_comes_later():
    world, pod = Counted(), make_pod("p", cpu="1", labels={"tier": "front"})
    world.cache.expect(pod)
    tiers = world.indexes.pod_index("tier", lambda pod: tuple(pod.labels.get("tier", "").split()))
    world.cache.assume(pod, "a")
    row = world.cache.table.row_of("a")
    assert dict(tiers.rows("front")) == {row: 1}
    world.cache.forget(pod.uid)
    assert dict(tiers.rows("front")) == {}


def test_who_is_gone_is_expected_no_more():
    world, pod = Counted(), make_pod("p", cpu="1", labels={"app": "web"})
    world.cache.expect(pod)
    world.cache.forget_expected(pod.uid)
    world.cache.forget_expected("unknown")
    world.cache.assume(pod, "a")
    assert world.seen("web") == (1000, 1, 1)


def test_a_pod_counts_although_the_last_of_its_kind_was_deleted_meanwhile(monkeypatch):
    monkeypatch.setattr(label_index, "_MAX_VACANT", 0)
    world, pod = Counted(), make_pod("p", cpu="1", labels={"app": "web"})
    other = make_pod("other", node="a", labels={"app": "web"})
    world.cache.add_pod(other)
    world.cache.expect(pod)
    world.cache.remove_pod(other)
    assert world.seen("web") == (0, 0, 0)
    world.cache.assume(pod, "a")
    assert world.seen("web") == (1000, 1, 1)
