"""Requests as they leave: paths, queries and bodies."""

import json

import pytest

from moorage.api.errors import ObjectError
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, LEASES, NODES, PODS, custom
from moorage.client import requests
from moorage.client.transport import HttpRequest
from moorage.framework.ports import PatchType

WIDGETS = custom("example.com", "v1", "widgets", "Widget")


@pytest.mark.parametrize(
    ("request_", "method", "path", "query"),
    [
        (requests.list_objects(PODS), "GET", "/api/v1/pods", {}),
        (
            requests.list_objects(
                PODS, namespace="a", field_selector="x=y", label_selector="k", resource_version="0", limit=500
            ),
            "GET",
            "/api/v1/namespaces/a/pods",
            {"fieldSelector": "x=y", "labelSelector": "k", "resourceVersion": "0", "limit": "500"},
        ),
        (requests.list_objects(NODES, page="token"), "GET", "/api/v1/nodes", {"continue": "token"}),
        (
            requests.watch_objects(NODES, resource_version="7", timeout=301.4),
            "GET",
            "/api/v1/nodes",
            {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", "timeoutSeconds": "301"},
        ),
        (
            requests.watch_objects(WIDGETS, resource_version="", send_initial_events=True),
            "GET",
            "/apis/example.com/v1/widgets",
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
            },
        ),
        (requests.get(PODS, "p", "a"), "GET", "/api/v1/namespaces/a/pods/p", {}),
        (
            requests.create(EVENTS, {"metadata": {"name": "e", "namespace": "a"}}, dry_run=True),
            "POST",
            "/apis/events.k8s.io/v1/namespaces/a/events",
            {"dryRun": "All"},
        ),
        (
            requests.replace(LEASES, {"metadata": {"name": "l", "namespace": "a"}}),
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
            {},
        ),
        (
            requests.patch(PODS, "p", {}, namespace="a", subresource="status", patch_type=PatchType.STRATEGIC),
            "PATCH",
            "/api/v1/namespaces/a/pods/p/status",
            {},
        ),
        (requests.get(NODES, "node:1"), "GET", "/api/v1/nodes/node%3A1", {}),
        (requests.delete(NODES, "n"), "DELETE", "/api/v1/nodes/n", {}),
        (requests.bind("p", "a", "u", "n"), "POST", "/api/v1/namespaces/a/pods/p/binding", {}),
    ],
)
def test_method_path_and_query(request_: HttpRequest, method, path, query):
    assert (request_.method, request_.path, dict(request_.query)) == (method, path, query)
    assert request_.headers["Accept"] == "application/json"
    assert (request_.timeout is None) == (query.get("watch") == "true" and "timeoutSeconds" not in query)


def test_a_watch_may_last_a_little_longer_than_the_timeout_it_was_sent_with():
    assert requests.watch_objects(NODES, resource_version="7", timeout=300).timeout == 360


def test_a_binding_carries_the_uid():
    assert json.loads(requests.bind("p", "a", "u", "n").body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }


def test_b23_a_delete_carries_its_preconditions():
    body = requests.delete(PODS, "p", namespace="a", uid="u", resource_version="7", grace_period=0).body
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }


def test_objects_are_written_with_their_kind():
    """Objects out of a list have none."""
    pod = Pod(metadata=ObjectMeta(name="p", namespace="a"))
    body = json.loads(requests.create(PODS, pod).body)
    assert body == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../nodes/x", "a%2Fb"])
def test_names_that_would_name_something_else_are_refused(name):
    for make in (
        lambda: requests.get(NODES, name),
        lambda: requests.get(PODS, name, "a"),
        lambda: requests.bind(name, "a", "u", "n"),
    ):
        with pytest.raises(ObjectError, match=r"metadata\.name: must not be empty"):
            make()


def test_one_object_of_a_namespaced_kind_needs_its_namespace():
    with pytest.raises(ObjectError, match=r"metadata\.namespace"):
        requests.get(PODS, "p")
    with pytest.raises(ObjectError, match=r"metadata\.namespace"):
        requests.create(PODS, {"metadata": {"name": "p"}})
