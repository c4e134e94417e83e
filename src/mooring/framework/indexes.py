"""Indexes that plugins keep over the pods, nodes and other objects of the cluster, maintained by the state.

An index is made with `handle.pod_index(name, extract)` or `handle.node_index(name, extract)`: `extract` names
the keys of one object, and the index answers in which rows a key occurs. It is built from what is there when
it is first asked for, and kept up to date by every event, so nothing ever scans all pods.

Rows are those of the node table (`nodes.table_rows`). A dry run does not change indexes: there, and wherever
a single node is judged, read the node's own pods from its view.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Protocol

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.framework.access import Version

PodKeys = Callable[[Pod], Iterable[Hashable]]
"""The keys of a pod. They must not depend on its node: pods are shown before they have one, and the row says
where they run."""
NodeKeys = Callable[[Node], Iterable[tuple[Hashable, Any]]]
ObjectKeys = Callable[[Any], Iterable[Hashable]]


class PodIndex(Protocol):
    """key → rows with pods that have the key."""

    def rows(self, key: Hashable) -> Mapping[int, int]:
        """Row → number of pods with the key there, ghosts of deleted nodes included."""
        ...

    def keys(self) -> Iterable[Hashable]: ...


class ObjectIndex(Protocol):
    """key → objects of one kind, made with `handle.object_index(name, resource, extract)`."""

    @property
    def version(self) -> Version:
        """Bumped when an object comes or goes, or when its keys change; not by other updates of it."""
        ...

    def at(self, key: Hashable) -> Iterable[Any]:
        """The objects with the key, in no particular order."""
        ...


class NodeIndex(Protocol):
    """key → rows of the nodes that have the key, each with the value that `extract` gave."""

    @property
    def version(self) -> Version:
        """Grows when an entry comes, changes or goes; for `reads`."""
        ...

    def rows(self, key: Hashable) -> Mapping[int, Any]: ...

    def keys(self) -> Iterable[Hashable]: ...
