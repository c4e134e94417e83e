"""Keeps the catalog as the CustomResourceDefinitions in the store say, and their status as the catalog is.

    created ──names free──▶ served, Established ──deleted──▶ terminating: objects are deleted,
       └──names taken──▶ NamesAccepted=False, not served          then the finalizer is taken away

The registrar follows the store by a watch, so definitions that were loaded, restored or written in process
are served like those that came over HTTP. Its own writes happen later, by `defer`: a watch may notify it of a
change in the middle of a write. A definition that got past admission and is wrong is not served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from moorage.api.errors import Conflict, Gone, NotFound
from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from moorage.embedded.catalog.crds.definitions import FINALIZER, check_stored
from moorage.embedded.catalog.crds.kinds import served_kinds, storage_resource
from moorage.embedded.catalog.kinds import Catalog, ServedKind
from moorage.framework.ports import DELETED
from moorage.store.objects import Raw, Stored, timestamp, with_meta
from moorage.store.reading import Subscription
from moorage.store.store import Store
from moorage.telemetry import logs

Defer: TypeAlias = Callable[[Callable[[], None]], object]
"""Calls a function soon, such as `loop.call_soon`."""
_log = logs.get(__name__)


def conflict(definition: Raw, others: Iterable[ServedKind]) -> tuple[str, str] | None:
    """Reason and message when another kind of the group has one of the names."""
    spec = definition["spec"]
    names = spec["names"]
    words, kinds = _words(names), {names["kind"], names.get("listKind") or f"{names['kind']}List"}
    for served in others:
        resource = served.resource
        if resource.group != spec["group"]:
            continue
        taken = words & {resource.plural, served.singular, *served.short_names}
        if taken:
            return "NamesConflict", f'"{min(taken)}" is already in use'
        if kinds & {resource.kind, served.list_name}:
            return "KindConflict", f'"{names["kind"]}" is already in use'
    return None


def _words(names: Raw) -> set[str]:
    return {names["plural"], names.get("singular") or names["kind"].lower(), *(names.get("shortNames") or ())}


def status_of(definition: Raw, taken: tuple[str, str] | None, wall: float) -> Raw:
    """The status as it should be; equal to the present one when nothing changed."""
    old: Raw = definition.get("status") or {}
    established = taken is None or _is_true(old, "Established")
    wanted = [
        _condition("NamesAccepted", taken is None, *(taken or ("NoConflicts", "no conflicts found"))),
        _condition(
            "Established",
            established,
            "InitialNamesAccepted" if established else "NotAccepted",
            "the initial names have been accepted" if established else "not all names are accepted",
        ),
    ]
    if "deletionTimestamp" in definition["metadata"]:
        message = "CustomResource deletion is in progress"
        wanted.append(_condition("Terminating", True, "InstanceDeletionInProgress", message))
    accepted = definition["spec"]["names"] if taken is None else old.get("acceptedNames") or _no_names()
    return {
        **old,
        "conditions": [_with_time(condition, old, wall) for condition in wanted],
        "acceptedNames": accepted,
        "storedVersions": _stored_versions(definition, old),
    }


def _no_names() -> Raw:
    return {"plural": "", "kind": ""}


def _stored_versions(definition: Raw, old: Raw) -> list[str]:
    known = list(old.get("storedVersions") or ())
    storage = [v["name"] for v in definition["spec"]["versions"] if v.get("storage")]
    return known + [name for name in storage if name not in known]


def _condition(type_: str, holds: bool, reason: str, message: str) -> Raw:
    return {"type": type_, "status": "True" if holds else "False", "reason": reason, "message": message}


def _with_time(condition: Raw, old: Raw, wall: float) -> Raw:
    before = _find(old, condition["type"])
    changed = before is None or before.get("status") != condition["status"]
    since: Any = timestamp(wall) if changed or before is None else before.get("lastTransitionTime")
    return {**condition, "lastTransitionTime": since}


def _is_true(status: Raw, type_: str) -> bool:
    return (_find(status, type_) or {}).get("status") == "True"


def _find(status: Raw, type_: str) -> Raw | None:
    return next((c for c in status.get("conditions") or () if c.get("type") == type_), None)


class Registrar:
    """One for each server; `close` ends its watches."""

    def __init__(self, store: Store, catalog: Catalog, wall: Callable[[], float], defer: Defer) -> None:
        self._store = store
        self._catalog = catalog
        self._wall = wall
        self._defer = defer
        self._planned = False
        self._served: dict[str, list[ServedKind]] = {}
        self._definitions: dict[str, Raw] = {}
        self._emptying: dict[str, Subscription] = {}
        """Watches of the objects of definitions that are going."""
        self._watch = self._open()
        self.sync()

    def sync(self) -> None:
        """Catches up with the store."""
        self._planned = False
        for name, definition in self._changed().items():
            problem = check_stored(definition) if definition is not None else ""
            if definition is None or problem:
                if problem:
                    _log.warning(
                        "CustomResourceDefinition is not served because it is invalid; correct it",
                        name=name,
                        err=problem,
                    )
                self._forget(name)
            else:
                self._definitions[name] = definition
                self._register(name)
        for name in tuple(self._emptying):
            self._empty(name)

    def close(self) -> None:
        for watch in (self._watch, *self._emptying.values()):
            watch.wake = None
            watch.close()

    def _open(self) -> Subscription:
        watch = self._store.watch(CUSTOM_RESOURCE_DEFINITIONS)
        watch.wake = self._plan
        return watch

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._defer(self.sync)

    def _changed(self) -> dict[str, Raw | None]:
        """Definitions that changed since the last call, by name; None for those that are gone."""
        changed: dict[str, Raw | None] = {}
        try:
            events = self._watch.take()
        except Gone:
            self._watch = self._open()
            changed = dict.fromkeys(self._definitions)
            events = self._watch.take()
        for event in events:
            if event.stored is not None:
                changed[event.stored.name] = None if event.type == DELETED else event.stored.raw
        return changed

    def _register(self, name: str) -> None:
        definition = self._definitions[name]
        taken = conflict(definition, self._others(name))
        if not taken:
            self._serve(name, served_kinds(definition))
        status = status_of(definition, taken, self._wall())
        if status != definition.get("status"):
            self._write(name, {**definition, "status": status}, "status")
        if "deletionTimestamp" in definition["metadata"]:
            self._start_emptying(name)

    def _others(self, name: str) -> list[ServedKind]:
        """The kinds of all other definitions, and the built-in ones."""
        own = {id(served) for served in self._served.get(name, ())}
        return [served for served in self._catalog.all() if id(served) not in own]

    def _serve(self, name: str, kinds: list[ServedKind]) -> None:
        wanted = {served.resource.version for served in kinds}
        for served in self._served.get(name, ()):
            if served.resource.version not in wanted:
                self._catalog.remove(served)
        for served in kinds:
            self._catalog.add(served)
        self._served[name] = kinds

    def _forget(self, name: str) -> None:
        """The definition is gone; whatever is left of its objects goes too."""
        for served in self._served.pop(name, ()):
            self._catalog.remove(served)
        if (watch := self._emptying.pop(name, None)) is not None:
            watch.close()
        definition = self._definitions.pop(name, None)
        resource = storage_resource(definition) if definition is not None else None
        if resource is not None:
            for stored in self._store.list(resource).items:
                self._remove(resource, stored, by_force=True)
        self._reconsider()

    def _reconsider(self) -> None:
        """Names have become free: definitions that waited for them are looked at again."""
        for name in self._definitions:
            if name not in self._served:
                self._register(name)

    def _start_emptying(self, name: str) -> None:
        resource = storage_resource(self._definitions[name])
        if resource is not None and name not in self._emptying:
            watch = self._emptying[name] = self._store.watch(resource)
            watch.wake = self._plan

    def _empty(self, name: str) -> None:
        """Deletes the objects of a definition that is going, and lets it go when none is left."""
        definition = self._definitions[name]
        resource = storage_resource(definition)
        if resource is None:
            return
        self._drain(name, resource)
        for stored in self._store.list(resource).items:
            if "deletionTimestamp" not in stored.raw["metadata"]:
                self._remove(resource, stored)
        finalizers = definition["metadata"].get("finalizers") or []
        if not self._store.list(resource, limit=1).items and FINALIZER in finalizers:
            others = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
            self._write(name, with_meta(definition, finalizers=others or None))

    def _drain(self, name: str, resource: Resource) -> None:
        try:
            self._emptying[name].take()
        except Gone:
            watch = self._emptying[name] = self._store.watch(resource)
            watch.wake = self._plan

    def _remove(self, resource: Resource, stored: Stored, *, by_force: bool = False) -> None:
        try:
            if by_force and stored.raw["metadata"].get("finalizers"):
                self._store.replace(resource, with_meta(stored.raw, finalizers=None))
            self._store.delete(resource, stored.name, namespace=stored.namespace)
        except NotFound:
            return  # its last finalizer was all that kept it

    def _write(self, name: str, definition: Raw, subresource: str = "") -> None:
        try:
            stored = self._store.replace(CUSTOM_RESOURCE_DEFINITIONS, definition, subresource=subresource)
        except (Conflict, NotFound):
            return  # another writer was faster; the watch will notify
        self._definitions[name] = stored.raw
