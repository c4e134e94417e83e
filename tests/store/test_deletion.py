"""Deletion: at once, after a grace period, after the last finalizer, and never the wrong object."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import Conflict, NotFound
from moorage.api.resources import NAMESPACES, NODES, PODS, Resource
from moorage.embedded.builtin import strict_rules
from moorage.store.store import Store
from tests.store.kit import Wall, new_store, node, pod


def is_there(store: Store, resource: Resource = PODS, name: str = "a", namespace: str = "default") -> bool:
    try:
        return bool(store.get(resource, name, namespace))
    except NotFound:
        return False


def run_pod(store: Store) -> None:
    store.create(PODS, pod())
    store.bind("a", "default", "n1")


@pytest.mark.parametrize(
    ("spec", "bound", "phase", "grace", "stays"),
    [
        pytest.param({}, False, "Pending", None, False, id="unassigned goes at once"),
        pytest.param({}, False, "Pending", 30, False, id="unassigned goes at once whatever is asked"),
        pytest.param({}, True, "Running", None, True, id="assigned gets the default of 30 s"),
        pytest.param({}, True, "Running", 0, False, id="grace 0 goes at once"),
        pytest.param({"terminationGracePeriodSeconds": 0}, True, "Running", None, False, id="own grace 0 goes at once"),
        pytest.param({}, True, "Running", -5, True, id="a negative grace is 1 s"),
        pytest.param({}, True, "Succeeded", 30, False, id="a finished pod goes at once"),
    ],
)
def test_grace_periods_of_pods(spec, bound, phase, grace, stays):
    store = new_store()
    store.create(PODS, pod(**spec))
    if bound:
        store.bind("a", "default", "n1")
    store.patch(PODS, "a", {"status": {"phase": phase}}, namespace="default", subresource="status")
    store.delete(PODS, "a", namespace="default", grace_period=grace)
    assert is_there(store) == stays


def test_a_terminating_pod_says_until_when_and_goes_when_its_kubelet_is_done():
    store = new_store()
    run_pod(store)
    meta = store.delete(PODS, "a", namespace="default").raw["metadata"]
    assert meta["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert meta["deletionGracePeriodSeconds"] == 30
    last = store.finish_deletion("a", "default")
    assert last.raw["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert not is_there(store)


def test_a_second_delete_can_shorten_the_grace_period_only():
    wall = Wall()
    store = new_store(wall)
    run_pod(store)
    first = store.delete(PODS, "a", namespace="default")
    wall.time += 5
    assert store.delete(PODS, "a", namespace="default") is first
    assert store.delete(PODS, "a", namespace="default", grace_period=60) is first
    meta = store.delete(PODS, "a", namespace="default", grace_period=10).raw["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:10Z", 10)


def test_an_object_with_finalizers_stays_until_the_last_is_taken_away():
    store = new_store()
    store.create(NODES, node(finalizers=["a/b", "c/d"]))
    store.delete(NODES, "n1")
    assert store.get(NODES, "n1").raw["metadata"]["deletionTimestamp"]
    store.patch(NODES, "n1", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})
    assert is_there(store, NODES, "n1", "")
    store.patch(NODES, "n1", {"metadata": {"finalizers": None}})
    assert not is_there(store, NODES, "n1", "")


def test_a_pod_waits_for_both_its_kubelet_and_its_finalizers():
    store = new_store()
    raw = pod()
    raw["metadata"]["finalizers"] = ["x/y"]
    store.create(PODS, raw)
    store.bind("a", "default", "n1")
    store.delete(PODS, "a", namespace="default")
    store.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace="default")
    assert is_there(store)
    store.finish_deletion("a", "default")
    assert not is_there(store)


@pytest.mark.parametrize(
    ("precondition", "words"),
    [
        pytest.param(
            {"uid": "old"},
            "the UID in the precondition (old) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated",
            id="recreated under the same name",
        ),
        pytest.param(
            {"resource_version": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). "
            "The object might have been modified",
            id="modified meanwhile",
        ),
    ],
)
def test_preconditions_protect_another_object(precondition, words):
    store = new_store()
    uid = store.create(PODS, pod()).uid
    with pytest.raises(Conflict) as caught:
        store.delete(PODS, "a", namespace="default", **precondition)
    assert caught.value.status.message == (f'Operation cannot be fulfilled on Pod "a": {words.format(uid=uid)}')
    assert is_there(store)


def test_deleting_what_is_not_there_is_not_found():
    with pytest.raises(NotFound, match='nodes "n9" not found'):
        new_store().delete(NODES, "n9")


class TestNamespaces:
    def namespace(self, *finalizers: str) -> dict[str, Any]:
        return {"metadata": {"name": "team"}, "spec": {"finalizers": list(finalizers)}}

    def test_one_is_terminating_until_its_content_is_gone(self):
        store = new_store()
        store.create(NAMESPACES, self.namespace("kubernetes"))
        raw = store.delete(NAMESPACES, "team").raw
        assert raw["status"]["phase"] == "Terminating"
        assert store.delete(NAMESPACES, "team").raw == raw
        store.patch(NAMESPACES, "team", {"metadata": {"labels": {"a": "b"}}})
        assert is_there(store, NAMESPACES, "team", "")
        store.replace(NAMESPACES, self.namespace(), subresource="finalize")
        assert not is_there(store, NAMESPACES, "team", "")

    def test_finalizing_changes_nothing_else(self):
        store = new_store(rules=strict_rules())
        before = store.create(NAMESPACES, self.namespace()).raw
        proposed = {**before, "spec": {"finalizers": ["a/b"]}, "metadata": {"name": "team", "labels": {"x": "y"}}}
        after = store.replace(NAMESPACES, proposed, subresource="finalize").raw
        assert after["spec"] == {"finalizers": ["a/b"]}
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    def test_only_namespaces_are_finalized(self):
        store = new_store()
        store.create(NODES, node())
        with pytest.raises(NotFound, match="could not find the requested resource"):
            store.replace(NODES, node(), subresource="finalize")


class TestPropagation:
    @pytest.mark.parametrize(
        ("policy", "before", "after"),
        [
            pytest.param("Foreground", [], ["foregroundDeletion"], id="dependents first"),
            pytest.param("Orphan", [], ["orphan"], id="dependents let go"),
            pytest.param("Background", [], None, id="dependents afterwards"),
            pytest.param("", ["orphan"], ["orphan"], id="as decided before"),
            pytest.param("Background", ["orphan"], None, id="decided otherwise"),
            pytest.param("Foreground", ["orphan", "a/b"], ["a/b", "foregroundDeletion"], id="others stay"),
        ],
    )
    def test_the_policy_is_noted_as_a_finalizer(self, policy, before, after):
        store = new_store()
        store.create(NODES, node(finalizers=before))
        store.delete(NODES, "n1", propagation=policy)
        if after is None:
            assert not is_there(store, NODES, "n1", "")
        else:
            meta = store.get(NODES, "n1").raw["metadata"]
            assert (meta["finalizers"], "deletionTimestamp" in meta) == (after, True)

    def test_it_can_be_changed_while_the_object_is_going(self):
        store = new_store()
        store.create(NODES, node())
        store.delete(NODES, "n1", propagation="Foreground")
        store.delete(NODES, "n1", propagation="Background")
        assert not is_there(store, NODES, "n1", "")

    def test_a_dry_run_deletes_nothing(self):
        store = new_store()
        store.create(NODES, node())
        version = store.version
        assert "deletionTimestamp" in store.delete(NODES, "n1", dry_run=True).raw["metadata"]
        assert (is_there(store, NODES, "n1", ""), store.version) == (True, version)
