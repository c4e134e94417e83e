"""Who decides what may be written: the port between the store and the rules of the kinds.

`LenientRules` take objects as they come and fill in only what schedulers rely on: for tests, fixtures and
simulations. Behind an API server a store gets `embedded.admission.strict.StrictRules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from moorage.api import pod_defaults, resources
from moorage.api.pod import DEFAULT_SCHEDULER_NAME
from moorage.api.resources import Resource
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, with_meta

_NO_OTHER_FIELDS = "Forbidden: pod updates may not change fields other than"
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
# Kinds whose status a client cannot set on creation, with the status they start with.
_FIRST_STATUS: dict[Resource, Raw] = {
    resources.PODS: {"phase": "Pending"},
    resources.PERSISTENT_VOLUME_CLAIMS: {"phase": "Pending"},
    resources.PERSISTENT_VOLUMES: {"phase": "Pending"},
    resources.NAMESPACES: {"phase": "Active"},
    resources.POD_DISRUPTION_BUDGETS: {},
    resources.POD_GROUPS: {},
    resources.REPLICA_SETS: {},
    resources.STATEFUL_SETS: {},
    resources.DEPLOYMENTS: {},
    resources.REPLICATION_CONTROLLERS: {},
    resources.SERVICES: {},
}


class StoreCluster(Protocol):
    """The objects that there are. The store is one."""

    def find(self, resource: Resource, name: str, namespace: str = "") -> Raw | None: ...

    def every(self, resource: Resource) -> Iterable[Raw]: ...


class WriteRules(Protocol):
    """Called by the store for each write; refusals are ApiErrors."""

    def read(self, resource: Resource, raw: Raw) -> Raw:
        """What a client sent, before any rule looks into it."""
        ...

    def created(self, resource: Resource, raw: Raw, cluster: StoreCluster, *, keep_status: bool) -> Raw:
        """A new object as it is stored. Its metadata is complete, but may lack a name."""
        ...

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: StoreCluster) -> Raw:
        """The next state of an object as it is stored; what belongs to the server is carried over already."""
        ...


class LenientRules:
    """Everything passes but what would make no sense at all."""

    def read(self, resource: Resource, raw: Raw) -> Raw:
        return raw

    def created(self, resource: Resource, raw: Raw, cluster: StoreCluster, *, keep_status: bool) -> Raw:
        if not raw["metadata"].get("name"):
            problem = "Required value: name or generateName is required"
            raise refusals.invalid(resource, "", "metadata.name", problem)
        return fill_in(resource, raw, lambda: cluster.every(resources.PRIORITY_CLASSES), keep_status=keep_status)

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: StoreCluster) -> Raw:
        if current.resource == resources.PODS and subresource != "status":
            before, after = current.raw.get("spec") or {}, raw.get("spec") or {}
            if (after.get("nodeName") or "") != (before.get("nodeName") or ""):
                problem = f"{_NO_OTHER_FIELDS} ...: spec.nodeName"
                raise refusals.invalid(current.resource, current.name, "spec", problem)
        return raw


def fill_in(resource: Resource, raw: Raw, classes: Callable[[], Iterable[Raw]], *, keep_status: bool) -> Raw:
    """The object as it is stored on creation. `classes` gives the priority classes that exist."""
    if not keep_status and resource in _FIRST_STATUS:
        raw = {**raw, "status": _FIRST_STATUS[resource]}
    if resource == resources.PODS:
        return _fill_in_pod(raw, classes())
    if resource == resources.NODES:
        return _fill_in_node(raw)
    if resource == resources.NAMESPACES:
        meta = raw["metadata"]
        name_label = {"kubernetes.io/metadata.name": meta["name"]}
        return with_meta(raw, labels={**(meta.get("labels") or {}), **name_label})
    if resource == resources.STORAGE_CLASSES:
        return {"volumeBindingMode": "Immediate", "reclaimPolicy": "Delete", **raw}
    return raw


def _fill_in_node(raw: Raw) -> Raw:
    status = raw.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        return {**raw, "status": {**status, "allocatable": status["capacity"]}}
    return raw


def _fill_in_pod(raw: Raw, classes: Iterable[Raw]) -> Raw:
    spec = dict(raw.get("spec") or {})
    spec["schedulerName"] = spec.get("schedulerName") or DEFAULT_SCHEDULER_NAME
    spec["restartPolicy"] = spec.get("restartPolicy") or "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("hostNetwork") or spec.get("resources") or any(map(_is_limited, _containers(spec))):
        spec = pod_defaults.fill_in_resources(spec)
    fill_in_priority(raw["metadata"]["name"], spec, classes)
    if spec.get("affinity"):
        spec["affinity"] = with_label_keys(spec["affinity"], raw["metadata"].get("labels") or {})
    return {**raw, "spec": spec, "status": pod_status(raw.get("status") or {}, spec)}


def _containers(spec: Raw) -> Iterable[Raw]:
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))


def _is_limited(container: Raw) -> bool:
    return bool((container.get("resources") or {}).get("limits"))


def pod_status(status: Raw, spec: Raw) -> Raw:
    status = {**status, "phase": status.get("phase") or "Pending"}
    if spec.get("schedulingGates") and not status.get("conditions"):
        status["conditions"] = [_GATED]
    return status


def fill_in_priority(pod: str, spec: Raw, classes: Iterable[Raw]) -> None:
    """From the named class, else as given, else from the class that is the global default, else 0."""
    name = spec.get("priorityClassName")
    chosen = _class_named(pod, name, classes) if name else None
    if chosen is None and spec.get("priority") is None:
        chosen = next((c for c in classes if c.get("globalDefault")), None)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    if chosen is not None:
        spec["priority"] = chosen.get("value", 0)
        spec["preemptionPolicy"] = spec.get("preemptionPolicy") or chosen.get("preemptionPolicy")
    spec["priority"] = spec.get("priority") or 0
    spec["preemptionPolicy"] = spec.get("preemptionPolicy") or "PreemptLowerPriority"


def _class_named(pod: str, name: str, classes: Iterable[Raw]) -> Raw:
    for candidate in classes:
        if candidate["metadata"]["name"] == name:
            return candidate
    if name in _SYSTEM_CLASSES:
        return {"metadata": {"name": name}, "value": _SYSTEM_CLASSES[name]}
    raise refusals.forbidden(resources.PODS, pod, f"no PriorityClass with name {name} was found")


def with_label_keys(affinity: Raw, labels: dict[str, str]) -> Raw:
    """Writes matchLabelKeys and mismatchLabelKeys into the label selectors: schedulers rely on it."""
    filled = dict(affinity)
    for kind in ("podAffinity", "podAntiAffinity"):
        if filled.get(kind):
            filled[kind] = {mode: [with_keys_of_term(t, labels) for t in terms] for mode, terms in filled[kind].items()}
    return filled


def with_keys_of_term(term: Raw, labels: dict[str, str]) -> Raw:
    if "podAffinityTerm" in term:
        return {**term, "podAffinityTerm": with_keys_of_term(term["podAffinityTerm"], labels)}
    added: list[dict[str, Any]] = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or []
        if key in labels
    ]
    if not added or term.get("labelSelector") is None:
        return term
    selector = term["labelSelector"]
    expressions = [*(selector.get("matchExpressions") or []), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}
