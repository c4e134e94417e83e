"""What a plugin declares: the API access that it needs, and what its answers depend on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from moorage.api.resources import Resource

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
"""The verbs of a client, in the order in which RBAC rules list them."""
READ_VERBS = ("get", "list", "watch")
LISTED = ("list", "watch")
"""The verbs of an informer: enough for a plugin that reads only through listers."""


@dataclass(frozen=True, slots=True)
class Access:
    """One line of `needs`: a kind and the verbs that the plugin uses on it.

    The Handle refuses kinds and verbs that are not declared. Informers and RBAC rules are derived from the
    declarations. `subresource` is for writes such as `pods/status`.
    """

    resource: Resource
    verbs: tuple[str, ...] = READ_VERBS
    subresource: str = ""

    @property
    def reads(self) -> bool:
        """Whether an informer keeps this kind. `list` without `watch` is for `client.list`: for kinds that
        cannot be watched (metrics.k8s.io) or have too many objects to keep."""
        return "watch" in self.verbs


class Reads(enum.Enum):
    """What an answer depends on besides the pod."""

    NODE = "node"
    """The node object: labels, taints, allocatable."""
    ROW = "row"
    """The pods on that node: requested, ports, volumes."""
    PODS = "pods"
    """Pods anywhere in the cluster."""
    NODE_COUNT = "node count"
    """The number of nodes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """All objects of one kind."""

    resource: Resource


class Version:
    """A counter that the plugin owns; bump it when the answers change, such as after a refresh of metrics."""

    __slots__ = ("value",)

    bumps: ClassVar[int] = 0
    """How often any version was bumped; while this stays the same, all versions do."""

    def __init__(self) -> None:
        self.value = 0
        """Grows with every bump; read-only."""

    def bump(self) -> None:
        """Invalidate the answers that depend on this version."""
        self.value += 1
        Version.bumps += 1


Dependency = Reads | Kind | Version
