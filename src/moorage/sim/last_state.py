"""The state of a cluster when its recording ends, for questions about it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.pod_defaults import with_defaults
from moorage.api.resources import ALL, PODS, AnyObject, Resource, Unstructured, by_kind
from moorage.sim.recordings import Recording
from moorage.snapshots.cluster import ClusterObjects
from moorage.telemetry import logs

_log = logs.get(__name__)


def last_state(path: Path, resources: Iterable[Resource] = ()) -> ClusterObjects:
    """Return the cluster at the end of a recording. Custom kinds are known by `resources`; others are left out."""
    objects, problems = Recording(path).at_end()
    for problem in problems:
        _log.warning("Line of the recording ignored", err=problem)
    known = {(resource.api_version, resource.kind): resource for resource in (*ALL, *resources)}
    found: dict[Resource, list[Any]] = {}
    for obj in objects:
        if isinstance(obj, Unstructured):
            resource = known.get((obj.api_version, obj.kind))
        else:
            resource = by_kind(obj.kind or type(obj).__name__)
        if resource is not None:
            found.setdefault(resource, []).append(_completed(resource, obj))
    return ClusterObjects({resource: found[resource] for resource in sorted(found, key=lambda kind: kind == PODS)})


def _completed(resource: Resource, obj: AnyObject) -> AnyObject:
    """Return an object as snapshots have it: with a UID, and pods with the defaults of the API server."""
    if isinstance(obj, Object) and not obj.metadata.uid:
        obj = replace(obj, metadata=replace(obj.metadata, uid=f"{resource.plural}/{obj.key}"))
    return with_defaults(obj) if isinstance(obj, Pod) else obj
