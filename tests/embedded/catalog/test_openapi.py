"""The descriptions of the API: types files, OpenAPI documents in three forms, and unknown fields."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.embedded.apiserver.field_validation import unknown_fields
from moorage.embedded.builtin import BUILT_IN, built_in_catalog
from moorage.embedded.catalog.crds.kinds import served_kinds
from moorage.embedded.catalog.openapi.endpoint import CONTENT_TYPE, OpenApi
from moorage.store import schemas
from moorage.store.schemas import library
from tests.embedded.catalog.kit import ask, get_json, served
from tests.embedded.catalog.widgets import definition


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    return OpenApi(built_in_catalog())


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(refs, value.values()))
    return set().union(*map(refs, value)) if isinstance(value, list) else set()


# The types files


def test_every_served_kind_is_described_and_every_reference_leads_somewhere():
    types = library()
    for kind in (row.served for row in BUILT_IN):
        assert types.kind(kind.resource.api_version, kind.resource.kind) is not None
    for definition_ in types.all():
        for field in (definition_.fields or {}).values():
            for ref in _refs(field.type):
                types.resolve(ref)


def _refs(type_: schemas.Type) -> list[schemas.Ref]:
    if isinstance(type_, schemas.Ref):
        return [type_]
    return _refs(type_.item) if isinstance(type_, schemas.ListOf | schemas.MapOf) else []


def test_merge_keys_are_fields_of_what_they_merge():
    types = library()
    for definition_ in types.all():
        for field in (definition_.fields or {}).values():
            if field.merge_key:
                assert isinstance(field.type, schemas.ListOf)
                assert isinstance(field.type.item, schemas.Ref)
                fields = types.resolve(field.type.item).fields
                assert fields is not None
                assert field.merge_key in fields, f"{definition_.name}.{field.name}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  a: string", "a field outside of a type"),
        ("T: any\n  a: string", "a field outside of a type"),
        ("T\n  a", "a field without a type"),
        ("T\n  a: strin", "unknown plain type"),
    ],
)
def test_mistakes_in_a_types_file_are_named(text, problem):
    with pytest.raises(schemas.NotationError, match=f"core/v1: {problem}"):
        list(schemas.parse(text, "core/v1"))


# Version 3


def test_the_index_leads_to_a_document_for_each_group_version(openapi):
    index = get_json(openapi, "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/metrics.k8s.io/v1beta1"} <= index.keys()
    for name, entry in index.items():
        path, _, query = entry["serverRelativeURL"].partition("?")
        assert path == f"/openapi/v3/{name}"
        assert query.startswith("hash=")
        document = get_json(openapi, path)
        assert document["openapi"].startswith("3.")
        schemas = {f"#/components/schemas/{schema}" for schema in document["components"]["schemas"]}
        assert refs(document) <= schemas


def test_kubectl_finds_what_it_looks_for_in_version_3(openapi):
    document = get_json(openapi, "/openapi/v3/apis/apps/v1")
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    parameters = {parameter["name"]: parameter["in"] for parameter in patch["parameters"]}
    assert parameters["fieldValidation"] == parameters["dryRun"] == "query"
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    spec = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert spec["containers"]["x-kubernetes-patch-strategy"] == "merge"
    assert spec["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert spec["affinity"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Affinity"}]
    deployment = document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    gvk = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert deployment["x-kubernetes-group-version-kind"] == [gvk]
    assert {"apiVersion", "kind", "metadata", "spec", "status"} == deployment["properties"].keys()


def test_a_known_document_is_not_sent_again(openapi):
    first = ask(openapi, "/openapi/v3/api/v1")
    assert first is not None
    again = ask(openapi, "/openapi/v3/api/v1", if_none_match=dict(first.headers)["ETag"])
    assert again is not None
    assert again.status == 304


@pytest.mark.parametrize("path", ["/openapi/v3/apis/none/v1", "/openapi/v4", "/api/v1"])
def test_other_paths_are_not_answered(openapi, path):
    assert ask(openapi, path) is None


# Version 2


def test_version_2_has_everything_in_one_document(openapi):
    document = get_json(openapi, "/openapi/v2")
    assert document["swagger"] == "2.0"
    assert refs(document) <= {f"#/definitions/{name}" for name in document["definitions"]}
    assert "/api/v1/nodes/{name}" in document["paths"]


def test_protocol_buffers_carry_the_same_names(openapi):
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = ask(openapi, "/openapi/v2", accept=accept)
    assert answer is not None
    assert answer.content_type == CONTENT_TYPE
    document = get_json(openapi, "/openapi/v2")
    message = wire(answer.body)
    assert message[1] == [b"2.0"]
    paths = [wire(path) for path in wire(message[8][0])[2]]
    assert [path[1][0].decode() for path in paths] == list(document["paths"])
    schemas = {wire(s)[1][0].decode(): wire(wire(s)[2][0]) for s in wire(message[9][0])[1]}
    assert schemas.keys() == document["definitions"].keys()
    pod = schemas["io.k8s.api.core.v1.Pod"]
    extension = wire(pod[31][0])
    assert extension[1] == [b"x-kubernetes-group-version-kind"]
    expected = document["definitions"]["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"]
    assert msgspec.json.decode(wire(extension[2][0])[2][0]) == expected


def wire(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number; only the two wire types that are used."""
    fields: dict[int, list[Any]] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        value: Any = varint()
        if key & 7 == 2:
            length = value
            value = message[position : position + length]
            position += length
        fields.setdefault(key >> 3, []).append(value)
    return fields


# Custom kinds


def test_custom_kinds_are_described_by_their_own_schema():
    catalog = built_in_catalog()
    endpoint = OpenApi(catalog)
    before = get_json(endpoint, "/openapi/v3")["paths"]
    for kind in served_kinds(definition()):
        catalog.add(kind)
    index = get_json(endpoint, "/openapi/v3")["paths"]
    assert index.keys() - before.keys() == {"apis/example.io/v1"}
    assert index["api/v1"] == before["api/v1"]
    document = get_json(endpoint, "/openapi/v3/apis/example.io/v1")
    widget = document["components"]["schemas"]["io.example.v1.Widget"]
    assert widget["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    assert widget["properties"]["metadata"]["allOf"][0]["$ref"].endswith("ObjectMeta")
    patch = document["paths"]["/apis/example.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    simple = get_json(endpoint, "/openapi/v2")["definitions"]["io.example.v1.Widget"]
    assert simple["properties"]["spec"]["properties"]["port"] == {"type": "string", "format": "int-or-string"}


# Unknown fields


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize(
    ("raw", "unknown"),
    [
        (deployment(replicas=1), []),
        (deployment(replica=1), ["spec.replica"]),
        ({**deployment(), "metadata": {"nam": "x", "labels": {"any": "thing"}}}, ["metadata.nam"]),
        ({**deployment(), "stats": {}}, ["stats"]),
        (
            deployment(template={"spec": {"containers": [{}, {"imag": "x", "env": [{"nme": "a"}]}]}}),
            ["spec.template.spec.containers[1].imag", "spec.template.spec.containers[1].env[0].nme"],
        ),
        (deployment(selector={"matchLabels": {"a": "b"}}), []),
        (deployment(template=None, selector="not an object"), []),
    ],
)
def test_unknown_fields_are_named_with_their_path(raw, unknown):
    assert unknown_fields(served("deployments", "apps"), raw) == [f'unknown field "{path}"' for path in unknown]


@pytest.mark.parametrize("metadata", [{}, {"metadata": {"type": "object"}}], ids=["absent", "its type alone"])
def test_unknown_fields_of_custom_kinds_follow_their_schema_but_for_metadata(metadata):
    raw_definition = definition()
    schema = raw_definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {**schema["properties"], **metadata}
    kind = served_kinds(raw_definition)[0]
    raw = {
        "metadata": {"name": "w", "whatever": 1},
        "spec": {"size": 1, "sise": 2, "free": {"any": "thing"}, "parts": [{"name": "a", "nme": "b"}]},
    }
    assert unknown_fields(kind, raw) == ['unknown field "spec.sise"', 'unknown field "spec.parts[0].nme"']
