"""Applies manifests to an embedded cluster as kubectl would: created, or patched to what the file says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from mooring.api.errors import MooringError
from mooring.client.transport import Request
from mooring.embedded.apiserver.app import ApiServer
from mooring.embedded.apiserver.in_process import AsgiTransport
from mooring.embedded.catalog.kinds import Catalog, Served
from mooring.framework.ports import Clock, PatchType

_HOST = "127.0.0.1"
_PATIENCE = 2.0
"""Seconds that a kind may take to be served after its CustomResourceDefinition."""
_LIMIT = 16 << 20


class Applier:
    """Speaks to the application in process; the objects pass the same checks as anybody's."""

    def __init__(self, app: ApiServer, catalog: Catalog, clock: Clock, token: str) -> None:
        self._catalog = catalog
        self._clock = clock
        headers = {"Authorization": f"Bearer {token}"}
        self._transport = AsgiTransport(app, clock, headers=headers, host=_HOST)

    async def apply(self, objects: Sequence[dict[str, Any]], source: str) -> list[str]:
        """What became of each object; a MooringError names the first that is refused, and why."""
        return [await self._apply_one(obj, source) for obj in objects]

    async def _apply_one(self, obj: dict[str, Any], source: str) -> str:
        served = await self._served(obj, source)
        meta = obj["metadata"]
        path = _path(served, str(meta.get("namespace") or "default"))
        label = f"{_label(served)}/{meta.get('name') or meta['generateName']}"
        content = msgspec.json.encode(obj)
        status, body = await self._send("POST", path, content, "application/json")
        if status == 201:
            return f"{label} created"
        if status == 409:
            custom = served.rules is not None
            patch_type = PatchType.MERGE if custom else PatchType.STRATEGIC
            status, body = await self._send("PATCH", f"{path}/{meta['name']}", content, patch_type)
            if status == 200:
                return f"{label} configured"
        message = msgspec.json.decode(body).get("message", f"status {status}")
        raise MooringError(f"{source}: {label} was refused: {message}")

    async def _served(self, obj: dict[str, Any], source: str) -> Served:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        deadline = self._clock.now() + _PATIENCE
        while (served := self._catalog.of_kind(group, version, str(obj["kind"]))) is None:
            if self._clock.now() > deadline:
                raise MooringError(
                    f"{source}: the cluster has no kind {obj['kind']} in {obj['apiVersion']}; put its "
                    "CustomResourceDefinition first, or correct apiVersion and kind"
                )
            await asyncio.sleep(0.01)
        return served

    async def _send(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        request = Request(method, path, headers={"content-type": content_type}, body=body)
        async with self._transport.send(request) as response:
            return response.status, await response.read(_LIMIT)


def _path(served: Served, namespace: str) -> str:
    resource = served.resource
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}"


def _label(served: Served) -> str:
    """As kubectl names objects: `deployment.apps`, or `service` in the core group."""
    group = served.resource.group
    return f"{served.singular}.{group}" if group else served.singular
