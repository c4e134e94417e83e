"""The kinds a server serves, and how each is reached: names, verbs, subresources, views and printers.

A `ServedKind` is one kind in one version. Several of them may be the same stored objects: both event groups, or the
versions of a CustomResourceDefinition. Then `stored` says which resource the store holds them under, and `view` turns
one form into the other. `embedded.builtin` lists the built-in kinds; CRDs add theirs while the server runs.

Kinds that are served but not stored have only their names here, for discovery and OpenAPI; `metrics` and `reviews`
answer them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from moorage.api.resources import Resource, custom
from moorage.embedded.catalog.printing.columns import Printer
from moorage.store.objects import Raw

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""What can be done with objects of a kind, unless its `ServedKind` says otherwise."""
_READ_WRITE = ("get", "patch", "update")
_AUTHORIZATION, _AUTHENTICATION, _METRICS = "authorization.k8s.io", "authentication.k8s.io", "metrics.k8s.io"
LOCAL_ACCESS_REVIEWS = custom(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview")
SELF_ACCESS_REVIEWS = custom(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
SELF_RULES_REVIEWS = custom(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False)
ACCESS_REVIEWS = custom(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", False)
SELF_REVIEWS = custom(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", False)
TOKEN_REVIEWS = custom(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview", False)
NODE_METRICS = custom(_METRICS, "v1beta1", "nodes", "NodeMetrics", False)
POD_METRICS = custom(_METRICS, "v1beta1", "pods", "PodMetrics")
REVIEWS: tuple[Resource, ...] = (
    SELF_REVIEWS,
    TOKEN_REVIEWS,
    LOCAL_ACCESS_REVIEWS,
    SELF_ACCESS_REVIEWS,
    SELF_RULES_REVIEWS,
    ACCESS_REVIEWS,
)


class View(Protocol):
    """Converts stored objects to another form and back. Neither direction changes its argument."""

    def inward(self, raw: Raw) -> Raw:
        """Return the stored form of an object from a client."""
        ...

    def outward(self, raw: Raw) -> Raw:
        """Return the form of a stored object that clients see."""
        ...

    def field(self, path: str) -> str:
        """Return the path in stored objects of a field in a field selector."""
        ...


class ServedAdmission(Protocol):
    """Checks and completes objects in their served form before they reach the store."""

    def admit(self, raw: Raw, old: Raw | None, subresource: str = "") -> Raw:
        """Return the object to store, pruned and with defaults. `old` is the current state, None on creation.

        Raises the `ApiError` (422) that the client gets.
        """
        ...


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource: its kind and group version where they are not those of its parent, and its verbs."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource("status", _READ_WRITE)
SCALE = Subresource("scale", _READ_WRITE, "Scale", "autoscaling", "v1")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers; each path is a tuple of field names."""

    replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] | None = None
    """A selector as text, as a labelSelector object or as plain labels; None where the kind has none."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One kind in one version as clients reach it."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()
    categories: tuple[str, ...] = ()
    storage: Resource | None = None
    """The resource that the store holds the objects under; None: `resource` itself."""
    view: View | None = None
    """Converts to the stored form; None: stored as served."""
    admission: ServedAdmission | None = None
    """Given for custom kinds and for CustomResourceDefinitions, which depend on schemas of users."""
    scale: ScalePaths | None = None
    """The fields of the scale subresource, if the kind has one."""
    printer: Printer | None = None
    """The columns of Tables; None: name and creation time."""
    custom: bool = False
    """Whether a CustomResourceDefinition defines the kind."""
    schema: Raw | None = None
    """The OpenAPI schema of a custom kind, as its definition has it."""
    list_kind: str = ""
    deprecated: bool = False
    warning: str = ""
    """For a deprecated version: what the Warning header says."""

    @property
    def stored(self) -> Resource:
        return self.storage or self.resource

    @property
    def list_name(self) -> str:
        """The kind of lists."""
        return self.list_kind or f"{self.resource.kind}List"

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)


class Catalog:
    """All kinds that are served. `version` grows with each change, so that derived answers can be cached."""

    def __init__(self, served: Iterable[ServedKind] = ()) -> None:
        self.version = 0
        self.listeners: list[Callable[[], None]] = []
        """Called after each change."""
        self._served: dict[tuple[str, str, str], ServedKind] = {}
        for one in served:
            self.add(one)

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._served.get((group, version, plural))

    def all(self) -> Iterator[ServedKind]:
        """Return all kinds in the order in which they were added."""
        return iter(tuple(self._served.values()))

    def add(self, served: ServedKind) -> None:
        """Serve a kind. It replaces one with the same group, version and plural."""
        self._served[_key(served)] = served
        self._changed()

    def remove(self, served: ServedKind) -> None:
        """Stop serving a kind. Does nothing if it is not served."""
        if self._served.pop(_key(served), None) is not None:
            self._changed()

    def of_kind(self, group: str, version: str, kind: str) -> ServedKind | None:
        """Find a kind by its name instead of its plural."""
        for served in self._served.values():
            resource = served.resource
            if (resource.kind, resource.group, resource.version) == (kind, group, version):
                return served
        return None

    def _changed(self) -> None:
        self.version += 1
        for listener in tuple(self.listeners):
            listener()


def _key(served: ServedKind) -> tuple[str, str, str]:
    resource = served.resource
    return resource.group, resource.version, resource.plural


VIRTUAL: tuple[ServedKind, ...] = (
    *(ServedKind(resource, resource.kind.lower(), verbs=("create",)) for resource in REVIEWS),
    *(ServedKind(resource, "", verbs=("get", "list")) for resource in (NODE_METRICS, POD_METRICS)),
)
