"""Kubernetes objects of simulations, built from manifests and from shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api import decoding
from moorage.api.errors import ObjectError
from moorage.api.node import HOSTNAME, ZONE, Node
from moorage.api.pod import Pod
from moorage.api.pod_defaults import with_defaults
from moorage.api.resources import NODES, PODS, REPLICA_SETS, AnyObject, Unstructured, by_kind
from moorage.sim.scenario import Amount, NodeShape, PodWorkload

PODS_PER_NODE = "110"


def typed(manifest: Mapping[str, Any]) -> AnyObject:
    """Return the object of a manifest. Raise an ObjectError if it is invalid. Custom kinds stay untyped, and pods get
    the defaults of the API server."""
    raw = dict(manifest)
    kind, api_version = str(raw.get("kind") or ""), str(raw.get("apiVersion") or "")
    metadata = raw.get("metadata")
    if not kind or not isinstance(metadata, dict) or not metadata.get("name"):
        raise ObjectError(f"{kind or 'an object'}", "metadata.name", "kind and metadata.name are required")
    resource = by_kind(kind, api_version or None)
    obj: AnyObject = Unstructured(raw) if resource is None else decoding.convert(resource, raw)
    decoding.validate(obj)
    return with_defaults(obj) if isinstance(obj, Pod) else obj


def node(shape: NodeShape, name: str, number: int = 0) -> Node:
    """Build a node of a shape."""
    amounts = {"pods": PODS_PER_NODE, **_amounts(shape.allocatable)}
    labels = {HOSTNAME: name, **shape.labels}
    if shape.zones:
        labels.setdefault(ZONE, f"zone-{number % shape.zones}")
    raw = {
        "metadata": {"name": name, "labels": labels, "annotations": dict(shape.annotations)},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    made = decoding.convert(NODES, raw)
    decoding.validate(made)
    assert isinstance(made, Node)
    return replace(made, spec=replace(made.spec, taints=shape.taints))


def pod_template(workload: PodWorkload) -> Pod:
    """Build the common part of the pods of a workload, without their names."""
    given = workload.pod
    metadata: dict[str, Any] = dict(given.metadata) if given else {}
    spec: dict[str, Any] = dict(given.spec) if given else _spec(workload.shape or {})
    metadata["labels"] = {"app": workload.name, **(metadata.get("labels") or {}), **workload.labels}
    metadata["namespace"] = workload.namespace
    metadata["name"] = workload.name
    if workload.kind == "deployment":
        owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": workload.name, "controller": True}
        metadata["ownerReferences"] = [{**owner, "uid": f"replicasets/{workload.name}"}]
    if workload.priority is not None:
        spec["priority"] = workload.priority
    made = decoding.convert(PODS, {"kind": "Pod", "metadata": metadata, "spec": spec})
    decoding.validate(made)
    assert isinstance(made, Pod)
    return with_defaults(made)


def replica_set(workload: PodWorkload, template: Pod) -> AnyObject:
    """Build the owner of a deployment's pods. Its selector determines their default spreading."""
    raw = {
        "metadata": {"name": workload.name, "namespace": workload.namespace, "uid": f"replicasets/{workload.name}"},
        "spec": {"replicas": workload.count, "selector": {"matchLabels": dict(template.labels)}},
    }
    return decoding.convert(REPLICA_SETS, raw)


def _spec(requests: Mapping[str, Amount]) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"requests": _amounts(requests)}}]}


def _amounts(given: Mapping[str, Amount]) -> dict[str, str]:
    return {name: str(amount) for name, amount in given.items()}
