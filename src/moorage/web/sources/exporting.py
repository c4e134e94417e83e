"""Objects of a cluster as a file: a snapshot of `moorage snapshot`'s form, or the simulator's export."""

from __future__ import annotations

from typing import Any

from moorage import snapshots
from moorage.api.times import format_time
from moorage.web.sources.api_objects import ApiObjects, Json

SIMULATOR = ("pods", "nodes", "pvs", "pvcs", "storageClasses", "priorityClasses", "namespaces")
"""The keys of kube-scheduler-simulator."""
CONFIGURATION = "schedulerConfig"


async def snapshot(objects: ApiObjects, wall: float) -> Json:
    """Everything that users make, in full."""
    found: Json = {}
    keys = {resource: key for key, resource in snapshots.KEYS.items()}
    for resource in (await objects.kinds()).values():
        items = [_plain(obj) for obj in await objects.list(resource) if not of_every_cluster(obj)]
        if resource in keys:
            found[keys[resource]] = items
        elif items:
            found.setdefault(snapshots.CUSTOM, {})[str(resource)] = items
    return {**found, snapshots.MOORAGE: snapshots.About(format_time(wall), annotations=True)}


async def simulator_export(objects: ApiObjects, configuration: Json) -> Json:
    """Its kinds, without apiVersion and kind, and the scheduler's configuration."""
    found: dict[str, Any] = {}
    for key in SIMULATOR:
        listed = await objects.list(snapshots.KEYS[key])
        items = [_plain(obj) for obj in listed if not of_every_cluster(obj)]
        found[key] = [{k: v for k, v in obj.items() if k not in ("apiVersion", "kind")} for obj in items]
    return {**found, CONFIGURATION: configuration}


def of_every_cluster(obj: Json) -> bool:
    """Made by each cluster for itself."""
    kind, name = obj["kind"], str(obj["metadata"].get("name", ""))
    match kind:
        case "Namespace":
            return name == "default" or name.startswith("kube-")
        case "PriorityClass":
            return name.startswith("system-")
        case _:
            return (kind, name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))


def _plain(obj: Json) -> Json:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": meta}
