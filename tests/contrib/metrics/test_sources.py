"""What the sources read out of the answers of Prometheus, load-watchers and metrics servers."""

import asyncio
import json
import math

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from moorage.api.node import NodeAddress
from moorage.contrib.metrics import load_watcher
from moorage.contrib.metrics.prometheus import Prometheus, host, joined, series
from moorage.contrib.metrics.provider import MetricProvider, get_json
from moorage.contrib.metrics.sample import deviation
from moorage.testing import make_node, make_pod
from tests.plugins.one_plugin import ask as ask_plugin


def watched(*metrics):
    listed = [{"type": kind, "operator": operator, "value": value} for kind, operator, value in metrics]
    body = {"window": {"start": 100, "end": 1000}, "data": {"NodeMetricsMap": {"n": {"metrics": listed}}}}
    return load_watcher.read(body)


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ([("CPU", "AVG", 20), ("CPU", "Latest", 60)], 20),
        ([("CPU", "Latest", 60), ("CPU", "AVG", 20)], 20),
        ([("CPU", "Latest", 60)], 60),
        ([("CPU", "", 5)], 5),
        ([("CPU", "STD", 5)], math.nan),
        ([("Memory", "AVG", 5)], math.nan),
        ([], math.nan),
    ],
    ids=["average", "in any order", "latest", "old load-watcher", "deviation alone", "memory alone", "nothing"],
)
def test_a_load_watcher_says_an_average_or_the_latest_value(metrics, expected):
    np.testing.assert_array_equal(watched(*metrics).values["cpu"], [expected])


def test_a_load_watcher_says_when_it_measured_and_how_much_values_vary():
    sample = watched(("CPU", "AVG", 20), ("CPU", "STD", 3))
    assert sample.values[deviation("cpu")].tolist() == [3]
    assert sample.values[deviation("memory")].tolist() == [0]
    assert (sample.taken.tolist(), sample.window) == ([1000], 900)


def test_a_load_watcher_without_nodes_is_no_mistake():
    assert load_watcher.read({}).names == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1:9100", "10.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("[fd00::1]:9100", "fd00::1"),
        ("fd00::1", "fd00::1"), ("node-1:9100", "node-1"), ("node-1", "node-1"), ("", ""),
    ],
)  # fmt: skip
def test_an_instance_is_named_with_or_without_a_port(text, expected):
    assert host(text) == expected


def vector(*entries):
    return {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [{"metric": {"instance": name}, "value": [time, value]} for name, time, value in entries],
        },
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"status": "error", "error": "bad query"}, "the query failed: bad query"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "must give an instant vector"),
        ("<html>", "the query failed: <html>"),
    ],
)
def test_an_answer_of_prometheus_that_is_no_vector_is_named(body, text):
    with pytest.raises(ValueError, match=text):
        list(series(body, "the query"))


def test_values_of_prometheus_that_are_not_numbers_are_omitted():
    body = vector(("a", 1, "NaN"), ("b", 2, "+Inf"), ("c", 3, "4.5"))
    assert [value for _, value in series(body, "the query")] == [(3.0, 4.5)]


def test_measures_of_prometheus_are_joined_by_node():
    sample = joined({"a": {"cpu": (10.0, 1.0), "memory": (9.0, 2.0)}, "b": {"memory": (11.0, 3.0)}})
    assert (sample.names, sample.taken.tolist()) == (["a", "b"], [9.0, 11.0])
    np.testing.assert_array_equal(sample.values["cpu"], [1.0, np.nan])


def handle():
    """Of a plugin on two nodes, of which one has an address."""
    address = NodeAddress(type="InternalIP", address="10.0.0.1")
    nodes = [make_node("a", addresses=(address,)), make_node("b")]
    return ask_plugin("PodState", make_pod("p"), nodes).plugin.handle


async def serve(answer, ask):
    """Ask a server on loopback that answers so."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        return await ask(f"http://{server.host}:{server.port}")


def test_a_request_carries_the_token_of_the_file_and_follows_no_redirect(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    seen = []

    async def answer(request):
        seen.append((request.path, request.headers.get("Authorization")))
        if request.path == "/moved":
            raise web.HTTPFound("/elsewhere")
        return web.json_response({"ok": True})

    async def ask(address):
        provider = MetricProvider(type="LoadWatcher", address=address, token_file=str(tmp_path / "token"))
        assert await get_json(provider, "/watcher") == {"ok": True}
        with pytest.raises(ValueError, match="/moved answered 302"):
            await get_json(provider, "/moved")

    asyncio.run(serve(answer, ask))
    assert seen == [("/watcher", "Bearer secret"), ("/moved", "Bearer secret")]


def test_a_file_that_is_not_there_is_named(tmp_path):
    address, missing = "https://127.0.0.1:1", f"{tmp_path}/none"
    for provider in (
        MetricProvider(address=address, token_file=missing),
        MetricProvider(address=address, ca_file=missing),
    ):
        with pytest.raises(OSError, match="none"):
            asyncio.run(get_json(provider, "/watcher"))


def test_prometheus_is_asked_a_query_per_measure_and_finds_nodes_by_name_or_address():
    asked = []

    async def answer(request):
        asked.append(request.query["query"])
        return web.json_response(vector(("10.0.0.1:9100", 5, "20"), ("b:9100", 6, "30"), ("other", 7, "1")))

    found = handle()

    async def ask(address):
        queries = {"cpu": "cpu_percent", "power": "watts"}
        return await Prometheus(MetricProvider(address=address, queries=queries)).fetch(found, ["cpu", "power", "heat"])

    sample = asyncio.run(serve(answer, ask))
    assert asked == ["cpu_percent", "watts"]
    assert sorted(zip(sample.names, sample.values["power"].tolist(), strict=True)) == [("a", 20.0), ("b", 30.0)]


def test_a_query_that_finds_no_node_says_what_to_check():
    async def answer(request):
        return web.json_response(vector(("other", 7, "1")))

    found = handle()

    async def ask(address):
        with pytest.raises(ValueError, match="no series whose label 'instance' names a node"):
            await Prometheus(MetricProvider(address=address)).fetch(found, ["cpu"])

    asyncio.run(serve(answer, ask))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": "Prometheus"}, "p.address"),
        ({"type": "Prometheus", "address": "prometheus:9090"}, "p.address"),
        ({"type": "LoadWatcher", "address": "ftp://x"}, "p.address"),
        ({"type": "SignalFx"}, "p.type"),
        ({"type": "Graphite"}, "p.type"),
        ({"address": "http://x"}, "p.address"),
        ({"token": "a", "token_file": "b"}, "p.token"),
        ({"ca_file": "a", "insecure_skip_verify": True}, "p.caFile"),
        ({"interval_seconds": 0}, "p.intervalSeconds"),
        ({"timeout_seconds": 0}, "p.timeoutSeconds"),
    ],
)
def test_a_provider_that_makes_no_sense_is_refused_with_its_field(fields, path):
    assert [problem.path for problem in MetricProvider(**fields).validate("p")] == [path]
    assert json.dumps(MetricProvider(token="secret").label) == '"KubernetesMetricsServer"'
