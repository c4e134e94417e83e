"""Subresources: binding, eviction, status, scale, log, finalize, token; and the paths outside the objects."""

from typing import Any

import pytest

from moorage.api import resources
from tests.embedded.apiserver.kit import DEPLOYMENTS, NODES, PODS, World, deployment, node, pod, serve
from tests.embedded.apiserver.test_objects import JSON_PATCH, MERGE, STRATEGIC, reason

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def binding(target: str = "n1", **meta: str) -> dict[str, Any]:
    return {"kind": "Binding", "apiVersion": "v1", "metadata": meta, "target": {"kind": "Node", "name": target}}


@pytest.mark.parametrize("path", [f"{PODS}/a/binding", "/api/v1/namespaces/default/bindings"])
def test_a_binding_assigns_the_pod(path: str):
    async def scenario(world: World):
        await world.create(PODS, pod())
        answer = await world.create(path, binding(name="a"))
        assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
        bound = await world.get(f"{PODS}/a")
        assert bound["spec"]["nodeName"] == "n1"
        again = await world.ask("POST", path, binding(name="a"))
        assert reason(again) == (409, "Conflict")
        assert again.json["message"] == (
            'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
        )

    serve(scenario)


@pytest.mark.parametrize(
    ("body", "expected", "message"),
    [
        (binding(uid="other"), (409, "Conflict"), "UID in precondition: other"),
        (binding(target=""), (422, "Invalid"), "target.name"),
        ({**binding(), "target": {"kind": "Rack", "name": "r"}}, (422, "Invalid"), "target.kind"),
        (binding(name="b"), (400, "BadRequest"), "name in URL does not match"),
        (binding(namespace="b"), (400, "BadRequest"), "does not match the namespace"),
        ({**binding(), "kind": "Pod"}, (400, "BadRequest"), "cannot be handled as a Binding"),
        ({**binding(), "target": 5}, (400, "BadRequest"), "Binding is not readable"),
        (b"{", (400, "BadRequest"), "not readable as JSON"),
        (b"[]", (400, "BadRequest"), "must be a JSON object"),
    ],
)
def test_bindings_that_are_refused(body, expected, message):
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask("POST", f"{PODS}/a/binding", body)
        assert reason(reply) == expected
        assert message in reply.json["message"]
        missing = await world.ask("POST", f"{PODS}/x/binding", binding())
        assert reason(missing) == (404, "NotFound")
        assert "nodeName" not in (await world.get(f"{PODS}/a"))["spec"]

    serve(scenario)


async def protected(world: World, allowed: int, *, phase: str = "Running", ready: str = "True", **status: int) -> None:
    """Pod `a` under budget `b`."""
    body = pod()
    body["metadata"]["labels"] = {"app": "x"}
    await world.create(PODS, body)
    condition = {"type": "Ready", "status": ready}
    patch = {"status": {"phase": phase, "conditions": [condition]}}
    assert (await world.ask("PATCH", f"{PODS}/a/status", patch, headers=MERGE)).status == 200
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    await world.create(BUDGETS, budget)
    counted = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        **status,
    }
    patched = await world.ask("PATCH", f"{BUDGETS}/b/status", {"status": counted}, headers=MERGE)
    assert patched.status == 200, patched.body


def test_an_eviction_takes_from_the_budget():
    async def scenario(world: World):
        await protected(world, allowed=1)
        answer = await world.create(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert answer["status"] == "Success"
        assert reason(await world.ask("GET", f"{PODS}/a")) == (404, "NotFound")
        status = (await world.get(f"{BUDGETS}/b"))["status"]
        assert status["disruptionsAllowed"] == 0
        assert list(status["disruptedPods"]) == ["a"]

    serve(scenario)


def test_an_eviction_that_would_violate_the_budget_is_refused_in_the_servers_words():
    async def scenario(world: World):
        await protected(world, allowed=0)
        reply = await world.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert reason(reply) == (429, "TooManyRequests")
        status = reply.json
        assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
        cause = "The disruption budget b needs 1 healthy pods and has 1 currently"
        assert status["details"]["causes"] == [{"reason": "DisruptionBudget", "message": cause}]
        assert (await world.get(f"{PODS}/a"))["metadata"].get("deletionTimestamp") is None

    serve(scenario)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param({"phase": "Pending"}, 201, id="not started"),
        pytest.param({"phase": "Succeeded"}, 201, id="finished"),
        pytest.param({"ready": "False"}, 201, id="unready, budget healthy"),
        pytest.param({"ready": "False", "currentHealthy": 0}, 429, id="unready, budget not healthy"),
        pytest.param({"observedGeneration": 0}, 429, id="not counted yet"),
        pytest.param({"allowed": -1}, 403, id="negative"),
    ],
)
def test_what_a_budget_protects(options, code):
    async def scenario(world: World):
        await protected(world, **{"allowed": 0, **options})
        reply = await world.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert reply.status == code, reply.body
        if options == {"observedGeneration": 0}:
            assert reply.headers["retry-after"] == "10"

    serve(scenario)


def test_a_pod_under_two_budgets_cannot_be_evicted():
    async def scenario(world: World):
        await protected(world, allowed=1)
        await world.create(BUDGETS, {"metadata": {"name": "c"}, "spec": {"maxUnavailable": 1, "selector": {}}})
        reply = await world.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert reason(reply) == (500, "InternalError")
        assert "more than one PodDisruptionBudget" in reply.json["message"]

    serve(scenario)


def test_eviction_passes_its_options_on():
    async def scenario(world: World):
        await world.create(PODS, pod())
        world.store.bind("a", "default", "n1")
        wrong = {"metadata": {"name": "a"}, "deleteOptions": {"preconditions": {"uid": "other"}}}
        assert reason(await world.ask("POST", f"{PODS}/a/eviction", wrong)) == (409, "Conflict")
        graceful = {"metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 5}}
        await world.create(f"{PODS}/a/eviction", graceful)
        assert (await world.get(f"{PODS}/a"))["metadata"]["deletionGracePeriodSeconds"] == 5
        named = await world.ask("POST", f"{PODS}/a/eviction", {"metadata": {"name": "b"}})
        assert reason(named) == (400, "BadRequest")

    serve(scenario)


@pytest.mark.parametrize("path", [f"{NODES}/n1/status", f"{PODS}/a/status"])
def test_status_has_a_door_of_its_own(path: str):
    async def scenario(world: World):
        await world.create(NODES, node())
        await world.create(PODS, pod())
        condition = {"type": "Ready", "status": "True"}
        change = {"status": {"conditions": [condition]}, "metadata": {"labels": {"not": "written"}}}
        patched = await world.ask("PATCH", path, change, headers=STRATEGIC)
        assert patched.status == 200, patched.body
        assert patched.json["status"]["conditions"][0]["status"] == "True"
        current = await world.get(path)
        current["status"]["conditions"] = []
        replaced = await world.ask("PUT", path, current)
        assert replaced.json["status"].get("conditions") == []
        assert reason(await world.ask("DELETE", path)) == (405, "MethodNotAllowed")

    serve(scenario)


def test_scale_is_read_and_written_by_number():
    async def scenario(world: World):
        await world.create(DEPLOYMENTS, deployment(replicas=2))
        path = f"{DEPLOYMENTS}/web/scale"
        scale = await world.get(path)
        assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 2}, "app=web")
        scale["spec"]["replicas"] = 5
        assert (await world.ask("PUT", path, scale)).json["spec"] == {"replicas": 5}
        assert reason(await world.ask("PUT", path, scale)) == (409, "Conflict")
        for headers, change in ((MERGE, {"spec": {"replicas": 7}}), (STRATEGIC, {"spec": {"replicas": 7}})):
            assert (await world.ask("PATCH", path, change, headers=headers)).json["spec"] == {"replicas": 7}
        replace = [{"op": "replace", "path": "/spec/replicas", "value": 0}]
        assert (await world.ask("PATCH", path, replace, headers=JSON_PATCH)).json["spec"] == {"replicas": 0}
        stored = await world.get(f"{DEPLOYMENTS}/web")
        assert (stored["spec"]["replicas"], stored["metadata"]["generation"]) == (0, 4)

    serve(scenario)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ({"spec": {"replicas": -1}}, (422, "Invalid")),
        ({"spec": {"replicas": 2**31}}, (422, "Invalid")),
        ({"spec": {"replicas": "x"}}, (400, "BadRequest")),
        ({"kind": "Pod"}, (400, "BadRequest")),
        ({"metadata": {"name": "other"}}, (400, "BadRequest")),
    ],
)
def test_scales_that_are_refused(scale, expected):
    async def scenario(world: World):
        await world.create(DEPLOYMENTS, deployment())
        assert reason(await world.ask("PUT", f"{DEPLOYMENTS}/web/scale", scale)) == expected
        assert reason(await world.ask("GET", f"{DEPLOYMENTS}/x/scale")) == (404, "NotFound")
        await world.create(PODS, pod())
        assert reason(await world.ask("GET", f"{PODS}/a/scale")) == (404, "NotFound")

    serve(scenario)


def test_logs_say_that_there_is_none():
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask("GET", f"{PODS}/a/log")
        assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert b"simulated" in reply.body
        assert reason(await world.ask("GET", f"{PODS}/x/log")) == (404, "NotFound")
        unknown = await world.ask("GET", f"{PODS}/a/log", container="other")
        assert reason(unknown) == (400, "BadRequest")
        assert (await world.ask("GET", f"{PODS}/a/log", container="main")).status == 200

    serve(scenario)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", ["exec", "attach", "portforward"])
def test_connections_to_a_pod_say_that_it_is_simulated(name: str, method: str):
    async def scenario(world: World):
        await world.create(PODS, pod())
        reply = await world.ask(method, f"{PODS}/a/{name}", container="main")
        assert reason(reply) == (501, "NotImplemented")
        assert reply.json["message"] == (
            f"Pod default/a is simulated: no process runs, so pods/{name} has nothing to connect to."
        )
        assert reason(await world.ask(method, f"{PODS}/x/{name}")) == (404, "NotFound")

    serve(scenario)


def test_tokens_of_service_accounts_are_accepted_until_they_expire():
    async def scenario(world: World):
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        world.store.create(resources.SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": "default"}})
        asked = {"spec": {"expirationSeconds": 600, "audiences": ["here"]}}
        request = await world.create(f"{accounts}/robot/token", asked)
        token = request["status"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        assert (await world.ask("GET", PODS, headers=headers)).status == 200
        broken = {"authorization": f"Bearer {token[:-2]}xx"}
        assert reason(await world.ask("GET", PODS, headers=broken)) == (401, "Unauthorized")
        await world.clock.sleep(601)
        assert reason(await world.ask("GET", PODS, headers=headers)) == (401, "Unauthorized")
        short = await world.ask("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 5}})
        assert reason(short) == (422, "Invalid")
        assert reason(await world.ask("POST", f"{accounts}/x/token", {})) == (404, "NotFound")

    serve(scenario)


@pytest.mark.parametrize(
    "path", [f"{PODS}/a/ephemeralcontainers", f"{PODS}/a/proxy/x", f"{NODES}/n1/proxy", f"{DEPLOYMENTS}/web/x"]
)
def test_other_subresources_are_not_there(path: str):
    async def scenario(world: World):
        await world.create(PODS, pod())
        await world.create(NODES, node())
        await world.create(DEPLOYMENTS, deployment())
        assert reason(await world.ask("POST", path, {})) == (404, "NotFound")

    serve(scenario)


def test_health_and_version():
    async def scenario(world: World):
        for path in ("/healthz", "/livez", "/readyz"):
            reply = await world.ask("GET", path)
            assert (reply.status, reply.body) == (200, b"ok")
        assert (await world.get("/version"))["minor"] == "37"

    serve(scenario)


def test_only_the_version_has_a_second_path_with_a_slash():
    """kr8s and the official Python client ask for /version/. kube-apiserver has no such paths for health."""

    async def scenario(world: World):
        assert await world.get("/version/") == await world.get("/version")
        for path in ("/version//", "/version/x", "/healthz/", "/livez/", "/readyz/"):
            assert (await world.ask("GET", path)).status == 404, path

    serve(scenario)


def test_a_server_that_is_not_ready_says_why():
    async def scenario(world: World):
        reply = await world.ask("GET", "/readyz")
        assert (reply.status, reply.body) == (503, b"not ready: still loading\n")
        assert (await world.ask("GET", "/livez")).status == 200

    serve(scenario, ready=lambda: "still loading")


def test_a_namespace_goes_when_its_last_finalizer_is_taken_away():
    async def scenario(world: World):
        path = "/api/v1/namespaces/x"
        created = await world.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
        assert created["spec"]["finalizers"] == ["kubernetes"]
        going = (await world.ask("DELETE", path)).json
        assert (going["status"]["phase"], going["spec"]) == ("Terminating", created["spec"])
        pods = "/api/v1/namespaces/x/pods"
        assert reason(await world.ask("POST", pods, pod("a", "x"))) == (403, "Forbidden")
        going["spec"]["finalizers"] = []
        finalized = await world.ask("PUT", f"{path}/finalize", going)
        assert finalized.status == 200, finalized.body
        assert reason(await world.ask("GET", path)) == (404, "NotFound")

    serve(scenario)
