"""The three patch types, each against the rules of its specification."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import ApiError, BadRequest, Invalid
from moorage.api.resources import (
    CRON_JOBS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    custom,
)
from moorage.framework.ports import PatchType
from moorage.store.objects import copy_json
from moorage.store.patches import _merge_key, apply_json_patch, apply_patch, merge, strategic_merge

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3),
    max_leaves=8,
)


class TestMerge:
    @pytest.mark.parametrize(
        ("value", "patch", "expected"),
        [
            # The examples of RFC 7386, appendix A.
            ({"a": "b"}, {"a": "c"}, {"a": "c"}),
            ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
            ({"a": "b"}, {"a": None}, {}),
            ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
            ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
            ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
            ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
            ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
            ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
            ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
            ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ],
    )
    def test_examples_of_the_rfc(self, value, patch, expected):
        assert merge(value, patch) == expected

    @given(JSON, JSON)
    def test_the_old_value_stays_as_it_was(self, value, patch):
        before = copy_json(value)
        merge(value, patch)
        assert value == before

    @given(JSON, JSON)
    def test_merging_twice_changes_nothing_more(self, value, patch):
        once = merge(value, patch)
        assert merge(once, patch) == once


class TestJsonPatch:
    @pytest.mark.parametrize(
        ("value", "operations", "expected"),
        [
            pytest.param({}, [{"op": "add", "path": "/a", "value": 1}], {"a": 1}, id="add a field"),
            pytest.param([1, 3], [{"op": "add", "path": "/1", "value": 2}], [1, 2, 3], id="insert an item"),
            pytest.param([1], [{"op": "add", "path": "/-", "value": 2}], [1, 2], id="append an item"),
            pytest.param({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}, id="remove an item"),
            pytest.param({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}, id="replace"),
            pytest.param(
                {"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}],
                {"a": {}, "c": {"d": 1}}, id="move",
            ),
            pytest.param(
                {"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}, id="copy"
            ),
            pytest.param({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}, id="test holds"),
            pytest.param({"x/y": 1, "~": 2}, [{"op": "remove", "path": "/x~1y"}], {"~": 2}, id="slash key"),
            pytest.param({"x/y": 1, "~": 2}, [{"op": "remove", "path": "/~0"}], {"x/y": 1}, id="tilde key"),
            pytest.param({"a": 1}, [{"op": "replace", "path": "", "value": []}], [], id="the whole value"),
        ],
    )  # fmt: skip
    def test_operations(self, value, operations, expected):
        before = copy_json(value)
        assert apply_json_patch(value, operations) == expected
        assert value == before

    @pytest.mark.parametrize(
        "operation",
        [
            pytest.param({"op": "test", "path": "/a", "value": 2}, id="a test that fails"),
            pytest.param({"op": "test", "path": "/b", "value": None}, id="a test of nothing"),
            pytest.param({"op": "remove", "path": "/b"}, id="removing nothing"),
            pytest.param({"op": "replace", "path": "/b", "value": 1}, id="replacing nothing"),
            pytest.param({"op": "add", "path": "/b/c", "value": 1}, id="no parent"),
            pytest.param({"op": "add", "path": "/a/c", "value": 1}, id="no container"),
            pytest.param({"op": "add", "path": "/l/9", "value": 1}, id="beyond the end"),
            pytest.param({"op": "add", "path": "/l/\u0660", "value": 1}, id="index in another script"),
            pytest.param({"op": "remove", "path": "/l/-"}, id="removing past the end"),
            pytest.param({"op": "add", "path": "/b"}, id="no value"),
            pytest.param({"op": "copy", "path": "/b"}, id="no source"),
            pytest.param({"op": "add", "path": "b", "value": 1}, id="no pointer"),
            pytest.param({"op": "dance", "path": "/a"}, id="unknown operation"),
        ],
    )
    def test_what_does_not_fit_is_invalid(self, operation):
        with pytest.raises(Invalid):
            apply_json_patch({"a": 1, "l": [1]}, [operation])


def strategic(value: dict[str, Any], patch: dict[str, Any], resource=PODS) -> Any:
    before = copy_json(value)
    merged = strategic_merge(resource, value, patch)
    assert value == before
    return merged


class TestStrategicMerge:
    @pytest.mark.parametrize(
        ("field", "key"),
        [
            ("spec.containers", "name"),
            ("spec.initContainers", "name"),
            ("spec.volumes", "name"),
            ("spec.schedulingGates", "name"),
            ("spec.topologySpreadConstraints", "topologyKey"),
            ("status.conditions", "type"),
            ("metadata.ownerReferences", "uid"),
        ],
    )
    def test_lists_with_a_merge_key(self, field, key):
        outer, inner = field.split(".")
        value = {outer: {inner: [{key: "a", "x": 1}, {key: "b", "x": 2}]}}
        patch = {outer: {inner: [{key: "b", "y": 3}, {key: "c", "x": None}]}}
        assert strategic(value, patch)[outer][inner] == [{key: "a", "x": 1}, {key: "b", "x": 2, "y": 3}, {key: "c"}]

    @pytest.mark.parametrize(
        ("resource", "field"), [(PODS, "tolerations"), (NODES, "taints")], ids=["tolerations", "taints"]
    )
    def test_atomic_lists_are_replaced(self, resource, field):
        value = {"spec": {field: [{"key": "a"}, {"key": "b"}]}}
        assert strategic(value, {"spec": {field: [{"key": "c"}]}}, resource)["spec"][field] == [{"key": "c"}]

    def test_sets_grow_and_shrink(self):
        value = {"metadata": {"finalizers": ["a", "b"]}}
        grown = strategic(value, {"metadata": {"finalizers": ["b", "c"]}})
        assert grown["metadata"]["finalizers"] == ["a", "b", "c"]
        shrunk = strategic(grown, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}})
        assert shrunk["metadata"]["finalizers"] == ["b"]

    def test_nested_lists_have_their_own_key(self):
        ports = [{"containerPort": 80, "name": "http"}]
        value = {"spec": {"containers": [{"name": "c", "ports": ports}]}}
        patch = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}
        (container,) = strategic(value, patch)["spec"]["containers"]
        assert container["ports"] == [{"containerPort": 80, "name": "http", "protocol": "TCP"}]

    def test_pod_templates_follow_the_rules_of_pods(self):
        value = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "b"}]}}}}
        merged = strategic(value, patch, DEPLOYMENTS)
        assert merged["spec"]["template"]["spec"]["containers"] == [{"name": "a"}, {"name": "b"}]

    @pytest.mark.parametrize(
        ("resource", "path", "key"),
        [
            (CRON_JOBS, "spec.jobTemplate.spec.template.spec.containers", "name"),
            (STATEFUL_SETS, "spec.template.spec.containers.env", "name"),
            (CSI_NODES, "spec.drivers", "name"),
            (SERVICES, "spec.ports", "port"),
            (DAEMON_SETS, "metadata.finalizers", ""),
            (STATEFUL_SETS, "spec.volumeClaimTemplates", None),
            (PODS, "spec.nothing.there", None),
        ],
        ids=str,
    )
    def test_keys_are_those_of_the_api(self, resource, path, key):
        assert _merge_key(resource, path) == key

    @pytest.mark.parametrize(
        ("patch", "expected"),
        [
            pytest.param([{"name": "a", "$patch": "delete"}], [{"name": "b", "x": 1}], id="delete an item"),
            pytest.param([{"$patch": "replace"}, {"name": "z"}], [{"name": "z"}], id="replace the list"),
            pytest.param([{"name": "b", "$patch": "replace"}], [], id="a replace directive anywhere empties the list"),
        ],
    )
    def test_directives_in_lists(self, patch, expected):
        value = {"spec": {"volumes": [{"name": "a"}, {"name": "b", "x": 1}]}}
        assert strategic(value, {"spec": {"volumes": patch}})["spec"]["volumes"] == expected

    @pytest.mark.parametrize(
        ("patch", "expected"),
        [
            pytest.param({"$patch": "replace", "c": "d"}, {"c": "d"}, id="replace"),
            pytest.param({"$patch": "delete"}, {}, id="delete"),
            pytest.param({"$retainKeys": ["a", "c"], "c": "d"}, {"a": "1", "c": "d"}, id="retain keys"),
            pytest.param({"a": None}, {"b": "2"}, id="null"),
        ],
    )
    def test_directives_in_maps(self, patch, expected):
        value = {"spec": {"nodeSelector": {"a": "1", "b": "2"}}}
        assert strategic(value, {"spec": {"nodeSelector": patch}})["spec"]["nodeSelector"] == expected

    def test_the_order_of_items_can_be_set(self):
        value = {"spec": {"volumes": [{"name": name} for name in "abc"]}}
        order = [{"name": "c"}, {"name": "a"}]
        merged = strategic(value, {"spec": {"$setElementOrder/volumes": order}})
        assert [volume["name"] for volume in merged["spec"]["volumes"]] == ["c", "a", "b"]

    @pytest.mark.parametrize(
        ("patch", "words"),
        [
            ({"spec": {"containers": [{"image": "x"}]}}, "does not contain declared merge key: name"),
            ({"spec": {"containers": ["x"]}}, "does not contain declared merge key: name"),
            ({"spec": {"$patch": "explode"}}, "unknown patch type: explode"),
            ({"spec": {"$retainKeys": 5}}, "at spec needs a list"),
            ({"spec": {"$deleteFromPrimitiveList/x": 5}}, "at spec needs a list"),
            ({"metadata": {"$setElementOrder/finalizers": "a"}}, "at metadata needs a list"),
            ({"spec": {"$setElementOrder/containers": [{}]}}, "does not contain declared merge key: name"),
        ],
        ids=[
            "no merge key",
            "no map",
            "unknown directive",
            "keys no list",
            "values no list",
            "order no list",
            "order without keys",
        ],
    )
    def test_bad_patches(self, patch, words):
        with pytest.raises(BadRequest, match=words):
            strategic({}, patch)


class TestChoice:
    RAW: dict[str, Any] = {"metadata": {"name": "a"}}

    @pytest.mark.parametrize(
        ("patch_type", "patch", "error"),
        [
            (PatchType.JSON, {}, BadRequest),
            (PatchType.MERGE, [], BadRequest),
            (PatchType.STRATEGIC, [], BadRequest),
            (PatchType.JSON, [{"op": "remove", "path": "/metadata"}], Invalid),
            (PatchType.MERGE, {"metadata": None}, Invalid),
        ],
        ids=["json patch no list", "merge patch no map", "strategic no map", "json loses metadata",
             "merge loses metadata"],
    )  # fmt: skip
    def test_what_is_no_patch_is_refused(self, patch_type, patch, error):
        with pytest.raises(error):
            apply_patch(PODS, self.RAW, patch, patch_type)

    @pytest.mark.parametrize(
        ("resource", "patch_type"),
        [(custom("example.com", "v1", "widgets", "Widget"), PatchType.STRATEGIC), (PODS, "text/plain")],
        ids=["strategic on a custom kind", "unknown type"],
    )
    def test_unsupported_types_are_refused(self, resource, patch_type):
        with pytest.raises(ApiError, match="unknown format") as caught:
            apply_patch(resource, self.RAW, {}, patch_type)
        assert caught.value.code == 415
