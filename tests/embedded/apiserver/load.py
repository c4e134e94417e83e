"""Load on the API server over HTTP and TLS: the server in a process of its own, the generator in another.

    python -m tests.embedded.apiserver.load [--nodes N] [--pods N] [--connections N] [--watches N] [--plain]
                                          [--data-dir DIR]

prints what it measures; with a data directory the store is durable, as with `moorage up --data-dir`.
tests/cluster puts the same load on a real API server. `serving()` and `Load` are also used by the slow tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from moorage.api import resources
from moorage.embedded.apiserver.app import ApiServer, ServerLimits
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner
from moorage.embedded.apiserver.server import HttpServer, new_token, offload
from moorage.embedded.builtin import built_in_catalog, strict_rules
from moorage.embedded.catalog.tables import table
from moorage.embedded.durable.opening import open_data_dir
from moorage.framework.ports import Timer
from moorage.serving.certificates import Authority
from moorage.store.store import Store

PODS = "/api/v1/namespaces/default/pods"


class LoopClock:
    """The Clock port over the running loop and the machine's time."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call, *args)


@dataclass(frozen=True)
class Reached:
    """How a running server is reached."""

    url: str
    token: str
    authority: str
    pid: int

    def cpu_seconds(self) -> float:
        """What the server's process has used of a processor; counts the same on a busy machine."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def tls(self) -> ssl.SSLContext | bool:
        return ssl.create_default_context(cadata=self.authority) if self.authority else True


def build(limits: ServerLimits | None = None, store: Store | None = None) -> tuple[ApiServer, Store, str]:
    """A server on a store, a new and empty one unless given, as a process serves it, and its token."""
    clock = LoopClock()
    if store is None:
        store = Store(clock.wall, random.Random(1), rules=strict_rules())
    for name in ("default", "kube-system"):
        store.create(resources.NAMESPACES, {"metadata": {"name": name}})
    signer, token = TokenSigner(b"secret" * 6, clock.wall), new_token()
    app = ApiServer(
        store,
        built_in_catalog(),
        clock,
        guard=ApiGuard(token, signer),
        signer=signer,
        printer=table,
        offload=offload,
        limits=limits,
    )
    return app, store, token


async def serve_until_eof(plain: bool, limits: ServerLimits, data_dir: str) -> None:
    """Serves until standard input ends; says first how it is reached."""
    kept = open_data_dir(data_dir, time.time, rules=strict_rules()) if data_dir else None
    app, _, token = build(limits, kept.store if kept is not None else None)
    authority = Authority.new(time.time())
    server = HttpServer(app, tls=None if plain else authority.server_context())
    await server.start()
    certificate = "" if plain else authority.pem.certificate.decode()
    print(json.dumps([server.url, token, certificate, os.getpid()]), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()
    if kept is not None:
        kept.close()


@asynccontextmanager
async def serving(*options: str) -> AsyncIterator[Reached]:
    """A server in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.embedded.apiserver.load",
        "--serve",
        *options,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Reached(*json.loads(await process.stdout.readline()))
    finally:
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 20)
        if process.returncode is None:
            process.kill()
        await process.wait()


class Load:
    """A client that keeps some connections busy."""

    def __init__(self, reached: Reached, connections: int) -> None:
        self.url = reached.url
        self.connections = connections
        headers = {"Authorization": f"Bearer {reached.token}", "Content-Type": "application/json"}
        connector = aiohttp.TCPConnector(limit=0, ssl=reached.tls)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)

    async def __aenter__(self) -> Load:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await asyncio.sleep(0.25)  # TLS connections take a moment to close

    async def send(self, path: str, body: bytes, status: int = 201) -> None:
        async with self.session.post(self.url + path, data=body) as response:
            if response.status != status:
                raise AssertionError(f"POST {path}: {response.status} {await response.text()}")
            await response.read()

    async def send_all(self, requests: Iterable[tuple[str, bytes]]) -> float:
        """Sends them over all connections; gives the rate per second."""
        iterator = iter(requests)
        done = 0

        async def work() -> None:
            nonlocal done
            for path, body in iterator:
                await self.send(path, body)
                done += 1

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(self.connections)))
        return done / (time.perf_counter() - start)

    async def watch(self, path: str, seen: Callable[[bytes], bool]) -> None:
        """Hands every line of a watch to `seen` until that is satisfied."""
        url = f"{self.url}{path}?watch=true&resourceVersion=0&allowWatchBookmarks=true"
        async with self.session.get(url) as response:
            assert response.status == 200
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if seen(line):
                        return


class Counter:
    """Counts the events of a watch."""

    def __init__(self, wanted: int) -> None:
        self.count = 0
        self._wanted = wanted

    def __call__(self, line: bytes) -> bool:
        self.count += 1
        return self.count >= self._wanted


def node_requests(count: int) -> Iterable[tuple[str, bytes]]:
    for number in range(count):
        name = f"node-{number:05}"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": f"zone-{number % 3}",
        }
        capacity = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "500Gi"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
        body = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "status": status}
        yield "/api/v1/nodes", json.dumps(body).encode()


def pod_requests(count: int) -> Iterable[tuple[str, bytes]]:
    for number in range(count):
        name, app = f"pod-{number:06}", f"app-{number % 50}"
        asked = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
        container = {"name": "main", "image": f"registry.example/{app}:1", "resources": asked}
        body = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": app, "tier": "web"}},
            "spec": {"containers": [container]},
        }
        yield PODS, json.dumps(body).encode()


def binding_requests(count: int, nodes: int) -> Iterable[tuple[str, bytes]]:
    for number in range(count):
        name = f"pod-{number:06}"
        target = {"kind": "Node", "name": f"node-{number % max(nodes, 1):05}"}
        body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": name}, "target": target}
        yield f"{PODS}/{name}/binding", json.dumps(body).encode()


@dataclass(frozen=True)
class Measured:
    """Rates per second, and what the server used of a processor for all pods, and for all bindings.

    `load_seconds` is for nodes and pods together.
    """

    nodes: float
    creations: float
    bindings: float
    load_seconds: float
    creation_cpu: float
    binding_cpu: float

    def report(self, pods: int) -> str:
        return (
            f"nodes {self.nodes:.0f}/s, pods {self.creations:.0f}/s, bindings {self.bindings:.0f}/s; "
            f"loaded in {self.load_seconds:.1f} s; of a processor the server used "
            f"{self.creation_cpu / pods * 1e6:.0f} µs per pod and "
            f"{self.binding_cpu / pods * 1e6:.0f} µs per binding"
        )


async def measure(reached: Reached, nodes: int, pods: int, connections: int, watches: int) -> Measured:
    """Loads nodes and pods, then binds all pods, with watches open all the time."""
    counters = [Counter(2 * pods) for _ in range(watches)]
    async with Load(reached, connections) as load:
        tasks = [asyncio.create_task(load.watch("/api/v1/pods", counter)) for counter in counters]
        start = time.perf_counter()
        node_rate = await load.send_all(node_requests(nodes))
        cpu = [reached.cpu_seconds()]
        creations = await load.send_all(pod_requests(pods))
        load_seconds = time.perf_counter() - start
        cpu.append(reached.cpu_seconds())
        bindings = await load.send_all(binding_requests(pods, nodes))
        cpu.append(reached.cpu_seconds())
        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        assert [counter.count for counter in counters] == [2 * pods] * watches
        return Measured(node_rate, creations, bindings, load_seconds, cpu[1] - cpu[0], cpu[2] - cpu[1])


async def main(arguments: argparse.Namespace) -> None:
    options = [*(["--plain"] if arguments.plain else []), "--data-dir", arguments.data_dir]
    async with serving(*options) as reached:
        found = await measure(reached, arguments.nodes, arguments.pods, arguments.connections, arguments.watches)
    print(found.report(arguments.pods))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--plain", action="store_true", help="without TLS")
    parser.add_argument("--data-dir", default="", help="a durable store in this directory, which must be empty")
    parser.add_argument("--watch-buffer", type=int, default=ServerLimits().watch_buffer)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--watches", type=int, default=3)
    return parser.parse_args(arguments)


def run(awaitable: Awaitable[None]) -> None:
    async def wrapped() -> None:
        await awaitable

    uvloop.run(wrapped())


if __name__ == "__main__":
    given = parse()
    if given.serve:
        run(serve_until_eof(given.plain, ServerLimits(watch_buffer=given.watch_buffer), given.data_dir))
    else:
        run(main(given))
