"""The whole client on sockets: credentials, TLS and informers against the embedded server on uvicorn."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from moorage.api.errors import Conflict, NotFound, Unauthorized
from moorage.api.resources import NAMESPACES, NODES, PODS
from moorage.app.clock import SystemClock
from moorage.client.connection import connect
from moorage.client.credentials import Credentials, Pem
from moorage.client.http_client import HttpClient
from moorage.client.informers import InformerSet
from moorage.embedded.apiserver.server import HttpServer
from moorage.framework.ports import Change, PatchType
from moorage.serving.certificates import Authority, User
from tests.embedded.apiserver.load import build


class Running:
    def __init__(self) -> None:
        self.app, self.store, self.token = build()
        self.authority = Authority.new(time.time())
        self.server = HttpServer(self.app, tls=self.authority.server_context())

    def client(self, **credentials: Any) -> HttpClient:
        made = Credentials(
            f"https://127.0.0.1:{self.server.port}",
            "the test",
            ca=Pem(data=self.authority.pem.certificate),
            **(credentials or {"token": self.token}),
        )
        return connect(made, SystemClock(), qps=5000, burst=5000)


def running(scenario: Callable[[Running], Awaitable[None]]) -> None:
    async def main() -> None:
        world = Running()
        await world.server.start()
        try:
            await scenario(world)
        finally:
            await world.server.stop()

    asyncio.run(main())


def test_a_pod_from_its_creation_to_its_end():
    async def scenario(world: Running) -> None:
        client = world.client()
        made = await client.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": SPEC})
        await client.bind("p", "default", made.uid, "n")
        bound = await client.get(PODS, "p", "default")
        assert bound.spec.node_name == "n"
        with pytest.raises(Conflict, match="already assigned"):
            await client.bind("p", "default", made.uid, "other")
        labels = {"metadata": {"labels": {"a": "b"}}}
        patched = await client.patch(PODS, "p", labels, namespace="default", patch_type=PatchType.MERGE)
        assert patched.labels == {"a": "b"}
        assert [pod.name for pod in (await client.list(PODS, label_selector="a=b")).items] == ["p"]
        with pytest.raises(Conflict):
            await client.delete(PODS, "p", namespace="default", uid="another")
        await client.delete(PODS, "p", namespace="default", uid=made.uid, grace_period=0)
        with pytest.raises(NotFound):
            await client.get(PODS, "p", "default")
        await client.close()

    running(scenario)


SPEC = {"containers": [{"name": "c", "image": "i"}]}


def test_a_client_certificate_is_enough():
    async def scenario(world: Running) -> None:
        pair = world.authority.client(User("system:kube-scheduler", ()))
        client = world.client(certificate=Pem(data=pair.certificate), key=Pem(data=pair.key))
        assert [ns.name for ns in (await client.list(NAMESPACES)).items]
        await client.close()

    running(scenario)


def test_a14_a_wrong_token_is_reported():
    async def scenario(world: Running) -> None:
        client = world.client(token="wrong")
        with pytest.raises(Unauthorized, match="check the token or client certificate"):
            await client.list(PODS)
        await client.close()

    running(scenario)


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "paged"])
def test_informers_follow_over_tls(streaming):
    async def scenario(world: Running) -> None:
        client = world.client()
        for i in range(700):
            world.store.create(NODES, {"metadata": {"name": f"n{i}"}})
        changes: list[Change] = []
        informers = InformerSet(client, changes.append, SystemClock(), Random(1), [NODES], use_streaming_list=streaming)
        following = asyncio.create_task(informers.run())
        async with asyncio.timeout(30):
            await informers.wait_synced()
            assert len(changes) == 700
            world.store.create(NODES, {"metadata": {"name": "late"}})
            while len(changes) == 700:
                await asyncio.sleep(0.01)
        assert changes[-1].new.name == "late"
        assert [status.last_error for status in informers.status()] == [""]
        await informers.stop()
        await following
        await client.close()

    running(scenario)
