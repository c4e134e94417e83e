"""ControllerRevisions: past templates of StatefulSets and DaemonSets, for `kubectl rollout undo`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from moorage.api.errors import AlreadyExists
from moorage.api.resources import Resource, Unstructured
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.ownership import owner_reference, short_hash, shortened
from moorage.embedded.controllers.writes import Writer

Raw = dict[str, Any]

HASH = "controller.kubernetes.io/hash"


class History:
    """The revisions of the objects of one kind."""

    def __init__(self, writer: Writer, revisions: Cache, resource: Resource) -> None:
        self._writer = writer
        self._revisions = revisions
        self._resource = resource

    def of(self, owner: Unstructured) -> list[Unstructured]:
        """Oldest first."""
        return sorted(self._revisions.owned_by(owner), key=lambda r: (number_of(r), r.name))

    async def present(self, owner: Unstructured) -> Unstructured:
        """The revision of the owner's present template, made or brought to the front if need be."""
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
        """Keeps revisionHistoryLimit revisions beyond those in use."""
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
    """The pod template that the revision holds."""
    template = ((revision.raw.get("data") or {}).get("spec") or {}).get("template") or {}
    return {field: value for field, value in template.items() if field != "$patch"}


def _data(owner: Unstructured) -> Raw:
    """As a strategic patch that brings the template back."""
    return {"spec": {"template": {**(owner.raw["spec"].get("template") or {}), "$patch": "replace"}}}
