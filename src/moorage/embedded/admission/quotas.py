"""ResourceQuotas: what an object uses, which quotas cover it, and whether one is exceeded.

As the quota admission plugin and pkg/quota/v1/evaluator of Kubernetes. Usage is counted from the objects of the
namespace, so it is exact at any time; the quota controller copies it into the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api import quantity, resources
from moorage.api.pod_defaults import nanos_of
from moorage.api.resources import Resource
from moorage.embedded.admission.pod_level import amounts_of_pod, qos_class
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.rules import StoreCluster

_ONE = 10**9
_PLAIN_COUNTS = frozenset(
    ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services")
)
_SHORT = ("cpu", "memory", "ephemeral-storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_NEEDED = frozenset((*_SHORT, *(f"{part}.{name}" for part in ("requests", "limits") for name in _SHORT)))
"""Resources that every container must name if a quota limits them."""


def usage_of(resource: Resource, raw: Raw) -> dict[str, int]:
    """Return what one object counts, in nano-units, by the names that quotas use."""
    if resource == resources.PODS and (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {_count_name(resource): _ONE}
    found = {_count_name(resource): _ONE}
    if not resource.group and resource.plural in _PLAIN_COUNTS:
        found[resource.plural] = _ONE
    if resource == resources.PODS:
        found |= _pod_usage(raw["spec"])
    elif resource == resources.SERVICES:
        found |= _service_usage(raw["spec"])
    elif resource == resources.PERSISTENT_VOLUME_CLAIMS:
        found |= _claim_usage(raw["spec"])
    return found


def _count_name(resource: Resource) -> str:
    return f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"


def _pod_usage(spec: Raw) -> dict[str, int]:
    found: dict[str, int] = {}
    for field in ("requests", "limits"):
        for name, amount in amounts_of_pod(spec, field).items():
            found[f"{field}.{name}"] = nanos_of(amount)
            if field == "requests" and (name in _SHORT or name.startswith("hugepages-")):
                found[name] = nanos_of(amount)
    return found


def _service_usage(spec: Raw) -> dict[str, int]:
    found: dict[str, int] = {}
    if spec["type"] == "LoadBalancer":
        found["services.loadbalancers"] = _ONE
    if spec["type"] in ("NodePort", "LoadBalancer"):
        found["services.nodeports"] = _ONE * sum(bool(port.get("nodePort")) for port in spec.get("ports") or ())
    return found


def _claim_usage(spec: Raw) -> dict[str, int]:
    storage = nanos_of(((spec.get("resources") or {}).get("requests") or {}).get("storage"))
    found = {"requests.storage": storage}
    if name := spec.get("storageClassName"):
        found |= {f"{name}{_OF_CLASS}requests.storage": storage, f"{name}{_OF_CLASS}persistentvolumeclaims": _ONE}
    return found


def covers(quota: Raw, resource: Resource, raw: Raw) -> bool:
    """Return whether all scopes of a quota hold for an object. Scopes are about pods."""
    spec = quota.get("spec") or {}
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not terms or (resource == resources.PODS and all(_in_scope(term, raw["spec"]) for term in terms))


def _in_scope(term: Raw, pod: Raw) -> bool:
    scope, operator = str(term.get("scopeName")), str(term.get("operator"))
    if scope in ("Terminating", "NotTerminating"):
        return (pod.get("activeDeadlineSeconds") is not None) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(pod) == "BestEffort") == (scope == "BestEffort")
    if scope == "PriorityClass":
        name, values = str(pod.get("priorityClassName") or ""), set(term.get("values") or ())
        held = {"In": name in values, "NotIn": name not in values, "Exists": bool(name), "DoesNotExist": not name}
        return held.get(operator, False)
    return scope == "CrossNamespacePodAffinity" and _reaches_other_namespaces(pod)


def _reaches_other_namespaces(pod: Raw) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (pod.get("affinity") or {}).get(kind) or {}
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        found = [*(term.get("podAffinityTerm") or {} for term in preferred)]
        found += terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in found):
            return True
    return False


def total_usage(quota: Raw, objects: Iterable[tuple[Resource, Raw]]) -> dict[str, int]:
    """Return the usage of the resources that a quota limits, by objects of its namespace."""
    used = dict.fromkeys((quota.get("spec") or {}).get("hard") or (), 0)
    for resource, raw in objects:
        if covers(quota, resource, raw):
            for name, amount in usage_of(resource, raw).items():
                if name in used:
                    used[name] += amount
    return used


def status_of(quota: Raw, objects: Iterable[tuple[Resource, Raw]]) -> Raw:
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = total_usage(quota, objects)
    return {"hard": hard, "used": {name: _shown(used[name], hard[name]) for name in hard}}


def check_quotas(resource: Resource, raw: Raw, old: Raw | None, cluster: StoreCluster) -> None:
    """Raise Forbidden if a new or changed object exceeds a quota of its namespace."""
    space = raw["metadata"].get("namespace")
    if not space:
        return
    for quota in cluster.every(resources.RESOURCE_QUOTAS):
        if quota["metadata"].get("namespace") == space and covers(quota, resource, raw):
            _check(quota, resource, raw, old, cluster)


def _check(quota: Raw, resource: Resource, raw: Raw, old: Raw | None, cluster: StoreCluster) -> None:
    hard, before = quota["spec"].get("hard") or {}, usage_of(resource, old) if old is not None else {}
    added = {name: amount - before.get(name, 0) for name, amount in usage_of(resource, raw).items() if name in hard}
    if resource == resources.PODS and old is None:
        _check_named(quota, raw, hard)
    added = {name: amount for name, amount in added.items() if amount > 0}
    if not added:
        return
    space = raw["metadata"]["namespace"]
    others = ((resource, one) for one in cluster.every(resource) if one["metadata"].get("namespace") == space)
    used = total_usage(quota, others)
    exceeded = sorted(name for name, amount in added.items() if used[name] + amount > nanos_of(hard[name]))
    if exceeded:
        parts = (("requested", added), ("used", used), ("limited", {name: nanos_of(hard[name]) for name in hard}))
        words = ", ".join(f"{word}: {_listed(amounts, exceeded, hard)}" for word, amounts in parts)
        why = f"exceeded quota: {quota['metadata']['name']}, {words}"
        raise refusals.forbidden(resource, raw["metadata"]["name"], why)


def _check_named(quota: Raw, raw: Raw, hard: Mapping[str, object]) -> None:
    """Every container must name the requests and limits that a quota limits, unless the pod as a whole does."""
    missing = []
    for name in sorted(_NEEDED & hard.keys()):
        field, _, resource = name.rpartition(".")
        field = field or "requests"
        if resource in ((raw["spec"].get("resources") or {}).get(field) or {}):
            continue
        parts = (*(raw["spec"].get("containers") or ()), *(raw["spec"].get("initContainers") or ()))
        unnamed = [part["name"] for part in parts if resource not in ((part.get("resources") or {}).get(field) or {})]
        if unnamed:
            missing.append(f"{name} for: {','.join(sorted(unnamed))}")
    if missing:
        why = f"failed quota: {quota['metadata']['name']}: must specify {'; '.join(missing)}"
        raise refusals.forbidden(resources.PODS, raw["metadata"]["name"], why)


def _listed(amounts: Mapping[str, int], names: Iterable[str], hard: Mapping[str, object]) -> str:
    return ",".join(f"{name}={_shown(amounts[name], hard[name])}" for name in names)


def _shown(nanos: int, like: object) -> str:
    return quantity.format_nanos(nanos, binary=str(like).endswith("i"))
