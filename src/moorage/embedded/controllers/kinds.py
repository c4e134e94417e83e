"""The kinds that stand-ins read and write, and what they ask about objects of them.

All are read as plain JSON: controllers copy templates, which records do not hold. The questions are pure
functions of the object and, where time matters, of the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from moorage.api import resources
from moorage.api.resources import Resource, Unstructured
from moorage.api.times import parse_time

EVENT_KINDS = (resources.EVENTS, resources.CORE_EVENTS)
"""Never followed: they own nothing, and there are many. They go with their namespace."""
Raw = dict[str, Any]


def plain(resource: Resource) -> Resource:
    """A resource that reads its objects as plain JSON."""
    return replace(resource, type=Unstructured)


PODS = plain(resources.PODS)
NODES = plain(resources.NODES)
NAMESPACES = plain(resources.NAMESPACES)
SERVICES = plain(resources.SERVICES)
SERVICE_ACCOUNTS = plain(resources.SERVICE_ACCOUNTS)
ENDPOINTS = plain(resources.ENDPOINTS)
ENDPOINT_SLICES = plain(resources.ENDPOINT_SLICES)
REPLICATION_CONTROLLERS = plain(resources.REPLICATION_CONTROLLERS)
REPLICA_SETS = plain(resources.REPLICA_SETS)
DEPLOYMENTS = plain(resources.DEPLOYMENTS)
STATEFUL_SETS = plain(resources.STATEFUL_SETS)
DAEMON_SETS = plain(resources.DAEMON_SETS)
CONTROLLER_REVISIONS = plain(resources.CONTROLLER_REVISIONS)
JOBS = plain(resources.JOBS)
CRON_JOBS = plain(resources.CRON_JOBS)
CLAIMS = plain(resources.PERSISTENT_VOLUME_CLAIMS)
VOLUMES = plain(resources.PERSISTENT_VOLUMES)
STORAGE_CLASSES = plain(resources.STORAGE_CLASSES)
BUDGETS = plain(resources.POD_DISRUPTION_BUDGETS)
RESOURCE_QUOTAS = plain(resources.RESOURCE_QUOTAS)
LEASES = plain(resources.LEASES)
CSI_NODES = plain(resources.CSI_NODES)
PRIORITY_CLASSES = plain(resources.PRIORITY_CLASSES)
DEFINITIONS = plain(resources.CUSTOM_RESOURCE_DEFINITIONS)

FOLLOWED: tuple[Resource, ...] = tuple(plain(r) for r in resources.ALL if r not in EVENT_KINDS)
"""Every built-in kind that garbage collection and namespace deletion look at."""


def phase(pod: Unstructured) -> str:
    return str((pod.raw.get("status") or {}).get("phase") or "Pending")


def is_terminating(obj: Unstructured) -> bool:
    return obj.metadata.deletion_timestamp is not None


def is_finished(pod: Unstructured) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Unstructured) -> bool:
    """Counts as a replica."""
    return not is_finished(pod) and not is_terminating(pod)


def condition(obj: Unstructured, kind: str) -> Raw | None:
    for found in (obj.raw.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return found  # type: ignore[no-any-return]
    return None


def is_true(obj: Unstructured, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def is_ready(pod: Unstructured) -> bool:
    return is_true(pod, "Ready")


def seconds_to_available(pod: Unstructured, min_ready_seconds: float, wall: float) -> float | None:
    """0 when it has been ready long enough, None when it is not ready, else how long it still takes."""
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    since = parse_time(found.get("lastTransitionTime"))
    if since is None:
        return 0.0
    return max(0.0, since + min_ready_seconds - wall)


def next_available(pods: Iterable[Unstructured], min_ready_seconds: float, wall: float) -> float | None:
    """Seconds until the next of the ready pods will have been ready long enough; None when none is due."""
    if not min_ready_seconds:
        return None
    times = [seconds_to_available(pod, min_ready_seconds, wall) for pod in pods]
    return min((seconds for seconds in times if seconds), default=None)


def node_name(pod: Unstructured) -> str:
    return str((pod.raw.get("spec") or {}).get("nodeName") or "")


def restarts(pod: Unstructured) -> int:
    """Of all containers together."""
    status = pod.raw.get("status") or {}
    return sum(int(s.get("restartCount") or 0) for s in status.get("containerStatuses") or ())


def with_condition(conditions: list[Raw] | None, new: Raw, now: str) -> list[Raw]:
    """The conditions with one set. Its transition time is kept unless its status changes."""
    kept, before = [], None
    for found in conditions or ():
        if found.get("type") == new["type"]:
            before = found
        else:
            kept.append(found)
    same = before is not None and before.get("status") == new["status"]
    since = before.get("lastTransitionTime") if same and before is not None else None
    made = {**new, "lastTransitionTime": since or now}
    if before is None:
        return [*kept, made]
    return [made if found is before else found for found in conditions or ()]
