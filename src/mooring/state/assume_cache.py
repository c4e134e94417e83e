"""Objects that a plugin has changed ahead of the API server: claims about to be bound, devices about to be
taken.

Pods are not kept here; they are assumed in `ClusterCache`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mooring.state.errors import CacheError
from mooring.state.stores import ObjectStore


@dataclass(frozen=True, slots=True)
class _Assumed:
    object: Any
    base: str
    """resourceVersion that the store held when the object was assumed."""


class AssumeStore:
    """An ObjectStore with assumed objects in front. Implements `framework.handle.AssumeCache`.

    An assumed object hides the stored one until the store has a version that came later and is at least as
    new. An object assumed on top of the very version that is stored (a change not yet written) therefore
    stays until the next version arrives. Nothing has to be told about deliveries: the store is compared
    when it is read.
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
