"""The plain verbs over HTTP: create, get, list, replace, patch, delete."""

import asyncio
import json
from typing import Any

import pytest

from moorage.api import resources
from moorage.store import refusals
from moorage.store.durability import InMemory
from tests.embedded.apiserver.kit import DEPLOYMENTS, NODES, PODS, World, deployment, node, pod, serve

MERGE = {"content-type": "application/merge-patch+json"}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
JSON_PATCH = {"content-type": "application/json-patch+json"}


def reason(reply) -> tuple[int, str]:
    assert reply.headers["content-type"] == "application/json"
    status = reply.json
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", reply.status)
    return reply.status, status["reason"]


def test_a_created_object_is_what_get_and_list_show():
    async def scenario(world: World):
        created = await world.create(PODS, pod())
        assert created["metadata"]["uid"]
        assert created["status"]["phase"] == "Pending"
        assert await world.get(f"{PODS}/a") == created
        for path in (PODS, "/api/v1/pods"):
            listed = await world.get(path)
            assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
            assert listed["items"] == [created]
            assert listed["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
        assert (await world.get("/api/v1/namespaces/kube-system/pods"))["items"] == []

    serve(scenario)


def test_the_path_fills_in_what_the_body_leaves_out():
    async def scenario(world: World):
        body = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        created = await world.create(PODS, body)
        assert created["metadata"]["name"].startswith("web-")
        assert (created["kind"], created["metadata"]["namespace"]) == ("Pod", "default")

    serve(scenario)


@pytest.mark.parametrize(
    ("path", "body", "expected", "message"),
    [
        pytest.param(PODS, pod(), (409, "AlreadyExists"), 'pods "a" already exists', id="there already"),
        pytest.param(
            "/api/v1/namespaces/x/pods", pod("b", "x"), (404, "NotFound"), 'namespaces "x" not found', id="no namespace"
        ),
        pytest.param(
            "/api/v1/namespaces/going/pods",
            pod("b", "going"),
            (403, "Forbidden"),
            'pods "b" is forbidden: unable to create new content in namespace going because it is being',
            id="terminating namespace",
        ),
        pytest.param(
            PODS,
            pod("b", "other"),
            (400, "BadRequest"),
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            PODS, {**pod("b"), "kind": "Node"}, (400, "BadRequest"), "cannot be handled as a Pod", id="another kind"
        ),
        pytest.param(
            PODS,
            {**pod("b"), "apiVersion": "apps/v1"},
            (400, "BadRequest"),
            "the API version in the data (apps/v1) does not match the expected API version (v1)",
            id="another version",
        ),
        pytest.param(PODS, [1], (400, "BadRequest"), "must be a JSON object, not a list", id="a list"),
        pytest.param(PODS, b"", (400, "BadRequest"), "not readable as JSON", id="no body"),
        pytest.param(PODS, b'{"a":', (400, "BadRequest"), "truncated", id="cut off"),
        pytest.param(PODS, b'{"a":x}', (400, "BadRequest"), "(byte 5)", id="bad JSON, with its place"),
        pytest.param(
            PODS, b'{"a":"\xff"}', (400, "BadRequest"), "not UTF-8: invalid start byte at byte 6", id="bad UTF-8"
        ),
        pytest.param(PODS, b"[" * 100_000, (400, "BadRequest"), "nested more than 128 levels", id="very deep"),
        pytest.param(
            PODS, b'{"a":' * 200 + b"1" + b"}" * 200, (400, "BadRequest"), "nested more than 128 levels", id="deep"
        ),
        pytest.param(PODS, b"1" * 5000, (400, "BadRequest"), "out of range", id="a huge number"),
        pytest.param(PODS, b" " * 3_200_000, (413, "RequestEntityTooLarge"), "limit is 3145728", id="too large"),
        pytest.param(PODS, {"metadata": 5}, (400, "BadRequest"), "metadata must be an object", id="metadata"),
        pytest.param(PODS, {"metadata": {"name": 5}}, (400, "BadRequest"), "metadata.name", id="name"),
        pytest.param(
            NODES, {"metadata": {"name": "b", "namespace": "x"}}, (400, "BadRequest"), "namespace", id="cluster object"
        ),
        pytest.param("/api/v1/pods", pod("b"), (405, "MethodNotAllowed"), "does not allow", id="no namespace in path"),
        pytest.param(f"{PODS}/b", pod("b"), (405, "MethodNotAllowed"), "does not allow", id="name in path"),
        pytest.param("/api/v1/things", pod("b"), (404, "NotFound"), "could not find", id="unknown resource"),
        pytest.param("/api/v2/pods", pod("b"), (404, "NotFound"), "could not find", id="unknown version"),
        pytest.param("/nowhere", pod("b"), (404, "NotFound"), "could not find", id="unknown path"),
    ],
)
def test_a_creation_that_cannot_be_is_refused_in_words(path, body, expected, message):
    async def scenario(world: World):
        going = {"metadata": {"name": "going", "finalizers": ["example.com/wait"]}}
        world.store.create(resources.NAMESPACES, going)
        world.store.delete(resources.NAMESPACES, "going")
        await world.create(PODS, pod())
        version = world.store.version
        reply = await world.ask("POST", path, body)
        assert reason(reply) == expected
        assert message in reply.json["message"]
        assert world.store.version == version

    serve(scenario)


def test_duplicate_fields_are_refused_when_the_client_asks_for_strictness():
    async def scenario(world: World):
        body = json.dumps(pod()).encode().replace(b'{"name": "a"', b'{"name": "x", "name": "a"')
        reply = await world.ask("POST", PODS, body, fieldValidation="Strict")
        assert reason(reply) == (400, "BadRequest")
        assert reply.json["message"] == 'strict decoding error: duplicate field "name"'
        reply = await world.ask("POST", PODS, body, fieldValidation="Ignore")
        assert (reply.status, reply.json["metadata"]["name"]) == (201, "a")

    serve(scenario)


@pytest.mark.parametrize("content_type", ["application/yaml", "application/json; charset=utf-8", ""])
def test_bodies_come_as_json_or_yaml(content_type: str):
    text = """
        kind: Pod
        metadata: {name: a, annotations: {day: 2026-01-01, on: "yes"}}
        spec: {containers: [{name: main, image: web}]}
    """

    async def scenario(world: World):
        body = text.encode() if "yaml" in content_type else json.dumps(pod()).encode()
        reply = await world.ask("POST", PODS, body, headers={"content-type": content_type})
        assert reply.status == 201, reply.body
        if "yaml" in content_type:
            assert reply.json["metadata"]["annotations"] == {"day": "2026-01-01", "true": "yes"}

    serve(scenario)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not readable as YAML"),
        ("a: &x [*x]", "nested more than"),
        ("a: .inf", "a value that JSON does not allow"),
        ("[1, 2]", "must be a JSON object"),
        ("a: !!python/object:os.system {}", "not readable as YAML"),
        (
            "\n".join(
                ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
                + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
            ),
            "too large",
        ),
    ],
    ids=["cut off", "endless", "infinite", "list", "code", "laughs"],
)
def test_yaml_that_cannot_be_json_is_refused(text: str, message: str):
    async def scenario(world: World):
        reply = await world.ask("POST", PODS, text.encode(), headers={"content-type": "application/yaml"})
        assert reply.status in (400, 413)
        assert message in reply.json["message"]

    serve(scenario)


@pytest.mark.parametrize(
    ("method", "path", "content_type", "accepted"),
    [
        ("POST", PODS, "text/plain", "application/json, application/yaml"),
        ("POST", PODS, "application/x-www-form-urlencoded", "application/json, application/yaml"),
        ("POST", PODS, "application/cbor", "application/json, application/yaml"),
        ("PUT", f"{PODS}/a", "text/plain", "application/json, application/yaml"),
        ("DELETE", f"{PODS}/a", "text/plain", "application/json, application/yaml"),
        ("PATCH", f"{PODS}/a", "application/json", "application/json-patch+json"),
        ("PATCH", f"{PODS}/a", "", "application/json-patch+json"),
        ("PATCH", f"{PODS}/a", "application/apply-patch+yaml", "client-side apply"),
    ],
)
def test_other_content_types_are_refused(method: str, path: str, content_type: str, accepted: str):
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask(method, path, b"{}", headers={"content-type": content_type})
        assert reason(reply) == (415, "UnsupportedMediaType")
        assert accepted in reply.json["message"]

    serve(scenario)


def test_replace_needs_the_current_version():
    async def scenario(world: World):
        created = await world.create(NODES, node())
        created["metadata"]["labels"] = {"zone": "a"}
        replaced = await world.ask("PUT", f"{NODES}/n1", created)
        assert (replaced.status, replaced.json["metadata"]["labels"]) == (200, {"zone": "a"})
        stale = await world.ask("PUT", f"{NODES}/n1", created)
        assert reason(stale) == (409, "Conflict")
        other = await world.ask("PUT", f"{NODES}/n2", created)
        assert reason(other) == (400, "BadRequest")
        assert "(n1) does not match the name on the URL (n2)" in other.json["message"]
        nameless = await world.ask("PUT", f"{NODES}/n1", {"metadata": {}})
        assert "name must be provided" in nameless.json["message"]
        gone = await world.ask("PUT", f"{NODES}/n2", node("n2"))
        assert reason(gone) == (404, "NotFound")

    serve(scenario)


@pytest.mark.parametrize(
    ("headers", "patch"),
    [
        (MERGE, {"metadata": {"labels": {"a": "b"}}}),
        (STRATEGIC, {"metadata": {"labels": {"a": "b"}}}),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
        (
            JSON_PATCH,
            [
                {"op": "copy", "from": "/spec/schedulerName", "path": "/metadata/labels"},
                {"op": "replace", "path": "/metadata/labels", "value": {"a": "b"}},
            ],
        ),
    ],
    ids=["merge", "strategic", "json", "json with a copy"],
)
def test_patches(headers, patch):
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask("PATCH", f"{PODS}/a", patch, headers=headers)
        assert reply.status == 200, reply.body
        assert reply.json["metadata"]["labels"] == {"a": "b"}
        assert (await world.get(f"{PODS}/a")) == reply.json
        missing = await world.ask("PATCH", f"{PODS}/x", patch, headers=headers)
        assert reason(missing) == (404, "NotFound")

    serve(scenario)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([{"op": "copy", "from": "", "path": "/metadata/annotations"}] * 200, id="deeper and deeper"),
        pytest.param(
            [{"op": "add", "path": "/metadata/annotations", "value": {}}]
            + [{"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/{n}"} for n in range(60)],
            id="twice as much each time",
        ),
    ],
)
def test_a_patch_cannot_make_much_out_of_little(patch):
    async def scenario(world: World):
        before = await world.create(PODS, pod())
        reply = await world.ask("PATCH", f"{PODS}/a", patch, headers=JSON_PATCH)
        assert reply.status in (400, 413), reply.status
        assert await world.get(f"{PODS}/a") == before

    serve(scenario)


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("POST", PODS, pod("b"), None),
        ("PUT", f"{PODS}/a", {**pod(), "metadata": {"name": "a", "labels": {"x": "y"}}}, None),
        ("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE),
        ("DELETE", f"{PODS}/a", None, None),
        ("DELETE", f"{PODS}/a", {"dryRun": ["All"]}, None),
        ("DELETE", PODS, None, None),
        ("POST", f"{PODS}/a/binding", {"target": {"name": "n1"}}, None),
        ("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, None),
    ],
)
def test_a_dry_run_answers_and_changes_nothing(method, path, body, headers):
    async def scenario(world: World):
        await world.create(PODS, pod())
        version = world.store.version
        query = {} if body and "dryRun" in body else {"dryRun": "All"}
        reply = await world.ask(method, path, body, headers=headers, **query)
        assert reply.status in (200, 201), reply.body
        assert world.store.version == version
        bad = await world.ask(method, path, body, headers=headers, dryRun="Some")
        assert reason(bad) == (422, "Invalid")

    serve(scenario)


def test_delete_answers_with_a_status_or_with_the_terminating_object():
    async def scenario(world: World):
        await world.create(NODES, node())
        reply = await world.ask("DELETE", f"{NODES}/n1")
        assert reply.json["status"] == "Success"
        assert reply.json["details"]["name"] == "n1"
        assert reason(await world.ask("DELETE", f"{NODES}/n1")) == (404, "NotFound")
        await world.create(PODS, pod())
        world.store.bind("a", "default", "n1")
        reply = await world.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 7})
        assert reply.json["metadata"]["deletionGracePeriodSeconds"] == 7
        reply = await world.ask("DELETE", f"{PODS}/a", gracePeriodSeconds="0")
        assert reply.json["kind"] == "Pod"
        assert reason(await world.ask("GET", f"{PODS}/a")) == (404, "NotFound")

    serve(scenario)


def test_delete_with_preconditions_and_policies():
    async def scenario(world: World):
        await world.create(DEPLOYMENTS, deployment())
        path = f"{DEPLOYMENTS}/web"
        wrong = await world.ask("DELETE", path, {"preconditions": {"uid": "other"}})
        assert reason(wrong) == (409, "Conflict")
        unknown = await world.ask("DELETE", path, {"propagationPolicy": "Sideways"})
        assert reason(unknown) == (422, "Invalid")
        both = await world.ask("DELETE", path, {"propagationPolicy": "Orphan", "orphanDependents": True})
        assert reason(both) == (422, "Invalid")
        assert reason(await world.ask("DELETE", path, {"gracePeriodSeconds": "x"})) == (400, "BadRequest")
        assert reason(await world.ask("DELETE", path, gracePeriodSeconds="x")) == (400, "BadRequest")
        assert reason(await world.ask("DELETE", path, pod())) == (400, "BadRequest")
        going = await world.ask("DELETE", path, {"kind": "DeleteOptions", "propagationPolicy": "Foreground"})
        assert going.json["metadata"]["finalizers"] == ["foregroundDeletion"]
        orphaning = await world.ask("DELETE", path, orphanDependents="true")
        assert orphaning.json["metadata"]["finalizers"] == ["orphan"]
        gone = await world.ask("DELETE", path, propagationPolicy="Background")
        assert gone.json["status"] == "Success"

    serve(scenario)


def test_a_collection_is_deleted_by_selector():
    async def scenario(world: World):
        for name in ("a", "b", "c"):
            body = pod(name)
            body["metadata"]["labels"] = {"keep": "yes" if name == "b" else "no"}
            await world.create(PODS, body)
        reply = await world.ask("DELETE", PODS, labelSelector="keep=no")
        assert reply.status == 200
        assert [item["metadata"]["name"] for item in reply.json["items"]] == ["a", "c"]
        assert [item["metadata"]["name"] for item in (await world.get(PODS))["items"]] == ["b"]
        assert reason(await world.ask("DELETE", "/api/v1/pods")) == (405, "MethodNotAllowed")
        assert reason(await world.ask("DELETE", "/api/v1/namespaces")) == (405, "MethodNotAllowed")

    serve(scenario)


def test_lists_come_in_pages_of_one_moment():
    async def scenario(world: World):
        for number in range(5):
            await world.create(PODS, pod(f"p{number}"))
        first = await world.get(PODS, limit="2")
        assert first["metadata"]["remainingItemCount"] == 3
        await world.ask("DELETE", f"{PODS}/p3")
        names = [item["metadata"]["name"] for item in first["items"]]
        page = first["metadata"]["continue"]
        while page:
            part = await world.get(PODS, limit="2", **{"continue": page})
            assert part["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
            names += [item["metadata"]["name"] for item in part["items"]]
            page = part["metadata"].get("continue", "")
        assert names == ["p0", "p1", "p2", "p3", "p4"]
        world.store.compact()
        expired = await world.ask("GET", PODS, limit="2", **{"continue": first["metadata"]["continue"]})
        assert reason(expired) == (410, "Expired")

    serve(scenario)


def test_a_list_at_an_exact_version_shows_the_past():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        version = (await world.get(PODS))["metadata"]["resourceVersion"]
        await world.create(PODS, pod("b"))
        past = await world.get(PODS, resourceVersion=version, resourceVersionMatch="Exact")
        assert [item["metadata"]["name"] for item in past["items"]] == ["a"]
        assert past["metadata"]["resourceVersion"] == version
        fresh = await world.get(PODS, resourceVersion=version, resourceVersionMatch="NotOlderThan")
        assert len(fresh["items"]) == 2
        limited = await world.get(PODS, resourceVersion=version, limit="10")
        assert len(limited["items"]) == 1
        world.store.compact()
        await world.create(PODS, pod("c"))
        old = await world.ask("GET", PODS, resourceVersion=version, resourceVersionMatch="Exact")
        assert reason(old) == (410, "Expired")
        future = await world.ask("GET", PODS, resourceVersion="999999")
        assert reason(future) == (504, "Timeout")
        assert future.headers["retry-after"] == "1"

    serve(scenario)


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Near", "resourceVersion": "1"}, 422, 'Unsupported value: "Near"'),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422, 'forbidden for resourceVersion "0"'),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"}, 422, "when continue"),
        ({"resourceVersion": "5", "continue": "x"}, 400, "not allowed when using continue"),
        ({"sendInitialEvents": "true"}, 422, "forbidden for list"),
        ({"watch": "true", "sendInitialEvents": "true"}, 422, "requires setting resourceVersionMatch"),
        ({"watch": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"}, 422, "forbidden for watch"),
        ({"resourceVersion": "x"}, 400, "invalid resource version"),
        ({"continue": "x"}, 400, "continue key is not valid"),
        ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"limit": "9" * 30}, 400, "value out of range"),
        ({"labelSelector": "a in b"}, 400, "a in b"),
        ({"fieldSelector": "spec.image=x"}, 400, "field label not supported: spec.image"),
        ({"watch": "maybe"}, 400, "ParseBool"),
        ({"includeObject": "All"}, 400, "includeObject"),
    ],
)
def test_options_that_do_not_go_together_are_refused(query: dict[str, Any], code: int, message: str):
    async def scenario(world: World):
        reply = await world.ask("GET", PODS, **query)
        assert reply.status == code, reply.body
        assert message in reply.json["message"]

    serve(scenario)


def test_selectors_narrow_a_list():
    async def scenario(world: World):
        await world.create(PODS, pod("a"))
        body = pod("b", schedulerName="other")
        body["metadata"]["labels"] = {"x": "1"}
        await world.create(PODS, body)
        by_label = await world.get("/api/v1/pods", labelSelector="x in (1,2)")
        by_field = await world.get("/api/v1/pods", fieldSelector="spec.schedulerName!=other")
        assert [item["metadata"]["name"] for item in by_label["items"]] == ["b"]
        assert [item["metadata"]["name"] for item in by_field["items"]] == ["a"]

    serve(scenario)


def test_events_are_seen_and_selected_in_both_groups():
    async def scenario(world: World):
        regarding = {"kind": "Pod", "name": "a", "namespace": "default"}
        event = {
            "metadata": {"name": "e"},
            "regarding": regarding,
            "note": "hello",
            "reason": "Why",
            "type": "Normal",
            "action": "Act",
            "reportingController": "me",
            "reportingInstance": "me-1",
            "eventTime": "2026-01-01T00:00:00.000000Z",
        }
        await world.create("/apis/events.k8s.io/v1/namespaces/default/events", event)
        old = await world.get("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=a")
        assert [(item["kind"], item["apiVersion"], item["message"]) for item in old["items"]] == [
            ("Event", "v1", "hello")
        ]
        assert (await world.get("/api/v1/events", fieldSelector="involvedObject.name!=a"))["items"] == []
        changed = await world.ask("PATCH", "/api/v1/namespaces/default/events/e", {"message": "bye"}, headers=MERGE)
        assert changed.json["message"] == "bye"
        new = await world.get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        assert (new["note"], new["apiVersion"]) == ("bye", "events.k8s.io/v1")

    serve(scenario)


def test_times_that_an_event_does_not_have_are_null():
    """`kubectl get events --sort-by=.lastTimestamp` prints nothing if one event lacks the field."""

    async def scenario(world: World):
        core, events = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
        about = {"kind": "Pod", "name": "a", "namespace": "default"}
        what = {"reason": "Why", "type": "Normal", "action": "Act", "eventTime": "2026-01-01T00:00:00.000000Z"}
        reporter = {"reportingController": "me", "reportingInstance": "me-1"}
        await world.create(events, {"metadata": {"name": "new"}, "regarding": about, **what, **reporter})
        new, old = await world.get(f"{events}/new"), await world.get(f"{core}/new")
        assert (new["deprecatedFirstTimestamp"], new["deprecatedLastTimestamp"]) == (None, None)
        assert (new["deprecatedSource"], old["source"]) == ({}, {})
        assert (old["firstTimestamp"], old["lastTimestamp"], old["reportingComponent"]) == (None, None, "me")
        source = {"component": "kubelet", "host": "n1"}
        given = {"metadata": {"name": "old"}, "involvedObject": about, "source": source, "count": 2}
        written = await world.create(core, {**given, "lastTimestamp": "2026-01-01T00:00:00Z"})
        assert written == await world.get(f"{core}/old")
        assert (written["eventTime"], written["firstTimestamp"]) == (None, None)
        assert (written["reportingComponent"], written["reportingInstance"]) == ("", "")
        new = await world.get(f"{events}/old")
        assert (new["eventTime"], new["deprecatedFirstTimestamp"], new["deprecatedCount"]) == (None, None, 2)
        assert (new["deprecatedLastTimestamp"], new["deprecatedSource"]) == ("2026-01-01T00:00:00Z", source)
        assert (new["regarding"], "reportingController" in new) == (about, False)

    serve(scenario)


@pytest.mark.parametrize(("reporter", "names"), [("kubelet", ["both", "old"]), ("me", ["new"]), ("other", [])])
def test_the_source_of_an_event_is_its_component_or_else_its_reporter(reporter: str, names: list[str]):
    async def scenario(world: World):
        core, about = "/api/v1/namespaces/default/events", {"kind": "Pod", "name": "a", "namespace": "default"}
        for name, fields in (
            ("old", {"source": {"component": "kubelet"}}),
            ("new", {"reportingComponent": "me"}),
            ("both", {"source": {"component": "kubelet"}, "reportingComponent": "me"}),
        ):
            await world.create(core, {"metadata": {"name": name}, "involvedObject": about, **fields})
        found = await world.get(core, fieldSelector=f"source={reporter}")
        assert [item["metadata"]["name"] for item in found["items"]] == names

    serve(scenario)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", PODS), ("PATCH", PODS), ("OPTIONS", PODS), ("TRACE", f"{PODS}/a"), ("POST", f"{NODES}/n1")],
)
def test_methods_that_are_not_there(method: str, path: str):
    async def scenario(world: World):
        assert reason(await world.ask(method, path, {})) == (405, "MethodNotAllowed")

    serve(scenario)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "Pod"),
        ("*/*", "Pod"),
        ("application/vnd.kubernetes.protobuf,application/json", "Pod"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", "PartialObjectMetadata"),
        ("application/json;as=Song;v=v1;g=meta.k8s.io,application/json", "Pod"),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
        ("application/json;q=0", None),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", None),
    ],
)
def test_the_form_of_an_answer_follows_accept(accept: str, kind: str | None):
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask("GET", f"{PODS}/a", headers={"accept": accept})
        if kind is None:
            assert reason(reply) == (406, "NotAcceptable")
        else:
            assert reply.json["kind"] == kind

    serve(scenario)


def test_tables_and_metadata_of_lists():
    async def scenario(world: World):
        await world.create(PODS, pod())
        shown = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        table = (await world.ask("GET", PODS, headers=shown)).json
        assert table["columnDefinitions"][0]["name"] == "Name"
        assert table["rows"][0]["cells"][0] == "a"
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        whole = (await world.ask("GET", PODS, headers=shown, includeObject="Object")).json
        assert whole["rows"][0]["object"]["kind"] == "Pod"
        metadata = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        partial = (await world.ask("GET", PODS, headers=metadata)).json
        assert partial["kind"] == "PartialObjectMetadataList"
        assert set(partial["items"][0]) == {"kind", "apiVersion", "metadata"}

    serve(scenario)


def test_long_answers_are_compressed_on_request():
    import gzip

    async def scenario(world: World):
        for number in range(300):
            await world.create(PODS, pod(f"p{number:03}"))
        plain = await world.ask("GET", PODS)
        packed = await world.ask("GET", PODS, headers={"accept-encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(plain.body) / 5
        assert gzip.decompress(packed.body) == plain.body
        short = await world.ask("GET", f"{PODS}/p000", headers={"accept-encoding": "gzip"})
        assert "content-encoding" not in short.headers

    serve(scenario)


def test_answers_wait_for_what_they_show_to_be_durable():
    class Slow:
        """Everything is durable five seconds after it was written."""

        def __init__(self) -> None:
            self.version, self._written = 1, 1

        def attach(self, listener) -> None:
            self._listener = listener

        def check(self, stored) -> None: ...

        def record(self, stored, *, deleted: bool) -> None:
            self._written = stored.version

        async def settled(self) -> None:
            wanted = self._written
            await asyncio.sleep(5)
            if wanted > self.version:
                self.version = wanted
                self._listener.advanced()

    async def scenario(world: World):
        await world.store.settled()
        async with world.watch(PODS, resourceVersion=str(world.store.version)) as watch:
            start = world.clock.now()
            creating = asyncio.create_task(world.create(PODS, pod()))
            await asyncio.sleep(1)
            assert (await world.get(f"{PODS}/a"))["metadata"]["name"] == "a"
            assert world.clock.now() >= start + 5
            await creating
            assert (await watch.next())["type"] == "ADDED"

    serve(scenario, durability=Slow())


def test_a_write_that_cannot_be_kept_is_refused_and_reads_go_on():
    class Full(InMemory):
        """Has no room for what comes after the first objects."""

        version = 3

        async def settled(self) -> None:
            assert self._listener is not None
            self._listener.failed()
            raise refusals.disk_full("no room is left on the device")

    async def scenario(world: World):
        reply = await world.ask("POST", PODS, pod())
        assert (reply.status, reply.json["message"]) == (507, "no room is left on the device")
        assert (await world.get(PODS))["items"] == []
        assert reason(await world.ask("GET", f"{PODS}/a")) == (404, "NotFound")

    serve(scenario, durability=Full())


def test_a_bug_is_a_500_without_its_traceback_and_is_logged(caplog):
    class Broken:
        def answer(self, request):
            raise ZeroDivisionError("secret detail")

    async def scenario(world: World):
        reply = await world.ask("GET", "/apis")
        assert reason(reply) == (500, "InternalError")
        assert b"secret" not in reply.body
        assert b"Traceback" not in reply.body

    serve(scenario, endpoints=[Broken()])
    assert "Request failed" in caplog.text


def test_warnings_are_headers_whatever_the_fields_are_called():
    async def scenario(world: World):
        body = {**pod(), 'a\n\x01"\\ü∞': 1, **{f"x{number}": 1 for number in range(50)}}
        reply = await world.ask("POST", PODS, body, fieldValidation="Warn")
        assert reply.status == 201, reply.body
        warnings = reply.headers.getlist("warning")
        assert 1 < len(warnings) <= 16
        assert 'a??\\"\\\\ü?' in warnings[0]

    serve(scenario)
