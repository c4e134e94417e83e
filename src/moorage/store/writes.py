"""The next state of an object that is created, updated, bound or deleted, and when the write is refused.

A new object gets its name, UID and creation time here. Spec and status are written separately: a write to the
object keeps the status, a write to its status subresource keeps everything else. A binding updates the node
and a condition of the pod; as upstream, neither the node's existence nor its free capacity is checked.

    exists ──delete, grace > 0 or finalizers──▶ terminating (deletionTimestamp) ──▶ gone
       └────delete otherwise────────────────────────────────────────────────────────┘

A terminating object goes when its grace period is over (its kubelet deletes it again with grace 0) and its
last finalizer is removed; a namespace, when the finalizers of its spec are removed too.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from moorage.api import resources
from moorage.api.errors import ApiError
from moorage.api.times import parse_time
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, key_in, timestamp, with_meta
from moorage.store.schemas import has_status
from moorage.store.table import ObjectTable

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as upstream: no vowels, so no words
_NAME_ATTEMPTS = 8
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_NEVER_KEPT = ("managedFields", "selfLink")
"""What clients may send along from elsewhere; there is no server-side apply here."""
_SYSTEM_FIELDS = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
"""Metadata that clients cannot write."""
_PROPAGATIONS = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}
"""The finalizers by which the garbage collector knows what to do with dependents first."""


class Namer:
    """Assigns names, UIDs and times, and remembers the UIDs that clients chose."""

    def __init__(self, wall: Callable[[], float], rng: random.Random) -> None:
        self._wall = wall
        self._rng = rng
        self._seen: set[str] = set()
        self._last_made = ""

    def metadata(self, table: ObjectTable, given: Raw, *, keep_times: bool) -> Raw:
        """Return the metadata of a new object. `keep_times` is for objects from another cluster."""
        unwanted = _NEVER_KEPT if keep_times else (*_NEVER_KEPT, *_DELETION)
        meta = {field: value for field, value in given.items() if field not in unwanted}
        if meta.pop("resourceVersion", None) and not keep_times:
            raise refusals.bad_request("resourceVersion should not be set on objects to be created")
        self._place(table, meta)
        if not keep_times or not meta.get("creationTimestamp"):
            meta["creationTimestamp"] = timestamp(self._wall())
        if not meta.get("uid") or meta["uid"] in self._seen:
            meta["uid"] = self._last_made = self._new_uid()
        meta["generation"] = 1
        return meta

    def keep(self, uid: str) -> None:
        """Remember the UID of a stored object. UIDs generated here are unique anyway."""
        if uid != self._last_made:
            self._seen.add(uid)

    def _place(self, table: ObjectTable, meta: Raw) -> None:
        """Set namespace and name. The write rules reject an object without a name."""
        if not table.resource.namespaced:
            meta.pop("namespace", None)
        elif not meta.get("namespace"):
            raise refusals.bad_request("an empty namespace may not be set during creation")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generate_name(table, meta)

    def _generate_name(self, table: ObjectTable, meta: Raw) -> str:
        prefix = meta["generateName"]
        for _ in range(_NAME_ATTEMPTS):
            name = f"{prefix}{''.join(self._rng.choice(_SUFFIX_LETTERS) for _ in range(5))}"
            if key_in(table.resource, meta.get("namespace", ""), name) not in table.objects:
                break
        return name

    def _new_uid(self) -> str:
        """In the form of a random (version 4) UUID."""
        digits = f"{self._rng.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) % 4]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def proposed_state(current: Stored, proposed: Raw, subresource: str) -> Raw:
    """Return the proposed object with all fields that clients cannot write taken from the current one."""
    resource = current.resource
    _check_preconditions(current, proposed["metadata"])
    if subresource == "status":
        return {**current.raw, "status": proposed.get("status") or {}}
    if (subresource, resource) == ("finalize", resources.NAMESPACES):
        finalizers = (proposed.get("spec") or {}).get("finalizers") or []
        return {**current.raw, "spec": {**(current.raw.get("spec") or {}), "finalizers": finalizers}}
    if subresource and (subresource, resource) != ("resize", resources.PODS):
        raise refusals.no_subresource(resource, subresource)
    final = {**proposed, "metadata": _metadata(current.raw["metadata"], proposed["metadata"])}
    for field in ("apiVersion", "kind"):
        final[field] = current.raw[field]
    if has_status(resource.api_version, resource.kind):
        _carry_over(final, current.raw, "status")
    return final


def _check_preconditions(current: Stored, meta: Raw) -> None:
    """A uid or resourceVersion in the written object must be the current one."""
    uid, version = meta.get("uid"), meta.get("resourceVersion")
    if uid and uid != current.uid:
        raise refusals.uid_mismatch(current.resource, *current.key, uid, current.uid)
    if version and version != current.resource_version:
        raise refusals.conflict(current.resource, current.name, refusals.CHANGED)


def _metadata(current: Raw, proposed: Raw) -> Raw:
    meta = dict(proposed)
    for field in _SYSTEM_FIELDS:
        _carry_over(meta, current, field)
    return meta


def _carry_over(target: Raw, source: Raw, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def count_generation(current: Raw, final: Raw) -> Raw:
    """The generation, if the kind has one, counts changes of anything but metadata and status."""
    if "generation" not in final["metadata"] or all(
        final.get(f) == current.get(f) for f in {**current, **final} if f not in ("metadata", "status")
    ):
        return final
    meta = final["metadata"]
    return {**final, "metadata": {**meta, "generation": meta["generation"] + 1}}


def bound(current: Stored, node: str, uid: str, resource_version: str, wall: float) -> Raw:
    """Return the bound pod, or raise the Conflict of the API server."""
    _check_target(current, uid, resource_version)
    _check_bindable(current)
    raw = current.raw
    status = {field: value for field, value in raw["status"].items() if field != "nominatedNodeName"}
    status["conditions"] = _with_scheduled(status.get("conditions") or [], wall)
    return {**raw, "spec": {**raw["spec"], "nodeName": node}, "status": status}


def _check_target(current: Stored, uid: str, resource_version: str) -> None:
    if uid and uid != current.uid:
        raise refusals.uid_mismatch(resources.PODS, *current.key, uid, current.uid)
    if resource_version and resource_version != current.resource_version:
        raise refusals.version_mismatch(resources.PODS, *current.key, resource_version, current.resource_version)


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
    """Return the object after a delete call; `is_over` says whether it remains.

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
        generation=meta["generation"] + 1 if "generation" in meta else None,
    )


def _with_propagation(raw: Raw, propagation: str) -> Raw:
    if not propagation:
        return raw
    others = [f for f in raw["metadata"].get("finalizers") or [] if f not in _PROPAGATIONS.values()]
    wanted = [_PROPAGATIONS[propagation]] if propagation in _PROPAGATIONS else []
    return with_meta(raw, finalizers=[*others, *wanted] or None)


def is_over(raw: Raw) -> bool:
    """Return whether a terminating object can be removed now."""
    meta = raw["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if raw.get("kind") == "Namespace" and raw.get("apiVersion") == "v1" and _has_content(raw):
        return False
    return not meta.get("deletionGracePeriodSeconds")


def _has_content(namespace: Raw) -> bool:
    """Return whether the spec of a namespace has finalizers, which the finalize subresource removes."""
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
