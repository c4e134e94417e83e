"""Lists, reads, creates, changes and deletes objects of an API server, of every kind that it serves, as JSON.

The server validates what is written; its refusals are ApiErrors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from moorage.api import json_text
from moorage.api.errors import MoorageError
from moorage.api.resources import PODS, Resource, custom
from moorage.client import requests, responses
from moorage.client.responses import Answer
from moorage.client.transport import HttpRequest, Transport

Json = dict[str, Any]
PAGE = 500
ANSWER_LIMIT = 64 << 20
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""The format that kubectl shows: columns and cells."""
VERBS = frozenset({"list", "create", "update", "delete"})
MADE_BY_THE_CLUSTER = frozenset({"events", "leases", "endpoints", "endpointslices"})
"""Kinds that controllers create, not users."""
FIRST = (
    "pods",
    "nodes",
    "deployments",
    "priorityclasses",
    "namespaces",
    "storageclasses",
    "persistentvolumeclaims",
    "persistentvolumes",
)
"""Kinds that matter for scheduling are listed before the others."""


class ApiObjects:
    def __init__(self, connect: Callable[[], Transport]) -> None:
        """`connect` is called on the loop that uses the connection."""
        self._connect = connect
        self._transport: Transport | None = None

    async def ask(self, request: HttpRequest) -> Json:
        if self._transport is None:
            self._transport = self._connect()
        headers = {"Accept-Encoding": "identity", **request.headers}
        async with self._transport.send(replace(request, headers=headers)) as response:
            answer = Answer(response.status, response.headers, await response.read(ANSWER_LIMIT))
        if not answer.succeeded:
            raise responses.failure(answer, request, time.time())
        source = f"the answer to {request.method} {request.path}"
        return json_text.load(answer.body, source, Json, max_bytes=ANSWER_LIMIT)

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()

    async def kinds(self) -> dict[str, Resource]:
        """Return name → kind, for kinds that can be listed and written, in their preferred version."""
        groups = (await self._get("/apis"))["groups"]
        roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
        lists = await asyncio.gather(*map(self._get, roots))
        found = [resource for each in lists for resource in _resources(each)]
        return {str(resource): resource for resource in sorted(found, key=_place)}

    async def kind_of(self, obj: Json) -> Resource:
        """Return the kind with the apiVersion and kind of an object."""
        for resource in (await self.kinds()).values():
            if (resource.api_version, resource.kind) == (obj["apiVersion"], obj["kind"]):
                return resource
        raise MoorageError(
            f"The cluster has no kind {obj['kind']} in {obj['apiVersion']}. Correct apiVersion and kind, or "
            "create its CustomResourceDefinition first."
        )

    async def table(self, resource: Resource, search: str, most: int) -> Json:
        """Return `columns`, at most `most` `rows` with `metadata` and `cells` whose namespace/name contains
        `search`, and whether there are `more`."""
        columns: list[str] = []
        rows: list[Json] = []
        async for page in self._pages(resource, TABLE):
            columns = columns or [column["name"] for column in page["columnDefinitions"]]
            for row in page["rows"] or ():
                meta = row["object"]["metadata"]
                if search in f"{meta.get('namespace', '')}/{meta['name']}":
                    rows.append({"metadata": meta, "cells": row["cells"]})
            if len(rows) > most:
                break
        return {"columns": columns, "rows": rows[:most], "more": len(rows) > most}

    async def list(self, resource: Resource, form: str = requests.JSON) -> list[Json]:
        """Return all objects of a kind, each with apiVersion and kind."""
        return [
            requests.with_type(resource, item)
            async for page in self._pages(resource, form)
            for item in page["items"] or ()
        ]

    async def get(self, resource: Resource, name: str, namespace: str) -> Json:
        return await self.ask(requests.get(resource, name, namespace))

    async def create(self, resource: Resource, obj: Json) -> Json:
        return await self.ask(requests.create(resource, in_namespace(resource, obj)))

    async def replace(self, resource: Resource, obj: Json) -> Json:
        return await self.ask(requests.replace(resource, in_namespace(resource, obj)))

    async def delete(self, resource: Resource, obj: Json, *, at_once: bool = False) -> None:
        """Delete exactly this object, not another of its name. `at_once` deletes pods without a grace period."""
        meta = obj["metadata"]
        grace = 0 if at_once and resource == PODS else None
        namespace = meta.get("namespace", "")
        await self.ask(
            requests.delete(resource, meta["name"], namespace=namespace, uid=meta["uid"], grace_period=grace)
        )

    async def _get(self, path: str) -> Json:
        return await self.ask(HttpRequest("GET", path, timeout=requests.CALL_SECONDS))

    async def _pages(self, resource: Resource, form: str) -> AsyncIterator[Json]:
        after = ""
        while True:
            request = requests.list_objects(resource, limit=PAGE, page=after)
            page = await self.ask(replace(request, headers={"Accept": form}))
            yield page
            after = page["metadata"].get("continue", "")
            if not after:
                return


def in_namespace(resource: Resource, obj: Json) -> Json:
    """Add the namespace `default` to an object without one, as kubectl does."""
    if not resource.namespaced or obj["metadata"].get("namespace"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}


def _resources(described: Json) -> Iterator[Resource]:
    group, _, version = described["groupVersion"].rpartition("/")
    for entry in described["resources"]:
        if set(entry["verbs"]) >= VERBS and entry["name"] not in MADE_BY_THE_CLUSTER:
            yield custom(group, version, entry["name"], entry["kind"], entry["namespaced"])


def _place(resource: Resource) -> tuple[int, str]:
    return FIRST.index(resource.plural) if resource.plural in FIRST else len(FIRST), resource.kind
