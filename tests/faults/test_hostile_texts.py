"""Every place that reads YAML or JSON of users or of the network refuses deeply nested values with one clear error."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from moorage.api import json_text, resources
from moorage.api.errors import MoorageError
from moorage.app.configuration import configure
from moorage.cli.root import app
from moorage.client import auth_plugins, responses, watches
from moorage.client.credentials import Credentials
from moorage.client.kubeconfig import load as load_kubeconfig
from moorage.client.transport import HttpRequest
from moorage.config import convert_policy
from moorage.contrib.metrics.provider import MetricProvider, get_json
from moorage.contrib.trimaran.peaks import read_models
from moorage.embedded.apiserver import bodies
from moorage.embedded.catalog.virtual import Reviews
from moorage.endpoints.client import EndpointsClient
from moorage.extender import server_wire, wire
from moorage.framework.ports import ExtenderError, PatchType
from moorage.sim.fields import parse_yaml
from moorage.sim.recordings import Recording
from moorage.sim.results import SUMMARY, read_result
from moorage.snapshots import files as snapshots
from moorage.snapshots.manifests import read_manifest
from moorage.web.sources import transfer
from moorage.web.sources.embedded_source import api_objects
from tests.cli.running import runner
from tests.embedded.apiserver.kit import World, serve

DEEP = {
    "60 KB of lists": "[" * 60_000,
    "3 MB of lists": "[" * 3_000_000,
    "60 KB of objects": '{"a":' * 12_000,
    "complete": "[" * 400 + "]" * 400,
}
Read = Callable[[str, Path], object]


def file(read: Callable[[Path], Any], before: str = "", after: str = "", name: str = "file.json") -> Read:
    """Read a file with the text between two others."""

    def reading(text: str, folder: Path) -> object:
        path = folder / name
        data = (before + text + after).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read(path)

    return reading


def served(ask: Callable[[str], Awaitable[Any]]) -> Read:
    """Read what a server answers."""

    def reading(text: str, folder: Path) -> object:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(text=text, content_type="application/json")

        async def scenario() -> Any:
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", answer)
            async with TestServer(application, host="127.0.0.1") as server:
                return await ask(str(server.make_url("")).rstrip("/"))

        return asyncio.run(scenario())

    return reading


def requested(method: str, path: str, content_type: str, before: str = "", after: str = "") -> Read:
    """Send the text to the embedded API server."""

    def reading(text: str, folder: Path) -> object:
        async def scenario(world: World) -> None:
            body = (before + text + after).encode()
            reply = await world.ask(method, path, body, headers={"content-type": content_type})
            if reply.status in (400, 413):
                raise MoorageError(reply.json["message"])
            raise AssertionError(f"{reply.status} {reply.body[:200]!r}")

        return serve(scenario, endpoints=[Reviews(lambda token: None)])

    return reading


def exec_plugin(text: str, folder: Path) -> object:
    (folder / "answer").write_text(text)
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\ncat {folder}/answer\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}
    return asyncio.run(auth_plugins.ExecPlugin(entry, folder, {}).run(30.0))


def id_token(text: str, folder: Path) -> object:
    claims = base64.urlsafe_b64encode(text.encode()).decode()
    return asyncio.run(auth_plugins.id_token({"id-token": f"a.{claims}.b"}, 0.0, 10.0))


def renewed_token(url: str) -> Awaitable[object]:
    known = {"idp-issuer-url": url, "client-id": "c", "refresh-token": "r"}
    return auth_plugins.id_token(known, 0.0, 10.0)


async def endpoints(url: str) -> object:
    client = EndpointsClient(Credentials(url, "test"))
    try:
        return await client.ask("/configz", dict[str, Any])
    finally:
        await client.close()


async def listed(url: str) -> object:
    objects = api_objects(Credentials(url, "test"))
    try:
        return await objects.kinds()
    finally:
        await objects.close()


def evaluated(text: str, folder: Path) -> object:
    result = runner.invoke(app, ["evaluate"], input=text + "\n")
    assert (result.exception, result.exit_code) == (None, 0)
    raise MoorageError(json.loads(result.stdout)["error"])


def recorded(path: Path) -> object:
    recording = Recording(path)
    (_, action), *_ = [timed for timed in recording.actions(0) if timed[1].__class__.__name__ == "UnusableLine"]
    return action(None)  # type: ignore[arg-type]


def page(text: str, folder: Path) -> object:
    async def scenario(world: World) -> None:
        token = base64.urlsafe_b64encode(text.encode()).decode()
        world.store.list(resources.PODS, page=token)

    return serve(scenario)


def snapshot_objects(path: Path) -> object:
    return [list(items) for _, items in snapshots.raw(path)]


PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = CONFIG + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: "
REQUEST = HttpRequest("GET", "/")
POD = '{"metadata": {"name": "p"}, "spec": '
EVENT = '{"type": "ADDED", "object": {"kind": "Pod", "spec": '
LINE = '{"time": "2026-01-01T00:00:00Z", "event": "Add", "resource": '
GOOD_LINE = LINE + '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}}\n'
READERS: dict[str, Read] = {
    "plain values": lambda text, folder: json_text.load(text, "it"),
    "body in JSON": lambda text, folder: bodies.read_object(text.encode(), "application/json", strict=True),
    "body in YAML": lambda text, folder: bodies.read_object(text.encode(), "application/yaml"),
    "create": requested("POST", PODS, "application/json", POD),
    "create in YAML": requested("POST", PODS, "application/yaml", POD),
    "JSON patch": requested("PATCH", f"{PODS}/a", PatchType.JSON),
    "merge patch": requested("PATCH", f"{PODS}/a", PatchType.MERGE),
    "strategic patch": requested("PATCH", f"{PODS}/a", PatchType.STRATEGIC),
    "binding": requested("POST", f"{PODS}/a/binding", "application/json", '{"metadata": '),
    "options of a delete": requested("DELETE", f"{PODS}/a", "application/json"),
    "review": requested("POST", REVIEWS, "application/json"),
    "page of a list": page,
    "manifest": file(read_manifest),
    "snapshot": file(snapshots.load, '{"pods": '),
    "snapshot in YAML": file(snapshots.load, "pods: "),
    "compressed snapshot": file(snapshots.load, '{"pods": ', name="file.json.gz"),
    "complete snapshot": file(snapshot_objects, '{"nodes": [], "pods": [' + POD, "}]}"),
    "custom objects": file(snapshots.custom_kinds, '{"nodes": [], "custom": {"a.v1.b": [', "]}}"),
    "about a snapshot": file(snapshots.load, '{"nodes": [], "moorage": ', "}"),
    "scenario": lambda text, folder: parse_yaml(text, "the scenario"),
    "kubeconfig": file(lambda path: asyncio.run(load_kubeconfig(str(path)))),
    "configuration": lambda text, folder: configure(text, discover=False),
    "configuration in JSON": lambda text, folder: configure('{"kind": ' + text, discover=False),
    "arguments of a plugin": lambda text, folder: configure(ARGS + text, discover=False),
    "policy": lambda text, folder: convert_policy(text),
    "import of the UI": lambda text, folder: transfer.read(text.encode()),
    "compressed import": lambda text, folder: transfer.read(gzip.compress(text.encode())),
    "complete import": lambda text, folder: transfer.read(('{"pods": [' + POD + text + "}]}").encode()),
    "case of an evaluation": evaluated,
    "recording": file(recorded, GOOD_LINE + LINE, "}\n", name="file.jsonl"),
    "result of a simulation": file(lambda path: read_result(path.parent), name=SUMMARY),
    "exec plugin": exec_plugin,
    "id-token": id_token,
    "issuer": served(renewed_token),
    "metrics": served(lambda url: get_json(MetricProvider(type="Prometheus", address=url), "/")),
    "power models": file(lambda path: read_models(str(path)), '{"n": '),
    "scheduler": served(endpoints),
    "API server of the UI": served(listed),
    "object": lambda text, folder: responses.read_object(resources.PODS, text.encode(), REQUEST),
    "list": lambda text, folder: responses.read_list(resources.PODS, text.encode(), REQUEST),
    "watch": lambda text, folder: watches.reader(resources.PODS)(text.encode()),
    "request to an extender": lambda text, folder: server_wire.node_args(text.encode()),
    "pod for an extender": lambda text, folder: server_wire.PodReader().read(msgspec.Raw(text.encode())),
    "nodes of an extender": lambda text, folder: wire.filter_result(text.encode(), ["n"], names_only=True),
    "scores of an extender": lambda text, folder: wire.host_priorities(text.encode()),
}
ERRORS = (
    MoorageError, ValueError, auth_plugins.ExecPluginError, auth_plugins.OidcError, server_wire.RequestError,
    ExtenderError,
)  # fmt: skip


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_deep_values_end_in_one_clear_error(read: Read, text: str, tmp_path: Path) -> None:
    with pytest.raises(ERRORS) as caught:
        read(text, tmp_path)
    assert 10 < len(str(caught.value)) < 1500
