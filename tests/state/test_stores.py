"""The informer stores, and what plugins assume on top of them."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.framework.handle import AssumeCache, Lister
from moorage.framework.ports import Change
from moorage.state.columns import CacheError
from moorage.state.stores import AssumeStore, ObjectStore, Stores
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


KEY = "default/p"


def version(number: str, mark: str = "") -> Pod:
    pod = make_pod("p", labels={"mark": mark})
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=number))


class World:
    """A store that holds version 9, and the assume cache on it."""

    def __init__(self) -> None:
        self.store = ObjectStore(PODS)
        self.cache = AssumeStore(self.store)
        self.deliver("9")

    def deliver(self, number: str) -> None:
        self.store.apply(Change(PODS, None, version(number, "delivered")))

    def shown(self) -> tuple[str, str]:
        pod = self.cache.get(KEY)
        assert pod is not None
        assert list(self.cache.list()) == [pod]
        return pod.resource_version, pod.labels["mark"]


@pytest.fixture
def world() -> World:
    return World()


def test_without_assumption_the_store_is_shown(world):
    cache: AssumeCache = world.cache
    assert world.shown() == ("9", "delivered")
    assert cache.get("default/other") is None


@pytest.mark.parametrize(
    ("assumed", "delivered", "expected"),
    [
        pytest.param("9", None, ("9", "assumed"), id="a change not yet written is shown at once"),
        pytest.param("9", "9", ("9", "assumed"), id="the version it is based on, delivered again, changes nothing"),
        pytest.param("9", "10", ("10", "delivered"), id="any later version ends a change not yet written"),
        pytest.param("12", "10", ("12", "assumed"), id="a version between base and assumed is too old"),
        pytest.param("12", "12", ("12", "delivered"), id="the assumed version arrives"),
        pytest.param("12", "100", ("100", "delivered"), id="versions are compared as numbers"),
        pytest.param("12", "8", ("8", "delivered"), id="a restored backup: what was written is lost"),
        pytest.param("x", "y", ("y", "delivered"), id="versions that are no numbers: any other one counts as newer"),
    ],
)
def test_an_assumed_object_is_shown_until_overtaken(world, assumed, delivered, expected):
    world.cache.assume(version(assumed, "assumed"))
    if delivered is not None:
        world.deliver(delivered)

    assert world.shown() == expected


def test_a_restored_backup_with_the_version_that_an_assumption_is_based_on_ends_it(world):
    world.cache.assume(version("12", "assumed"))
    world.deliver("12")
    world.deliver("9")
    assert world.shown() == ("9", "delivered")
    world.cache.assume(version("10", "assumed again"))
    assert world.shown() == ("10", "assumed again")


def test_restore_takes_an_assumption_back(world):
    world.cache.assume(version("9", "assumed"))
    for _ in range(2):
        world.cache.restore(KEY)

    assert world.shown() == ("9", "delivered")


def test_a_deleted_object_takes_its_assumption_with_it(world):
    world.cache.assume(version("12", "assumed"))
    world.store.apply(Change(PODS, version("9"), None))

    assert world.cache.get(KEY) is None
    world.deliver("11")
    assert world.shown() == ("11", "delivered")


def test_unknown_and_older_objects_cannot_be_assumed(world):
    with pytest.raises(CacheError, match="not in the store"):
        world.cache.assume(make_pod("other"))
    with pytest.raises(CacheError, match="older"):
        world.cache.assume(version("8"))
    world.cache.assume(version("12"))
    with pytest.raises(CacheError, match="older"):
        world.cache.assume(version("11"))
