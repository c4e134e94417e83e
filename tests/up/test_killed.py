"""kill -9 of the API server of `moorage up` under load over HTTPS: nothing that was answered is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import CONFIG_MAPS, NODES, PODS
from moorage.app.clock import SystemClock
from moorage.client.connection import connect
from moorage.client.credentials import Credentials, Pem
from moorage.client.http_client import HttpClient
from moorage.up import pools
from moorage.up.process import Orders, ServerProcess

WRITERS = 16


class Ledger:
    """What the server has answered: name → version of the last acknowledged write; gone: deleted."""

    def __init__(self) -> None:
        self.maps: dict[str, int] = {}
        self.gone: set[str] = set()
        self.bound: dict[str, str] = {}
        self.newest = 0


async def write_until_it_breaks(client: HttpClient, ledger: Ledger, rng: random.Random, writer: str) -> None:
    """Creates, changes, binds and deletes; each answer is noted, the unanswered write is not."""
    number = 0
    try:
        while True:
            number += 1
            name = f"{writer}-{number}"
            made = await client.create(CONFIG_MAPS, config_map(name, 0))
            ledger.newest = max(ledger.newest, int(made.metadata.resource_version))
            ledger.maps[name] = 0
            patch = {"data": {"value": "1"}}
            await client.patch(CONFIG_MAPS, name, patch, namespace="default")
            ledger.maps[name] = 1
            pod = await client.create(PODS, plain_pod(name))
            await client.bind(name, "default", pod.uid, "node-0")
            ledger.bound[name] = pod.uid
            if rng.random() < 0.3:
                await client.delete(CONFIG_MAPS, name, namespace="default")
                ledger.gone.add(name)
    except MoorageError:
        return  # the server is dead


def config_map(name: str, value: int) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": str(value)}}


def plain_pod(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    containers = [{"name": "a", "image": "a"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def client_of(server: ServerProcess) -> HttpClient:
    ready = server.ready
    ca = Pem(data=ready.ca.encode())
    credentials = Credentials(server=ready.server, source="test", ca=ca, token=ready.token)
    return connect(credentials, SystemClock(), qps=1e6, burst=1_000_000)


async def check(client: HttpClient, ledger: Ledger) -> None:
    listed = await client.list(CONFIG_MAPS, namespace="default")
    found = {item.name: int(item.get("data", "value")) for item in listed.items}
    assert int(listed.resource_version) >= ledger.newest
    for name, value in ledger.maps.items():
        if name in ledger.gone:
            assert name not in found, f"{name} was deleted, and is back"
        elif name in found:
            assert found[name] >= value, f"{name} lost its change"
        else:
            # Only a delete that was under way may explain it: those are sent after the last noted write.
            assert value == 1, f"{name} was acknowledged, and is lost"
    pods = {pod.name: pod for pod in (await client.list(PODS, namespace="default")).items}
    for name, uid in ledger.bound.items():
        assert pods[name].uid == uid
        assert pods[name].spec.node_name == "node-0"
    assert [node.name for node in (await client.list(NODES)).items] == ["node-0"]


async def kill_and_restart(data: Path, rounds: int, rng: random.Random) -> int:
    # Room for every pod of the test: the kubelet stand-in would refuse the others.
    capacity = {"cpu": "1", "memory": "1Gi", "pods": "100000"}
    orders = Orders(data_dir=str(data), pools=[pools.Pool("node", 1, capacity=capacity)])  # type: ignore[arg-type]
    ledger = Ledger()
    for turn in range(rounds):
        server = await ServerProcess.start(orders)
        client = client_of(server)
        await check(client, ledger)
        names = [f"r{turn}-w{writer}" for writer in range(WRITERS)]
        writers = [asyncio.create_task(write_until_it_breaks(client, ledger, rng, name)) for name in names]
        await under_load(ledger)
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.gather(*writers)
        await server.ended()
        await server.stop()
        await client.close()
    server = await ServerProcess.start(orders)
    client = client_of(server)
    await check(client, ledger)
    await client.close()
    await server.stop()
    return len(ledger.maps) + len(ledger.bound)


async def under_load(ledger: Ledger) -> None:
    """Until every writer has been answered about once; a slow machine must not make the test easy."""
    before = len(ledger.maps)
    for _ in range(2000):
        if len(ledger.maps) >= before + WRITERS:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the server answers no writes")


def run(data: Path, rounds: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    acknowledged = asyncio.run(kill_and_restart(data, rounds, random.Random(seed)))
    print(f"{acknowledged} acknowledged writes")
    assert acknowledged > rounds


def test_nothing_acknowledged_is_lost(tmp_path):
    run(tmp_path / "data", 2)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_fifty_kills(tmp_path):
    run(tmp_path / "data", 50)
