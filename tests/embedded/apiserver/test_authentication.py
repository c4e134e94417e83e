"""Who gets an answer: hosts, origins, credentials."""

import base64
from typing import Any

import pytest

from tests.embedded.apiserver.kit import HOST, PODS, TOKEN, World, pod, serve
from tests.embedded.apiserver.test_objects import reason


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer a.b.c",
        "Bearer \xff",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", PODS), ("GET", "/"), ("GET", "/api"), ("POST", PODS), ("POST", "/healthz")]
)
def test_nothing_is_answered_without_the_token(method: str, path: str, authorization: str):
    async def scenario(world: World):
        reply = await world.ask(method, path, headers={"Authorization": authorization})
        assert reason(reply) == (401, "Unauthorized")

    serve(scenario)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_are_open(path: str):
    async def scenario(world: World):
        assert (await world.ask("GET", path, headers={"Authorization": ""})).status == 200

    serve(scenario)


@pytest.mark.parametrize("path", ["/healthz", PODS])
@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 200),
        ("evil.test", 421),
        ("localhost.evil.test:6443", 421),
        ("127.0.0.1", 421),
        ("127.0.0.1:6444", 421),
        ("127.0.0.1:6443.evil.test", 421),
        ("", 400),
    ],
)
def test_the_host_must_be_ours(host: str, status: int, path: str):
    async def scenario(world: World):
        reply = await world.ask("GET", path, headers={"host": host})
        assert reply.status == status

    serve(scenario)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"origin": "https://evil.test"}, False),
        ({"origin": "null"}, False),
        ({"origin": "https://127.0.0.1:9999"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"origin": f"https://{HOST}"}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
    ],
)
def test_requests_from_other_sites_are_refused(method: str, headers: dict[str, str], allowed: bool):
    async def scenario(world: World):
        reply = await world.ask(method, PODS, pod() if method == "POST" else None, headers=headers)
        if allowed:
            assert reply.status in (200, 201)
        else:
            assert reason(reply) == (403, "Forbidden")
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert reply.headers["x-content-type-options"] == "nosniff"

    serve(scenario)


def test_too_many_headers_are_refused():
    async def scenario(world: World):
        reply = await world.ask("GET", PODS, headers={f"x-{number}": "a" for number in range(200)})
        assert reply.status == 431

    serve(scenario)


@pytest.mark.parametrize("path", [f"{PODS}/a%2Fb", f"{PODS}/..", f"{PODS}/%2e%2e/x", f"{PODS}/a%00"])
def test_ambiguous_paths_are_refused(path: str):
    async def scenario(world: World):
        assert reason(await world.ask("GET", path)) == (400, "BadRequest")

    serve(scenario)


@pytest.mark.parametrize("end", ["%3F", "%3Fpretty=1", "%23x", "%26", "%253F", "%25", "%ff", "%0a", "%C0%AF", ";x"])
def test_an_encoded_path_is_the_decoded_one_for_admission_and_for_routing(end: str):
    async def scenario(world: World):
        created = await world.create(PODS, pod())
        for path in ("/healthz", "/readyz", "/version"):
            assert (await world.ask("GET", path, headers={"Authorization": ""})).status == 200
            assert reason(await world.ask("GET", path + end, headers={"Authorization": ""})) == (401, "Unauthorized")
        for method in ("GET", "DELETE"):
            assert (await world.ask(method, f"{PODS}/a{end}")).status == 404
        assert (await world.ask("GET", f"{PODS}{end}")).status == 404
        assert await world.get(f"{PODS}/%61") == created

    serve(scenario)


def test_a_token_with_deeply_nested_json_is_not_valid():
    token = base64.urlsafe_b64encode(b"[" * 2500).decode() + ".e30.x"

    async def scenario(world: World):
        reply = await world.ask("GET", PODS, headers={"Authorization": f"Bearer {token}"})
        assert reason(reply) == (401, "Unauthorized")

    serve(scenario)


def test_too_many_parameters_are_refused():
    async def scenario(world: World):
        query: dict[str, Any] = {f"q{number}": "x" for number in range(200)}
        reply = await world.ask("GET", PODS, **query)
        assert reason(reply) == (400, "BadRequest")

    serve(scenario)


@pytest.mark.parametrize("path", [PODS, "/api", "/"])
@pytest.mark.parametrize(
    "target", ["//healthz/..{}", "/healthz/..{}", "/healthz/%2e%2e{}", "/healthz%3f{}", "/healthz%23{}", "/healthz;{}"]
)
@pytest.mark.parametrize("host", [HOST, f"{HOST}/healthz?", f"{HOST}#", f"x@{HOST}"])
def test_no_form_of_host_and_target_makes_a_path_open(path: str, target: str, host: str):
    async def scenario(world: World):
        for asked in (path, target.format(path)):
            reply = await world.ask("GET", asked, headers={"Authorization": "", "host": host})
            assert reply.status == (401 if host == HOST else 421)

    serve(scenario)
