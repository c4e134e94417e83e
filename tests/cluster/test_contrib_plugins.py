"""The plugins of contrib on the real API server, with exactly the rights that `moorage manifests` grants for
their configuration. The test answers as a load-watcher and as Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moorage.api.resources import PODS
from tests.cluster.api import eventually
from tests.cluster.conftest import clean, grant
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE, MoorageProcess
from tests.cluster.objects import Json, scheduler_config
from tests.cluster.test_two_schedulers import scraper
from tests.cluster.worlds import World
from tests.contrib import scenarios
from tests.contrib.scenarios import IDS, LOAD, MACHINES, SCENARIOS, Machine, Scenario

TRIMARAN = ("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks")
QUERIES = {"cpu": "used", "memory": "used", "temperature": "temperature", "power": "power"}
"""Measure → what Prometheus is asked here: a field of the machines."""

CALM: set[str] = set()
"""Machines that every measure is 0 of."""


class Real(World):
    """Implements `scenarios.Cluster`."""

    def create(self, *items: Json) -> None:
        for item in items:
            self.api.create(item)

    def calm(self, machine: Machine) -> None:
        CALM.add(machine.name)


class Measurements(BaseHTTPRequestHandler):
    """What the scenarios say, as a load-watcher and as Prometheus would answer."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        answer = watched() if url.path == "/watcher" else queried(parse_qs(url.query)["query"][0])
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Not into the output of the tests."""


def watched() -> Json:
    def metrics(average: float, deviation: float) -> Json:
        values = {"AVG": average, "STD": deviation}
        return {"metrics": [{"type": "CPU", "operator": name, "value": v} for name, v in values.items()]}

    nodes = {machine.name: metrics(machine.used, machine.deviation) for machine in MACHINES}
    now = int(time.time())
    return {"window": {"start": now - 900, "end": now}, "data": {"NodeMetricsMap": nodes}}


def queried(field: str) -> Json:
    found = {machine.name: 0 if machine.name in CALM else getattr(machine, field) for machine in MACHINES}
    result = [
        {"metric": {"instance": f"{name}:9100"}, "value": [time.time(), str(value)]}
        for name, value in found.items()
        if value is not None
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@contextmanager
def measurements() -> Iterator[str]:
    """The address of the server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Measurements)
    thread = threading.Thread(target=server.serve_forever, name="measurements", daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def real(shared_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """With all scenarios, and a scheduler that has fetched what is used."""
    account = shared_plane.kubeconfig("moorage", token=shared_plane.token("moorage", NAMESPACE))
    world = Real("real", shared_plane.api, tmp_path_factory.mktemp("contrib"), account)
    with measurements() as address:
        profiles = scenarios.profiles(sources(address))
        grant(shared_plane, json.dumps(scheduler_config(*profiles)))
        try:
            make_world(world)
            process, token = world.moorage(*profiles), scraper(shared_plane)
            for provider in ("LoadWatcher", "Prometheus"):
                wait_for_values(process, token, f"{provider} {address}")
            yield world
        finally:
            world.stop()
            clean(shared_plane.api)
            grant(shared_plane)


def wait_for_values(process: MoorageProcess, token: str, provider: str) -> None:
    def fetched() -> float:
        return process.metric("moorage_usage_refreshes_total", token, provider=provider, result="success")

    eventually(fetched, 30, f"{provider} has answered")


def sources(address: str) -> dict[str, Json]:
    prometheus = {"type": "Prometheus", "address": address, "queries": QUERIES, "intervalSeconds": 1}
    watched = {plugin: {"watcherAddress": address} for plugin in TRIMARAN}
    return watched | {plugin: {"metricProvider": prometheus} for plugin in ("LowCpuScheduler", "EnergyAware")}


def make_world(world: Real) -> None:
    loads = [pod for machine in MACHINES if (pod := machine.load())]
    world.create(*scenarios.NODES, scenarios.QUEUE_NODE, *loads, *scenarios.queued())
    for machine in MACHINES:
        if machine.leaving:
            world.api.delete(PODS, LOAD + machine.name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=IDS)
def test_a_pod_goes_where_the_plugin_says_and_elsewhere_without_it(real: Real, scenario: Scenario) -> None:
    scenario.check(real)


def test_qos_sort_takes_pods_of_a_better_class_first(real: Real) -> None:
    scenarios.check_queue(real)
