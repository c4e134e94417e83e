"""A cluster as an input: every kind that plugins read, listed once from an API server or read from a file.

Equal parts of pods are kept once: pods of one template differ in little more than name and node. A cluster of
50,000 pods takes a third less memory. Records are read-only, so sharing is safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from moorage.api.errors import Forbidden, NotFound
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, Resource
from moorage.api.selectors import parse_selector
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.client.connection import connect, default_user_agent, find
from moorage.client.informers import FIELD_SELECTORS, Mirror
from moorage.client.lists import ChunkedLister
from moorage.framework.ports import ApiClient, Change, Malformed, Served
from moorage.telemetry import logs

PAGE_SIZE = 500

_log = logs.get(__name__)
MAX_SHARED = 10_000
"""Parts that are remembered: where each pod is different, nothing is gained."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects of an API server."""

    objects: Mapping[Resource, Sequence[Any]]
    """The objects by kind, pods last, which is the best order for an engine."""
    unserved: tuple[Resource, ...] = ()
    """Kinds that the server does not serve."""
    unread: Mapping[Resource, str] = field(default_factory=dict)
    """Kinds that may not be listed, with the server's message. Plugins see no objects of them."""
    namespace: str = "default"
    """The namespace of the credentials, for pods without one."""

    def changes(self) -> Iterator[Change | Served]:
        """Return the messages for the inbox of an engine."""
        for resource in (*self.unserved, *self.unread):
            yield Served(resource, known=False)
        for resource, objects in self.objects.items():
            for obj in objects:
                yield Change(resource, None, obj, initial=True)

    def selected(self, pods: str, nodes: str) -> ClusterObjects:
        """Return the cluster with only the pods and nodes that match these label selectors, without the pods on other
        nodes. An empty selector matches everything. Raises a SelectorError."""
        of_pods, of_nodes = parse_selector(pods), parse_selector(nodes)
        kept_nodes = [node for node in self.objects.get(NODES, ()) if of_nodes.matches(node.labels)]
        names = {node.name for node in kept_nodes} | {""}
        kept_pods = [
            pod for pod in self.objects.get(PODS, ()) if pod.spec.node_name in names and of_pods.matches(pod.labels)
        ]
        return replace(self, objects={**self.objects, NODES: kept_nodes, PODS: kept_pods})

    def gaps(self, configuration: Configuration) -> list[str]:
        """Return warnings about kinds that could not be read."""
        lines = []
        for resource, why in self.unread.items():
            readers = [cls.name for cls in configuration.plugins() if any(n.resource == resource for n in cls.needs)]
            effect = f": {', '.join(readers)} may answer wrongly" if readers else ""
            lines.append(f"{resource} could not be read ({why}){effect}")
        return lines


async def read_cluster(resources: Iterable[Resource], kubeconfig: str = "", context: str = "") -> ClusterObjects:
    """Connect with the credentials that `moorage run` would use, list, and disconnect."""
    credentials = await find(kubeconfig, context)
    client = connect(credentials, SystemClock(), user_agent=default_user_agent("read-cluster"))
    try:
        return await list_cluster(client, resources, credentials.namespace or "default")
    finally:
        await client.close()


async def list_cluster(client: ApiClient, resources: Iterable[Resource], namespace: str = "default") -> ClusterObjects:
    """List nodes, pods and the given kinds."""
    objects: dict[Resource, Sequence[Any]] = {}
    unserved, unread = [], {}
    for resource in sorted({NODES, PODS, *resources}, key=lambda kind: (kind == PODS, str(kind))):
        selectors = {"field_selector": FIELD_SELECTORS.get(resource, "")}
        try:
            items, _ = await ChunkedLister(client, resource, PAGE_SIZE, selectors).snapshot("")
        except NotFound:
            unserved.append(resource)
        except Forbidden as error:
            if resource in (NODES, PODS):
                raise
            unread[resource] = str(error)
        else:
            objects[resource] = _readable(resource, items)
    return ClusterObjects(objects, tuple(unserved), unread, namespace)


def _readable(resource: Resource, items: Iterable[Any]) -> list[Any]:
    """Return the objects that a scheduler would see. Unreadable ones are logged and ignored."""

    def set_aside(problem: Malformed) -> None:
        _log.warning("Object ignored because it cannot be read", resource=resource, err=problem.error)

    mirror = Mirror(resource, lambda change: None, set_aside)
    for _ in mirror.replace(items, initial=True):
        pass
    parts, found = SharedParts(), list(mirror.objects.values())
    for obj in found if resource == PODS else ():
        parts.share(obj)
    return found


class SharedParts:
    """Keeps equal parts of pods once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], Any] = {}

    def share(self, pod: Pod) -> None:
        """Replace parts of the pod by equal parts of earlier pods."""
        self._replace(pod.metadata, "labels")
        self._replace(pod.metadata, "owner_references")
        self._replace(pod.spec, "containers")
        self._replace(pod.spec, "tolerations")

    def _replace(self, record: Any, field: str) -> None:
        own = getattr(record, field)
        if not own:
            return
        key = (field, msgspec.msgpack.encode(own))
        known = self._known.get(key)
        if known is not None:
            msgspec.structs.force_setattr(record, field, known)
        elif len(self._known) < MAX_SHARED:
            self._known[key] = own
