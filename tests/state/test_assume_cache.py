"""Assumed objects shadow the store until something at least as new is delivered."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.framework.handle import AssumeCache
from mooring.framework.ports import Change
from mooring.state.assume_cache import AssumeStore
from mooring.state.errors import CacheError
from mooring.state.stores import ObjectStore
from tests.state.objects import make_pod

KEY = "default/p"


def version(number: str, mark: str = "") -> Pod:
    pod = make_pod("p", labels={"mark": mark})
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=number)
    )


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
        pytest.param(
            "9", "9", ("9", "assumed"), id="the version it is based on, delivered again, changes nothing"
        ),
        pytest.param("9", "10", ("10", "delivered"), id="any later version ends a change not yet written"),
        pytest.param("12", "10", ("12", "assumed"), id="a version between base and assumed is too old"),
        pytest.param("12", "12", ("12", "delivered"), id="the assumed version arrives"),
        pytest.param("12", "100", ("100", "delivered"), id="versions are compared as numbers"),
        pytest.param(
            "x", "y", ("y", "delivered"), id="versions that are no numbers: any other one counts as newer"
        ),
    ],
)
def test_an_assumed_object_is_shown_until_overtaken(world, assumed, delivered, expected):
    world.cache.assume(version(assumed, "assumed"))
    if delivered is not None:
        world.deliver(delivered)

    assert world.shown() == expected


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
    with pytest.raises(CacheError, match="not known"):
        world.cache.assume(make_pod("other"))
    with pytest.raises(CacheError, match="older"):
        world.cache.assume(version("8"))
    world.cache.assume(version("12"))
    with pytest.raises(CacheError, match="older"):
        world.cache.assume(version("11"))
