"""The rules of deletion: grace periods of pods, and finalizers of everything.

    there ──delete, grace > 0 or finalizers──▶ terminating (deletionTimestamp) ──▶ gone
      └────delete otherwise────────────────────────────────────────────────────────┘

A terminating object goes when its grace is over (its kubelet deletes it again with grace 0) and its last
finalizer is taken away; a namespace, when the finalizers of its spec are taken away too.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.errors import ApiError
from moorage.api.times import parse_time
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, timestamp, with_meta

_PROPAGATIONS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
"""The finalizers by which the garbage collector knows what to do with dependents first."""


def check_preconditions(current: Stored, uid: str, resource_version: str) -> None:
    if uid and uid != current.uid:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({current.uid}). "
        raise _refused(current, why + "The object might have been deleted and then recreated")
    if resource_version and resource_version != current.resource_version:
        why = f"the ResourceVersion in the precondition ({resource_version}) does not match the "
        why += f"ResourceVersion in record ({current.resource_version}). The object might have been modified"
        raise _refused(current, why)


def _refused(current: Stored, why: str) -> ApiError:
    return refusals.conflict(current.resource, current.name, why, on=current.resource.kind)


def after_delete(current: Stored, grace_period: int | None, wall: float, propagation: str = "") -> Raw:
    """The object after a delete call; `is_over` tells whether it stays.

    `propagation` (Orphan, Foreground, Background) is noted as a finalizer, for the garbage collector.
    """
    if grace_period is not None and grace_period < 0:
        grace_period = 1  # as the API server reads negative periods
    raw = _with_propagation(current.raw, propagation)
    meta = raw["metadata"]
    if "deletionTimestamp" in meta:
        return _shortened(raw, grace_period)
    period = _grace_period(current, grace_period)
    if current.resource == resources.NAMESPACES:
        raw = {**raw, "status": {**(raw.get("status") or {}), "phase": "Terminating"}}
    return with_meta(
        raw,
        deletionTimestamp=timestamp(wall + period),
        deletionGracePeriodSeconds=period,
        generation=meta.get("generation", 0) + 1,
    )


def _with_propagation(raw: Raw, propagation: str) -> Raw:
    if not propagation:
        return raw
    others = [f for f in raw["metadata"].get("finalizers") or [] if f not in _PROPAGATIONS.values()]
    wanted = [_PROPAGATIONS[propagation]] if propagation in _PROPAGATIONS else []
    return with_meta(raw, finalizers=[*others, *wanted] or None)


def is_over(raw: Raw) -> bool:
    """Whether a terminating object has nothing left to wait for."""
    meta = raw["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if raw.get("kind") == "Namespace" and raw.get("apiVersion") == "v1" and _has_content(raw):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _has_content(namespace: Raw) -> bool:
    """Namespaces have finalizers of their own in the spec, which go through the finalize subresource."""
    return bool((namespace.get("spec") or {}).get("finalizers"))


def _grace_period(current: Stored, wanted: int | None) -> int:
    """Only pods that a kubelet may be running get time to stop."""
    if current.resource != resources.PODS:
        return 0
    spec = current.raw.get("spec") or {}
    phase = (current.raw.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    return wanted if wanted is not None else int(spec.get("terminationGracePeriodSeconds") or 0)


def _shortened(raw: Raw, wanted: int | None) -> Raw:
    """A second delete can shorten the grace period, never lengthen it."""
    meta = raw["metadata"]
    pending = meta.get("deletionGracePeriodSeconds") or 0
    if wanted is None or wanted >= pending:
        return raw
    ends = (parse_time(meta["deletionTimestamp"]) or 0.0) - pending + wanted
    return with_meta(raw, deletionTimestamp=timestamp(ends), deletionGracePeriodSeconds=wanted)
