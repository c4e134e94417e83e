"""Read a workload and what belongs to it, from an API server with the rights of the user, or from a snapshot.

Only the namespace of the workload is asked. What the user may not read is a gap that the answer names; the rest is
answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from moorage import snapshots
from moorage.api.core import Event
from moorage.api.errors import Forbidden, MoorageError, NotFound
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, PODS, Resource, Unstructured
from moorage.app.clock import SystemClock
from moorage.client.connection import connect, default_user_agent, find
from moorage.client.lists import ChunkedLister
from moorage.explain.owners import OWNERS, REPLICA_SETS, Json, OwnerObjects, not_in_snapshot, pods_of, sets_of
from moorage.framework.ports import ApiClient, Malformed

PAGE_SIZE = 500
MAX_EVENTS = 500
NO_REASONS = "A snapshot has no events, and no conditions of this owner: ask the cluster why pods are missing."


async def from_server(kind: str, name: str, namespace: str, kubeconfig: str = "", context: str = "") -> OwnerObjects:
    """Connect with the credentials that kubectl would use, and read the owner."""
    credentials = await find(kubeconfig, context)
    client = connect(credentials, SystemClock(), user_agent=default_user_agent("explain"))
    try:
        return await read_owner(client, kind, name, namespace or credentials.namespace or "default")
    finally:
        await client.close()


async def pod_from_server(name: str, namespace: str, kubeconfig: str = "", context: str = "") -> Pod:
    """Get one pod, for a user who may not read more."""
    credentials = await find(kubeconfig, context)
    client = connect(credentials, SystemClock(), user_agent=default_user_agent("explain"))
    try:
        pod: Pod = await client.get(PODS, name, namespace or credentials.namespace or "default")
        return pod
    finally:
        await client.close()


async def read_owner(client: ApiClient, kind: str, name: str, namespace: str) -> OwnerObjects:
    """Read an owner with its ReplicaSets, pods and events."""
    try:
        owner = await client.get(OWNERS[kind], name, namespace)
    except NotFound as error:
        raise MoorageError(f"{kind} {name!r} does not exist in namespace {namespace!r}") from error
    except Forbidden as error:
        raise MoorageError(
            f"You may not get {OWNERS[kind].plural} in namespace {namespace}, so nothing can be said; "
            f"ask for get on {OWNERS[kind].plural} ({error.status.message})"
        ) from error
    found = OwnerObjects(kind, owner.raw)
    if kind == "Deployment":
        so = "which of the pods belong to it is not known"
        sets: Sequence[Unstructured] = await _list(client, REPLICA_SETS, namespace, so, found.gaps) or ()
        found.sets = sets_of(owner.raw, (each.raw for each in sets))
    so = "the number of pods comes from its status, and which are pending is not known"
    pods: Sequence[Pod] | None = await _list(client, PODS, namespace, so, found.gaps)
    if pods is not None and (found.sets or kind != "Deployment" or not found.gaps):
        found.pods = pods_of(owner.raw, found.sets, pods)
    found.events = await _warnings(client, namespace, found)
    return found


async def _list(
    client: ApiClient, resource: Resource, namespace: str, so: str, gaps: list[str]
) -> Sequence[Any] | None:
    try:
        items, _ = await ChunkedLister(client, resource, PAGE_SIZE, {"namespace": namespace}).snapshot("")
    except Forbidden:
        gaps.append(may_not(resource.plural, f"in namespace {namespace}", so))
        return None
    return [item for item in items if not isinstance(item, Malformed)]


def may_not(plural: str, where: str, so: str) -> str:
    """Return the sentence about a right that the user lacks."""
    return f"You may not list {plural} {where}, so {so}; ask for get and list on {plural}."


async def _warnings(client: ApiClient, namespace: str, objects: OwnerObjects) -> list[str]:
    """Return the notes of warnings about the owner and its ReplicaSets, the newest first."""
    uids = {str(obj["metadata"].get("uid")) for obj in (objects.owner, *objects.sets)}
    try:
        events = (await client.list(EVENTS, namespace=namespace, limit=MAX_EVENTS)).items
    except MoorageError:
        so = "only conditions tell why pods are missing"
        objects.gaps.append(may_not("events", f"in namespace {namespace}", so))
        return []
    found = [
        event
        for event in events
        if isinstance(event, Event) and event.type == "Warning" and event.regarding.uid in uids and event.note
    ]
    return [event.note for event in sorted(found, key=_time, reverse=True)]


def _time(event: Event) -> str:
    return str(event.event_time or event.deprecated_last_timestamp or event.metadata.creation_timestamp or "")


def from_snapshot(kind: str, name: str, namespace: str, path: Path, pods: Iterable[Pod]) -> OwnerObjects:
    """Read an owner from a snapshot. The MoorageError for a missing one says which kinds a snapshot has."""
    listed: dict[str, list[Json]] = {
        resource.kind: [*items] for resource, items in snapshots.raw(path) if resource.kind in OWNERS
    }
    for owner in listed.get(kind, ()):
        meta = owner["metadata"]
        if meta["name"] == name and (meta.get("namespace") or "default") == namespace:
            sets = sets_of(owner, listed.get("ReplicaSet", ())) if kind == "Deployment" else []
            found = OwnerObjects(kind, owner, sets, pods_of(owner, sets, pods))
            if not any((obj.get("status") or {}).get("conditions") for obj in (owner, *sets)):
                found.gaps.append(NO_REASONS)
            return found
    raise not_in_snapshot(kind, name, namespace)
