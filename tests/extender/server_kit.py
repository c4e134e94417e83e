"""Plugins served to kube-scheduler in virtual time: a followed cluster, the verbs, and the application, asked
as a server would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.app.configuration import configure
from moorage.app.scheduler import Scheduler
from moorage.client.transport import HttpRequest, Response
from moorage.framework.points import Plugin
from moorage.run.extender import ExtenderVerbs, ServedProfile, extender_app, select
from moorage.run.extender.application import ServerMetrics
from moorage.testing import Cluster, make_pod
from tests.extender.kit import FakeResponse

POD = make_pod("p", uid="uid-p")
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    {point}: {{enabled: [{enabled}]}}
"""


def served_of(*plugins: type[Plugin], point: str = "multiPoint", weights: Sequence[int] = (), **options: Any):
    """What is served of a profile that has these plugins beside the default ones."""
    numbers = [*weights, *[0] * (len(plugins) - len(weights))]
    enabled = ", ".join(
        f"{{name: {p.name}, weight: {w}}}" if w else f"{{name: {p.name}}}"
        for p, w in zip(plugins, numbers, strict=True)
    )
    text = CONFIG.format(point=point, enabled=enabled)
    return select(configure(text, plugins=plugins, discover=False), **options)


class Extended:
    """A cluster that an extender follows. Use it as a context manager."""

    def __init__(self, served: ServedProfile, *objects: Any, **options: Any) -> None:
        self.cluster = Cluster(start=False)
        self.cluster.add(*objects)
        self.cluster.scheduler = Scheduler(
            self.cluster.client,
            config=served.configuration,
            clock=self.cluster.clock,
            random=self.cluster.random,
            instance="test",
        )
        self.cluster.run(self.cluster.scheduler.follow())
        self.verbs = ExtenderVerbs(self.cluster.scheduler.engine, served.verbs)
        self.metrics = ServerMetrics()
        self.app = extender_app(self.verbs, metrics=self.metrics, **options)

    def __enter__(self) -> Extended:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    def ask(self, verb: str, question: Any, **options: Any) -> tuple[int, Any]:
        """The code and the decoded body of an answer."""
        body = question if isinstance(question, bytes) else msgspec.json.encode(question)
        code, answer, _ = self.cluster.run(exchange(self.app, f"/{verb}", body, **options))
        return code, json.loads(answer)

    def answer(self, verb: str, question: Any) -> Any:
        code, found = self.ask(verb, question)
        assert code == 200, found
        return found


async def exchange(
    app: Any,
    path: str,
    body: bytes = b"",
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    pieces: Callable[[], AsyncIterator[bytes]] | None = None,
    user: object = None,
) -> tuple[int, bytes, dict[str, str]]:
    """One request, as a server hands it to an application; `pieces` is a body that comes bit by bit."""
    given = {"content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in given.items()],
        "moorage.user": user,
    }
    arriving = pieces() if pieces is not None else _whole(body)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        piece = await anext(arriving, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    found = {key.decode(): value.decode() for key, value in start["headers"]}
    return start["status"], b"".join(message.get("body", b"") for message in rest), found


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


class AppTransport:
    """What an extender client asks, answered by an application in the process."""

    def __init__(self, app: Any) -> None:
        self._app = app

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[Response]:
        code, body, headers = await exchange(self._app, request.path, request.body)
        yield FakeResponse(code, {"Content-Type": headers["content-type"]}, body)

    async def close(self) -> None:
        return


def by_names(*names: str, pod: Pod = POD) -> dict[str, Any]:
    """ExtenderArgs of an extender with nodeCacheCapable."""
    return {"Pod": pod, "Nodes": None, "NodeNames": list(names)}
