"""Objects of a snapshot are completed so that controllers leave them as they are."""

import json
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.up import snapshot_objects


def read(tmp_path, **kinds: Any) -> dict[str, list[dict[str, Any]]]:
    """Kind → objects."""
    (tmp_path / "s.json").write_text(json.dumps({"nodes": [], **kinds}))
    found: dict[str, list[dict[str, Any]]] = {}
    for obj in snapshot_objects.read(tmp_path / "s.json"):
        found.setdefault(obj["kind"], []).append(obj)
    return found


def pod(name: str = "p", owner: str = "", **spec: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    if owner:
        meta["ownerReferences"] = [{"kind": "ReplicaSet", "name": "rs", "uid": owner}]
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def test_kinds_come_in_the_order_in_which_they_need_each_other(tmp_path):
    found = read(
        tmp_path, pods=[pod(priority=5)], nodes=[{"metadata": {"name": "n"}}], pvs=[{"metadata": {"name": "v"}}]
    )
    assert list(found) == ["Namespace", "PriorityClass", "Node", "PersistentVolume", "Pod"]


def test_owners_that_are_not_there_are_no_longer_named(tmp_path):
    sets = [{"metadata": {"name": "rs", "namespace": "shop", "uid": "u"}, "spec": {}}]
    here, gone = read(tmp_path, replicaSets=sets, pods=[pod("a", "u"), pod("b", "x")])["Pod"]
    assert [owner["uid"] for owner in here["metadata"]["ownerReferences"]] == ["u"]
    assert gone["metadata"]["ownerReferences"] == []


def test_a_set_without_template_gets_that_of_its_pods_without_their_place(tmp_path):
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}
    sets = [{"metadata": {"name": "rs", "namespace": "shop", "uid": "u"}, "spec": spec}]
    [made] = read(tmp_path, replicaSets=sets, pods=[pod("a", "u", nodeName="n", priority=3)])["ReplicaSet"]
    containers = [{"name": "c", "image": "i"}]
    assert made["spec"] == {
        **spec, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    }  # fmt: skip


def test_pods_of_a_stateful_set_are_not_replaced_for_another_revision(tmp_path):
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "db"}}}
    sets = [{"metadata": {"name": "db", "namespace": "shop", "uid": "u"}, "spec": spec}]
    [made] = read(tmp_path, statefulSets=sets)["StatefulSet"]
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "db"}


@pytest.mark.parametrize(
    ("spec", "classes", "name", "made"),
    [
        ({}, [], None, {}),
        ({"priority": 0}, [], None, {}),
        ({"priority": 7}, [], "snapshot-7-preemptlowerpriority", {"snapshot-7-preemptlowerpriority": 7}),
        ({"priority": 7, "priorityClassName": "own"}, [], "own", {"own": 7}),
        ({"priority": 7, "priorityClassName": "own"}, [("own", 7)], "own", {"own": 7}),
        (
            {"priority": 7, "priorityClassName": "own"},
            [("own", 8)],
            "snapshot-7-preemptlowerpriority",
            {"own": 8, "snapshot-7-preemptlowerpriority": 7},
        ),
        (
            {"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"},
            [],
            "system-cluster-critical",
            {},
        ),
    ],
)
def test_every_priority_has_a_class_that_gives_it(tmp_path, spec, classes, name, made):
    given = [{"metadata": {"name": each}, "value": value} for each, value in classes]
    found = read(tmp_path, pods=[pod(**spec)], priorityClasses=given)
    assert found["Pod"][0]["spec"].get("priorityClassName") == name
    assert {each["metadata"]["name"]: each["value"] for each in found.get("PriorityClass", ())} == made


def test_a_volume_names_its_claim_by_the_uid_that_it_has_here(tmp_path):
    volumes = [{"metadata": {"name": "v"}, "spec": {"claimRef": {"namespace": "shop", "name": "c", "uid": "old"}}}]
    found = read(tmp_path, pvs=volumes, pvcs=[{"metadata": {"name": "c", "namespace": "shop"}}])
    [volume], [claim] = found["PersistentVolume"], found["PersistentVolumeClaim"]
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"] == "persistentvolumeclaims/shop/c"


def test_namespaces_that_are_missing_are_made(tmp_path):
    spaces = [{"metadata": {"name": "shop", "labels": {"a": "b"}}}]
    services = [{"metadata": {"name": "s", "namespace": "other"}}]
    found = read(tmp_path, namespaces=spaces, services=services, pods=[pod()])["Namespace"]
    assert [(each["metadata"]["name"], each["metadata"].get("labels")) for each in found] == [
        ("shop", {"a": "b"}),
        ("other", None),
    ]


def test_what_is_no_list_of_objects_is_named(tmp_path):
    with pytest.raises(MoorageError, match=r"s.json, pods: a list of objects is expected"):
        read(tmp_path, pods=[7])
