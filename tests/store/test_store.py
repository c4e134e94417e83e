"""Objects come, change and are read back: identity, versions, conflicts, the two doors of an object."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import AlreadyExists, ApiError, BadRequest, Conflict, Invalid, NotFound
from moorage.api.resources import LEASES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, custom
from moorage.framework.ports import PatchType
from tests.store.kit import NOW_TEXT, Wall, new_store, node, pod

WIDGETS = custom("example.com", "v1", "widgets", "Widget")


class TestCreate:
    def test_the_server_assigns_identity_and_version(self):
        store = new_store()
        stored = store.create(PODS, pod())
        meta = stored.raw["metadata"]
        assert meta["creationTimestamp"] == NOW_TEXT
        assert meta["generation"] == 1
        assert len(meta["uid"]) == 36
        assert meta["resourceVersion"] == stored.resource_version == str(store.version)
        assert (stored.raw["apiVersion"], stored.raw["kind"]) == ("v1", "Pod")

    def test_a_name_is_generated_from_a_prefix(self):
        store = new_store()
        raw = {"metadata": {"generateName": "web-", "namespace": "default"}}
        names = {store.create(PODS, raw).name for _ in range(50)}
        assert len(names) == 50
        assert all(name.startswith("web-") and len(name) == 9 for name in names)

    def test_the_same_seed_gives_the_same_uids(self):
        assert new_store().create(PODS, pod()).uid == new_store().create(PODS, pod()).uid

    def test_a_given_uid_is_kept_once_and_never_used_twice(self):
        store = new_store()
        raw = {"metadata": {"name": "a", "namespace": "default", "uid": "mine"}}
        assert store.create(PODS, raw, dry_run=True).uid == "mine"
        assert store.create(PODS, raw).uid == "mine"
        store.delete(PODS, "a", namespace="default")
        assert store.create(PODS, raw).uid != "mine"

    @pytest.mark.parametrize(
        ("raw", "error", "text"),
        [
            pytest.param({}, BadRequest, "no metadata", id="no metadata"),
            pytest.param({"metadata": {"name": "a"}}, BadRequest, "empty namespace", id="no namespace"),
            pytest.param({"metadata": {"namespace": "default"}}, Invalid, "generateName is required", id="no name"),
            pytest.param(
                {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "5"}},
                BadRequest,
                "resourceVersion should not be set",
                id="with a version",
            ),
        ],
    )
    def test_what_is_incomplete_is_refused(self, raw, error, text):
        with pytest.raises(error, match=text):
            new_store().create(PODS, raw)

    def test_a_taken_name_is_refused(self):
        store = new_store()
        store.create(PODS, pod())
        with pytest.raises(AlreadyExists) as caught:
            store.create(PODS, pod())
        assert caught.value.status.message == 'pods "a" already exists'

    def test_a_dry_run_stores_nothing(self):
        store = new_store()
        store.create(PODS, pod(), dry_run=True)
        assert store.list(PODS).items == []
        assert store.create(PODS, pod()).version == 2

    def test_one_name_in_two_namespaces_is_two_objects(self):
        store = new_store()
        store.create(PODS, pod("a", "one"))
        store.create(PODS, pod("a", "two"))
        assert [stored.namespace for stored in store.list(PODS).items] == ["one", "two"]
        assert [stored.namespace for stored in store.list(PODS, namespace="two").items] == ["two"]

    def test_load_keeps_status_and_times_of_an_object_from_elsewhere(self):
        raw = pod() | {"status": {"phase": "Running"}}
        raw["metadata"] |= {
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2021-01-01T00:00:00Z",
            "resourceVersion": "77",
            "uid": "old",
        }
        stored = new_store().load(PODS, raw)
        assert stored.raw["status"]["phase"] == "Running"
        assert stored.raw["metadata"] == raw["metadata"] | {"generation": 1, "resourceVersion": "2"}


class TestVersions:
    def test_one_counter_for_all_resources(self):
        store = new_store()
        versions = [
            store.create(PODS, pod()).version,
            store.create(NODES, node()).version,
            store.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace="default").version,
            store.delete(NODES, "n1").version,
        ]
        assert versions == [2, 3, 4, 5]
        assert store.version == 5

    def test_a_write_that_changes_nothing_makes_no_version(self):
        store = new_store()
        first = store.create(PODS, pod())
        again = store.patch(PODS, "a", {"metadata": {"labels": None}}, namespace="default")
        assert again is first
        assert store.replace(PODS, first.raw) is first

    def test_versions_go_on_from_the_given_one(self):
        assert new_store(start_version=1000).create(PODS, pod()).version == 1001

    def test_the_typed_form_is_made_once_per_version(self):
        store = new_store()
        stored = store.create(PODS, pod())
        assert stored.typed is store.get(PODS, "a", "default").typed
        assert stored.typed is not store.bind("a", "default", "n1").typed

    def test_an_old_version_is_untouched_by_later_writes(self):
        store = new_store()
        first = store.create(PODS, pod())
        store.bind("a", "default", "n1")
        assert "nodeName" not in first.raw["spec"]
        assert first.raw["metadata"]["resourceVersion"] == "2"


class TestReplace:
    def test_a_stale_version_is_a_conflict_with_the_servers_words(self):
        store = new_store()
        first = store.create(LEASES, {"metadata": {"name": "l", "namespace": "kube-system"}, "spec": {}})
        store.replace(LEASES, first.raw | {"spec": {"holderIdentity": "b"}})
        with pytest.raises(Conflict) as caught:
            store.replace(LEASES, first.raw | {"spec": {"holderIdentity": "c"}})
        assert caught.value.status.message == (
            'Operation cannot be fulfilled on leases.coordination.k8s.io "l": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )

    def test_without_a_version_the_last_writer_wins(self):
        store = new_store()
        store.create(NODES, node())
        replaced = store.replace(NODES, {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
        assert replaced.raw["spec"] == {"unschedulable": True}

    def test_another_uid_is_a_conflict(self):
        store = new_store()
        store.create(PODS, pod())
        raw = pod()
        raw["metadata"]["uid"] = "other"
        with pytest.raises(Conflict, match="UID in precondition: other, UID in object meta"):
            store.replace(PODS, raw)

    def test_a_missing_object_is_not_found(self):
        with pytest.raises(NotFound) as caught:
            new_store().replace(PODS, pod("gone"))
        assert caught.value.status.message == 'pods "gone" not found'

    def test_system_metadata_stays(self):
        store = new_store()
        first = store.create(NODES, node())
        raw = {"metadata": {"name": "n1", "creationTimestamp": "1970-01-01T00:00:00Z", "generation": 99}}
        meta = store.replace(NODES, raw).raw["metadata"]
        assert meta["creationTimestamp"] == NOW_TEXT
        assert meta["uid"] == first.uid

    def test_the_node_of_a_pod_never_changes(self):
        store = new_store()
        store.create(PODS, pod())
        with pytest.raises(Invalid, match="pod updates may not change"):
            store.patch(PODS, "a", {"spec": {"nodeName": "n1"}}, namespace="default")

    def test_the_generation_counts_changes_of_the_spec_only(self):
        store = new_store()
        store.create(NODES, node())
        changes: list[tuple[dict[str, Any], str]] = [
            ({"metadata": {"labels": {"a": "b"}}}, ""),
            ({"spec": {"unschedulable": True}}, ""),
            ({"status": {"phase": "x"}}, "status"),
            ({"spec": {"unschedulable": False}}, ""),
        ]
        generations = [
            store.patch(NODES, "n1", patch, subresource=door).raw["metadata"]["generation"] for patch, door in changes
        ]
        assert generations == [1, 2, 2, 3]


class TestStatusDoor:
    def test_a_write_to_the_object_leaves_the_status_alone(self):
        store = new_store()
        store.create(PODS, pod())
        patch = {"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}}
        stored = store.patch(PODS, "a", patch, namespace="default")
        assert stored.raw["status"]["phase"] == "Pending"
        assert stored.raw["metadata"]["labels"] == {"a": "b"}

    def test_a_write_to_the_status_leaves_the_object_alone(self):
        store = new_store()
        store.create(PODS, pod())
        patch = {"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}}
        stored = store.patch(PODS, "a", patch, namespace="default", subresource="status")
        assert stored.raw["status"]["phase"] == "Failed"
        assert "labels" not in stored.raw["metadata"]

    def test_conditions_are_merged_by_type(self):
        store = new_store()
        store.create(PODS, pod())
        for kind in ("PodScheduled", "Ready", "PodScheduled"):
            patch = {"status": {"conditions": [{"type": kind, "status": "False", "reason": kind.upper()}]}}
            store.patch(PODS, "a", patch, namespace="default", subresource="status")
        conditions = store.get(PODS, "a", "default").raw["status"]["conditions"]
        assert [condition["type"] for condition in conditions] == ["PodScheduled", "Ready"]

    def test_a_patch_with_another_uid_is_a_conflict(self):
        store = new_store()
        store.create(PODS, pod())
        patch = {"metadata": {"uid": "other"}, "status": {"phase": "Failed"}}
        with pytest.raises(Conflict, match="UID in precondition: other"):
            store.patch(PODS, "a", patch, namespace="default", subresource="status")

    def test_a_custom_object_keeps_status_and_object_together(self):
        store = new_store()
        raw = {"metadata": {"name": "w", "namespace": "default"}, "status": {"ready": 1}}
        assert store.create(WIDGETS, raw).raw["status"] == {"ready": 1}
        patched = store.patch(WIDGETS, "w", {"status": {"ready": 2}}, namespace="default", patch_type=PatchType.MERGE)
        assert patched.raw["status"] == {"ready": 2}

    def test_an_unknown_subresource_is_not_found(self):
        store = new_store()
        store.create(PODS, pod())
        with pytest.raises(NotFound, match="could not find the requested resource"):
            store.patch(PODS, "a", {}, namespace="default", subresource="scales")


def test_a_malformed_object_does_not_hide_the_others():
    store = new_store()
    store.create(PODS, pod("bad", priority="high"))
    store.create(PODS, pod("good"))
    typed = [stored.typed for stored in store.list(PODS).items]
    assert [obj.key for obj in typed] == ["default/bad", "default/good"]
    assert "priority" in typed[0].error  # type: ignore[union-attr]


@pytest.mark.parametrize("version", ["x", "-1", "1.5", "\u0663", " 1"])
def test_an_unreadable_version_is_a_bad_request(version):
    with pytest.raises(BadRequest, match="invalid resource version"):
        new_store().list(PODS, resource_version=version)


def test_a_version_from_the_future_is_a_timeout_that_says_so():
    with pytest.raises(ApiError, match="Too large resource version: 99, current: 1") as caught:
        new_store().list(PODS, resource_version="99")
    assert caught.value.code == 504


def test_the_clock_is_asked_at_each_write():
    wall = Wall()
    store = new_store(wall)
    wall.time += 61
    assert store.create(NODES, node()).raw["metadata"]["creationTimestamp"] == "2026-01-01T00:01:01Z"


def test_resources_are_those_that_were_used():
    store = new_store()
    store.list(PERSISTENT_VOLUME_CLAIMS)
    assert PERSISTENT_VOLUME_CLAIMS in store.resources()
