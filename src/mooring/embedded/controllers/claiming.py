"""Which objects a controller's object controls: adopts orphans that match its selector, lets go of others.

no controller, selector matches  ──adopt──▶  controlled
controlled, selector does not match any more ──release──▶ no controller
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from mooring.api.meta import LabelSelector
from mooring.api.resources import Resource, Unstructured
from mooring.api.selectors import NOTHING, Selector, compile_label_selector, selector_from_labels
from mooring.embedded.controllers.cache import Cache
from mooring.embedded.controllers.pod_states import is_terminating
from mooring.embedded.controllers.templates import owner_reference
from mooring.embedded.controllers.writing import Writer

ORPHANS = "orphans"
"""The index of objects without a controller, by namespace."""


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
    """The objects in `cache` that `owner`, of `resource`, controls after adopting and releasing."""
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
    """Keys of the objects in `cache` that control, or could adopt, `obj`."""
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
    owners: list[Any] = [
        o for o in obj.raw["metadata"].get("ownerReferences") or () if o.get("uid") != owner.uid
    ]
    await writer.patch(kind, obj, {"metadata": {"ownerReferences": owners or None}})


def _orphanage(obj: Unstructured) -> Iterable[Hashable]:
    if any(owner.controller for owner in obj.metadata.owner_references):
        return ()
    return (obj.namespace,)
