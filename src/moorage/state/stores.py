"""Informer stores: the objects of each kind as last delivered, and objects that a plugin has assumed.

A plugin assumes an object that it changes ahead of the API server, such as a claim about to be bound. Objects
are shared and never modified. What a change means for accounting and wake-ups is decided elsewhere, and pods
are assumed in `ClusterCache`. `AssumeStore` follows pkg/scheduler/util/assumecache/assume_cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Resource
from moorage.framework.ports import Change
from moorage.state.columns import CacheError

Watcher = Callable[[Any | None, Any | None], None]
"""`watcher(old, new)` is called after the store has changed."""


class ObjectStore:
    """All objects of one kind, in the order in which they first appeared. Implements `framework.handle.Lister`."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._objects: dict[str, Any] = {}
        """Key (`namespace/name`, or the bare name) → object."""
        self._namespaces: dict[str, dict[str, Any]] = {}
        """Namespace (empty for cluster-scoped objects) → name → object. No inner mapping is empty."""
        self.watchers: list[Watcher] = []
        """The callbacks that `observe` registered."""
        self.version = 0
        """Grows with every change of the objects and of the assumed objects."""
        self.known = True
        """Whether the API server serves the kind."""
        self.rewinds = 0
        """Grows when an object is delivered with a lower version than before, as after a restored backup."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str, namespace: str = "") -> Any | None:
        found = self._namespaces.get(namespace)
        return found.get(name) if found else None

    def by_key(self, key: str) -> Any | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> Iterator[Any]:
        """Iterate over all objects, or those of one namespace."""
        found = self._namespaces.get(namespace, {}) if namespace else self._objects
        yield from found.values()

    def observe(self, watcher: Watcher) -> None:
        """Call `watcher` for all present objects, and from now on for every change."""
        for obj in self._objects.values():
            watcher(None, obj)
        self.watchers.append(watcher)

    def ignore(self, watcher: Watcher) -> None:
        """Stop calling `watcher`."""
        self.watchers.remove(watcher)

    def serve(self, known: bool) -> bool:
        """Store whether the API server serves the kind. Returns whether that changed."""
        changed = known is not self.known
        self.known = known
        self.version += changed
        return changed

    def apply(self, change: Change) -> None:
        """Apply a delivered change. Repeating a change or deleting an unknown object has no effect."""
        self.version += 1
        if change.new is not None:
            self._put(change.new)
        elif change.old is not None:
            self._delete(change.old)

    def _put(self, obj: Any) -> None:
        known = self._objects.get(obj.key)
        if known is not None and known.uid != obj.uid:
            self._delete(known)  # a new object of the same name belongs at the end of the list
            known = None
        if known is not None and is_older(obj.resource_version, known.resource_version):
            self.rewinds += 1
        self._objects[obj.key] = obj
        self._namespaces.setdefault(obj.namespace, {})[obj.name] = obj
        for watcher in self.watchers:
            watcher(known, obj)

    def _delete(self, obj: Any) -> None:
        known = self._objects.get(obj.key)
        if known is None or known.uid != obj.uid:
            return  # a late delete must not hit the successor of the same name
        del self._objects[obj.key]
        names = self._namespaces[obj.namespace]
        del names[obj.name]
        if not names:
            del self._namespaces[obj.namespace]
        for watcher in self.watchers:
            watcher(known, None)


class Stores:
    """One store per kind, created on first use."""

    def __init__(self) -> None:
        self._stores: dict[Resource, ObjectStore] = {}

    def __getitem__(self, resource: Resource) -> ObjectStore:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = ObjectStore(resource)
        return store

    def lister(self, resource: Resource) -> ObjectStore:
        """Return read access to a kind. It stays valid for good."""
        return self[resource]

    def apply(self, change: Change) -> None:
        self[change.resource].apply(change)


@dataclass(frozen=True, slots=True)
class _Assumed:
    object: Any
    base: str
    """The resourceVersion in the store when the object was assumed."""
    rewinds: int
    """`ObjectStore.rewinds` at that time."""


class AssumeStore:
    """An ObjectStore with assumed objects in front. Implements `framework.handle.AssumeCache`.

    An assumed object hides the stored one until the store receives a later version that is at least as new.
    An object that was assumed on top of the stored version (a change not written yet) therefore stays until
    the next version arrives. The store is compared on every read, so deliveries need no notification. If versions
    went back, as after a restored backup, all assumptions made before are dropped: they may be about lost changes.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._assumed: dict[str, _Assumed] = {}

    def get(self, key: str) -> Any | None:
        return self._visible(key, self._store.by_key(key))

    def list(self) -> Iterator[Any]:
        for stored in self._store.list():
            yield self._visible(stored.key, stored)

    def assume(self, obj: Any) -> None:
        """Show this object from now on. Raises CacheError if it is unknown or older than the visible one."""
        shown = self.get(obj.key)
        stored = self._store.by_key(obj.key)
        if shown is None or stored is None:
            raise CacheError(f"Cannot assume {obj.key}: it is not in the store.")
        if is_older(obj.resource_version, shown.resource_version):
            raise CacheError(f"Cannot assume {obj.key}: it is older than the visible version.")
        self._assumed[obj.key] = _Assumed(obj, stored.resource_version, self._store.rewinds)
        self._store.version += 1

    def restore(self, key: str) -> None:
        """Show the stored object again. Has no effect if none is assumed."""
        if self._assumed.pop(key, None) is not None:
            self._store.version += 1

    def _visible(self, key: str, stored: Any | None) -> Any | None:
        """Return the object to show in place of `stored`, dropping an outdated assumption."""
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        waits = stored is not None and (
            stored.resource_version == assumed.base
            or is_older(stored.resource_version, assumed.object.resource_version)
        )
        if waits and assumed.rewinds == self._store.rewinds:
            return assumed.object
        del self._assumed[key]
        return stored


def is_older(version: str, other: str) -> bool:
    """Compare two versions as numbers. If either is not a number, neither is older."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
