"""The indexes that plugins keep over pods and nodes: built once, then changed by every event.

Implements `framework.indexes`. The NodeTable tells its observers what comes and goes on which row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.framework.access import Version
from mooring.framework.indexes import NodeKeys, PodKeys
from mooring.telemetry import logs

_log = logs.get(__name__)

_NONE: Mapping[int, Any] = MappingProxyType({})


class Observer(Protocol):
    """Told about every change of the table, after it has happened. Ghost rows have pods and no node."""

    def pod_added(self, row: int, pod: Pod) -> None: ...

    def pod_removed(self, row: int, pod: Pod) -> None: ...

    def node_changed(self, row: int, old: Node | None, new: Node | None) -> None: ...


def _keys(extract: Callable[[Any], Iterable[Any]], obj: Any) -> list[Any]:
    """The keys of one object. A plugin's function that raises must not tear cache and table apart: the
    object is left out of that index, and the log says so."""
    try:
        return list(extract(obj))
    except Exception as error:
        _log.error("An index function failed", error=error, stack=True, object=obj.key)
        return []


class RowPodIndex:
    """key → {row: number of pods}; empty entries are dropped."""

    def __init__(self, extract: PodKeys) -> None:
        self._extract = extract
        self._rows: dict[Hashable, dict[int, int]] = {}

    def rows(self, key: Hashable) -> Mapping[int, int]:
        return self._rows.get(key, _NONE)

    def keys(self) -> Iterable[Hashable]:
        return self._rows.keys()

    def pod_added(self, row: int, pod: Pod) -> None:
        for key in _keys(self._extract, pod):
            rows = self._rows.setdefault(key, {})
            rows[row] = rows.get(row, 0) + 1

    def pod_removed(self, row: int, pod: Pod) -> None:
        for key in _keys(self._extract, pod):
            rows = self._rows.get(key, {})
            left = rows.get(row, 0) - 1
            if left > 0:
                rows[row] = left
                continue
            rows.pop(row, None)
            if not rows:
                self._rows.pop(key, None)

    def node_changed(self, row: int, old: Node | None, new: Node | None) -> None:
        pass  # pods stay on their row whatever becomes of the node


class RowNodeIndex:
    """key → {row: value} of the live nodes."""

    def __init__(self, extract: NodeKeys) -> None:
        self._extract = extract
        self._rows: dict[Hashable, dict[int, Any]] = {}
        self.version = Version()

    def rows(self, key: Hashable) -> Mapping[int, Any]:
        return self._rows.get(key, _NONE)

    def keys(self) -> Iterable[Hashable]:
        return self._rows.keys()

    def pod_added(self, row: int, pod: Pod) -> None:
        pass  # nodes only

    def pod_removed(self, row: int, pod: Pod) -> None:
        pass

    def node_changed(self, row: int, old: Node | None, new: Node | None) -> None:
        before = _keys(self._extract, old) if old is not None else []
        after = _keys(self._extract, new) if new is not None else []
        if before == after:
            return  # most updates of nodes are heartbeats
        self.version.bump()
        for key, _ in before:
            rows = self._rows.get(key, {})
            rows.pop(row, None)
            if not rows:
                self._rows.pop(key, None)
        for key, value in after:
            self._rows.setdefault(key, {})[row] = value


class Observed(Protocol):
    """The table, as far as indexes need it."""

    def observe(self, observer: Observer) -> None: ...


class Indexes:
    """All indexes of a process, by name. The first caller's function makes it; later ones get the same."""

    def __init__(self, table: Observed) -> None:
        self._table = table
        self._pods: dict[str, RowPodIndex] = {}
        self._nodes: dict[str, RowNodeIndex] = {}

    def pod_index(self, name: str, extract: PodKeys) -> RowPodIndex:
        if name not in self._pods:
            self._pods[name] = RowPodIndex(extract)
            self._table.observe(self._pods[name])
        return self._pods[name]

    def node_index(self, name: str, extract: NodeKeys) -> RowNodeIndex:
        if name not in self._nodes:
            self._nodes[name] = RowNodeIndex(extract)
            self._table.observe(self._nodes[name])
        return self._nodes[name]
