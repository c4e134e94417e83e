"""api-resources, explain, auth, version, and custom kinds: what users find out about the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubectl.cluster import Cluster
from tests.kubectl.manifests import DEPLOYMENT, WIDGET, WIDGETS
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow


def test_api_resources(admin):
    rows = {tuple(row[-4:]) for row in admin.run("api-resources").rows()}
    assert {("po", "v1", "true", "Pod"), ("deploy", "apps/v1", "true", "Deployment")} <= rows
    assert "podmetrics" not in admin("api-resources", "--api-group=apps", "-o", "name")
    assert "deployments.apps" in admin("api-resources", "--verbs=list", "--namespaced", "-o", "name").split()


def test_api_versions(admin):
    versions = admin("api-versions").split()
    assert {"v1", "apps/v1", "events.k8s.io/v1", "metrics.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha2"} <= set(
        versions
    )


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("pod", ["KIND:       Pod", "VERSION:    v1", "A group of containers", "spec\t<PodSpec>"]),
        ("deployment.spec", ["GROUP:      apps", "FIELD: spec <DeploymentSpec>", "replicas\t<integer>"]),
        ("pod.spec.containers.resources", ["limits\t<map[string]Quantity>", "The most it may use."]),
        ("pod.spec.tolerations.effect", ["FIELD: effect <string>", "NoSchedule"]),
        ("pdb.spec.minAvailable", ["FIELD: minAvailable <IntOrString>"]),
        ("nodes", ["A machine that runs pods."]),
    ],
)
def test_explain(admin, what, said):
    out = admin("explain", what)
    for text in said:
        assert text in out


def test_explain_by_version_2(admin):
    out = admin("explain", "deployment.spec.replicas", "--output=plaintext-openapiv2")
    assert "How many pods; 1 if not given." in out


def test_explain_of_a_field_that_is_not_there(admin):
    assert 'field "colour" does not exist' in admin.refused("explain", "pod.spec.colour")


def test_auth(admin):
    assert admin("auth", "can-i", "create", "pods") == "yes\n"
    assert admin("auth", "can-i", "*", "*") == "yes\n"
    assert admin.run("auth", "can-i", "--list").rows()[1][0] == "*.*"
    assert "kubernetes-admin" in admin("auth", "whoami")


def test_a_wrong_token_is_reported(admin):
    assert "must be logged in" in admin.refused("get", "pods", "--token=wrong")


def test_version_and_cluster_info(admin):
    assert "Server Version: v1.37." in admin("version")
    assert "is running at" in admin("cluster-info")
    assert admin("get", "--raw", "/readyz") == "ok"


def test_every_kubectl_there_is_works(programs, cluster, home):
    """Old ones speak JSON and version 2 of OpenAPI, new ones Protocol Buffers."""
    name = "versions"
    cluster.make_namespace(name)
    for index, program in enumerate(programs):
        kubectl = Kubectl(program, cluster.kubeconfig, home, name)
        assert "created" in kubectl("create", "deployment", f"web-{index}", "--image=web")
        manifest = DEPLOYMENT.replace("name: web", f"name: app-{index}")
        assert "created" in kubectl("apply", "-f", "-", stdin=manifest)
        assert "configured" in kubectl("apply", "-f", "-", stdin=manifest.replace("web:1", "web:2"))
        assert "unknown field" in kubectl.refused("apply", "-f", "-", stdin=manifest.replace("replicas", "replica"))
        kubectl("rollout", "status", f"deployment/app-{index}", "--timeout=20s")
        assert "DESCRIPTION" in kubectl("explain", "deployment.spec")
        assert kubectl("auth", "can-i", "list", "nodes") == "yes\n"
        assert "deleted" in kubectl("delete", "deployment", f"web-{index}", f"app-{index}")


# Custom kinds


@pytest.fixture(scope="module")
def widgets(admin: Kubectl, cluster: Cluster) -> Iterator[Kubectl]:
    admin("apply", "-f", "-", stdin=WIDGETS)
    admin("wait", "--for=condition=Established", "crd/widgets.example.io", "--timeout=20s")
    cluster.make_namespace("widgets")
    yield admin.within("widgets")
    admin("delete", "crd", "widgets.example.io", "--timeout=20s")
    # kubectl remembers the kinds for a while: it asks for them, or knows that they are gone.
    refused = admin.refused("get", "widgets")
    assert "could not find the requested resource" in refused or "doesn't have a resource type" in refused
    # The tests of other files share what kubectl remembers, and `get all` would fail; this reads the kinds again.
    admin.until(lambda out: "widgets" not in out, "api-resources", "--output=name")


def test_custom_objects_are_like_others(widgets):
    assert widgets("apply", "-f", "-", stdin=WIDGET) == "widget.example.io/first created\n"
    assert widgets("apply", "-f", "-", stdin=WIDGET) == "widget.example.io/first unchanged\n"
    assert widgets("apply", "-f", "-", stdin=WIDGET.replace("3", "4")) == "widget.example.io/first configured\n"
    header, row = widgets.run("get", "wd").rows()
    assert header == ["NAME", "SIZE", "AGE"]
    assert row[:2] == ["first", "4"]
    assert widgets.run("get", "widget", "first", "-o", "wide").rows()[1][2] == "fast"
    assert "widget.example.io/first" in widgets("get", "all")
    assert widgets("scale", "widget", "first", "--replicas=7") == "widget.example.io/first scaled\n"
    assert widgets("get", "wd", "first", "-o", "jsonpath={.spec.size}") == "7"
    widgets("patch", "wd", "first", "--subresource=status", "--type=merge", "-p", '{"status":{"size":7}}')
    assert "Size:  7" in widgets("describe", "widget", "first")
    assert widgets("label", "wd", "first", "a=b") == "widget.example.io/first labeled\n"
    assert '"first" deleted' in widgets("delete", "wd", "--all")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (
            WIDGET.replace("size: 3", "size: big"),
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        (WIDGET.replace("size: 3", "size: -1"), "spec.size in body should be greater than or equal to 0"),
        (WIDGET.replace("size: 3", "mode: fast"), "spec.size: Required value"),
        (WIDGET.replace("size: 3", "size: 3, mode: odd"), 'Unsupported value: "odd": supported values: "fast", "slow"'),
        (WIDGET.replace("size: 3", "size: 3, sise: 3"), 'strict decoding error: unknown field "spec.sise"'),
    ],
    ids=["type", "range", "required", "enum", "unknown"],
)
def test_custom_objects_are_validated(widgets, wrong, problem):
    assert problem in widgets.refused("apply", "-f", "-", stdin=wrong)


def test_custom_kinds_are_explained(widgets):
    out = widgets("explain", "widget.spec")
    assert "How large it is." in out
    assert "size\t<integer> -required-" in out


def test_wrong_definitions_are_refused(admin):
    wrong = WIDGETS.replace("name: widgets.example.io", "name: wrong.example.io")
    assert 'must be spec.names.plural+"."+spec.group' in admin.refused("apply", "-f", "-", stdin=wrong)


def test_names_of_another_kind_are_not_accepted(widgets, admin):
    other = WIDGETS.replace("widgets", "wodgets")
    admin("apply", "-f", "-", stdin=other)
    admin("wait", "--for=condition=NamesAccepted=False", "crd/wodgets.example.io", "--timeout=20s")
    assert "is already in use" in admin("describe", "crd", "wodgets.example.io")
    admin("delete", "crd", "wodgets.example.io", "--timeout=20s")
