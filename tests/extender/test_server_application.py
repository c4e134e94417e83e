"""The verbs over HTTP: what is refused with which code, and that nothing which a client sends can hurt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from moorage.extender.server_wire import PodReader
from moorage.framework import FilterPlugin, ScorePlugin, Status
from moorage.run.extender import application
from moorage.serving.certificates import User
from moorage.testing import make_node
from tests.extender.server_kit import POD, Extended, by_names, exchange, served_of


class Sample(FilterPlugin):
    name = "Sample"

    def filter(self, state, pod, node):
        return None if node.labels.get("cpu") == "true" else Status.unschedulable(f"Node: {node.name}")


class Broken(ScorePlugin):
    name = "Broken"

    def score(self, state, pod, node):
        raise RuntimeError("out of order")


NODES = [make_node("a", labels={"cpu": "true"}), make_node("b")]
QUESTION = msgspec.json.encode(by_names("a", "b"))


@pytest.mark.parametrize(
    ("verb", "body", "text"),
    [
        ("filter", b"", "invalid request: Input data was truncated"),
        ("filter", b"{nonsense", "invalid request: JSON is malformed"),
        ("filter", b'"\xff\xfe"', "invalid request: "),
        ("filter", b"[" * 100_000, "invalid request: "),
        ("filter", b"[]", "invalid request: Expected `object`, got `array`"),
        ("filter", b"{}", "invalid request: Object missing required field `Pod`"),
        ("filter", b'{"Pod":{},"NodeNames":"a"}', "Expected `array | null`, got `str` - at `$.NodeNames`"),
        ("filter", b'{"Pod":{},"NodeNames":[1]}', "Expected `str`, got `int` - at `$.NodeNames[0]`"),
        ("filter", b'{"Pod":{}}', "NodeNames: expected the names of nodes there, or nodes in Nodes"),
        ("filter", b'{"Pod":null,"NodeNames":[]}', "Pod: "),
        ("filter", b'{"Pod":{"spec":{"priority":"high"}},"NodeNames":[]}', "spec.priority"),
        (
            "filter",
            b'{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"much"}}}]}},"NodeNames":[]}',
            "spec.containers[0].resources.requests[cpu]",
        ),
        ("filter", b'{"Pod":{},"Nodes":{"items":[{}]}}', "Nodes.items[0]: Object missing required field"),
        ("prioritize", b'{"Pod":{},"Nodes":[]}', "at `$.Nodes`"),
        ("preempt", b'{"Pod":{}}', "NodeNameToMetaVictims: expected UIDs of victims by node there"),
        ("preempt", b'{"Pod":{},"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":1}]}}}', "Expected `str`, got `int`"),
    ],
)
def test_f13_a_request_that_is_not_as_agreed_gets_400_and_the_field(verb, body, text):
    with Extended(served_of(Sample, Broken), NODES) as extended:
        code, answer = extended.ask(verb, body)
        assert (code, text in answer["Error"]) == (400, True), answer
        assert extended.answer("filter", by_names("a"))["NodeNames"] == ["a"]


@pytest.mark.parametrize(
    ("method", "path", "code", "text"),
    [
        ("GET", "/filter", 405, "GET /filter is not served; POST /filter, POST /preempt are"),
        ("PUT", "/filter", 405, "PUT /filter is not served"),
        ("POST", "/prioritize", 404, "POST /prioritize is not served; POST /filter, POST /preempt are"),
        ("POST", "/bind", 404, "POST /bind is not served"),
        ("POST", "/", 404, "POST / is not served"),
        ("POST", "/filter/x", 404, "POST /filter/x is not served"),
    ],
)
def test_f13_other_methods_and_verbs_that_are_not_served(method, path, code, text):
    with Extended(served_of(Sample), NODES) as extended:
        found, answer = extended.ask(path.removeprefix("/"), QUESTION, method=method)
        assert (found, answer["Error"].startswith(text)) == (code, True), answer


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
        ({"origin": "http://localhost:8888"}, 403),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-length": str(100 * 1024 * 1024)}, 413),
    ],
)
def test_f13_what_the_head_of_a_request_decides(headers, code):
    with Extended(served_of(Sample), NODES) as extended:
        assert extended.ask("filter", QUESTION, headers=headers)[0] == code


def test_f13_a_body_that_is_too_large_is_not_read_to_its_end():
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b" " * (1024 * 1024)

    with Extended(served_of(Sample), NODES) as extended:
        code, answer = extended.ask("filter", b"", pieces=endless)
    assert (code, taken) == (413, application.BODY_BYTES // 1024**2 + 1)
    assert "set nodeCacheCapable: true" in answer["Error"]


async def stalling() -> AsyncIterator[bytes]:
    yield b" " * (1024 * 1024)
    await asyncio.sleep(3600)


def test_f13_a_body_that_does_not_come_is_given_up():
    with Extended(served_of(Sample), NODES) as extended:
        before = extended.cluster.clock.now()
        assert extended.ask("filter", b"", pieces=stalling)[0] == 408
        assert extended.cluster.clock.now() - before == pytest.approx(application.BODY_SECONDS)


def test_f13_a_thousand_slow_requests_at_once_hold_bounded_memory_and_nothing_up():
    with Extended(served_of(Sample), NODES) as extended:

        async def main() -> tuple[list[int], int]:
            requests = (exchange(extended.app, "/filter", pieces=stalling) for _ in range(1000))
            slow = [asyncio.create_task(request) for request in requests]
            await asyncio.sleep(1)
            quick = await exchange(extended.app, "/filter", QUESTION)
            return [answer[0] for answer in await asyncio.gather(*slow)], quick[0]

        codes, quick = extended.cluster.run(main())
        most = application.HELD_BYTES // 1024**2
        assert (codes.count(408), codes.count(429)) == (most, 1000 - most)
        assert quick == 200
        large = QUESTION + b" " * (1024 * 1024)
        assert extended.ask("filter", large)[0] == 200, "what was held is given back"


def test_f13_ten_thousand_nodes_are_answered():
    names = [f"n{number}" for number in range(10_000)]
    with Extended(served_of(Sample), NODES) as extended:
        answer = extended.answer("filter", by_names(*names, "a"))
        assert (answer["NodeNames"], len(answer["FailedNodes"])) == (["a"], 10_000)


def test_f13_without_a_client_certificate_the_verbs_are_closed_where_one_is_needed():
    with Extended(served_of(Sample), NODES, needs_certificate=True) as extended:
        code, answer = extended.ask("filter", QUESTION)
        assert (code, answer) == (
            401, {"Error": "a client certificate is needed: set tlsConfig.certFile and keyFile"},
        )  # fmt: skip
        assert extended.ask("filter", QUESTION, user=User("kube-scheduler"))[0] == 200


def test_nothing_is_answered_until_the_extender_is_ready():
    reason = ["the caches have not synced yet"]
    with Extended(served_of(Sample), NODES, not_ready=lambda: reason[0]) as extended:
        assert extended.ask("filter", QUESTION) == (503, {"Error": "the caches have not synced yet"})
        reason[0] = ""
        assert extended.ask("filter", QUESTION)[0] == 200


def test_unknown_keys_are_ignored():
    body = msgspec.json.encode({**by_names("a"), "New": {"x": 1}, "apiVersion": "v2"})
    with Extended(served_of(Sample), NODES) as extended:
        assert extended.answer("filter", body)["NodeNames"] == ["a"]


def test_requests_are_counted_by_verb_and_outcome():
    reason = [""]
    with Extended(served_of(Sample, Broken), NODES, not_ready=lambda: reason[0]) as extended:
        extended.ask("filter", QUESTION)
        extended.ask("filter", b"{")
        extended.ask("prioritize", QUESTION)
        extended.ask("nonsense", QUESTION)
        reason[0] = "not yet"
        extended.ask("filter", QUESTION)
        assert extended.metrics.requests.samples() == {
            ("filter", "success"): 1,
            ("filter", "refused"): 1,
            ("filter", "unavailable"): 1,
            ("prioritize", "error"): 1,
        }
        assert extended.metrics.seconds.child("filter").count == 3


def test_the_application_can_be_embedded_in_another():
    with Extended(served_of(Sample), NODES) as extended:
        outer = Starlette(routes=[Mount("/scheduler", extended.app)])
        code, answer, headers = extended.cluster.run(exchange(outer, "/scheduler/filter", QUESTION))
        assert code == 200
        assert headers["content-type"] == "application/json"
        assert msgspec.json.decode(answer)["NodeNames"] == ["a"]


def test_a_pod_that_comes_again_is_decoded_once():
    reader = PodReader()
    raw = msgspec.Raw(msgspec.json.encode(POD))
    first = reader.read(raw)
    assert first == POD
    assert reader.read(msgspec.Raw(bytes(raw))) is first
    assert reader.read(msgspec.Raw(b'{"metadata":{"name":"q"}}')).name == "q"
    assert reader.read(raw) is not first


@pytest.mark.parametrize("host", ["x/filter?", "x/healthz#", "[", "//evil.example/"])
def test_the_host_header_changes_neither_the_path_nor_the_answer(host):
    with Extended(served_of(Sample)) as extended:
        for path in ("/filter/", "/nothing"):
            headers = {"host": host}
            code, body, found = extended.cluster.run(exchange(extended.app, path, b"{}", headers=headers))
            assert (code, found.get("location")) == (404, None)
            assert msgspec.json.decode(body)["Error"].startswith(f"POST {path} is not served")


@pytest.mark.parametrize("text", ["bad \ud800 text", "ü" * 50_000], ids=["half a surrogate pair", "100 KB"])
def test_a_message_of_a_plugin_that_cannot_be_sent_is_cleaned_and_cut(text):
    class Chatty(FilterPlugin):
        name = "Chatty"

        def filter(self, state, pod, node):
            return Status.unschedulable(text)

    with Extended(served_of(Chatty), *NODES) as extended:
        found = extended.answer("filter", by_names("a"))["FailedNodes"]["a"]
        assert len(found.encode()) <= 32 * 1024
