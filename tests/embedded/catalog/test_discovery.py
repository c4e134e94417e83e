"""Discovery: what clients learn of groups, versions and kinds."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.resources import custom
from moorage.embedded.builtin import BUILT_IN, built_in_catalog
from moorage.embedded.catalog.discovery import Discovery, version_rank
from moorage.embedded.catalog.kinds import Catalog, ServedKind
from tests.embedded.catalog.kit import ask, get_json

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
KUBECTL = ",".join((AGGREGATED.format("v2"), AGGREGATED.format("v2beta1"), "application/json"))


@pytest.fixture
def discovery() -> Discovery:
    return Discovery(built_in_catalog())


def test_plain_documents_lead_from_the_groups_to_every_kind(discovery):
    assert get_json(discovery, "/api")["versions"] == ["v1"]
    groups = {group["name"]: group for group in get_json(discovery, "/apis")["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert get_json(discovery, "/apis/apps")["name"] == "apps"
    found = set()
    for version in ["api/v1", *(f"apis/{v['groupVersion']}" for g in groups.values() for v in g["versions"])]:
        listed = get_json(discovery, f"/{version}")
        found |= {(listed["groupVersion"], r["name"]) for r in listed["resources"]}
    for served in (kind.served for kind in BUILT_IN):
        assert (served.resource.api_version, served.resource.plural) in found
    assert {("v1", "pods/binding"), ("v1", "pods/eviction"), ("apps/v1", "deployments/scale")} <= found
    assert {("metrics.k8s.io/v1beta1", "pods"), ("authorization.k8s.io/v1", "selfsubjectaccessreviews")} <= found


def test_an_entry_tells_all_that_kubectl_needs(discovery):
    entries = {entry["name"]: entry for entry in get_json(discovery, "/apis/apps/v1")["resources"]}
    assert entries["deployments"] == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
    }
    assert entries["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "kind": "Scale",
        "group": "autoscaling",
        "version": "v1",
        "verbs": ["get", "patch", "update"],
    }


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (KUBECTL, "v2"),
        (AGGREGATED.format("v2beta1") + ",application/json", "v2beta1"),
        (AGGREGATED.format("v3") + "," + AGGREGATED.format("v2"), "v2"),
        (AGGREGATED.format("v3") + ",application/json", ""),
        ("application/json", ""),
        ("*/*", ""),
        ("", ""),
        ("application/json, " + AGGREGATED.format("v2"), ""),
    ],
)
def test_the_aggregated_form_is_given_to_those_who_ask_for_it(discovery, accept, version):
    answer = ask(discovery, "/apis", accept=accept)
    assert answer is not None
    document = msgspec.json.decode(answer.body)
    assert document["kind"] == ("APIGroupDiscoveryList" if version else "APIGroupList")
    assert answer.content_type == (AGGREGATED.format(version) if version else "application/json")


def test_both_forms_tell_the_same(discovery):
    for path, prefix in (("/api", "/api"), ("/apis", "/apis")):
        for group in get_json(discovery, path, accept=KUBECTL)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                place = "/".join(filter(None, (prefix, name, version["version"])))
                plain = [r["name"] for r in get_json(discovery, place)["resources"]]
                merged = [
                    f"{r['resource']}/{s['subresource']}" if s else r["resource"]
                    for r in version["resources"]
                    for s in (None, *r.get("subresources", ()))
                ]
                assert plain == merged


def test_a_known_document_is_not_sent_again(discovery):
    first = ask(discovery, "/apis", accept=KUBECTL)
    assert first is not None
    tag = dict(first.headers)["ETag"]
    again = ask(discovery, "/apis", accept=KUBECTL, if_none_match=tag)
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_discovery_follows_the_catalog():
    catalog = Catalog()
    discovery = Discovery(catalog, virtual=())
    before = ask(discovery, "/apis")
    kinds = [ServedKind(custom("example.io", v, "widgets", "Widget"), "widget") for v in ("v1beta1", "v1", "v2alpha1")]
    for kind in kinds:
        catalog.add(kind)
    after = ask(discovery, "/apis")
    assert before is not None
    assert after is not None
    assert before.headers != after.headers
    group = get_json(discovery, "/apis/example.io")
    assert [v["version"] for v in group["versions"]] == ["v1", "v1beta1", "v2alpha1"]
    for kind in kinds:
        catalog.remove(kind)
    assert ask(discovery, "/apis/example.io") is None
    assert ask(discovery, "/apis/example.io/v1") is None


def test_versions_are_in_kubernetes_order():
    versions = ["v1", "v10", "v2", "v1beta1", "v2beta1", "v1beta2", "v1alpha1", "foo1", "v11beta2"]
    expected = ["v10", "v2", "v1", "v11beta2", "v2beta1", "v1beta2", "v1beta1", "v1alpha1", "foo1"]
    assert sorted(versions, key=version_rank) == expected


def test_metrics_come_last_so_that_plain_names_mean_the_stored_kinds(discovery):
    groups = [group["name"] for group in get_json(discovery, "/apis")["groups"]]
    assert groups[-1] == "metrics.k8s.io"


@pytest.mark.parametrize(
    "path", ["/apis/none", "/apis/apps/v9", "/api/v1/pods", "/", "/apis/apps/v1/daemonsets", "/api//"]
)
def test_other_paths_are_not_answered(discovery, path):
    assert ask(discovery, path) is None


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"])
def test_a_slash_at_the_end_changes_nothing(discovery, path):
    assert get_json(discovery, f"{path}/") == get_json(discovery, path)


def test_only_reading_is_discovery(discovery):
    assert ask(discovery, "/api", method="POST") is None
