"""Lets the cache of a new leader catch up before its first binding, so that it knows all of its predecessor's.

A read with quorum returns the current version. If its first page has all pods, the cache is compared with them.
Otherwise a second watch from the version of the cache shows the changes since then, and a bookmark of the API server
marks their end. Only if no bookmark arrives, all pods are listed again, which takes seconds in a large cluster. A
replica that saw the lease free before it listed the pods has no predecessor to catch up with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from moorage.api.core import Lease
from moorage.api.errors import Gone, MoorageError, NotFound
from moorage.api.pod import Pod
from moorage.api.resources import LEASES, PODS
from moorage.client.informers import Informer
from moorage.client.lease import is_released
from moorage.client.lists import is_older
from moorage.client.reflector import close_stream
from moorage.framework.ports import BOOKMARK, ApiClient, Clock, ObjectList
from moorage.telemetry import logs

_log = logs.get(__name__)

PROBE = 3.0
"""Seconds of the second watch. The API server sends a bookmark two seconds before its end."""
PROBE_GRACE = 2.0
"""Seconds after which a second watch that should have ended is abandoned."""
STEP = 0.05
PAGE = 500
RETRY = 1.0


async def free_version(client: ApiClient, name: str, namespace: str) -> str | None:
    """Return the version of a released lease; empty if there is no lease, None if a replica holds it or it
    cannot be read."""
    try:
        lease = await client.get(LEASES, name, namespace)
    except NotFound:
        return ""
    except MoorageError:
        return None
    return lease.resource_version if isinstance(lease, Lease) and is_released(lease.spec) else None


async def catch_up(client: ApiClient, pods: Informer, clock: Clock) -> None:
    """Return when the mirror of the pods is at least as new as this call."""
    started = clock.now()
    while True:
        try:
            await _catch_up(client, pods, clock)
            break
        except MoorageError as error:
            _log.warning("Cannot compare the cache with the API server; not scheduling yet", err=str(error))
            await clock.sleep(RETRY)
    _log.info(1, "The cache has caught up with the lease", seconds=round(clock.now() - started, 3))


async def _catch_up(client: ApiClient, pods: Informer, clock: Clock) -> None:
    while not (known := pods.status().version):
        await clock.sleep(STEP)  # the pods are being listed again
    first = await client.list(PODS, resource_version="", limit=PAGE)
    if is_older(first.resource_version, known):
        pods.relist()
        raise MoorageError(
            f"it is at version {first.resource_version}, and was at {known} before, as after a restored backup"
        )
    if not first.next_page:
        await _see_all(_assigned(first), first.resource_version, pods, clock)
        return
    newest = await _newest_change(client, pods, first.resource_version)
    if newest:
        while not reached(pods.status().version, newest):
            await clock.sleep(STEP)
        return
    listed, version = await _list_all(client, first)
    _log.info(2, "Comparing all pods with the cache", pods=len(listed), version=version)
    await _see_all(listed, version, pods, clock)


async def _newest_change(client: ApiClient, pods: Informer, present: str) -> str:
    """Return the version of the last change of a pod up to `present`; empty if the API server did not send it."""
    newest = pods.status().version
    if reached(newest, present):
        return newest
    stream = client.watch(PODS, resource_version=newest, timeout=PROBE)
    try:
        async with asyncio.timeout(PROBE + PROBE_GRACE):
            async for event in stream:
                if reached(event.resource_version, present):
                    return newest if event.type == BOOKMARK else event.resource_version
                if event.type != BOOKMARK:
                    newest = event.resource_version
    except (MoorageError, TimeoutError) as error:
        _log.info(2, "A watch did not show the changes; listing all pods", err=str(error) or "no answer")
    finally:
        await close_stream(stream)
    return ""


async def _see_all(listed: Mapping[str, Pod], version: str, pods: Informer, clock: Clock) -> None:
    while (missing := unseen(listed, pods.objects)) and not reached(pods.status().version, version):
        _log.info(3, "Waiting for pods that the watch has not shown yet", missing=len(missing))
        listed = {pod.key: pod for pod in missing}
        await clock.sleep(STEP)


async def _list_all(client: ApiClient, answer: ObjectList) -> tuple[dict[str, Pod], str]:
    """Return all assigned pods; `answer` is the first page."""
    found = _assigned(answer)
    while answer.next_page:
        try:
            answer = await client.list(PODS, resource_version="", limit=PAGE, page=answer.next_page)
        except Gone:
            answer, found = await client.list(PODS, resource_version="", limit=PAGE), {}
        found.update(_assigned(answer))
    return found, answer.resource_version


def _assigned(answer: ObjectList) -> dict[str, Pod]:
    return {pod.key: pod for pod in answer.items if pod.is_assigned and not pod.is_terminal}


def unseen(listed: Mapping[str, Pod], mirrored: Mapping[str, Any]) -> list[Pod]:
    """Return the pods that the mirror has in an older version, or not at all."""
    return [pod for key, pod in listed.items() if not _is_seen(pod, mirrored.get(key))]


def _is_seen(pod: Pod, known: Any) -> bool:
    if not isinstance(known, Pod):
        return False
    same = known.uid == pod.uid and known.spec.node_name == pod.spec.node_name
    return same or reached(known.resource_version, pod.resource_version)


def reached(version: str, wanted: str) -> bool:
    """Return whether a version is at least another one. Versions that are not numbers must be equal."""
    if version.isascii() and version.isdigit() and wanted.isascii() and wanted.isdigit():
        return int(version) >= int(wanted)
    return bool(wanted) and version == wanted
