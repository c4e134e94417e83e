"""LimitRanges: default requests and limits of containers, and bounds of containers, pods and claims.

As plugin/pkg/admission/limitranger of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.api import resources
from moorage.api.pod_defaults import nanos_of
from moorage.api.resources import Resource
from moorage.embedded.admission.pod_level import amounts_of_pod
from moorage.store import refusals
from moorage.store.objects import Raw, with_meta
from moorage.store.rules import StoreCluster

_ANNOTATION = "kubernetes.io/limit-ranger"
_LISTS = (("containers", "container"), ("initContainers", "init container"))
_CLAIM = "PersistentVolumeClaim"


def with_default_amounts(resource: Resource, raw: Raw, cluster: StoreCluster) -> Raw:
    """Return a new pod with the default requests and limits of its namespace. Other objects stay as they are."""
    if resource != resources.PODS:
        return raw
    limits = [limit for limit in _limits(raw, cluster) if limit.get("type") == "Container"]
    if not limits:
        return raw
    defaults = {
        "requests": {name: value for limit in limits for name, value in (limit.get("defaultRequest") or {}).items()},
        "limits": {name: value for limit in limits for name, value in (limit.get("default") or {}).items()},
    }
    spec, notes = dict(raw["spec"]), []
    for field, words in _LISTS:
        if spec.get(field):
            filled = [_fill_in(container, defaults, words) for container in spec[field]]
            spec[field] = [container for container, _ in filled]
            notes += [note for _, found in filled for note in found]
    if not notes:
        return raw
    annotations = {**(raw["metadata"].get("annotations") or {})}
    annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)
    return with_meta({**raw, "spec": spec}, annotations=annotations)


def _fill_in(container: Raw, defaults: Mapping[str, Raw], words: str) -> tuple[Raw, list[str]]:
    amounts, notes = dict(container.get("resources") or {}), []
    for field, values in defaults.items():
        missing = {name: value for name, value in values.items() if name not in (amounts.get(field) or {})}
        if missing:
            amounts[field] = {**(amounts.get(field) or {}), **missing}
            notes.append(f"{', '.join(sorted(missing))} {field[:-1]} for {words} {container.get('name')}")
    return {**container, "resources": amounts}, notes


def check_bounds(resource: Resource, raw: Raw, cluster: StoreCluster) -> None:
    """Raise Forbidden if a pod or a claim is outside of the bounds of its namespace."""
    if resource == resources.PODS:
        problems = list(_pod_problems(raw["spec"], _limits(raw, cluster)))
    elif resource == resources.PERSISTENT_VOLUME_CLAIMS:
        requests = (raw["spec"].get("resources") or {}).get("requests") or {}
        claims = (limit for limit in _limits(raw, cluster) if limit.get("type") == _CLAIM)
        problems = [problem for limit in claims for problem in _claim_problems(limit, requests)]
    else:
        return
    if problems:
        why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise refusals.forbidden(resource, raw["metadata"]["name"], why)


def _limits(raw: Raw, cluster: StoreCluster) -> list[Raw]:
    """Return the limits of the object's namespace, in the order of their LimitRanges."""
    space = raw["metadata"].get("namespace")
    found = [one for one in cluster.every(resources.LIMIT_RANGES) if one["metadata"].get("namespace") == space]
    found.sort(key=lambda one: str(one["metadata"]["name"]))
    return [limit for one in found for limit in (one.get("spec") or {}).get("limits") or ()]


def _pod_problems(spec: Raw, limits: Iterable[Raw]) -> Iterator[str]:
    for limit in limits:
        if limit.get("type") == "Container":
            for field, _ in _LISTS:
                for container in spec.get(field) or ():
                    amounts = container.get("resources") or {}
                    yield from _problems(limit, amounts.get("requests") or {}, amounts.get("limits") or {})
        elif limit.get("type") == "Pod":
            yield from _problems(limit, amounts_of_pod(spec, "requests"), amounts_of_pod(spec, "limits"))


def _problems(limit: Raw, requests: Raw, limits: Raw) -> Iterator[str]:
    kind = limit["type"]
    for name, bound in (limit.get("min") or {}).items():
        words = f"minimum {name} usage per {kind} is {bound}"
        if name not in requests:
            yield f"{words}.  No request is specified"
        elif nanos_of(requests[name]) < nanos_of(bound):
            yield f"{words}, but request is {requests[name]}"
        elif name in limits and nanos_of(limits[name]) < nanos_of(bound):
            yield f"{words}, but limit is {limits[name]}"
    for name, bound in (limit.get("max") or {}).items():
        words = f"maximum {name} usage per {kind} is {bound}"
        if name not in limits:
            yield f"{words}.  No limit is specified"
        elif nanos_of(limits[name]) > nanos_of(bound):
            yield f"{words}, but limit is {limits[name]}"
        elif name in requests and nanos_of(requests[name]) > nanos_of(bound):
            yield f"{words}, but request is {requests[name]}"
    for name, bound in (limit.get("maxLimitRequestRatio") or {}).items():
        yield from _ratio_problems(name, kind, bound, nanos_of(requests.get(name)), nanos_of(limits.get(name)))


def _ratio_problems(name: str, kind: str, bound: Any, request: int, limit: int) -> Iterator[str]:
    words = f"{name} max limit to request ratio per {kind} is {bound}"
    if not request:
        yield f"{words}, but no request is specified or request is 0"
    elif not limit:
        yield f"{words}, but no limit is specified or limit is 0"
    elif limit * 10**9 > nanos_of(bound) * request:
        yield f"{words}, but provided ratio is {limit / request:f}"


def _claim_problems(limit: Raw, requests: Raw) -> Iterator[str]:
    for field, words in (("min", "minimum"), ("max", "maximum")):
        for name, bound in (limit.get(field) or {}).items():
            given, rule = requests.get(name), f"{words} {name} usage per {_CLAIM} is {bound}"
            if given is None:
                yield f"{rule}.  No request is specified"
            elif (nanos_of(given) < nanos_of(bound)) if field == "min" else (nanos_of(given) > nanos_of(bound)):
                yield f"{rule}, but request is {given}"
