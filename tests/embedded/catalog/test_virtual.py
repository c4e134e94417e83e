"""What is served and not stored: usage, reviews; and the second form of events."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import ApiError, Invalid, NotFound
from moorage.api.resources import NODES, PODS
from moorage.embedded.catalog.core_events import CORE_EVENTS_VIEW
from moorage.embedded.catalog.virtual import MeasuredUsage, Metrics, Reviews
from moorage.embedded.http import ADMIN
from moorage.serving.certificates import User
from tests.embedded.catalog.kit import NOW, ask, get_json, make_store

METRICS = "/apis/metrics.k8s.io/v1beta1"


class NoUsage:
    """The source of a server without kubelets: knows nothing."""

    def node(self, name):
        return None

    def pod(self, namespace, name):
        return None


class Meter:
    """Knows node n1 and pod a."""

    def node(self, name: str) -> MeasuredUsage | None:
        return MeasuredUsage(1.5, 2**30) if name == "n1" else None

    def pod(self, namespace: str, name: str) -> Mapping[str, MeasuredUsage] | None:
        return {"c": MeasuredUsage(0.0125, 1536)} if (namespace, name) == ("default", "a") else None


@pytest.fixture
def metrics() -> Metrics:
    store = make_store()
    for name in ("n1", "n2"):
        store.create(NODES, {"metadata": {"name": name, "labels": {"zone": name}}})
    for name in ("a", "b"):
        meta = {"name": name, "namespace": "default", "labels": {"app": name}}
        store.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    return Metrics(store, Meter(), lambda: NOW)


def test_what_is_known_is_listed(metrics):
    nodes = get_json(metrics, f"{METRICS}/nodes")
    assert nodes["kind"] == "NodeMetricsList"
    (node,) = nodes["items"]
    assert (node["metadata"]["name"], node["usage"]) == ("n1", {"cpu": "1500000000n", "memory": "1048576Ki"})
    assert node["timestamp"] == "2023-11-14T22:13:20Z"
    for path in ("pods", "namespaces/default/pods"):
        (pod,) = get_json(metrics, f"{METRICS}/{path}")["items"]
        assert pod["containers"] == [{"name": "c", "usage": {"cpu": "12500000n", "memory": "1Ki"}}]


def test_selectors_choose(metrics):
    assert get_json(metrics, f"{METRICS}/pods?labelSelector=app=b")["items"] == []
    assert len(get_json(metrics, f"{METRICS}/pods?labelSelector=app=a")["items"]) == 1


def test_single_objects(metrics):
    assert get_json(metrics, f"{METRICS}/nodes/n1")["kind"] == "NodeMetrics"
    assert get_json(metrics, f"{METRICS}/namespaces/default/pods/a")["kind"] == "PodMetrics"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nodes/n2", 'nodemetrics.metrics.k8s.io "n2" not found'),
        ("nodes/none", 'nodemetrics.metrics.k8s.io "none" not found'),
        ("namespaces/default/pods/b", 'podmetrics.metrics.k8s.io "default/b" not found'),
    ],
)
def test_what_is_not_known_is_not_found(metrics, path, message):
    with pytest.raises(NotFound) as caught:
        ask(metrics, f"{METRICS}/{path}")
    assert caught.value.status.message == message


def test_metrics_cannot_be_written(metrics):
    with pytest.raises(ApiError) as caught:
        ask(metrics, f"{METRICS}/nodes", method="POST")
    assert caught.value.code == 405


def test_other_paths_are_not_answered(metrics):
    assert ask(metrics, f"{METRICS}/gadgets") is None
    assert ask(metrics, "/api/v1/nodes") is None


def test_a_server_without_kubelets_knows_nothing():
    store = make_store()
    store.create(NODES, {"metadata": {"name": "n1"}})
    assert get_json(Metrics(store, NoUsage(), lambda: NOW), f"{METRICS}/nodes")["items"] == []


# Reviews

AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
PODS_PLEASE = {"resourceAttributes": {"verb": "get", "resource": "pods"}}


@pytest.fixture
def reviews() -> Reviews:
    return Reviews(lambda token: User("bob", ("dev",)) if token == "secret" else None)


@pytest.mark.parametrize(
    ("path", "spec", "allowed"),
    [
        ("selfsubjectaccessreviews", PODS_PLEASE, True),
        ("selfsubjectaccessreviews", {"nonResourceAttributes": {"path": "/x", "verb": "get"}}, True),
        ("subjectaccessreviews", {**PODS_PLEASE, "user": "bob"}, True),
        ("subjectaccessreviews", {**PODS_PLEASE, "user": "system:anonymous"}, False),
        ("subjectaccessreviews", {**PODS_PLEASE, "groups": ["system:unauthenticated"]}, False),
        ("namespaces/default/localsubjectaccessreviews", {**PODS_PLEASE, "user": "bob"}, True),
    ],
)
def test_whoever_is_authenticated_may_do_everything(reviews, path, spec, allowed):
    answer = get_json(reviews, f"{AUTHORIZATION}/{path}", "POST", {"spec": spec})
    assert answer["status"]["allowed"] is allowed
    assert answer["spec"] == spec
    assert answer["apiVersion"] == "authorization.k8s.io/v1"


def test_rules_are_everything(reviews):
    answer = get_json(reviews, f"{AUTHORIZATION}/selfsubjectrulesreviews", "POST", {"spec": {"namespace": "default"}})
    assert answer["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


def test_who_am_i(reviews):
    answer = get_json(reviews, f"{AUTHENTICATION}/selfsubjectreviews", "POST", {})
    assert answer["status"]["userInfo"] == {"username": ADMIN.name, "groups": list(ADMIN.groups)}


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("secret", {"authenticated": True, "user": {"username": "bob", "groups": ["dev"]}, "audiences": []}),
        ("wrong", {"authenticated": False, "user": {}, "error": "the token is not known to this server"}),
    ],
)
def test_whose_token_is_this(reviews, token, status):
    answer = get_json(reviews, f"{AUTHENTICATION}/tokenreviews", "POST", {"spec": {"token": token}})
    assert answer["status"] == status


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {}}),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {**PODS_PLEASE, "nonResourceAttributes": {}}}),
        (f"{AUTHORIZATION}/subjectaccessreviews", {"spec": PODS_PLEASE}),
        (f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {**PODS_PLEASE, "groups": 7}}),
        (f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": 7}}),
        (f"{AUTHENTICATION}/tokenreviews", {}),
    ],
)
def test_incomplete_questions_are_refused(reviews, path, body):
    with pytest.raises(Invalid):
        ask(reviews, path, "POST", body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"kind":"Pod"}', b"\xff"])
def test_unreadable_questions_are_bad_requests(reviews, body):
    from moorage.embedded.http import ApiRequest

    with pytest.raises(ApiError) as caught:
        reviews.answer(ApiRequest("POST", f"{AUTHENTICATION}/selfsubjectreviews", body=body))
    assert caught.value.code == 400


def test_questions_are_not_stored(reviews):
    with pytest.raises(ApiError) as caught:
        ask(reviews, f"{AUTHORIZATION}/subjectaccessreviews")
    assert caught.value.code == 405
    assert ask(reviews, f"{AUTHORIZATION}/namespaces/default/subjectaccessreviews", "POST", {}) is None


# Events

CORE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "Killing",
    "message": "stopping",
    "source": {"component": "kubelet", "host": "n1"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:05Z",
    "count": 3,
    "type": "Normal",
}


def test_an_old_event_is_stored_in_the_new_form():
    stored = CORE_EVENTS_VIEW.inward(CORE)
    assert stored["apiVersion"] == "events.k8s.io/v1"
    assert stored["regarding"] == CORE["involvedObject"]
    assert (stored["note"], stored["deprecatedCount"]) == ("stopping", 3)
    assert "reportingController" not in stored
    more = {"eventTime": None, "reportingComponent": "", "reportingInstance": ""}
    assert CORE_EVENTS_VIEW.outward(stored) == {**CORE, **more}


@given(st.dictionaries(st.sampled_from(sorted({*CORE, "series", "related", "action", "eventTime"})), st.integers()))
def test_the_old_form_survives_the_way_there_and_back(fields):
    event = {**fields, "apiVersion": "v1", "kind": "Event"}
    back = CORE_EVENTS_VIEW.outward(CORE_EVENTS_VIEW.inward(event))
    times = dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp"))
    assert {
        "involvedObject": {},
        "source": {},
        "reportingComponent": "",
        "reportingInstance": "",
        **times,
        **event,
    } == back


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("involvedObject.name", "regarding.name"),
        ("involvedObject.uid", "regarding.uid"),
        ("reason", "reason"),
        ("type", "type"),
        ("reportingComponent", "reportingController"),
        ("source", "source"),
        ("metadata.name", "metadata.name"),
    ],
)
def test_field_selectors_of_the_old_form(old, new):
    assert CORE_EVENTS_VIEW.field(old) == new
