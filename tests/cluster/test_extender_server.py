"""A Python plugin behind the real kube-scheduler: `moorage extender` with the block and the rights that
Moorage prints for it."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import objects
from tests.cluster.api import Json
from tests.cluster.conftest import RIGHTS
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE, PATHS
from tests.cluster.processes import Daemon, free_port
from tests.cluster.worlds import World

PLUGINS = [{"name": f"tests.cluster.sample_plugins:{name}"} for name in ("Ranked", "Binder")]
CONFIG = objects.scheduler_config({"plugins": {"multiPoint": {"enabled": PLUGINS}}})
NAME = "moorage-extender"
ENV = {"PYTHONPATH": PATHS, "PYTHONUNBUFFERED": "1"}


def printed(*arguments: str) -> Any:
    command = [sys.executable, "-m", "moorage", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENV)
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(params=["names over HTTP", "nodes over HTTPS"])
def world(plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A cluster whose kube-scheduler asks the extender, which has the rights of its own manifests."""
    file = tmp_path / "scheduler.yaml"
    file.write_text(json.dumps(CONFIG))
    for obj in printed("manifests", "--extender", f"--config={file}"):
        if obj["kind"] in RIGHTS:
            plane.api.apply(obj)
    kubeconfig = plane.kubeconfig(NAME, token=plane.token(NAME, NAMESPACE))
    flags = [f"--config={file}", f"--port={free_port()}"]
    tls: Json = {}
    context: ssl.SSLContext | None = None
    if request.param == "nodes over HTTPS":
        server, client = plane.authority.server("extender"), plane.authority.client("extended")
        authority = plane.authority.file
        flags += [f"--tls-cert-file={server.cert}", f"--tls-private-key-file={server.key}"]
        flags.append(f"--client-ca-file={authority}")
        tls = {"caFile": str(authority), "certFile": str(client.cert), "keyFile": str(client.key)}
        context = ssl.create_default_context(cafile=str(authority))
    (block,) = printed("extender", *flags, "--print-config")
    (entry,) = block["extenders"]
    if tls:
        assert entry["tlsConfig"].keys() == tls.keys()
        entry |= {"tlsConfig": tls, "nodeCacheCapable": False}
    extender = Daemon(
        "extender", [sys.executable, "-m", "moorage", "extender", *flags, f"--kubeconfig={kubeconfig}"], tmp_path, ENV
    )
    extender.start()
    try:
        extender.wait_until(lambda: is_ready(entry["urlPrefix"], context), 60)
        kube = plane.start_kube_scheduler(objects.scheduler_config(**block))
        try:
            yield World("real", plane.api, tmp_path, kubeconfig)
        finally:
            kube.stop()
    finally:
        assert extender.stop() == 0
    assert "forbidden" not in extender.log.read_text().lower()


def is_ready(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_the_plugins_filter_score_bind_and_have_their_say_in_preemption(world: World, plane: ControlPlane) -> None:
    before = len(binds(plane))
    pods_go_where_the_plugin_prefers(world)
    what_the_plugin_refuses_is_in_the_condition(world)
    a_pod_preempts_only_where_the_plugin_lets_it(world)
    assert binds(plane)[before:] == [f"system:serviceaccount:{NAMESPACE}:{NAME}"] * 5


def binds(plane: ControlPlane) -> list[str]:
    """Who bound each pod."""
    return [call.user for call in plane.calls() if call.right == ("", "pods/binding", "create")]


def pods_go_where_the_plugin_prefers(world: World) -> None:
    world.nodes("plain")
    world.nodes("low", labels={"cpu": "true", "rank": "20"})
    world.nodes("high", labels={"cpu": "true", "rank": "90"})
    for number in range(3):
        world.pod(f"p{number}", scheduler="default-scheduler")
    assert {world.wait_bound(f"p{number}") for number in range(3)} == {"high"}


def what_the_plugin_refuses_is_in_the_condition(world: World) -> None:
    world.pod("picky", scheduler="default-scheduler", nodeSelector={"kubernetes.io/hostname": "plain"})
    assert "ranked: Node: plain" in world.wait_refused("picky")
    # kube-scheduler may ask before the label has come to the extender, and asks again at the next event only.
    for number in range(30):
        world.label("plain", cpu="true", events=str(number))
        time.sleep(1)
        if world.node_of("picky"):
            break
    assert world.node_of("picky") == "plain"


def a_pod_preempts_only_where_the_plugin_lets_it(world: World) -> None:
    """kube-scheduler would take the victim of lower priority, on the node that the plugin refuses."""
    api = world.api
    for name, value in (("lowest", 1), ("lower", 10), ("top", 1000)):
        api.create(objects.priority_class(name, value))
    world.nodes("refused", cpu="1", labels={"pool": "tight"})
    world.nodes("allowed", cpu="1", labels={"pool": "tight", "cpu": "true"})
    for node, priority in (("refused", "lowest"), ("allowed", "lower")):
        victim = objects.pod(f"on-{node}", cpu="900m", nodeName=node, priorityClassName=priority)
        api.create(victim)
    world.pod(
        "urgent", scheduler="default-scheduler", cpu="900m", priorityClassName="top", nodeSelector={"pool": "tight"}
    )
    assert world.wait_bound("urgent") == "allowed"
    assert world.node_of("on-refused") == "refused"
    assert world.node_of("on-allowed") == ""
