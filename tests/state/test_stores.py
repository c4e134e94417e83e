"""Object stores hold what was delivered last, whatever is repeated, late or unknown."""

from __future__ import annotations

import msgspec

from mooring.api.pod import Pod
from mooring.api.resources import NODES, PODS
from mooring.framework.handle import Lister
from mooring.framework.ports import Change
from mooring.state.stores import ObjectStore, Stores
from tests.state.objects import make_node, make_pod


def added(pod: Pod) -> Change:
    return Change(PODS, None, pod)


def deleted(pod: Pod) -> Change:
    return Change(PODS, pod, None)


def in_namespace(pod: Pod, namespace: str) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, namespace=namespace)
    return msgspec.structs.replace(pod, metadata=meta)


def filled(*pods: Pod) -> ObjectStore:
    store = ObjectStore(PODS)
    for pod in pods:
        store.apply(added(pod))
    return store


def test_objects_are_listed_in_the_order_in_which_they_first_appeared():
    store = filled(make_pod("b"), make_pod("a"))
    store.apply(Change(PODS, make_pod("b"), make_pod("b", labels={"x": "y"})))

    assert [pod.name for pod in store.list()] == ["b", "a"]
    assert next(store.list()).labels == {"x": "y"}


def test_a_namespace_has_its_own_listing():
    here, there = make_pod("p", uid="1"), in_namespace(make_pod("p", uid="2"), "other")
    store = filled(here, there)

    assert list(store.list("other")) == [there]
    assert list(store.list("nowhere")) == []
    assert store.get("p", "other") is there
    assert store.get("p", "default") is here
    assert store.by_key("other/p") is there
    assert len(store) == 2


def test_cluster_wide_objects_have_no_namespace():
    store = ObjectStore(NODES)
    node = make_node("n")
    store.apply(Change(NODES, None, node))

    assert store.get("n") is node
    assert list(store.list()) == [node]


def test_repeated_and_unknown_deletes_change_nothing():
    store = filled(make_pod("a"))
    for _ in range(2):
        store.apply(deleted(make_pod("a")))
    store.apply(deleted(make_pod("never")))

    assert len(store) == 0
    assert store.get("a", "default") is None
    assert list(store.list("default")) == []


def test_an_update_of_an_unknown_object_adds_it():
    store = filled()
    store.apply(Change(PODS, make_pod("a"), make_pod("a")))

    assert len(store) == 1


def test_a_late_delete_does_not_hit_the_successor_of_the_same_name():
    store = filled(make_pod("a", uid="old"), make_pod("a", uid="new"))
    store.apply(deleted(make_pod("a", uid="old")))

    assert [pod.uid for pod in store.list()] == ["new"]


def test_a_successor_of_the_same_name_is_listed_last():
    store = filled(make_pod("a", uid="old"), make_pod("b"), make_pod("a", uid="new"))

    assert [pod.uid for pod in store.list()] == ["b", "new"]


def test_stores_make_one_store_per_kind_and_route_changes():
    stores = Stores()
    lister: Lister = stores.lister(PODS)
    stores.apply(added(make_pod("a")))
    stores.apply(Change(NODES, None, make_node("n")))

    assert len(lister) == 1
    assert stores.lister(PODS) is lister
    assert stores[NODES].get("n") is not None
