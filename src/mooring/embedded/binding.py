"""The binding subresource of pods. As upstream, neither the node's existence nor its room is checked."""

from __future__ import annotations

from mooring.api import resources
from mooring.embedded import refusals
from mooring.embedded.objects import Raw, Stored
from mooring.embedded.timestamps import timestamp


def bound(current: Stored, node: str, uid: str, resource_version: str, wall: float) -> Raw:
    """The pod with its node, or the Conflict that the API server answers with."""
    _check_preconditions(current, uid, resource_version)
    _check_bindable(current)
    raw = current.raw
    status = {field: value for field, value in raw["status"].items() if field != "nominatedNodeName"}
    status["conditions"] = _with_scheduled(status.get("conditions") or [], wall)
    return {**raw, "spec": {**raw["spec"], "nodeName": node}, "status": status}


def _check_preconditions(current: Stored, uid: str, resource_version: str) -> None:
    if uid and uid != current.uid:
        raise refusals.uid_mismatch(resources.PODS, *current.key, uid, current.uid)
    if resource_version and resource_version != current.resource_version:
        raise refusals.version_mismatch(
            resources.PODS, *current.key, resource_version, current.resource_version
        )


def _check_bindable(current: Stored) -> None:
    name, spec = current.name, current.raw["spec"]
    if "deletionTimestamp" in current.raw["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise refusals.conflict(resources.PODS, name, why, on="pods/binding")


def _with_scheduled(conditions: list[Raw], wall: float) -> list[Raw]:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(wall)}
    others = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
    return [*others, scheduled]
