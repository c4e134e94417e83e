"""The objects of a snapshot, made complete: what an API server wants to know and a snapshot leaves out.

A snapshot has what schedulers read. Here controllers and kubelets run too, and nothing may make them change
what is there: owners that are not in the snapshot are no longer named, or garbage collection would delete
their pods; controllers get a template, that of their pods; priorities get a class. Which kinds are served,
and what is refused, is the server's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moorage import snapshots
from moorage.api.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)

Raw = dict[str, Any]
Objects = Mapping[Resource, list[Raw]]

TEMPLATED = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
USUAL_POLICY = "PreemptLowerPriority"
PLACED = ("nodeName", "priority", "preemptionPolicy", "priorityClassName")
"""Fields of a pod that are not part of its template."""
SYSTEM = "system-"
"""The prefix of priority classes that every cluster has."""


def read(path: Path) -> list[Raw]:
    """Return the objects in the order of their creation. A MoorageError says what is wrong with the file."""
    given = {resource: [_identified(resource, obj) for obj in items] for resource, items in snapshots.raw(path)}
    there = {obj["metadata"]["uid"] for items in given.values() for obj in items}
    objects = {resource: [_owned(obj, there) for obj in items] for resource, items in given.items()}
    pods, classes = _with_classes(objects.get(PODS, []), objects.get(PRIORITY_CLASSES, []))
    objects = {NAMESPACES: _namespaces(objects), PRIORITY_CLASSES: classes} | {
        resource: list(_completed(resource, items, objects))
        for resource, items in objects.items()
        if resource not in (NAMESPACES, PRIORITY_CLASSES, PODS)
    }
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        for resource, items in [*objects.items(), (PODS, pods)]
        for obj in items
    ]


def _identified(resource: Resource, obj: Raw) -> Raw:
    """Add a UID, which exports of other tools lack, and a namespace."""
    meta = {**obj["metadata"]}
    if resource.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    meta["uid"] = meta.get("uid") or _uid(resource, meta)
    return {**obj, "metadata": meta}


def _uid(resource: Resource, meta: Raw) -> str:
    return "/".join(filter(None, (resource.plural, meta.get("namespace"), meta["name"])))


def _owned(obj: Raw, there: set[str]) -> Raw:
    owners = obj["metadata"].get("ownerReferences")
    if not owners:
        return obj
    kept = [owner for owner in owners if owner.get("uid") in there]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}


def _namespaces(objects: Objects) -> list[Raw]:
    """Return the namespaces, including those that are not in the snapshot but have objects."""
    given = objects.get(NAMESPACES, [])
    named = (obj["metadata"].get("namespace") for items in objects.values() for obj in items)
    missing = dict.fromkeys(filter(None, named)).keys() - {obj["metadata"]["name"] for obj in given}
    return [*given, *({"metadata": {"name": name}} for name in sorted(missing))]


def _completed(resource: Resource, items: Iterable[Raw], objects: Objects) -> Iterator[Raw]:
    if resource in TEMPLATED:
        models = _models(objects.get(PODS, ()))
        return (_with_template(resource, obj, models.get(obj["metadata"]["uid"])) for obj in items)
    if resource == PERSISTENT_VOLUMES:
        claims = {_name(obj): obj["metadata"]["uid"] for obj in objects.get(PERSISTENT_VOLUME_CLAIMS, ())}
        return (_claimed(obj, claims) for obj in items)
    return iter(items)


def _name(obj: Raw) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _claimed(volume: Raw, claims: Mapping[tuple[str, str], str]) -> Raw:
    reference = volume.get("spec", {}).get("claimRef")
    if not reference:
        return volume
    uid = claims.get((reference.get("namespace", ""), reference.get("name", "")), reference.get("uid", ""))
    return {**volume, "spec": {**volume["spec"], "claimRef": {**reference, "uid": uid}}}


def _models(pods: Iterable[Raw]) -> dict[str, Raw]:
    """Return UID of an owner → one of its pods."""
    return {owner["uid"]: pod for pod in pods for owner in pod["metadata"].get("ownerReferences", ())}


def _with_template(resource: Resource, obj: Raw, model: Raw | None) -> Raw:
    """Add a template, so that new pods are like the existing ones, which stay as they are."""
    spec = obj.get("spec", {})
    if "template" in spec:
        return obj
    selector = spec.get("selector") or {}
    if model is None:
        labels = selector if resource == REPLICATION_CONTROLLERS else selector.get("matchLabels", {})
        pod_spec: Raw = {"containers": [{"name": "unknown", "image": "unknown"}]}
    else:
        labels = model["metadata"].get("labels", {})
        pod_spec = {field: value for field, value in model["spec"].items() if field not in PLACED}
    made = {**spec, "template": {"metadata": {"labels": labels}, "spec": pod_spec}}
    if resource == STATEFUL_SETS:
        made["updateStrategy"] = {"type": "OnDelete"}
    return {**obj, "spec": made}


def _with_classes(pods: Iterable[Raw], given: Iterable[Raw]) -> tuple[list[Raw], list[Raw]]:
    """Return the pods, each with a class that has its priority, and all classes."""
    classes = {obj["metadata"]["name"]: obj for obj in given}
    made = []
    for pod in pods:
        spec = pod.get("spec", {})
        name, value = spec.get("priorityClassName", ""), spec.get("priority") or 0
        policy = spec.get("preemptionPolicy") or USUAL_POLICY
        if not name and not value and policy == USUAL_POLICY:
            made.append(pod)
            continue
        known = classes.get(name)
        if not name or (known is not None and _of_class(known) != (value, policy)):
            name = f"snapshot-{value}-{policy}".lower()
        if name not in classes and not name.startswith(SYSTEM):
            classes[name] = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        made.append({**pod, "spec": {**spec, "priorityClassName": name}})
    return made, list(classes.values())


def _of_class(obj: Raw) -> tuple[int, str]:
    return obj.get("value", 0), obj.get("preemptionPolicy") or USUAL_POLICY
