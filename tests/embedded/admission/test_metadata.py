"""Names, labels, annotations, owners and finalizers, which all kinds share."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import AlreadyExists
from moorage.api.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, ROLES, SERVICES, custom
from tests.embedded.admission.kit import case, named, pod, problems, strict_store

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
    "used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        case("no name", {"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        case("a bad name", {"name": "No Good"}, [f'metadata.name: Invalid value: "No Good": {SUBDOMAIN}']),
        case(
            "a long name",
            {"name": "a" * 254},
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
        ),
        case("a bad label", {"labels": {"a": "b c"}}, [f'metadata.labels: Invalid value: "b c": {VALUE}']),
        case(
            "a long label",
            {"labels": {"a": "b" * 64}},
            [f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes'],
        ),
        case(
            "an empty prefix",
            {"labels": {"/a": ""}},
            ['metadata.labels: Invalid value: "/a": prefix part must be non-empty'],
        ),
        case("an annotation in capitals", {"annotations": {"Example.com/A": "x y"}}, []),
        case(
            "too much in annotations",
            {"annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        case("just enough in annotations", {"annotations": {"a": "x" * 262143}}, []),
        case(
            "an owner without identity",
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}]},
            [
                "metadata.ownerReferences[0].name: Required value: must not be empty",
                "metadata.ownerReferences[0].uid: Required value: must not be empty",
            ],
        ),
        case("a bad finalizer", {"finalizers": ["a/b/c"]}, None),
        case(
            "both ways to go",
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
        ),
    ],
)
def test_metadata(meta, expected):
    found = problems(PODS, pod(meta=meta))
    if expected is None:
        assert "with an optional DNS subdomain prefix and '/'" in found[0]
    else:
        assert found == expected


def test_one_controller_at_most():
    owners = [{**OWNER, "name": name, "controller": True} for name in "ab"]
    (found,) = problems(PODS, pod(meta={"ownerReferences": owners}))
    assert found.endswith('Found "true" in references for Node/a and Node/b')


@pytest.mark.parametrize(
    ("resource", "raw"),
    [
        case("a namespace with a dot", NAMESPACES, named("a.b", "")),
        case("a service that begins with a digit", SERVICES, named("1a", spec={"ports": [{"port": 80}]})),
        case("a role with a slash", ROLES, named("a/b")),
        case("a custom object in capitals", custom("example.com", "v1", "widgets", "Widget"), named("A")),
    ],
)
def test_names_by_kind(resource, raw):
    assert [problem.partition(":")[0] for problem in problems(resource, raw)] == ["metadata.name"]


def test_names_that_only_some_kinds_allow():
    assert problems(ROLES, named("system:admin")) == []
    assert problems(NODES, named("ip-10-0-0-1.example.com", "")) == []


def test_what_is_wrong_is_said_before_what_is_taken():
    store = strict_store()
    store.create(PODS, pod())
    assert problems(PODS, pod(containers=[]), store) == ["spec.containers: Required value"]
    with pytest.raises(AlreadyExists):
        store.create(PODS, pod())


def test_generated_names_may_end_in_a_dash():
    raw: dict[str, Any] = {"metadata": {"generateName": "web-", "namespace": "default"}}
    assert problems(CONFIG_MAPS, raw) == []
    raw["metadata"]["generateName"] = "Web-"
    assert {problem.partition(":")[0] for problem in problems(CONFIG_MAPS, raw)} == {
        "metadata.generateName",
        "metadata.name",
    }


def test_managed_fields_are_not_kept():
    store = strict_store()
    raw = named("c", data={})
    raw["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "selfLink": "/x"}
    stored = store.create(CONFIG_MAPS, raw)
    assert not {"managedFields", "selfLink"} & stored.raw["metadata"].keys()
    changed = store.replace(CONFIG_MAPS, raw | {"data": {"a": "b"}})
    assert not {"managedFields", "selfLink"} & changed.raw["metadata"].keys()
