"""Garbage collection by owners, deletion of namespaces, and what every cluster has from the start."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import resources
from moorage.api.resources import custom
from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, workload

Raw = dict[str, Any]
CONFIG_MAPS = kinds.plain(resources.CONFIG_MAPS)


def config_map(name: str, *owners: Raw, namespace: str = "default") -> Raw:
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": list(owners)}}


def owner(raw: Raw, **more: Any) -> Raw:
    return {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "name": raw["metadata"]["name"],
        "uid": raw["metadata"]["uid"],
        **more,
    }


def test_background_deletion_reaches_the_last_pod():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        world.delete(kinds.DEPLOYMENTS, "web")
        world.settle(10)
        assert world.all(kinds.REPLICA_SETS) == world.all(kinds.PODS) == []


def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        world.store.delete(kinds.DEPLOYMENTS, "web", namespace="default", propagation="Foreground")
        order = []
        for _ in range(100):
            world.settle(0.05)
            remaining = [bool(world.all(kind)) for kind in (kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.PODS)]
            assert remaining == sorted(remaining, reverse=True), remaining
            order.append(remaining.count(True))
        assert order[0] == 3
        assert order[-1] == 0


def test_orphaned_dependents_stay_and_can_be_adopted_again():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        pods = {p["metadata"]["uid"] for p in world.all(kinds.PODS)}
        world.store.delete(kinds.DEPLOYMENTS, "web", namespace="default", propagation="Orphan")
        world.settle(5)
        assert world.find(kinds.DEPLOYMENTS, "web") is None
        (remaining,) = world.all(kinds.REPLICA_SETS)
        assert "ownerReferences" not in remaining["metadata"]
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        assert {p["metadata"]["uid"] for p in world.all(kinds.PODS)} == pods


def test_an_object_lives_as_long_as_one_of_its_owners():
    with World() as world:
        first, second = (world.create(CONFIG_MAPS, config_map(name)) for name in ("a", "b"))
        world.create(CONFIG_MAPS, config_map("child", owner(first), owner(second)))
        world.settle(2)
        world.delete(CONFIG_MAPS, "a")
        world.settle(2)
        kept = world.get(CONFIG_MAPS, "child")["metadata"]["ownerReferences"]
        assert [o["name"] for o in kept] == ["b"]
        world.delete(CONFIG_MAPS, "b")
        world.settle(2)
        assert world.find(CONFIG_MAPS, "child") is None


def test_an_owner_that_never_was_does_not_keep_anything():
    with World() as world:
        there = world.create(CONFIG_MAPS, config_map("a"))
        world.create(CONFIG_MAPS, config_map("child", {**owner(there), "uid": "another-life"}))
        unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "y"}
        world.create(CONFIG_MAPS, config_map("guarded", unknown))
        world.settle(2)
        assert world.find(CONFIG_MAPS, "child") is None
        assert world.find(CONFIG_MAPS, "guarded") is not None


def test_custom_resources_are_collected_too():
    things = custom("example.com", "v1", "things", "Thing")
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    with World() as world:
        world.create(kinds.DEFINITIONS, definition)
        parent = world.create(CONFIG_MAPS, config_map("a"))
        world.settle(2)
        meta = {"name": "t", "namespace": "default", "ownerReferences": [owner(parent)]}
        thing = world.create(things, {"metadata": meta})
        world.create(CONFIG_MAPS, config_map("child", owner(thing)))
        world.settle(2)
        world.delete(CONFIG_MAPS, "a")
        world.settle(3)
        assert world.find(things, "t") is None
        assert world.find(CONFIG_MAPS, "child") is None


def test_a_namespace_goes_with_everything_in_it():
    with World() as world:
        world.create(kinds.NAMESPACES, {"metadata": {"name": "team"}})
        raw = workload()
        raw["metadata"]["namespace"] = "team"
        world.create(kinds.DEPLOYMENTS, raw)
        world.create(CONFIG_MAPS, config_map("c", namespace="team"))
        world.settle(5)
        assert len(world.all(kinds.PODS, namespace="team")) == 3
        assert world.find(kinds.SERVICE_ACCOUNTS, "default", "team") is not None
        world.delete(kinds.NAMESPACES, "team")
        world.settle(15)
        assert world.find(kinds.NAMESPACES, "team", "") is None
        for kind in (kinds.PODS, kinds.DEPLOYMENTS, kinds.REPLICA_SETS, CONFIG_MAPS, kinds.SERVICE_ACCOUNTS):
            assert world.all(kind, namespace="team") == [], kind
        since = world.clock.now()
        world.settle(60)
        assert world.writes(since) == []


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_every_cluster_has_its_namespaces_and_accounts(name: str):
    with World(nodes=0) as world:
        assert world.find(kinds.NAMESPACES, name, "") is not None
        assert world.find(kinds.SERVICE_ACCOUNTS, "default", name) is not None
        values = {c["metadata"]["name"]: c["value"] for c in world.all(kinds.PRIORITY_CLASSES)}
        assert values == {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
