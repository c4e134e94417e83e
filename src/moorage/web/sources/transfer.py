"""Export, import and reset of the objects of an embedded cluster.

An export is a snapshot, or a file of kube-scheduler-simulator. An import reads either of them, or manifests;
it creates objects in the order of their dependencies, pods after nodes and classes. Owners come last and
adopt their pods, so that no controller creates pods that the file contains. A reset deletes the objects that
were created since the start, and the objects that they own; changes to older objects are not undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from moorage import snapshots
from moorage.api import json_text, yaml_text
from moorage.api.errors import AlreadyExists, MoorageError, NotFound
from moorage.api.resources import NODES, PERSISTENT_VOLUMES, PODS, Resource
from moorage.api.times import format_time
from moorage.client import requests
from moorage.client.requests import with_type
from moorage.snapshots.manifests import parse_manifest
from moorage.web.sources.api_objects import ApiObjects, Json, in_namespace

SIMULATOR = ("pods", "nodes", "pvs", "pvcs", "storageClasses", "priorityClasses", "namespaces")
"""The keys in files of kube-scheduler-simulator."""
CONFIGURATION = "schedulerConfig"
SOURCE = "the file"
FIRST = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "CSIDriver",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Node",
)
LAST = ("Pod", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "CronJob", "Deployment")
"""All other kinds come in between."""
SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
) | {"ownerReferences"}
BOUND = frozenset({"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"})
"""Annotations of a claim that was bound in another cluster; the controller binds it again."""
AT_ONCE = 32
KIND_TRIES, KIND_SECONDS = 20, 0.1
"""How often to look for a kind whose definition is in the file."""
RESET_TRIES, RESET_SECONDS = 100, 0.2
"""How often to check that all objects are deleted: for 20 s."""


async def snapshot_export(objects: ApiObjects, wall: float) -> Json:
    """Return all objects of users, in full."""
    found: Json = {}
    keys = {resource: key for key, resource in snapshots.KEYS.items()}
    for resource in (await objects.kinds()).values():
        items = [_plain(obj) for obj in await objects.list(resource) if not of_every_cluster(obj)]
        if resource in keys:
            found[keys[resource]] = items
        elif items:
            found.setdefault(snapshots.CUSTOM, {})[str(resource)] = items
    return {**found, snapshots.MOORAGE: snapshots.About(format_time(wall), annotations=True)}


async def simulator_export(objects: ApiObjects, configuration: Json) -> Json:
    """Return the kinds of the simulator, without apiVersion and kind, and the scheduler's configuration."""
    found: dict[str, Any] = {}
    for key in SIMULATOR:
        listed = await objects.list(snapshots.KEYS[key])
        items = [_plain(obj) for obj in listed if not of_every_cluster(obj)]
        found[key] = [{k: v for k, v in obj.items() if k not in ("apiVersion", "kind")} for obj in items]
    return {**found, CONFIGURATION: configuration}


def of_every_cluster(obj: Json) -> bool:
    """Return whether every cluster creates this object itself."""
    kind, name = obj["kind"], str(obj["metadata"].get("name", ""))
    match kind:
        case "Namespace":
            return name == "default" or name.startswith("kube-")
        case "PriorityClass":
            return name.startswith("system-")
        case _:
            return (kind, name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))


def _plain(obj: Json) -> Json:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": meta}


def result(obj: Json, says: str, failed: bool = False) -> Json:
    """Return the row that reports on an object."""
    meta = obj["metadata"]
    name = meta.get("name") or meta.get("generateName")
    where = f"{meta['namespace']}/{name}" if meta.get("namespace") else name
    return {"object": f"{obj['kind']} {where}", "result": says, "failed": failed}


async def bring_in(objects: ApiObjects, content: bytes, replace: bool) -> list[Json]:
    """Import a file. Returns a row for each object; existing objects are kept, or replaced."""
    brought, configured = read(content)
    rows = [result(obj, why) for obj in brought if (why := _skipped(obj))]
    if configured:
        says = "skipped: use the page Configuration to apply it"
        rows.append({"object": "KubeSchedulerConfiguration", "result": says, "failed": False})
    kinds: dict[tuple[str, str], list[Json]] = {}
    for obj in sorted((obj for obj in brought if not _skipped(obj)), key=_creation_order):
        kinds.setdefault((obj["apiVersion"], obj["kind"]), []).append(obj)
    for group in kinds.values():
        try:
            resource = await _served(objects, group[0], ("CustomResourceDefinition" in {k for _, k in kinds}))
        except MoorageError as error:
            rows += [result(obj, f"refused: {error}", failed=True) for obj in group]
            continue
        limit = asyncio.Semaphore(AT_ONCE)
        rows += await asyncio.gather(*(_bring(objects, resource, obj, replace, limit) for obj in group))
    return rows


def read(content: bytes) -> tuple[list[Json], bool]:
    """Return the objects of a file, and whether it also has a scheduler configuration."""
    data = snapshots.unpacked(SOURCE, content, yaml_text.MAX_BYTES, "start a cluster with `moorage up --snapshot`")
    lists = _lists(data)
    if lists is None:
        return parse_manifest(data, SOURCE), False
    found = [
        with_type(resource, _checked(key, obj))
        for key, resource in snapshots.KEYS.items()
        for obj in lists.get(key) or ()
    ]
    for key, items in (lists.get(snapshots.CUSTOM) or {}).items():
        found += [_checked(key, obj) for obj in items]
    return found, bool(lists.get(CONFIGURATION))


def _lists(data: bytes) -> dict[str, Any] | None:
    """Return objects by kind; None if the file has another format."""
    try:
        value = json_text.load(data, SOURCE)
    except json_text.JsonTooDeep:
        raise
    except json_text.JsonError:
        found = yaml_text.load_all(data, SOURCE)
        value = found[0] if len(found) == 1 else None
    return value if isinstance(value, dict) and value.keys() & snapshots.KEYS.keys() else None


def _checked(key: str, obj: Any) -> Json:
    if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict) and obj["metadata"].get("name"):
        return obj
    raise MoorageError(f"{SOURCE}, {key}: every item must be an object with metadata.name")


def _skipped(obj: Json) -> str:
    if of_every_cluster(obj):
        return "skipped: every cluster has its own"
    if obj["metadata"].get("deletionTimestamp"):
        return "skipped: it was being deleted"
    if obj["kind"] == "Pod" and (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return "skipped: it has finished"
    return ""


def _creation_order(obj: Json) -> int:
    kind = obj["kind"]
    if kind in LAST:
        return len(FIRST) + 1 + LAST.index(kind)
    return FIRST.index(kind) if kind in FIRST else len(FIRST)


async def _served(objects: ApiObjects, obj: Json, patient: bool) -> Resource:
    for _ in range(KIND_TRIES if patient else 0):
        try:
            return await objects.kind_of(obj)
        except MoorageError:
            await asyncio.sleep(KIND_SECONDS)
    return await objects.kind_of(obj)


async def _bring(objects: ApiObjects, resource: Resource, obj: Json, replace: bool, limit: asyncio.Semaphore) -> Json:
    wanted = in_namespace(resource, _cleaned(resource, obj))
    async with limit:
        try:
            try:
                await objects.create(resource, wanted)
            except AlreadyExists:
                if not replace:
                    return result(wanted, "kept: an object of this name exists")
                await _replace(objects, resource, wanted)
                return result(wanted, "replaced")
        except MoorageError as error:
            return result(wanted, f"refused: {error}", failed=True)
    return result(wanted, "created")


async def _replace(objects: ApiObjects, resource: Resource, wanted: Json) -> None:
    meta = wanted["metadata"]
    present = await objects.get(resource, meta["name"], meta.get("namespace", ""))
    if resource == PODS:  # the spec of a pod cannot be changed
        await objects.delete(resource, present, at_once=True)
        await objects.create(resource, wanted)
        return
    version = present["metadata"]["resourceVersion"]
    await objects.replace(resource, {**wanted, "metadata": {**meta, "resourceVersion": version}})


def _cleaned(resource: Resource, obj: Json) -> Json:
    """Remove what belongs to the original cluster. Nodes keep their status, which has their resources."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in SERVER_FIELDS}
    if annotations := meta.get("annotations"):
        meta["annotations"] = {key: value for key, value in annotations.items() if key not in BOUND}
    found = {**obj, "metadata": meta}
    if resource != NODES:
        found.pop("status", None)
    if resource == PERSISTENT_VOLUMES and (claim := (obj.get("spec") or {}).get("claimRef")):
        named = {key: value for key, value in claim.items() if key not in ("uid", "resourceVersion")}
        found["spec"] = {**obj["spec"], "claimRef": named}
    return found


async def uids(objects: ApiObjects) -> frozenset[str]:
    """Return the UIDs of all objects."""
    return frozenset(_uid(obj) for _, obj in await _everything(objects))


async def since(objects: ApiObjects, first: Collection[str]) -> list[tuple[Resource, Json]]:
    """Return the objects that are not among the `first` ones nor owned by them; owners come first."""
    found = await _everything(objects)
    owners = {_uid(obj): set(_owners(obj)) for _, obj in found}

    def is_old(uid: str, seen: frozenset[str] = frozenset()) -> bool:
        if uid in first:
            return True
        return any(is_old(owner, seen | {uid}) for owner in owners.get(uid, ()) if owner not in seen)

    new = [(resource, obj) for resource, obj in found if not is_old(_uid(obj))]
    return sorted(new, key=lambda pair: _deletion_order(pair[0]))


async def reset(objects: ApiObjects, first: Collection[str]) -> list[Json]:
    """Delete the created objects. Returns a row for each; rows of objects that remain say why."""
    rows: dict[str, Json] = {}
    for _ in range(RESET_TRIES):
        remaining = await since(objects, first)
        if not remaining:
            break
        due = [pair for pair in remaining if rows.get(_uid(pair[1]), {"failed": True})["failed"]]
        for _, group in groupby(due, key=lambda pair: _deletion_order(pair[0])):
            limit = asyncio.Semaphore(AT_ONCE)
            pairs = list(group)
            done = await asyncio.gather(*(_delete(objects, *pair, limit) for pair in pairs))
            rows |= {_uid(obj): row for (_, obj), row in zip(pairs, done, strict=True)}
        await asyncio.sleep(RESET_SECONDS)
    for _, obj in await since(objects, first):
        held = ", ".join(obj["metadata"].get("finalizers") or ()) or "none"
        rows[_uid(obj)] = result(obj, f"not deleted; its finalizers: {held}", failed=True)
    return list(rows.values())


async def _delete(objects: ApiObjects, resource: Resource, obj: Json, limit: asyncio.Semaphore) -> Json:
    try:
        async with limit:
            await objects.delete(resource, obj, at_once=True)
    except NotFound:
        pass  # deleted with its owner
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


def _deletion_order(resource: Resource) -> int:
    """Owners come first, then pods, other kinds, and kinds that others need."""
    if resource.kind in LAST:
        return LAST[::-1].index(resource.kind)
    return len(LAST) + (1 + FIRST[::-1].index(resource.kind) if resource.kind in FIRST else 0)
