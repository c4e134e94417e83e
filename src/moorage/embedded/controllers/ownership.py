"""Objects that belong to others: created from a template, adopted, released, and kept as past revisions.

    no controller, selector matches  ──adopt──▶  controlled
    controlled, selector does not match any more ──release──▶ no controller

ControllerRevisions hold past templates of StatefulSets and DaemonSets, for `kubectl rollout undo`. As in
pkg/controller/controller_ref_manager.go and pkg/controller/history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

import msgspec

from moorage.api.errors import AlreadyExists
from moorage.api.meta import LabelSelector
from moorage.api.resources import Resource, Unstructured
from moorage.api.selectors import NOTHING, Selector, compile_label_selector, selector_from_labels
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.kinds import is_terminating
from moorage.embedded.controllers.writes import Writer

Raw = dict[str, Any]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as names are generated: no vowels, so no words
_HASH_LENGTH = 10
_NAME_LENGTH = 63
_GENERATED_LENGTH = 58  # leaves room for the five letters that the server adds
ORPHANS = "orphans"
"""The index of objects without a controller, by namespace."""
HASH = "controller.kubernetes.io/hash"


def short_hash(value: Any, collisions: int = 0) -> str:
    """Return a hash that is equal for equal JSON values, whatever the order of their keys."""
    canonical = msgspec.json.encode(value, order="sorted") + (str(collisions).encode() if collisions else b"")
    number = int.from_bytes(hashlib.blake2b(canonical, digest_size=8).digest(), "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def owner_reference(resource: Resource, owner: Unstructured) -> Raw:
    """Return the reference for an object that `owner` controls."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def generate_name(owner: str) -> str:
    """Return the prefix for generated names of an owner's objects."""
    return f"{owner[: _GENERATED_LENGTH - 1]}-"


def pod_from(
    template: Mapping[str, Any],
    resource: Resource,
    owner: Unstructured,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Raw:
    """Return a pod of the owner's template; without a name it gets a generated one."""
    given = template.get("metadata") or {}
    meta: Raw = {
        "namespace": owner.namespace,
        "ownerReferences": [owner_reference(resource, owner)],
        **({"name": name} if name else {"generateName": generate_name(owner.name)}),
    }
    for field, more in (("labels", labels), ("annotations", annotations)):
        values = {**(given.get(field) or {}), **(more or {})}
        if values:
            meta[field] = values
    if given.get("finalizers"):
        meta["finalizers"] = given["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


def without_label(template: Mapping[str, Any], label: str) -> Raw:
    """Return the template without a label, for comparisons."""
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != label}
    bare = {field: value for field, value in meta.items() if field not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**bare, **({"labels": labels} if labels else {})}}


def resolve(value: Any, total: int, *, up: bool, default: int = 0) -> int:
    """A count, or a percentage of `total` such as "25%"; rounded up or down."""
    if value is None:
        return default
    if isinstance(value, str):
        if not value.endswith("%"):
            return int(value)
        percent = int(value[:-1])
        return -(-percent * total // 100) if up else percent * total // 100
    return int(value)


def shortened(prefix: str, suffix: str) -> str:
    """`prefix-suffix`, with the prefix cut so that it is a label value."""
    return f"{prefix[: _NAME_LENGTH - len(suffix) - 1]}-{suffix}"


def index_orphans(cache: Cache) -> Cache:
    cache.add_index(ORPHANS, _orphanage)
    return cache


def selector_of(obj: Unstructured) -> Selector:
    """spec.selector, in both of its forms; none selects nothing."""
    spec = (obj.raw.get("spec") or {}).get("selector")
    if not spec:
        return NOTHING
    if "matchLabels" in spec or "matchExpressions" in spec:
        return compile_label_selector(msgspec.convert(spec, LabelSelector))
    return selector_from_labels(spec)


async def claim(writer: Writer, resource: Resource, owner: Unstructured, cache: Cache) -> list[Unstructured]:
    """Adopt and release objects in `cache`, and return those that `owner` of `resource` controls."""
    selector = selector_of(owner)
    claimed: list[Unstructured] = []
    for obj in cache.owned_by(owner):
        if selector.matches(obj.labels):
            claimed.append(obj)
        elif not is_terminating(owner):
            await _release(writer, cache.resource, owner, obj)
    if is_terminating(owner):
        return claimed
    for obj in cache.find(ORPHANS, owner.namespace):
        if selector.matches(obj.labels) and not is_terminating(obj):
            claimed.append(await _adopt(writer, resource, owner, cache.resource, obj))
    return claimed


def possible_owners(cache: Cache, obj: Unstructured) -> Iterable[str]:
    """Return the keys of the objects in `cache` that control or could adopt `obj`."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            if owner.kind != cache.resource.kind:
                return ()
            key = f"{obj.namespace}/{owner.name}"
            found = cache.get(key)
            return (key,) if found is not None and found.uid == owner.uid else ()
    return [o.key for o in cache.in_namespace(obj.namespace) if selector_of(o).matches(obj.labels)]


async def _adopt(
    writer: Writer, resource: Resource, owner: Unstructured, kind: Resource, obj: Unstructured
) -> Unstructured:
    owners = [*(obj.raw["metadata"].get("ownerReferences") or ()), owner_reference(resource, owner)]
    return await writer.patch(kind, obj, {"metadata": {"ownerReferences": owners}})


async def _release(writer: Writer, kind: Resource, owner: Unstructured, obj: Unstructured) -> None:
    owners: list[Any] = [o for o in obj.raw["metadata"].get("ownerReferences") or () if o.get("uid") != owner.uid]
    await writer.patch(kind, obj, {"metadata": {"ownerReferences": owners or None}})


def _orphanage(obj: Unstructured) -> Iterable[Hashable]:
    if any(owner.controller for owner in obj.metadata.owner_references):
        return ()
    return (obj.namespace,)


class RevisionHistory:
    """Manages the revisions of the objects of one kind."""

    def __init__(self, writer: Writer, revisions: Cache, resource: Resource) -> None:
        self._writer = writer
        self._revisions = revisions
        self._resource = resource

    def of(self, owner: Unstructured) -> list[Unstructured]:
        """Return the revisions of an owner, oldest first."""
        return sorted(self._revisions.owned_by(owner), key=lambda r: (number_of(r), r.name))

    async def present(self, owner: Unstructured) -> Unstructured:
        """Return the revision of the owner's current template, and create or renew it if necessary."""
        past = self.of(owner)
        data = _data(owner)
        newest = number_of(past[-1]) if past else 0
        for found in reversed(past):
            if found.raw.get("data") != data:
                continue
            if number_of(found) == newest:
                return found
            return await self._writer.patch(kinds.CONTROLLER_REVISIONS, found, {"revision": newest + 1})
        return await self._make(owner, data, newest + 1)

    async def drop_old(self, owner: Unstructured, used: Collection[str]) -> None:
        """Delete old revisions beyond revisionHistoryLimit that are not in use."""
        limit = (owner.raw.get("spec") or {}).get("revisionHistoryLimit")
        unused = [one for one in self.of(owner) if one.name not in used]
        for one in unused[: max(0, len(unused) - (10 if limit is None else int(limit)))]:
            await self._writer.delete(kinds.CONTROLLER_REVISIONS, one)

    async def _make(self, owner: Unstructured, data: Raw, number: int) -> Unstructured:
        collisions = int((owner.raw.get("status") or {}).get("collisionCount") or 0)
        while True:
            digest = short_hash(data, collisions)
            raw = self._raw(owner, data, number, digest)
            try:
                return await self._writer.create(kinds.CONTROLLER_REVISIONS, raw)
            except AlreadyExists:
                name = raw["metadata"]["name"]
                await self._writer.refresh(kinds.CONTROLLER_REVISIONS, name, owner.namespace)
                found = self._revisions.get(f"{owner.namespace}/{name}")
                if found is None or found in self._revisions.owned_by(owner):
                    raise
                collisions += 1  # another owner's

    def _raw(self, owner: Unstructured, data: Raw, number: int, digest: str) -> Raw:
        labels = (((owner.raw["spec"].get("template") or {}).get("metadata")) or {}).get("labels") or {}
        return {
            "metadata": {
                "name": shortened(owner.name, digest),
                "namespace": owner.namespace,
                "labels": {**labels, HASH: digest},
                "ownerReferences": [owner_reference(self._resource, owner)],
            },
            "data": data,
            "revision": number,
        }


def number_of(revision: Unstructured) -> int:
    return int(revision.raw.get("revision") or 0)


def hash_of(revision: Unstructured) -> str:
    return revision.labels.get(HASH, "")


def template_of(revision: Unstructured) -> Raw:
    """Return the pod template of a revision."""
    template = ((revision.raw.get("data") or {}).get("spec") or {}).get("template") or {}
    return {field: value for field, value in template.items() if field != "$patch"}


def _data(owner: Unstructured) -> Raw:
    """Return the strategic patch that restores the template."""
    return {"spec": {"template": {**(owner.raw["spec"].get("template") or {}), "$patch": "replace"}}}
