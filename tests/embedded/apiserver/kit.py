"""An API server in process under virtual time, and a client that speaks plain HTTP to it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from moorage.api import resources
from moorage.client.transport import HttpRequest, Response
from moorage.embedded.apiserver.app import ApiServer, ServerLimits
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner
from moorage.embedded.builtin import built_in_catalog, strict_rules
from moorage.embedded.catalog.kinds import Catalog
from moorage.embedded.catalog.tables import table
from moorage.embedded.http import Endpoint
from moorage.sim.loop import VirtualClock, run
from moorage.store.store import Store
from tests.embedded.in_process import AsgiTransport
from tests.embedded.wire_faults import WireFaults

T = TypeVar("T")
TOKEN = "test-token"
HOST = "127.0.0.1:6443"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@dataclass
class Reply:
    """A complete answer."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class World:
    """A store, the server on it, and the client."""

    def __init__(
        self,
        *,
        catalog: Catalog | None = None,
        endpoints: Sequence[Endpoint] = (),
        limits: ServerLimits | None = None,
        durability: Any = None,
        history_limit: int = 100_000,
        **options: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.store = Store(
            self.clock.wall, random.Random(1), durability=durability, history_limit=history_limit, rules=strict_rules()
        )
        signer = TokenSigner(b"secret" * 6, self.clock.wall)
        self.guard = ApiGuard(TOKEN, signer, {HOST})
        self.app = ApiServer(
            self.store,
            catalog or built_in_catalog(),
            self.clock,
            guard=self.guard,
            signer=signer,
            endpoints=endpoints,
            printer=table,
            limits=limits,
            **options,
        )
        self.faults = WireFaults()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.transport = AsgiTransport(self.app, self.clock, headers=headers, host=HOST, faults=self.faults)
        for name in ("default", "kube-system"):
            self.store.create(resources.NAMESPACES, {"metadata": {"name": name}})

    async def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: Any
    ) -> Reply:
        """Sends JSON, or bytes as they are, and reads the whole answer."""
        async with self._send(method, path, body, headers, query) as response:
            return Reply(response.status, response.headers, await response.read(100_000_000))

    async def get(self, path: str, **query: Any) -> Any:
        """The JSON of an answer that must be a 200."""
        reply = await self.ask("GET", path, **query)
        assert reply.status == 200, reply.body
        return reply.json

    async def create(self, path: str, body: Any) -> Any:
        reply = await self.ask("POST", path, body)
        assert reply.status == 201, reply.body
        return reply.json

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Watch]:
        async with self._send("GET", path, None, None, {"watch": "true", **query}) as response:
            yield Watch(response)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: Any, headers: dict[str, str] | None, query: dict[str, str]
    ) -> AsyncIterator[Response]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        named = {"content-type": "application/json"} if content else {}
        async with self.transport.send(
            HttpRequest(method, path, query, {**named, **(headers or {})}, content)
        ) as response:
            yield response


class Watch:
    """The lines of an open watch."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._chunks = response.chunks()
        self._rest = b""

    async def next(self) -> Any:
        """The next event; None at the end of the body."""
        while b"\n" not in self._rest:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Any]:
        """All events to the end."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    async def idle(self, seconds: float = 1.0) -> bool:
        """Whether nothing comes for a while."""
        try:
            await asyncio.wait_for(self.next(), seconds)
        except TimeoutError:
            return True
        return False


def serve(scenario: Callable[[World], Awaitable[T]], *, seed: int | None = None, **options: Any) -> T:
    """Runs a scenario on a fresh server; a seed decides the order of what could happen at once."""

    async def main() -> T:
        world = World(**options)
        try:
            return await scenario(world)
        finally:
            await world.transport.close()

    return run(main(), seed=seed, timeout_virtual=100_000)


def pod(name: str = "a", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "web"}], **spec},
    }


def node(name: str = "n1") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}


def deployment(name: str = "web", replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web"}]}},
        },
    }
