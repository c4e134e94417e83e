"""Before the first bind of a new leader: nothing that its predecessor bound may be unknown to it.

A read with quorum tells the present version. A cache that has it, or every pod of a full list in at least the
version listed, is as new as the moment at which the lease was won.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.errors import Gone, MooringError
from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.client.informers import Informer
from mooring.framework.ports import ApiClient, Clock
from mooring.telemetry import logs

_log = logs.get(__name__)

PATIENCE = 1.0
"""Seconds in which the watch may show the present version by itself; after that all pods are listed."""
STEP = 0.05
PAGE = 500
RETRY = 1.0


async def catch_up(client: ApiClient, pods: Informer, clock: Clock) -> None:
    """Return when the mirror of the pods is at least as new as this call."""
    started = clock.now()
    while True:
        try:
            await _catch_up(client, pods, clock)
            break
        except MooringError as error:
            _log.warning("Cannot compare the cache with the API server; not scheduling yet", err=str(error))
            await clock.sleep(RETRY)
    _log.info(1, "The cache is as new as the lease", seconds=round(clock.now() - started, 3))


async def _catch_up(client: ApiClient, pods: Informer, clock: Clock) -> None:
    present = (await client.list(PODS, resource_version="", limit=1)).resource_version
    deadline = clock.now() + PATIENCE
    while not reached(pods.status().version, present):
        if clock.now() >= deadline:
            await _see_all(client, pods, clock)
            return
        await clock.sleep(STEP)


async def _see_all(client: ApiClient, pods: Informer, clock: Clock) -> None:
    """A quiet watch may not show a version for a minute; a list of everything always can."""
    listed, version = await _list_all(client)
    _log.info(2, "Comparing all pods with the cache", pods=len(listed), version=version)
    while (missing := unseen(listed, pods.objects)) and not reached(pods.status().version, version):
        _log.info(3, "Waiting for pods that the watch has not shown yet", missing=len(missing))
        listed = {pod.key: pod for pod in missing}
        await clock.sleep(STEP)


async def _list_all(client: ApiClient) -> tuple[dict[str, Pod], str]:
    found: dict[str, Pod] = {}
    page = ""
    while True:
        try:
            answer = await client.list(PODS, resource_version="", limit=PAGE, page=page)
        except Gone:
            found, page = {}, ""
            continue
        found.update({pod.key: pod for pod in answer.items if pod.is_assigned and not pod.is_terminal})
        if not answer.next_page:
            return found, answer.resource_version
        page = answer.next_page


def unseen(listed: Mapping[str, Pod], mirrored: Mapping[str, Any]) -> list[Pod]:
    """The pods of which the mirror has an older version, or none."""
    return [pod for key, pod in listed.items() if not _is_seen(pod, mirrored.get(key))]


def _is_seen(pod: Pod, known: Any) -> bool:
    if not isinstance(known, Pod):
        return False
    same = known.uid == pod.uid and known.spec.node_name == pod.spec.node_name
    return same or reached(known.resource_version, pod.resource_version)


def reached(version: str, wanted: str) -> bool:
    """Whether a version is at least another one; they are numbers, and where they are not only equality
    counts."""
    if version.isascii() and version.isdigit() and wanted.isascii() and wanted.isdigit():
        return int(version) >= int(wanted)
    return bool(wanted) and version == wanted
