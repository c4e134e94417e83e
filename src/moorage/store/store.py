"""The Kubernetes object store in memory: versions, conflicts, deletion, binding, watches with history.

Pure: no socket, no sleep, no clock and no randomness of its own. Objects are plain JSON and belong to the
store once they are handed in; neither callers nor the store change them in place. The rules live in modules
of their own (`rules`, `writes`, `deletion`, `patches`), the objects in `table`; this module joins them and
hands out the one increasing resourceVersion.

Changes are in memory at once; whether they outlive the process is up to the `durability` that is handed in.
Authentication, authorization and admission webhooks are not here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.api import resources
from moorage.api.errors import ApiError
from moorage.api.resources import Resource
from moorage.framework.ports import ADDED, BOOKMARK, PatchType
from moorage.store import reading, refusals, writes
from moorage.store.durability import Durability, InMemory
from moorage.store.objects import Raw, Stored, key_in, key_of, metadata_of, with_meta
from moorage.store.patches import apply_patch
from moorage.store.reading import StoreEvent, StoreListing, Subscription, select
from moorage.store.rules import LenientRules, WriteRules
from moorage.store.table import ObjectTable
from moorage.store.writes import Namer


class Store:
    """All objects of a cluster.

    `wall` gives Unix seconds for timestamps, `rng` the UIDs and generated names. `history_limit` is the
    number of changes per resource that watches and pages can still reach back to. `start_version` is where
    resourceVersions go on from. `durability` keeps the changes; without one they end with the process.
    `rules` fill in and check what is written: lenient ones unless others are given.
    """

    def __init__(
        self,
        wall: Callable[[], float],
        rng: random.Random,
        *,
        history_limit: int = 100_000,
        start_version: int = 1,
        durability: Durability | None = None,
        rules: WriteRules | None = None,
    ) -> None:
        self.version = start_version
        """The newest resourceVersion handed out."""
        self.durability = durability or InMemory()
        self._rules: WriteRules = rules or LenientRules()
        self._start = start_version
        self._wall = wall
        self._namer = Namer(wall, rng)
        self._history_limit = history_limit
        self._tables: dict[tuple[str, str], ObjectTable] = {}
        self._unnotified: dict[ObjectTable, None] = {}
        self.durability.attach(self)

    # Durability

    @property
    def durable_version(self) -> int:
        """The newest version that clients may see."""
        return min(self.version, self.durability.version)

    async def settled(self) -> None:
        """Returns when all that calls before this one have written or read is durable. Answer after it."""
        await self.durability.settled()

    def advanced(self) -> None:
        """Called by the durability when more has become durable: watches are notified."""
        durable = self.durability.version
        for table in tuple(self._unnotified):
            if table.newest() <= durable:
                del self._unnotified[table]
            table.notify()

    def failed(self) -> None:
        """Called by the durability when the newest changes will not last: they are taken back."""
        self.version = self.durable_version
        for table in self._tables.values():
            table.take_back(self.version)
        self._unnotified.clear()

    # Reading

    def get(self, resource: Resource, name: str, namespace: str = "") -> Stored:
        stored = self._table(resource).objects.get(key_in(resource, namespace, name))
        if stored is None:
            raise refusals.not_found(resource, name)
        return stored

    def find(self, resource: Resource, name: str, namespace: str = "") -> Raw | None:
        """The object as it is, or None."""
        stored = self._table(resource).objects.get(key_in(resource, namespace, name))
        return stored.raw if stored is not None else None

    def every(self, resource: Resource) -> Sequence[Raw]:
        """All objects of a resource, in no order."""
        return [stored.raw for stored in self._table(resource).objects.values()]

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        exact: bool = False,
        limit: int = 0,
        page: str = "",
    ) -> StoreListing:
        """The newest state, whatever older `resource_version` is named, or with `exact` that very one.

        One from the future is a 504.
        """
        wanted = _number(resource_version)
        if wanted > self.version:
            raise refusals.too_large(wanted, self.version)
        selection = select(resource, namespace, label_selector, field_selector)
        table = self._table(resource)
        return reading.list_page(table, selection, self.version, limit, page, wanted if exact else None)

    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str = "",
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        send_initial_events: bool = False,
        buffer: int | None = None,
    ) -> Subscription:
        """Changes after a version. Without a version, or "0", the present objects come first as ADDED.

        `send_initial_events` does so too and marks their end with a bookmark. `buffer` is how many changes
        the watcher may fall behind; None leaves it to the history.
        """
        table = self._table(resource)
        selection = select(resource, namespace, label_selector, field_selector)
        since = _number(resource_version)
        initial: list[StoreEvent] = []
        if send_initial_events or not since:
            if since > self.version:
                raise refusals.too_large(since, self.version)
            present = (stored for stored in table.in_order() if selection.matches(stored))
            initial = [StoreEvent(ADDED, stored, stored.version) for stored in present]
            since = self.version
        elif since < table.floor:
            raise refusals.too_old(since, table.floor)
        if send_initial_events:
            initial.append(StoreEvent(BOOKMARK, None, since, initial_events_end=True))
        return Subscription(
            table, selection, since=since, initial=initial, buffer=buffer, current=lambda: self.durable_version
        )

    # Writing

    def create(self, resource: Resource, raw: Raw, *, dry_run: bool = False) -> Stored:
        """As POST: system metadata is assigned, status is the server's where a kind has its own.

        A given uid is kept the first time it is seen, so that objects made together can refer to each
        other; a second object never gets the same one.
        """
        return self._create(resource, raw, keep_status=False, dry_run=dry_run)

    def load(self, resource: Resource, raw: Raw) -> Stored:
        """Puts in an object from elsewhere, such as a dump or a fixture: status and times stay as given."""
        return self._create(resource, raw, keep_status=True)

    def restore(self, resource: Resource, raw: Raw) -> None:
        """Puts back an object exactly as it was stored, version included; for whoever kept it. No history."""
        table = self._table(resource)
        table.objects[key_of(raw)] = Stored(table.resource, raw, int(raw["metadata"]["resourceVersion"]))
        self._namer.keep(raw["metadata"]["uid"])

    def replace(self, resource: Resource, raw: Raw, *, subresource: str = "", dry_run: bool = False) -> Stored:
        """As PUT: a resourceVersion or uid in the object must be the current one."""
        meta = metadata_of(raw)
        current = self.get(resource, meta.get("name") or "", meta.get("namespace") or "")
        return self._update(current, raw, subresource, dry_run)

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: str = PatchType.STRATEGIC,
        dry_run: bool = False,
    ) -> Stored:
        """As PATCH: a resourceVersion or uid that the patch sets must be the current one."""
        current = self.get(resource, name, namespace)
        return self._update(current, apply_patch(resource, current.raw, patch, patch_type), subresource, dry_run)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> Stored:
        """As DELETE: the object goes, or stays terminating. Gives its last or its terminating state."""
        current = self.get(resource, name, namespace)
        writes.check_preconditions(current, uid, resource_version)
        raw = writes.after_delete(current, grace_period, self._wall(), propagation)
        if dry_run:
            return Stored(current.resource, raw, current.version)
        return self._commit(current, raw)

    def finish_deletion(self, name: str, namespace: str, uid: str = "") -> Stored:
        """What a kubelet does when a terminating pod has stopped."""
        return self.delete(resources.PODS, name, namespace=namespace, uid=uid, grace_period=0)

    def bind(self, name: str, namespace: str, node: str, *, uid: str = "", resource_version: str = "") -> Stored:
        """As POST pods/<name>/binding."""
        if not node:
            raise refusals.invalid(resources.PODS, name, "target.name", "Required value")
        current = self.get(resources.PODS, name, namespace)
        return self._commit(current, writes.bound(current, node, uid, resource_version, self._wall()))

    # Life of the store

    def bookmark(self, resource: Resource | None = None) -> None:
        """Sends a bookmark to all watches, or to those of one resource."""
        for table in self._tables.values() if resource is None else [self._table(resource)]:
            for listener in tuple(table.listeners):
                if isinstance(listener, Subscription):
                    listener.bookmark()

    def compact(self, version: int | None = None) -> None:
        """Forgets the changes up to a version (None: all). Who still needs them gets a 410."""
        for table in self._tables.values():
            durable = self.durable_version
            table.forget(min(durable, durable if version is None else version))

    def resources(self) -> Sequence[Resource]:
        """The resources that have, or had, objects or readers."""
        return [table.resource for table in self._tables.values()]

    def _table(self, resource: Resource) -> ObjectTable:
        key = (resource.group, resource.plural)
        table = self._tables.get(key)
        if table is None:
            # The record type of the built-in kind, also when the first caller reads the kind as plain JSON.
            known = resources.by_plural(resource.plural, resource.group) or resource
            table = self._tables[key] = ObjectTable(known, self._history_limit, floor=self._start)
        return table

    def _create(self, resource: Resource, raw: Raw, *, keep_status: bool, dry_run: bool = False) -> Stored:
        table = self._table(resource)
        raw = self._rules.read(resource, raw)
        meta = self._namer.metadata(table, metadata_of(raw), keep_times=keep_status)
        raw = {**raw, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
        raw = self._rules.created(resource, raw, self, keep_status=keep_status)
        if key_in(resource, meta.get("namespace", ""), meta["name"]) in table.objects:
            raise refusals.already_exists(resource, meta["name"])
        if dry_run:
            return Stored(table.resource, raw, self.version)
        stored = self._put(table, raw)
        self._namer.keep(meta["uid"])
        return stored

    def _update(self, current: Stored, proposed: Raw, subresource: str, dry_run: bool) -> Stored:
        proposed = self._rules.read(current.resource, proposed)
        metadata_of(proposed)
        raw = writes.proposed_state(current, proposed, subresource)
        raw = self._rules.updated(current, raw, subresource, self)
        if subresource != "status":
            raw = writes.count_generation(current.raw, raw)
        if dry_run:
            return Stored(current.resource, raw, current.version)
        return self._commit(current, raw)

    def _commit(self, current: Stored, raw: Raw) -> Stored:
        """Stores the next version, or removes the object if that is what it was waiting for."""
        table = self._table(current.resource)
        if writes.is_over(raw):
            return self._put(table, raw, deleted=True)
        if raw == current.raw:
            return current  # as the API server: a write that changes nothing makes no version
        return self._put(table, raw)

    def _put(self, table: ObjectTable, raw: Raw, deleted: bool = False) -> Stored:
        """The one place where anything changes."""
        version = self.version + 1
        stored = Stored(table.resource, with_meta(raw, resourceVersion=str(version)), version)
        self.durability.check(stored)
        self.version = version
        if deleted:
            table.remove(stored)
        else:
            table.put(stored)
        self._unnotified[table] = None
        self.durability.record(stored, deleted=deleted)
        return stored


def _number(resource_version: str) -> int:
    if not resource_version:
        return 0
    # ASCII digits only: int() accepts those of other scripts, signs and blanks.
    if not resource_version.isascii() or not resource_version.isdigit():
        raise _unreadable(resource_version)
    return int(resource_version)


def _unreadable(resource_version: str) -> ApiError:
    return refusals.bad_request(f'Invalid value: "{resource_version}": invalid resource version')
