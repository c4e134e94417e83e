"""Lists: order, selectors, and pages that all show the same moment."""

from __future__ import annotations

import pytest

from moorage.api.errors import BadRequest, Gone
from moorage.api.resources import EVENTS, NODES, PODS, Resource, custom
from moorage.store.store import Store
from tests.store.kit import labelled, new_store, node, pod


def names(store: Store, resource: Resource = PODS, **options: str) -> list[str]:
    return [stored.name for stored in store.list(resource, **options).items]  # type: ignore[arg-type]


def test_lists_are_in_order_and_say_which_version_they_show():
    store = new_store()
    for name, namespace in (("b", "y"), ("a", "y"), ("c", "x")):
        store.create(PODS, pod(name, namespace))
    assert names(store) == ["c", "a", "b"]
    assert store.list(PODS).version == store.version == 4


@pytest.mark.parametrize("version", ["", "0", "1", "3"])
def test_an_older_version_gives_the_newest_state(version):
    store = new_store()
    for name in "ab":
        store.create(PODS, pod(name))
    listing = store.list(PODS, resource_version=version)
    assert (len(listing.items), listing.version) == (2, 3)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=", ["free"]),
        ("spec.nodeName!=", ["done", "placed"]),
        ("spec.nodeName=n1,status.phase!=Succeeded", ["placed"]),
        ("status.phase=Succeeded", ["done"]),
        ("spec.schedulerName==default-scheduler", ["done", "free", "placed"]),
        ("spec.hostNetwork=false", ["done", "free", "placed"]),
        ("metadata.namespace=default,metadata.name=free", ["free"]),
    ],
)
def test_field_selectors_of_pods(selector, expected):
    store = new_store()
    for name in ("free", "placed", "done"):
        store.create(PODS, pod(name))
    for name in ("placed", "done"):
        store.bind(name, "default", "n1")
    store.patch(PODS, "done", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
    assert names(store, field_selector=selector) == expected


def test_field_selectors_of_other_kinds():
    store = new_store()
    store.create(NODES, node("n1"))
    store.create(NODES, node("n2") | {"spec": {"unschedulable": True}})
    event = {"metadata": {"name": "e", "namespace": "default"}, "regarding": {"kind": "Pod", "name": "a"}}
    store.create(EVENTS, event | {"reason": "Scheduled"})
    assert names(store, NODES, field_selector="spec.unschedulable=false") == ["n1"]
    assert names(store, NODES, field_selector="spec.unschedulable=true") == ["n2"]
    assert names(store, EVENTS, field_selector="regarding.kind=Pod,reason=Scheduled") == ["e"]


@pytest.mark.parametrize(
    ("resource", "options", "text"),
    [
        pytest.param(PODS, {"field_selector": "spec.priority=1"}, "not supported", id="pod field"),
        pytest.param(
            custom("example.com", "v1", "widgets", "Widget"),
            {"field_selector": "spec.x=1"},
            "field label not supported: spec.x",
            id="field of a custom kind",
        ),
        pytest.param(PODS, {"field_selector": "nonsense"}, "is not a term", id="field selector text"),
        pytest.param(PODS, {"label_selector": "a=("}, "label selector", id="label selector text"),
        pytest.param(PODS, {"page": "%%%"}, "continue key is not valid", id="page token"),
        pytest.param(PODS, {"page": "e30="}, "continue key is not valid", id="empty page token"),
    ],
)
def test_bad_requests(resource, options, text):
    with pytest.raises(BadRequest, match=text):
        new_store().list(resource, **options)


class TestPages:
    def test_pages_show_the_moment_of_the_first_one(self):
        store = new_store()
        for name in "abcde":
            store.create(PODS, pod(name))
        first = store.list(PODS, limit=2)
        store.delete(PODS, "d", namespace="default")
        store.create(PODS, pod("dd"))
        store.bind("e", "default", "n1")
        second = store.list(PODS, limit=2, page=first.next_page)
        third = store.list(PODS, limit=2, page=second.next_page)
        pages = [[stored.name for stored in page.items] for page in (first, second, third)]
        assert pages == [["a", "b"], ["c", "d"], ["e"]]
        assert {page.version for page in (first, second, third)} == {6}
        assert [page.remaining for page in (first, second, third)] == [3, 1, None]
        assert "nodeName" not in third.items[0].raw["spec"]
        assert third.next_page == ""

    def test_a_selection_is_paged_like_everything(self):
        store = new_store()
        for number in range(6):
            store.create(PODS, labelled(pod(f"p{number}"), odd=str(number % 2)))
        first = store.list(PODS, limit=2, label_selector="odd=1")
        second = store.list(PODS, limit=2, label_selector="odd=1", page=first.next_page)
        assert [s.name for s in first.items + second.items] == ["p1", "p3", "p5"]
        assert first.remaining is None

    def test_a_page_of_a_forgotten_moment_is_gone(self):
        store = new_store()
        for name in "abc":
            store.create(PODS, pod(name))
        page = store.list(PODS, limit=1).next_page
        store.create(PODS, pod("d"))
        store.compact()
        with pytest.raises(Gone, match="continue parameter is too old"):
            store.list(PODS, limit=1, page=page)
