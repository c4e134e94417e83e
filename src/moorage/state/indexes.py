"""The indexes that plugins keep over pods, nodes and other objects. Implements `framework.indexes`.

An index is built once and then updated with every event: the NodeTable notifies indexes of pods and nodes, an
ObjectStore notifies indexes of other objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from moorage.api.failures import is_interruption
from moorage.api.node import Node
from moorage.api.resources import Resource
from moorage.framework.access import Version
from moorage.framework.indexes import NodeKeys, ObjectKeys, PodKeys
from moorage.state.pod_entry import NO_KEYS, Observers, PodEntry
from moorage.state.stores import ObjectStore
from moorage.telemetry import logs

_log = logs.get(__name__)

_NONE: Mapping[int, Any] = MappingProxyType({})


def _keys(extract: Callable[[Any], Iterable[Any]], obj: Any) -> Sequence[Any]:
    """Return the keys of one object.

    If the plugin's function raises, the object is left out of that index and the error is logged: the cache
    and the table must stay consistent.
    """
    try:
        found = extract(obj)
        return found if type(found) is tuple else list(found)  # most pods have no keys: ()
    except BaseException as error:
        if is_interruption(error):
            raise
        _log.error("Index function failed; left the object out of the index", error=error, stack=True, object=obj.key)
        return []


class RowPodIndex:
    """Key → {row: number of pods}. Empty entries are dropped."""

    def __init__(self, extract: PodKeys) -> None:
        self.extract = extract
        self._rows: dict[Hashable, dict[int, int]] = {}

    def rows(self, key: Hashable) -> Mapping[int, int]:
        return self._rows.get(key, _NONE)

    def keys(self) -> Iterable[Hashable]:
        return self._rows.keys()

    def add(self, row: int, keys: Sequence[Hashable]) -> None:
        for key in keys:
            rows = self._rows.setdefault(key, {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, row: int, keys: Sequence[Hashable]) -> None:
        for key in keys:
            rows = self._rows.get(key, {})
            remaining = rows.get(row, 0) - 1
            if remaining > 0:
                rows[row] = remaining
                continue
            rows.pop(row, None)
            if not rows:
                self._rows.pop(key, None)


class RowPodIndexes:
    """All pod indexes as one observer of the table, because most pods have no keys in any of them."""

    def __init__(self, *indexes: RowPodIndex) -> None:
        self.kept = list(indexes)

    def add(self, index: RowPodIndex) -> None:
        self.kept.append(index)

    def drop(self, gone: Collection[RowPodIndex], entries: Iterable[tuple[int, PodEntry]]) -> None:
        """Drop these indexes. `entries` are all pods, which hold their keys in each index."""
        self.kept = [index for index in self.kept if index not in gone]
        for _, entry in entries:
            if not entry.index_keys.keys().isdisjoint(gone):
                kept = {index: keys for index, keys in entry.index_keys.items() if index not in gone}
                entry.index_keys = kept or NO_KEYS

    def prepare(self, entry: PodEntry) -> bool:
        return any(_keys(index.extract, entry.original) for index in self.kept)

    def pod_added(self, row: int, entry: PodEntry) -> None:
        for index, keys in self._keys_of(entry).items():
            index.add(row, keys)
            entry.index_keys = {**entry.index_keys, index: keys}

    def pod_removed(self, row: int, entry: PodEntry) -> None:
        for index, keys in entry.index_keys.items():
            index.remove(row, keys)
        entry.index_keys = NO_KEYS

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        if self._keys_of(new) == old.index_keys:
            new.index_keys = old.index_keys
        else:
            self.pod_removed(row, old)
            self.pod_added(row, new)

    def _keys_of(self, entry: PodEntry) -> dict[RowPodIndex, Sequence[Hashable]]:
        """Return the indexes in which the pod has keys; most pods have none."""
        found = {}
        for index in self.kept:
            keys = _keys(index.extract, entry.original)
            if keys:
                found[index] = keys
        return found


class RowNodeIndex:
    """Key → {row: value} of the live nodes."""

    def __init__(self, extract: NodeKeys) -> None:
        self._extract = extract
        self._rows: dict[Hashable, dict[int, Any]] = {}
        self.version = Version()

    def rows(self, key: Hashable) -> Mapping[int, Any]:
        return self._rows.get(key, _NONE)

    def keys(self) -> Iterable[Hashable]:
        return self._rows.keys()

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


class Indexes:
    """The pod and node indexes of the plugins of one configuration, by name.

    The first caller's function creates the index; later callers get the same one. `on_pods` is the observer
    that the indexes of all configurations share.
    """

    def __init__(self, observers: Observers, on_pods: RowPodIndexes | None = None) -> None:
        self._observers = observers
        self._on_pods = on_pods or RowPodIndexes()
        self._pods: dict[str, RowPodIndex] = {}
        self._nodes: dict[str, RowNodeIndex] = {}

    def pod_index(self, name: str, extract: PodKeys) -> RowPodIndex:
        if name not in self._pods:
            index = self._pods[name] = RowPodIndex(extract)
            self._observers.show_pods(RowPodIndexes(index))
            if self._on_pods not in self._observers.all:
                self._observers.observe(self._on_pods)
            self._on_pods.add(index)
            self._observers.forget_prepared()
        return self._pods[name]

    def node_index(self, name: str, extract: NodeKeys) -> RowNodeIndex:
        if name not in self._nodes:
            self._nodes[name] = RowNodeIndex(extract)
            self._observers.observe_nodes(self._nodes[name])
        return self._nodes[name]

    def successor(self, stays: Collection[object]) -> Indexes:
        """Return the indexes of the next configuration. It begins with those that plugins which stay hold."""
        made = Indexes(self._observers, self._on_pods)
        made._pods = {name: index for name, index in self._pods.items() if index in stays}
        made._nodes = {name: index for name, index in self._nodes.items() if index in stays}
        return made

    def close(self, belongs_to: Indexes | None = None) -> None:
        """Stop updating the indexes, except for those that belong to another configuration too."""
        others = () if belongs_to is None else (*belongs_to._pods.values(), *belongs_to._nodes.values())
        pods = {index for index in self._pods.values() if index not in others}
        if pods:
            self._on_pods.drop(pods, self._observers.pods())
            if not self._on_pods.kept:
                self._observers.all.remove(self._on_pods)
            self._observers.forget_prepared()
        for index in self._nodes.values():
            if index not in others:
                self._observers.ignore_nodes(index)
        self._pods, self._nodes = {}, {}

    def hand_over(self, stays: Collection[object]) -> None:
        """Leave the indexes that plugins which stay hold to the next configuration."""
        self._pods = {name: index for name, index in self._pods.items() if index not in stays}
        self._nodes = {name: index for name, index in self._nodes.items() if index not in stays}


class KeyedObjects:
    """Key → objects. Implements `framework.indexes.ObjectIndex` and observes a store."""

    def __init__(self, extract: ObjectKeys) -> None:
        self._extract = extract
        self._objects: dict[Hashable, dict[str, Any]] = {}
        """Key → object key → object. No inner mapping is empty."""
        self.version = Version()

    def at(self, key: Hashable) -> Iterable[Any]:
        found = self._objects.get(key)
        return found.values() if found else ()

    def changed(self, old: Any | None, new: Any | None) -> None:
        """The store calls this when an object was added, changed or deleted."""
        before = () if old is None else tuple(self._extract(old))
        after = () if new is None else tuple(self._extract(new))
        for key in before:
            objects = self._objects[key]
            del objects[old.key]  # type: ignore[union-attr]
            if not objects:
                del self._objects[key]
        for key in after:
            self._objects.setdefault(key, {})[new.key] = new  # type: ignore[union-attr]
        if before != after or old is None or new is None:
            self.version.bump()


class ObjectIndexes:
    """The object indexes of the plugins of one configuration, by name.

    The first caller's function creates the index; later callers get the same one.
    """

    def __init__(self, store: Callable[[Resource], ObjectStore]) -> None:
        self._store = store
        self._indexes: dict[tuple[str, Resource], KeyedObjects] = {}

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> KeyedObjects:
        key = (name, resource)
        if key not in self._indexes:
            self._indexes[key] = KeyedObjects(extract)
            self._store(resource).observe(self._indexes[key].changed)
        return self._indexes[key]

    def successor(self, stays: Collection[object]) -> ObjectIndexes:
        """Return the indexes of the next configuration. It begins with those that plugins which stay hold."""
        made = ObjectIndexes(self._store)
        made._indexes = {key: index for key, index in self._indexes.items() if index in stays}
        return made

    def close(self, belongs_to: ObjectIndexes | None = None) -> None:
        """Stop updating the indexes, except for those that belong to another configuration too."""
        others = () if belongs_to is None else tuple(belongs_to._indexes.values())
        for (_, resource), index in self._indexes.items():
            if index not in others:
                self._store(resource).ignore(index.changed)
        self._indexes = {}

    def hand_over(self, stays: Collection[object]) -> None:
        """Leave the indexes that plugins which stay hold to the next configuration."""
        self._indexes = {key: index for key, index in self._indexes.items() if index not in stays}
