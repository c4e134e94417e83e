"""Informer stores: the objects of each kind as last delivered, for listers and wherever the scheduler looks
one up; and objects that a plugin has changed ahead of the API server, such as claims about to be bound.

What a change means (accounting, wake-ups) is decided elsewhere. Objects are shared and never changed. Pods
are assumed in `ClusterCache`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Resource
from moorage.framework.ports import Change
from moorage.state.columns import CacheError

Watcher = Callable[[Any | None, Any | None], None]
"""`watcher(old, new)`, called after the store has changed."""


class ObjectStore:
    """All objects of one kind, in the order in which they first appeared. Implements
    `framework.handle.Lister`."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._objects: dict[str, Any] = {}
        """Key (`namespace/name`, or the bare name) → object."""
        self._namespaces: dict[str, dict[str, Any]] = {}
        """Namespace → name → object; none is empty. Cluster-wide objects are in the namespace ""."""
        self._watchers: list[Watcher] = []
        self.version = 0
        """Grows with every change, and with every change of what is assumed on top of it."""
        self.known = True
        """False while the API server does not serve the kind."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str, namespace: str = "") -> Any | None:
        found = self._namespaces.get(namespace)
        return found.get(name) if found else None

    def by_key(self, key: str) -> Any | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> Iterator[Any]:
        """All objects, or those of one namespace."""
        found = self._namespaces.get(namespace, {}) if namespace else self._objects
        yield from found.values()

    def observe(self, watcher: Watcher) -> None:
        """Tell `watcher` about all that is here, and from now on about every change."""
        for obj in self._objects.values():
            watcher(None, obj)
        self._watchers.append(watcher)

    def ignore(self, watcher: Watcher) -> None:
        """Tell `watcher` no longer."""
        self._watchers.remove(watcher)

    def serve(self, known: bool) -> bool:
        """The API server serves the kind, or does not; returns whether that is news."""
        changed = known is not self.known
        self.known = known
        self.version += changed
        return changed

    def apply(self, change: Change) -> None:
        """Take over a delivered change. Repeating one, or deleting what is unknown, changes nothing."""
        self.version += 1
        if change.new is not None:
            self._put(change.new)
        elif change.old is not None:
            self._delete(change.old)

    def _put(self, obj: Any) -> None:
        known = self._objects.get(obj.key)
        if known is not None and known.uid != obj.uid:
            self._delete(known)  # another object of the same name: it appears now, at the end of the list
            known = None
        self._objects[obj.key] = obj
        self._namespaces.setdefault(obj.namespace, {})[obj.name] = obj
        for watcher in self._watchers:
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
        for watcher in self._watchers:
            watcher(known, None)


class Stores:
    """One store per kind, made when it is first asked for."""

    def __init__(self) -> None:
        self._stores: dict[Resource, ObjectStore] = {}

    def __getitem__(self, resource: Resource) -> ObjectStore:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = ObjectStore(resource)
        return store

    def lister(self, resource: Resource) -> ObjectStore:
        """Read access to a kind; stays valid for good."""
        return self[resource]

    def apply(self, change: Change) -> None:
        self[change.resource].apply(change)


@dataclass(frozen=True, slots=True)
class _Assumed:
    object: Any
    base: str
    """resourceVersion that the store held when the object was assumed."""


class AssumeStore:
    """An ObjectStore with assumed objects in front. Implements `framework.handle.AssumeCache`.

    An assumed object hides the stored one until the store has a version that came later and is at least as
    new. An object assumed on top of the very version that is stored (a change not yet written) therefore
    stays until the next version arrives. It need not be notified of deliveries: the store is compared when
    it is read.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._assumed: dict[str, _Assumed] = {}

    def get(self, key: str) -> Any | None:
        return self._settled(key, self._store.by_key(key))

    def list(self) -> Iterator[Any]:
        for stored in self._store.list():
            yield self._settled(stored.key, stored)

    def assume(self, obj: Any) -> None:
        """Show this object from now on. A CacheError when it is unknown, or older than what is shown."""
        shown = self.get(obj.key)
        stored = self._store.by_key(obj.key)
        if shown is None or stored is None:
            raise CacheError(f"{obj.key} is not known, so it cannot be assumed")
        if is_older(obj.resource_version, shown.resource_version):
            raise CacheError(f"{obj.key} is older than the known version, so it cannot be assumed")
        self._assumed[obj.key] = _Assumed(obj, stored.resource_version)
        self._store.version += 1

    def restore(self, key: str) -> None:
        """Show the stored object again; nothing happens when none is assumed."""
        if self._assumed.pop(key, None) is not None:
            self._store.version += 1

    def _settled(self, key: str, stored: Any | None) -> Any | None:
        """What to show in place of `stored`; an assumption that it has overtaken is dropped."""
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if stored is not None and (
            stored.resource_version == assumed.base
            or is_older(stored.resource_version, assumed.object.resource_version)
        ):
            return assumed.object
        del self._assumed[key]
        return stored


def is_older(version: str, other: str) -> bool:
    """Compared as numbers. Versions that are none cannot be compared, so neither is older."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
