"""A scheduler with its embedded cluster as a source of the pages, which show and change its objects."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import msgspec

from moorage.api import yaml_text
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.app.clock import SystemClock
from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.connection import find
from moorage.client.credentials import Credentials
from moorage.client.transport import HttpRequest
from moorage.endpoints import client
from moorage.snapshots.manifests import parse_manifest
from moorage.web.source import Json
from moorage.web.sources import transfer
from moorage.web.sources.api_objects import ApiObjects, in_namespace
from moorage.web.sources.node_columns import UsageColumns
from moorage.web.sources.server_source import ServerSource

MAX_ROWS = 200
SECONDS = 10.0
EMBEDDED = "+moorage-"
"""Part of the version of the API server of `moorage up`."""
CHANGING = ("status", "managedFields", "resourceVersion", "generation")
"""Fields that change without the user."""


def api_objects(server: Credentials) -> ApiObjects:
    return ApiObjects(lambda: AiohttpTransport(server, SystemClock()))


async def embedded_cluster(kubeconfig: str, context: str) -> tuple[Credentials, frozenset[str]] | None:
    """Return the API server of a kubeconfig and the UIDs of its objects. Returns None if it is not that of a
    `moorage up`, or does not answer."""
    server = await find(kubeconfig, context)
    objects = api_objects(server)
    try:
        version = await objects.ask(HttpRequest("GET", "/version", timeout=SECONDS))
        if EMBEDDED not in str(version.get("gitVersion")):
            return None
        return server, await transfer.uids(objects)
    except MoorageError:
        return None
    finally:
        await objects.close()


class EmbeddedSource(ServerSource):
    def __init__(
        self,
        scheduler: Credentials,
        objects: ApiObjects,
        first: Collection[str],
        *,
        usage: UsageColumns | None = None,
        read_only: bool = False,
    ) -> None:
        """`first` has the UIDs of the objects that a reset keeps."""
        super().__init__(scheduler, usage=usage, read_only=read_only)
        self._objects = objects
        self._first = frozenset(first)

    async def kinds(self) -> list[Json]:
        kinds = await self._objects.kinds()
        return [{"id": name, "kind": each.kind, "apiVersion": each.api_version} for name, each in kinds.items()]

    async def objects(self, kind: str, search: str) -> Json:
        return await self._objects.table(await self._resource(kind), search, MAX_ROWS)

    async def object_text(self, kind: str, namespace: str, name: str) -> str:
        found = await self._objects.get(await self._resource(kind), name, namespace)
        found["metadata"].pop("managedFields", None)
        return yaml_text.dump(found)

    async def export(self, form: str) -> bytes:
        if form == "simulator":
            found = await self._ask(client.CONFIGZ, dict[str, Any])
            return msgspec.json.encode(await transfer.simulator_export(self._objects, found["componentconfig"]))
        return msgspec.json.encode(await transfer.snapshot_export(self._objects, time.time()))

    async def created(self) -> list[str]:
        found = await transfer.since(self._objects, self._first)
        return [transfer.result(obj, "")["object"] for _, obj in found]

    # Changes of the cluster

    async def create(self, text: str) -> list[Json]:
        self._may_change()
        given = parse_manifest(text, "the text")
        if not given:
            raise MoorageError("The text contains no object; it needs apiVersion, kind and metadata.name.")
        return [await self._create(obj) for obj in given]

    async def _create(self, obj: Json) -> Json:
        try:
            resource = await self._objects.kind_of(obj)
            made = await self._objects.create(resource, obj)
        except MoorageError as error:
            return transfer.result(obj, str(error), failed=True)
        meta = made["metadata"]
        row = transfer.result({**made, "kind": resource.kind}, "created")
        return {**row, "kind": str(resource), "name": meta["name"], "namespace": meta.get("namespace", "")}

    async def save(self, opened: str, text: str) -> None:
        self._may_change()
        before, wanted = _one(opened), _one(text)
        resource = await self._objects.kind_of(before)
        if _identity(in_namespace(resource, wanted)) != _identity(before):
            raise MoorageError("Kind, name and namespace of an object cannot be changed; create another one instead.")
        meta = before["metadata"]
        present = await self._objects.get(resource, meta["name"], meta.get("namespace", ""))
        version = present["metadata"]["resourceVersion"]
        if _users_part(present) != _users_part(before):
            raise MoorageError(
                f"{before['kind']} {meta['name']} was changed since it was opened here (resourceVersion "
                f"{meta['resourceVersion']}, now {version}). Nothing was saved. Reload it and repeat "
                "your change."
            )
        await self._objects.replace(
            resource, {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": version}}
        )

    async def delete_object(self, opened: str) -> None:
        self._may_change()
        obj = _one(opened)
        await self._objects.delete(await self._objects.kind_of(obj), obj)

    async def bring_in(self, content: bytes, replace: bool) -> list[Json]:
        self._may_change()
        return await transfer.bring_in(self._objects, content, replace)

    async def reset(self) -> list[Json]:
        self._may_change()
        return await transfer.reset(self._objects, self._first)

    async def _resource(self, kind: str) -> Resource:
        kinds = await self._objects.kinds()
        if kind not in kinds:
            raise MoorageError(f"The cluster has no kind {kind!r}; the page Objects lists its kinds.")
        return kinds[kind]


def _one(text: str) -> Json:
    found = parse_manifest(text, "the text")
    if len(found) != 1:
        raise MoorageError(f"The text has {len(found)} objects; expected only the edited one.")
    return found[0]


def _identity(obj: Json) -> tuple[Any, ...]:
    meta = obj["metadata"]
    return obj["apiVersion"], obj["kind"], meta.get("name"), meta.get("namespace")


def _users_part(obj: Json) -> Json:
    meta = {name: value for name, value in obj["metadata"].items() if name not in CHANGING}
    return {**{name: value for name, value in obj.items() if name not in CHANGING}, "metadata": meta}
