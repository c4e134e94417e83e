"""The status of a definition: whether its names are free, and what it says when they are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.embedded.catalog.kinds import Served
from mooring.store.objects import Raw, timestamp


def conflict(definition: Raw, others: Iterable[Served]) -> tuple[str, str] | None:
    """Reason and message when another kind of the group has one of the names."""
    spec = definition["spec"]
    names = spec["names"]
    words, kinds = _words(names), {names["kind"], names.get("listKind") or f"{names['kind']}List"}
    for served in others:
        resource = served.resource
        if resource.group != spec["group"]:
            continue
        taken = words & {resource.plural, served.singular, *served.short_names}
        if taken:
            return "NamesConflict", f'"{min(taken)}" is already in use'
        if kinds & {resource.kind, served.list_name}:
            return "KindConflict", f'"{names["kind"]}" is already in use'
    return None


def _words(names: Raw) -> set[str]:
    return {names["plural"], names.get("singular") or names["kind"].lower(), *(names.get("shortNames") or ())}


def status_of(definition: Raw, taken: tuple[str, str] | None, wall: float) -> Raw:
    """The status as it should be; equal to the present one when nothing changed."""
    old: Raw = definition.get("status") or {}
    established = taken is None or _is_true(old, "Established")
    wanted = [
        _condition("NamesAccepted", taken is None, *(taken or ("NoConflicts", "no conflicts found"))),
        _condition(
            "Established",
            established,
            "InitialNamesAccepted" if established else "NotAccepted",
            "the initial names have been accepted" if established else "not all names are accepted",
        ),
    ]
    if "deletionTimestamp" in definition["metadata"]:
        message = "CustomResource deletion is in progress"
        wanted.append(_condition("Terminating", True, "InstanceDeletionInProgress", message))
    accepted = definition["spec"]["names"] if taken is None else old.get("acceptedNames") or _no_names()
    return {
        **old,
        "conditions": [_with_time(condition, old, wall) for condition in wanted],
        "acceptedNames": accepted,
        "storedVersions": _stored_versions(definition, old),
    }


def _no_names() -> Raw:
    return {"plural": "", "kind": ""}


def _stored_versions(definition: Raw, old: Raw) -> list[str]:
    known = list(old.get("storedVersions") or ())
    storage = [v["name"] for v in definition["spec"]["versions"] if v.get("storage")]
    return known + [name for name in storage if name not in known]


def _condition(type_: str, holds: bool, reason: str, message: str) -> Raw:
    return {"type": type_, "status": "True" if holds else "False", "reason": reason, "message": message}


def _with_time(condition: Raw, old: Raw, wall: float) -> Raw:
    before = _find(old, condition["type"])
    changed = before is None or before.get("status") != condition["status"]
    since: Any = timestamp(wall) if changed or before is None else before.get("lastTransitionTime")
    return {**condition, "lastTransitionTime": since}


def _is_true(status: Raw, type_: str) -> bool:
    return (_find(status, type_) or {}).get("status") == "True"


def _find(status: Raw, type_: str) -> Raw | None:
    return next((c for c in status.get("conditions") or () if c.get("type") == type_), None)
