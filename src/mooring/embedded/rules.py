"""Who decides what may be written: the port between the store and the rules of the kinds.

`LenientRules` take objects as they come and fill in only what schedulers rely on: for tests, fixtures and
simulations. Behind an API server a store gets `admission.strict.StrictRules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mooring.api import resources
from mooring.api.resources import Resource
from mooring.embedded import defaulting, refusals
from mooring.embedded.objects import Raw, Stored

_NO_OTHER_FIELDS = "Forbidden: pod updates may not change fields other than"


class Cluster(Protocol):
    """The objects that there are. The store is one."""

    def find(self, resource: Resource, name: str, namespace: str = "") -> Raw | None: ...

    def every(self, resource: Resource) -> Iterable[Raw]: ...


class WriteRules(Protocol):
    """Called by the store for each write; refusals are ApiErrors."""

    def read(self, resource: Resource, raw: Raw) -> Raw:
        """What a client sent, before anybody looks into it."""
        ...

    def created(self, resource: Resource, raw: Raw, cluster: Cluster, *, keep_status: bool) -> Raw:
        """A new object as it is stored. Its metadata is complete, but may lack a name."""
        ...

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: Cluster) -> Raw:
        """The next state of an object as it is stored; what belongs to the server is carried over already."""
        ...


class LenientRules:
    """Everything passes but what would make no sense at all."""

    def read(self, resource: Resource, raw: Raw) -> Raw:
        return raw

    def created(self, resource: Resource, raw: Raw, cluster: Cluster, *, keep_status: bool) -> Raw:
        if not raw["metadata"].get("name"):
            problem = "Required value: name or generateName is required"
            raise refusals.invalid(resource, "", "metadata.name", problem)
        return defaulting.fill_in(
            resource, raw, lambda: cluster.every(resources.PRIORITY_CLASSES), keep_status=keep_status
        )

    def updated(self, current: Stored, raw: Raw, subresource: str, cluster: Cluster) -> Raw:
        if current.resource == resources.PODS and subresource != "status":
            before, after = current.raw.get("spec") or {}, raw.get("spec") or {}
            if (after.get("nodeName") or "") != (before.get("nodeName") or ""):
                problem = f"{_NO_OTHER_FIELDS} ...: spec.nodeName"
                raise refusals.invalid(current.resource, current.name, "spec", problem)
        return raw
