"""Binding: what it sets, and the four refusals with their exact sentences."""

from __future__ import annotations

import pytest

from moorage.api.errors import Conflict, Invalid, NotFound
from moorage.api.resources import PODS
from tests.store.kit import NOW_TEXT, new_store, pod


def test_a_bound_pod_has_node_and_condition_and_no_nomination():
    store = new_store()
    uid = store.create(PODS, pod()).uid
    status = {
        "nominatedNodeName": "n2",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"},
            {"type": "Ready", "status": "False"},
        ],
    }
    store.patch(PODS, "a", {"status": status}, namespace="default", subresource="status")
    raw = store.bind("a", "default", "n1", uid=uid).raw
    assert raw["spec"]["nodeName"] == "n1"
    assert raw["status"] == {
        "phase": "Pending",
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOW_TEXT},
        ],
    }


def test_neither_existence_nor_allocatable_of_the_node_is_checked():
    store = new_store()
    for name in ("a", "b"):
        store.create(PODS, pod(name))
        assert store.bind(name, "default", "no-such-node").raw["spec"]["nodeName"] == "no-such-node"


def test_a_missing_pod_is_not_found():
    with pytest.raises(NotFound) as caught:
        new_store().bind("a", "default", "n1")
    assert caught.value.status.message == 'pods "a" not found'


def test_a_bind_without_a_node_is_invalid():
    store = new_store()
    store.create(PODS, pod())
    with pytest.raises(Invalid, match=r"target\.name"):
        store.bind("a", "default", "")


def already_bound(store):
    store.create(PODS, pod())
    store.bind("a", "default", "n2")


def being_deleted(store):
    store.create(PODS, pod() | {"metadata": {"name": "a", "namespace": "default", "finalizers": ["x/y"]}})
    store.delete(PODS, "a", namespace="default")


def gated(store):
    store.create(PODS, pod(schedulingGates=[{"name": "wait"}]))


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        pytest.param(already_bound, 'pod a is already assigned to node "n2"', id="already assigned"),
        pytest.param(being_deleted, "pod a is being deleted, cannot be assigned to a host", id="being deleted"),
        pytest.param(gated, "pod a has non-empty .spec.schedulingGates", id="gated"),
    ],
)
def test_refusals_say_what_the_api_server_says(arrange, words):
    store = new_store()
    arrange(store)
    before = store.version
    with pytest.raises(Conflict) as caught:
        store.bind("a", "default", "n1")
    assert caught.value.status.message == f'Operation cannot be fulfilled on pods/binding "a": {words}'
    assert caught.value.reason == "Conflict"
    assert store.version == before


@pytest.mark.parametrize(
    ("precondition", "what", "wanted"),
    [({"uid": "other"}, "UID", "other"), ({"resource_version": "1"}, "ResourceVersion", "1")],
    ids=["uid", "resourceVersion"],
)
def test_preconditions_that_do_not_hold_are_conflicts(precondition, what, wanted):
    store = new_store()
    current = store.create(PODS, pod())
    found = current.uid if what == "UID" else current.resource_version
    with pytest.raises(Conflict) as caught:
        store.bind("a", "default", "n1", **precondition)
    assert caught.value.status.message == (
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
        "Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    )
