"""Indexes over the objects of one kind, changed by every delivery: `framework.indexes.ObjectIndex`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from mooring.api.resources import Resource
from mooring.framework.access import Version
from mooring.framework.indexes import ObjectKeys
from mooring.state.stores import ObjectStore


class KeyedObjects:
    """key → objects; implements `framework.indexes.ObjectIndex` and observes a store."""

    def __init__(self, extract: ObjectKeys) -> None:
        self._extract = extract
        self._objects: dict[Hashable, dict[str, Any]] = {}
        """Key → object key → object. Nothing in it is empty."""
        self.version = Version()

    def at(self, key: Hashable) -> Iterable[Any]:
        found = self._objects.get(key)
        return found.values() if found else ()

    def changed(self, old: Any | None, new: Any | None) -> None:
        """An object came, went or changed."""
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
    """All indexes of a process, by name. The first caller's function makes it; later ones get the same."""

    def __init__(self, store: Callable[[Resource], ObjectStore]) -> None:
        self._store = store
        self._indexes: dict[tuple[str, Resource], KeyedObjects] = {}

    def object_index(self, name: str, resource: Resource, extract: ObjectKeys) -> KeyedObjects:
        key = (name, resource)
        if key not in self._indexes:
            self._indexes[key] = KeyedObjects(extract)
            self._store(resource).observe(self._indexes[key].changed)
        return self._indexes[key]
