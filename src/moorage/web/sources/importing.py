"""Objects from a file into a cluster: a snapshot, the simulator's export, or manifests.

They are made in the order in which they need each other, pods after nodes and classes. Owners come last and
adopt what was theirs: no controller makes pods that the file brings.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from moorage import snapshots
from moorage.api import yaml_text
from moorage.api.errors import AlreadyExists, MoorageError
from moorage.api.resources import NODES, PERSISTENT_VOLUMES, PODS, Resource
from moorage.client.requests import with_type
from moorage.snapshots.manifests import parse_manifest
from moorage.web.sources.api_objects import ApiObjects, Json, in_namespace
from moorage.web.sources.exporting import CONFIGURATION, of_every_cluster

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
LAST = (
    "Pod",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "Deployment",
)
"""All other kinds come between."""
SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
) | {"ownerReferences"}
BOUND = frozenset({"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"})
"""Annotations of a claim whose volume is of another cluster; the controller binds the two again."""
AT_ONCE = 32
LOOKS, LOOK_SECONDS = 20, 0.1
"""How often a kind is looked for whose definition the file has brought."""


def result(obj: Json, says: str, failed: bool = False) -> Json:
    """What became of an object."""
    meta = obj["metadata"]
    name = meta.get("name") or meta.get("generateName")
    where = f"{meta['namespace']}/{name}" if meta.get("namespace") else name
    return {"object": f"{obj['kind']} {where}", "result": says, "failed": failed}


async def bring_in(objects: ApiObjects, content: bytes, replace: bool) -> list[Json]:
    """A result for each object; what exists is kept, or replaced."""
    brought, configured = read(content)
    rows = [result(obj, why) for obj in brought if (why := _skipped(obj))]
    if configured:
        says = "left out: the page Configuration applies one"
        rows.append({"object": "KubeSchedulerConfiguration", "result": says, "failed": False})
    kinds: dict[tuple[str, str], list[Json]] = {}
    for obj in sorted((obj for obj in brought if not _skipped(obj)), key=_place):
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
    """The objects of a file, and whether it has a scheduler's configuration too."""
    data = snapshots.unpacked(SOURCE, content) if content[:2] == snapshots.GZIP else content
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
    """Objects by kind; None: the file is something else."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = yaml_text.load_all(data, SOURCE)
        value = found[0] if len(found) == 1 else None
    return value if isinstance(value, dict) and value.keys() & snapshots.KEYS.keys() else None


def _checked(key: str, obj: Any) -> Json:
    if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict) and obj["metadata"].get("name"):
        return obj
    raise MoorageError(f"{SOURCE}, {key}: every item must be an object with metadata.name")


def _skipped(obj: Json) -> str:
    if of_every_cluster(obj):
        return "left out: every cluster has its own"
    if obj["metadata"].get("deletionTimestamp"):
        return "left out: it was being deleted"
    if obj["kind"] == "Pod" and (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return "left out: it has finished"
    return ""


def _place(obj: Json) -> int:
    kind = obj["kind"]
    if kind in LAST:
        return len(FIRST) + 1 + LAST.index(kind)
    return FIRST.index(kind) if kind in FIRST else len(FIRST)


async def _served(objects: ApiObjects, obj: Json, patient: bool) -> Resource:
    for _ in range(LOOKS if patient else 0):
        try:
            return await objects.kind_of(obj)
        except MoorageError:
            await asyncio.sleep(LOOK_SECONDS)
    return await objects.kind_of(obj)


async def _bring(
    objects: ApiObjects, resource: Resource, obj: Json, replace: bool, limit: asyncio.Semaphore
) -> Json:
    wanted = in_namespace(resource, _cleaned(resource, obj))
    async with limit:
        try:
            try:
                await objects.create(resource, wanted)
            except AlreadyExists:
                if not replace:
                    return result(wanted, "kept: there is one of this name")
                await _replace(objects, resource, wanted)
                return result(wanted, "replaced")
        except MoorageError as error:
            return result(wanted, f"refused: {error}", failed=True)
    return result(wanted, "created")


async def _replace(objects: ApiObjects, resource: Resource, wanted: Json) -> None:
    meta = wanted["metadata"]
    present = await objects.get(resource, meta["name"], meta.get("namespace", ""))
    if resource == PODS:  # whose spec cannot be changed
        await objects.delete(resource, present, at_once=True)
        await objects.create(resource, wanted)
        return
    version = present["metadata"]["resourceVersion"]
    await objects.replace(resource, {**wanted, "metadata": {**meta, "resourceVersion": version}})


def _cleaned(resource: Resource, obj: Json) -> Json:
    """Without what belongs to the cluster where it was. Nodes keep their status: it says what they have."""
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
