"""Back to the objects that a cluster was started with: what came since is deleted, with what belongs to it.

Changes of older objects are not undone. It ends when everything is gone, so that nothing is left for
schedulers and controllers to see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from itertools import groupby

from moorage.api.errors import MoorageError, NotFound
from moorage.api.resources import Resource
from moorage.client import requests
from moorage.web.sources.api_objects import ApiObjects, Json
from moorage.web.sources.exporting import of_every_cluster
from moorage.web.sources.importing import AT_ONCE, FIRST, LAST, result

LOOKS, LOOK_SECONDS = 100, 0.2
"""How often it is looked whether all are gone: 20 s."""


async def uids(objects: ApiObjects) -> frozenset[str]:
    """Of everything that there is."""
    return frozenset(_uid(obj) for _, obj in await _everything(objects))


async def since(objects: ApiObjects, first: Collection[str]) -> list[tuple[Resource, Json]]:
    """What has come since there were these, and belongs to none of them; owners before what they own."""
    found = await _everything(objects)
    owners = {_uid(obj): set(_owners(obj)) for _, obj in found}

    def is_old(uid: str, seen: frozenset[str] = frozenset()) -> bool:
        if uid in first:
            return True
        return any(is_old(owner, seen | {uid}) for owner in owners.get(uid, ()) if owner not in seen)

    new = [(resource, obj) for resource, obj in found if not is_old(_uid(obj))]
    return sorted(new, key=lambda pair: _place(pair[0]))


async def reset(objects: ApiObjects, first: Collection[str]) -> list[Json]:
    """What became of each; those that remain say why."""
    rows: dict[str, Json] = {}
    for _ in range(LOOKS):
        remaining = await since(objects, first)
        if not remaining:
            break
        due = [pair for pair in remaining if rows.get(_uid(pair[1]), {"failed": True})["failed"]]
        for _, group in groupby(due, key=lambda pair: _place(pair[0])):
            limit = asyncio.Semaphore(AT_ONCE)
            pairs = list(group)
            done = await asyncio.gather(*(_delete(objects, *pair, limit) for pair in pairs))
            rows |= {_uid(obj): row for (_, obj), row in zip(pairs, done, strict=True)}
        await asyncio.sleep(LOOK_SECONDS)
    for _, obj in await since(objects, first):
        held = ", ".join(obj["metadata"].get("finalizers") or ()) or "none"
        rows[_uid(obj)] = result(obj, f"still there; its finalizers: {held}", failed=True)
    return list(rows.values())


async def _delete(objects: ApiObjects, resource: Resource, obj: Json, limit: asyncio.Semaphore) -> Json:
    try:
        async with limit:
            await objects.delete(resource, obj, at_once=True)
    except NotFound:
        pass  # gone with its owner
    except MoorageError as error:
        return result(obj, f"refused: {error}", failed=True)
    return result(obj, "deleted")


async def _everything(objects: ApiObjects) -> list[tuple[Resource, Json]]:
    kinds = (await objects.kinds()).values()
    lists = await asyncio.gather(*(objects.list(kind, requests.METADATA) for kind in kinds))
    pairs = ((kind, obj) for kind, items in zip(kinds, lists, strict=True) for obj in items)
    return [(kind, obj) for kind, obj in pairs if not of_every_cluster(obj)]


def _uid(obj: Json) -> str:
    return str(obj["metadata"]["uid"])


def _owners(obj: Json) -> Iterator[str]:
    for reference in obj["metadata"].get("ownerReferences") or ():
        yield reference["uid"]


def _place(resource: Resource) -> int:
    """Owners, pods, other kinds, then what others need."""
    if resource.kind in LAST:
        return LAST[::-1].index(resource.kind)
    return len(LAST) + (1 + FIRST[::-1].index(resource.kind) if resource.kind in FIRST else 0)
