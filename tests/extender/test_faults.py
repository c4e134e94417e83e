"""Group F of the fault list: an extender that lies, stalls, breaks off or is not there."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket

import pytest

from moorage.api.errors import OutcomeUnknown
from moorage.config import ExtenderManagedResource
from moorage.extender import client, wire
from moorage.framework.ports import ExtenderError, Victims
from moorage.state.node_table import NodeTable
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import VirtualClock, make_node, make_pod, run
from moorage.testing.builders import make_container
from tests.client.raw_server import Connection
from tests.extender.kit import POD, THREE, asked, extender_of, filtered, in_turn, replying, saying

GOOD = {"NodeNames": ["a"], "Nodes": {"items": [{"metadata": {"name": "a"}}]}}
PATH = "failed filter with extender at URL http://127.0.0.1:[0-9]+/filter: "


def test_a_question_arrives_as_it_was_meant_and_the_connection_is_kept():
    seen, connections = [], []

    def answer(verb, question):
        seen.append((verb, question))
        return [] if verb == "prioritize" else GOOD

    async def script(connection: Connection) -> None:
        connections.append(connection)
        await replying(answer)(connection)

    async def ask(extender):
        found = await extender.filter(POD, THREE)
        assert await extender.prioritize(POD, THREE) == {}
        return found

    assert asked(script, ask, node_cache_capable=True).names == {"a"}
    assert [verb for verb, _ in seen] == ["filter", "prioritize"]
    assert seen[0][1]["NodeNames"] == ["a", "b", "c"]
    assert len(connections) == 1


def test_headers_say_what_is_wanted():
    async def script(connection: Connection) -> None:
        received = (await connection.request()).headers
        assert received["content-type"] == received["accept"] == "application/json"
        assert received["accept-encoding"] == "identity"
        assert "authorization" not in received
        await connection.answer(200, b'{"NodeNames": ["a"]}', content_type="application/json; charset=utf-8")

    assert filtered(script, node_cache_capable=True).names == {"a"}


def test_the_verb_is_put_behind_the_prefix():
    async def script(connection: Connection) -> None:
        line = (await connection.request()).line
        await connection.answer(200, f'{{"Error": "{line}"}}'.encode(), content_type="application/json")

    with pytest.raises(ExtenderError, match=r"POST /a/b/v1/filter HTTP/1\.1"):
        filtered(script, url="http://127.0.0.1:{port}/a/b/", filter_verb="v1/filter")


def test_f1_a_name_that_was_not_sent_is_an_error():
    with pytest.raises(ExtenderError, match=f'{PATH}filtered node "zz" is not found in the input node list'):
        filtered(saying({"NodeNames": ["a", "zz"]}), node_cache_capable=True)


def test_f2_f3_nodes_are_known_by_name_each_once():
    node = {"metadata": {"name": "b"}, "status": {"allocatable": {"cpu": "1000"}}}
    answer = {"Nodes": {"items": [node, node, {"metadata": {"name": "zz"}}]}}
    assert filtered(saying(answer)).names == {"b"}


@pytest.mark.parametrize("answer", [b"null", b"{}", b'{"Nodes": null, "NodeNames": null}'])
def test_f4_no_nodes_means_that_none_passes(answer):
    assert filtered(saying(answer)).names == frozenset()


F6 = [
    pytest.param(saying(GOOD, 500), "code 500", id="500"),
    pytest.param(saying(b"", 204), "code 204", id="204"),
    pytest.param(saying(GOOD, 201), "code 201", id="201"),
    pytest.param(saying(b"", 307, location="http://127.0.0.1:1/"), "code 307", id="redirect"),
    pytest.param(saying(b"<html>", content_type="text/html"), 'Content-Type "text/html"', id="HTML"),
    pytest.param(saying(GOOD, content_type="text/plain"), 'Content-Type "text/plain"', id="wrong type"),
    pytest.param(saying(b'{"NodeNames": ["a"]'), "truncated", id="truncated JSON"),
    pytest.param(saying(b'{"NodeNames": []}{"NodeNames": ["a"]}'), "trailing characters", id="two documents"),
    pytest.param(saying(gzip.compress(b"{}"), content_encoding="gzip"), 'encoded as "gzip"', id="F7: gzip"),
]


@pytest.mark.parametrize(("script", "message"), F6)
def test_f6_only_one_json_document_with_200_is_an_answer(script, message):
    with pytest.raises(ExtenderError, match=f"{PATH}.*{message}"):
        filtered(script)


async def break_off(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")


async def reset(connection: Connection) -> None:
    await connection.request()
    connection.reset()


@pytest.mark.parametrize("script", [break_off, reset])
def test_f6_an_answer_that_breaks_off_is_an_error(script):
    with pytest.raises(ExtenderError, match=PATH):
        filtered(script)


async def once_then_gone(connection: Connection) -> None:
    """Answers one request on the connection, and ends it under the next."""
    await connection.request()
    await connection.answer(200, b'{"NodeNames": ["a"]}', content_type="application/json")
    await connection.request()


def test_f6_a_question_that_met_a_closed_connection_is_sent_again_once():
    async def ask(extender):
        await extender.filter(POD, THREE)
        return await extender.filter(POD, THREE)

    assert asked(in_turn(once_then_gone, saying(GOOD)), ask, node_cache_capable=True).names == {"a"}
    with pytest.raises(ExtenderError, match=PATH):
        asked(in_turn(once_then_gone, reset, saying(GOOD)), ask, node_cache_capable=True)


def test_f6_a_question_on_a_new_connection_is_sent_once():
    with pytest.raises(ExtenderError, match=PATH):
        filtered(in_turn(reset, saying(GOOD)))


def test_f6_a_bind_is_never_sent_again():
    async def ask(extender):
        await extender.filter(POD, THREE)
        await extender.bind(POD, "a")

    with pytest.raises(OutcomeUnknown, match="failed bind"):
        asked(in_turn(once_then_gone, saying({})), ask, node_cache_capable=True)


async def endless(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while True:
        await connection.send(b" " * 10_000)


async def announced(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2000000000\r\n\r\n")
    await asyncio.sleep(5)


@pytest.mark.parametrize("script", [endless, announced])
def test_f7_a_body_is_read_up_to_its_limit(script, monkeypatch):
    monkeypatch.setattr(client, "ANSWER_BYTES", 1000)
    limit = 1000 + 256 * 3 + 2 * len(wire.node_args(POD, THREE, names_only=False))
    with pytest.raises(ExtenderError, match=f"longer than the {limit} bytes"):
        filtered(script)


def test_f7_whole_nodes_may_come_back_however_large_they_are(monkeypatch):
    monkeypatch.setattr(client, "ANSWER_BYTES", 0)
    large = NodeTable()
    large.set_node(make_node("a", labels={"x": "y" * 5000}))
    script = replying(lambda verb, question: {"Nodes": question["Nodes"]})
    assert asked(script, lambda extender: extender.filter(POD, large.nodes())).names == {"a"}


async def drip(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n")
    while True:
        await connection.send(b" ")
        await asyncio.sleep(0.02)


async def silent(connection: Connection) -> None:
    await connection.request()
    await asyncio.sleep(5)


@pytest.mark.parametrize("script", [drip, silent])
def test_f8_the_deadline_is_for_the_whole_exchange(script):
    with pytest.raises(ExtenderError, match=rf"{PATH}.*timed out \(0.1 s\)"):
        filtered(script, http_timeout=0.1)


def test_f9_a_port_where_nothing_listens_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ExtenderError, match=f"URL {url}/filter: .*see extenders.0."):
            filtered(saying(GOOD), url=url)


BINDS = [
    pytest.param(saying({"Error": "node is full"}), "node is full", id="an error"),
    pytest.param(saying(b"", 500), "code 500", id="500"),
    pytest.param(reset, "bind", id="reset"),
    pytest.param(silent, "timed out", id="too late"),
]


@pytest.mark.parametrize(("script", "message"), BINDS)
def test_f10_a_bind_that_was_sent_and_not_confirmed_may_have_happened(script, message):
    with pytest.raises(OutcomeUnknown, match=f"failed bind with extender at URL .*{message}"):
        asked(script, lambda extender: extender.bind(POD, "a"), http_timeout=0.1)


def test_f10_a_bind_that_was_not_sent_has_not_happened():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ExtenderError, match="failed bind"):
            asked(saying({}), lambda extender: extender.bind(POD, "a"), url=url)


def test_f12_victims_that_were_not_offered_are_an_error():
    answer = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "9"}]}}}
    offered = {"a": Victims((make_pod("low", uid="1"),))}
    with pytest.raises(ExtenderError, match=r'failed preempt .*"9" was not offered'):
        asked(saying(answer), lambda extender: extender.preempt(POD, offered))


GPU = "example.com/gpu"
INTEREST = [
    pytest.param(make_pod(requests={GPU: "1"}), True, id="requested"),
    pytest.param(make_pod(containers=[make_container(limits={GPU: "1"})]), True, id="limited"),
    pytest.param(make_pod(init_containers=[make_container(requests={GPU: "1"})]), True, id="init container"),
    pytest.param(make_pod(init_containers=[make_container(limits={GPU: "1"})]), True, id="init, limited"),
    pytest.param(make_pod(cpu="1"), False, id="neither"),
]


@pytest.mark.parametrize(("pod", "interested"), INTEREST)
def test_f15_managed_resources_are_looked_for_in_all_containers(pod, interested):
    async def ask(extender):
        return extender.is_interested(pod)

    managed = asked(saying({}), ask, managed_resources=(ExtenderManagedResource(name=GPU),))
    assert managed is interested
    assert asked(saying({}), ask) is True, "without managed resources it is asked about every pod"


def test_requests_are_counted_by_outcome_and_logged_at_verbosity_5(caplog):
    caplog.set_level(logging.INFO - 5, "moorage")
    metrics = SchedulerMetrics(lambda: 0.0)

    async def ask(extender):
        for question in (extender.filter(POD, THREE), extender.preempt(POD, {})):
            with pytest.raises(ExtenderError):
                await question
        await extender.prioritize(POD, THREE)
        return extender.name

    async def script(connection: Connection) -> None:
        while "preempt" not in (await connection.request()).line:
            await connection.answer(200, b"[]", content_type="application/json")

    name = asked(script, ask, metrics=metrics)
    samples = metrics.extender_requests.collect().samples
    found = {(s.labels["verb"], s.labels["outcome"]): s.value for s in samples if s.name.endswith("_total")}
    assert found == {("filter", "bad_answer"): 1, ("preempt", "no_answer"): 1, ("prioritize", "success"): 1}
    assert {s.labels["extender"] for s in samples} == {name}
    assert [record.message for record in caplog.records].count("Asked extender") == 3


def test_an_extender_that_is_down_warns_five_times_a_minute_and_counts_the_rest(caplog):
    async def main() -> None:
        clock = VirtualClock()
        extender = extender_of(lambda verb, question: {}, "filter", ignorable=True, clock=clock)
        for _ in range(8):
            extender.warn(ExtenderError("down"))
        await clock.sleep(60)
        extender.warn(ExtenderError("still down"))

    run(main())
    written = [(record.message, record.moorage_values) for record in caplog.records]
    assert [values["suppressed"] for _, values in written] == [0, 0, 0, 0, 0, 3]
    assert written[-1] == (
        "Skipping extender that returned an error",
        {"extender": "http://extender", "err": "still down", "suppressed": 3},
    )
