"""metrics.k8s.io/v1beta1: what nodes and pods use now, from a `UsageSource`. `kubectl top` reads it.

The source is a port that the kubelet stand-in implements. Nodes and pods that it does not know of are left
out, as a metrics server leaves out what it has not scraped yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from moorage.api import resources
from moorage.api.errors import ApiError, NotFound
from moorage.embedded.catalog.kinds import NODE_METRICS, POD_METRICS
from moorage.embedded.http import Answer, Request, json_answer
from moorage.store import refusals
from moorage.store.objects import Raw, Stored, timestamp
from moorage.store.store import Store

WINDOW = "15s"
"""Over how long the usage is said to be measured."""
_PREFIX = NODE_METRICS.path_prefix


@dataclass(frozen=True, slots=True)
class Usage:
    """What is in use at a moment."""

    cpu_cores: float
    memory_bytes: int


class UsageSource(Protocol):
    """Current usage; None where nothing is known (no such object, not running, not measured yet)."""

    def node(self, name: str) -> Usage | None: ...

    def pod(self, namespace: str, name: str) -> Mapping[str, Usage] | None:
        """Usage by container."""
        ...


class Metrics:
    """The endpoint of metrics.k8s.io. `wall` gives Unix seconds."""

    def __init__(self, store: Store, usage: UsageSource, wall: Callable[[], float]) -> None:
        self._store = store
        self._usage = usage
        self._wall = wall

    def answer(self, request: Request) -> Answer | None:
        if not request.path.startswith(f"{_PREFIX}/"):
            return None
        parts = request.path.removeprefix(f"{_PREFIX}/").rstrip("/").split("/")
        found = self._metrics(parts, request)
        if found is not None and request.method not in ("GET", "HEAD"):
            raise _read_only()
        return None if found is None else json_answer(found)

    def _metrics(self, parts: list[str], request: Request) -> Raw | None:
        match parts:
            case ["nodes"]:
                return self._nodes(request)
            case ["nodes", name]:
                return self._node(name)
            case ["pods"]:
                return self._pods(request, "")
            case ["namespaces", namespace, "pods"]:
                return self._pods(request, namespace)
            case ["namespaces", namespace, "pods", name]:
                return self._pod(namespace, name)
            case _:
                return None

    def _nodes(self, request: Request) -> Raw:
        found = self._listed(resources.NODES, request, "")
        return _list("NodeMetricsList", [m for m in map(self._of_node, found) if m is not None])

    def _node(self, name: str) -> Raw:
        stored = self._stored(resources.NODES, name, "")
        metrics = self._of_node(stored) if stored is not None else None
        if metrics is None:
            raise _not_found("nodemetrics", name)
        return metrics

    def _pods(self, request: Request, namespace: str) -> Raw:
        found = self._listed(resources.PODS, request, namespace)
        return _list("PodMetricsList", [m for m in map(self._of_pod, found) if m is not None])

    def _pod(self, namespace: str, name: str) -> Raw:
        stored = self._stored(resources.PODS, name, namespace)
        metrics = self._of_pod(stored) if stored is not None else None
        if metrics is None:
            raise _not_found("podmetrics", f"{namespace}/{name}")
        return metrics

    def _listed(self, resource: resources.Resource, request: Request, namespace: str) -> list[Stored]:
        query = request.query
        listing = self._store.list(
            resource,
            namespace=namespace,
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
        )
        return list(listing.items)

    def _stored(self, resource: resources.Resource, name: str, namespace: str) -> Stored | None:
        try:
            return self._store.get(resource, name, namespace)
        except NotFound:
            return None

    def _of_node(self, stored: Stored) -> Raw | None:
        usage = self._usage.node(stored.name)
        if usage is None:
            return None
        return {**self._head(stored, NODE_METRICS.kind), "usage": _amounts(usage)}

    def _of_pod(self, stored: Stored) -> Raw | None:
        usage = self._usage.pod(stored.namespace, stored.name)
        if usage is None:
            return None
        return {**self._head(stored, POD_METRICS.kind), "containers": _containers(usage)}

    def _head(self, stored: Stored, kind: str) -> Raw:
        now = timestamp(self._wall())
        meta: Raw = {"name": stored.name, "creationTimestamp": now}
        if stored.namespace:
            meta["namespace"] = stored.namespace
        if labels := stored.raw["metadata"].get("labels"):
            meta["labels"] = labels
        head = {"kind": kind, "apiVersion": NODE_METRICS.api_version, "metadata": meta}
        return {**head, "timestamp": now, "window": WINDOW}


def _containers(usage: Mapping[str, Usage]) -> list[Raw]:
    return [{"name": name, "usage": _amounts(used)} for name, used in usage.items()]


def _amounts(usage: Usage) -> Raw:
    return {"cpu": f"{round(usage.cpu_cores * 1e9)}n", "memory": f"{usage.memory_bytes // 1024}Ki"}


def _list(kind: str, items: list[Raw]) -> Raw:
    return {"kind": kind, "apiVersion": NODE_METRICS.api_version, "metadata": {}, "items": items}


def _not_found(plural: str, name: str) -> ApiError:
    return refusals.failure(404, "NotFound", f'{plural}.{NODE_METRICS.group} "{name}" not found')


def _read_only() -> ApiError:
    message = "metrics can only be read: the server does not allow this method on the requested resource"
    return refusals.failure(405, "MethodNotAllowed", message)
