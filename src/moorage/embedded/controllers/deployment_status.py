"""The status of a Deployment: counts, and the conditions that `kubectl rollout status` waits for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.resources import Unstructured
from moorage.api.times import format_time, parse_time
from moorage.embedded.controllers.kinds import condition, with_condition
from moorage.embedded.controllers.rollout import RolloutLimits

Raw = dict[str, Any]

NEVER = 2**31 - 1
"""A progressDeadlineSeconds of this value means that there is none."""
_COUNTS = ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")


def status_of(
    deployment: Unstructured, limits: RolloutLimits, new: Unstructured | None, old: Sequence[Unstructured], wall: float
) -> Raw:
    """The status after the sets were looked at."""
    every = [*old, *([new] if new is not None else [])]
    sums = {field: sum(_count(one, field) for one in every) for field in _COUNTS}
    status: Raw = {"observedGeneration": deployment.metadata.generation}
    counts = {
        "replicas": sums["replicas"],
        "updatedReplicas": _count(new, "replicas") if new is not None else 0,
        "readyReplicas": sums["readyReplicas"],
        "availableReplicas": sums["availableReplicas"],
        "unavailableReplicas": max(0, sums["replicas"] - sums["availableReplicas"]),
        "terminatingReplicas": sums["terminatingReplicas"],
    }
    status.update({field: value for field, value in counts.items() if value})
    before = deployment.raw.get("status") or {}
    if before.get("collisionCount"):
        status["collisionCount"] = before["collisionCount"]
    conditions = _availability(before.get("conditions"), limits, sums["availableReplicas"], wall)
    conditions = _failure(conditions, new, old, wall)
    status["conditions"] = _progress(deployment, limits, new, status, conditions, wall)
    return status


def is_complete(limits: RolloutLimits, status: Raw) -> bool:
    """Every pod is of the new template and available, and no old one is left."""
    wanted = limits.replicas
    return all(status.get(f, 0) == wanted for f in ("replicas", "updatedReplicas", "availableReplicas"))


def seconds_to_deadline(deployment: Unstructured, wall: float) -> float | None:
    """How long the rollout may go on without progress; None when nothing is to be waited for."""
    limit = _deadline(deployment)
    found = condition(deployment, "Progressing")
    if limit is None or found is None or found.get("reason") in _ENDS or found.get("status") == "Unknown":
        return None
    since = parse_time(found.get("lastUpdateTime")) or wall
    return max(0.0, since + limit - wall)


_ENDS = ("NewReplicaSetAvailable", "ProgressDeadlineExceeded")


def _deadline(deployment: Unstructured) -> float | None:
    limit = deployment.raw["spec"].get("progressDeadlineSeconds")
    limit = 600 if limit is None else int(limit)
    return None if limit >= NEVER else float(limit)


def _count(one: Unstructured, field: str) -> int:
    return int((one.raw.get("status") or {}).get(field) or 0)


def _set(conditions: list[Raw] | None, wall: float, kind: str, value: str, reason: str, message: str) -> list[Raw]:
    """Sets a condition; lastUpdateTime changes with the reason or the status, as upstream's does."""
    now = format_time(wall)
    before = next((c for c in conditions or () if c.get("type") == kind), None)
    if before is not None and (before.get("status"), before.get("reason")) == (value, reason):
        return list(conditions or ())
    new = {"type": kind, "status": value, "reason": reason, "message": message, "lastUpdateTime": now}
    return with_condition(conditions, new, now)


def _availability(conditions: list[Raw] | None, limits: RolloutLimits, available: int, wall: float) -> list[Raw]:
    if available >= limits.replicas - limits.unavailable:
        text = "Deployment has minimum availability."
        return _set(conditions, wall, "Available", "True", "MinimumReplicasAvailable", text)
    text = "Deployment does not have minimum availability."
    return _set(conditions, wall, "Available", "False", "MinimumReplicasUnavailable", text)


def _failure(conditions: list[Raw], new: Unstructured | None, old: Sequence[Unstructured], wall: float) -> list[Raw]:
    """A set that cannot make pods is the Deployment's failure too."""
    for one in [*([new] if new is not None else []), *old]:
        found = condition(one, "ReplicaFailure")
        if found is not None:
            reason, message = found.get("reason", ""), found.get("message", "")
            return _set(conditions, wall, "ReplicaFailure", str(found.get("status")), reason, message)
    return [c for c in conditions if c.get("type") != "ReplicaFailure"]


def _progress(
    deployment: Unstructured,
    limits: RolloutLimits,
    new: Unstructured | None,
    status: Raw,
    conditions: list[Raw],
    wall: float,
) -> list[Raw]:
    limit = _deadline(deployment)
    if limit is None:
        return [c for c in conditions if c.get("type") != "Progressing"]
    current = next((c for c in conditions if c.get("type") == "Progressing"), None)
    reason = current.get("reason") if current is not None else None
    named = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    before = deployment.raw.get("status") or {}
    if deployment.raw["spec"].get("paused"):
        return _set(conditions, wall, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
    if reason == "DeploymentPaused":
        text = "Deployment is resumed"
        return _set(conditions, wall, "Progressing", "Unknown", "DeploymentResumed", text)
    # A finished rollout stays finished while pods come and go, until the template changes.
    if is_complete(limits, status):
        text = f"{named} has successfully progressed."
        return _set(conditions, wall, "Progressing", "True", "NewReplicaSetAvailable", text)
    if reason == "NewReplicaSetAvailable" and _count_of(status, "updatedReplicas") == status.get("replicas", 0):
        return conditions
    if _has_progressed(before, status) or reason in ("NewReplicaSetAvailable", "DeploymentResumed"):
        text = f"{named} is progressing."
        made = _set(conditions, wall, "Progressing", "True", "ReplicaSetUpdated", text)
        return [_touched(c, wall) if c.get("type") == "Progressing" else c for c in made]
    since = parse_time(current.get("lastUpdateTime")) if current is not None else None
    if since is not None and reason not in _ENDS and wall - since >= limit:
        text = f"{named} has timed out progressing."
        return _set(conditions, wall, "Progressing", "False", "ProgressDeadlineExceeded", text)
    if current is None:
        text = f"{named} is progressing."
        return _set(conditions, wall, "Progressing", "True", "ReplicaSetUpdated", text)
    return conditions


def _count_of(status: Raw, field: str) -> int:
    return int(status.get(field) or 0)


def _touched(found: Raw, wall: float) -> Raw:
    return {**found, "lastUpdateTime": format_time(wall)}


def _has_progressed(before: Raw, after: Raw) -> bool:
    """New pods came up, became ready or available, or old ones went."""
    old_before = _count_of(before, "replicas") - _count_of(before, "updatedReplicas")
    old_after = _count_of(after, "replicas") - _count_of(after, "updatedReplicas")
    return (
        _count_of(after, "updatedReplicas") > _count_of(before, "updatedReplicas")
        or _count_of(after, "readyReplicas") > _count_of(before, "readyReplicas")
        or _count_of(after, "availableReplicas") > _count_of(before, "availableReplicas")
        or old_after < old_before
    )
